"""Weights loaded by llama.cpp, and the sessions that use them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from edgespec.backends import Placement, SessionOptions, physical_cores
from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.session import CPU_CHUNK, GPU_CHUNK, Caps
from edgespec.errors import BackendFailed, BadInput, OutOfMemory
from edgespec_llamacpp.batch import LlamaBatch
from edgespec_llamacpp.library import (
    build,
    errors_since,
    gpu_devices,
    interrupts_wait,
    library,
    library_version,
    log_mark,
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

    def __init__(self, handle: Any, path: Path, placement: Placement) -> None:
        self._lib, self._handle, self._path = library(), handle, path
        self.tokenizer = LlamaTokenizer(handle)
        self._gpus = gpu_devices() if placement.gpu_layers != 0 else ()
        self._opened: list[LlamaSession | LlamaPlainLoop | LlamaBatch] = []

    @property
    def device(self) -> str:
        if self._gpus:
            return ", ".join(gpu.description for gpu in self._gpus)
        return f"CPU, {physical_cores()} cores"

    @property
    def identity(self) -> str:
        stat = self._path.stat()
        file = (self._path.name, stat.st_size, stat.st_mtime_ns)
        return "|".join(map(str, (*file, library_version(), self.device, build())))

    def session(self, options: SessionOptions) -> LlamaSession:
        chunk = self._chunk
        context = self._context(options, self._parameters(options, chunk))
        rollback = int(self._lib.llama_n_rs_seq(context)) if self._has_state() else None
        tree = options.rows > 1 and rollback is None
        caps = Caps(self.tokenizer.vocab, options.context, options.rows, tree, rollback)
        session = LlamaSession(context, caps, chunk, CATCH_UP if options.lazy else 0)
        self._opened.append(session)
        session.caps = self._probed(session)
        return session

    def plain_loop(self, options: SessionOptions) -> LlamaPlainLoop:
        parameters = self._parameters(options, self._chunk)
        parameters.n_seq_max, parameters.kv_unified, parameters.n_rs_seq = 1, False, 0
        context = self._context(options, parameters)
        loop = LlamaPlainLoop(context, self._chunk, options.context)
        self._opened.append(loop)
        return loop

    def batch(self, slots: int, context: int, threads: int | None = None) -> LlamaBatch:
        """See edgespec.train.batch.OffersBatches."""
        options = SessionOptions(slots * context, threads, rows=slots)
        parameters = self._parameters(options, slots)
        parameters.n_seq_max, parameters.kv_unified, parameters.n_rs_seq = slots, False, 0
        opened = self._context(options, parameters)
        batch = LlamaBatch(opened, slots, context, self.tokenizer.vocab)
        self._opened.append(batch)
        return batch

    def close(self) -> None:
        for opened in self._opened:
            opened.close()
        self._opened.clear()
        handle, self._handle = self._handle, None  # never freed twice
        if handle is not None:
            self._lib.llama_model_free(handle)

    @property
    def _chunk(self) -> int:
        return GPU_CHUNK if self._gpus else CPU_CHUNK

    def _context(self, options: SessionOptions, parameters: Any) -> Any:
        context: Any = None
        mark = log_mark()
        try:
            with interrupts_wait():
                context = self._lib.llama_init_from_model(self._handle, parameters)
        except BaseException:  # Ctrl+C, when the call was over
            if context:
                self._lib.llama_free(context)
            raise
        if context:
            return context
        reason = errors_since(mark, 1)
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
        kv_type = self._kv_type(options)
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

    def _kv_type(self, options: SessionOptions) -> str:
        """The CPU's attention sums a single row of f16 or f32 in another order than several rows
        once the text is longer than 256 tokens; bf16 has one way for all widths, at the same size.
        """
        if options.kv_type != "auto":
            return options.kv_type
        return "f16" if self._gpus or options.flash_attention == "off" or options.lazy else "bf16"

    def _probed(self, session: LlamaSession) -> Caps:
        """What this cache can really take back, tried out on it."""
        caps = session.caps
        if caps.rollback is None and not self._lib.llama_model_n_swa(self._handle):
            return caps
        rollback = caps.rollback if caps.rows > 2 and _rolls_back(session, 2) else 0
        return replace(caps, tree=caps.tree and rollback is None, rollback=rollback)


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
