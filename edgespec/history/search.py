"""What a search looks for: every word somewhere in one message, or in the title."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_MOST_WORDS: Final = 16
_LONGEST_WORD: Final = 100
_SHORTEST_INDEXED: Final = 3  # the index holds trigrams
_BEFORE, _AFTER = 40, 120  # characters of a snippet around what was found


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a search. What they hold is text: nothing in it is syntax."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Words:
        readable = text.replace("\0", " ").encode("utf-8", "replace").decode()
        return cls(tuple(word[:_LONGEST_WORD] for word in readable.split()[:_MOST_WORDS]))

    def hits(self) -> tuple[str, Sequence[object]]:
        """SQL for (conversation, message or NULL) where they are all found, and its values."""
        in_text, values = [], list[object]()
        indexed = [word for word in self.words if len(word) >= _SHORTEST_INDEXED]
        if indexed:
            in_text.append("id IN (SELECT rowid FROM texts WHERE texts MATCH ?)")
            values.append(" ".join(map(_phrase, indexed)))
        for word in self.words:
            if len(word) < _SHORTEST_INDEXED:
                in_text.append("content LIKE ? ESCAPE '!' AND state <> 'writing'")
                values.append(f"%{_escaped(word)}%")
        in_title = " AND ".join(["instr(folded(title), ?)"] * len(self.words))
        sql = (
            f"SELECT conversation, id FROM messages WHERE {' AND '.join(in_text)}"
            f" UNION ALL SELECT id, NULL FROM conversations WHERE {in_title}"
        )
        return sql, [*values, *(word.casefold() for word in self.words)]

    def in_all(self, texts: Iterable[str]) -> bool:
        """Whether one of the texts holds every word."""
        return any(all(word.casefold() in text.casefold() for word in self.words) for text in texts)

    def snippet(self, text: str) -> str:
        """What stands around the first word that is found, on one line."""
        folded = text.casefold()
        places = (folded.find(word.casefold()) for word in self.words)
        at = min((place for place in places if place >= 0), default=0)
        begin = max(0, at - _BEFORE)
        cut = text[begin : at + _AFTER]
        return ("…" if begin else "") + " ".join(cut.split()) + "…" * (at + _AFTER < len(text))


def _phrase(word: str) -> str:
    """A string of FTS5. Source: sqlite.org/fts5.html, section 3.1."""
    return '"' + word.replace('"', '""') + '"'


def _escaped(word: str) -> str:
    return "".join(f"!{c}" if c in "%_!" else c for c in word)
