"""`edgespec doctor`: what it finds, and the lines it gives."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_fakes import FakeModel
from click.testing import Result

from edgespec.backends import BackendProbe
from edgespec.cli import doctor, machine
from edgespec.cli.doctor import State, check_backend
from edgespec.cli.machine import Gpu
from edgespec.errors import BackendMissing
from edgespec.models import programs

Cli = Callable[..., Result]

scripts = pytest.mark.skipif(sys.platform == "win32", reason="runs scripts of a POSIX shell")

CPU_BUILD = BackendProbe("llamacpp", "0.3.36", ("CPU",), gpu=False)
GPU_BUILD = BackendProbe("llamacpp", "0.3.36", ("CUDA0",), gpu=True)
NVIDIA = Gpu("nvidia", "GeForce RTX 4090")


def entry(outcome: BackendProbe | Exception, name: str = "llamacpp") -> Any:
    """An adapter that is installed; asking it gives `outcome`."""

    def probe() -> BackendProbe:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return SimpleNamespace(name=name, load=lambda: SimpleNamespace(probe=probe))


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def use(*entries: Any, gpus: tuple[Gpu, ...] = ()) -> None:
        monkeypatch.setattr("edgespec.backends.installed", lambda: {e.name: e for e in entries})
        monkeypatch.setattr(doctor, "gpus", lambda: gpus)

    return use


def test_one_backend_that_works_is_enough(cli: Cli, adapters: Callable[..., None]) -> None:
    adapters(entry(CPU_BUILD), entry(BackendMissing("no mlx"), "mlx"))
    result = cli("doctor")
    assert result.exit_code == 0
    assert "llamacpp: works, version 0.3.36, runs on CPU" in result.stdout


def test_no_backend_that_works_is_an_error(cli: Cli, adapters: Callable[..., None]) -> None:
    adapters(entry(ModuleNotFoundError("No module named 'llama_cpp'")))
    result = cli("doctor")
    assert result.exit_code == 1
    assert "llamacpp: missing. Install it: " in result.stdout
    assert "llama-cpp-python" in result.stdout


def test_json_is_one_object_whether_or_not_all_is_well(
    cli: Cli, adapters: Callable[..., None]
) -> None:
    adapters(entry(CPU_BUILD), entry(RuntimeError("lib\nbroke\x1b[31m"), "other"))
    result = cli("doctor", "--json")
    told = json.loads(result.stdout)
    assert told["memory_bytes"] > 0
    assert told["cpu"]
    assert told["packages"]["numpy"]
    assert [b["state"] for b in told["backends"]] == ["works", "broken"]
    assert told["backends"][1]["message"] == "lib broke"
    assert told["advice"] == []
    assert told["demo"] is True
    adapters()
    assert json.loads(cli("doctor", "--json").stdout)["backends"] == []


def test_a_backend_for_another_kind_of_machine_gets_no_install_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = entry(ModuleNotFoundError("mlx"), "mlx")
    monkeypatch.setattr(doctor, "apple_chip", lambda: False)
    assert check_backend(missing).state is State.UNSUPPORTED
    monkeypatch.setattr(doctor, "apple_chip", lambda: True)
    checked = check_backend(missing)
    assert checked.state is State.MISSING
    assert "mlx-lm" in checked.install


def test_a_real_entry_point_without_its_module_is_missing() -> None:
    nowhere = EntryPoint("ghost", "edgespec_ghost:Backend", "edgespec.backends")
    assert check_backend(nowhere).state is State.MISSING


def test_an_idle_gpu_is_told_with_the_line_that_rebuilds(
    cli: Cli, adapters: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "which", lambda _: "/usr/bin/nvcc")
    adapters(entry(CPU_BUILD), gpus=(NVIDIA,))
    told = cli("doctor").stdout
    assert "GeForce RTX 4090 is idle: llama.cpp is a CPU build. Rebuild it: " in told
    assert "-DGGML_CUDA=on" in told


def test_a_missing_compiler_for_the_gpu_is_named(
    cli: Cli, adapters: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "which", lambda _: None)
    adapters(entry(CPU_BUILD), gpus=(Gpu("amd", "gfx1100"),))
    told = cli("doctor").stdout
    assert "ROCm first (hipcc is not on the PATH)" in told
    assert "-DGGML_HIP=on" in told


@pytest.mark.parametrize(
    ("probe", "gpus"), [(GPU_BUILD, (NVIDIA,)), (CPU_BUILD, ()), (CPU_BUILD, (Gpu("apple", "M4"),))]
)
def test_without_an_idle_gpu_there_is_no_advice(
    cli: Cli, adapters: Callable[..., None], probe: BackendProbe, gpus: tuple[Gpu, ...]
) -> None:
    adapters(entry(probe), gpus=gpus)
    assert json.loads(cli("doctor", "--json").stdout)["advice"] == []


def test_run_tells_about_an_idle_gpu_once_on_stderr(
    cli: Cli, model: FakeModel, adapters: Callable[..., None]
) -> None:
    adapters(entry(CPU_BUILD), gpus=(NVIDIA, NVIDIA))
    result = cli("run", "Hi")
    assert result.stderr.startswith("note: GeForce RTX 4090 is idle")
    assert result.stderr.count("\n") == 1
    assert cli("run", "Hi", "--gpu-layers", "0").stderr == ""


def test_gpus_are_found_in_the_files_of_their_drivers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    card = tmp_path / "nvidia" / "0000:01:00.0"
    card.mkdir(parents=True)
    (card / "information").write_text("Model: \t\t NVIDIA H200\nIRQ: 1\n")
    for node, version in (("0", "0"), ("1", "110000")):
        folder = tmp_path / "amd" / node
        folder.mkdir(parents=True)
        (folder / "properties").write_text(f"cpu_cores_count 0\ngfx_target_version {version}\n")
        (folder / "name").write_text("navi31\n")
    monkeypatch.setattr(machine, "_NVIDIA_DRIVER", tmp_path / "nvidia")
    monkeypatch.setattr(machine, "_AMD_NODES", tmp_path / "amd")
    monkeypatch.setattr(machine, "apple_chip", lambda: False)
    found = (*machine._nvidia(), *machine._amd())
    assert found == (Gpu("nvidia", "NVIDIA H200"), Gpu("amd", "navi31"))


@scripts
@pytest.mark.parametrize(
    ("name", "output", "found"),
    [
        ("nvidia-smi", "NVIDIA GeForce RTX 3060\n", Gpu("nvidia", "NVIDIA GeForce RTX 3060")),
        ("rocm-smi", "device,Card series\ncard0,Radeon 780M\n", Gpu("amd", "Radeon 780M")),
    ],
)
def test_gpus_are_found_by_the_tools_of_their_drivers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, output: str, found: Gpu
) -> None:
    (tmp_path / name).write_text(f"#!/bin/sh\nprintf '{output}'\n")
    (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(machine, "_NVIDIA_DRIVER", tmp_path / "none")
    monkeypatch.setattr(machine, "_AMD_NODES", tmp_path / "none")
    assert (*machine._nvidia(), *machine._amd()) == (found,)


def test_a_driver_tool_that_hangs_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    waits: list[float] = []

    def hangs(command: list[str], *, timeout: float, **_: object) -> None:
        waits.append(timeout)
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(programs.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(programs.subprocess, "run", hangs)
    monkeypatch.setattr(machine, "_NVIDIA_DRIVER", tmp_path / "none")
    monkeypatch.setattr(machine, "_AMD_NODES", tmp_path / "none")
    assert (*machine._nvidia(), *machine._amd()) == ()
    assert waits == [3.0, 3.0]


@scripts
def test_a_driver_tool_that_fails_finds_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho no devices were found\nexit 6\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(machine, "_NVIDIA_DRIVER", tmp_path / "none")
    assert machine._nvidia() == ()
    assert subprocess.run(["nvidia-smi"], check=False, capture_output=True).returncode == 6
