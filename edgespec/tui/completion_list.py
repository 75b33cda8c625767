"""The ways a command may go on, in a list above the prompt."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from edgespec.tui.completion import Offer, Offers
from edgespec.tui.listing import Listing

_MOST_ROWS = 8
_WIDEST_LABEL = 40


class CompletionList(Listing, can_focus=False):
    """Lies over what is above the prompt; its keys come from the prompt.

    for_text: what the offers go on from.
    """

    DEFAULT_CSS = """
    CompletionList {
        overlay: screen;
        display: none;
        width: 100%;
        max-height: 10;
        padding: 0 1;
        border: round $rule;
        background: $background;
        text-wrap: nowrap;
        text-overflow: ellipsis;
        scrollbar-size-vertical: 1;

        & > .option-list--option-highlighted {
            color: $foreground;
            background: $token-accepted;
            text-style: bold;
        }
    }
    """

    @dataclass
    class Taken(Message):
        """One was clicked."""

        offer: Offer

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self._offers: tuple[Offer, ...] = ()
        self.for_text = ""

    @property
    def is_open(self) -> bool:
        return bool(self._offers)

    def chosen(self, text: str) -> Offer | None:
        """The highlighted one, if these offers are for `text`."""
        at = self.highlighted
        return None if at is None or text != self.for_text or not self.is_open else self._offers[at]

    def first(self, text: str) -> Offer | None:
        """The highlighted one or else the first, if these offers are for `text`."""
        if text != self.for_text or not self.is_open:
            return None
        return self.chosen(text) or self._offers[0]

    def offer(self, text: str, found: Offers, rows: int = _MOST_ROWS) -> None:
        """Show what `text` may go on with, in at most so many rows; nothing closes the list."""
        self.for_text = text
        if found.all != self._offers:
            self._offers = found.all
            width = self._label_width()
            self.set_options([Option(_row(offer, width)) for offer in found.all])
            height = max(1, min(len(found.all), rows, _MOST_ROWS)) + self.styles.gutter.height
            self.styles.height = height
            self.styles.offset = (0, -height)
            self.display = self.is_open
        self.highlighted = 0 if found.all and not found.stands else None

    def close(self) -> None:
        self.offer("", Offers())

    def move(self, step: int) -> None:
        """Highlight another one, round and round."""
        count = len(self._offers)
        if count:
            at = self.highlighted
            self.highlighted = (step - (step > 0) if at is None else at + step) % count

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_index < len(self._offers):
            self.post_message(self.Taken(self._offers[event.option_index]))

    def _label_width(self) -> int:
        widths = [cell_len(offer.label) for offer in self._offers]
        return min(max(widths, default=0), _WIDEST_LABEL)


def _row(offer: Offer, width: int) -> Content:
    label = Content(offer.label)
    if not offer.help:
        return label
    gap = " " * (max(0, width - cell_len(offer.label)) + 2)
    return Content.assemble(label, gap, offer.help)
