"""The drafter that is trained: a llama of a few million parameters, in torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from edgespec.train.records import CONTEXT


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a drafter; the names are those of a llama's configuration."""

    vocab: int
    width: int = 384
    layers: int = 3
    feed_forward: int = 1024
    heads: int = 6
    kv_heads: int = 2
    head: int = 64
    rope_base: float = 10_000.0
    context: int = CONTEXT
    epsilon: float = 1e-5


class Student(nn.Module):
    """Token ids to the states that its output table scores.

    Embedding and output table are apart: tied, so small a model would learn both badly.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Parameter(torch.randn(shape.vocab, shape.width))
        self.output = nn.Parameter(0.02 * torch.randn(shape.vocab, shape.width))
        self.norm = nn.Parameter(torch.ones(shape.width))
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        cos, sin = _turns(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: [texts, n]. Returns states, [texts, n, width]."""
        n = ids.shape[1]
        x = F.embedding(ids, self.embedding)
        for block in self.blocks:
            x = block(x, self.cos[:n], self.sin[:n])
        return _normed(x, self.norm, self.shape.epsilon)

    def scores(self, states: Tensor) -> Tensor:
        return F.linear(states, self.output)


class Block(nn.Module):
    """Attention and a gated feed-forward layer, each behind a norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width, inner = shape.width, shape.heads * shape.head
        shrink = 1 / math.sqrt(2 * shape.layers)  # of what is added to the residual stream
        self.q = _matrix(inner, width)
        self.k = _matrix(shape.kv_heads * shape.head, width)
        self.v = _matrix(shape.kv_heads * shape.head, width)
        self.o = _matrix(width, inner, shrink)
        self.gate = _matrix(shape.feed_forward, width)
        self.up = _matrix(shape.feed_forward, width)
        self.down = _matrix(width, shape.feed_forward, shrink)
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.feed_forward_norm = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        shape = self.shape
        h = _normed(x, self.attention_norm, shape.epsilon)
        q = _turned(_heads(F.linear(h, self.q), shape.heads), cos, sin)
        k = _turned(_heads(F.linear(h, self.k), shape.kv_heads), cos, sin)
        v = _heads(F.linear(h, self.v), shape.kv_heads)
        group = shape.heads // shape.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        seen = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, is_causal=True)
        x = x + F.linear(seen.transpose(1, 2).flatten(2), self.o)
        h = _normed(x, self.feed_forward_norm, shape.epsilon)
        return x + F.linear(F.silu(F.linear(h, self.gate)) * F.linear(h, self.up), self.down)


def _matrix(rows: int, columns: int, scale: float = 1.0) -> nn.Parameter:
    return nn.Parameter(torch.randn(rows, columns) * (scale / math.sqrt(columns)))


def _normed(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    wide = x.float()
    scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return (scaled * weight).to(x.dtype)


def _heads(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _turns(shape: Shape) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the rotary angles, [context, head / 2]."""
    half = torch.arange(0, shape.head, 2, dtype=torch.float32) / shape.head
    angles = torch.arange(shape.context)[:, None] / shape.rope_base**half
    return angles.cos(), angles.sin()


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions, first half against second half. Source: arXiv:2104.09864."""
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)
