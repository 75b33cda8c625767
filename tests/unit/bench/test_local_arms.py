"""Arms on a tiny model: what they answer, and that plain is plain whoever's loop it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from bench_fakes import CHAT, TALK
from tiny_models import TinyModels
from trimmed_drafter import write_trimmed

from edgespec.api import Model, load
from edgespec.backends import SessionOptions
from edgespec.bench.arms import (
    Answered,
    Arm,
    Arrivals,
    PeerArm,
    Setup,
    open_arms,
    speculation,
    usual_arms,
)
from edgespec.bench.conversing import Margins
from edgespec.bench.prompts import Prompt
from edgespec.decoding.sampling import Sampling
from edgespec.errors import BadInput, EdgespecError, OutOfMemory
from edgespec.models.available import Available, GpuMemory
from edgespec.models.gguf import read_header
from edgespec.options import AnswerOptions
from edgespec.text.template import Message

SETUP = Setup(
    AnswerOptions(sampling=Sampling(temperature=0.0, seed=1)),
    SessionOptions(512, threads=1, kv_type="f32", flash_attention="off"),
)
LONG = Prompt("long", "chat", ("the other model read every word " * 8, "and the first of the list"))


@pytest.fixture(scope="module")
def pair(tiny_models: TinyModels) -> Iterator[Model]:
    pytest.importorskip("llama_cpp")
    model = load(
        target=str(tiny_models(layers=2)),
        draft=str(tiny_models(layers=2, noise=0.03)),
        threads=1,
        context=512,
        kv_type="f32",
        flash_attention="off",
    )
    yield model
    model.close()


def _arms(model: Model, *names: str, setup: Setup = SETUP) -> list[Arm]:
    arms, notes = open_arms(names, model, setup)
    assert notes == []
    return arms


def _all(arm: Arm, prompt: Prompt, tokens: int = 40) -> list[Answered]:
    return list(arm.answers(prompt, tokens, lambda: False))


@pytest.mark.parametrize("prompt", [CHAT, TALK, LONG], ids=lambda prompt: prompt.id)
def test_the_librarys_own_loop_says_what_none_says(pair: Model, prompt: Prompt) -> None:
    none, plain_loop = _arms(pair, "none", "plain-loop", setup=replace(SETUP, system="Be brief."))
    told, same = _all(none, prompt), _all(plain_loop, prompt)
    assert [answer.ids for answer in told] == [answer.ids for answer in same]
    assert [answer.text for answer in told] == [answer.text for answer in same]
    assert all(answer.tokens == 40 for answer in told)


def test_the_librarys_own_loop_starts_each_conversation_from_nothing(pair: Model) -> None:
    (arm,) = _arms(pair, "plain-loop")
    assert _all(arm, TALK)[1].ids == _all(arm, TALK)[1].ids


def test_arms_with_guesses_say_what_none_says_and_guess(pair: Model) -> None:
    none, *others = _arms(pair, "none", "ngram:4", "draft:3", "auto:3", "auto")
    plain = _all(none, TALK)
    for arm in others:
        told = _all(arm, TALK)
        assert [answer.ids for answer in told] == [answer.ids for answer in plain]
        if arm.name in ("draft:3", "auto:3"):
            assert all(answer.stats and answer.stats.accepted > 0 for answer in told)
            assert 4 in dict(told[0].widths)


def test_a_drafter_with_an_id_table_stands_beside_every_other_way(
    tiny_models: TinyModels, tmp_path: Path
) -> None:
    pytest.importorskip("llama_cpp")
    target = tiny_models(layers=2)
    source = tiny_models(layers=2, noise=0.03)
    ids = range(1, len(read_header(target).tokens), 2)
    drafter = write_trimmed(tmp_path / "drafter.gguf", source, ids)
    with load(target=str(target), draft=str(drafter), threads=1, context=512) as model:
        names = "none", "ngram:8", "recycling:4", "draft:4", "tree:8", "auto"
        plain, *others = (_all(arm, CHAT) for arm in _arms(model, *names))
    assert [[answer.ids for answer in told] for told in others] == [[plain[0].ids]] * 5
    for name, (answer,) in zip(names[1:], others, strict=True):
        assert answer.stats
        assert not answer.faults
        # a random text has nothing to copy, and the planner may find that nothing pays
        assert answer.stats.drafted > 0 or name in ("ngram:8", "auto")


def test_every_figure_of_a_local_answer_is_measured(pair: Model) -> None:
    for arm in _arms(pair, "none", "plain-loop", "draft:3"):
        (answer,) = _all(arm, CHAT)
        assert answer.tokens_per_second
        assert answer.first_token_s
        assert answer.tokens_per_second > 0
        assert len(answer.gaps_s) == (answer.stats.rounds - 1 if answer.stats else 39)


def test_no_cache_outlives_a_conversation(pair: Model) -> None:
    for arm in _arms(pair, "none", "draft:3"):
        for _ in range(2):
            (answer,) = _all(arm, LONG, 4)[:1]
            assert answer.stats
            assert answer.stats.reused_tokens == 0
            assert answer.stats.prompt_tokens > 20


def test_a_second_turn_reuses_the_first(pair: Model) -> None:
    (arm,) = _arms(pair, "none")
    _, second = _all(arm, TALK)
    assert second.stats
    assert second.stats.reused_tokens > 0


@pytest.mark.parametrize("name", ["none", "plain-loop"])
def test_an_answer_that_is_stopped_is_not_told(pair: Model, name: str) -> None:
    (arm,) = _arms(pair, name)
    asked = iter([False] * 3 + [True] * 9)
    assert list(arm.answers(CHAT, 40, lambda: next(asked))) == []
    assert len(_all(arm, CHAT)) == 1


def test_the_librarys_own_loop_is_left_out_where_it_would_say_something_else(pair: Model) -> None:
    warm = replace(SETUP, options=AnswerOptions(sampling=Sampling(temperature=0.7, seed=1)))
    stops = replace(SETUP, options=replace(SETUP.options, stop=("x",)))
    penalty = replace(SETUP, options=replace(SETUP.options, overrides={"repeat_penalty": 1.1}))
    for setup in (warm, stops, penalty):
        arms, (note,) = open_arms(("none", "plain-loop"), pair, setup)
        assert [arm.name for arm in arms] == ["none"]
        assert note.startswith("plain-loop is left out")


def test_a_second_cache_that_does_not_fit_leaves_only_the_librarys_own_loop_out(
    pair: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(options: SessionOptions) -> None:
        raise OutOfMemory(f"No cache of {options.context} tokens: it cannot be allocated.")

    monkeypatch.setattr(pair.loaded.models[0], "plain_loop", no_room)
    arms, notes = open_arms(("none", "plain-loop", "auto"), pair, SETUP)
    assert [arm.name for arm in arms] == ["none", "auto"]
    assert notes == ["plain-loop is left out: No cache of 512 tokens: it cannot be allocated."]


@pytest.mark.parametrize("gpu", [False, True])
def test_main_memory_that_is_too_short_for_a_second_cache_is_seen_before_it_is_taken(
    pair: Model, monkeypatch: pytest.MonkeyPatch, gpu: bool
) -> None:
    free = Available(9 << 10, (GpuMemory(1 << 30),) if gpu else ())
    monkeypatch.setattr("edgespec.bench.second_cache.room", lambda _gpus: free)
    arms, notes = open_arms(("none", "plain-loop"), pair, SETUP)
    assert [arm.name for arm in arms] == (["none", "plain-loop"] if gpu else ["none"])
    for note in notes:
        assert note.startswith("plain-loop is left out: its own cache needs ")
        assert note.endswith(" of main memory and 0 MiB are free; a shorter --context needs less.")
    assert bool(notes) is not gpu


def test_a_margin_is_that_of_the_two_best_scores(pair: Model) -> None:
    (none,) = _arms(pair, "none")
    first, second = _all(none, TALK)
    assert first.ids
    assert second.ids
    margins = Margins(pair, "", SETUP.options)
    there = margins.after(TALK, [(first.text, first.ids)], second.ids[:5])
    assert there > 0
    assert there == margins.after(TALK, [(first.text, first.ids)], second.ids[:5])
    assert there != margins.after(TALK, [(first.text, first.ids)], second.ids[:6])
    assert _all(none, TALK)[1].ids == second.ids


def test_usual_arms_need_what_they_use(pair: Model) -> None:
    names = usual_arms(pair)
    assert names[0] == "none"
    assert "draft:4" in names
    open_arms(names, pair, SETUP)


@dataclass(frozen=True)
class Parrot:
    """What a peer's answer looks like."""

    text: str
    tokens: int = 3
    seconds_to_first_token: float = 0.25
    tokens_per_second: float | None = 40.0


class Echo:
    """A peer that says how many messages it got."""

    name = "echo@here"

    def answer(self, messages: Sequence[Message], max_tokens: int) -> Parrot:
        roles = ",".join(message.role for message in messages)
        return Parrot(f"{roles} {max_tokens} after {messages[-1].content}")


def test_a_peer_is_asked_turn_by_turn_with_all_that_was_said() -> None:
    answers = _all(PeerArm(Echo(), "Be brief."), TALK, 9)
    assert [answer.text for answer in answers] == [
        "system,user 9 after Hello",
        "system,user,assistant,user 9 after And then?",
    ]
    assert answers[0].first_token_s == 0.25
    assert answers[0].tokens_per_second == 40.0
    assert answers[0].ids is None
    assert answers[0].stats is None


@pytest.mark.parametrize("error", [OverflowError("too large"), ValueError("no number")])
def test_whatever_nonsense_a_peer_sends_is_a_fault_of_its_arm_alone(error: Exception) -> None:
    class Liar(Echo):
        def answer(self, messages: Sequence[Message], max_tokens: int) -> Parrot:
            raise error

    with pytest.raises(EdgespecError, match=r"echo@here sent what makes no sense \("):
        _all(PeerArm(Liar()), CHAT)


def test_peers_stand_behind_the_other_arms(pair: Model) -> None:
    arms, _ = open_arms(("none",), pair, SETUP, [Echo()])
    assert [arm.name for arm in arms] == ["none", "peer:echo@here"]


def test_the_first_sentence_ends_where_a_reader_sees_its_end() -> None:
    for parts, at in (
        (["It is 3.5", " long.", " And"], 3.0),
        (["One", "\n\n", "two"], 2.0),
        (["Yes.", ""], 2.0),
        (["no end", " at all"], None),
        (["好。", "是 so. ", "And"], 1.0),
        (["One.", "\n", "\n", "two"], 2.0),
        (["One", "\n", "\n", "\n", "\n", "two. "], 3.0),
        (["  . ", "A list", ": one", "! ", "Two. "], 4.0),
        (['He said "so', '."', " And"], 3.0),
    ):
        arrivals = Arrivals(0.0)
        for second, part in enumerate(parts, 1):
            arrivals.take(part, float(second))
        arrivals.end()
        assert arrivals.first_sentence_s == at, parts


@pytest.mark.parametrize("name", ["none", "draft:3", "plain-loop"])
def test_no_sentence_is_looked_for_while_an_answer_comes(
    pair: Model, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    looked: list[str] = []

    class Spy:
        def search(self, text: str) -> None:
            looked.append(text)

    def still_coming() -> bool:
        assert looked == [], "one long line would take seconds of the answer that is timed"
        return False

    monkeypatch.setattr("edgespec.bench.arms._SENTENCE", Spy())
    (arm,) = _arms(pair, name)
    (answer,) = arm.answers(CHAT, 40, still_coming)
    assert looked == [answer.text]


def test_what_was_held_back_came_with_the_last_arrival() -> None:
    arrivals = Arrivals(0.0)
    arrivals.take("One", 1.0)
    arrivals.take(". ", 2.0)
    arrivals.take("", 3.0)
    assert arrivals.first_sentence_s == 2.0
    late = Arrivals(0.0)
    late.take("One", 1.0)
    late.end("\u3002")
    assert late.first_sentence_s == 1.0
    assert late.text == "One\u3002"


@pytest.mark.parametrize(
    "name",
    ["draft:", "draft:x", "draft:0", "nonsense", "draft:4000", "auto:0", "none:4", "draft:02"],
)
def test_an_arm_that_there_is_not_is_turned_down(name: str) -> None:
    with pytest.raises(BadInput):
        speculation(name)
