"""The pair `demo` in the number format that is fastest here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from edgespec import backends
from edgespec.backends import Backend, Placement
from edgespec.loading import Report, measured_session
from edgespec.models.identity import fingerprint
from edgespec.models.pairs import DEMO, Pair
from edgespec.models.store import cache_dir, write_atomically
from edgespec.options import LoadOptions
from edgespec.planning.measure import Measurement

_FORMAT = "bf16"
_CONTEXT = 512
_WIDE_SHARE = 0.5  # rounds that are expected to check a draft of three


def best_format(pair: Pair, options: LoadOptions, report: Report) -> Pair:
    """`demo` as it is shipped, or its weights in another format where passes are cheaper so.

    Decided once a machine, by measurement; the copy and the decision live in the cache.
    """
    if pair.name != DEMO:
        return pair
    backend = backends.find(options.backend)
    plain_name = pair.target.stem.rpartition(".")[0] or pair.target.stem
    folder = cache_dir() / "formats" / fingerprint(pair.target)
    copy = folder / f"{plain_name}-{_FORMAT}.gguf"
    decision = copy.with_suffix(".choice")
    if not decision.exists():
        if not copy.exists():
            report(f"writing a {_FORMAT} copy of {pair.target.name} to the cache; once, 270 MB")
            _write_copy(backend, pair.target, copy)
        better = _compare(backend, (pair.target, copy), options, report)
        write_atomically(decision, (_FORMAT if better else "shipped").encode())
        if not better:
            copy.unlink(missing_ok=True)
    if decision.read_text() == _FORMAT and copy.exists():
        return replace(pair, target=copy)
    return pair


def _write_copy(backend: type[Backend], source: Path, target: Path) -> None:
    """A reader sees no copy or a whole one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".part")
    try:
        backend.requantize(source, unfinished, _FORMAT)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _compare(
    backend: type[Backend], files: tuple[Path, Path], options: LoadOptions, report: Report
) -> bool:
    """Whether the second file is expected to answer faster than the first."""
    expected: list[float] = []
    for file in files:
        model = backend.load(file, Placement(options.gpu_layers, options.cpu_moe))
        try:
            small = replace(options, context=_CONTEXT, strict=False)
            expected.append(
                _round_seconds(measured_session(model, file, small, report).measurement)
            )
        finally:
            model.close()
    return expected[1] < expected[0]


def _round_seconds(measurement: Measurement) -> float:
    seconds = measurement.seconds
    return (1 - _WIDE_SHARE) * seconds[1] + _WIDE_SHARE * seconds[4]
