"""Where a benchmark is written to: looked at before anything is measured."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from edgespec.cli.install import install_line
from edgespec.cli.output import say
from edgespec.cli.shell import quoted
from edgespec.errors import BadInput, EdgespecError, NotFound
from edgespec.models.shown import shown

_MATPLOTLIB = "matplotlib>=3.10"  # where our own metadata knows no extra


def report_place(name: str | None) -> Path | None:
    """The file for a report, which must be new or an earlier report.

    Raises: BadInput, NotFound, EdgespecError for a place that would not take it.
    """
    if name is None:
        return None
    path = Path(name)
    try:
        if not path.name or path.is_dir():
            raise BadInput(f"{shown(name)} is a folder; name a file for the report.")
        if not path.parent.is_dir():
            raise NotFound(
                f"There is no folder {shown(path.parent)} for the report; make it first."
            )
        if path.exists():
            _must_be_ours(path)
        else:
            path.open("xb").close()
            path.unlink()
    except (OSError, ValueError) as error:
        raise _unwritable(f"The report {shown(name)}", error, "file") from error
    return path


def _must_be_ours(path: Path) -> None:
    from edgespec.bench.report import FIRST_LINE

    if path.is_file():
        with path.open("r+b") as file:  # for writing too: so a file that is locked is told now
            beginning = file.read(len(FIRST_LINE) + 2)
        if not beginning or beginning.rstrip() == FIRST_LINE.encode():
            return
    raise BadInput(
        f"{shown(path)} is there and is no report of edgespec bench; name another file, or move"
        " it away."
    )


def write_report(path: Path, text: str) -> None:
    """Raises: EdgespecError where the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(f"The report {shown(path)}", error, "file") from error
    say(f"wrote {shown(path)}")


def plot_place(name: str | None) -> Path | None:
    """The folder for pictures, once matplotlib and the folder are known to work.

    Raises: BackendMissing, BadInput, EdgespecError.
    """
    if name is None:
        return None
    from edgespec.bench.plots import check_plotting

    folder = Path(name)
    try:
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"{shown(name)} is a file; name a folder for the pictures.")
        _try_folder(folder)
    except (OSError, ValueError) as error:
        raise _unwritable(f"The folder {shown(name)}", error, "folder") from error
    line = install_line("plot")
    check_plotting(line if "matplotlib" in line else f"{line.rstrip()} {quoted(_MATPLOTLIB)}")
    return folder


def _try_folder(folder: Path) -> None:
    """Write into it and leave it as it was."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    finally:
        for path in missing:
            with contextlib.suppress(OSError):
                path.rmdir()


def _unwritable(what: str, error: OSError | ValueError, kind: str) -> EdgespecError:
    reason = shown(getattr(error, "strerror", None) or error, 160)
    return EdgespecError(f"{what} cannot be written ({reason}). Name another {kind}.")
