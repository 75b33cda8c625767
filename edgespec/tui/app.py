"""The chat on the screen: keys, panels, dialogs, and the line that says what is going on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult, SystemCommand
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.timer import Timer

from edgespec.errors import EdgespecError
from edgespec.tui.aside import Failed, aside
from edgespec.tui.backstage import Backstage
from edgespec.tui.commanding import in_palette, obey
from edgespec.tui.completion import Sources
from edgespec.tui.composer import Composer
from edgespec.tui.driver import chat_driver
from edgespec.tui.engine import ChatSetup
from edgespec.tui.figures_panel import FiguresPanel
from edgespec.tui.help_screen import HelpScreen
from edgespec.tui.inspector import Inspector
from edgespec.tui.keys import ACTIONS, BINDINGS
from edgespec.tui.leaving import leave_when_told_to
from edgespec.tui.listing import PaletteApp
from edgespec.tui.prompt_box import PromptBox
from edgespec.tui.selecting import take_selected
from edgespec.tui.status import status_parts
from edgespec.tui.status_bar import StatusBar
from edgespec.tui.theme import DARK, LIGHT, token_colours
from edgespec.tui.token_view import Marking, TokenView

__all__ = ["ChatApp", "ChatSetup", "run_chat"]

_FRAMES_PER_SECOND, _STATUS_EVERY_S = 30, 0.5  # figures that change faster cannot be read
_NOTICE_S, _PATIENCE_S = 2.5, 10.0
_HINT = "[@click=app.command_palette]Ctrl+P menu[/] · [@click=app.help]F1 help[/]"
_MARKINGS = (Marking.OFF, Marking.TINT, Marking.INSPECT)
_WIDE, _TALL = 100, 22  # cells; with fewer, panels lie below the conversation and cover it


def run_chat(setup: ChatSetup) -> None:
    """Open the chat and return when the user leaves it.

    Raises what loading the model raised, once the terminal is as it was.
    """
    app = ChatApp(setup)
    try:
        app.run()
    finally:
        app.backstage.close(_PATIENCE_S)
    if app.backstage.crash is not None:
        raise app.backstage.crash
    if app.return_code:
        raise SystemExit(app.return_code)


class ChatApp(PaletteApp):
    """The screen of the chat; `backstage` is all that happens behind it."""

    TITLE = "edgespec"
    BINDINGS: ClassVar[list[BindingType]] = [*BINDINGS]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (_TALL, "-tall")]  # noqa: RUF012
    CSS = """
    #room { height: 1fr; }
    #side { width: 48; height: 1fr; display: none; }
    #side.-open { display: block; }
    #side > * { display: none; width: 100%; }
    #side > .-open { display: block; }
    .-narrow #room { layout: vertical; }
    .-narrow #side { width: 100%; height: 1fr; }
    .-narrow.-short #side { height: 3fr; }
    """

    def __init__(self, setup: ChatSetup) -> None:
        super().__init__(driver_class=chat_driver())
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        wanted = os.environ.get("TEXTUAL_THEME", DARK.name).split(",")
        self.theme = next((name for name in wanted if name in self.available_themes), DARK.name)
        self.view = TokenView(id="view")
        self.inspector = Inspector(id="inspector")
        self.figures = FiguresPanel(id="figures")
        self.status = StatusBar(id="status")
        self.composer = Composer(
            Sources(lambda: self._models or (), lambda: self.backstage.options)
        )
        self.backstage = Backstage(setup, self)
        self._models: tuple[str, ...] | None = None
        self._quit_until_s = 0.0
        self._notice_timer: Timer | None = None

    @property
    def prompt(self) -> PromptBox:
        return self.composer.box

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return token_colours(self.current_theme)

    def compose(self) -> ComposeResult:
        with Horizontal(id="room"):
            yield self.view
            with Vertical(id="side"):
                yield self.figures
                yield self.inspector
        yield self.composer
        yield self.status

    def on_mount(self) -> None:
        leave_when_told_to(self.exit)
        self._forget_notice()
        self.prompt.focus()
        # not before the first paint: what is imported then would hold it up
        self.call_after_refresh(self.attempt, self.backstage.open_for_business)
        self.set_interval(1 / _FRAMES_PER_SECOND, self._frame)
        self.set_interval(_STATUS_EVERY_S, self._show_status)
        self._show_status()

    async def _look_for_models(self) -> None:
        """The names that /model can be completed with."""
        from edgespec.tui.models_screen import choices

        found = await aside(choices)
        if isinstance(found, Failed):
            self.backstage.fail(found.reason)
        else:
            self._models = tuple(one.name for one in found if not one.fault)

    def _frame(self) -> None:
        self.backstage.frame()
        self.composer.keep_still(self.backstage.busy)
        if self.backstage.ready and self._models is None:
            self._models = ()
            self._show_status()
            self.run_worker(self._look_for_models())
        self.view.update_rows(time.perf_counter())
        self.inspector.update_rows()

    def _show_status(self) -> None:
        talking, situation = self.backstage.talking, self.backstage.situation
        self.status.show(status_parts(talking.stats, talking.drafting, situation))
        self.figures.show(talking.stats, situation, talking.drafting)

    # what is said from backstage

    def notice(self, text: str) -> None:
        """Say something in passing, at the edge of the prompt box."""
        if self._notice_timer is not None:
            self._notice_timer.stop()
        self.prompt.border_subtitle = Content(text)
        self.prompt.add_class("-notice")
        self._notice_timer = self.set_timer(_NOTICE_S, self._forget_notice)

    def _forget_notice(self) -> None:
        self.prompt.border_subtitle = _HINT
        self.prompt.remove_class("-notice")

    def entitle(self, title: str) -> None:
        self.prompt.border_title = Content(title)

    def leave(self) -> None:
        self.exit()

    # which key does something where

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ACTIONS:
            if isinstance(self.screen, ModalScreen):
                return action == "interrupt"
            if action == "page":
                return not self.inspector.has_focus_within
            if action == "choose_token":
                return self._goes_from_token_to_token
        return super().check_action(action, parameters)

    @property
    def _goes_from_token_to_token(self) -> bool:
        inspects = self.view.marking is Marking.INSPECT
        return inspects and self.prompt.has_focus and not self.prompt.text

    # what the user writes

    def on_key(self, event: events.Key) -> None:
        """A letter that no panel wanted is the beginning of a message."""
        elsewhere = self.prompt.has_focus or isinstance(self.screen, ModalScreen)
        if elsewhere or event.key in self.screen.active_bindings:
            return  # Textual runs what a key is bound to only after this
        if event.character and event.is_printable:
            self.prompt.focus()
            self.prompt.insert(event.character)

    def on_paste(self, event: events.Paste) -> None:
        """What was pasted and no panel wanted is of a message, too."""
        if not isinstance(self.screen, ModalScreen):
            self.prompt.focus()
            self.prompt.post_message(events.Paste(event.text))

    def on_composer_submitted(self, message: Composer.Submitted) -> None:
        if self.backstage.send(message.text, message.attached):
            self.composer.sent(message)
        else:
            self.composer.put_back(message)

    def on_composer_asked(self, message: Composer.Asked) -> None:
        self.attempt(partial(obey, self, message.command))
        self._show_status()

    def on_composer_refused(self, message: Composer.Refused) -> None:
        self.backstage.fail(message.reason)

    def on_composer_count_wanted(self, message: Composer.CountWanted) -> None:
        self.backstage.engine.count(message.tag, message.text)

    def attempt(self, deed: Callable[[], object]) -> None:
        """Do something that may not work, and then say why."""
        try:
            deed()
        except EdgespecError as error:
            self.backstage.fail(error)

    # what the user points at

    def on_token_view_token_selected(self, message: TokenView.TokenSelected) -> None:
        runs = self.backstage.talking.runs_of(message.key)
        text = runs[message.index][0] if message.index < len(runs) else ""
        self.inspector.select(message.key, message.index, text)

    def on_inspector_token_chosen(self, message: Inspector.TokenChosen) -> None:
        self.view.select(message.key, message.index)

    def on_inspector_wanted(self, message: Inspector.Wanted) -> None:
        self.backstage.steering.explain(message.key, message.index)

    def on_inspector_resteer(self, message: Inspector.Resteer) -> None:
        resteer = self.backstage.steering.resteer
        self.attempt(partial(resteer, message.key, message.index, message.alternative))

    def action_choose_token(self, tokens: int, rows: int) -> None:
        self.view.move_selection(tokens, rows)

    # answers

    def action_cancel(self) -> None:
        if self.composer.completing:
            self.composer.close_completion()
        elif not self.prompt.has_focus:
            self.prompt.focus()
        elif self.backstage.busy:
            self.backstage.stop()
        elif self.backstage.editing is not None:
            self.backstage.stop_editing()
        elif self.view.marking is Marking.INSPECT:
            self._mark(Marking.TINT)

    def action_interrupt(self) -> None:
        if selected := take_selected(self.screen, self.prompt):
            self.copy_to_clipboard(selected)
            self.notice("copied")
        elif time.monotonic() < self._quit_until_s:
            self.exit()
        else:
            self._quit_until_s = time.monotonic() + _NOTICE_S
            if self.backstage.busy:
                self.backstage.stop()
            self.notice("press Ctrl+C again to quit")

    def action_regenerate(self) -> None:
        self._steer(self.backstage.steering.regenerate)

    def action_resume(self) -> None:
        self._steer(self.backstage.steering.resume)

    def action_replay(self) -> None:
        self._steer(self.backstage.steering.replay)

    def _steer(self, deed: Callable[[], None]) -> None:
        self.attempt(partial(self.backstage.when_ready, deed))

    def action_edit(self) -> None:
        self.backstage.edit(1)

    def action_branch(self, step: int) -> None:
        self.backstage.steering.branch(step)

    def action_copy_answer(self) -> None:
        self.copy(None)

    def copy(self, block: int | None) -> None:
        """The last answer to the clipboard, or the code block of this number, from 1."""
        if text := self.backstage.text_to_copy(block):
            self.copy_to_clipboard(text)
            self.notice("copied")

    # how answers are shown and guessed at

    def action_marking(self) -> None:
        at = _MARKINGS.index(self.view.marking)
        self._mark(_MARKINGS[(at + 1) % len(_MARKINGS)])

    def action_rounds(self) -> None:
        inspects = self.view.marking is Marking.INSPECT
        self._mark(Marking.TINT if inspects else Marking.INSPECT)

    def _mark(self, marking: Marking) -> None:
        """Inspecting tokens and seeing the rounds is one thing."""
        self.view.set_marking(marking)
        self._open(self.inspector, marking is Marking.INSPECT)
        self.notice(f"token marks: {marking.value}")
        if marking is Marking.INSPECT:
            self.inspector.focus_rows()
        elif not self.prompt.has_focus:
            self.prompt.focus()

    def action_figures(self) -> None:
        self._open(self.figures, not self.figures.has_class("-open"))

    def _open(self, panel: FiguresPanel | Inspector, is_open: bool) -> None:
        panel.set_class(is_open, "-open")
        side = self.query_one("#side")
        side.set_class(any(child.has_class("-open") for child in side.children), "-open")

    def action_rendered(self) -> None:
        self.view.set_rendered(not self.view.rendered)
        self.notice("answers as Markdown" if self.view.rendered else "answers as tokens")

    def action_fold(self) -> None:
        self.view.set_folded(not self.view.folded)
        self.notice("thoughts folded" if self.view.folded else "thoughts shown")

    def action_speculation(self) -> None:
        self.backstage.speculating.cycle()
        self._show_status()

    def action_show_mode(self) -> None:
        self.backstage.speculating.toggle_show_mode()
        self._show_status()

    def action_page(self, direction: int) -> None:
        if direction < 0:
            self.view.scroll_page_up(animate=False)
        else:
            self.view.scroll_page_down(animate=False)

    # conversations and models

    def action_new_chat(self) -> None:
        self.backstage.new_chat()
        self.notice("new chat")

    def action_conversations(self) -> None:
        self.find("")

    def find(self, text: str) -> None:
        """The list of conversations, or of those that hold a text."""
        from edgespec.tui.conversations_screen import ConversationsScreen

        def chosen(id: int | None) -> None:
            if id is not None:
                self.attempt(partial(self.backstage.open, id))

        self.push_screen(
            ConversationsScreen(self.backstage.shelf.history, self.backstage, text), chosen
        )

    def ask_to_delete(self) -> None:
        """Delete the conversation that is open, once the user has said yes."""
        from edgespec.tui.questions import Confirm

        def answered(yes: bool | None) -> None:
            if yes:
                self.attempt(partial(self.backstage.delete, self.backstage.shelf.current.id))

        self.push_screen(Confirm("Delete this conversation for good?"), answered)

    def action_models(self) -> None:
        from edgespec.tui.models_screen import ModelsScreen

        def chosen(name: str | None) -> None:
            if name is not None:
                self.attempt(partial(self.backstage.switch_model, name))

        self.push_screen(ModelsScreen(self.backstage.talking.answerer.name), chosen)

    # help

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        return in_palette(self)
