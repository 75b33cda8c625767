"""All that is about the next message: the prompt, its commands, and what is attached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import TextArea

from edgespec.text.documents import MAX_BYTES
from edgespec.text.sanitize import clean
from edgespec.tui.aside import Failed, aside
from edgespec.tui.attach import Attached, Attachments, Room, read_attachment, refusal
from edgespec.tui.chips import Chips
from edgespec.tui.command_line import as_message, parse
from edgespec.tui.commands import Attach, Command, Detach, Say, Unknown, Wrong
from edgespec.tui.completion import Offers, Sources, offers, takes_while
from edgespec.tui.completion_list import CompletionList
from edgespec.tui.prompt_box import LONG_PASTE, PromptBox

_LOOKING = "looking into folders"
_READING = "reading attachments"


@dataclass(frozen=True, slots=True)
class _Draft:
    """What was written and not sent, while an earlier message is edited in its place."""

    text: str
    attached: tuple[Attached, ...]


class Composer(Vertical):
    """Says what the user wants; the app does it, and says whether a message was taken."""

    DEFAULT_CSS = """
    Composer { height: auto; }
    """

    @dataclass
    class Submitted(Message):
        """A message for the model: tell sent(), or put_back() where it has to wait.

        text: fit to be shown, not blank. written: as it stood in the prompt.
        """

        text: str
        attached: tuple[Attached, ...]
        written: str

    @dataclass
    class Asked(Message):
        """A command for the app; those about attachments are done already."""

        command: Command

    @dataclass
    class Refused(Message):
        """What was written cannot be done. reason: one line, fit to be shown."""

        reason: str

    @dataclass
    class CountWanted(Message):
        """Somebody has to count tokens, and to tell counted()."""

        tag: str
        text: str

    def __init__(self, sources: Sources | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sources = sources or Sources()
        self._attachments = Attachments()
        self._draft: _Draft | None = None
        self._room: Room | None = None
        self._pastes, self._reads, self._still = 0, 0, False
        self._list = CompletionList(id="completion")
        self._chips = Chips(id="chips")
        self.box = PromptBox(self._list, holds=LONG_PASTE, id="prompt")

    def compose(self) -> ComposeResult:
        yield self._list
        yield self._chips
        yield self.box

    @property
    def attached(self) -> tuple[Attached, ...]:
        return self._attachments.all

    @property
    def completing(self) -> bool:
        """Whether Esc closes the list of completions first."""
        return self._list.is_open

    def close_completion(self) -> None:
        self._list.close()

    def keep_still(self, still: bool) -> None:
        """Whether the cursor stops blinking: each blink takes time from a model at work."""
        if still != self._still:
            self._still, self.box.cursor_blink = still, not still

    def sent(self, message: Submitted) -> None:
        """A message was taken; a draft that waited stands before what was typed since."""
        self.box.inputs.add(message.written)
        draft, self._draft = self._draft, None
        if draft is not None:
            self.box.put_back(draft.text)
            self.attach(*draft.attached, *self._attachments.take())

    def put_back(self, message: Submitted) -> None:
        """A message was not taken: it stands before what was written since."""
        self.box.put_back(message.written)
        self.attach(*message.attached, *self._attachments.take())

    def put(self, text: str, attached: Sequence[Attached] = ()) -> None:
        """Write an earlier message into the prompt, to be edited; the draft there waits."""
        written = _Draft(self.box.text, self._attachments.take())
        self._draft = self._draft or written
        self.attach(*attached)
        self.box.put(as_message(text))

    def give_back(self) -> None:
        """Editing was left: what was edited is gone, and the draft is as it was."""
        draft, self._draft = self._draft, None
        if draft is not None:
            self._attachments.take()
            self.attach(*draft.attached)
            self.box.put(draft.text)

    def remember(self, messages: Iterable[str]) -> None:
        """Messages of earlier sessions, oldest first, for the arrow keys."""
        cleaned = (clean(message) for message in messages)
        self.box.inputs.begin_with(as_message(message) for message in cleaned if message.strip())

    def attach(self, *files: Attached) -> None:
        for one in files:
            tag = self._attachments.add(one)
            if one.tokens is None:
                self._ask_for_counts(tag)
        self._show_chips()

    def counted(self, tag: str, tokens: int) -> None:
        """The answer to CountWanted."""
        if self._attachments.counted(tag, tokens):
            self._show_chips()

    def set_room(self, room: Room | None) -> None:
        """What of the context is free; None = not known, as before a model is loaded."""
        if room != self._room:
            self._room = room
            self._show_chips()

    def count_again(self) -> None:
        """Another model counts otherwise."""
        self._attachments.forget_counts()
        if self._draft is not None:
            attached = tuple(one.without_count for one in self._draft.attached)
            self._draft = replace(self._draft, attached=attached)
        self._show_chips()
        self._ask_for_counts()

    # what the prompt says

    def on_prompt_box_submitted(self, message: PromptBox.Submitted) -> None:
        message.stop()
        match parse(message.text):
            case Say(text):
                self._submit(clean(text).strip(), message.text)
            case Attach(path):
                self._reads += 1
                self.run_worker(self._read(path, message.text), group=_READING)
            case Detach():
                self._take_back()
                self.box.inputs.add(message.text)
            case Unknown() | Wrong() as refused:
                self._refuse(refused.reason, message.text)
            case command:
                self.box.inputs.add(message.text)
                self.post_message(self.Asked(command))

    def on_prompt_box_taken_back(self, message: PromptBox.TakenBack) -> None:
        message.stop()
        self._take_back()

    def on_prompt_box_pasted_long(self, message: PromptBox.PastedLong) -> None:
        message.stop()
        if len(message.text.encode()) > MAX_BYTES:
            self._refuse(f"the paste holds more than {MAX_BYTES // 1024**2} MiB; give a part of it")
            return
        self._pastes += 1
        self.attach(Attached(f"pasted text {self._pastes}", message.text))

    def on_text_area_changed(self, message: TextArea.Changed) -> None:
        message.stop()
        text = self.box.text
        self.workers.cancel_group(self, _LOOKING)
        if takes_while(text):
            self.run_worker(self._look(text), group=_LOOKING)
        else:
            self._offer(text, offers(text, self._sources))

    def on_completion_list_taken(self, message: CompletionList.Taken) -> None:
        message.stop()
        self.box.take(message.offer, send=False)
        self.box.focus()

    def on_chips_removed(self, message: Chips.Removed) -> None:
        message.stop()
        self._attachments.remove(message.index)
        self._show_chips()
        self.box.focus()

    def _submit(self, text: str, written: str) -> None:
        reason = refusal(self.attached, self._room) if self._room and self.attached else ""
        if self._reads:
            reason = "a file is still being read; /file - leaves it out"
        if reason:
            self._refuse(reason, written)
        elif text:
            self.post_message(self.Submitted(text, self._attachments.take(), written))
            self._show_chips()

    def _refuse(self, reason: str, written: str = "") -> None:
        """written: what was submitted and cannot be done, which stands in the prompt again."""
        self.box.put_back(written)
        self.post_message(self.Refused(reason))

    def _take_back(self) -> None:
        """What is still being read, for a disk may never answer, else what was attached last."""
        if self._reads:
            self.workers.cancel_group(self, _READING)
            self._reads = 0
        else:
            self._attachments.remove_last()
            self._show_chips()

    async def _read(self, path: str, written: str) -> None:
        one = await aside(partial(read_attachment, path))
        self._reads -= 1
        if isinstance(one, Failed):
            self._refuse(one.reason, written)
        else:
            self.box.inputs.add(written)
            self.attach(one)

    async def _look(self, text: str) -> None:
        found = await aside(partial(offers, text, self._sources))
        if isinstance(found, Failed):
            self._refuse(found.reason)
        elif self.box.text == text:
            self._offer(text, found)

    def _offer(self, text: str, found: Offers) -> None:
        above = self.region.y - self._list.styles.gutter.height
        self._list.offer(text, found, above)

    def _ask_for_counts(self, only: str | None = None) -> None:
        for tag, text in self._attachments.uncounted():
            if only in (None, tag):
                self.post_message(self.CountWanted(tag, text))

    def _show_chips(self) -> None:
        known = all(one.tokens is not None for one in self.attached)
        too_much = self._room is not None and known and bool(refusal(self.attached, self._room))
        self._chips.show(self.attached, too_much=too_much)
