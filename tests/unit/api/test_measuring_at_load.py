"""What is measured when a pair is loaded, kept, and told of how exact its text is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from api_trials import Load
from tiny_models import TinyModels

from edgespec.api import Speculation
from edgespec.desk import Desk
from edgespec.loading import LEAST_CONTEXT

ASK = "Tell me of the other model"


@pytest.mark.parametrize("strict", [True, False])
def test_how_exact_the_text_is_is_told_for_the_rule_in_force(opened: Load, strict: bool) -> None:
    model = opened(rule="rejection", strict=strict)
    told = model.info.exactness
    assert told.startswith("same distribution: where the sampler draws, --rule rejection")
    model.speculation = Speculation()
    coupled = model.info.exactness
    assert coupled.startswith(("bit-exact", "same up to rounding"))
    assert told.endswith(f"at temperature 0 {coupled}")
    assert model.generate(ASK, max_tokens=1).model.exactness == coupled
    model.speculation = Speculation(rule="rejection")
    assert model.generate(ASK, max_tokens=1).model.exactness == told


def test_only_where_a_seed_gives_one_text_are_proposers_excepted_from_that(opened: Load) -> None:
    loaded = opened().loaded
    measurement = loaded.target.measurement
    exact = replace(measurement, classes=(tuple(measurement.seconds),))
    loaded = replace(loaded, target=replace(loaded.target, measurement=exact))
    for rule, excepted in (("coupled", ("tree", "recycling")), ("rejection", ())):
        assert Desk(loaded, Speculation(rule=rule)).info.inexact_with == excepted


def test_words_on_exactness_speak_only_of_widths_that_were_compared(opened: Load) -> None:
    loaded = opened().loaded
    told = dict[int, str]()
    for widest in (16, 65):
        widths = (1, 2, 4, 8, widest)
        measurement = replace(
            loaded.target.measurement,
            seconds=dict.fromkeys(widths, 1.0),
            classes=((1,), widths[1:]),
            largest_difference=0.5,
        )
        target = replace(loaded.target, measurement=measurement)
        told[widest] = replace(loaded, target=target).exactness
    assert "wider passes of up to 16 tokens change a score by at most 0.5;" in told[16]
    assert "wider passes change a score by at most 0.5;" in told[65]


@pytest.mark.parametrize("context", [LEAST_CONTEXT, 17, 28])
def test_a_short_context_is_measured_and_strict_leaves_half_of_it(
    opened: Load, context: int
) -> None:
    for strict in (False, True):
        assert opened(context=context, strict=strict).info.context > context // 2
    opened(context=256)
    told = opened(context=context, strict=True).info.context
    assert told > context // 2, "what was measured in more room is not padded to either"


def test_measuring_is_done_once_and_kept(opened: Load, cache_of_the_test: Path) -> None:
    told: list[str] = []
    first = opened(report=told.append)
    (file,) = (cache_of_the_test / "measured").iterdir()
    written = file.read_bytes()
    assert [line.split()[0] for line in told] == ["main", "loading", "measuring"]
    told.clear()
    second = opened(report=told.append)
    assert [line.split()[0] for line in told] == ["main", "loading"]
    assert second.plain_tokens_per_second == pytest.approx(
        1 / second.loaded.target.measurement.seconds[1]
    )
    assert second.loaded.target.measurement == first.loaded.target.measurement
    assert file.read_bytes() == written


def _measurement(**changes: object) -> bytes:
    sound = {
        "seconds": {"1": 1},
        "classes": [[1]],
        "largest_difference": 0,
        "context": 9,
        "sample": 128,
        "token_s": 0,
        "at_rest": True,
    }
    return json.dumps(sound | changes).encode()


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff\x00",
        b"[]",
        b"null",
        b"{}",
        _measurement(seconds={}, classes=[]),
        _measurement(seconds={"1": -1}),
        _measurement(seconds={"1": float("nan")}),
        _measurement(seconds={"2": 1}, classes=[[2]]),
        _measurement(seconds={"1": 1, "2": 2}),
        _measurement(seconds={"one": 1}),
        _measurement(token_s=-1),
        _measurement(token_s=float("inf")),
        _measurement(context=None),
        _measurement(sample=None),
    ],
)
def test_a_damaged_measurement_is_made_anew(
    opened: Load, cache_of_the_test: Path, damage: bytes
) -> None:
    opened()
    (file,) = (cache_of_the_test / "measured").iterdir()
    file.write_bytes(damage)
    told: list[str] = []
    opened(report=told.append, strict=True)
    assert any(line.startswith("measuring") for line in told)
    assert file.read_bytes() != damage


def test_what_was_measured_on_a_busy_machine_is_measured_again_at_rest(
    opened: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> str:
        lines: list[str] = []
        opened(report=lines.append)
        return "\n".join(lines)

    monkeypatch.setattr("edgespec.measuring.busy", lambda: True)
    assert "other programs keep this machine busy" in told()
    assert "measuring" not in told(), "while it stays busy, the first figures serve"
    monkeypatch.setattr("edgespec.measuring.busy", lambda: False)
    assert "measuring" in told()
    assert "measuring" not in told()


def test_other_settings_are_measured_apart(opened: Load, cache_of_the_test: Path) -> None:
    opened()
    opened(kv_type="f32")
    opened(flash_attention="off")
    opened(context=128)
    assert len(list((cache_of_the_test / "measured").iterdir())) == 3


def test_strict_text_is_the_same_to_the_bit_and_says_so(
    opened: Load, tiny_models: TinyModels
) -> None:
    draft = str(tiny_models(layers=2, noise=0.03))
    model = opened(draft=draft, strict=True, kv_type="f32", flash_attention="off")
    assert model.info.exactness.startswith("bit-exact: ")
    texts = set()
    for speculation in (Speculation("none"), Speculation("draft", draft_tokens=6)):
        model.speculation = speculation
        texts.add(model.generate(ASK, seed=1, max_tokens=60, temperature=1.0).token_ids)
    assert len(texts) == 1
