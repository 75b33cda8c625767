"""Commands: offered in the palette, and carried out by the part of the chat they are about."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, assert_never

from textual.app import SystemCommand

from edgespec.tui import commands as say
from edgespec.tui.keys import USES
from edgespec.tui.settable import SETTINGS, in_words

if TYPE_CHECKING:
    from edgespec.tui.app import ChatApp

_KEPT = "holds until you leave; to keep it, set {name} in the file `edgespec config path` names"

_Setting = (
    say.SetSystem
    | say.ShowSetting
    | say.ChangeSetting
    | say.ShowSpeculation
    | say.ChangeSpeculation
    | say.ShowMode
    | say.SwitchModel
)
_Answer = say.Copy | say.Edit | say.Regenerate | say.Continue | say.Branch | say.Replay


def obey(app: ChatApp, command: say.Command) -> None:
    """Carry a command out. Raises: EdgespecError with what the user should know."""
    if isinstance(command, _Setting):
        _set(app, command)
    elif isinstance(command, _Answer):
        _answer(app, command)
    else:
        _keep(app, command)


def in_palette(app: ChatApp) -> Iterator[SystemCommand]:
    """All that the palette offers: what keys do, and commands to be gone on with."""
    for key, use in USES:
        if use.title:
            deed = partial(app.call_later, app.run_action, use.action)
            yield SystemCommand(use.title, f"{key.label}: {key.meaning}", deed)
    for command in say.COMMANDS:
        name = f"/{command.name}"
        begin = partial(app.prompt.put, f"{name} ")
        yield SystemCommand(f"{name} {command.usage}".rstrip(), command.help, begin)
    yield SystemCommand("Theme", "other colours", app.action_change_theme)
    yield SystemCommand("Quit", "leave", app.action_quit)


def _set(app: ChatApp, command: _Setting) -> None:
    back = app.backstage
    match command:
        case say.SetSystem(text):
            back.set_system(text)
        case say.ShowSetting(name):
            names = SETTINGS if name is None else (name,)
            back.note(*(in_words(back.options, one) for one in names))
        case say.ChangeSetting(name, value):
            back.options = command.applied(back.options)
            kept = [] if value is None else [_KEPT.format(name=name)]
            back.note(in_words(back.options, name), *kept)
        case say.ShowSpeculation():
            back.note(back.speculating.in_words())
        case say.ChangeSpeculation():
            back.speculating.change(command)
        case say.ShowMode():
            app.action_show_mode()
        case say.SwitchModel(name):
            app.action_models() if name is None else back.switch_model(name)
        case _:
            assert_never(command)


def _answer(app: ChatApp, command: _Answer) -> None:
    match command:
        case say.Copy(block):
            app.copy(block)
        case say.Edit(back):
            app.backstage.edit(back)
        case say.Regenerate():
            app.action_regenerate()
        case say.Continue():
            app.action_resume()
        case say.Branch("next"):
            app.action_branch(1)
        case say.Branch("previous"):
            app.action_branch(-1)
        case say.Branch(int() as number):
            app.backstage.steering.branch_to(number)
        case say.Replay():
            app.action_replay()


def _keep(
    app: ChatApp,
    command: say.NewChat
    | say.Export
    | say.Search
    | say.Rename
    | say.Delete
    | say.Attach
    | say.Detach
    | say.Help
    | say.Quit,
) -> None:
    back = app.backstage
    match command:
        case say.NewChat():
            app.action_new_chat()
        case say.Export(path):
            back.note(back.export(back.shelf.current.id, path))
        case say.Search(text):
            app.find(text)
        case say.Rename(title):
            app.notice(back.rename(back.shelf.current.id, title))
        case say.Delete():
            app.ask_to_delete()
        case say.Attach() | say.Detach():
            pass  # the composer has done it
        case say.Help():
            app.action_help()
        case say.Quit():
            app.exit()
        case _:
            assert_never(command)
