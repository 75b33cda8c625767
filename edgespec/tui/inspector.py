"""The inspector beside the conversation: the rounds of an answer, and one token in detail."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from edgespec.decoding.events import Alternative
from edgespec.models.shown import shown
from edgespec.tui.details import Detail, Explanation, detail_of
from edgespec.tui.round_list import RoundList
from edgespec.tui.rounds import RoundRow, Rounds
from edgespec.tui.token_detail import MOST_ALTERNATIVES, Alternatives, TokenDetail

_REST_S = 0.12  # a cursor that only passes by asks the model nothing
_MOST_EXPLAINED = 1024
_ASKING = "asking the model…"
_LEGEND = "✓ right  ✗ wrong  · unseen   ms draft+verify"


class Inspector(Vertical):
    """Shows the rounds of one answer; the app adds rounds to `rounds` and calls `update_rows`.

    A token is named by its answer's `key` and its `index` in the answer, from 0. It stays what it
    is: an answer that is rewritten from a token on is another one, with a key of its own.
    """

    class TokenChosen(Message):
        """The user went to another token here, so the conversation may show which it is."""

        def __init__(self, key: int, index: int) -> None:
            super().__init__()
            self.key, self.index = key, index

    class Resteer(Message):
        """The answer is to be written anew from `index` on, where `alternative` shall stand."""

        def __init__(self, key: int, index: int, alternative: Alternative) -> None:
            super().__init__()
            self.key, self.index, self.alternative = key, index, alternative

    class Wanted(Message):
        """What the target thought of this token is not known yet: answer with `explained`."""

        def __init__(self, key: int, index: int) -> None:
            super().__init__()
            self.key, self.index = key, index

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(str(n), f"choose({n})", f"Rewrite with alternative {n}", show=False)
        for n in range(1, MOST_ALTERNATIVES + 1)
    ]
    DEFAULT_CSS = """
    Inspector {
        width: 48;
        max-width: 100%;
        height: 1fr;
        padding: 0 1;
        border-left: solid $rule;
        border-title-color: $quiet;
        background: $background;

        &:focus-within { border-left: solid $primary; }
        & > #legend { height: 1; }
    }
    """

    def __init__(self, rounds: Rounds | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rounds = rounds if rounds is not None else Rounds()
        self.list = RoundList(self.rounds)
        self.detail = TokenDetail()
        self.alternatives = Alternatives()
        self._selected: tuple[int, int] | None = None
        self._text = ""
        self._row: RoundRow | None = None
        self._explained: dict[tuple[int, int], Explanation] = {}
        self._why_not = ""
        self._resting: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Static(Content.styled(_LEGEND, "$quiet"), id="legend", markup=False)
        yield self.list
        yield self.detail
        yield self.alternatives

    def on_mount(self) -> None:
        self.alternatives.show(None, self.rounds.ends)

    # what the app tells

    def follow(self, key: int) -> None:
        """Show an answer from now on and stay at its latest round; for an answer that begins."""
        self._set_selected(None)
        self.list.follow(key)

    def update_rows(self) -> None:
        """Bring the rows up to date; called up to thirty times a second, cheap while not shown."""
        if self.display:
            self.list.update_rows()
            if self._selected is not None and self.rounds.find(*self._selected) is not self._row:
                self._show_selected()

    @property
    def selected(self) -> tuple[int, int] | None:
        """The answer's key and the index of the token in detail."""
        return self._selected

    def select(self, key: int, index: int, text: str = "") -> None:
        """Show a token in detail. text: what it says, where no round of it is known."""
        self.list.go_to(key, index)
        self._set_selected((key, index), text)

    def explained(self, key: int, index: int, explanation: Explanation) -> None:
        """What the target thought of a token; kept, and shown if it is the one selected."""
        if len(self._explained) >= _MOST_EXPLAINED:
            del self._explained[next(iter(self._explained))]
        self._explained[key, index] = explanation
        if self._selected == (key, index):
            self._show_selected()

    def unexplained(self, key: int, index: int, why: str) -> None:
        """Say in a line why a token has no details; it is asked for again when selected anew."""
        if self._selected == (key, index):
            self._why_not = shown(why)
            self._show_selected()

    def ask_again(self) -> None:
        """Ask once more for what could not be had of the selected token."""
        if self._why_not:
            self._why_not = ""
            self._show_selected()

    def clear(self) -> None:
        """Forget all answers, the rounds too."""
        self.rounds.clear()
        self._explained.clear()
        self._set_selected(None)
        self.list.show_nothing()

    def focus_rows(self) -> None:
        """Let the keys go to the rounds."""
        self.list.focus()

    # what the user does

    def on_round_list_moved(self, message: RoundList.Moved) -> None:
        message.stop()
        self._set_selected((message.key, message.index))
        self.post_message(self.TokenChosen(message.key, message.index))

    def on_round_list_entered(self, message: RoundList.Entered) -> None:
        message.stop()
        if self.alternatives.display:
            self.alternatives.focus()

    def on_option_list_option_selected(self, message: Alternatives.OptionSelected) -> None:
        message.stop()
        self.action_choose(message.option_index + 1)

    def action_choose(self, number: int) -> None:
        """Have the answer written anew with one of the alternatives, from 1."""
        chosen = self.alternatives.choice(number)
        if chosen is not None and self._selected is not None:
            self.list.focus()
            self.post_message(self.Resteer(*self._selected, chosen))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A digit is a letter like others where there is nothing to choose."""
        return self.alternatives.display if action == "choose" else True

    # the token in detail

    def _set_selected(self, selected: tuple[int, int] | None, text: str = "") -> None:
        self._selected, self._text, self._why_not = selected, text, ""
        self._show_selected()

    def _show_selected(self) -> None:
        detail, self._row = None, None
        if self._selected is not None:
            self._row = self.rounds.find(*self._selected)
            explanation = self._explained.get(self._selected)
            detail = detail_of(self._selected[1], self._text, self._row, explanation)
        self.detail.show(detail, self._why_not or _ASKING)
        self.alternatives.show(detail, (self._row or self.rounds).ends)
        self._want(detail)

    def _want(self, detail: Detail | None) -> None:
        """Ask for what is not known, once the cursor rests."""
        if self._resting is not None:
            self._resting.stop()
            self._resting = None
        if detail is None or detail.alternatives or self._selected is None:
            return
        if self._selected not in self._explained and not self._why_not:
            self._resting = self.set_timer(_REST_S, self._ask)

    def _ask(self) -> None:
        self._resting = None
        if self._selected is not None:
            self.post_message(self.Wanted(*self._selected))
