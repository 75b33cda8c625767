"""Weights loaded by llama.cpp, and the sessions that use them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from edgespec.backends import SessionOptions, physical_cores
from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.session import CPU_CHUNK, GPU_CHUNK, Caps
from edgespec.errors import BackendFailed, BadInput, OutOfMemory
from edgespec_llamacpp.batch import LlamaBatch
from edgespec_llamacpp.library import (
    build,
    clear_log,
    gpu_devices,
    interrupts_wait,
    last_errors,
    library,
    library_version,
)
from edgespec_llamacpp.plain import LlamaPlainLoop
from edgespec_llamacpp.session import MAX_LEAVES, LlamaSession
from edgespec_llamacpp.tokenizer import LlamaTokenizer

KV_TYPES = {"f32": 0, "f16": 1, "bf16": 30, "q8_0": 8, "q4_0": 2}  # enum ggml_type
FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}  # enum llama_flash_attn_type
CATCH_UP = 8  # unread tokens of a drafter that ride with its next pass
SNAPSHOTS = 16  # states kept for taking guesses back, where a model has a recurrent state


class LlamaModel:
    """One GGUF file in memory."""

    def __init__(self, handle: Any, path: Path) -> None:
        self._lib, self._handle, self._path = library(), handle, path
        self.tokenizer = LlamaTokenizer(handle)
        self._sessions: list[LlamaSession] = []
        self._plain_loops: list[LlamaPlainLoop] = []
        self._batches: list[LlamaBatch] = []

    @property
    def device(self) -> str:
        gpus = gpu_devices()
        if gpus:
            return ", ".join(gpu.description for gpu in gpus)
        return f"CPU, {physical_cores()} cores"

    @property
    def identity(self) -> str:
        stat = self._path.stat()
        file = (self._path.name, stat.st_size, stat.st_mtime_ns)
        return "|".join(map(str, (*file, library_version(), self.device, build())))

    def session(self, options: SessionOptions) -> LlamaSession:
        chunk = GPU_CHUNK if gpu_devices() else CPU_CHUNK
        context = self._context(options, self._parameters(options, chunk))
        tree = options.rows > 1 and not self._has_state()
        caps = Caps(self.tokenizer.vocab, options.context, options.rows, tree=tree)
        session = LlamaSession(context, caps, chunk, CATCH_UP if options.lazy else 0)
        session.caps = self._probed(session, caps, int(self._lib.llama_n_rs_seq(context)))
        self._sessions.append(session)
        return session

    def plain_loop(self, options: SessionOptions) -> LlamaPlainLoop:
        chunk = GPU_CHUNK if gpu_devices() else CPU_CHUNK
        parameters = self._parameters(options, chunk)
        parameters.n_seq_max, parameters.kv_unified, parameters.n_rs_seq = 1, False, 0
        context = self._context(options, parameters)
        self._plain_loops.append(LlamaPlainLoop(context, chunk, options.context))
        return self._plain_loops[-1]

    def batch(self, slots: int, context: int, threads: int | None = None) -> LlamaBatch:
        """See edgespec.train.batch.OffersBatches."""
        options = SessionOptions(slots * context, threads, rows=slots)
        parameters = self._parameters(options, slots)
        parameters.n_seq_max, parameters.kv_unified, parameters.n_rs_seq = slots, False, 0
        opened = self._context(options, parameters)
        self._batches.append(LlamaBatch(opened, slots, context, self.tokenizer.vocab))
        return self._batches[-1]

    def close(self) -> None:
        for session in self._sessions:
            session.close()
        for loop in self._plain_loops:
            loop.close()
        for batch in self._batches:
            batch.close()
        self._sessions.clear()
        self._plain_loops.clear()
        self._batches.clear()
        handle, self._handle = self._handle, None  # never freed twice
        if handle is not None:
            self._lib.llama_model_free(handle)

    def _context(self, options: SessionOptions, parameters: Any) -> Any:
        clear_log()
        with interrupts_wait():
            context = self._lib.llama_init_from_model(self._handle, parameters)
        if context:
            return context
        reason = last_errors(1)
        if "alloc" in reason:
            raise OutOfMemory(
                f"No cache of {options.context} tokens for {self._path.name}: {reason}."
                " Try a shorter --context."
            )
        raise BadInput(
            f"llama.cpp does not keep such a cache for {self._path.name}: {reason}."
            " Leave --kv-type and --flash-attention at auto."
        )

    def _has_state(self) -> bool:
        recurrent = self._lib.llama_model_is_recurrent(self._handle)
        return bool(recurrent or self._lib.llama_model_is_hybrid(self._handle))

    def _parameters(self, options: SessionOptions, chunk: int) -> Any:
        kv_type = _kv_type(options)
        for name, table, value in (
            ("--kv-type", KV_TYPES, kv_type),
            ("--flash-attention", FLASH_ATTENTION, options.flash_attention),
        ):
            if value not in table:
                raise BadInput(f"{name} is '{value}'; it must be one of {', '.join(table)}.")
        threads = options.threads or physical_cores()
        p = self._lib.llama_context_default_params()
        p.n_ctx = options.context
        p.n_batch = p.n_ubatch = chunk + options.rows
        p.n_outputs_max = p.n_outputs_max_per_seq = options.rows
        p.n_threads = p.n_threads_batch = threads
        p.type_k = p.type_v = KV_TYPES[kv_type]
        p.flash_attn_type = FLASH_ATTENTION[options.flash_attention]
        p.no_perf = True
        if self._has_state():
            p.n_rs_seq = SNAPSHOTS
        else:
            p.n_seq_max, p.kv_unified = min(MAX_LEAVES, max(1, options.rows - 1)), True
        return p

    def _probed(self, session: LlamaSession, caps: Caps, snapshots: int) -> Caps:
        """What this cache can really take back, tried out on it."""
        rollback = None if not self._has_state() else min(SNAPSHOTS, snapshots)
        if rollback is None and not self._lib.llama_model_n_swa(self._handle):
            return caps
        rollback = rollback if caps.rows > 2 and _rolls_back(session, 2) else 0
        return replace(caps, tree=caps.tree and rollback is None, rollback=rollback)


def _kv_type(options: SessionOptions) -> str:
    """The CPU's attention sums a single row of f16 or f32 in another order than several rows
    once the text is longer than 256 tokens; bf16 has one way for all widths, at the same size.
    """
    if options.kv_type != "auto":
        return options.kv_type
    return "f16" if gpu_devices() or options.flash_attention == "off" or options.lazy else "bf16"


def _rolls_back(session: LlamaSession, guesses: int) -> bool:
    """Whether scores after guesses were taken back equal those without the guesses."""
    prompt = np.array([1, 2, 3], dtype=np.int32) % session.caps.vocab
    rows = []
    for draft in (EMPTY, Draft.chain([5 % session.caps.vocab] * guesses, "probe")):
        list(session.prefill(prompt[:1]))
        list(session.prefill(prompt))
        session.verify(draft)
        try:
            session.commit((), int(prompt[0]))
        except BackendFailed:  # the cache says itself that it cannot
            session.reset()
            return False
        rows.append(session.verify(EMPTY).logits(ROOT).copy())
        session.reset()
    scale = float(np.abs(rows[0]).max()) or 1.0
    return float(np.abs(rows[0] - rows[1]).max()) <= 1e-2 * scale
