"""Weights loaded by mlx-lm, and the sessions that use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakSet

import mlx.core as mx
import psutil

from edgespec.backends import SessionOptions
from edgespec.decoding.session import CPU_CHUNK, GPU_CHUNK, Caps
from edgespec.errors import BadInput, OutOfMemory
from edgespec.text.tokenizer import Tokenizer
from edgespec_mlx.cache import Caches
from edgespec_mlx.plain import MlxPlainLoop
from edgespec_mlx.probe import Traits, probe, works_with
from edgespec_mlx.rows import GROUP, MakeRows, PackedRows, PlainRows, RowsReadPacked
from edgespec_mlx.session import MlxSession, Runner
from edgespec_mlx.tap import Tap
from edgespec_mlx.trees import give_each_row_its_position

FLOATS = {"f32": mx.float32, "f16": mx.float16, "bf16": mx.bfloat16}
PACKED = {"q8_0": 8, "q4_0": 4}  # bits; groups of 32, as in the formats of these names
KV_TYPES = ("auto", *FLOATS, *PACKED)
FLASH_ATTENTION = ("auto", "on", "off")  # MLX has one attention, which needs no such choice
CATCH_UP = 8  # unread tokens of a drafter that ride with its next pass


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
        self.tokenizer, self._facts = tokenizer, facts
        mx.eval(module.parameters())  # weights are read by whoever wants them first
        give_each_row_its_position(module)
        module.eval()
        gpu = mx.default_device().type == mx.gpu
        stream = mx.new_thread_unsafe_stream(mx.default_device())
        self._runner = Runner(module, stream, GPU_CHUNK if gpu else CPU_CHUNK)
        self._tap: Tap | None = None
        self._opened = WeakSet[MlxSession | MlxPlainLoop]()  # one that nobody uses may go

    @property
    def device(self) -> str:
        return self._facts.device

    @property
    def identity(self) -> str:
        return self._facts.identity

    @cached_property
    def traits(self) -> Traits:
        return probe(self._runner, self._facts.vocab, self._facts.hidden_size)

    def session(self, options: SessionOptions) -> MlxSession:
        make = self._caches(options)
        self._check_memory(make, options.context)
        traits = self.traits
        caps = Caps(
            self._facts.vocab,
            options.context,
            options.rows,
            tree=traits.tree and options.rows > 2,
            rollback=traits.rollback,
            hidden=traits.hidden,
        )
        session = MlxSession(self._runner, make, caps, CATCH_UP if options.lazy else 0)
        self._opened.add(session)
        return session

    def plain_loop(self, options: SessionOptions) -> MlxPlainLoop:
        loop = MlxPlainLoop(self._runner, options.context)
        self._opened.add(loop)
        return loop

    def watch(self, session: MlxSession, layers: tuple[int, ...]) -> None:
        """Let this session's scores come with the hidden states of some of `caps.hidden`."""
        known = session.caps.hidden or ()
        if missing := [layer for layer in layers if layer not in known]:
            raise BadInput(
                f"{self._facts.name} has no hidden states of layers {missing} to hand out;"
                f" it has those of {len(known)} layers."
            )
        if self._tap is None:
            self._tap = Tap(self._runner.module.layers).__enter__()
        session.watch(self._tap, layers)

    def close(self) -> None:
        for opened in tuple(self._opened):
            opened.close()
        if self._tap is not None:
            self._tap.__exit__()
            self._tap = None
        self._runner = self._runner.emptied()
        mx.clear_cache()

    def _caches(self, options: SessionOptions) -> Callable[[], Caches]:
        """Makes empty caches of the wanted kind."""
        module = self._runner.module
        for name, known, value in (
            ("--kv-type", KV_TYPES, options.kv_type),
            ("--flash-attention", FLASH_ATTENTION, options.flash_attention),
        ):
            if value not in known:
                raise BadInput(f"{name} is '{value}'; it must be one of {', '.join(known)}.")
        if not self.traits.own_caches:
            return lambda: Caches.foreign(module)
        make = self._rows(options.kv_type)
        return lambda: Caches.own(module, make)

    def _rows(self, kv_type: str) -> MakeRows:
        if kv_type == "auto":
            return PlainRows
        if kv_type in FLOATS:
            return lambda: PlainRows(FLOATS[kv_type])
        bits = PACKED[kv_type]
        ways: tuple[MakeRows, ...] = (lambda: RowsReadPacked(bits), lambda: PackedRows(bits))
        for make in ways:
            if works_with(self._runner, self._facts.vocab, make):
                return make
        raise BadInput(
            f"{self._facts.name} cannot keep its cache as {kv_type}: the width of its heads must be"
            f" a multiple of {GROUP}. Leave --kv-type at auto."
        )

    def _check_memory(self, make: Callable[[], Caches], context: int) -> None:
        trial = make()
        with mx.stream(self._runner.stream):
            self._runner.module(mx.array([[0]]), cache=trial.given)
        need, have = trial.bytes_for(context), psutil.virtual_memory().total
        if need > have:
            raise OutOfMemory(
                f"No cache of {context} tokens for {self._facts.name}: it takes"
                f" {need / 2**30:.1f} GiB and this machine has {have / 2**30:.1f} GiB."
                " Try a shorter --context."
            )
