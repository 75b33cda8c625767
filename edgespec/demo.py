"""The pair `demo` in the number format that is fastest here."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from edgespec import backends
from edgespec.backends import Backend, Placement, Requantizes
from edgespec.errors import BackendFailed, EdgespecError
from edgespec.loading import DEFAULT_CONTEXT, Report
from edgespec.measuring import made_on, measured_session
from edgespec.models.available import busy
from edgespec.models.gguf import read_header
from edgespec.models.identity import fingerprint
from edgespec.models.installed import trained_dir
from edgespec.models.pairs import DEMO, Pair
from edgespec.models.store import cache_dir, find_demo, write_atomically
from edgespec.options import LoadOptions
from edgespec.planning.measure import Measurement

_FORMAT, _SHIPPED = "bf16", "shipped"
_DISTURBED = ", for now"  # decided while other programs kept the machine busy
_PATIENCE_S = 120.0
_WIDE_SHARE = 0.5  # rounds that are expected to check a draft of three


def best_format(pair: Pair, options: LoadOptions, report: Report) -> Pair:
    """The demo's weights as they are shipped, or in another format where passes are cheaper so.

    Decided once for each machine and build of the backend, by measurement at rest; the copy and
    the decision live in the cache.
    """
    if pair.name != DEMO and not _trained_for_it(pair):
        return pair
    backend = backends.find(options.backend)
    writer: object = backend
    if not isinstance(writer, Requantizes):
        return pair
    plain_name = pair.target.stem.rpartition(".")[0] or pair.target.stem
    folder = cache_dir() / "formats" / fingerprint(pair.target)
    copy = folder / f"{plain_name}-{_FORMAT}.gguf"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # two first runs at once would write one file twice
        with FileLock(folder / "lock", timeout=_PATIENCE_S):
            choice = _Choice(backend, writer, pair, copy, made_on(backend))
            return _decided(choice, options, report)
    except (OSError, Timeout, BackendFailed) as error:
        report(f"no {_FORMAT} copy in {folder} ({error}); answering with the weights as shipped")
        return pair


def _trained_for_it(pair: Pair) -> bool:
    """Whether this is the demo with a drafter that was trained here. Its weights alone, named as a
    file, are taken as they are."""
    if pair.draft is None or pair.target != find_demo():
        return False
    home = Path(os.path.realpath(trained_dir()))
    return home in Path(os.path.realpath(pair.draft)).parents


@dataclass(frozen=True, slots=True)
class _Choice:
    """The pair as shipped, and where its copy in another format lives. here: as made_on()."""

    backend: type[Backend]
    writer: Requantizes
    pair: Pair
    copy: Path
    here: str

    @property
    def decision(self) -> Path:
        return self.copy.with_suffix(f".{self.here}.choice")

    def remembered(self) -> str:
        """What was decided before; empty where nothing readable was."""
        try:
            return self.decision.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def remember(self, decision: str, report: Report) -> None:
        """Keep what was decided; where that cannot be written, the next start decides again."""
        try:
            write_atomically(self.decision, decision.encode())
        except EdgespecError as error:
            report(f"the choice of a number format is not kept: {error}")

    def copy_is_sound(self) -> bool:
        try:
            read_header(self.copy)
        except EdgespecError:
            return False
        return True


def _decided(choice: _Choice, options: LoadOptions, report: Report) -> Pair:
    pair, copy = choice.pair, choice.copy
    before = choice.remembered()
    if before.endswith(_DISTURBED) and busy():
        before = before.removesuffix(_DISTURBED)
    if before == _SHIPPED:
        return pair
    if not choice.copy_is_sound():
        report(f"writing a {_FORMAT} copy of {pair.target.name} to the cache; once, 270 MB")
        _write_copy(choice.writer, pair.target, copy)
    if before == _FORMAT:
        return replace(pair, target=copy)
    shipped, copied = _measured(choice.backend, (pair.target, copy), options, report)
    better = _round_seconds(copied) < _round_seconds(shipped)
    at_rest = shipped.at_rest and copied.at_rest
    decision = (_FORMAT if better else _SHIPPED) + ("" if at_rest else _DISTURBED)
    choice.remember(decision, report)
    if at_rest and not better:
        copy.unlink(missing_ok=True)
    return replace(pair, target=copy) if better else pair


def _write_copy(writer: Requantizes, source: Path, target: Path) -> None:
    """A reader sees no copy or a whole one."""
    unfinished = target.with_suffix(".part")
    try:
        writer.requantize(source, unfinished, _FORMAT)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _measured(
    backend: type[Backend], files: tuple[Path, Path], options: LoadOptions, report: Report
) -> list[Measurement]:
    """What passes of each of the files cost."""
    found: list[Measurement] = []
    for file in files:
        model = backend.load(file, Placement(options.gpu_layers, options.cpu_moe))
        try:
            small = replace(options, context=DEFAULT_CONTEXT, strict=False)
            found.append(measured_session(model, file, small, report).measurement)
        finally:
            model.close()
    return found


def _round_seconds(measurement: Measurement) -> float:
    seconds = measurement.seconds
    return (1 - _WIDE_SHARE) * seconds[1] + _WIDE_SHARE * seconds[4]
