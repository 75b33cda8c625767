"""What the tests of the panels beside the conversation share: rounds in order, and a bare app."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from fake_model import guessed, plain
from textual.app import App, ComposeResult
from textual.message import Message
from textual.theme import Theme
from textual.widget import Widget

from edgespec.decoding.events import Alternative, Round
from edgespec.tui.inspector import Inspector
from edgespec.tui.theme import DARK, LIGHT, token_colours

Said = TypeVar("Said", bound=Message)


def in_order(*events: Round, start: int = 0) -> Iterator[Round]:
    """The rounds of one answer, each where the one before it ended."""
    for event in events:
        yield replace(event, index=start)
        start += len(event.tokens)


ANSWER = tuple(
    in_order(
        plain("Sorting", plan="auto → plain: the text rarely repeats"),  # 0
        guessed(" means", " giving", " things", " items", accepted=2),  # 1 2 3
        guessed(" a", " fixed", " order", ".", accepted=3),  # 4 5 6 7
        guessed("\n\n", "First", "Take", accepted=1),  # 8 9
    )
)


def alternatives(*choices: tuple[int, str, float]) -> tuple[Alternative, ...]:
    """Tokens with their texts and probabilities."""
    return tuple(Alternative(token, math.log(p), text) for token, text, p in choices)


@dataclass(frozen=True)
class Explained:
    """What the engine says of a token, with as little as the inspector needs."""

    token: int
    logprob: float | None
    alternatives: tuple[Alternative, ...]


# the token 99 stands at place 3; the guess turned down there was token 2
AT_3 = Explained(
    99,
    math.log(0.5),
    alternatives(
        (99, " items", 0.5),
        (2, " things", 0.25),
        (7, " stuff", 0.1),
        (8, " it", 0.05),
        (9, "\n", 0.01),
    ),
)


class BesideApp(App[None]):
    """One widget alone, and what it said to the app."""

    def __init__(self, widget: Widget, theme: Theme = DARK) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = theme.name
        self.widget = widget
        self.said: list[Message] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return token_colours(self.current_theme)

    def compose(self) -> ComposeResult:
        yield self.widget

    def heard(self, kind: type[Said]) -> list[Said]:
        return [message for message in self.said if isinstance(message, kind)]

    def on_inspector_token_chosen(self, message: Inspector.TokenChosen) -> None:
        self.said.append(message)

    def on_inspector_resteer(self, message: Inspector.Resteer) -> None:
        self.said.append(message)

    def on_inspector_wanted(self, message: Inspector.Wanted) -> None:
        self.said.append(message)
