"""The models on this machine: choose the one that answers from now on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from edgespec.models.shown import shown
from edgespec.tui.aside import Failed, aside
from edgespec.tui.listing import Listing

if TYPE_CHECKING:
    from edgespec.models.installed import InstalledPair


@dataclass(frozen=True, slots=True)
class Choice:
    """A model that can be loaded, or why it cannot. name: as it can be typed."""

    name: str
    about: str
    fault: str = ""


def choices() -> tuple[Choice, ...]:
    """The demo, what was pulled, and what other programs have put on this disk.

    Reads folders and the headers of files: not for the thread that paints.
    """
    from edgespec.models.here import models_here
    from edgespec.models.pairs import DEMO
    from edgespec.models.sizes import size_text

    here = models_here()
    demo = [Choice(DEMO, "small, comes with a package")] if here.demo else []
    elsewhere = [
        Choice(model.name, f"{size_text(model.size)}, {model.place}", model.fault)
        for model in here.found
    ]
    return (*demo, *map(_pulled, here.pairs), *elsewhere)


def _pulled(pair: InstalledPair) -> Choice:
    from edgespec.models.sizes import size_text

    size = size_text(pair.size)
    if pair.target.missing:
        return Choice(pair.name, size, pair.fault)
    with_draft = ", with a draft model" if pair.draft else ""
    return Choice(pair.name, f"{size}, {pair.fault}" if pair.fault else f"{size}{with_draft}")


class ModelsScreen(ModalScreen[str | None]):
    """Gives the name of the model to load, or None. current: the one that is loaded, which stays as
    it is where it is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+l,q", "leave", "Close", show=False),
    ]
    DEFAULT_CSS = """
    ModelsScreen {
        align: center middle;
        background: $background 70%;

        & > Vertical {
            width: 90%;
            max-width: 100;
            height: auto;
            max-height: 90%;
            padding: 0 1;
            border: round $primary;
            border-title-color: $primary;
            border-subtitle-color: $quiet;
            background: $background;
        }
        & OptionList { height: auto; border: none; padding: 0; background: $background; }
        & #said { height: auto; color: $quiet; }
    }
    """

    def __init__(self, current: str) -> None:
        super().__init__()
        self._current = current
        self._choices: Sequence[Choice] = ()

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "models"
            box.border_subtitle = "Enter loads · Esc closes"
            yield Listing(compact=True)
            yield Static("looking what is here", id="said", markup=False)

    async def on_mount(self) -> None:
        self.run_worker(self._fill())

    async def _fill(self) -> None:
        found = await aside(choices)
        if isinstance(found, Failed):
            self._say(found.reason)
            return
        self._choices = found
        options = self.query_one(OptionList)
        options.add_options(
            [
                Option(row(choice, self._current), disabled=bool(choice.fault))
                for choice in self._choices
            ]
        )
        names = [choice.name for choice in self._choices]
        if self._current in names:
            options.highlighted = names.index(self._current)
        here = "'edgespec pairs' lists what can be fetched"
        nothing = "no model is here; "
        self._say(here if names else nothing + here)

    def _say(self, text: str) -> None:
        self.query_one("#said", Static).update(Content(text))

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        name = self._choices[message.option_index].name
        self.dismiss(None if name == self._current else name)

    def action_leave(self) -> None:
        self.dismiss(None)


def row(choice: Choice, current: str) -> Content:
    """A model as one line."""
    name = shown(choice.name, 80)
    here = "  answers now" if choice.name == current else ""
    if choice.fault:
        return Content.assemble(name, (f"  unusable: {shown(choice.fault)}", "$quiet"))
    return Content.assemble(name, (f"  {choice.about}{here}", "$quiet"))
