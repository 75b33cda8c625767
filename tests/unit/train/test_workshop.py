"""A training that was begun goes on as it was begun, or says what it would take to change it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_models import CHATML, TinyModels
from train_trials import counting

from edgespec import backends
from edgespec.backends import Placement
from edgespec.conversation import PromptEncoder
from edgespec.errors import BadInput, EdgespecError
from edgespec.models.model_header import header_of
from edgespec.models.pairs import Pair
from edgespec.options import LoadOptions
from edgespec.text.documents import Document
from edgespec.train import gathering
from edgespec.train.begun import Begun
from edgespec.train.gathering import Enough
from edgespec.train.records import CONTEXT, Record
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


ESSAY = Document("essay.txt", "the user asked for a short answer and the model wrote one. " * 80)


@pytest.fixture
def two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llama_cpp")
    monkeypatch.setattr(gathering, "SLOTS", (2,))


@pytest.mark.usefixtures("two_at_a_time")
def test_texts_beyond_the_tokens_are_told(shop: Workshop) -> None:
    told: list[str] = []
    reading = replace(_otherwise(shop, own=False, texts=(ESSAY, LETTER)), tell=told.append)
    begun = reading.gathered()
    assert len(begun.texts) == 1
    assert "letter.txt is too short to learn from" in told
    (line,) = [line for line in told if "pieces" in line]
    assert line.startswith("2 of ")
    assert line.endswith(" pieces of your texts were read; --tokens gives more")


@pytest.mark.usefixtures("two_at_a_time")
def test_texts_that_the_time_was_too_short_for_are_told(shop: Workshop, begun: Begun) -> None:
    told: list[str] = []
    both = replace(_otherwise(shop, texts=(ESSAY,)), tell=told.append)
    replace(begun, gathered_s=LONG, ids=None, tokens=0, terms=both.wish.terms).save(shop.course)
    both.gathered()
    (line,) = [line for line in told if "pieces" in line]
    assert line.startswith("0 of ")
    assert line.endswith(" pieces of your texts were read; --time gives more")


@pytest.mark.usefixtures("two_at_a_time")
def test_texts_that_were_read_whole_are_not_worth_a_word(shop: Workshop) -> None:
    told: list[str] = []
    reading = _otherwise(shop, own=False, texts=(ESSAY,), tokens=10_000)
    replace(reading, tell=told.append).gathered()
    assert reading.texts.census().tokens > 300
    assert not [line for line in told if "pieces" in line or "too short" in line]


@pytest.mark.usefixtures("two_at_a_time")
@pytest.mark.parametrize(
    ("enough_there", "shares"),
    [(False, {"texts": 0.225, "answers": 0.45}), (True, {"texts": 0.45})],
    ids=["answers lack", "answers are there"],
)
def test_texts_leave_half_of_the_time_to_answers_that_lack(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, enough_there: bool, shares: dict[str, float]
) -> None:
    given: dict[str, float] = {}

    def gather(self: gathering.Gathering, _: Iterator[Sequence[Record]], enough: Enough) -> None:
        given[self.what] = enough.seconds

    shop.answers.add([counting(n) for n in range(8 if enough_there else 1)])
    monkeypatch.setattr(gathering.Gathering, "gather", gather)
    _otherwise(shop, texts=(ESSAY,)).gathered()
    assert given == {what: pytest.approx(share * LONG) for what, share in shares.items()}


@pytest.mark.usefixtures("two_at_a_time")
def test_a_context_without_room_for_answers_is_refused_and_nothing_is_begun(
    wish: Wish, tiny_models: TinyModels
) -> None:
    small = replace(wish, pair=Pair("small", tiny_models(layers=2, context=24)))
    with workshop(small, lambda line: None) as opened:
        with pytest.raises(BadInput, match="of the target's context of 24 too few are left"):
            opened.gathered()
        assert Begun.load(opened.course) is None


def _wordy(monkeypatch: pytest.MonkeyPatch, sentences: int) -> None:
    """Every template has a system prompt of its own, of so many sentences."""
    long = "the model wrote one word after the other, and kept it. " * sentences
    template = f"<|im_start|>system\n{long}<|im_end|>\n{CHATML}"
    monkeypatch.setattr("edgespec_llamacpp.tokenizer.LlamaTokenizer.template", lambda _: template)


@pytest.mark.usefixtures("two_at_a_time")
def test_a_template_with_a_long_system_prompt_of_its_own_leaves_room_for_answers(
    wish: Wish, tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wordy(monkeypatch, 20)
    pair, told = Pair("wordy", tiny_models(layers=2, context=4096)), list[str]()
    asked = replace(wish, pair=pair, texts=(), tokens=20)
    with workshop(asked, told.append) as opened:
        opened.gathered()
        (first, *_) = opened.answers
    assert first.begun > 320
    assert not [line for line in told if "cut short" in line]


@pytest.mark.usefixtures("two_at_a_time")
def test_no_answer_is_longer_than_a_drafter_reads(
    wish: Wish, tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wordy(monkeypatch, 40)
    told, path = list[str](), tiny_models(layers=2, context=4096)
    model = backends.find("llamacpp").load(path, Placement())
    with workshop(replace(wish, pair=Pair("wordy", path)), told.append) as opened:
        batch = opened._batch(model, header_of(path))
        opened._harvest(batch, PromptEncoder(model.tokenizer))
    model.close()
    assert batch.context == CONTEXT
    assert told == ["long answers are cut short: a drafter's context is 1024 tokens"]


@pytest.mark.usefixtures("two_at_a_time")
def test_a_template_that_leaves_a_drafter_no_room_for_answers_is_refused(
    wish: Wish, tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    _wordy(monkeypatch, 80)
    asked = replace(wish, pair=Pair("wordy", tiny_models(layers=2, context=4096)))
    with workshop(asked, lambda line: None) as opened:
        with pytest.raises(BadInput, match="of a drafter's context of 1024 too few are left"):
            opened.gathered()
        assert Begun.load(opened.course) is None


@pytest.mark.usefixtures("two_at_a_time")
def test_a_context_that_cuts_answers_short_is_told(shop: Workshop) -> None:
    told: list[str] = []
    replace(_otherwise(shop, texts=(), tokens=20), tell=told.append).gathered()
    assert "long answers are cut short: the target's context is 512 tokens" in told


def test_a_cache_folder_that_cannot_be_made_is_told_in_one_line(
    wish: Wish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("EDGESPEC_CACHE_DIR", str(tmp_path / "file"))
    with (
        pytest.raises(EdgespecError, match=r"training\S* cannot be used \(.*\); make room") as told,
        workshop(wish, lambda line: None),
    ):
        pytest.fail("there is no place to work in")
    assert "\n" not in str(told.value)


def test_two_trainings_for_one_target_do_not_run_at_once(shop: Workshop, wish: Wish) -> None:
    with (
        pytest.raises(EdgespecError, match="Another edgespec is training for"),
        workshop(wish, lambda line: None),
    ):
        pytest.fail("the place is taken")


def test_what_fails_inside_is_not_blamed_on_the_folder(wish: Wish) -> None:
    with pytest.raises(TimeoutError, match="of the work"), workshop(wish, lambda line: None):
        raise TimeoutError("of the work")
