"""How answers are guessed at: switched between and during answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from edgespec.errors import BadInput
from edgespec.tui.status import Situation, show_mode_notice, speculation_notice

if TYPE_CHECKING:
    from edgespec.options import Speculation
    from edgespec.tui.commands import ChangeSpeculation
    from edgespec.tui.engine import Engine

_ROUND: Final = ("auto", "none", "ngram", "draft", "tree", "recycling")
_LOADING: Final = "the model is still loading"


class Speculating:
    """What is set, and how it is changed. tell: a passing line; busy: whether an answer runs."""

    def __init__(
        self, engine: Engine, tell: Callable[[str], None], busy: Callable[[], bool]
    ) -> None:
        self._engine, self._tell, self._busy = engine, tell, busy
        self.now: Speculation | None = None

    def shown_in(self, situation: Situation) -> Situation:
        """The situation with what is set."""
        if self.now is None:
            return situation
        return replace(
            situation,
            proposer=self.now.proposer,
            draft_tokens=self.now.draft_tokens,
            show_mode=self.now.always_draft,
        )

    def cycle(self) -> None:
        """The next way to guess that this model has."""
        if self.now is None:
            self._tell(_LOADING)
            return
        now = self.now
        if now.draft_tokens == 0:  # that is off, whatever would guess
            now = replace(now, proposer="none", draft_tokens=None)
        at = _ROUND.index(now.proposer) if now.proposer in _ROUND else -1
        for name in (*_ROUND[at + 1 :], *_ROUND[:at]):
            if not self._refusal(replace(now, proposer=name)):
                self._tell_what_is_set()
                return

    def change(self, wanted: ChangeSpeculation) -> None:
        """What a command asks for. Raises: BadInput for what this model has not."""
        if self.now is None:
            self._tell(_LOADING)
        elif why := self._refusal(wanted.applied(self.now)):
            raise BadInput(why)
        else:
            self._tell_what_is_set()

    def toggle_show_mode(self) -> None:
        if self.now is None:
            self._tell(_LOADING)
            return
        on = not self.now.always_draft
        if why := self._refusal(replace(self.now, always_draft=on)):
            self._tell(why)
        else:
            self._tell(show_mode_notice(on, answering=self._busy()))

    def in_words(self) -> str:
        """What is set, in one line."""
        return f"speculation {self.shown_in(Situation()).asked_for}"

    def _refusal(self, wanted: Speculation) -> str:
        """Why the engine does not take it; "" where it does."""
        try:
            self._engine.set_speculation(wanted)
        except BadInput as error:
            return str(error)
        self.now = wanted
        return ""

    def _tell_what_is_set(self) -> None:
        situation = self.shown_in(Situation())
        self._tell(speculation_notice(situation, answering=self._busy()))
