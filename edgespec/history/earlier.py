"""What a model answered before, as a source of guesses; nothing of it leaves this machine."""

from __future__ import annotations

from collections.abc import Iterator

from edgespec.errors import EdgespecError
from edgespec.history.archive import History


def earlier_answers(
    history: History, model: str, vocabulary: str, most_tokens: int
) -> Iterator[tuple[int, ...]]:
    """Token ids of the answers of `model`, those of the latest conversation first.

    vocabulary: as in Saved.is_by(). A conversation that cannot be read is passed over: guesses are
    not worth an error.
    """
    left = most_tokens
    for summary in history.recent(-1):
        try:
            messages = history.load(summary.id).messages
        except EdgespecError:
            continue
        for message in reversed(messages):
            if message.ids and message.is_by(model, vocabulary):
                yield message.ids
                left -= len(message.ids)
        if left <= 0:
            return
