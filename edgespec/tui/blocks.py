"""What a conversation on the screen consists of."""

from __future__ import annotations

from dataclasses import dataclass

from edgespec.tui.transcript import Mark, Voice


@dataclass(frozen=True, slots=True)
class BlockContent:
    """One message, as it is handed to the view.

    key        a message's id; None for notes, which cannot be named later.
    runs       one for each token, which is how tokens are numbered.
    whole      nothing more will be added; an answer is then shown as Markdown.
    """

    key: int | None
    voice: Voice
    runs: tuple[tuple[str, Mark], ...]
    label: str = ""
    whole: bool = True
