"""What a round tells: where each token came from, what was tested, and how long it took."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from answer_trials import PLAIN
from hypothesis import given, settings
from hypothesis import strategies as st
from trials import PROMPT, Copy, Fixed, RandomTree, V, Wrong, answer, ask, unfiltered

from edgespec.decoding.accept import accept
from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.events import Committed, Guess, Kind, PromptRead, Round
from edgespec.decoding.loop import Decoding, speculate
from edgespec.decoding.proposer import Budget, State
from edgespec.decoding.sampling import Sampling
from edgespec.testing import TableSession

GREEDY = Sampling(0.0)


def _truth(n: int) -> list[int]:
    """The greedy answer."""
    return answer(TableSession(V), ask(GREEDY, n)).tokens


def _other(token: int) -> int:
    return (token + 1) % V


def _second_round(draft: Draft, max_tokens: int = 24) -> Round:
    return answer(TableSession(V), ask(GREEDY, max_tokens), Fixed(draft)).rounds[1]


def _kinds(round_: Round) -> list[tuple[int, Kind, str]]:
    return [(t.token, t.kind, t.source) for t in round_.tokens]


def _flags(round_: Round) -> list[tuple[bool, bool]]:
    return [(guess.tested, guess.accepted) for guess in round_.guesses]


def test_the_first_round_after_a_prompt_is_plain() -> None:
    session = TableSession(V)
    first, second, *_ = answer(session, ask(GREEDY), Copy(TableSession(V), 4)).rounds
    assert _kinds(first) == [(_truth(1)[0], Kind.PLAIN, "")]
    assert first.guesses == ()
    assert len(second.guesses) == 4
    assert session.widths[:2] == [1, 5]


def test_a_right_chain_is_accepted_and_followed_by_a_bonus() -> None:
    t = _truth(5)
    round_ = _second_round(Draft.chain(t[1:4], "ngram"))
    assert _kinds(round_) == [
        (t[1], Kind.ACCEPTED, "ngram"),
        (t[2], Kind.ACCEPTED, "ngram"),
        (t[3], Kind.ACCEPTED, "ngram"),
        (t[4], Kind.BONUS, ""),
    ]
    assert _flags(round_) == [(True, True)] * 3
    assert (round_.index, round_.accepted) == (1, 3)


def test_a_wrong_guess_is_corrected_and_what_follows_it_was_not_tested() -> None:
    t = _truth(5)
    round_ = _second_round(Draft.chain([t[1], _other(t[2]), t[3]], "ngram"))
    assert _kinds(round_) == [(t[1], Kind.ACCEPTED, "ngram"), (t[2], Kind.CORRECTION, "")]
    assert _flags(round_) == [(True, True), (True, False), (False, False)]


def test_siblings_are_tested_together_and_one_is_accepted() -> None:
    t = _truth(5)
    tree = Draft(
        [_other(t[1]), t[1], t[2], _other(t[2]), t[2]],
        [ROOT, ROOT, 0, 1, 1],
        ("a", "b", "a", "b", "c"),
        (None,) * 5,
    )
    round_ = _second_round(tree)
    assert _kinds(round_) == [
        (t[1], Kind.ACCEPTED, "b"),
        (t[2], Kind.ACCEPTED, "c"),
        (t[3], Kind.BONUS, ""),
    ]
    assert _flags(round_) == [
        (True, False),
        (True, True),
        (False, False),
        (True, False),
        (True, True),
    ]


def test_of_equal_siblings_the_first_is_accepted() -> None:
    t = _truth(5)
    twins = Draft([t[1], t[1]], [ROOT, ROOT], ("a", "b"), (None, None))
    assert _flags(_second_round(twins)) == [(True, True), (True, False)]


def _walk(target: TableSession, draft: Draft) -> tuple[list[int], int, set[int]]:
    """Brute force: every node whose line from the root is what the target says, greedily."""
    lines = {ROOT: list(PROMPT)}
    right = {ROOT}
    for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
        lines[node] = [*lines[parent], token]
        earlier = [n for n in draft.children(parent) if n < node and draft.tokens[n] == token]
        if parent in right and token == target.row(lines[parent]).argmax() and not earlier:
            right.add(node)
    deepest = max(right, key=lambda node: len(lines[node]))
    path = sorted(right - {ROOT})
    tested = {node for node, parent in enumerate(draft.parents) if parent in right}
    return path, int(target.row(lines[deepest]).argmax()), tested


@st.composite
def trees(draw: st.DrawFn) -> Draft:
    nodes = draw(st.integers(0, 14))
    tokens = draw(st.lists(st.integers(0, 2), min_size=nodes, max_size=nodes))
    parents = [draw(st.integers(max(ROOT, node - 5), node - 1)) for node in range(nodes)]
    return Draft(tokens, parents, ("tree",) * nodes, (None,) * nodes)


@settings(max_examples=300, deadline=None)
@given(draft=trees(), seed=st.integers(0, 50))
def test_any_tree_is_judged_as_by_brute_force(draft: Draft, seed: int) -> None:
    target = TableSession(3, seed)
    list(target.prefill(np.array(PROMPT, dtype=np.int32) % 3))
    decoding = Decoding(target, ask(GREEDY, prompt=[t % 3 for t in PROMPT]), PLAIN)
    decoding.open()
    decoding._draft = draft
    scores = target.verify(draft)
    judged = accept(draft, scores, decoding._rule, [], 0)
    round_ = decoding.close(scores)
    target.row = lambda history: TableSession.row(target, [t % 3 for t in history])  # type: ignore[method-assign]
    path, next_token, tested = _walk(target, draft)
    assert list(judged.path) == path
    assert judged.next_token == next_token
    assert [g.tested for g in round_.guesses] == [n in tested for n in range(len(draft))]
    assert [g.accepted for g in round_.guesses] == [n in path for n in range(len(draft))]
    last = round_.tokens[-1]
    end = path[-1] if path else ROOT
    kind = Kind.CORRECTION if draft.children(end) else Kind.BONUS if draft else Kind.PLAIN
    assert last == Committed(next_token, kind)
    assert round_.guesses == tuple(
        Guess(t, p, "tree", n in tested, n in path)
        for n, (t, p) in enumerate(zip(draft.tokens, draft.parents, strict=True))
    )


@pytest.mark.parametrize(
    "proposer",
    [
        Copy(TableSession(V, noise=1.5), 5),
        RandomTree(TableSession(V, noise=1.5), 9),
        Wrong(TableSession(V), 3),
    ],
    ids=lambda proposer: proposer.name,
)
def test_indices_sources_and_counts_add_up_over_an_answer(proposer: Copy) -> None:
    told = answer(TableSession(V), ask(unfiltered(), 60), proposer)
    at = 0
    for round_ in told.rounds:
        assert round_.index == at
        at += len(round_.tokens)
        kinds = [token.kind for token in round_.tokens]
        assert kinds[:-1] == [Kind.ACCEPTED] * round_.accepted
        assert kinds[-1] in (Kind.CORRECTION, Kind.BONUS, Kind.PLAIN)
        assert all((t.source == proposer.name) == (t.kind == Kind.ACCEPTED) for t in round_.tokens)
        assert all(guess.tested or not guess.accepted for guess in round_.guesses)
    assert at == 60
    assert told.drafted > told.accepted
    assert (told.accepted > 0) == (proposer.name != "wrong")


def test_a_drafter_is_shown_all_tokens_the_index_and_what_fits() -> None:
    seen = list[tuple[list[int], int, int]]()

    class Watching(Copy):
        def propose(self, state: State, budget: Budget) -> Draft:
            seen.append((state.tokens.tolist(), state.index, budget.nodes))
            return Copy.propose(self, state, budget)

    told = answer(TableSession(V), ask(GREEDY, 12), Watching(TableSession(V, noise=1.5), 3))
    starts = [round_.index for round_ in told.rounds[1:]]
    expected = [([*PROMPT, *told.tokens[:at]], at, 12 - at - 1) for at in starts]
    assert seen == [shown for shown in expected if shown[2] > 0]


def test_times_are_of_the_right_parts() -> None:
    ticks: Iterator[float] = iter([0.0, 1.0, 10.0, 12.0, 15.0, 20.0, 30.0, 31.0, 33.5, 43.5, 44.5])
    events = speculate(TableSession(V), ask(GREEDY, 2), PLAIN, clock=lambda: next(ticks))
    prompts, rounds = [], []
    for event in events:
        prompts += [event] if isinstance(event, PromptRead) else []
        rounds += [event] if isinstance(event, Round) else []
    # start 0, reused at 1, read at 10; open 12 to 15, judged from 20, told at 30; and so on
    assert [prompt.seconds for prompt in prompts] == [1.0, 10.0]
    parts = [(round_.draft_s, round_.verify_s, round_.round_s) for round_ in rounds]
    assert parts == [(3.0, 5.0, 18.0), (2.5, 10.0, 13.5)]


def test_prompt_progress_is_told_chunk_by_chunk() -> None:
    prompt = [token % V for token in range(200)]
    told = [e for e in speculate(TableSession(V), ask(GREEDY, 1, prompt), PLAIN)]
    steps = [(e.read, e.total, e.reused) for e in told if isinstance(e, PromptRead)]
    assert steps == [(0, 200, 0), (64, 200, 0), (128, 200, 0), (192, 200, 0), (199, 200, 0)]


def test_an_empty_draft_is_told_as_a_plain_round() -> None:
    round_ = _second_round(EMPTY)
    assert [token.kind for token in round_.tokens] == [Kind.PLAIN]
    assert round_.accepted == 0
    assert round_.text == ""
