"""Reads the terminal for the chat so that no paste is ever taken for keys."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from textual import constants

if TYPE_CHECKING:
    from textual.driver import Driver


def chat_driver() -> type[Driver] | None:
    """The driver to give to the app; None = Textual's own.

    A Windows console filters what it pastes, and TEXTUAL_DRIVER names a driver on purpose.
    """
    if sys.platform == "win32" or constants.DRIVER is not None:
        return None
    from edgespec.tui.posix_driver import PosixDriver

    return PosixDriver
