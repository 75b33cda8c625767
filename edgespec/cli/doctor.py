"""`edgespec doctor`: what this machine has, which backend works, and what to do about the rest."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from shutil import which
from typing import TYPE_CHECKING, Any

import click

from edgespec.cli.costs import Costs, measured_costs
from edgespec.cli.install import install_line, rebuild_line
from edgespec.cli.machine import Gpu, Machine, apple_chip, gpus, this_machine
from edgespec.cli.options import Given, hide_all_but, shared_flags
from edgespec.cli.output import one_line, write, write_json
from edgespec.cli.planned import Planned, planned, planned_usually
from edgespec.errors import BackendMissing, BadInput, EdgespecError
from edgespec.models.sizes import size_text

if TYPE_CHECKING:
    from edgespec.backends import DeviceMemory

_PACKAGES = ("numpy", "llama-cpp-python", "mlx", "mlx-lm", "textual", "huggingface-hub")
_USED = (
    "target", "draft", "backend", "context", "threads", "gpu_layers", "draft_gpu_layers", "kv_type",
    "cpu_moe", "flash_attention", "fit", "strict",
)  # fmt: skip
_LLAMA_CPP = "llamacpp"
_MLX = "mlx"


class State(StrEnum):
    """Whether a backend can be used; the value is what JSON shows."""

    WORKS = "works"
    MISSING = "missing"
    BROKEN = "broken"
    UNSUPPORTED = "unsupported"  # made for another kind of machine


@dataclass(frozen=True, slots=True)
class Checked:
    """One backend.

    gpu: whether its build can use one at all. gpu_memory: of the GPUs that it uses. install: a
    line that helps.
    """

    name: str
    state: State
    version: str = ""
    devices: tuple[str, ...] = ()
    gpu: bool = False
    gpu_memory: tuple[DeviceMemory, ...] = ()
    message: str = ""
    install: str = ""


@dataclass(frozen=True, slots=True)
class Copies:
    """Models that were converted into the cache. size: bytes, of all."""

    count: int
    size: int


@dataclass(frozen=True, slots=True)
class Report:
    """All that the doctor found.

    tuned: what `edgespec tune` chose, a text for each target. plan: what a pair takes here.
    costs: what its passes cost.
    """

    machine: Machine
    gpus: tuple[Gpu, ...]
    backends: tuple[Checked, ...]
    demo: bool
    advice: tuple[str, ...]
    tuned: tuple[str, ...] = ()
    plan: Planned | None = None
    costs: Costs | None = None
    copies: Copies | None = None

    @property
    def healthy(self) -> bool:
        return any(backend.state is State.WORKS for backend in self.backends)


@click.command()
@click.argument("pair", required=False)
@click.option("--measure", is_flag=True, help="Load the pair; tell what passes cost and what pays.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@shared_flags
def doctor(given: Given, pair: str | None, measure: bool, as_json: bool) -> None:
    """Show what this machine has, which backend works, and what is missing.

    With a PAIR, a folder or a model file, also whether that fits into memory as it would be loaded;
    without one, what opens when none is named. Ends with 0 when at least one backend works.
    """
    _check(given)
    report = examine()
    gpus = _gpus_of(given.values["backend"], report.backends)
    if pair is None and not given.on_line & {"target", "draft"}:
        plan = planned_usually(given, gpus)
    else:
        plan = planned(given.which(pair), given.load_options(), gpus)
    costs = measured_costs(given, given.which(pair)) if measure else None
    report = replace(report, plan=plan, costs=costs)
    if as_json:
        write_json(_as_dict(report), indent=2)
    else:
        write("\n".join(one_line_each(report)) + "\n")
    click.get_current_context().exit(0 if report.healthy else 1)


hide_all_but(_USED, doctor)


def _check(given: Given) -> None:
    """Raises: BadInput for flags that would change nothing."""
    for name in sorted(given.on_line - set(_USED)):
        flag = f"--{name.replace('_', '-')}"
        raise BadInput(f"doctor asks the model nothing; leave {flag} out.")


def _gpus_of(name: str, backends: Iterable[Checked]) -> tuple[DeviceMemory, ...]:
    """The GPUs of the backend that is called so; "auto" = of the first that works."""
    working = (each for each in backends if each.state is State.WORKS)
    return next((each.gpu_memory for each in working if name in ("auto", each.name)), ())


def examine() -> Report:
    """Look at the machine and try every installed adapter."""
    from edgespec.backends import installed
    from edgespec.models.store import find_demo

    found = gpus()
    backends = tuple(check_backend(entry) for _, entry in sorted(installed().items()))
    demo = find_demo() is not None
    advice = list(_advice_about(backends, found))
    if not demo:
        advice.append(f"The small demo model is not installed: {install_line('demo')}")
    known = (this_machine(), found, backends, demo, tuple(advice), _tuned())
    return Report(*known, copies=_copies())


def _copies() -> Copies | None:
    from edgespec.models.copies import all_copies

    found = all_copies()
    return Copies(len(found), sum(copy.size for copy in found)) if found else None


def _tuned() -> tuple[str, ...]:
    from edgespec.models.choices import all_choices

    return tuple(one_line(f"{choice.target}: {choice.words}") for choice in all_choices())


def check_backend(entry: EntryPoint) -> Checked:
    """Import an adapter and ask it."""
    try:
        probe = entry.load().probe()
    except (ModuleNotFoundError, BackendMissing) as error:
        if entry.name == _MLX and not apple_chip():
            return Checked(entry.name, State.UNSUPPORTED, message="made for Apple chips")
        return Checked(
            entry.name,
            State.MISSING,
            message=one_line(str(error)),
            install=install_line(entry.name),
        )
    except (ImportError, OSError, RuntimeError, AttributeError, EdgespecError) as error:
        # a native library that does not fit this machine fails in any of these ways
        return Checked(entry.name, State.BROKEN, message=one_line(str(error)))
    devices = tuple(one_line(device) for device in probe.devices)
    return Checked(
        entry.name, State.WORKS, one_line(probe.version), devices, probe.gpu, probe.gpu_memory
    )


def idle_gpu_advice() -> Iterable[str]:
    """The doctor's advice about a GPU that llama.cpp cannot use; quick where there is no GPU."""
    found = tuple(gpu for gpu in gpus() if gpu.vendor in _FLAGS)
    if not found:
        return ()
    from edgespec.backends import installed

    entries = (entry for name, entry in installed().items() if name == _LLAMA_CPP)
    return _advice_about([check_backend(entry) for entry in entries], found)


_FLAGS = {"nvidia": "-DGGML_CUDA=on", "amd": "-DGGML_HIP=on"}
_COMPILERS = {"nvidia": ("nvcc", "the CUDA toolkit"), "amd": ("hipcc", "ROCm")}


def _advice_about(backends: Iterable[Checked], found: Iterable[Gpu]) -> Iterable[str]:
    idle = any(
        backend.name == _LLAMA_CPP and backend.state is State.WORKS and not backend.gpu
        for backend in backends
    )
    if not idle:
        return
    for vendor, flag in _FLAGS.items():
        gpu = next((gpu for gpu in found if gpu.vendor == vendor), None)
        if gpu is None:
            continue
        advice = f"{one_line(gpu.name)} is idle: llama.cpp is a CPU build."
        program, toolkit = _COMPILERS[vendor]
        if which(program) is None:
            advice += (
                f" Install {toolkit} first ({program} is not on the PATH), or use -DGGML_VULKAN=on"
                " with the Vulkan SDK."
            )
        yield f"{advice} Rebuild it: {rebuild_line(flag)}"


def one_line_each(report: Report) -> Iterable[str]:
    """The report for people."""
    machine = report.machine
    cores = f", {machine.cores} physical cores" if machine.cores else ""
    yield f"edgespec  {version('edgespec')}, Python {platform.python_version()}"
    yield f"System    {one_line(machine.system)}"
    yield f"CPU       {one_line(machine.cpu)}{cores}"
    yield f"Memory    {machine.memory_bytes / 2**30:.1f} GiB"
    names = [one_line(gpu.name) for gpu in report.gpus]
    yield f"GPU       {', '.join(names) or 'none that a driver knows'}"
    for backend in report.backends:
        yield f"Backend   {backend.name}: {_told(backend)}"
    yield f"Demo      {'installed' if report.demo else 'not installed'}"
    if report.copies:
        size = size_text(report.copies.size)
        yield f"Copies    {report.copies.count} for MLX, {size}; 'edgespec list' names them"
    if report.tuned:
        yield f"Tuned     {'; '.join(report.tuned)}"
    if report.plan:
        yield f"Plan      '{report.plan.pair}' with a context of {report.plan.context} tokens"
        yield from (f"          {line}" for line in (*report.plan.lines, report.plan.help) if line)
    if report.costs:
        yield f"Passes    '{report.costs.pair}' (--rule coupled): {report.costs.exactness}"
        yield from (f"          {line}" for line in report.costs.verdict)
    yield from (f"Advice    {advice}" for advice in report.advice)


def _told(backend: Checked) -> str:
    if backend.state is State.WORKS:
        return f"works, version {backend.version}, runs on {', '.join(backend.devices) or 'CPU'}"
    if backend.install:
        return f"{backend.state}. Install it: {backend.install}"
    return f"{backend.state}: {backend.message}"


def _as_dict(report: Report) -> dict[str, Any]:
    return {
        "edgespec": version("edgespec"),
        "python": platform.python_version(),
        **asdict(report.machine),
        "packages": {name: _version_of(name) for name in _PACKAGES},
        "gpus": [asdict(gpu) for gpu in report.gpus],
        "backends": [asdict(backend) for backend in report.backends],
        "demo": report.demo,
        "tuned": list(report.tuned),
        "plan": None if report.plan is None else asdict(report.plan) | {"fits": report.plan.fits},
        "costs": None if report.costs is None else asdict(report.costs),
        "copies": None if report.copies is None else asdict(report.copies),
        "advice": list(report.advice),
    }


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
