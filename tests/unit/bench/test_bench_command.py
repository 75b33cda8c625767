"""`edgespec bench` as a whole, on tiny models."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from fake_peer import Canned, llama_server, serving
from tiny_models import TinyModels

from edgespec.bench import runner
from edgespec.bench.report import FIRST_LINE
from edgespec.cli.bench_places import plot_place, report_place
from edgespec.cli.bench_wanted import without_passwords
from edgespec.cli.root import edgespec

Bench = Callable[..., Result]
QUICKLY = ("--runs", "2", "--tokens", "12")


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("EDGESPEC_")]:
        if name != "EDGESPEC_CACHE_DIR":
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("edgespec.cli.doctor.gpus", tuple)
    monkeypatch.setattr("edgespec.bench.quick.seconds_since_start", lambda: 0.0)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bench(tiny_models: TinyModels, tmp_path: Path) -> Bench:
    """Runs the command on two prompts with a tiny pair."""
    pytest.importorskip("llama_cpp")
    lines = (
        {"id": "a", "category": "code", "turns": ["def main"]},
        {"id": "b", "category": "chat", "turns": ["the user asked", "and the model"]},
    )
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, lines)))
    pair = ("--target", str(tiny_models(layers=2)), "--threads", "1", "--context", "512")
    draft = ("--draft", str(tiny_models(layers=2, noise=0.03)))

    def run(*arguments: str, drafter: bool = True) -> Result:
        words = ["bench", *pair, *(draft if drafter else ()), "--prompts", "p.jsonl", *arguments]
        return CliRunner().invoke(edgespec, words)

    return run


def test_the_usual_arms_are_measured_and_told_on_stdout(bench: Bench) -> None:
    result = bench(*QUICKLY)
    assert result.exit_code == 0, result.stderr
    for word in ("none, tokens/s", "ngram:8", "draft:6", "auto", "plain-loop", "geometric mean"):
        assert word in result.stdout
    assert "28 of 28 answers: run 2, b done" in result.stderr
    assert "answers" not in result.stdout.splitlines()[0]


def test_json_is_one_object_with_every_answer_and_its_surroundings(bench: Bench) -> None:
    result = bench(*QUICKLY, "--json", "--arms", "draft:4,plain-loop,none")
    told = json.loads(result.stdout)
    assert list(told["arms"]) == ["draft:4", "plain-loop", "none"]
    assert len(told["answers"]) == 2 * 3 * 3
    assert told["partial"] is None
    drafted = told["arms"]["draft:4"]["overall"]["rounds"]
    assert drafted["drafted"] >= drafted["tested"] >= drafted["accepted"] > 0
    assert told["arms"]["plain-loop"]["overall"]["same_as_none"]["same"] == 6
    assert told["arms"]["plain-loop"]["overall"]["rounds"] is None
    assert all(len(file["sha256"]) == 64 for file in told["surroundings"]["files"])
    assert len(told["surroundings"]["files"]) == 2
    assert set(told["pass_seconds_before"]) >= {"1", "2", "4", "8"}


def test_without_a_drafter_there_are_no_arms_with_one(bench: Bench) -> None:
    told = json.loads(bench(*QUICKLY, "--json", drafter=False).stdout)
    assert list(told["arms"]) == ["none", "ngram:8", "auto", "plain-loop"]


def test_the_yardstick_takes_part_though_nobody_names_it(bench: Bench) -> None:
    told = json.loads(bench(*QUICKLY, "--json", "--arms", "ngram:2").stdout)
    assert list(told["arms"]) == ["none", "ngram:2"]


def test_a_sampler_that_draws_leaves_the_librarys_loop_out(bench: Bench) -> None:
    result = bench(*QUICKLY, "--arms", "none,draft:4,plain-loop", "--temperature", "0.7", "--json")
    told = json.loads(result.stdout)
    assert list(told["arms"]) == ["none", "draft:4"]
    assert any(note.startswith("plain-loop is left out") for note in told["notes"])
    assert told["arms"]["draft:4"]["overall"]["same_as_none"]["compared"] > 0


def test_report_and_pictures_are_written(bench: Bench, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = bench(*QUICKLY, "--report", "r.md", "--plot", "pictures")
    assert result.exit_code == 0, result.stderr
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    for heading in ("## Decode speed", "## What a verify pass costs", "## Surroundings"):
        assert heading in text
    names = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert names == {"speedup.svg", "pass-cost.svg", "acceptance.svg"}
    for path in (tmp_path / "pictures").iterdir():
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_quick_ends_with_what_to_use(bench: Bench) -> None:
    result = bench("--quick", "--tokens", "20")
    assert result.exit_code == 0, result.stderr
    last = result.stdout.splitlines()[-1]
    assert last.startswith(("On this machine, ", "No advice: ")), "tiny models are noisy"


def test_quick_that_runs_out_of_time_tells_what_it_has(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgespec.bench.quick.WITHIN_S", 0.0)
    result = bench("--quick", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["partial"] == "its time was up"
    assert told["answers"] == []
    assert told["advice"].startswith("Too little was measured")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_stop_prints_what_was_measured_and_exits_130(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if not hasattr(signal, name):
        pytest.skip(f"no {name} here")
    calmed: list[bool] = []
    monkeypatch.setattr("edgespec.cli.bench.take_no_more_interrupts", lambda: calmed.append(True))
    asked = iter(range(99))
    real = runner.Runner._answers

    def pressed(*arguments: object) -> object:
        if next(asked) == 5:  # two warm-ups and three answers
            signal.raise_signal(getattr(signal, name))
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(runner.Runner, "_answers", pressed)
    result = bench(*QUICKLY, "--arms", "none,auto", "--json")
    assert result.exit_code == 130
    told = json.loads(result.stdout)
    assert told["partial"] == "stopped early"
    assert calmed == [True], "a second Ctrl+C is ignored while this is told"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert len(told["answers"]) == 4, "one prompt of one turn by both arms, one of two by one"


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (
            ("--arms", "nope"),
            2,
            "no arm 'nope'; there are: none, plain-loop; auto, ngram, draft, recycling and tree",
        ),
        (("--arms", "draft:x"), 2, "no arm 'draft:x'"),
        (("--arms", "auto:0"), 2, "no arm 'auto:0'"),
        (("--arms", "none:4"), 2, "no arm 'none:4'"),
        (("--arms", "draft:02"), 2, "no arm 'draft:02'"),
        (("--arms", "draft:\u0664"), 2, "as in draft:4"),
        (("--arms", "none,auto, none"), 2, "names none twice"),
        (("--arms", ","), 2, "--arms is empty"),
        (("--prompts", ""), 2, "--prompts is empty"),
        (("--report", ""), 2, "--report is empty"),
        (("--plot", " "), 2, "--plot is empty"),
        (("--report", "p.jsonl"), 2, "is no report of edgespec bench; name another file"),
        (("--report", "r" * 300), 1, "cannot be written"),
        (("--report", "."), 2, "is a folder"),
        (("--plot", "p.jsonl"), 2, "is a file"),
        (("--plot", "p.jsonl/x"), 1, "cannot be written"),
        (("--plot", "d" * 300), 1, "cannot be written"),
        (("--categories", "code,poetry,prose"), 2, "no prompt of poetry, prose; it has: code"),
        (("--proposer", "ngram"), 2, "bench has no --proposer; say it with --arms"),
        (("--max-tokens", "9"), 2, "say it with --tokens"),
        (("--quick", "--arms", "none"), 2, "--quick chooses its arms itself"),
        (("--prompts", "missing.jsonl"), 3, "missing.jsonl"),
        (("--report", "nowhere/r.md"), 3, "make it first"),
        (("--runs", "0"), 2, "whole number from 1"),
        (("--categories", "poetry"), 2, "no prompt of poetry"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_loaded(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    line: str,
) -> None:
    def load(*_: object, **__: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr("edgespec.api.load", load)
    result = bench(*arguments)
    assert result.exit_code == code, result.stderr
    assert line in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_missing_matplotlib_is_one_line_before_anything_is_measured(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_svg", None)
    monkeypatch.setattr("edgespec.cli.install.requires", lambda _name: [])
    result = bench("--plot", "pictures")
    assert result.exit_code == 1
    assert "--plot needs matplotlib. Install it with: " in result.stderr
    assert result.stderr.rstrip().endswith("'matplotlib>=3.10'")
    assert len(result.stderr.splitlines()) == 1


def test_a_broken_matplotlib_is_one_line_before_anything_is_measured(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_name: str) -> None:
        raise AttributeError("half of it is missing")

    monkeypatch.setattr("edgespec.bench.plots.import_module", broken)
    result = bench("--plot", "pictures")
    assert result.exit_code == 1
    assert "broken here (half of it is missing). Install it anew with: " in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_report_never_takes_the_place_of_what_is_no_report(bench: Bench, tmp_path: Path) -> None:
    before = (tmp_path / "p.jsonl").read_bytes()
    (tmp_path / "link.md").symlink_to("p.jsonl")
    for name in ("p.jsonl", "link.md"):
        assert bench("--report", name).exit_code == 2
    assert (tmp_path / "p.jsonl").read_bytes() == before


def test_an_earlier_report_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "r.md").write_text(f"{FIRST_LINE}\n\nold")
    assert report_place(str(tmp_path / "r.md")) == tmp_path / "r.md"
    assert "old" in (tmp_path / "r.md").read_text(), "looking changes nothing"


def test_looking_whether_places_can_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report_place(str(tmp_path / "r.md"))
    plot_place(str(tmp_path / "a" / "b"))
    assert list(tmp_path.iterdir()) == []


def test_no_prompt_that_fits_says_which_context_would_do(bench: Bench, tmp_path: Path) -> None:
    long = {"id": "long", "category": "code", "turns": ["word " * 900]}
    (tmp_path / "long.jsonl").write_text(json.dumps(long))
    result = bench(*QUICKLY, "--prompts", "long.jsonl")
    assert result.exit_code == 2
    assert "the shortest needs a --context of about 9" in result.stderr


def test_a_drafter_that_is_not_there_is_said_before_anything_is_measured(bench: Bench) -> None:
    result = bench("--arms", "none,draft:4", drafter=False)
    assert result.exit_code == 2
    assert "has no draft model" in result.stderr


def test_prompts_that_do_not_fit_the_context_are_left_out_with_a_note(
    bench: Bench, tmp_path: Path
) -> None:
    long = {"id": "long", "category": "code", "turns": ["word " * 900]}
    short = {"id": "short", "category": "code", "turns": ["word"]}
    (tmp_path / "mixed.jsonl").write_text(f"{json.dumps(long)}\n{json.dumps(short)}\n")
    result = bench(*QUICKLY, "--prompts", "mixed.jsonl", "--arms", "none", "--json")
    told = json.loads(result.stdout)
    assert told["prompts"] == ["short"]
    assert "long is left out: it needs a --context of about" in told["notes"][0]


def test_so_many_prompts_of_each_category(bench: Bench, tmp_path: Path) -> None:
    lines = [
        {"id": f"{c}{n}", "category": c, "turns": [f"say {c}{n}"]} for c in "ab" for n in range(3)
    ]
    (tmp_path / "six.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = bench(*QUICKLY, "--prompts", "six.jsonl", "--per-category", "2", "--json")
    assert json.loads(result.stdout)["prompts"] == ["a0", "a1", "b0", "b1"]


@pytest.mark.parametrize("again", ["{}", "{}/", "{}/v1"])
def test_one_program_cannot_take_part_twice(bench: Bench, again: str) -> None:
    with serving(llama_server()) as fake:
        result = bench(*QUICKLY, "--peer", fake.url, "--peer", again.format(fake.url))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--peer names llama-server@127.0.0.1:" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_peer_that_failed_and_was_all_that_was_asked_is_an_error(bench: Bench) -> None:
    with serving(llama_server(Canned(b"", 500))) as fake:
        alone = bench(*QUICKLY, "--arms", "none", "--peer", fake.url)
        beside = bench(*QUICKLY, "--arms", "none,ngram:2", "--peer", fake.url)
    assert alone.exit_code == 1
    assert "No peer could be measured" in alone.stderr.splitlines()[-1]
    assert beside.exit_code == 0
    assert "takes no further part" in beside.stderr


@pytest.mark.parametrize(("rule", "same"), [("rejection", False), ("coupled", True)])
@pytest.mark.parametrize("temperature", ["0", "0.7"])
def test_exactness_is_that_of_the_rule(
    bench: Bench, rule: str, same: bool, temperature: str
) -> None:
    asked = ("--arms", "none", "--json", "--rule", rule, "--temperature", temperature)
    told = json.loads(bench(*QUICKLY, *asked).stdout)["surroundings"]["exactness"]
    assert told.startswith("same distribution: ") is not same


@pytest.mark.parametrize(
    "words",
    [
        ["--peer", "http://me:secret@host:1/v1"],
        ["--peer=http://me:secret@host:1/v1"],
        ["--peer", "me:secret@host:1/v1"],
        ["--peer=me:secret@host:1/v1"],
        ["--peer", "http://secret@host:1/v1"],
    ],
)
def test_a_command_line_is_told_without_passwords(words: list[str]) -> None:
    told = without_passwords(["edgespec", "bench", *words])
    assert "secret" not in told
    assert told.endswith("host:1/v1")
    assert "--peer" in told
