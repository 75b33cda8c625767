"""The n-gram repeats what followed the longest earlier match of the text's end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proposing import asked, at

from edgespec.decoding.proposer import UpTo
from edgespec.proposers import ngram
from edgespec.proposers.ngram import LEVELS, LONGEST, NOT_A_TOKEN, PLACES, NGram, SuffixIndex

texts = st.integers(1, 4).flatmap(
    lambda letters: st.lists(st.integers(0, letters), min_size=1, max_size=60)
)


def _match(text: Sequence[int], place: int, end: int) -> int:
    """How many tokens up to `place` equal those up to `end`."""
    n = 0
    while n < min(LONGEST, end) and place - n >= 0 and text[place - n] == text[end - n]:
        n += 1
    return n


def _best_by_force(text: Sequence[int]) -> tuple[int | None, int]:
    """Every earlier place, ranked by length, then count of its next token, then recency."""
    end = len(text) - 1
    lengths = [_match(text, place, end) for place in range(end)]
    longest = max(lengths, default=0)
    if not longest:
        return None, 0
    best = [place for place, length in enumerate(lengths) if length == longest]
    common = Counter(text[place + 1] for place in best)
    return max(best, key=lambda place: (common[text[place + 1]], place)), longest


def _guesses(
    text: Sequence[int], n: int, prediction: Sequence[int] = (), shortest: int = 1
) -> list[int]:
    proposer = NGram(shortest)
    proposer.begin(asked([0], prediction))
    return list(proposer.propose(at(text), UpTo(n)).tokens)


@settings(max_examples=400, deadline=None)
@given(texts)
def test_the_best_place_is_the_one_found_by_force(text: list[int]) -> None:
    match = SuffixIndex(text).best_match(-1)
    assert (match.place if match.length else None, match.length) == _best_by_force(text)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 50), st.integers(0, 40))
def test_long_repeats_are_found_at_their_full_length(seed: int, repeat: int, between: int) -> None:
    rng = np.random.default_rng(seed)
    piece = rng.integers(0, 1000, repeat).tolist()
    text = [*piece, *rng.integers(1000, 2000, between + 1).tolist(), *piece]
    match = SuffixIndex(text).best_match(-1)
    place, length = match.place, match.length
    assert (place, length) == (repeat - 1, repeat)


@settings(max_examples=200, deadline=None)
@given(texts, st.data())
def test_an_index_that_grew_equals_one_built_at_once(text: list[int], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    grown = SuffixIndex(text[:start])
    for n, token in enumerate(text[start:], start + 1):
        grown.extend([token])
        assert grown.best_match(-1) == SuffixIndex(text[:n]).best_match(-1)
    whole = SuffixIndex(text)
    assert (grown._hashes, grown._links, grown._heads) == (
        whole._hashes,
        whole._links,
        whole._heads,
    )


def test_of_equal_matches_the_more_common_continuation_wins_then_the_latest() -> None:
    assert _guesses([1, 5, 1, 5, 1, 6, 1], 1) == [5]
    assert _guesses([1, 5, 1, 6, 1], 1) == [6]


def test_a_longer_match_beats_a_more_recent_one() -> None:
    assert _guesses([7, 1, 5, 0, 2, 1, 6, 0, 7, 1], 1) == [5]


def test_a_text_without_repeats_gives_no_guess() -> None:
    proposer = NGram()
    proposer.begin(asked([0]))
    assert not proposer.propose(at([1, 2, 3, 4]), UpTo(5))
    assert proposer.plan == "n-gram: nothing like this came before"
    assert not proposer.propose(at([1]), UpTo(5))


def test_matches_below_the_shortest_are_no_reason_to_guess() -> None:
    assert _guesses([1, 2, 9, 1, 2], 2, shortest=2) == [9, 1]
    assert _guesses([1, 2, 9, 1, 2], 2, shortest=3) == []


def test_guesses_go_on_in_a_circle_behind_the_end() -> None:
    assert _guesses([1, 2, 3, 1, 2, 3], 7) == [1, 2, 3, 1, 2, 3, 1]
    assert _guesses([4, 4], 3) == [4, 4, 4]


@pytest.mark.parametrize("room", [0, 1, 5])
def test_no_more_is_guessed_than_asked_for(room: int) -> None:
    assert len(_guesses([1, 2, 3, 1], room)) == room


def test_a_prediction_is_a_place_to_look() -> None:
    assert _guesses([1, 2], 3, prediction=[9, 1, 2, 3, 4, 5]) == [3, 4, 5]


def test_guesses_from_a_prediction_end_with_it() -> None:
    assert _guesses([1, 2], 9, prediction=[1, 2, 3]) == [3]
    assert _guesses([7, 3], 9, prediction=[1, 2, 3]) == []


def test_no_match_runs_across_the_border_of_the_prediction() -> None:
    """[1, 2] ends the prediction and 3 begins the prompt: [1, 2, 3] was never said."""
    proposer = NGram(shortest=2)
    proposer.begin(asked([0], [1, 2]))
    assert not proposer.propose(at([3, 9, 9, 8, 2, 3]), UpTo(3))
    assert proposer.match.length == 1


@settings(max_examples=200, deadline=None)
@given(texts, texts)
def test_with_a_prediction_the_border_is_never_guessed(
    prediction: list[int], text: list[int]
) -> None:
    guesses = _guesses(text, 20, prediction)
    assert NOT_A_TOKEN not in guesses
    joined = [*prediction, NOT_A_TOKEN, *text]
    place, _ = _best_by_force(joined)
    assert guesses[:1] == ([] if place is None else [t for t in [joined[place + 1]] if t >= 0])


def test_a_new_answer_forgets_the_last_one() -> None:
    proposer = NGram()
    proposer.begin(asked([0], prediction=[5, 6, 7]))
    assert list(proposer.propose(at([1, 2, 3, 1]), UpTo(2)).tokens) == [2, 3]
    proposer.begin(asked([0]))
    assert not proposer.propose(at([4, 1]), UpTo(2)), "1 was followed by 2 in the last answer"
    assert not proposer.propose(at([4, 1, 5]), UpTo(2)), "5 was in the last prediction"
    assert list(proposer.propose(at([4, 1, 5, 4]), UpTo(2)).tokens) == [1, 5]


@settings(max_examples=200, deadline=None)
@given(texts, texts)
def test_tokens_taken_back_leave_no_trace(text: list[int], more: list[int]) -> None:
    index, untouched = SuffixIndex(text), SuffixIndex(text)
    index.extend(more)
    index.retract(len(more))
    assert (index._hashes, index._links, index._heads) == (
        untouched._hashes,
        untouched._links,
        untouched._heads,
    )
    assert index.best_match(-1) == untouched.best_match(-1)


def test_of_equal_places_the_one_that_goes_on_with_a_copy_counts() -> None:
    """The list repeats its last line's beginning; the text has copied lines one and two."""
    lines = [1, 9, 11], [2, 9, 12], [3, 9, 13], [4, 9, 14]
    copied = [token for line in lines for token in line]
    text = [*copied, 0, *copied[:6], 5, 9]
    proposer = NGram()
    proposer.begin(asked([0]))
    for n in range(len(copied) + 2, len(text) + 1):
        draft = proposer.propose(at(text[:n]), UpTo(3))
    assert draft.tokens[0] == 13
    assert proposer.match.near
    assert proposer.match.contested
    fresh = NGram()
    fresh.begin(asked([0]))
    assert fresh.propose(at(text), UpTo(3)).tokens[0] == 12, "without knowing of the copy"


def test_guesses_of_others_are_followed_and_forgotten() -> None:
    text = [1, 2, 3, 4, 5, 6, 7, 0, 1]
    proposer = NGram()
    proposer.begin(asked([0]))
    before = proposer.propose(at(text), UpTo(2))
    match, tail = proposer.follow([2, 3], 3)
    assert (match.length, tail) == (3, [4, 5, 6])
    assert proposer.follow([9], 3)[1] == []
    assert proposer.propose(at(text), UpTo(2)) == before


def test_the_text_is_read_from_where_it_was_left() -> None:
    rng, proposer = np.random.default_rng(0), NGram()
    text = rng.integers(0, 3, 10).tolist()
    proposer.begin(asked([0]))
    for _ in range(40):
        proposer.propose(at(text), UpTo(4))
        fresh = NGram()
        fresh.begin(asked([0]))
        fresh.propose(at(text), UpTo(4))
        assert proposer._index.best_match(-1) == fresh._index.best_match(-1)
        assert proposer.match.length == fresh.match.length
        text += rng.integers(0, 3, int(rng.integers(1, 6))).tolist()


@pytest.mark.parametrize("size", [100, 1_000, 20_000])
def test_a_token_costs_one_step_for_each_level_however_long_the_text(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, joins = SuffixIndex(np.random.default_rng(0).integers(0, 50, size)), []
    join = ngram._join
    monkeypatch.setattr(ngram, "_join", lambda a, b: joins.append(1) or join(a, b))
    index.extend([1, 2, 3, 4])
    assert len(joins) == 4 * (len(LEVELS) - 1)
    assert [len(links) for links in index._links] == [size + 4] * len(LEVELS)


@pytest.mark.parametrize("letters", [1, 2, 50])
def test_a_round_compares_a_bounded_number_of_places_however_long_the_text(
    letters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One letter repeated for ever is the worst case: everything matches everything."""
    text = np.random.default_rng(0).integers(0, letters, 20_000)
    index, compared = SuffixIndex(text), list[tuple[int, ...]]()
    lengths = SuffixIndex._match_lengths

    def counted(self: SuffixIndex, places: object, end: int) -> object:
        compared.append(np.shape(places))
        return lengths(self, places, end)

    monkeypatch.setattr(SuffixIndex, "_match_lengths", counted)
    assert index.best_match(-1).length
    assert len(compared) <= len(LEVELS)
    assert max(shape[0] for shape in compared) <= PLACES
