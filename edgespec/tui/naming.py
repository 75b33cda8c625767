"""Where guesses come from, in the words that the whole chat uses."""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.decoding.events import Guess
from edgespec.models.shown import shown

_NAMES = {
    "ngram": "n-gram",
    "draft": "draft model",
    "memory": "earlier answers",
    "recycling": "recycling",
    "tree": "tree",
}
ALL_NAMES = tuple(_NAMES.values())
_TIMES = "\N{MULTIPLICATION SIGN}"


def proposer_name(source: str) -> str:
    """A proposer, as people call it; several that work together are joined by a plus."""
    return " + ".join(_NAMES.get(name, shown(name)) for name in source.split("+"))


def guesses_in_words(guesses: Sequence[Guess]) -> str:
    """Who guessed how much, and whether some places were guessed at more than once."""
    counts: dict[str, int] = {}
    for guess in guesses:
        counts[guess.source] = counts.get(guess.source, 0) + 1
    words = " + ".join(f"{proposer_name(name)} {_TIMES}{n}" for name, n in counts.items())
    return f"{words}, a tree" if is_tree(guesses) else words


def is_tree(guesses: Sequence[Guess]) -> bool:
    """Whether two guesses stand behind the same one."""
    return len({guess.parent for guess in guesses}) < len(guesses)
