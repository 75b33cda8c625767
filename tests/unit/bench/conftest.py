"""Servers on the loopback that go with the test that started them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from fake_peer import Serve, serving


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda routes: stack.enter_context(serving(routes))
