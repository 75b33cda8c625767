"""Short ways to talk with a history, and programs of their own that write into one.

python history_fakes.py PATH PROGRAM ARGUMENT
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

from edgespec.history import Conversation, History, Saved, State


def answer(conversation: Conversation, text: str, ids: tuple[int, ...] = (1, 2)) -> Saved:
    """A whole answer to the head."""
    begun = conversation.begin_answer("model.gguf", 7)
    return conversation.finish(begun.id, text, ids, State.WHOLE, {"completion_tokens": len(ids)})


def texts(conversation: Conversation) -> list[str]:
    return [message.content for message in conversation.path]


def filled(path: Path) -> None:
    """A file with one long conversation."""
    with closing(History.open(path)) as history:
        conversation = history.new()
        for number in range(200):
            conversation.say(f"message {number} " + "text " * 50)


def stream(history: History, question: str) -> None:
    """Writes an answer that never ends, and tells how many words are surely kept."""
    conversation = history.new()
    conversation.say(question)
    begun = conversation.begin_answer("model.gguf", 1)
    words = list[str]()
    while True:
        words.append(f"word{len(words)}")
        conversation.write(begun.id, " ".join(words), range(len(words)))
        print(len(words), flush=True)


def talk(history: History, name: str) -> None:
    """A conversation of its own, and messages in conversation 1, which others write to as well."""
    own, shared = history.new(), history.load(1)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(100):
        own.say(f"{name} asks {number}")
        begun = own.begin_answer(name, number)
        own.write(begun.id, f"{name} ans", [number])
        own.finish(begun.id, f"{name} answers {number}", [number, number], State.WHOLE, {})
        shared.say(f"{name} also {number}")
        time.sleep(0.002)  # a busy machine would run one program to its end first
    print(own.id, *history.notes)


def say_once(history: History, name: str) -> None:
    """One message."""
    history.new().say(name)
    print(*history.notes)


if __name__ == "__main__":
    _, file, what, argument = sys.argv
    with closing(History.open(Path(file))) as opened:
        {"stream": stream, "talk": talk, "say_once": say_once}[what](opened, argument)
