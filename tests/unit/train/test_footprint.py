"""A bound on memory counts what is in use, not what a library keeps for later."""

from __future__ import annotations

import platform

import psutil
import pytest

from edgespec.train.footprint import takes_more_than


def test_what_is_taken_is_held_against_the_bound() -> None:
    taken = psutil.Process().memory_info().rss
    assert takes_more_than(taken // 4)
    assert not takes_more_than(4 * taken)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone is asked to give back")
def test_memory_that_was_freed_does_not_count() -> None:
    pieces = [bytearray(100_000) for _ in range(2_000)]  # small enough to stay with the process
    most = psutil.Process().memory_info().rss - (100 << 20)
    assert takes_more_than(most)
    del pieces[1::2], pieces[:]
    assert not takes_more_than(most)
