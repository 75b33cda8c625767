"""Earlier answers are looked up where the text ends like them, and nothing else of them stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proposing import WARM, asked, at

from edgespec.decoding.draft import EMPTY, Draft
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Proposer, UpTo
from edgespec.decoding.request import Request
from edgespec.proposers import memory as memories
from edgespec.proposers.combine import FirstOf, Fixed, Merged
from edgespec.proposers.memory import Memory
from edgespec.proposers.ngram import NGram
from edgespec.proposers.ngram_tree import NGramTree
from edgespec.proposers.nothing import Nothing
from edgespec.testing import TableSession

V = 6


def _asked(memory: Memory, *texts: list[int], room: int = 8) -> Draft:
    """What it guesses after the last of these, each a longer state of one answer."""
    memory.begin(asked(texts[0]))
    draft = EMPTY
    for text in texts:
        draft = memory.propose(at(text), UpTo(room))
    return draft


def test_what_an_earlier_answer_said_next_is_guessed() -> None:
    memory = Memory([[1, 2, 3, 4, 5, 6]])
    assert _asked(memory, [9, 2, 3]).tokens == [4, 5, 6]
    assert memory.plan == "memory: the last 2 tokens are in an earlier answer"
    assert _asked(memory, [9, 8]) == EMPTY
    assert memory.plan == "memory: no earlier answer went like this"


def test_one_token_alike_is_no_reason_to_guess() -> None:
    assert _asked(Memory([[1, 2, 3, 4]]), [9, 3]) == EMPTY


def test_no_guess_runs_from_one_answer_into_the_next() -> None:
    memory = Memory([[1, 2, 3], [4, 5, 6]])
    assert _asked(memory, [7, 2, 3]) == EMPTY
    assert _asked(memory, [7, 1, 2]).tokens == [3]
    assert _asked(memory, [3, 4, 5]).tokens == [6]
    assert _asked(memory, [5, 6]) == EMPTY


def test_answers_that_differ_are_guessed_as_a_tree() -> None:
    draft = _asked(Memory([[1, 2, 3, 7], [1, 2, 4, 8]]), [0, 1, 2])
    assert not draft.is_chain
    assert {draft.tokens[node] for node in draft.children(-1)} == {3, 4}


def test_the_latest_answers_fill_a_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "MOST_TOKENS", 12)
    memory = Memory([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])
    assert _asked(memory, [1, 2]).tokens == [3, 4]
    assert _asked(memory, [5, 6]).tokens == [7, 8]
    assert _asked(memory, [9, 10]) == EMPTY


def test_no_answers_are_no_memory() -> None:
    assert _asked(Memory([]), [1, 2]) == EMPTY
    assert _asked(Memory([[], [1]]), [1, 2]) == EMPTY


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=30), min_size=1, max_size=4),
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=90), min_size=1, max_size=4),
    st.data(),
)
@settings(max_examples=60)
def test_an_answer_leaves_nothing_in_the_memory(
    answers: list[list[int]], texts: list[list[int]], data: st.DataObject
) -> None:
    used = Memory(answers)
    for text in texts:
        cut = data.draw(st.integers(1, len(text)))
        assert _asked(used, text[:cut], text) == _asked(Memory(answers), text[:cut], text)


def test_a_text_that_repeats_itself_is_the_n_grams_matter_and_the_memory_comes_behind() -> None:
    both = FirstOf(NGram(2), Memory([[1, 2, 3, 4]]))
    both.begin(asked([0]))
    assert both.propose(at([1, 2, 9, 9, 1, 2]), UpTo(1)).source == ("ngram",)
    assert both.propose(at([1, 2, 9, 9, 1, 2, 3]), UpTo(1)).source == ("memory",)


def _rounds(target: TableSession, request: Request, proposer: Proposer) -> list[Round]:
    return [e for e in speculate(target, request, proposer) if isinstance(e, Round)]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_text_is_the_plain_text(temperature: float) -> None:
    accepted = drafted = 0
    rng = np.random.default_rng(0)
    for seed in range(10):
        sampling = replace(WARM, temperature=temperature, seed=seed)
        request = replace(asked([1, 2, 3], sampling=sampling), max_tokens=60)
        target = TableSession(V, seed)
        plain = [t.token for r in _rounds(target, request, Nothing()) for t in r.tokens]
        answers = [plain[:30], rng.integers(0, V, 50).tolist(), plain[25:]]
        for drafter in (Memory(answers), Merged(NGramTree(2), Memory(answers))):
            told = _rounds(target, request, Fixed(drafter, (2, 8, 24)[seed % 3]))
            assert [t.token for r in told for t in r.tokens] == plain
            assert not [r.note for r in told if r.note]
            accepted += sum(r.accepted for r in told)
            drafted += sum(len(r.guesses) for r in told)
    assert 200 < accepted < drafted
