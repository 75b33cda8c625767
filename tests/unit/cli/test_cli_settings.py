"""Flags, environment, config file and defaults: which wins, and what is allowed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import FakeModel
from click.testing import Result

from edgespec.api import AnswerOptions, LoadOptions, Speculation
from edgespec.errors import EdgespecError
from edgespec.loading import DEFAULT_CONTEXT
from edgespec.models.pairs import demo_pair

Cli = Callable[..., Result]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Writes the config file that EDGESPEC_CONFIG names."""
    path = tmp_path / "my.toml"
    monkeypatch.setenv("EDGESPEC_CONFIG", str(path))

    def write(text: str) -> Path:
        path.write_text(text)
        return path

    return write


def test_the_defaults_are_those_of_the_api(cli: Cli, model: FakeModel) -> None:
    cli("run", "Hi")
    (names, loaded), (_, options) = model.loaded[0], model.asked[0]
    assert names == ("demo",)
    assert (loaded["target"], loaded["draft"]) == (None, None)
    assert loaded["options"] == LoadOptions()
    assert loaded["speculation"] == Speculation()
    assert options == AnswerOptions(overrides={"seed": options.overrides["seed"]})


def test_help_says_what_a_rule_keeps_and_which_context_is_usual(cli: Cli) -> None:
    told = " ".join(cli("run", "--help").stdout.split())
    assert "coupled: a seed gives the same text as without guesses" in told
    assert "rejection: only the distribution of texts is the same" in told
    assert f"--fit may lower it. [default: the model's own, at most {DEFAULT_CONTEXT}]" in told


def test_every_flag_reaches_the_model(cli: Cli, model: FakeModel) -> None:
    flags = (
        "--target t.gguf --draft d.gguf --backend llamacpp --proposer ngram --draft-tokens 64"
        " --always-draft --rule rejection --strict --temperature 0 --top-k 5 --top-p 0.5 --min-p 0"
        " --repeat-penalty 1.1 --presence-penalty -0.5 --frequency-penalty 0.25 --seed 3"
        " --max-tokens 9 --stop END --stop ### --reasoning off --context 512 --threads 2"
        " --gpu-layers 0 --draft-gpu-layers 4 --kv-type q8_0 --cpu-moe --flash-attention on"
    )
    result = cli("run", "Hi", *flags.split())
    assert result.stderr == ""
    (names, loaded), (_, options) = model.loaded[0], model.asked[0]
    assert (names, loaded["target"], loaded["draft"]) == ((None,), "t.gguf", "d.gguf")
    assert loaded["options"] == LoadOptions(
        backend="llamacpp",
        context=512,
        threads=2,
        gpu_layers=0,
        draft_gpu_layers=4,
        kv_type="q8_0",
        cpu_moe=True,
        flash_attention="on",
        strict=True,
    )
    assert loaded["speculation"] == Speculation("ngram", 64, True, "rejection")
    assert options == AnswerOptions(
        overrides={
            "temperature": 0.0,
            "top_k": 5,
            "top_p": 0.5,
            "min_p": 0.0,
            "repeat_penalty": 1.1,
            "presence_penalty": -0.5,
            "frequency_penalty": 0.25,
            "seed": 3,
        },
        max_tokens=9,
        stop=("END", "###"),
        reasoning=False,
    )


def test_the_flag_beats_the_environment_which_beats_the_config(
    cli: Cli, model: FakeModel, config: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    config("temperature = 0.1\ntop-k = 11\nmin_p = 0.01\nstrict = true\n")
    monkeypatch.setenv("EDGESPEC_TEMPERATURE", "0.2")
    monkeypatch.setenv("EDGESPEC_TOP_K", "22")
    cli("run", "Hi", "--temperature", "0.3", "--no-strict")
    overrides = model.asked[0][1].overrides
    assert (overrides["temperature"], overrides["top_k"], overrides["min_p"]) == (0.3, 22, 0.01)
    assert not model.loaded[0][1]["options"].strict


def test_switches_and_lists_come_from_everywhere(
    cli: Cli, model: FakeModel, config: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    config('stop = ["a b", "c"]\nalways-draft = true\nreasoning = "on"\n')
    cli("run", "Hi")
    monkeypatch.setenv("EDGESPEC_STOP", "two words")
    monkeypatch.setenv("EDGESPEC_ALWAYS_DRAFT", "0")
    monkeypatch.setenv("EDGESPEC_CPU_MOE", "1")
    cli("run", "Hi")
    assert [options.stop for _, options in model.asked] == [("a b", "c"), ("two words",)]
    assert [loaded["speculation"].always_draft for _, loaded in model.loaded] == [True, False]
    assert model.loaded[1][1]["options"].cpu_moe
    assert model.asked[0][1].reasoning is True


def test_a_single_stop_text_in_the_config_is_no_list_of_letters(
    cli: Cli, model: FakeModel, config: Callable[[str], Path]
) -> None:
    config('stop = "END"\n')
    cli("run", "Hi")
    assert model.asked[0][1].stop == ("END",)


def test_the_config_file_is_found_in_the_users_folder(
    cli: Cli, model: FakeModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("platformdirs.user_config_path", lambda *_, **__: tmp_path)
    (tmp_path / "config.toml").write_text("seed = 5\n")
    cli("run", "Hi")
    assert model.asked[0][1].overrides == {"seed": 5}


def test_a_pair_on_the_line_puts_other_models_aside(
    cli: Cli, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGESPEC_TARGET", "t.gguf")
    monkeypatch.setenv("EDGESPEC_DRAFT", "d.gguf")
    cli("run", "demo", "Hi")
    cli("run", "Hi")
    cli("run", "demo", "Hi", "--draft", "other.gguf")
    assert [(*names, rest["target"], rest["draft"]) for names, rest in model.loaded] == [
        ("demo", None, None),
        (None, "t.gguf", "d.gguf"),
        ("demo", None, "other.gguf"),
    ]


@pytest.mark.parametrize(
    ("words", "setting", "compared"),
    [
        (["demo"], "d.gguf", ["smollm2-135m-drafter.gguf"]),
        (["demo", "--draft", "own.gguf"], "d.gguf", ["own.gguf"]),
        ([], "own.gguf", ["own.gguf"]),
        ([], "none", []),
    ],
)
def test_a_pair_on_the_line_puts_other_draft_models_aside_where_they_are_compared(
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    setting: str,
    compared: list[str],
) -> None:
    shipped = demo_pair().draft
    assert shipped is not None
    shutil.copy(shipped, "own.gguf")
    seen: list[str] = []

    def tuned(_: object, drafts: list[Path]) -> None:
        seen.extend(draft.name for draft in drafts)
        raise EdgespecError("That is enough.")

    monkeypatch.setattr("edgespec.bench.tuning.tuned", tuned)
    monkeypatch.setenv("EDGESPEC_DRAFT", setting)
    result = cli("tune", "--dry-run", *words)
    assert "That is enough." in result.stderr
    assert seen == compared


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("temprature = 1\n", "unknown key 'temprature'"),
        ("temperature = \n", "is not valid TOML"),
        ("temperature = 900\n", "900 is not allowed; give a number from 0 to 100"),
        ("temperature = true\n", "True is not allowed"),
        ("top-k = 1.5\n", "1.5 is not allowed; give a whole number from 0"),
        ('proposer = "magic"\n', "'auto', 'none', 'ngram', 'draft'"),
        ("stop = [1]\n", "at least one character"),
        ('strict = "perhaps"\n', "not a valid boolean"),
    ],
)
def test_a_config_that_cannot_work_is_told_with_its_file(
    cli: Cli, model: FakeModel, config: Callable[[str], Path], text: str, told: str
) -> None:
    path = config(text)
    result = cli("run", "Hi")
    assert (result.exit_code, result.stdout, model.loaded) == (2, "", [])
    assert told in result.stderr
    assert str(path) in result.stderr
    assert result.stderr.count("\n") == 1


def test_help_needs_no_working_config(cli: Cli, config: Callable[[str], Path]) -> None:
    config("no toml at all")
    assert cli("run", "--help").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        "run Hi",
        "chat",
        "bench",
        "tune",
        "pull x/y",
        "doctor",
        "pairs",
        "list",
        "rm x",
        "config show",
    ],
)
def test_a_config_that_was_named_must_be_there_for_every_command(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: str
) -> None:
    monkeypatch.setenv("EDGESPEC_CONFIG", "nowhere.toml")
    result = cli(*arguments.split())
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == (
        "edgespec: EDGESPEC_CONFIG names nowhere.toml, which is not there; create it or unset"
        " that.\n"
    )


@pytest.mark.parametrize("arguments", ["run --help", "list -h", "--help", "config path"])
def test_help_and_the_files_path_need_no_config(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: str
) -> None:
    monkeypatch.setenv("EDGESPEC_CONFIG", "nowhere.toml")
    assert cli(*arguments.split()).exit_code == 0


def test_a_variable_that_cannot_work_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGESPEC_TOP_P", "1.5")
    result = cli("run", "Hi")
    assert result.exit_code == 2
    assert "EDGESPEC_TOP_P" in result.stderr


@pytest.mark.parametrize(
    ("flag", "value", "allowed"),
    [
        ("--temperature", "-1", "a number from 0 to 100"),
        ("--temperature", "nan", "a number from 0 to 100"),
        ("--temperature", "inf", "a number from 0 to 100"),
        ("--temperature", "warm", "a number from 0 to 100"),
        ("--top-p", "1.5", "a number above 0 and at most 1"),
        ("--top-p", "0", "a number above 0 and at most 1"),
        ("--min-p", "-0.1", "a number from 0 to 1"),
        ("--repeat-penalty", "0", "a number above 0 and at most 100"),
        ("--presence-penalty", "nan", "a number from -100 to 100"),
        ("--draft-tokens", "65", "'auto' or a whole number from 0 to 64"),
        ("--draft-tokens", "-1", "'auto' or a whole number from 0 to 64"),
        ("--draft-tokens", "many", "'auto' or a whole number from 0 to 64"),
        ("--gpu-layers", "-1", "'all' or a whole number from 0"),
        ("--top-k", "1.5", "a whole number from 0"),
        ("--seed", "-1", "a whole number from 0"),
        ("--max-tokens", "0", "a whole number from 1"),
        ("--context", "0", "a whole number from 16"),
        ("--threads", "0", "a whole number from 1 to 1024"),
        ("--stop", "", "at least one character"),
        ("--kv-type", "q2", "'auto', 'f32', 'f16', 'bf16', 'q8_0', 'q4_0'"),
        ("--proposer", "magic", "'auto', 'none', 'ngram', 'draft'"),
        ("--rule", "luck", "'coupled', 'rejection'"),
        ("--reasoning", "yes", "'on', 'off'"),
        ("--backend", "abacus", "auto, llamacpp, mlx"),
    ],
)
def test_a_value_out_of_range_is_told_with_what_is_allowed(
    cli: Cli, model: FakeModel, flag: str, value: str, allowed: str
) -> None:
    result = cli("run", "Hi", flag, value)
    assert (result.exit_code, result.stdout, model.loaded) == (2, "", [])
    assert flag in result.stderr
    assert allowed in result.stderr
    assert result.stderr.count("\n") == 1
