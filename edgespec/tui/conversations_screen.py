"""The conversations that were kept: find one, open it, rename, export or delete it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from edgespec.errors import EdgespecError
from edgespec.text.sanitize import clean
from edgespec.tui.file_names import file_name
from edgespec.tui.listing import Listing
from edgespec.tui.questions import AskText, Confirm

if TYPE_CHECKING:
    from edgespec.history import History, Summary

_MOST: Final = 200
_TITLE_CHARS: Final = 60
_HELP: Final = "Enter open · Ctrl+R rename · Ctrl+X export · Ctrl+D delete · Esc close"
_AGES_S: Final = 1e10  # no clock of ours was that wrong; such a row was written elsewhere
_STEPS: Final = ((60.0, 1.0, "s"), (3600.0, 60.0, "min"), (86_400.0, 3600.0, "h"))


class Keeper(Protocol):
    """What may be done with a conversation; each says in a line what was done.

    Raises: EdgespecError with the reason why not.
    """

    def rename(self, id: int, title: str) -> str: ...

    def export(self, id: int, path: str) -> str: ...

    def delete(self, id: int) -> str: ...


class ConversationsScreen(ModalScreen[int | None]):
    """Gives the number of the conversation to open, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+o", "leave", "Close", show=False, priority=True),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
        Binding("down", "move(1)", "Down", show=False, priority=True),
        Binding("pageup", "move(-10)", "Page up", show=False, priority=True),
        Binding("pagedown", "move(10)", "Page down", show=False, priority=True),
        Binding("ctrl+r", "rename", "Rename", show=False, priority=True),
        Binding("ctrl+x", "export", "Export", show=False, priority=True),
        Binding("ctrl+d", "delete", "Delete", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    ConversationsScreen {
        align: center middle;
        background: $background 70%;

        & > Vertical {
            width: 90%;
            max-width: 110;
            height: 90%;
            padding: 0 1;
            border: round $primary;
            border-title-color: $primary;
            border-subtitle-color: $quiet;
            background: $background;
        }
        & OptionList { height: 1fr; border: none; padding: 0; background: $background; }
        & #said { height: auto; color: $quiet; }
    }
    """

    def __init__(self, history: History, keeper: Keeper, query: str = "") -> None:
        super().__init__()
        self._history, self._keeper, self._query = history, keeper, query
        self._found: dict[str, Summary] = {}  # by the option that shows it

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "conversations"
            box.border_subtitle = _HELP
            yield Input(self._query, placeholder="Search titles and texts", compact=True)
            yield Listing(compact=True)
            yield Static(id="said", markup=False)

    def on_mount(self) -> None:
        self._list.can_focus = False  # the search box keeps the keys
        self._fill()

    @property
    def _list(self) -> OptionList:
        return self.query_one(OptionList)

    @property
    def _chosen(self) -> Summary | None:
        option = self._list.highlighted_option
        return None if option is None else self._found.get(str(option.id))

    def _fill(self) -> None:
        query, at = self.query_one(Input).value.strip(), self._list.highlighted or 0
        found: Sequence[Summary] = ()
        said = "nothing is found" if query else "no conversation was kept yet"
        try:
            search = self._history.search
            found = search(query, _MOST) if query else self._history.recent(_MOST)
        except EdgespecError as error:
            said = str(error)
        now = time.time()
        self._found = {str(summary.id): summary for summary in found}
        self._list.clear_options()
        self._list.add_options([Option(row(s, now), id) for id, s in self._found.items()])
        if found:
            self._list.highlighted = min(at, len(found) - 1)
        self._say("" if found else said)

    def _say(self, text: str) -> None:
        self.query_one("#said", Static).update(Content(clean(text, one_line=True)))

    def on_input_changed(self) -> None:
        self._list.highlighted = None
        self._fill()

    def on_input_submitted(self) -> None:
        if self._chosen is not None:
            self.dismiss(self._chosen.id)

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        # a click may have been on its way while the list was filled anew
        if chosen := self._found.get(str(message.option_id)):
            self.dismiss(chosen.id)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_move(self, rows: int) -> None:
        if self._found:
            at = (self._list.highlighted or 0) + rows
            self._list.highlighted = min(max(at, 0), len(self._found) - 1)

    def action_rename(self) -> None:
        chosen = self._chosen
        if chosen is None:
            return

        def renamed(title: str | None) -> None:
            if title:
                self._try(lambda: self._keeper.rename(chosen.id, title))

        self.app.push_screen(AskText("a new title", clean(chosen.title, one_line=True)), renamed)

    def action_export(self) -> None:
        chosen = self._chosen
        if chosen is None:
            return

        def named(path: str | None) -> None:
            if path:
                self._try(lambda: self._keeper.export(chosen.id, path))

        title = "the file to write; it ends in .md or .json"
        self.app.push_screen(AskText(title, file_name(chosen.title)), named)

    def action_delete(self) -> None:
        chosen = self._chosen
        if chosen is None:
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._try(lambda: self._keeper.delete(chosen.id))

        title = _short(chosen.title)
        count = f"{chosen.messages} message{'s' * (chosen.messages != 1)}"
        self.app.push_screen(Confirm(f"Delete “{title}”, {count}, for good?"), answered)

    def _try(self, change: Callable[[], str]) -> None:
        try:
            done = change()
        except EdgespecError as error:
            done = str(error)
        self._fill()
        self._say(done)


def row(summary: Summary, now: float) -> Content:
    """A conversation as one line, and where a search found something, what it found."""
    about = f"  {summary.messages} · {ago(now - summary.when)}"
    line = Content.assemble(_short(summary.title), (about, "$quiet"))
    snippet = clean(summary.snippet, one_line=True).strip()
    return Content("\n").join([line, Content.styled(f"  {snippet}", "$quiet")]) if snippet else line


def ago(seconds: float) -> str:
    """How long ago something was, in one unit."""
    for below, unit_s, unit in _STEPS:
        if seconds < below:
            return f"{max(seconds, 0.0) / unit_s:.0f} {unit} ago"
    if seconds < _AGES_S:
        days = int(seconds // 86_400)
        return "yesterday" if days == 1 else f"{days} days ago"
    return "long ago"


def _short(title: str) -> str:
    line = clean(title, one_line=True).strip() or "(no title)"
    return line if len(line) <= _TITLE_CHARS else line[: _TITLE_CHARS - 1].rstrip() + "…"
