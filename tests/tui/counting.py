"""What something costs in calls of functions, which is the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def calls(deed: Callable[[], object]) -> int:
    """How many functions were called, those of C included."""
    count = 0

    def profile(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        deed()
    finally:
        sys.setprofile(before)
    return count
