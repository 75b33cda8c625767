"""The chat: keys, and what the engine says brought to the screen thirty times a second."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import replace
from typing import ClassVar, assert_never

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.timer import Timer

from edgespec.decoding.events import Event, Finished, PromptRead, Round, Stop
from edgespec.decoding.stats import Stats
from edgespec.text.sanitize import clean
from edgespec.tui.engine import ChatSetup, Crashed, Ended, Engine, Heard, Progress, Ready, Said
from edgespec.tui.ghosts import rejected
from edgespec.tui.help_screen import HelpScreen
from edgespec.tui.prompt_box import PromptBox
from edgespec.tui.status import Drafting, Situation, status_parts
from edgespec.tui.status_bar import StatusBar
from edgespec.tui.theme import DARK, LIGHT, token_colours
from edgespec.tui.token_view import Marking, TokenView
from edgespec.tui.transcript import Mark, Voice

__all__ = ["ChatApp", "ChatSetup", "run_chat"]

_FRAMES_PER_SECOND = 30
_STATUS_EVERY_S = 0.2  # figures that change faster cannot be read
_NOTICE_S = 2.5
_PATIENCE_S = 10.0
_HINT = "F1 help"

_ENDINGS = {
    Stop.CANCELLED: "stopped",
    Stop.LENGTH: "ended at the token limit",
    Stop.CONTEXT: "the context is full; Ctrl+N starts a new chat",
}
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


def run_chat(setup: ChatSetup) -> None:
    """Open the chat and return when the user leaves it.

    Raises what loading the model raised, once the terminal is as it was.
    """
    app = ChatApp(setup)
    try:
        app.run()
    finally:
        app.engine.stop(_PATIENCE_S)
    if app.crash is not None:
        raise app.crash
    if app.return_code:
        raise SystemExit(app.return_code)


class ChatApp(App[None]):
    """One conversation with one model."""

    TITLE = "edgespec"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Stop the answer", priority=True, show=False),
        Binding("ctrl+c", "interrupt", "Copy, stop, quit", priority=True, show=False),
        Binding("ctrl+t", "marking", "Token marks", priority=True, show=False),
        Binding("ctrl+s", "show_mode", "Show mode", priority=True, show=False),
        Binding("ctrl+n", "new_chat", "New chat", priority=True, show=False),
        Binding("pageup", "page(-1)", "Scroll up", priority=True, show=False),
        Binding("pagedown", "page(1)", "Scroll down", priority=True, show=False),
        Binding("f1", "help", "Help", show=False),
    ]

    def __init__(self, setup: ChatSetup) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        wanted = os.environ.get("TEXTUAL_THEME", DARK.name).split(",")
        self.theme = next((name for name in wanted if name in self.available_themes), DARK.name)
        self.engine = Engine(setup)
        self.crash: Exception | None = None
        self.view = TokenView(id="view")
        self.status = StatusBar(id="status")
        self.prompt = PromptBox(id="prompt")
        self.ready = False
        self.busy = False
        self._title = Content(clean(setup.title, one_line=True))
        self._answer = 0
        self._answer_open = False
        self._stats: Stats | None = None
        self._drafting = Drafting()
        self._situation = Situation(phase="loading")
        self._plain_tokens_per_second: float | None = None
        self._faults: list[str] = []
        self._faults_told: set[str] = set()
        self._quit_until_s = 0.0
        self._notice_timer: Timer | None = None

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return token_colours(self.current_theme)

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.prompt
        yield self.status

    def on_mount(self) -> None:
        self._leave_when_told_to()
        self.prompt.border_title = self._title
        self.prompt.border_subtitle = _HINT
        self.prompt.focus()
        self.engine.start()
        self.set_interval(1 / _FRAMES_PER_SECOND, self._frame)
        self.set_interval(_STATUS_EVERY_S, self._show_status)
        self._show_status()

    def _leave_when_told_to(self) -> None:
        """A signal that ends the process must leave the terminal as it was."""
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None:
                with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                    loop.add_signal_handler(number, self.exit, None, 128 + number)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in {"cancel", "page", "help", "new_chat"}:
            return not isinstance(self.screen, ModalScreen)
        return super().check_action(action, parameters)

    # what the engine says

    def _frame(self) -> None:
        for said in self.engine.drain():
            self._hear(said)
        self.view.update_rows(time.perf_counter())

    def _hear(self, said: Said) -> None:
        match said:
            case Progress(text):
                self.view.say(Voice.NOTE, clean(text, one_line=True))
            case Ready():
                self._become_ready(said)
            case Heard(answer, event, at_s):
                if answer == self._answer:
                    self._follow(event, at_s)
            case Ended(answer, context_used, error):
                if answer == self._answer:
                    self._end(context_used, clean(error, one_line=True))
            case Crashed(error):
                self.crash = error
                self.exit()
            case _:
                assert_never(said)

    def _become_ready(self, ready: Ready) -> None:
        info = ready.info
        self.ready = True
        self._plain_tokens_per_second = ready.plain_tokens_per_second
        self._situation = Situation(
            pair=clean(info.pair, one_line=True),
            proposer=ready.proposer,
            show_mode=ready.always_draft,
            context=info.context,
        )
        draft = f" with {info.draft}" if info.draft else ""
        facts = f"{info.target}{draft}, {info.backend} on {info.device}"
        memory = [info.memory] if info.memory else []
        for note in (facts, f"text: {info.exactness}", *memory, *info.notes):
            self.view.say(Voice.NOTE, clean(note, one_line=True))
        self.view.begin(Voice.NOTE)
        for text, mark in _LEGEND:
            self.view.append(text, mark)
        self._show_status()

    def _follow(self, event: Event, at_s: float) -> None:
        if self._stats is not None:
            self._stats = self._stats.after(event, at_s)
        match event:
            case PromptRead(read, total):
                share = f" {read / total:.0%}" if total else ""
                self._set_phase(f"reading the prompt{share}")
            case Round():
                self._show_round(event)
            case Finished(why, text):
                self._say_token(text, Mark.PLAIN)
                if ending := _ENDINGS.get(why):
                    self.view.say(Voice.NOTE, ending)
            case _:
                assert_never(event)

    def _show_round(self, event: Round) -> None:
        for token in event.tokens:
            self._say_token(token.text, Mark(token.kind.value))
        if ghost := rejected(event):
            self.view.haunt(ghost, time.perf_counter())
        self._drafting = self._drafting.after(event)
        if self._situation.phase.startswith("reading"):
            self._set_phase("")
        if event.note and event.note not in self._faults_told:
            self._faults_told.add(event.note)
            self._faults.append(event.note)

    def _say_token(self, text: str, mark: Mark) -> None:
        if not text:
            return
        if not self._answer_open:
            self._answer_open = True
            self.view.begin(Voice.ANSWER)
        self.view.append(text, mark)

    def _end(self, context_used: int, error: str) -> None:
        self.busy = False
        self._situation = replace(self._situation, phase="", context_used=context_used)
        if error:
            self.view.say(Voice.ERROR, error)
        for fault in self._faults:
            self.view.say(Voice.NOTE, clean(fault, one_line=True))
        self._faults.clear()
        self._show_status()

    # what the user does

    def on_prompt_box_submitted(self, message: PromptBox.Submitted) -> None:
        if not self.ready:
            self._notice("the model is still loading")
            return
        if self.busy:
            self._notice("still answering · Esc stops it")
            return
        text = clean(message.text).strip()
        self.prompt.sent()
        self._answer += 1
        self._answer_open = False
        self.busy = True
        self._stats = Stats(
            time.perf_counter(), calibrated_plain_speed=self._plain_tokens_per_second
        )
        self._drafting = Drafting()
        self.view.following = True
        self.view.say(Voice.USER, text)
        self._set_phase("reading the prompt")
        self.engine.ask(self._answer, text)

    def action_cancel(self) -> None:
        if self.busy:
            self.engine.cancel()
            self._set_phase("stopping")

    def action_interrupt(self) -> None:
        selected = self.prompt.selected_text or self.screen.get_selected_text()
        if selected:
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
            self.prompt.move_cursor(self.prompt.cursor_location)
            self._notice("copied")
        elif time.monotonic() < self._quit_until_s:
            self.exit()
        else:
            self._quit_until_s = time.monotonic() + _NOTICE_S
            self.action_cancel()
            self._notice("press Ctrl+C again to quit")

    def action_marking(self) -> None:
        off = self.view.marking is Marking.OFF
        self.view.set_marking(Marking.TINT if off else Marking.OFF)
        self._notice(f"token marks {'on' if off else 'off'}")

    def action_show_mode(self) -> None:
        if not self.ready:
            self._notice("the model is still loading")
            return
        on = not self._situation.show_mode
        self._situation = replace(self._situation, show_mode=on)
        self.engine.set_show_mode(on)
        mode = "on: drafting even where it does not pay" if on else "off"
        self._notice(f"show mode {mode}{', from the next answer' * self.busy}")
        self._show_status()

    def action_new_chat(self) -> None:
        self.engine.new_chat()
        self._answer += 1  # what the old answer still says is no longer heard
        self.busy = False
        self._stats = None
        self._drafting = Drafting()
        self._situation = replace(
            self._situation, phase=self._situation.phase if not self.ready else "", context_used=0
        )
        self.view.clear()
        self._notice("new chat")
        self._show_status()

    def action_page(self, direction: int) -> None:
        if direction < 0:
            self.view.scroll_page_up(animate=False)
        else:
            self.view.scroll_page_down(animate=False)

    async def action_help(self) -> None:
        await self.push_screen(HelpScreen())

    # what stands below the conversation

    def _set_phase(self, phase: str) -> None:
        self._situation = replace(self._situation, phase=phase)
        self._show_status()

    def _show_status(self) -> None:
        stats, situation = self._stats, self._situation
        if self.busy and stats is not None and stats.prompt_tokens:
            used = stats.prompt_tokens + stats.completion_tokens
            situation = replace(situation, context_used=used)
        self.status.show(status_parts(stats, self._drafting, situation))

    def _notice(self, text: str) -> None:
        """Say something in passing, at the edge of the prompt box."""
        if self._notice_timer is not None:
            self._notice_timer.stop()
        self.prompt.border_subtitle = Content(text)
        self.prompt.add_class("-notice")
        self._notice_timer = self.set_timer(_NOTICE_S, self._forget_notice)

    def _forget_notice(self) -> None:
        self.prompt.border_subtitle = _HINT
        self.prompt.remove_class("-notice")
