"""What only Apple's chips can show: the device, their number formats, and rounding by width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mlx_folders import change_json, write_folder
from tiny_mlx import ASKED_FOR, WITH_WINDOW, MlxModels, session
from tiny_models import TinyModels

import edgespec
from edgespec import backends
from edgespec.backends import Placement, SessionOptions
from edgespec.decoding.draft import EMPTY, ROOT
from edgespec.testing import ContractCheck, check_session, read
from edgespec_mlx import MlxBackend
from edgespec_mlx.device import device, number_format

pytestmark = pytest.mark.metal

ROUNDED = ContractCheck(tolerance=0.05)  # kernels differ by the number of rows


def test_the_chip_its_memory_and_the_limit_for_models_are_told() -> None:
    probe = MlxBackend.probe()
    assert (probe.gpu, probe.makeshift) == (True, False)
    assert "Metal" in probe.devices[0]
    assert "M" in device().chip
    assert 0 < device().wired_bytes <= device().memory_bytes
    assert 0 < probe.gpu_memory[0].free_bytes <= device().memory_bytes
    assert probe.gpu_memory[0].unified


def test_mlx_is_what_a_mac_runs_models_with() -> None:
    assert backends.find("auto", ("mlx",)) is MlxBackend


@pytest.mark.parametrize("bits", [None, 4], ids=["f32", "4 bit"])
@pytest.mark.parametrize("family", ASKED_FOR)
def test_every_family_keeps_the_contract_up_to_rounding(
    mlx_models: MlxModels, family: str, bits: int | None
) -> None:
    model = mlx_models(family, bits=bits)
    check_session(lambda: session(model), ROUNDED)


@pytest.mark.parametrize("family", WITH_WINDOW)
def test_a_window_shorter_than_the_text_keeps_it_too(mlx_models: MlxModels, family: str) -> None:
    model = mlx_models(family, window=16)
    check_session(lambda: session(model), ROUNDED)


@pytest.mark.parametrize("kv_type", ["f16", "bf16", "q8_0", "q4_0"])
def test_every_kind_of_cache_gives_numbers(mlx_models: MlxModels, kv_type: str) -> None:
    target = session(mlx_models(), SessionOptions(context=256, kv_type=kv_type))
    read(target, list(range(1, 60)))
    assert np.isfinite(target.verify(EMPTY).logits(ROOT)).all()


def test_a_drafter_is_kept_in_the_format_that_suits_the_chip(
    tmp_path: Path, tiny_models: TinyModels
) -> None:
    folder = write_folder(tmp_path / "tiny", tiny_models())
    model = MlxBackend.load(folder, Placement(guesses_only=True))
    wanted = number_format(device().chip, "float32", quantised=False, guesses_only=True)
    assert model.identity.endswith(wanted)
    model.close()


def test_guessing_changes_nothing_but_what_rounding_may(
    tmp_path: Path, tiny_models: TinyModels
) -> None:
    target = write_folder(tmp_path / "target", tiny_models())
    draft = write_folder(tmp_path / "draft", tiny_models(noise=0.01))
    change_json(draft / "config.json", torch_dtype="bfloat16")
    answers = []
    for named in (None, str(draft)):
        with edgespec.load(
            target=str(target), draft=named, backend="mlx", context=256, tuned=False
        ) as model:
            answers.append(model.generate("the user", max_tokens=32, temperature=0.0).token_ids)
            if named is None:
                plain = model.loaded.target.session
                same = [*model._desk.encoder.encode([edgespec.Message("user", "the user")], {})]
                margins = _margins(plain, [int(t) for t in same], answers[0])
    parted = next((n for n, pair in enumerate(zip(*answers, strict=False)) if len({*pair}) > 1), 32)
    assert parted == 32 or margins[parted] < ROUNDED.tolerance


def _margins(target: object, prompt: list[int], answer: tuple[int, ...]) -> list[float]:
    """How far the best score is from the second, at each token of an answer."""
    found = []
    for n in range(len(answer)):
        read(target, [*prompt, *answer[:n]])  # type: ignore[arg-type]
        row = np.sort(target.verify(EMPTY).logits(ROOT))  # type: ignore[attr-defined]
        found.append(float(row[-1] - row[-2]))
    return found
