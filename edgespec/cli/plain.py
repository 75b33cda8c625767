"""The chat as lines that are only ever appended: for pipes, scrollback and screen readers."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from edgespec.cli.answer import Answer, until_interrupted
from edgespec.cli.output import note, one_line, say, write
from edgespec.cli.summary import summary
from edgespec.errors import EdgespecError
from edgespec.text.sanitize import clean

if TYPE_CHECKING:
    from edgespec.api import Chat, Model

_YOU = "You: "
_MODEL = "Model: "
_GOES_ON = "\\"


class PlainChat:
    """Reads messages until the input ends, and answers each."""

    def __init__(self, model: Model, chat: Chat) -> None:
        self._model = model
        self._chat = chat
        self._person = sys.stdin.isatty()
        if not self._person and isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")

    def run(self) -> None:
        """Talk until the input ends, or Ctrl+C is pressed twice at the prompt."""
        if self._person:
            say("A line that ends in \\ goes on. Ctrl+C stops an answer, Ctrl+D ends the chat.")
        asked_to_quit = False
        while True:
            try:
                message = self._message()
            except KeyboardInterrupt:
                write("\n")
                if asked_to_quit:
                    return
                asked_to_quit = True
                say("Ctrl+C once more ends the chat.")
                continue
            asked_to_quit = False
            if message is None:
                return
            if message.strip():
                self._answer(message)

    def _answer(self, message: str) -> None:
        answer = Answer(self._model.plain_tokens_per_second)
        write(_MODEL)
        try:
            for event in until_interrupted(self._chat.stream(message), self._model.cancel):
                write(answer.take(event))
        except EdgespecError as error:
            # a person can put it right with the next message; a pipe cannot
            if not self._person:
                raise
            say(f"edgespec: {one_line(str(error))}")
        finally:
            write("" if answer.text.endswith("\n") else "\n")
        for fault in answer.faults:
            note(fault)
        if answer.why is not None:
            say(one_line(summary(answer)))

    def _message(self) -> str | None:
        """The next message, its continued lines joined; None at the end of the input."""
        lines: list[str] = []
        while True:
            line = self._line(_YOU if not lines else "")
            if line is None:
                return "\n".join(lines) if lines else None
            if not line.endswith(_GOES_ON):
                return "\n".join([*lines, line])
            lines.append(line.removesuffix(_GOES_ON))

    def _line(self, label: str) -> str | None:
        if self._person:
            try:
                return input(label)
            except EOFError:
                write("\n")
                return None
        line = sys.stdin.readline()
        if not line:
            return None
        line = line.rstrip("\r\n")
        # nobody typed it on this screen, so the transcript shows it
        write(f"{label}{clean(line)}\n")
        return line
