"""Weights in the blocks of GGUF, as the numbers that MLX packs.

MLX keeps a group of 32 weights as whole numbers q, one scale and one bias: w = scale * q + bias.
Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 are the same in other words, so nothing is lost. Q4_K and Q5_K are
too, but for scales, which are products of two numbers and are rounded to float16. Q6_K shares its
scales between 16 weights, which MLX has not; it becomes 8 bits, which are finer than its own six.
Source: ggml-quants.c and ggml-common.h of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

GROUP: Final = 32
_FOUR, _LOW = np.uint8(4), np.uint8(15)  # bits of half a byte, and all of them set
Raw = NDArray[np.uint8]
Float = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Groups:
    """Some blocks. q: uint8 [blocks, groups, 32]. scale, bias: float32 [blocks, groups, 1]."""

    q: NDArray[np.uint8]
    scale: Float
    bias: Float


@dataclass(frozen=True, slots=True)
class BlockType:
    """How GGUF stores a kind of weights, and with how many bits MLX keeps them.

    size: bytes of one block. unpack: raw blocks, uint8 [blocks, size], to groups.
    """

    weights: int
    size: int
    bits: int
    unpack: Callable[[Raw], Groups]


def _halves(raw: Raw) -> Float:
    """float16 numbers of two bytes each, float32 [blocks, n]."""
    values: Float = np.ascontiguousarray(raw).view(np.float16).astype(np.float32)
    return values


def _nibbles(raw: Raw) -> Raw:
    """uint8 [blocks, groups, 32]: the low halves of 16 or 32 bytes, then the high ones."""
    half = min(GROUP, raw.shape[1])
    both = raw.reshape(len(raw), -1, 1, half) >> np.array([0, 4], np.uint8).reshape(2, 1)
    return (both & _LOW).reshape(len(raw), -1, GROUP)


def _symmetric(d: Float, q: NDArray[np.uint8], middle: int) -> Groups:
    scale = d.reshape(len(q), 1, 1)
    return Groups(q, scale, -middle * scale)


def _q4_0(raw: Raw) -> Groups:
    return _symmetric(_halves(raw[:, :2]), _nibbles(raw[:, 2:]), 8)


def _q4_1(raw: Raw) -> Groups:
    scale, bias = _halves(raw[:, :2]), _halves(raw[:, 2:4])
    return Groups(_nibbles(raw[:, 4:]), scale[:, :, None], bias[:, :, None])


def _fifth(raw: Raw) -> Raw:
    """The fifth bits of 32 weights, one from each bit of four bytes; uint8 [blocks, 1, 32]."""
    bits = np.unpackbits(np.ascontiguousarray(raw), axis=1, bitorder="little")
    return bits.reshape(len(raw), 1, GROUP) << _FOUR


def _q5_0(raw: Raw) -> Groups:
    return _symmetric(_halves(raw[:, :2]), _nibbles(raw[:, 6:]) | _fifth(raw[:, 2:6]), 16)


def _q5_1(raw: Raw) -> Groups:
    scale, bias = _halves(raw[:, :2]), _halves(raw[:, 2:4])
    q = _nibbles(raw[:, 8:]) | _fifth(raw[:, 4:8])
    return Groups(q, scale[:, :, None], bias[:, :, None])


def _q8_0(raw: Raw) -> Groups:
    q = (raw[:, 2:].astype(np.int16) ^ 128).astype(np.uint8)  # int8 + 128
    return _symmetric(_halves(raw[:, :2]), q.reshape(len(raw), 1, GROUP), 128)


def _k_scales(raw: Raw) -> tuple[Float, Float]:
    """Scale and bias of the eight groups of a block; raw: its first 16 bytes."""
    d, least = _halves(raw[:, :2]), _halves(raw[:, 2:4])
    low, middle, high = raw[:, 4:8], raw[:, 8:12], raw[:, 12:16]
    scale = np.concatenate([low & 63, (high & 15) | ((low >> 2) & 48)], axis=1)
    bias = np.concatenate([middle & 63, (high >> 4) | ((middle >> 2) & 48)], axis=1)
    return (d * scale)[:, :, None], (-least * bias)[:, :, None]


def _q4_k(raw: Raw) -> Groups:
    return Groups(_nibbles(raw[:, 16:]), *_k_scales(raw))


def _q5_k(raw: Raw) -> Groups:
    high = raw[:, 16:48].reshape(len(raw), 1, GROUP)
    high = (high >> np.arange(8, dtype=np.uint8).reshape(8, 1)) & np.uint8(1)
    return Groups(_nibbles(raw[:, 48:]) | (high << _FOUR), *_k_scales(raw))


def _q6_k(raw: Raw) -> Groups:
    blocks = len(raw)
    low = raw[:, :128].reshape(blocks, 2, 1, 64) >> np.array([0, 4], np.uint8).reshape(2, 1)
    high = raw[:, 128:192].reshape(blocks, 2, 1, GROUP)
    high = (high >> np.array([0, 2, 4, 6], np.uint8).reshape(4, 1)) & np.uint8(3)
    q = (low & _LOW).reshape(blocks, 8, GROUP) | (high.reshape(blocks, 8, GROUP) << _FOUR)
    scales = raw[:, 192:208].view(np.int8).astype(np.float32) * _halves(raw[:, 208:210])
    signed = q.reshape(blocks, 16, 16).astype(np.float32) - 32
    return in_eight_bits((signed * scales[:, :, None]).reshape(blocks, 8, GROUP))


def in_eight_bits(weights: Float) -> Groups:
    """Groups of any weights, float32 [..., 32], with 256 steps from the least to the greatest."""
    least = weights.min(axis=-1, keepdims=True)
    scale = (weights.max(axis=-1, keepdims=True) - least) / 255
    # as they will be stored, so that rounding them is made up for
    scale, least = (x.astype(np.float16).astype(np.float32) for x in (scale, least))
    steps = np.where(scale > 0, scale, 1)
    q = np.rint((weights - least) / steps).clip(0, 255).astype(np.uint8)
    return Groups(q, scale, least)


BLOCK_TYPES: Final[Mapping[str, BlockType]] = {
    "Q4_0": BlockType(32, 18, 4, _q4_0),
    "Q4_1": BlockType(32, 20, 4, _q4_1),
    "Q5_0": BlockType(32, 22, 5, _q5_0),
    "Q5_1": BlockType(32, 24, 5, _q5_1),
    "Q8_0": BlockType(32, 34, 8, _q8_0),
    "Q4_K": BlockType(256, 144, 4, _q4_k),
    "Q5_K": BlockType(256, 176, 5, _q5_k),
    "Q6_K": BlockType(256, 210, 8, _q6_k),
}


def packed(q: NDArray[np.uint8], bits: int) -> NDArray[np.uint32]:
    """Whole numbers of so many bits one after the other, uint32 [rows, columns * bits / 32].

    q: uint8 [rows, columns].
    """
    if bits == 8:
        small: NDArray[np.uint8] = q
    elif bits == 4:
        small = q[:, ::2] | (q[:, 1::2] << _FOUR)
    else:
        each = np.unpackbits(q[:, :, None], axis=2, bitorder="little")[:, :, :bits]
        small = np.packbits(each.reshape(len(q), -1), axis=1, bitorder="little")
    words: NDArray[Any] = np.ascontiguousarray(small).view("<u4")
    return words
