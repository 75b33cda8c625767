"""What a long history costs: opening the file, a conversation of 10,000 messages, each write.

uv run python benchmarks/history.py
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

from edgespec.history import Conversation, History, State

WORDS = ["the", "a", "model", "answers", "rivers", "mountains", "which", "code", "returns", "list"]
STATS = {"completion_tokens": 150, "tokens_per_second": 11.5, "lengths": [4] * 150}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    messages = parser.parse_args().messages
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.sqlite3"
        with closing(History.open(path)) as history:
            longest = history.new()
            fill(longest, messages)
            others = max(1, messages // 20)
            for _ in range(others):
                fill(history.new(), 4)
        print(f"{messages} messages in one conversation, {others} others with 4 each;", end=" ")
        print(f"{path.stat().st_size / 2**20:.1f} MiB")
        timed("open the file", lambda: History.open(path).close())
        with closing(History.open(path)) as history:
            told(history, longest.id)


def told(history: History, longest: int) -> None:
    timed("list 200 conversations", lambda: history.recent(200))
    timed("search for two words", lambda: history.search("rivers mountains", 50))
    timed("search for two letters", lambda: history.search("zq", 50))
    timed("load the long one", lambda: history.load(longest).path)
    conversation = history.load(longest)
    conversation.say("And now?")
    begun = conversation.begin_answer("model.gguf", 1)
    text, ids = prose(3000), list(range(3000))
    timed("write 3,000 tokens of an answer", lambda: conversation.write(begun.id, text, ids))
    timed(
        "finish it",
        lambda: conversation.finish(begun.id, text, ids, State.WHOLE, STATS),
    )
    timed("say something", lambda: conversation.say("Go on."))


def fill(conversation: Conversation, messages: int) -> None:
    for _ in range(messages // 2):
        conversation.say(prose(20))
        begun = conversation.begin_answer("model.gguf", 1)
        conversation.finish(begun.id, prose(120), range(150), State.WHOLE, STATS)


def prose(words: int) -> str:
    return " ".join(random.choices(WORDS, k=words))


def timed(what: str, deed: Callable[[], object]) -> None:
    """The median and the worst of five."""
    took = []
    for _ in range(5):
        started = perf_counter()
        deed()
        took.append((perf_counter() - started) * 1000)
    print(f"{what:<34} {median(took):>8.1f} ms, at most {max(took):.1f}")


if __name__ == "__main__":
    random.seed(0)
    main()
