"""Trees, recycling and earlier answers, as an app switches them on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from api_trials import Load

from edgespec import Speculation
from edgespec.answering import Answer, Asked
from edgespec.api import Model
from edgespec.decoding.events import Event
from edgespec.errors import BadInput
from edgespec.history import History, State
from edgespec.options import AnswerOptions, LoadOptions
from edgespec.planning.cost import CostCurve
from edgespec.planning.luck import CHEAP_ROWS
from edgespec.planning.planner import Auto

PROMPT = "Say the same thing again and again"


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("proposer", ["tree", "recycling"])
def test_the_text_is_the_plain_text(pair: Model, proposer: str, temperature: float) -> None:
    accepted = drafted = 0
    for seed in range(4):
        pair.speculation = Speculation("none")
        plain = pair.generate(PROMPT, max_tokens=60, seed=seed, temperature=temperature)
        for speculation in (Speculation(proposer, draft_tokens=12), Speculation(proposer)):
            pair.speculation = speculation
            told = pair.generate(PROMPT, max_tokens=60, seed=seed, temperature=temperature)
            assert told.token_ids == plain.token_ids
            accepted, drafted = accepted + told.stats.accepted, drafted + told.stats.drafted
    assert 0 < accepted < drafted


def test_a_tree_joins_the_text_the_draft_model_and_what_is_recycled(pair: Model) -> None:
    pair.speculation = Speculation("tree", draft_tokens=16)
    told = pair.generate(PROMPT, max_tokens=60, temperature=0)
    assert {name for name, _ in told.stats.by_proposer} >= {"draft", "recycling"}


def test_in_strict_mode_trees_become_chains(opened: Load) -> None:
    model = opened(strict=True)
    model.speculation = Speculation("tree", draft_tokens=6)
    notes = []
    for event in model.stream(PROMPT, max_tokens=40, temperature=0):
        notes.append(getattr(event, "note", ""))
    assert not any(notes)


def test_an_unknown_proposer_is_told_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="recycling, tree"):
        Speculation("magic")


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> History:
    monkeypatch.setenv("EDGESPEC_DATA_DIR", str(tmp_path / "data"))
    return History.open()


def _keep(history: History, model: str, ids: tuple[int, ...], vocabulary: str | None = None) -> int:
    talk = history.new()
    talk.say("A question")
    answer = talk.begin_answer(model, 1, vocabulary=vocabulary)
    talk.finish(answer.id, "An answer", ids, State.WHOLE, {})
    return talk.id


def test_earlier_answers_are_looked_up_where_that_is_allowed_and_as_long_as_they_are_kept(
    opened: Load, history: History
) -> None:
    first = opened()
    told = first.generate(PROMPT, max_tokens=40, temperature=0)
    number = _keep(history, first.info.pair, told.token_ids)
    _keep(history, "another model", told.token_ids)
    asked = {"max_tokens": 40, "temperature": 0.0}
    used = {}
    for name, settings in {"allowed": {"remember": True}, "not asked": {}}.items():
        model = opened(always_draft=True, draft_tokens=6, **settings)
        again = model.generate(PROMPT, **asked)
        assert again.token_ids == told.token_ids
        used[name] = dict(again.stats.by_proposer).get("memory")
    assert used["allowed"] is not None
    assert used["not asked"] is None
    history.delete(number)
    model = opened(always_draft=True, draft_tokens=6, remember=True)
    assert "memory" not in dict(model.generate(PROMPT, **asked).stats.by_proposer)


def test_earlier_answers_in_another_vocabulary_are_not_looked_up(
    opened: Load, history: History
) -> None:
    first = opened()
    told = first.generate(PROMPT, max_tokens=40, temperature=0)

    def remembers() -> bool:
        return opened(remember=True)._desk.loaded.luck.memory is not None

    _keep(history, first.info.pair, told.token_ids, "the digest of another one")
    assert not remembers()
    _keep(history, first.info.pair, told.token_ids, first.vocabulary)
    assert remembers()


def test_answers_with_tokens_that_this_model_has_not_are_another_models(
    opened: Load, history: History
) -> None:
    first = opened()
    told = first.generate(PROMPT, max_tokens=40, temperature=0).token_ids
    vocab = first.loaded.target.session.caps.vocab
    for odd in (vocab, 2**31 - 1):
        _keep(history, first.info.pair, (*told[:20], odd, *told[20:]))
    assert opened(remember=True).loaded.luck.memory is None
    _keep(history, first.info.pair, told)
    model = opened(always_draft=True, draft_tokens=6, remember=True)
    again = model.generate(PROMPT, max_tokens=40, temperature=0)
    assert dict(again.stats.by_proposer)["memory"] is not None


def test_nothing_is_remembered_unless_it_is_asked_for() -> None:
    assert LoadOptions().remember is False


def test_where_chains_are_exact_to_the_bit_auto_drafts_no_trees_and_the_exception_is_told(
    opened: Load,
) -> None:
    model = opened()
    loaded = model._desk.loaded
    target = loaded.target
    exact = replace(target.measurement, classes=((1, 2, 4, 8, 16),))
    rounds = replace(target.measurement, classes=((1,), (2, 4, 8, 16)))
    cheap = CostCurve({1: 1.0, 4: 1.1})
    luck = replace(loaded.luck, cost=cheap)
    text, chain = luck.text, luck.ngram
    for measurement, chosen in ((exact, chain), (rounds, text)):
        changed = replace(loaded, luck=luck, target=replace(target, measurement=measurement))
        auto = changed.proposer(Speculation())
        assert isinstance(auto, Auto)
        assert auto._sources == [chosen]
        assert ("except by --proposer tree" in changed.exactness) == (measurement is exact)
        told = f"bit-exact as measured: after {exact.context} tokens of text, passes over 1, 2, 4,"
        assert changed.exactness.startswith(told) == (measurement is exact)
        assert ("tree" in changed.inexact_with) == (measurement is exact)


@pytest.mark.parametrize("before", [0, 4000])
def test_trees_are_drafted_by_the_length_of_this_text_and_not_of_the_one_before(
    opened: Load, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    loaded, used = opened()._desk.loaded, list[Auto]()

    def speculate(session: object, request: object, proposer: Auto) -> Iterator[Event]:
        used.append(proposer)
        return iter(())

    monkeypatch.setattr("edgespec.answering.speculate", speculate)
    cost = CostCurve({1: 1.0, 4: 1.1}, token_s=1e-3)
    cost.at(before)
    assert (cost.relative(4) > CHEAP_ROWS) == (before > 0)
    rounds = replace(loaded.target.measurement, classes=((1,), (2, 4, 8, 16)))
    luck = replace(loaded.luck, cost=cost)
    target = replace(loaded.target, measurement=rounds, cost=cost)
    changed = replace(loaded, luck=luck, target=target)
    asked = Asked.of(AnswerOptions(), Speculation(), {})
    answer = Answer(changed, loaded.models[0].tokenizer, asked, np.array([1, 2], np.int32))
    assert list(answer.events()) == []
    assert [auto._sources for auto in used] == [[luck.text]]
