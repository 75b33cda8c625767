"""A chat with a scripted model in a terminal of its own, on a history on the disk:
`python fake_chat.py HISTORY SCRIPT [--continue]`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from fake_model import SHORT, FakeModel, endless, plain, setup_for

from edgespec.decoding.events import Event, Finished, Stop
from edgespec.history import History
from edgespec.text.sanitize import Sanitizer
from edgespec.tui.app import run_chat

HOSTILE = (
    "before \x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\"
    " \x9b31m\x9d0;owned\x9c\x1b[2J\x1b[?1049l\u202eevil [@click=app.exit]quit[/] $primary {0}"
)


def hostile() -> tuple[Event, ...]:
    """What a model says that wants out of its text, cleaned token by token as answers are."""
    sanitizer = Sanitizer()
    return (
        plain("x" * 100_000 + "\n\n"),
        *(plain(sanitizer.feed(char)) for char in HOSTILE),
        plain(" the end"),
        Finished(Stop.END),
    )


SCRIPTS = {
    "short": (SHORT,),
    "endless": (endless(),),
    "rest": ((plain(" and the rest"), Finished(Stop.END)),),
    "hostile": (hostile(),),
}


def main() -> None:
    place, script, *flags = sys.argv[1:]
    model = FakeModel(scripts=SCRIPTS[script], pace_s=0.01 if script == "endless" else 0.0)
    history = History.open(Path(place))
    setup = replace(setup_for(model), history=history, reopen="--continue" in flags)
    run_chat(setup)
    history.close()


if __name__ == "__main__":
    main()
