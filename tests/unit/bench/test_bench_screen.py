"""Tables that stay readable in a narrow terminal."""

from __future__ import annotations

import pytest
from rich.text import Text

from edgespec.bench.tables import Table
from edgespec.cli import bench_screen
from edgespec.cli.bench_screen import fitting

ARMS = ("ngram:8", "draft:2", "draft:4", "draft:6", "auto", "plain-loop")
SPREAD = "1.23 (0.98-1.54)"
TABLE = Table(
    "Decode speed, times none: median (smallest to largest)",
    ("category", "none, tokens/s", *ARMS),
    tuple((name, "10.0", *[SPREAD] * 6) for name in ("code", "chat", "geometric mean")),
    frozenset({(0, 4), (2, 7)}),
)


class Terminal:
    """A stdout that says it is one."""

    def isatty(self) -> bool:
        return True


def _lines(monkeypatch: pytest.MonkeyPatch, width: int) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", Terminal())
    text = bench_screen.drawn([TABLE])
    monkeypatch.undo()
    return Text.from_ansi(text).plain.splitlines()


@pytest.mark.parametrize("width", [160, 80, 40])
def test_spreads_are_whole_and_lines_fit_at_every_width(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    lines = _lines(monkeypatch, width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert text.count(SPREAD) == 18
    assert "…" not in text
    assert text.count(f"{SPREAD} *") == 2
    for arm in ARMS:
        assert arm in text


def test_a_wide_terminal_gets_the_table_as_it_is() -> None:
    assert fitting(TABLE, 200) == [TABLE]


def test_a_terminal_of_80_columns_gets_arms_down_and_categories_across() -> None:
    (turned,) = fitting(TABLE, 80)
    assert turned.head == ("category", "code", "chat", "geometric mean")
    assert turned.rows[3] == ("draft:4", *[SPREAD] * 3)
    assert turned.best == {(3, 1), (6, 3)}
    assert turned.turned() == TABLE


def test_a_very_narrow_one_gets_a_small_table_for_each_category() -> None:
    parts = fitting(TABLE, 40)
    assert [part.head for part in parts] == [
        ("category", "code"),
        ("category", "chat"),
        ("category", "geometric mean"),
    ]
    assert parts[0].rows[3] == ("draft:4", SPREAD)
    assert parts[0].best == {(3, 1)}
    assert not parts[1].best
