"""Weights that GGUF packs are the same weights as MLX packs them."""

from __future__ import annotations

from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from edgespec_mlx.gguf_blocks import BLOCK_TYPES, GROUP, in_eight_bits, packed

mx = pytest.importorskip("mlx.core", reason="mlx is not installed")
EXACT = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
ROWS, COLUMNS = 8, 512


def normal(seed: int = 0) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    return rng.normal(0, 0.05, (ROWS, COLUMNS)).astype(np.float32)


def k_blocks(kind: str, seed: int = 0) -> NDArray[np.uint8]:
    """Random blocks of a K type, with scales as models have them."""
    block = BLOCK_TYPES[kind]
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, (ROWS * COLUMNS // block.weights, block.size), dtype=np.uint8)
    sizes = rng.uniform(1e-4, 1e-2, (len(raw), 2)).astype(np.float16).view(np.uint8)
    if kind == "Q6_K":
        raw[:, 208:210] = sizes[:, :2]
    else:
        raw[:, :4] = sizes
    return raw.reshape(ROWS, -1)


def as_mlx_reads(kind: str, raw: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Weights out of what the converter stores."""
    block = BLOCK_TYPES[kind]
    groups = block.unpack(raw.reshape(-1, block.size))
    words = mx.array(packed(groups.q.reshape(ROWS, COLUMNS), block.bits))
    scale, bias = (
        mx.array(x.reshape(ROWS, -1).astype(np.float16)).astype(mx.float32)
        for x in (groups.scale, groups.bias)
    )
    return np.array(mx.dequantize(words, scale, bias, group_size=GROUP, bits=block.bits))


def as_gguf_reads(kind: str, raw: NDArray[np.uint8]) -> NDArray[Any]:
    return gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind])


@pytest.mark.parametrize("kind", EXACT)
def test_these_kinds_lose_nothing(kind: str) -> None:
    raw = gguf.quants.quantize(normal(), gguf.GGMLQuantizationType[kind])
    assert np.array_equal(as_mlx_reads(kind, raw), as_gguf_reads(kind, raw))


@pytest.mark.parametrize("kind", EXACT)
def test_scales_of_either_sign_lose_nothing(kind: str) -> None:
    raw = gguf.quants.quantize(-3 * normal(1), gguf.GGMLQuantizationType[kind])
    assert np.array_equal(as_mlx_reads(kind, raw), as_gguf_reads(kind, raw))


@pytest.mark.parametrize("kind", ["Q4_K", "Q5_K"])
def test_of_k_quants_only_the_scales_are_rounded(kind: str) -> None:
    raw = k_blocks(kind)
    block = BLOCK_TYPES[kind]
    groups = block.unpack(raw.reshape(-1, block.size))
    whole = (groups.q * groups.scale + groups.bias).reshape(ROWS, COLUMNS)
    expected = as_gguf_reads(kind, raw)
    assert np.abs(whole - expected).max() <= 1e-6 * np.abs(expected).max()
    rounding = 2.0**-11 * (2**block.bits * np.abs(groups.scale) + np.abs(groups.bias))
    error = np.abs(as_mlx_reads(kind, raw) - expected).reshape(groups.q.shape)
    assert (error <= rounding).all()


def test_q6_k_keeps_more_steps_than_it_had() -> None:
    raw = k_blocks("Q6_K")
    expected = as_gguf_reads("Q6_K", raw)
    groups = expected.reshape(-1, GROUP)
    span = groups.max(axis=1) - groups.min(axis=1)
    error = np.abs(as_mlx_reads("Q6_K", raw) - expected).reshape(-1, GROUP).max(axis=1)
    assert (error <= span / 255).all()


def test_groups_of_equal_weights_stay_equal() -> None:
    groups = in_eight_bits(np.full((2, 1, GROUP), 0.5, np.float32))
    assert np.array_equal(groups.q * groups.scale + groups.bias, np.full((2, 1, GROUP), 0.5))


@pytest.mark.parametrize("bits", [4, 5, 8])
def test_numbers_lie_where_mlx_looks_for_them(bits: int) -> None:
    q = np.random.default_rng(bits).integers(0, 2**bits, (4, 64)).astype(np.uint8)
    one, none = mx.ones((4, 2)), mx.zeros((4, 2))
    found = mx.dequantize(mx.array(packed(q, bits)), one, none, group_size=GROUP, bits=bits)
    assert np.array_equal(np.array(found), q)
