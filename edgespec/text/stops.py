"""Stop strings, wherever token borders fall.

Of several stop strings the one that is complete first counts; of two that end at the same
character, the longer. So the result does not depend on how the text was cut into tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.errors import BadInput
from edgespec.text.detokenize import Detokenizer
from edgespec.text.tokenizer import Tokenizer


class StopFilter:
    """Lets text through up to the first stop string; the string itself and the rest are dropped.

    Between calls it holds back exactly the longest tail that could be the start of a stop string.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._matchers = [_Matcher(stop) for stop in _checked(stops)]
        self._held = ""
        self.stopped = False

    def feed(self, text: str) -> str:
        """What can no longer be part of a stop string."""
        if self.stopped or not self._matchers:
            return "" if self.stopped else text
        for at, char in enumerate(text):
            done = [matcher.length for matcher in self._matchers if matcher.step(char)]
            if done:
                self.stopped = True
                return self._release(text[: at + 1], max(done), keep=False)
        return self._release(text, max(matcher.matched for matcher in self._matchers), keep=True)

    def feed_behind(self, mark: str, text: str) -> str:
        """The same behind a mark that is no part of what was said: no stop string reaches over
        it."""
        if not mark or self.stopped:
            return self.feed(text)
        return self.flush() + mark + self.feed(text)

    def flush(self) -> str:
        """What was held back, once no more text comes."""
        held, self._held = self._held, ""
        for matcher in self._matchers:
            matcher.matched = 0
        return held

    def _release(self, text: str, tail: int, *, keep: bool) -> str:
        """All but the last `tail` characters; these are kept for later, or dropped."""
        known = self._held + text
        border = len(known) - tail
        self._held = known[border:] if keep else ""
        return known[:border]


class StopStrings:
    """Says at which token of a round an answer is to stop.

    One object per answer: it remembers the text of earlier rounds.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str]) -> None:
        self._text = Detokenizer(tokenizer)
        self._filter = StopFilter(stops)

    def first_stop(self, tokens: Sequence[int]) -> int | None:
        """How many of these new tokens to keep, the one that completes a stop included."""
        for count, token in enumerate(tokens, 1):
            self._filter.feed_behind(*self._text.told(token))
            if self._filter.stopped:
                return count
        return None


class _Matcher:
    """How much of one stop string the text ends with: amortised constant time a character.

    Source: Knuth, Morris, Pratt 1977.
    """

    def __init__(self, stop: str) -> None:
        self._stop = stop
        self.length = len(stop)
        self.matched = 0
        # _shorter[n]: the next shorter start of the stop that its first n + 1 characters end with
        self._shorter = [0] * len(stop)
        for n in range(1, len(stop)):
            self.step(stop[n])
            self._shorter[n] = self.matched
        self.matched = 0

    def step(self, char: str) -> bool:
        """Whether the stop string is complete with `char`."""
        while self.matched and self._stop[self.matched] != char:
            self.matched = self._shorter[self.matched - 1]
        if self._stop[self.matched] == char:
            self.matched += 1
        return self.matched == self.length


def _checked(stops: Sequence[str]) -> list[str]:
    distinct = [stops] if isinstance(stops, str) else list(dict.fromkeys(stops))
    if "" in distinct:
        raise BadInput("A stop string is empty and would end every answer at once; leave it out.")
    return distinct
