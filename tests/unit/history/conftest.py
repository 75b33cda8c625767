"""A history of its own for every test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from edgespec.history import History

Open = Callable[[], History]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history.sqlite3"


@pytest.fixture
def open_history(path: Path) -> Iterator[Open]:
    """Opens the test's history once more, as a program that is started anew does."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(History.open(path)))


@pytest.fixture
def history(open_history: Open) -> History:
    return open_history()
