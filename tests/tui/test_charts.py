"""Charts out of characters: they start at zero, and show what is there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.tui.charts import bar, columns, spark

SHARES = st.floats(-1, 2, allow_nan=False)


def test_a_spark_starts_at_zero_and_fills_its_cell_with_the_greatest() -> None:
    assert spark([0, 25, 50, 100], 10) == " ▂▄█"
    assert spark([99, 100], 10) == "██"


def test_a_spark_shows_the_latest_values() -> None:
    assert spark([100, 0, 0, 1], 2) == " █"
    assert spark([1, 2], 0) == ""
    assert spark([], 5) == ""
    assert spark([0, 0], 5) == "  "


def test_what_is_there_at_all_is_seen() -> None:
    assert spark([0.001, 100], 2)[0] == "▁"
    assert bar(0.0001, 4).strip() == "▏"


@pytest.mark.parametrize(
    ("share", "drawn"), [(0.0, "    "), (0.5, "██  "), (0.625, "██▌ "), (1.0, "████"), (7, "████")]
)
def test_a_bar_is_as_long_as_its_share(share: float, drawn: str) -> None:
    assert bar(share, 4) == drawn


def test_columns_stand_on_the_ground_a_cell_apart() -> None:
    assert columns([1.0, 0.5, 0.25, 0.0], 2, 2) == ["██         ", "██ ██ ▄▄   "]


@given(st.lists(SHARES, max_size=20), st.integers(0, 40))
def test_charts_keep_to_their_room(shares: list[float], width: int) -> None:
    assert len(spark(shares, width)) <= width
    assert all(len(bar(share, width)) == width for share in shares)
    rows = columns(shares, 3, 2)
    assert {len(row) for row in rows} == {max(3 * len(shares) - 1, 0)}
