"""Names and texts out of model files, fit for a message of one line."""

from __future__ import annotations

from edgespec.text.sanitize import clean


def shown(text: object, most: int = 300) -> str:
    """`text` with what cannot be seen escaped, so that two texts that differ look different.

    Bytes are read as UTF-8. most: characters that are kept.
    """
    whole = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(text)
    escaped = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in whole[:most])
    return clean(escaped, one_line=True) + ("…" if len(whole) > most else "")
