"""What was measured of a model before is believed for as much as it was measured on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import TinyModels

from edgespec import measuring
from edgespec.backends import SessionOptions
from edgespec.decoding.draft import Draft
from edgespec.measuring import Measured, measured_session
from edgespec.options import LoadOptions
from edgespec.planning.measure import WIDTHS, Measurement
from edgespec.planning.strict import StrictSession
from edgespec.testing import TableScores, TableSession

V = 6
Rounding = Callable[[int, int], float]


class Rounds(TableSession):
    """Scores differ by what `rounding` says of the width of a pass and the length of the text."""

    def __init__(self, context: int, rounding: Rounding) -> None:
        super().__init__(V, context=context)
        self.rounding = rounding

    def verify(self, draft: Draft) -> TableScores:
        scores = super().verify(draft)
        assert isinstance(scores, TableScores)
        error = np.float32(self.rounding(len(draft) + 1, len(self.cache)))
        return TableScores({node: row + error for node, row in scores.rows.items()})


class Letters:
    """Splits a text into letters."""

    def encode(self, text: str, *, special: bool) -> list[int]:
        return [ord(letter) % V for letter in text]


class Table:
    """A loaded model of which sessions are tables."""

    identity, device, tokenizer = "table", "paper", Letters()

    def __init__(self, rounding: Rounding = lambda width, length: 0.0) -> None:
        self.rounding = rounding

    def session(self, options: SessionOptions) -> Rounds:
        return Rounds(options.context, self.rounding)


Opens = Callable[..., Measured]


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def opens(told: list[str], tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch) -> Opens:
    """Measures a table for a moment: `opens(Table(), context=400)`."""
    file = tiny_models()
    real = measuring.measure
    monkeypatch.setattr(measuring, "measure", partial(real, within_s=0.05))

    def open_(table: Table, **options: Any) -> Measured:
        told.clear()
        return measured_session(table, file, LoadOptions(**options), told.append)  # type: ignore[arg-type]

    return open_


def test_strict_keeps_to_measured_widths_where_all_of_them_agree_too(opens: Opens) -> None:
    loose, strict = (opens(Table(), context=400, strict=strict) for strict in (False, True))
    assert loose.measurement.bit_exact
    assert isinstance(loose.session, Rounds)
    assert isinstance(strict.session, StrictSession)
    assert strict.session.caps.rows == WIDTHS[-1]
    assert [strict.session.width(rows) for rows in (1, 3, 9)] == [1, 4, 16]


def test_what_rounds_otherwise_in_long_texts_only_is_found_where_the_context_is_long(
    opens: Opens, told: list[str]
) -> None:
    table = Table(lambda width, length: 0.5 * (width > 1 and length > 256))
    short = opens(table, context=280)
    assert short.measurement.bit_exact
    long = opens(table, context=4096)
    assert told, "it is measured again"
    assert long.measurement.classes[0] == (1,)
    assert not opens(table, context=280).measurement.bit_exact
    assert not told, "what was measured on a longer text serves"


def test_a_sample_that_was_too_long_to_be_read_whole_is_not_tried_at_every_start(
    opens: Opens, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = measuring.measure

    def slow(session: Rounds, text: list[int], least: int) -> Measurement:
        return replace(real(session, text, least=least), context=max(48, least))

    monkeypatch.setattr(measuring, "measure", slow)
    assert opens(Table(), context=4096).measurement.context == 48
    assert opens(Table(), context=4096).measurement.context == 48
    assert not told
    assert opens(Table(), context=4096, strict=True).measurement.context > 256
    assert told, "strict is not content with so little"
    assert opens(Table(), context=4096).measurement.context > 256
    assert not told


def test_a_measurement_of_before_that_does_not_say_on_how_much_it_was_made_is_made_anew(
    opens: Opens, told: list[str], cache_of_the_test: Path
) -> None:
    opens(Table(), context=400)
    (file,) = (cache_of_the_test / "measured").iterdir()
    file.write_text(file.read_text().replace('"sample"', '"of before"'))
    opens(Table(), context=400)
    assert any(line.startswith("measuring") for line in told)


def test_figures_that_cannot_be_are_measured_twice_and_then_kept(
    opens: Opens, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = list[int]()

    def odd(session: Rounds, text: list[int], least: int) -> Measurement:
        times.append(len(text))
        seconds = {1: 1.0, 2: 0.5, 4: 0.5}
        return Measurement(seconds, ((1, 2, 4),), 0.0, context=48, sample=len(text))

    monkeypatch.setattr(measuring, "measure", odd)
    monkeypatch.setattr(measuring, "busy", lambda: True)
    assert not opens(Table(), context=400).measurement.at_rest
    assert len(times) == 1, "what other programs disturbed is measured again without them"
    times.clear()
    monkeypatch.setattr(measuring, "busy", lambda: False)
    assert opens(Table(), context=400).measurement.at_rest
    assert len(told) == 1
    opens(Table(), context=400)
    assert not told, "it said once"
    assert len(times) == 2
