"""One token in detail, and what else might stand there, to choose from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from textual.content import Content
from textual.widgets import Static
from textual.widgets.option_list import Option

from edgespec.decoding.events import Alternative
from edgespec.tui.charts import bar
from edgespec.tui.details import Detail, percent
from edgespec.tui.listing import Listing
from edgespec.tui.rounds import token_text

MOST_ALTERNATIVES = 5
_MOST_REFUSED = 3
_BAR_CELLS = 8
_HINT = "Click a token, or go to one with the arrow keys, to see what else might stand there."
_CHOOSE = "what might stand here · 1 to 5 rewrites"


class TokenDetail(Static):
    """What is known of a token, in a few lines."""

    DEFAULT_CSS = """
    TokenDetail {
        height: auto;
        max-height: 40%;
        border-top: solid $rule;
        background: $background;
        color: $foreground;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(Content.styled(_HINT, "$quiet"), id=id, markup=False)

    def show(self, detail: Detail | None, waiting: str = "") -> None:
        """waiting: why there are no alternatives, where there are none."""
        if detail is None:
            self.update(Content.styled(_HINT, "$quiet"))
            return
        last = Content.styled(_CHOOSE if detail.alternatives else waiting, "$quiet")
        self.update(Content("\n").join([*detail_lines(detail), last]))


class Alternatives(Listing):
    """The best tokens for a place, of which any but the one that stands there can be chosen."""

    DEFAULT_CSS = """
    Alternatives {
        height: auto;
        min-height: 1;
        max-height: 30%;
        padding: 0;
        border: none;
        background: $background;
        scrollbar-size-vertical: 1;
        text-wrap: nowrap;
        text-overflow: ellipsis;

        &:focus { border: none; background-tint: transparent; }
        & > .option-list--option-disabled { color: $quiet; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self.choices: tuple[Alternative, ...] = ()

    def show(self, detail: Detail | None, ends: Mapping[int, str]) -> None:
        """ends: the tokens that end an answer, with their names."""
        self.choices = detail.alternatives[:MOST_ALTERNATIVES] if detail is not None else ()
        stands = detail.token if detail is not None else None
        self.set_options(
            Option(
                _line(number, choice, token_text(choice.text, choice.token, ends), stands),
                disabled=choice.token == stands,
            )
            for number, choice in enumerate(self.choices, 1)
        )
        self.display = bool(self.choices)
        if self.choices:
            self.action_first()

    def choice(self, number: int) -> Alternative | None:
        """The token to write instead, where there is one of that number (from 1)."""
        inside = 1 <= number <= len(self.choices)
        if not inside or self.get_option_at_index(number - 1).disabled:
            return None
        return self.choices[number - 1]


def detail_lines(detail: Detail) -> Iterator[Content]:
    """What is known of a token, line by line."""
    where = f"token {detail.index + 1}"
    if detail.number is not None:
        where += f", round {detail.number}"
    yield Content.assemble((_quoted(detail.text), "bold"), ("  " + where, "$quiet"))
    yield Content(detail.origin)
    if detail.why:
        yield Content.styled(f"round: {detail.why}", "$quiet")
    if given := _given(detail.target, detail.draft):
        yield Content(f"probability: {given}")
    for refused in detail.refused[:_MOST_REFUSED]:
        struck = (_quoted(refused.text), "strike $token-rejected")
        yield Content.assemble("turned down: ", struck, f" by {refused.source}")
        if given := _given(refused.target, refused.draft):
            yield Content(f"  {given}")


def _given(target: float | None, draft: float | None) -> str:
    """Who gave a token which probability, as far as is known."""
    known = (("model", target), ("drafter", draft))
    return ", ".join(f"{who} {percent(share)}" for who, share in known if share is not None)


def _line(number: int, choice: Alternative, text: str, stands: int | None) -> Content:
    probability = math.exp(min(choice.logprob, 0.0))
    share = f"{percent(probability):>6}"
    return Content.assemble(
        f"{number} ",
        (bar(probability, _BAR_CELLS), "$primary"),
        f" {share}  ",
        _quoted(text),
        (" stands here" if choice.token == stands else "", "$quiet"),
    )


def _quoted(text: str) -> str:
    return f"“{text}”"
