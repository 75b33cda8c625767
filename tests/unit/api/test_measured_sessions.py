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
    """Measures a table, with more time than it ever takes: `opens(Table(), context=400)`."""
    file = tiny_models()
    real = measuring.measure
    monkeypatch.setattr(measuring, "measure", partial(real, within_s=60.0))

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

    def slow(session: Rounds, text: list[int], least: int, **hearing: Any) -> Measurement:
        return replace(real(session, text, least=least, **hearing), context=max(48, least))

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


class Measures:
    """Stands for measuring: takes `seconds` on a clock of its own, says what it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds, self.now, self.times = 1.0, 0.0, 0
        self.passes, self.classes = {1: 1.0, 2: 0.5, 4: 0.5}, ((1, 2, 4),)
        monkeypatch.setattr(measuring, "measure", self)
        monkeypatch.setattr(measuring, "perf_counter", lambda: self.now)

    def __call__(
        self,
        session: Rounds,
        text: list[int],
        least: int,
        expect: Callable[[float], None] = lambda seconds: None,
    ) -> Measurement:
        expect(self.seconds)
        self.now += self.seconds
        self.times += 1
        return Measurement(self.passes, self.classes, 0.5, max(48, least), sample=len(text))


@pytest.fixture
def measures(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> Measures:
    return Measures(monkeypatch)


def test_figures_that_cannot_be_are_measured_twice_and_then_kept(
    opens: Opens, told: list[str], measures: Measures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "busy", lambda: True)
    assert not opens(Table(), context=400).measurement.at_rest
    assert measures.times == 1, "what other programs disturbed is measured again without them"
    monkeypatch.setattr(measuring, "busy", lambda: False)
    assert opens(Table(), context=400).measurement.at_rest
    assert len(told) == 1
    assert measures.times == 3
    opens(Table(), context=400)
    assert not told, "it said once"
    assert measures.times == 3


def test_nothing_is_measured_twice_where_once_took_long_already(
    opens: Opens, told: list[str], measures: Measures
) -> None:
    measures.seconds = 7.0
    opens(Table(), context=400)
    assert measures.times == 1
    assert told == [
        f"measuring what a pass of {told[0].split()[5]} costs here; once, for about 7 s"
    ]
    opens(Table(), context=400)
    assert measures.times == 1


@pytest.mark.parametrize("strict", [False, True])
def test_what_was_measured_at_rest_is_not_replaced_by_what_was_not(
    opens: Opens, measures: Measures, monkeypatch: pytest.MonkeyPatch, *, strict: bool
) -> None:
    calm = opens(Table(), context=400).measurement
    assert calm.at_rest
    monkeypatch.setattr(measuring, "busy", lambda: True)
    measures.passes, before = dict.fromkeys((1, 2, 4), 9.0), measures.times
    found = opens(Table(), context=4096, strict=strict).measurement
    if strict:
        assert found.context == 320, "what must be compared on more text is, for this once"
    else:
        assert found == calm
    assert measures.times == before + strict
    assert opens(Table(), context=400).measurement == calm
    monkeypatch.setattr(measuring, "busy", lambda: False)
    assert opens(Table(), context=4096).measurement.seconds == measures.passes


def test_what_other_programs_disturbed_on_less_text_is_measured_on_more(
    opens: Opens, measures: Measures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "busy", lambda: True)
    assert opens(Table(), context=400).measurement.sample == 200
    assert opens(Table(), context=4096).measurement.sample == 1024
    assert opens(Table(), context=4096).measurement.sample == 1024
    assert measures.times == 2


def test_what_was_not_compared_is_not_used_where_the_rest_agrees(
    opens: Opens, measures: Measures
) -> None:
    session = opens(Table(), context=400).session
    assert session.caps == replace(Rounds(400, Table().rounding).caps, rows=4)


def test_what_was_not_compared_may_be_used_where_not_even_the_rest_agrees(
    opens: Opens, measures: Measures
) -> None:
    measures.classes = ((1,), (2, 4))
    assert isinstance(opens(Table(), context=400).session, Rounds)


def test_on_a_busy_machine_no_more_is_promised_than_is_known(
    opens: Opens, told: list[str], measures: Measures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "busy", lambda: True)
    opens(Table(), context=400)
    first, second = told
    assert first.endswith("costs here; for 1 s or more")
    assert second.startswith("other programs keep this machine busy")


def test_another_device_or_build_or_edgespec_measures_for_itself(
    opens: Opens, told: list[str], measures: Measures, monkeypatch: pytest.MonkeyPatch
) -> None:
    def identity(name: str) -> None:
        monkeypatch.setattr(Table, "identity", name)

    def edgespec(number: str) -> None:
        monkeypatch.setattr(measuring, "version", lambda package: number)

    for change, value in ((identity, "CUDA0"), (identity, "Vulkan0"), (edgespec, "99.0")):
        change(value)
        opens(Table(), context=400)
        assert told
        opens(Table(), context=400)
        assert not told


def test_two_machines_that_share_a_cache_measure_each_for_itself(
    opens: Opens, told: list[str], measures: Measures, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "another"):
        monkeypatch.setattr(measuring, "processor_identity", lambda name=name: name)
        opens(Table(), context=400)
        assert told
        opens(Table(), context=400)
        assert not told
