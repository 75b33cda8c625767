"""Answers made anew: again, further, from a chosen token on, without speculation; and branches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgespec.decoding.events import Alternative, Event
from edgespec.text.sanitize import clean
from edgespec.tui.paths import ANSWERS, before, can_go_on, last, neighbour, numbered, turn_of
from edgespec.tui.replay import Made, Replay, margin_of
from edgespec.tui.transcript import Voice
from edgespec.tui.wishes import (
    Answered,
    Choice,
    another_answer,
    numbered_runs,
    rest_of,
    steered,
)

if TYPE_CHECKING:
    from edgespec.history import Saved
    from edgespec.options import AnswerOptions, Turn
    from edgespec.tui.engine import Engine, Explanation
    from edgespec.tui.inspector import Inspector
    from edgespec.tui.talking import Talking
    from edgespec.tui.token_view import TokenView

STILL_ANSWERING = "still answering · Esc stops it"
LOADING = "the model is still loading"
_ELSEWHERE = "this token is not on the branch that is open"


@dataclass(frozen=True, slots=True)
class Controls:
    """What steering may use of the app.

    options: those that are set now. tell: a passing line. recount: another path is open.
    """

    engine: Engine
    view: TokenView
    inspector: Inspector
    options: Callable[[], AnswerOptions]
    tell: Callable[[str], None]
    recount: Callable[[], None]


class Steering:
    """Turns what the user wants of the answers that stand into wishes for new ones."""

    def __init__(self, talking: Talking, controls: Controls) -> None:
        self._talking, self._use = talking, controls
        self.replaying: Replay | None = None
        self._explaining: dict[int, tuple[int, int]] = {}
        self._comparing: dict[int, Replay] = {}

    @property
    def busy(self) -> bool:
        return self._talking.busy or self.replaying is not None

    def regenerate(self) -> None:
        """Another answer beside the last one."""
        talk = self._talking.conversation
        answer = last(talk.path, ANSWERS)
        if answer is None:
            self._use.tell("there is no answer yet")
        elif self._free():
            options = self._use.options()
            if options.overrides.get("temperature") == 0:
                self._use.tell("at temperature 0 every answer is the same")
            self._talking.start(another_answer(talk, answer, options, self._talking.answerer))

    def resume(self) -> None:
        """Go on with an answer that was cut off."""
        talk = self._talking.conversation
        answer = talk.path[-1] if talk.path else None
        why_not = can_go_on(answer)
        if answer is not None and not answer.ids and not why_not:
            self.regenerate()
        elif answer is None or why_not:
            self._use.tell(why_not)
        elif foreign := self._foreign(answer):
            self._use.tell(f"{foreign}; Ctrl+R makes another")
        elif self._free():
            by = self._talking.answerer
            self._talking.start(rest_of(talk, answer, self._use.options(), by))

    def resteer(self, key: int, index: int, chosen: Alternative) -> None:
        """Write an answer anew from one of its tokens on; one that runs is left for it."""
        talk, found = self._talking.conversation, self._answered(key)
        if found is not None and (foreign := self._foreign(found.saved)):
            self._use.tell(foreign)
            return
        if found is not None:
            self.leave()
        answered = self._answered(key)
        if answered is None or not 0 <= index < len(answered.ids):
            self._use.tell(_ELSEWHERE)
            return
        if answered.ids[index] == chosen.token:
            self._use.tell("this token stands there already")
            return
        choice, by = Choice(index, chosen), self._talking.answerer
        wish = steered(talk, answered, choice, self._use.options(), by)
        self._talking.start(wish)
        now, rounds = self._talking.now, self._use.inspector.rounds
        assert now is not None
        for row in list(rounds.of(key)):
            if row.first < index:
                rounds.add(now.key, row.event)
        rounds.steer(now.key, index, chosen)

    # branches

    def branch(self, step: int) -> None:
        """The branch before (-1) or behind (1) the one that is open."""
        self._switch(neighbour(self._talking.conversation, step), "there is no branch further")

    def branch_to(self, number: int) -> None:
        """Branch `number`, from 1, of the nearest fork."""
        self._switch(numbered(self._talking.conversation, number), f"there is no branch {number}")

    def _switch(self, id: int | None, otherwise: str) -> None:
        if id is None:
            self._use.tell(otherwise)
        elif self._free():
            self._talking.conversation.switch(id)
            self._talking.show()
            if answer := last(self._talking.conversation.path, ANSWERS):
                self._use.inspector.follow(answer.id)
            self._use.recount()

    # without speculation

    def replay(self) -> None:
        """The last answer once more, with the same seed, plain."""
        talk = self._talking.conversation
        saved = last(talk.path, ANSWERS)
        if saved is None:
            self._use.tell("there is no answer to replay")
            return
        if not self._free():
            return
        if why := self._foreign(saved) if saved.ids else "it is empty":
            self._use.tell(f"this answer cannot be replayed; {why}")
            return
        above, by = before(talk.path, saved.id), self._talking.answerer
        turn = turn_of(talk.system, above, saved, self._use.options(), by)
        made = Made(saved.ids, numbered_runs(saved), saved.stats)
        self.replaying = Replay.of(turn, self._talking.next_number(), saved.id, made)
        self._use.engine.ask(self.replaying.number, self.replaying.turn)

    def hear(self, number: int, event: Event, at_s: float) -> None:
        """An event of the replay, if it is one."""
        if self.replaying is not None and self.replaying.number == number:
            self.replaying.hear(event, at_s)

    def ended(self, number: int, error: str) -> None:
        """The replay is over, if it was one: it is compared, the margin fetched first."""
        replay = self.replaying
        if replay is None or replay.number != number:
            return
        self.replaying = None
        at = replay.difference
        if error:
            self._use.view.say(Voice.ERROR, error)
        elif at is None:
            self._show(replay)
        else:
            tag = self._talking.next_number()
            self._comparing[tag] = replay
            self._use.engine.explain(tag, self._explainable(replay), replay.written, at)

    def _explainable(self, replay: Replay) -> Turn:
        return replace(replay.turn, begun=())

    def _show(self, replay: Replay, margin: str = "") -> None:
        for line in replay.lines(margin):
            self._use.view.say(Voice.NOTE, line)

    # one token

    def explain(self, key: int, index: int) -> None:
        """Ask what the target thought of a token."""
        inspector = self._use.inspector
        if self.busy:
            inspector.unexplained(key, index, "known once the answer has ended")
            return
        answered = self._answered(key)
        if answered is None or not 0 <= index < len(answered.ids):
            inspector.unexplained(key, index, _ELSEWHERE)
            return
        if foreign := self._foreign(answered.saved):
            inspector.unexplained(key, index, foreign)
            return
        talk = self._talking.conversation
        above, by = before(talk.path, key), self._talking.answerer
        turn = turn_of(talk.system, above, answered.saved, self._use.options(), by)
        tag = self._talking.next_number()
        self._explaining[tag] = (key, index)
        self._use.engine.explain(tag, replace(turn, begun=()), answered.ids, index)

    def explained(self, said: Explanation) -> None:
        """What the engine found, for the inspector or for a replay."""
        if replay := self._comparing.pop(said.tag, None):
            at = replay.difference
            assert at is not None
            margin = margin_of(said.explained, replay.ids[at]) if said.explained else said.error
            self._show(replay, margin)
        elif place := self._explaining.pop(said.tag, None):
            if said.explained is None:
                self._use.inspector.unexplained(*place, said.error)
            else:
                self._use.inspector.explained(*place, said.explained)

    def cancel(self) -> None:
        """Stop what runs, and hear how it ends."""
        self._use.engine.cancel()

    def leave(self) -> None:
        """Stop what runs, and hear no more of it."""
        if self.replaying is not None:
            self._use.engine.cancel()
            self.replaying = None
        self._comparing.clear()
        self._talking.leave()

    def _answered(self, key: int) -> Answered | None:
        path = self._talking.conversation.path
        saved: Saved | None = next((one for one in path if one.id == key), None)
        if saved is None or saved.role != ANSWERS:
            return None
        return Answered(saved, saved.ids, numbered_runs(saved))

    def _foreign(self, saved: Saved) -> str:
        """Why the tokens of an answer mean nothing to the model that is loaded; "" if they do."""
        now = self._talking.answerer
        if not now.name:
            return LOADING
        if saved.is_by(now.name, now.vocabulary):
            return ""
        given = clean(saved.model, one_line=True)
        if given == now.name:
            return "another model of this name gave this answer, with another vocabulary"
        return f"another model gave this answer: {given or 'unknown'}"

    def _free(self) -> bool:
        if self.busy:
            self._use.tell(STILL_ANSWERING)
        return not self.busy
