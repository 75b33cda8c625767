"""Textual's driver for Linux and macOS: pastes are told from keys before keys are read, and no
terminal is too narrow to be painted."""

from __future__ import annotations

import contextlib
import os
import selectors
import time
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING, Any

from textual import events
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from edgespec.tui.pasting import Pasted, PasteGuard, Piece

if TYPE_CHECKING:
    from textual.app import App

_READ_BYTES = 64 * 1024
# Textual cannot wrap a text into no cells at all, as within the borders of a very narrow window;
# what is painted beyond the edge of the terminal is not seen
_NARROWEST = 20
_LONGEST_WAIT_S = 0.1  # the parser is asked that often whether a lone ESC was a key


class PosixDriver(LinuxDriver):
    """As its base, but for how input is read and how narrow a terminal is said to be."""

    def __init__(self, app: App[Any], **how: Any) -> None:
        super().__init__(app, **how)
        if self._size is None:
            self._size = self._get_terminal_size()

    def _get_terminal_size(self) -> tuple[int, int]:
        width, height = super()._get_terminal_size()
        return max(width, _NARROWEST), height

    def send_message(self, message: Message) -> None:
        if isinstance(message, events.Resize) and message.size.width < _NARROWEST:
            cells = (_NARROWEST, message.size.height)
            message = events.Resize.from_dimensions(cells, message.pixel_size)
        super().send_message(message)

    def run_input_thread(self) -> None:
        """Wait for input and pass it on as events, until the app leaves or the input ends."""
        parser = XTermParser(self._debug)
        guard = PasteGuard()
        # a paste may be in another encoding; that must not end the chat
        decoder = getincrementaldecoder("utf-8")("replace")
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                pieces: list[Piece] = []
                if selector.select(_wait_s(guard)):
                    data = os.read(self.fileno, _READ_BYTES)
                    if not data:
                        break
                    pieces = guard.feed(decoder.decode(data), time.monotonic())
                elif guard.until_s is not None and time.monotonic() >= guard.until_s:
                    pieces = guard.rested()
                for piece in pieces:
                    self._pass_on(piece, parser)
                for message in parser.tick():
                    self.process_message(message)
        with contextlib.suppress(EOFError, ParseError):
            list(parser.feed(""))

    def _pass_on(self, piece: Piece, parser: XTermParser) -> None:
        if isinstance(piece, Pasted):
            self.process_message(events.Paste(piece.text))
            return
        for message in parser.feed(piece.text):
            # between marks without text the parser sees a paste of nothing
            if not isinstance(message, events.Paste):
                self.process_message(message)


def _wait_s(guard: PasteGuard) -> float:
    if guard.until_s is None:
        return _LONGEST_WAIT_S
    return min(_LONGEST_WAIT_S, max(0.0, guard.until_s - time.monotonic()))
