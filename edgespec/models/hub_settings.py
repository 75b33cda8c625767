"""Checks what the environment says about the hub, before the hub's library reads it.

That library fails while it is imported where HF_ENDPOINT cannot be taken apart.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from edgespec.errors import BadInput, NoAccess
from edgespec.models.shown import shown

_USUAL = "https://huggingface.co"


def check_endpoint(endpoint: str | None = None) -> None:
    """Raises: BadInput for what can be no hub's address; None = what HF_ENDPOINT says."""
    told = os.environ.get("HF_ENDPOINT", _USUAL) if endpoint is None else endpoint
    try:
        address = urlsplit(told)
        sound = address.scheme in ("http", "https") and bool(address.hostname)
        sound = sound and address.port != 0 and told.isascii() and told.isprintable()
    except ValueError:
        sound = False
    if not sound or " " in told or address.query or address.fragment:
        raise BadInput(
            f"HF_ENDPOINT is '{shown(told, 100)}', which is no hub's address; unset it, or set one"
            f" such as {_USUAL}."
        )


def is_usual(endpoint: str) -> bool:
    """Whether this is the hub that everybody uses unless told otherwise."""
    return endpoint.rstrip("/") == _USUAL


def check_token(token: str | None) -> None:
    """Raises: NoAccess for what can be no token, and must not go into a request."""
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise NoAccess(
            "The token for the hub is wrong: it holds characters that no token has; set HF_TOKEN"
            " anew, or unset it and run 'hf auth login'."
        )
