"""What helps where a pair does not fit, and what --fit chooses."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from edgespec.errors import OutOfMemory
from edgespec.models.available import Available, GpuMemory
from edgespec.models.fit import SHORT_CONTEXT, check, fit
from edgespec.models.memory import MemoryPlan, size
from edgespec.models.needs import LayerNeeds, ModelNeeds

MIB, GIB = 1 << 20, 1 << 30
RUNTIME = 64 * MIB  # of two models


def big(kv_type: str = "f16") -> MemoryPlan:
    """8 GiB of target weights with 8e9 parameters, 1 GiB of draft, 4 GiB of cache at f16."""
    layer = LayerNeeds(GIB, keys=4096, values=4096)
    target = ModelNeeds(8 * 10**9, (layer,) * 8, 0, block=(128, 128), trained_context=32768)
    draft = ModelNeeds(10**9, (LayerNeeds(GIB),), 0)
    return MemoryPlan(target, draft, 32768, kv_type, flash_attention="auto")


def free(gibibytes: float) -> Available:
    """So much beside what the plan's fixed parts take."""
    return Available(round(gibibytes * GIB) + RUNTIME + mask())


def mask() -> int:
    return big().shares(gpu=False)[0].working


def message(needed: MemoryPlan, available: Available) -> str:
    with pytest.raises(OutOfMemory) as caught:
        check(needed, available)
    return str(caught.value)


def test_what_fits_passes_and_a_byte_less_does_not() -> None:
    enough = free(13)
    check(big(), enough)
    assert big().fits(enough)
    short = replace(enough, main_bytes=enough.main_bytes - 1)
    assert "too little" in message(big(), short)
    assert not big().fits(short)


def test_what_does_not_fit_says_by_how_much_and_what_helps_in_order() -> None:
    told = message(big(), free(12))
    assert "of main memory (9.0 GiB of weights, 4.0 GiB of cache, " in told
    assert "are free, 1.0 GiB too little: " in told
    ways = told.split(": ")[1].split("; or ")
    assert re.fullmatch(r"--context 24\d{3}", ways[0])
    assert ways[1].startswith("--draft none (saves 1.0 GiB)")
    assert ways[2:4] == [
        "--kv-type q8_0 (saves 1.9 GiB)",
        "a smaller quantisation, with weights of at most 7.0 GiB",
    ]
    assert re.fullmatch(
        r"--fit, which takes a context of 24\d{3} tokens instead of 32768\.", ways[4]
    )


def test_what_helps_only_together_is_named_as_what_fit_takes() -> None:
    told = message(big(), free(8.2))
    assert re.search(
        r"; or --fit, which takes a context of \d+ tokens instead of 32768"
        r" and no draft model and the cache in q8_0\.$",
        told,
    )
    assert "--fit" not in message(big(), free(7))


def test_a_proposed_context_fits_and_the_next_step_would_not() -> None:
    match = re.search(r"--context (\d+)", message(big(), free(12)))
    assert match is not None
    check(replace(big(), context=int(match[1])), free(12))
    assert not replace(big(), context=int(match[1]) + 256).fits(free(12))


def test_a_proposed_context_is_never_longer_than_the_model_was_trained_on() -> None:
    endless = replace(big(), context=1 << 20)
    assert "too little: --context 32768;" in message(endless, free(20))
    trained = replace(endless, target=replace(endless.target, trained_context=0))
    match = re.search(r"--context (\d+)", message(trained, free(20)))
    assert match is not None
    assert int(match[1]) > 32768


def test_a_change_that_is_not_enough_alone_says_so() -> None:
    assert "--draft none (saves 1.0 GiB, not enough alone)" in message(big(), free(10))


def test_q8_0_is_not_proposed_to_who_has_it_or_cannot_have_it() -> None:
    uneven = replace(big(), target=replace(big().target, block=(80, 80)))
    for needed in (big("q8_0"), replace(big(), flash_attention="off"), uneven):
        assert "--kv-type" not in message(needed, free(5))


def test_a_hopeless_case_asks_for_a_smaller_model() -> None:
    alone = replace(big("q8_0"), draft=None)
    assert message(alone, Available(GIB)).endswith("too little: use a smaller model.")


def test_a_gpu_that_is_too_small_gets_fewer_layers() -> None:
    card = Available(64 * GIB, (GpuMemory(8 * GIB),))
    told = message(replace(big(), draft=None), card)
    assert "of GPU memory" in told
    match = re.search(r"--gpu-layers (\d+)", told)
    assert match is not None
    layers = int(match[1])
    assert replace(big(), draft=None, gpu_layers=layers).fits(card)
    assert not replace(big(), draft=None, gpu_layers=layers + 1).fits(card)


@pytest.mark.parametrize(
    ("room", "changes"),
    [
        (13, []),
        (12, ["a context of"]),
        (9.3, ["a context of"]),
        (9.1, ["a context of", "no draft model"]),
        (8.2, ["a context of", "no draft model", "the cache in q8_0"]),
    ],
)
def test_fit_gives_up_the_most_harmless_first(room: float, changes: list[str]) -> None:
    fitted = fit(big(), free(room))
    assert fitted.plan.fits(free(room))
    assert len(fitted.changes) == len(changes)
    for said, expected in zip(fitted.changes, changes, strict=True):
        assert said.startswith(expected)


def test_fit_takes_the_longest_context_that_the_other_changes_leave_room_for() -> None:
    fitted = fit(big(), free(9.1))
    assert fitted.plan.draft is None
    assert SHORT_CONTEXT < fitted.plan.context < 32768
    assert not replace(fitted.plan, context=fitted.plan.context + 256).fits(free(9.1))


def test_fit_moves_layers_off_a_gpu_only_after_all_else() -> None:
    card = Available(64 * GIB, (GpuMemory(4 * GIB),))
    fitted = fit(big(), card)
    assert fitted.plan.fits(card)
    assert fitted.changes[1:3] == ("no draft model", "the cache in q8_0")
    assert re.fullmatch(r"[1-4] of 9 layers on the GPU", fitted.changes[3])


def test_a_gpu_that_takes_models_whole_is_never_offered_some_layers() -> None:
    chip = Available(64 * GIB, (GpuMemory(4 * GIB, unified=True, partial=False),))
    assert "--gpu-layers" not in message(big(), chip)
    with pytest.raises(OutOfMemory) as caught:
        fit(big(), chip)
    assert "--gpu-layers" not in str(caught.value)
    divided = replace(chip, gpus=(GpuMemory(4 * GIB, unified=True),))
    assert fit(big(), divided).plan.gpu_layers is not None


def test_fit_is_honest_where_nothing_helps() -> None:
    with pytest.raises(OutOfMemory, match="too little"):
        fit(big(), free(7))


def test_a_short_context_that_was_asked_for_stays_as_it_is() -> None:
    short = replace(big(), context=1000)
    fitted = fit(short, Available(short.shares(gpu=False)[0].total + RUNTIME - GIB // 2))
    assert fitted.plan.context == 1000
    assert fitted.changes == ("no draft model",)


def test_sizes_are_told_in_mebibytes_and_gibibytes() -> None:
    assert [size(n) for n in (0, 300 * MIB, 3 * GIB // 2)] == ["0 MiB", "300 MiB", "1.5 GiB"]
