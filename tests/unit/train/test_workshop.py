"""A training that was begun goes on as it was begun, or says what it would take to change it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tiny_models import TinyModels
from train_trials import counting

from edgespec.errors import BadInput
from edgespec.models.pairs import Pair
from edgespec.options import LoadOptions
from edgespec.text.documents import Document
from edgespec.train.begun import Begun
from edgespec.train.workshop import Wish, Workshop, workshop

NOTES, LETTER = Document("notes.txt", "one word after the other"), Document("letter.txt", "dear")
LONG = 1e6


@pytest.fixture
def wish(tiny_models: TinyModels) -> Wish:
    pair = Pair("tiny", tiny_models(layers=2))
    texts, options = (NOTES, LETTER), LoadOptions(threads=1)
    return Wish("mine", pair, True, texts, 300, LONG, 64, 4 << 30, 7, options)


@pytest.fixture
def shop(wish: Wish) -> Iterator[Workshop]:
    with workshop(wish, lambda line: None) as opened:
        yield opened


@pytest.fixture
def begun(shop: Workshop) -> Begun:
    """A training that has settled what it learns, and not learned yet."""
    kept = shop.answers.add([counting(0)])
    begun = Begun(384, [0, 3], shop.wish.terms, tokens=300, ids=[0, 3, 9], answers=[kept.name])
    begun.save(shop.course)
    return begun


def _otherwise(shop: Workshop, **changes: Any) -> Workshop:
    return replace(shop, wish=replace(shop.wish, **changes))


def test_what_is_asked_for_again_goes_on(shop: Workshop, begun: Begun) -> None:
    again = _otherwise(shop, texts=(LETTER, NOTES), seconds=2 * LONG, memory_bytes=3 << 30)
    assert again.gathered() == begun


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"most_ids": 65}, "'mine' was begun with --vocabulary 64; go on with that, or begin anew"),
        ({"seed": 0}, "'mine' was begun with --seed 7; go on"),
        ({"own": False}, "begun with --data self --data letter.txt --data notes.txt; go on"),
        ({"texts": (NOTES,)}, "begun with --data self --data letter.txt --data notes.txt; go on"),
        ({"texts": (LETTER, replace(NOTES, text="another"))}, "A text of --data is not what it"),
    ],
    ids=["vocabulary", "seed", "without answers", "without a text", "another text"],
)
@pytest.mark.parametrize("settled", [True, False])
def test_what_is_asked_for_otherwise_is_refused(
    shop: Workshop, begun: Begun, changes: dict[str, Any], said: str, settled: bool
) -> None:
    if not settled:
        replace(begun, ids=None, tokens=0).save(shop.course)
    with pytest.raises(BadInput) as refused:
        _otherwise(shop, **changes).gathered()
    assert said in str(refused.value)
    assert "begin anew with --fresh" in str(refused.value)


@pytest.mark.parametrize("tokens", [100, 900])
def test_once_it_learns_it_is_too_late_for_other_answers(
    shop: Workshop, begun: Begun, tokens: int
) -> None:
    shop.checkpoint.write_bytes(b"what was learned")
    with pytest.raises(
        BadInput, match=r"the answers of --tokens 300; .* with --fresh: the answers"
    ):
        _otherwise(shop, tokens=tokens).gathered()
    assert shop.gathered() == begun


def test_before_it_learns_more_answers_are_gathered(shop: Workshop) -> None:
    pytest.importorskip("llama_cpp")
    alone = _otherwise(shop, texts=())
    few = alone.gathered()
    assert alone.answers.census().tokens >= 300
    more = _otherwise(alone, tokens=900).gathered()
    assert alone.answers.census().tokens >= 900
    assert more.answers[: len(few.answers)] == few.answers
    assert len(more.answers) > len(few.answers)
    assert more.ids != few.ids, "the vocabulary is that of all answers"
    assert Begun.load(shop.course) == more


def test_answers_that_the_time_was_too_short_for_are_told(shop: Workshop, begun: Begun) -> None:
    pytest.importorskip("llama_cpp")
    told: list[str] = []
    spent = replace(
        begun, gathered_s=LONG, ids=None, tokens=0, terms=replace(shop.wish, texts=()).terms
    )
    spent.save(shop.course)
    replace(_otherwise(shop, texts=()), tell=told.append).gathered()
    assert "the time for answers is over, with 40 of 300 tokens; --time gives more" in told
