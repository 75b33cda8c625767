"""mlx-lm's own greedy loop, generate_step."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import can_trim_prompt_cache, make_prompt_cache, trim_prompt_cache

from edgespec.decoding.draft import Tokens
from edgespec.decoding.history import TokenHistory, common_prefix
from edgespec.errors import BadInput
from edgespec_mlx.failures import FAILURES, as_told, whole_or_empty
from edgespec_mlx.session import Runner


class MlxPlainLoop:
    """generate_step with the library's own caches, in the pieces in which a session reads."""

    def __init__(self, runner: Runner, room: int) -> None:
        self._runner, self._room = runner, room
        self.forget()

    def answer(self, prompt: Tokens, max_tokens: int, end_tokens: Collection[int]) -> Iterator[int]:
        if not 0 < len(prompt) < self._room:
            raise BadInput(
                f"The prompt has {len(prompt)} tokens and the context holds {self._room}."
                " Shorten it, or raise --context."
            )
        count = min(max_tokens, self._room - len(prompt))
        return self._whole_answer(np.asarray(prompt, dtype=np.int32), count, end_tokens)

    def forget(self) -> None:
        caches, cached = make_prompt_cache(self._runner.module), TokenHistory()
        self._caches, self._cached = caches, cached

    def close(self) -> None:
        """Let go of weights and cache; the loop is of no use afterwards."""
        self._runner, self._caches = self._runner.emptied(), []
        self._cached.truncate(0)

    def _whole_answer(
        self, prompt: Tokens, count: int, end_tokens: Collection[int]
    ) -> Iterator[int]:
        with whole_or_empty(self.forget):
            yield from self._answer(prompt, count, end_tokens)

    def _answer(self, prompt: Tokens, count: int, end_tokens: Collection[int]) -> Iterator[int]:
        from mlx_lm.generate import generate_step

        self._keep(common_prefix(self._cached.array, prompt[:-1]))
        tokens = mx.array(prompt[len(self._cached) :])
        self._cached.extend(prompt[len(self._cached) :].tolist())
        steps = generate_step(
            tokens,
            self._runner.module,
            self._runner.stream,
            max_tokens=count,
            prompt_cache=self._caches,
            prefill_step_size=self._runner.chunk,
        )
        try:
            for token, _ in steps:
                self._cached.extend([int(token)])  # it is being read already
                yield int(token)
                if token in end_tokens:
                    return
        except FAILURES as error:
            self.forget()
            raise as_told(error) from error

    def _keep(self, wanted: int) -> None:
        """Drop what the cache holds beyond `wanted` tokens, or all where it cannot go back."""
        surplus = len(self._cached) - wanted
        taken_back: Any = 0
        if surplus and can_trim_prompt_cache(self._caches):
            taken_back = trim_prompt_cache(self._caches, surplus)
        if taken_back == surplus:
            self._cached.truncate(wanted)
        else:
            self.forget()
