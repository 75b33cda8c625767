"""Kinds of values that flags take. Each says what it allows when it turns a value down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click


@dataclass(frozen=True)
class Whole(click.ParamType[int | str]):
    """A whole number from `low` to `high`, or the word `word`."""

    low: int
    high: int
    word: str = ""
    name = "integer"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        if self.word and value == self.word:
            return self.word
        number = None if isinstance(value, bool | float) else _number(int, value)
        if number is None or not self.low <= number <= self.high:
            either = f"'{self.word}' or " if self.word else ""
            self.fail(
                f"{value} is not allowed; give {either}a whole number from {self.low} to"
                f" {self.high}.",
                param,
                ctx,
            )
        return int(number)


@dataclass(frozen=True)
class Real(click.ParamType[float]):
    """A number from `low` to `high`; `above`: `low` itself is not allowed."""

    low: float
    high: float
    above: bool = False
    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = None if isinstance(value, bool) else _number(float, value)
        # written so that nan, which compares with nothing, is turned down
        if number is None or not self._holds(number):
            span = f"above {self.low:g} and at most" if self.above else f"from {self.low:g} to"
            self.fail(f"{value} is not allowed; give a number {span} {self.high:g}.", param, ctx)
        return float(number)

    def _holds(self, number: float) -> bool:
        return (self.low < number if self.above else self.low <= number) and number <= self.high


class StopText(click.ParamType[str]):
    """A text that ends the answer. Whole, even from the environment: it may hold spaces."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not isinstance(value, str) or not value:
            self.fail("a stop text must have at least one character.", param, ctx)
        return value

    def split_envvar_value(self, rv: str) -> list[str]:
        return [rv]


class BackendName(click.ParamType[str]):
    """`auto` or the name of an installed adapter."""

    name = "backend"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "auto":
            return "auto"
        from edgespec.backends import installed

        known = sorted(installed())
        if value not in known:
            self.fail(
                f"{value!r} is not known here; give {', '.join(['auto', *known])}.", param, ctx
            )
        return str(value)


def _number(kind: type[int] | type[float], value: Any) -> int | float | None:
    try:
        return kind(value)
    except (TypeError, ValueError, OverflowError):
        return None
