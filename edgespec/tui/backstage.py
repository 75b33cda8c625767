"""What happens behind the screen of the chat: one model, one open conversation, what is set."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, assert_never

from edgespec.errors import BadInput, EdgespecError
from edgespec.text.sanitize import clean
from edgespec.tui.attach import Attached, Room
from edgespec.tui.engine import (
    ChatSetup,
    Counted,
    Crashed,
    Ended,
    Engine,
    Explanation,
    Heard,
    LoadFailed,
    Progress,
    Ready,
    Said,
    Uncounted,
)
from edgespec.tui.paths import ANSWERS, ASKS, block_of, last, messages_of, used_before
from edgespec.tui.shelf import Shelf
from edgespec.tui.speculating import Speculating
from edgespec.tui.status import Situation
from edgespec.tui.steering import LOADING, STILL_ANSWERING, Controls, Steering
from edgespec.tui.talking import Answerer, Talking
from edgespec.tui.token_view import Marking
from edgespec.tui.transcript import Mark, Voice
from edgespec.tui.wishes import first_answer

if TYPE_CHECKING:
    from edgespec.history import Conversation, Saved
    from edgespec.options import AnswerOptions
    from edgespec.tui.composer import Composer
    from edgespec.tui.inspector import Inspector
    from edgespec.tui.token_view import TokenView

_ALTERNATIVES = 5
_REMEMBERED = 200  # messages of earlier sessions behind the arrow keys
_LEGEND = (
    ("marks: ", Mark.PLAIN),
    ("accepted guess", Mark.ACCEPTED),
    ("  ", Mark.PLAIN),
    ("correction", Mark.CORRECTION),
    ("  ", Mark.PLAIN),
    ("bonus", Mark.BONUS),
    ("  ", Mark.PLAIN),
    ("⟨rejected⟩", Mark.REJECTED),
    ("  plain", Mark.PLAIN),
)


class Stage(Protocol):
    """The screen, as far as it is needed here."""

    view: TokenView
    inspector: Inspector
    composer: Composer

    def notice(self, text: str) -> None:
        """Say something in passing."""

    def entitle(self, title: str) -> None:
        """What is talked with, and about."""

    def leave(self) -> None:
        """Close the chat."""


class Backstage:
    """Everything that the chat's keys and commands can do."""

    def __init__(self, setup: ChatSetup, stage: Stage) -> None:
        self._setup, self._stage, self._view = setup, stage, stage.view
        self.engine = Engine(setup)
        self.options, self.system = setup.options, setup.system
        self.crash: Exception | None = None
        self.ready = False
        self.editing: int | None = None
        self.shelf = Shelf(setup.history, self._opened)
        self.talking = Talking(self.engine, stage.view, stage.inspector, self.shelf.current)
        self.steering = Steering(
            self.talking,
            Controls(
                self.engine,
                stage.view,
                stage.inspector,
                self._options,
                stage.notice,
                self._count_conversation,
            ),
        )
        self.speculating = Speculating(self.engine, stage.notice, lambda: self.busy)
        self._loading, self._title = "loading", setup.title
        self._facts = Situation(pair="")
        self._counts = 0  # of what is open, of which only the latest is heard
        self._legend_shown = False
        self._unsaid: list[str] = []  # what the history tells amid a change that is shown after it

    @property
    def busy(self) -> bool:
        return self.steering.busy

    @property
    def situation(self) -> Situation:
        """What is going on, for the line and the panel of figures."""
        replay = self.steering.replaying
        phase = self.talking.phase if replay is None else replay.phase
        facts = replace(
            self._facts,
            phase=phase if self.ready else self._loading,
            context_used=self.talking.context_used,
        )
        return self.speculating.shown_in(facts)

    # begin and end

    def open_for_business(self) -> None:
        """Load the model, and bring the history into view.

        Raises: EdgespecError where the history cannot be read; a new conversation is open then.
        """
        self.engine.start()
        self._setup.history.listen(self._unsaid.append)
        self.shelf.current.set_system(self.system)
        self._name()
        self._stage.composer.remember(self._setup.history.inputs(_REMEMBERED))
        if self._setup.reopen and not self.shelf.reopen_latest():
            self.note("no conversation was kept yet; this is a new one")

    def close(self, patience_s: float) -> bool:
        """Keep what came of a running answer and end the engine; whether it ended in time."""
        self.talking.put_away()
        return self.engine.stop(patience_s)

    def note(self, *lines: str) -> None:
        for line in lines:
            self._view.say(Voice.NOTE, clean(line, one_line=True))

    def fail(self, error: EdgespecError | str) -> None:
        """Say in one line what did not work."""
        self._view.say(Voice.ERROR, clean(str(error), one_line=True))

    # what the engine says

    def frame(self) -> None:
        """Take in what was said since the last frame."""
        for said in self.engine.drain():
            self._hear(said)
        self.talking.save(time.monotonic())
        self.note(*self._unsaid)
        self._unsaid.clear()

    def _hear(self, said: Said) -> None:
        match said:
            case Progress(text):
                self.note(text)
            case Ready():
                if said.load == self.engine.latest_load:  # else another is loaded next
                    self._become_ready(said)
            case Heard(number, event, at_s):
                self.talking.hear(number, event, at_s)
                self.steering.hear(number, event, at_s)
            case Ended(number, context_used, error):
                if not self.talking.ended(number, context_used, error):
                    self._count_conversation()
                self.steering.ended(number, clean(error, one_line=True))
                self._stage.inspector.ask_again()
                self._show_room()
            case Explanation():
                self.steering.explained(said)
            case Counted(tag, tokens):
                self._counted(tag, tokens)
            case Uncounted(tag, most, error):
                self.fail(error)
                self._stage.composer.counted(tag, most)
            case LoadFailed(error, goes_back):
                self.fail(error)
                self.note(*["the model before it is loaded again"] * goes_back)
            case Crashed(error):
                self.crash = error
                self._stage.leave()
            case _:
                assert_never(said)

    def _become_ready(self, ready: Ready) -> None:
        info = ready.info
        pair = clean(info.pair, one_line=True)
        self.ready, self._title = True, pair
        self.talking.answerer = Answerer(pair, ready.plain_tokens_per_second, ready.vocabulary)
        self.speculating.now = ready.speculation
        self._stage.inspector.rounds.ends = ready.ends
        self._stage.inspector.ask_again()
        self._facts = Situation(
            pair=pair,
            context=info.context,
            exactness=clean(info.exactness, one_line=True),
            memory=clean(info.memory, one_line=True),
            inexact_with=info.inexact_with,
        )
        draft = f" with {info.draft}" if info.draft else ""
        memory = [info.memory] if info.memory else []
        facts = f"{info.target}{draft}, {info.backend} on {info.device}"
        self.note(facts, f"text: {info.exactness}", *memory, *info.notes)
        if not self._legend_shown:
            self._legend_shown = True
            self._view.begin(Voice.NOTE)
            for text, mark in _LEGEND:
                self._view.append(text, mark)
        self._stage.composer.count_again()
        self._count_conversation()
        self._name()

    def _counted(self, tag: str, tokens: int) -> None:
        if tag == self._count_tag:
            self.talking.count_used(tokens)
            self._show_room()
        else:
            self._stage.composer.counted(tag, tokens)

    def _count_conversation(self) -> None:
        """What is open was answered by another process or another model, or not at all."""
        self._counts += 1
        if self.ready and (path := self.shelf.current.path):
            read = messages_of(self.shelf.current.system, path)
            self.engine.count(self._count_tag, "\n".join(message.content for message in read))
        self._show_room()

    @property
    def _count_tag(self) -> str:
        return f"conversation {self._counts}"

    def _show_room(self) -> None:
        used = self.talking.context_used
        if self.editing is not None:
            used = used_before(self.shelf.current.path, self.editing)
        room = Room(self._facts.context, used) if self.ready else None
        self._stage.composer.set_room(room)

    def stop(self) -> None:
        """End what runs after its current round; how it ends is heard."""
        self.steering.cancel()
        self.talking.stopping()

    def when_ready(self, deed: Callable[[], None]) -> None:
        """Do what needs a model, if there is one."""
        if self.ready:
            deed()
        else:
            self._stage.notice(LOADING)

    # messages

    def send(self, text: str, attached: Sequence[Attached]) -> bool:
        """Say something, or say it differently; False where it has to wait."""
        if not self.ready:
            self._stage.notice(LOADING)
            return False
        if self.busy:
            self._stage.notice(STILL_ANSWERING)
            return False
        from edgespec.history import Attachment

        talk = self.shelf.current
        files = [Attachment(one.name, one.text, one.tokens) for one in attached]
        if self.editing is None:
            self._show_said(talk.say(text, files))
        else:
            self.talking.count_used(used_before(talk.path, self.editing))
            talk.edit(self.editing, text, files)
            self.editing = None
            self.talking.show()
        self.talking.start(first_answer(talk, self._options(), self.talking.answerer))
        self._show_room()
        self._name()
        return True

    def _show_said(self, saved: Saved) -> None:
        block = block_of(saved, self.shelf.current)
        self._view.begin(block.voice, block.key)
        for text, mark in block.runs:
            self._view.append(text, mark)
        self._view.end(saved.id)

    def edit(self, back: int) -> None:
        """Put an earlier message back into the prompt; what is sent then is a branch."""
        saved = last(self.shelf.current.path, ASKS, back)
        if saved is None:
            self._stage.notice("there is no message to edit")
            return
        self.editing = saved.id
        self._show_room()
        files = [Attached(one.name, one.text) for one in saved.attachments]
        self._stage.composer.put(clean(saved.content), files)
        self._stage.notice("editing makes a branch · Esc leaves it")
        self._name()

    def stop_editing(self) -> None:
        """Leave the message as it was; what was written before it is in the prompt again."""
        self.editing = None
        self._show_room()
        self._stage.composer.give_back()
        self._name()

    def text_to_copy(self, block: int | None) -> str:
        """The last answer, one that is being made included, or its code block of this number."""
        now = self.talking.now
        saved = last(self.shelf.current.path, ANSWERS)
        if saved is None:
            self._stage.notice("there is no answer to copy")
            return ""
        if block is None:
            return clean(saved.content) if now is None else now.content
        blocks = self._view.code_blocks(saved.id)
        if block > len(blocks):
            self._stage.notice(f"the answer has {len(blocks)} code blocks")
            return ""
        return blocks[block - 1]

    # conversations

    def new_chat(self) -> None:
        self.steering.leave()
        self.shelf.new(self.system)

    def open(self, id: int) -> None:
        """Nothing happens where it is open already. Raises: NotFound."""
        self.shelf.open(id)

    def _opened(self, conversation: Conversation) -> None:
        self.stop_editing()
        self.steering.leave()
        self.talking.open(conversation)
        self._count_conversation()
        self._name()

    def rename(self, id: int, title: str) -> str:
        """Raises: EdgespecError where that cannot be; as all that follow."""
        done = self.shelf.rename(id, title)
        self._name()
        return done

    def export(self, id: int, path: str) -> str:
        return self.shelf.export(id, path)

    def delete(self, id: int) -> str:
        """Delete a conversation for good; where it is open, a new one begins."""
        is_open = id == self.shelf.current.id
        if is_open:
            self.steering.leave()
        done = self.shelf.delete(id)
        if is_open:
            self.shelf.new(self.system)
        return done

    def _name(self) -> None:
        title = clean(self.shelf.current.title, one_line=True)
        words = [clean(self._title, one_line=True), title]
        if self.editing is not None:
            words.append("editing")
        self._stage.entitle(" · ".join(word for word in words if word))

    # what is set

    def set_system(self, text: str | None) -> None:
        """Another system prompt from the next answer on; None shows the one there is."""
        if text is not None:
            self.system = text
            self.shelf.current.set_system(text)
            self._count_conversation()
        system = self.shelf.current.system
        self.note(f"system prompt: {system}" if system else "no system prompt")

    def switch_model(self, name: str) -> None:
        """Raises: EdgespecError where there is no such model."""
        if self._setup.named is None:
            raise BadInput("no other model can be loaded here")
        load = self._setup.named(name)
        self.steering.leave()
        self.ready = False
        self.speculating.now = None
        self.talking.answerer = Answerer()
        self._loading = f"loading {clean(name, one_line=True)}"
        self.engine.load(load)

    def _options(self) -> AnswerOptions:
        inspects = self._view.marking is Marking.INSPECT
        return replace(self.options, alternatives=_ALTERNATIVES if inspects else 0)
