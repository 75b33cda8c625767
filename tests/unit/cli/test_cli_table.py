"""Columns and sentences within the terminal's width."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from edgespec.cli.table import aligned, flowing

ROWS = [
    ("", "PAIR", "SIZE", ""),
    ("*+", "qwen3-8b", "5.6 GB", "a model with a long text about it that goes on and on"),
    ("", "a-name-of-some-length", "~12.0 GB", "another"),
]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def of(columns: int) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("COLUMNS", str(columns))

    return of


def test_without_a_terminal_each_row_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    lines = list(aligned(ROWS))
    assert len(lines) == 3
    assert lines[1].endswith("goes on and on")
    assert list(flowing("a sentence of more than twenty letters")) == [
        "a sentence of more than twenty letters"
    ]


@pytest.mark.parametrize("columns", [200, 80, 60, 40, 20, 5, 1])
def test_in_a_terminal_no_line_is_wider_and_nothing_is_lost(
    terminal: Callable[[int], None], columns: int
) -> None:
    terminal(columns)
    lines = list(aligned(ROWS))
    assert max(map(len, lines)) <= max(columns, 5)
    told = "".join("".join(lines).split())
    assert told == "".join("".join(cell for row in ROWS for cell in row).split())
    assert not any(line.isspace() for line in lines)
    assert max(map(len, flowing("some words that make a sentence"))) <= columns


def test_the_last_column_is_wrapped_below_itself(terminal: Callable[[int], None]) -> None:
    terminal(64)
    _, first, second, *_ = aligned(ROWS)
    column = first.index("a model")
    assert second[:column].isspace()
    assert second[column] != " "


def test_where_columns_have_no_room_every_row_begins_at_the_edge(
    terminal: Callable[[int], None],
) -> None:
    terminal(30)
    starts = [line for line in aligned(ROWS) if not line.startswith(" ")]
    assert [line.split()[0] for line in starts] == ["PAIR", "*+", "a-name-of-some-length"]
