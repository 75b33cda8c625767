"""The inspector beside the conversation: the rounds of an answer, and one token in detail."""

from __future__ import annotations

from textual.containers import Vertical
from textual.message import Message

from edgespec.decoding.events import Alternative
from edgespec.tui.details import Explanation
from edgespec.tui.rounds import Rounds


class Inspector(Vertical):
    """Shows the rounds of one answer; the app adds rounds to `rounds` and calls `update_rows`.

    The keys of a token are the answer's `key` and its `index` in the answer, from 0.
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
            self.token = alternative.token

    class Wanted(Message):
        """What the target thought of this token is not known yet: answer with `explained`."""

        def __init__(self, key: int, index: int) -> None:
            super().__init__()
            self.key, self.index = key, index

    def __init__(self, rounds: Rounds | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rounds = rounds if rounds is not None else Rounds()

    def follow(self, key: int) -> None:
        """Show an answer from now on and stay at its latest round; for an answer that begins."""
        raise NotImplementedError

    def update_rows(self) -> None:
        """Bring the rows up to date; called some thirty times a second."""
        raise NotImplementedError

    @property
    def selected(self) -> tuple[int, int] | None:
        """The answer's key and the index of the token in detail."""
        raise NotImplementedError

    def select(self, key: int, index: int, text: str = "") -> None:
        """Show a token in detail. text: what it says, where no round of it is known."""
        raise NotImplementedError

    def explained(self, key: int, index: int, explanation: Explanation) -> None:
        """What the target thought of a token; kept, and shown if it is the one selected."""
        raise NotImplementedError

    def unexplained(self, key: int, index: int, why: str) -> None:
        """Say in a line why the details of a token cannot be had."""
        raise NotImplementedError

    def forget(self, key: int, index: int = 0) -> None:
        """Drop what was explained of an answer's tokens from `index` on: they change."""
        raise NotImplementedError

    def clear(self) -> None:
        """Forget all answers, the rounds too."""
        raise NotImplementedError
