"""Sessions with what their passes cost here, measured once for each model and way of running it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

from edgespec import backends
from edgespec.backends import Backend, LoadedModel, SessionOptions
from edgespec.decoding.session import Session
from edgespec.errors import EdgespecError
from edgespec.models.available import busy
from edgespec.models.identity import fingerprint, label_of
from edgespec.models.processor import processor_identity
from edgespec.models.store import cache_dir, write_atomically
from edgespec.options import LoadOptions
from edgespec.planning.cost import CostCurve
from edgespec.planning.measure import WITHIN_S, Measurement, measure, rows_at_most
from edgespec.planning.strict import NarrowSession, StrictSession

SAMPLE = (
    " Write a short note about the tides: what moves them, when they are highest, and a list of"
    " three things to bring on a walk along the shore."
)
_SAMPLE_TOKENS = 1024
_STRICT_TOKENS = 320  # past 256, where some attention kernels change
_PATIENCE = 2  # times the time meant for measuring, beyond which nothing is measured twice


@dataclass(frozen=True, slots=True)
class Measured:
    """A session, its cost curve and what was measured of it."""

    session: Session
    cost: CostCurve
    measurement: Measurement


def measured_session(
    model: LoadedModel, path: Path, options: LoadOptions, report: Callable[[str], None]
) -> Measured:
    """A session of `model` and its cost curve, from the cache where it was measured before."""
    assert options.context is not None
    settings = SessionOptions(
        options.context, options.threads, options.kv_type, options.flash_attention
    )
    session: Session = model.session(settings)
    text = model.tokenizer.encode(SAMPLE * 40, special=False)
    text = text[: min(_SAMPLE_TOKENS, session.caps.context // 2)]
    sample = _Sample(label_of(path), text, min(_STRICT_TOKENS, len(text)) if options.strict else 0)
    file = _measurement_file(model, path, options)
    measurement = _measurement(session, sample, file, report)
    if not options.strict:
        session = _as_compared(session, measurement)
        return Measured(session, _curve(measurement, measurement.seconds), measurement)
    strict = StrictSession(session, measurement.strict_widths(session.caps.context))
    cost = {n: measurement.seconds[strict.width(n)] for n in range(1, strict.caps.rows + 1)}
    return Measured(strict, _curve(measurement, cost), measurement)


@dataclass(frozen=True, slots=True)
class _Sample:
    """Text to measure a model on, and how many of its tokens must be used. label: the model's."""

    label: str
    text: list[int]
    least: int


def _measurement(
    session: Session, sample: _Sample, file: Path, report: Callable[[str], None]
) -> Measurement:
    """What was measured before, as far as it serves, or else what is measured now."""
    kept = _remembered(file)
    if kept is not None and kept.at_rest and kept.on_so_much(len(sample.text), sample.least):
        return kept
    at_rest = not busy()
    if kept is not None and not at_rest:
        asked = 0 if kept.at_rest else len(sample.text)  # rest is worth more than a longer text
        if kept.on_so_much(asked, sample.least):
            return kept
    found = replace(_measured_now(session, sample, report, at_rest=at_rest), at_rest=at_rest)
    if not at_rest:
        report("other programs keep this machine busy; it is measured again when they do not")
    if at_rest or kept is None or not kept.at_rest:
        _remember(file, found, report)
    return found


def _measured_now(
    session: Session, sample: _Sample, report: Callable[[str], None], *, at_rest: bool
) -> Measurement:
    def expect(seconds: float) -> None:
        wait = f"{max(1, round(seconds))} s"
        wait = f"once, for about {wait}" if at_rest else f"for {wait} or more"
        report(f"measuring what a pass of {sample.label} costs here; {wait}")

    started = perf_counter()
    found = measure(session, sample.text, least=sample.least, expect=expect)
    taken_s = perf_counter() - started
    if at_rest and not found.plausible and taken_s < _PATIENCE * WITHIN_S:
        found = measure(session, sample.text, least=sample.least)  # said twice, it is believed
    return found


def _as_compared(session: Session, measurement: Measurement) -> Session:
    """Where all measured widths agree, a session that goes beyond none of them."""
    widest = max(measurement.seconds)
    if measurement.bit_exact and widest < rows_at_most(session):
        return NarrowSession(session, widest)
    return session


def _curve(measured: Measurement, seconds: Mapping[int, float]) -> CostCurve:
    return CostCurve(seconds, measured.context, measured.token_s)


def _measurement_file(model: LoadedModel, path: Path, options: LoadOptions) -> Path:
    identity = (
        version("edgespec"),
        fingerprint(path),
        model.identity,
        processor_identity(),  # two machines may share a cache
        options.threads,
        options.kv_type,
        options.flash_attention,
        options.gpu_layers,
        options.cpu_moe,
    )
    digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:24]
    return cache_dir() / "measured" / f"{digest}.json"


def made_on(backend: type[Backend]) -> str:
    """12 hexadecimal digits for what a decision by speed is valid for: processor, backend, its
    build and its devices."""
    here = (processor_identity(), backend.probe().identity)  # two machines may share a folder
    return hashlib.sha256(repr(here).encode()).hexdigest()[:12]


def chosen_on(target: Path, options: LoadOptions) -> str:
    """The same for the backend that runs a target. Raises: NotFound, BackendMissing."""
    return made_on(backends.find(options.backend, ("mlx" if os.path.isdir(target) else "gguf",)))


def _remember(file: Path, measurement: Measurement, report: Callable[[str], None]) -> None:
    """Keep a measurement; a cache that cannot be written costs the next start, not this one."""
    try:
        write_atomically(file, json.dumps(measurement.as_json()).encode())
    except EdgespecError as error:
        report(f"the measurement is not kept: {error}")


def _remembered(file: Path) -> Measurement | None:
    """A measurement of before; one that cannot be read is made again."""
    try:
        return Measurement.from_json(json.loads(file.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
