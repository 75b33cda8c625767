"""Every key of the chat, in one table: bindings, help and palette are made from it."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Use:
    """key: as Textual names it. title: what the palette lists; empty where only a key makes
    sense."""

    key: str
    action: str
    title: str = ""

    @property
    def name(self) -> str:
        """Of the action, without what is passed to it."""
        return self.action.partition("(")[0]


@dataclass(frozen=True, slots=True)
class Key:
    """A row of the help. uses: none where a widget listens by itself."""

    label: str
    meaning: str
    uses: tuple[Use, ...] = ()


def _one(label: str, meaning: str, key: str, action: str, title: str = "") -> Key:
    return Key(label, meaning, (Use(key, action, title),))


KEYS = (
    Key("Enter", "send"),
    Key("Ctrl+J", "new line"),
    Key("↑ ↓", "earlier inputs, at first and last line"),
    Key("/", "commands; Tab completes them"),
    _one("Esc", "stop the answer; close what is open", "escape", "cancel"),
    _one("Ctrl+C", "copy a selection; else stop; twice: quit", "ctrl+c", "interrupt"),
    _one("Ctrl+R", "answer again, as a new branch", "ctrl+r", "regenerate", "Answer again"),
    _one("Ctrl+G", "go on with an answer that was cut off", "ctrl+g", "resume", "Go on"),
    _one("Ctrl+E", "edit your last message", "ctrl+e", "edit", "Edit the last message"),
    Key(
        "Alt+← Alt+→",
        "from branch to branch",
        (
            Use("alt+left", "branch(-1)", "Branch before"),
            Use("alt+right", "branch(1)", "Branch behind"),
        ),
    ),
    _one("Ctrl+Y", "copy the answer", "ctrl+y", "copy_answer", "Copy the answer"),
    _one("Ctrl+N", "new chat", "ctrl+n", "new_chat", "New chat"),
    _one("Ctrl+O", "conversations", "ctrl+o", "conversations", "Conversations"),
    _one("Ctrl+L", "models", "ctrl+l", "models", "Models"),
    _one("Ctrl+T", "token marks: tint, inspect, off", "ctrl+t", "marking", "Token marks"),
    Key(
        "← → ↑ ↓",
        "from token to token, while inspecting with no text written",
        (
            Use("left", "choose_token(-1, 0)"),
            Use("right", "choose_token(1, 0)"),
            Use("up", "choose_token(0, -1)"),
            Use("down", "choose_token(0, 1)"),
        ),
    ),
    _one("F2", "figures", "f2", "figures", "Figures"),
    _one("F3", "rounds, and a token's alternatives", "f3", "rounds", "Rounds"),
    _one(
        "F4",
        "speculation: auto, off, n-gram, draft, tree, recycling",
        "f4",
        "speculation",
        "Speculation",
    ),
    _one("Ctrl+S", "show mode: draft even if it costs", "ctrl+s", "show_mode", "Show mode"),
    _one("F5", "replay without speculation", "f5", "replay", "Replay without speculation"),
    _one("F6", "answers as Markdown or as tokens", "f6", "rendered", "Markdown or tokens"),
    _one("F7", "fold the model's thoughts", "f7", "fold", "Fold thoughts"),
    Key("PgUp PgDn", "scroll", (Use("pageup", "page(-1)"), Use("pagedown", "page(1)"))),
    Key("Ctrl+P", "all of this, and colours"),
    _one("F1", "this help", "f1", "help", "Help"),
    Key("Ctrl+Q", "quit"),
)
USES = tuple((key, use) for key in KEYS for use in key.uses)
ACTIONS = frozenset(use.name for _, use in USES)
# before the prompt box, which has uses of its own for some of them
BINDINGS = tuple(
    Binding(use.key, use.action, key.meaning, show=False, priority=True) for key, use in USES
)
HELP = tuple((key.label, key.meaning) for key in KEYS)
