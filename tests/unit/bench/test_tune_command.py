"""`edgespec tune` on tiny models in real llama.cpp: compares, keeps, and is obeyed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tiny_models import TinyModels
from trimmed_drafter import write_trimmed

from edgespec.api import Model, Speculation, load
from edgespec.bench.prompts import Prompt
from edgespec.bench.recorded import NO_GUESS
from edgespec.bench.recording import Drafter, from_conversations, record
from edgespec.bench.replay import FixedArm, replay
from edgespec.cli.root import edgespec
from edgespec.decoding.events import Event, Round
from edgespec.errors import BackendFailed, EdgespecError
from edgespec.loading import open_pair
from edgespec.measuring import chosen_on
from edgespec.models.choices import Choice, chosen_for, remember
from edgespec.models.gguf import read_header
from edgespec.models.pairs import Pair
from edgespec.options import LoadOptions
from edgespec.text.template import Message

Tune = Callable[..., Result]
SAYING = "the model wrote one word after the other, then "
SAID = [
    {"role": "user", "content": "Tell me."},
    {"role": "assistant", "content": SAYING * 5},
    {"role": "user", "content": "Again."},
    {"role": "assistant", "content": SAYING * 3},
]


@pytest.fixture(autouse=True)
def away_from_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    monkeypatch.setenv("EDGESPEC_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def target(tiny_models: TinyModels) -> Path:
    return tiny_models(layers=2)


@pytest.fixture
def draft(tiny_models: TinyModels) -> Path:
    return tiny_models(layers=2, noise=0.03)


@pytest.fixture
def said(tmp_path: Path) -> str:
    file = tmp_path / "said.json"
    file.write_text(json.dumps(SAID))
    return str(file)


@pytest.fixture
def tune(target: Path) -> Tune:
    def run(*arguments: str) -> Result:
        shared = ["tune", "--target", str(target), "--threads", "1", "--context", "256"]
        return CliRunner().invoke(edgespec, [*shared, *arguments])

    return run


@pytest.fixture
def opened(target: Path) -> Callable[..., Model]:
    def open_(**settings: Any) -> Model:
        return load(target=str(target), threads=1, context=256, **settings)

    return open_


def test_the_choice_is_kept_and_the_next_load_obeys(
    tune: Tune, target: Path, draft: Path, said: str, opened: Callable[..., Model]
) -> None:
    result = tune("--file", said, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["saved"]
    choice = chosen_for(target)
    assert choice is not None
    assert (choice.proposer, choice.draft_tokens) == (
        told["chosen"]["proposer"],
        told["chosen"]["draft_tokens"],
    )
    with opened() as model:
        assert model.speculation == Speculation(choice.proposer, choice.draft_tokens)


def test_every_draft_model_is_compared_and_measured(tune: Tune, draft: Path, said: str) -> None:
    result = tune("--file", said, "--draft", str(draft), "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    alone, with_it = told["candidates"]
    assert (alone["draft"], with_it["draft"]) == (None, str(draft))
    assert with_it["guess_s"] > 0
    assert with_it["read_s"] > 0
    assert with_it["foresight_seconds"] <= with_it["seconds"] + 1e-9
    assert alone["foresight_seconds"] < alone["seconds"] < told["plain_seconds"]


def test_a_drafter_with_an_id_table_is_asked_in_the_targets_ids(
    tune: Tune, target: Path, draft: Path, said: str, tmp_path: Path
) -> None:
    ids = range(1, len(read_header(target).tokens), 2)
    trimmed = write_trimmed(tmp_path / "drafter.gguf", draft, ids)
    options = LoadOptions(threads=1, context=256)
    with load(target=str(target), draft=str(trimmed), threads=1, context=256) as model:
        messages = [Message(said["role"], said["content"]) for said in SAID]
        (answer, *_) = from_conversations(model, [messages], 1, print)
        guesses = Drafter(model, options).guessed(answer).guesses
    assert guesses is not None
    assert set(guesses.tolist()) <= {*ids}
    result = tune("--file", said, "--draft", str(trimmed), "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["candidates"][1]["draft"] == str(trimmed)


def test_people_are_told_in_words(tune: Tune, draft: Path, said: str) -> None:
    lines = tune("--file", said, "--draft", str(draft)).stdout.splitlines()
    assert lines[0].startswith("What these 2 answers of ")
    assert [line.split()[0] for line in lines[1:4]] == ["plain", "n-gram", "with"]
    assert "with perfect foresight" in lines[2]
    assert lines[-1].startswith("Best for ")


def test_a_dry_run_keeps_nothing(tune: Tune, target: Path, said: str) -> None:
    result = tune("--file", said, "--dry-run")
    assert result.exit_code == 0
    assert "nothing is kept" in result.stdout
    assert chosen_for(target) is None


def test_what_was_chosen_can_be_forgotten(tune: Tune, target: Path, said: str) -> None:
    tune("--file", said)
    assert "is forgotten" in tune("--forget").stdout
    assert chosen_for(target) is None
    assert "Nothing had been chosen" in tune("--forget").stdout


def test_without_a_file_the_shipped_prompts_stand_in_and_a_note_says_so(tune: Tune) -> None:
    result = tune("--answers", "3", "--max-tokens", "4", "--context", "1024", "--json")
    assert result.exit_code == 0, result.stderr
    assert "stand in; --file tunes for what you ask" in result.stderr
    told = json.loads(result.stdout)
    assert 1 <= told["answers"] <= 3
    assert told["tokens"] <= 12


def test_prompts_of_ones_own_are_answered_by_the_target(tune: Tune, tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"turns": ["Tell me.", "Again."]}\n{"prompt": "' + "long " * 400 + '"}\n')
    result = tune("--file", str(file), "--max-tokens", "8", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["answers"] == 2
    assert "line-2 is left out: The prompt has" in result.stderr


def test_nothing_is_loaded_where_the_choice_could_not_be_kept(
    tune: Tune, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_text("in the way")
    monkeypatch.setattr("edgespec.api.load", lambda *_, **__: pytest.fail("it was loaded"))
    result = tune("--file", said)
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_was_found_is_told_even_where_it_cannot_be_kept(
    tune: Tune, said: str, monkeypatch: pytest.MonkeyPatch, form: list[str]
) -> None:
    def refuses(*_: Any) -> None:
        raise EdgespecError("The disk is full.")

    monkeypatch.setattr("edgespec.models.choices.remember", refuses)
    result = tune("--file", said, *form)
    assert result.exit_code == 1
    assert "The disk is full." in result.stderr
    if form:
        assert not json.loads(result.stdout)["saved"]
    else:
        assert result.stdout.splitlines()[1].split()[0] == "plain"
        assert "use it" not in result.stdout


def test_answers_of_one_token_are_nothing_to_tune_on(
    tune: Tune, draft: Path, target: Path, tmp_path: Path
) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "Tell me."}\n')
    result = tune("--file", str(file), "--max-tokens", "1", "--draft", str(draft))
    assert result.exit_code == 2
    assert "one token long" in result.stderr
    assert chosen_for(target) is None


@pytest.mark.parametrize(
    "flag",
    [
        ["--temperature", "0.7"],
        ["--rule", "rejection"],
        ["--stop", "x"],
        ["--repeat-penalty", "1.1"],
        ["--reasoning", "on"],
    ],
    ids=" ".join,
)
def test_what_would_be_ignored_is_refused(tune: Tune, flag: list[str]) -> None:
    result = tune(*flag)
    assert result.exit_code == 2
    assert f"plain answers at temperature 0; leave {flag[0]} out" in result.stderr


def test_what_is_so_anyway_may_be_said(tune: Tune, said: str) -> None:
    result = tune("--file", said, "--dry-run", "--temperature", "0", "--rule", "coupled")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    "flag", [["--dry-run"], ["--file", "a"], ["--answers", "3"], ["--draft", "a"]], ids=" ".join
)
def test_forgetting_takes_nothing_beside_it(tune: Tune, target: Path, flag: list[str]) -> None:
    remember(target, chosen(None, "ngram"))
    result = tune("--forget", *flag)
    assert result.exit_code == 2
    assert f"leave {flag[0]} out" in result.stderr
    assert chosen_for(target) is not None


@pytest.mark.parametrize("flag", [["--proposer", "ngram"], ["--draft-tokens", "3"]])
def test_tune_decides_itself_how_to_guess(tune: Tune, flag: list[str]) -> None:
    result = tune(*flag)
    assert result.exit_code == 2
    assert "tune compares ways to guess" in result.stderr


def test_a_draft_model_that_cannot_serve_is_told_before_anything_runs(
    tune: Tune, tiny_models: TinyModels, said: str
) -> None:
    tokens = [token.decode() for token in read_header(tiny_models()).tokens]
    other = tiny_models(layers=1, tokens=tuple([*tokens[:300][::-1], *tokens[300:]]))
    assert tune("--file", said, "--draft", str(other)).exit_code == 6
    assert tune("--file", said, "--draft", "no.gguf").exit_code == 3


def test_a_conversation_without_answers_is_told(tune: Tune, tmp_path: Path) -> None:
    file = tmp_path / "asked.json"
    file.write_text(json.dumps(SAID[:1]))
    result = tune("--file", str(file))
    assert result.exit_code == 2
    assert "No answer to tune on" in result.stderr


def chosen(draft: Path | None, proposer: str, tokens: int | None = None) -> Choice:
    return Choice(
        target="t",
        draft=draft,
        proposer=proposer,
        draft_tokens=tokens,
        chosen_at="2026-01-02T03:04:05+00:00",
        basis="a test",
        seconds=1.0,
        plain_seconds=2.0,
        made_on=chosen_on(Path("t.gguf"), LoadOptions()),
    )


def test_a_load_that_says_how_to_guess_is_not_told_otherwise(
    target: Path, draft: Path, opened: Callable[..., Model]
) -> None:
    remember(target, chosen(draft, "draft", 4))
    with opened() as model:
        assert model.info.draft == draft.name
        assert model.speculation == Speculation("draft", 4)
        assert model.generate("Hi", max_tokens=20, temperature=0).stats.drafted > 0
    for said in ({"proposer": "auto"}, {"draft": "none"}, {"speculation": Speculation()}):
        with opened(**said) as model:
            assert model.info.draft is None
            assert model.speculation == Speculation()


@pytest.mark.parametrize("command", [["chat", "--plain"], ["run", "-"]], ids=" ".join)
def test_the_drafter_that_was_chosen_guesses_in_every_command_that_answers(
    target: Path, draft: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    drafted: list[int] = []

    def watched(*given: Any, **settings: Any) -> Model:
        model = load(*given, **settings)
        stream = model._desk.events

        def events(answer: Any) -> Iterator[Event]:
            assert model.info.draft == draft.name
            for event in stream(answer):
                if isinstance(event, Round):
                    drafted.extend(1 for guess in event.guesses if guess.source == "draft")
                yield event

        monkeypatch.setattr(model._desk, "events", events)
        return model

    monkeypatch.setattr("edgespec.api.load", watched)
    remember(target, chosen(draft, "draft", 4))
    shared = ["--target", str(target), "--threads", "1", "--context", "256", "--max-tokens", "20"]
    result = CliRunner().invoke(edgespec, [*command, *shared], input="Tell me.\n")
    assert result.exit_code == 0, result.stderr
    assert result.stdout
    assert drafted


def test_what_was_chosen_before_a_rebuild_does_not_decide_after_it(
    target: Path, opened: Callable[..., Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(target, chosen(None, "none"))
    with opened() as model:
        assert model.speculation == Speculation("none")
    monkeypatch.setattr("edgespec_llamacpp.backend.build", lambda: "another")
    with opened() as model:
        assert model.speculation == Speculation()
        (note,) = (n for n in model.info.notes if "edgespec tune" in n)
        assert "'edgespec tune' chooses anew" in note


def test_a_draft_model_that_vanished_is_a_note_and_no_error(
    target: Path, tmp_path: Path, opened: Callable[..., Model]
) -> None:
    remember(target, chosen(tmp_path / "gone.gguf", "auto"))
    with opened() as model:
        assert model.info.draft is None
        assert any("gone.gguf" in note for note in model.info.notes)


def test_a_draft_model_that_cannot_be_loaded_is_a_note_and_no_error(
    target: Path, draft: Path, opened: Callable[..., Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(pair: Pair, *rest: Any) -> Any:
        if pair.draft is not None:
            raise BackendFailed("small.gguf is not liked.")
        return open_pair(pair, *rest)

    monkeypatch.setattr("edgespec.api.open_pair", refuses)
    remember(target, chosen(draft, "draft", 4))
    with opened() as model:
        assert model.info.draft is None
        assert model.speculation == Speculation()
        (note,) = (n for n in model.info.notes if "edgespec tune" in n)
        assert note.endswith("is not used: small.gguf is not liked.")


def test_a_draft_model_that_was_left_out_is_not_asked(
    target: Path, draft: Path, opened: Callable[..., Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_out(pair: Pair, *rest: Any) -> Any:
        return replace(open_pair(replace(pair, draft=None), *rest), draft_left_out=True)

    monkeypatch.setattr("edgespec.api.open_pair", left_out)
    remember(target, chosen(draft, "draft", 4))
    with opened(fit=True) as model:
        assert model.speculation == Speculation()


def test_the_doctor_says_what_was_chosen(target: Path, draft: Path) -> None:
    remember(target, chosen(draft, "auto"))
    told = CliRunner().invoke(edgespec, ["doctor"]).stdout
    assert f"Tuned     t: draft model {draft.name}" in told
    data = json.loads(CliRunner().invoke(edgespec, ["doctor", "--json"]).stdout)
    assert data["tuned"] == [f"t: draft model {draft.name}"]


def test_a_recorded_answer_is_the_plain_one_and_a_replay_drafts_as_the_model_does(
    draft: Path, opened: Callable[..., Model]
) -> None:
    settings = {"kv_type": "f32", "flash_attention": "off"}
    with opened(draft=str(draft), **settings) as model:
        (recorded,) = record(model, Prompt("a", "chat", ("Tell me.",)), 40)
        plain = model.generate("Tell me.", temperature=0, max_tokens=40)
        assert recorded.reply.tolist() == list(plain.token_ids)
        drafter = Drafter(model, LoadOptions(threads=1))
        guessed = drafter.guessed(recorded)
        assert guessed.guesses is not None
        assert (guessed.guesses != NO_GUESS).all()
        cost = drafter.cost([recorded])
        model.speculation = Speculation("draft", 4)
        real = model.generate("Tell me.", temperature=0, max_tokens=40).stats
    told = replay(guessed, FixedArm(("draft",), 4), model.loaded.target.cost.seconds, cost)
    assert real.accepted > 0
    assert (told.rounds, told.drafted, told.accepted) == (real.rounds, real.drafted, real.accepted)


def test_conversations_become_answers_up_to_the_context(opened: Callable[..., Model]) -> None:
    messages = [Message(turn["role"], turn["content"]) for turn in SAID]
    with opened() as model:
        notes: list[str] = []
        first, second = from_conversations(model, [messages], 9, notes.append)
        assert len(from_conversations(model, [messages, messages], 3, notes.append)) == 3
        assert notes == []
        long = [messages[0], Message("assistant", "word " * 2000), *messages[2:]]
        (cut,) = from_conversations(model, [long], 9, notes.append)
        assert len(cut.prompt) + len(cut.reply) == model.info.context
    (note,) = notes
    assert "2 answers do not fit whole into the context of 256 tokens: 1 left out, 1 cut" in note
    assert re.search(r"--context \d{4,} would hold them", note)
    assert len(second.prompt) > len(first.prompt) + len(first.reply)
    assert [first.id, second.id] == ["1/1", "1/3"]
