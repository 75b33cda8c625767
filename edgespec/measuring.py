"""Sessions with what their passes cost here, measured once for each model and way of running it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from edgespec.backends import LoadedModel, SessionOptions
from edgespec.decoding.session import Session
from edgespec.errors import EdgespecError
from edgespec.models.available import busy
from edgespec.models.identity import fingerprint, label_of
from edgespec.models.store import cache_dir, write_atomically
from edgespec.options import LoadOptions
from edgespec.planning.cost import CostCurve
from edgespec.planning.measure import Measurement, measure
from edgespec.planning.strict import StrictSession

SAMPLE = (
    " Write a short note about the tides: what moves them, when they are highest, and a list of"
    " three things to bring on a walk along the shore."
)
_SAMPLE_TOKENS = 1024
_STRICT_TOKENS = 320  # past 256, where some attention kernels change


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
    sample = model.tokenizer.encode(SAMPLE * 40, special=False)
    sample = sample[: min(_SAMPLE_TOKENS, session.caps.context // 2)]
    file = _measurement_file(model, path, options)
    measurement = _remembered(file)
    least = min(_STRICT_TOKENS, len(sample)) if options.strict else 0
    if measurement is not None and not measurement.on_so_much(len(sample), least):
        measurement = None
    at_rest = (measurement is not None and measurement.at_rest) or not busy()
    if measurement is None or at_rest > measurement.at_rest:
        report(f"measuring what a pass of {label_of(path)} costs here; once, for some seconds")
        measurement = measure(session, sample, least=least)
        if at_rest and not measurement.plausible:
            measurement = measure(session, sample, least=least)  # what is said twice is believed
        measurement = replace(measurement, at_rest=at_rest)
        if not at_rest:
            report("other programs keep this machine busy; it is measured again when they do not")
        _remember(file, measurement, report)
    if not options.strict:
        return Measured(session, _curve(measurement, measurement.seconds), measurement)
    strict = StrictSession(session, measurement.strict_widths(session.caps.context))
    cost = {n: measurement.seconds[strict.width(n)] for n in range(1, strict.caps.rows + 1)}
    return Measured(strict, _curve(measurement, cost), measurement)


def _curve(measured: Measurement, seconds: Mapping[int, float]) -> CostCurve:
    return CostCurve(seconds, measured.context, measured.token_s)


def _measurement_file(model: LoadedModel, path: Path, options: LoadOptions) -> Path:
    identity = (
        fingerprint(path),
        model.identity,
        options.threads,
        options.kv_type,
        options.flash_attention,
        options.gpu_layers,
        options.cpu_moe,
    )
    digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:24]
    return cache_dir() / "measured" / f"{digest}.json"


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
