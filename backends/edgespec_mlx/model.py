"""Weights loaded by mlx-lm, and the sessions that use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgespec.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the loader knows of a model.

    name: for messages. identity: what measurements are valid for. context: the longest text that
    the model was made for. hidden_size: width of a layer's output.
    """

    name: str
    identity: str
    device: str
    context: int
    vocab: int
    hidden_size: int


class MlxModel:
    """One model's weights in memory.

    module: an mlx_lm model, an nn.Module with `layers`.
    """

    def __init__(self, module: Any, tokenizer: Tokenizer, facts: ModelFacts) -> None:
        self._module, self._facts = module, facts
        self.tokenizer = tokenizer

    @property
    def device(self) -> str:
        return self._facts.device

    @property
    def identity(self) -> str:
        return self._facts.identity

    def close(self) -> None:
        self._module = None
