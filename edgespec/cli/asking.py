"""The question before something is deleted."""

from __future__ import annotations

import click

from edgespec.errors import Cancelled


def ask_to_delete(question: str) -> None:
    """Raises: Cancelled unless the answer is yes."""
    try:
        if click.confirm(question, err=True):
            return
    except click.Abort as error:
        raise Cancelled("Nothing was deleted: nobody said yes. --yes deletes unasked.") from error
    raise Cancelled("Nothing was deleted.")
