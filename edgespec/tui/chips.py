"""What goes along with the next message, above the prompt, with its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

from edgespec.models.shown import shown
from edgespec.tui.attach import Attached

_LONGEST_NAME = 32  # characters


class Chips(Static):
    """One chip for each attachment; a click on its cross takes it back."""

    DEFAULT_CSS = """
    Chips {
        display: none;
        height: auto;
        max-height: 4;
        padding: 0 2;
        color: $foreground;
    }
    """

    @dataclass
    class Removed(Message):
        """index: which one, from 0."""

        index: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)

    def show(self, attached: Sequence[Attached], *, too_much: bool) -> None:
        """too_much: whether they do not fit into what is free of the context."""
        self.display = bool(attached)
        style = "bold $warning" if too_much else ""
        chips = Content("   ").join(_chip(at, one, style) for at, one in enumerate(attached))
        self.update(Content.assemble(("with  ", "$quiet"), chips))

    def action_remove(self, index: int) -> None:
        self.post_message(self.Removed(index))


def _chip(index: int, one: Attached, style: str) -> Content:
    size = "counting…" if one.tokens is None else f"{one.tokens:,} tokens"
    cross = Style.from_meta({"@click": f"remove({index})"})
    return Content.assemble(
        (shown(one.name, _LONGEST_NAME), style),
        (f" {size} ", style or "$quiet"),
        ("\N{MULTIPLICATION SIGN}", cross),
    )
