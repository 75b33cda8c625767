"""What a report says, and what it does not say."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench_fakes import CHAT, CODE, answered

from edgespec.bench import surroundings as around
from edgespec.bench.figures import Results
from edgespec.bench.report import Costs, Report, advice, verdict
from edgespec.bench.runner import Comparison, Outcome, Plan, Record, RunLoad
from edgespec.bench.surroundings import Host, ModelFile, Surroundings
from edgespec.decoding.stats import Stats

WHERE = Surroundings(
    host=Host("Linux", "A CPU", 2, 2**34),
    usable_cores=2,
    threads=1,
    device="CPU",
    backend="llamacpp",
    versions={"python": "3.11"},
    files=(ModelFile("model.gguf", 5, "ab" * 32),),
    exactness="bit-exact",
    command="edgespec bench",
    clock_mhz=None,
    temperature_c=None,
)
STATS = Stats(0.0, completion_tokens=4, rounds=2, drafted=3, tested=2, accepted=1,
              tested_at=(2,), accepted_at=(1,), verify_s=0.1)  # fmt: skip


def _outcome(speeds: dict[str, tuple[float | None, float | None]], runs: int = 1) -> Outcome:
    """speeds: by arm, on chat and on code."""
    records = [
        Record(run, prompt.id, prompt.category, 0, arm, answered(speed))
        for run in range(runs)
        for arm, both in speeds.items()
        for prompt, speed in zip((CHAT, CODE), both, strict=True)
        if speed is not None
    ]
    return Outcome(Plan((CHAT, CODE), runs), list(speeds), records)


def _report(outcome: Outcome) -> Report:
    return Report(outcome, WHERE, Costs({1: 0.01}, {1: 0.01, 4: 0.02}, 156), 2**20)


def test_the_verdict_names_the_fastest_and_where_it_is_best_and_worst() -> None:
    outcome = _outcome({"none": (10.0, 10.0), "auto": (10.0, 14.4), "draft:4": (5.0, 12.0)})
    assert verdict(Results(outcome)) == (
        "auto was the fastest: 1.20 times none over all categories, from 1.00 on chat to 1.44 on"
        " code."
    )


def test_the_verdict_tells_what_auto_had_where_it_did_not_win() -> None:
    outcome = _outcome({"none": (10.0, 10.0), "auto": (12.0, 12.0), "draft:4": (15.0, 15.0)})
    assert verdict(Results(outcome)).startswith("draft:4 was the fastest: 1.50 times none")
    assert verdict(Results(outcome)).endswith("; auto had 1.20.")


def test_no_winner_is_made_up() -> None:
    slower = _outcome({"none": (10.0, 10.0), "auto": (9.9, 10.1)})
    assert verdict(Results(slower)) == "No arm was clearly faster than none over all categories."
    alone = _outcome({"none": (10.0, 10.0)})
    assert verdict(Results(alone)) == "Too little was measured to compare anything."


def test_advice_takes_auto_where_it_is_as_good_as_the_best() -> None:
    outcome = _outcome({"none": (10.0, 10.0), "auto": (10.0, 14.0), "draft:4": (10.1, 14.0)})
    line = advice(Results(outcome), drafter=True)
    assert line == (
        "On this machine, use auto with this drafter: auto had, times plain, 1.00 on chat, 1.40 on"
        " code."
    )


def test_advice_gives_the_flags_of_a_fixed_length_that_is_better() -> None:
    outcome = _outcome({"none": (10.0, 10.0), "auto": (10.0, 10.0), "draft:4": (15.0, 15.0)})
    line = advice(Results(outcome), drafter=True)
    assert "use draft:4 with this drafter (--proposer draft --draft-tokens 4)" in line


def test_advice_against_a_drafter_that_does_not_pay() -> None:
    outcome = _outcome({"none": (10.0, 10.0), "auto": (9.0, 9.5), "draft:4": (5.0, 8.0)})
    line = advice(Results(outcome), drafter=True)
    assert "this drafter does not pay: leave it off (--proposer none)" in line


def test_pairs_that_contradict_each_other_give_no_winner_and_no_advice() -> None:
    results = Results(_outcome({"none": (10.0, 10.0), "auto": (8.0, 16.0)}))
    assert verdict(results).startswith("No clear difference between auto and none")
    assert advice(results, drafter=True).startswith("No advice: no clear difference")
    assert verdict(results, busy=True).startswith("Too noisy to tell: the machine was busy")
    assert advice(results, True, busy=True).startswith("No advice: too noisy")


def test_a_drafter_that_some_pairs_speak_for_is_not_advised_against() -> None:
    torn = Results(_outcome({"none": (10.0, 10.0), "auto": (6.0, 14.0)}))
    assert advice(torn, True).startswith("No advice: no clear difference")
    same = Results(_outcome({"none": (10.0, 10.0), "auto": (9.8, 10.2)}))
    assert "does not pay" in advice(same, True)


def test_advice_is_withheld_until_every_arm_was_measured_everywhere() -> None:
    for auto in ((20.0, None), (None, 20.0)):
        results = Results(_outcome({"none": (10.0, 10.0), "auto": auto}))
        assert advice(results, True).startswith("Too little was measured to advise")
    half = Results(_outcome({"none": (10.0, None), "auto": (20.0, None)}))
    assert advice(half, True).startswith("Too little was measured to advise")
    assert "over the categories that were measured" in verdict(half)


def test_a_command_with_backticks_stays_one_span_of_code() -> None:
    where = replace(WHERE, command="edgespec bench `x` ``y")
    text = replace(_report(_outcome({"none": (10.0, 10.0)})), surroundings=where).markdown()
    assert "\n``` edgespec bench `x` ``y ```\n" in text


def test_json_holds_the_text_and_the_gaps_of_every_answer() -> None:
    (answer, _) = _report(_outcome({"none": (10.0, 10.0)})).as_json()["answers"]
    assert (answer["text"], answer["gaps_s"]) == ("text", [0.1, 0.1])


def test_advice_on_nothing_is_none() -> None:
    assert "Too little was measured" in advice(Results(_outcome({"none": (10.0, 10.0)})), False)


def test_json_holds_every_answer_and_no_figure_that_was_not_measured() -> None:
    outcome = _outcome({"none": (10.0, 10.0), "auto": (20.0, None)})
    told = json.loads(json.dumps(_report(outcome).as_json(), allow_nan=False))
    assert len(told["answers"]) == 3
    auto = told["arms"]["auto"]
    assert auto["categories"]["chat"]["speedup"]["median"] == 2.0
    assert auto["categories"]["code"]["speedup"] is None
    assert auto["geometric_mean_speedup"] is None
    assert auto["overall"]["rounds"] is None
    assert told["surroundings"]["files"][0]["sha256"] == "ab" * 32
    assert told["pass_seconds_after"] == {"1": 0.01, "4": 0.02}
    assert told["pass_seconds_context"] == 156


def test_json_tells_where_answers_parted() -> None:
    outcome = _outcome({"none": (10.0, 10.0), "auto": (20.0, 20.0)})
    outcome.comparisons = [Comparison(outcome.records[2], 7, 0.5), Comparison(outcome.records[3])]
    (parted,) = _report(outcome).as_json()["parted"]
    assert parted == {
        "run": 0, "prompt": "chat-1", "category": "chat", "turn": 0, "arm": "auto", "at": 7,
        "margin": 0.5,
    }  # fmt: skip


def test_a_partial_report_says_so_everywhere() -> None:
    outcome = _outcome({"none": (10.0, 10.0), "auto": (20.0, 20.0)})
    outcome.cut = "stopped by Ctrl+C"
    report = _report(outcome)
    assert report.as_json()["partial"] == "stopped by Ctrl+C"
    assert report.verdict().startswith("Partial: ")
    assert "Partial: stopped by Ctrl+C; only what is here was measured." in report.markdown()


def test_a_busy_machine_is_noted_by_its_load_and_by_its_plain_speed() -> None:
    outcome = _outcome({"none": (10.0, 10.0)}, runs=2)
    assert _report(outcome).all_notes() == []
    outcome.loads = [RunLoad(0, 1.0, 2.5)]
    assert "load average reached 2.5 on 2 cores" in _report(outcome).all_notes()[0]
    slower = answered(5.0)
    outcome.records[2:] = [replace(record, answer=slower) for record in outcome.records[2:]]
    assert "none differed by 67% between runs" in _report(outcome).all_notes()[0]


def test_faults_of_drafters_are_told_once_and_cleaned() -> None:
    outcome = _outcome({"none": (10.0, 10.0), "auto": (20.0, 20.0)})
    faulty = replace(answered(20.0), faults=("drafter is off\x1b[31m",))
    outcome.records[2:] = [replace(record, answer=faulty) for record in outcome.records[2:]]
    (note,) = _report(outcome).all_notes()
    assert note.startswith("auto: drafter is off")
    assert "\x1b" not in note


def test_markdown_has_tables_that_no_name_can_break() -> None:
    outcome = _outcome({"none": (10.0, 10.0), "auto": (20.0, 20.0)})
    evil = Record(0, "x", "a|b\n# c\x1b[31m<i>", 0, "auto", replace(answered(9.0), stats=STATS))
    outcome.records.append(evil)
    text = _report(outcome).markdown()
    assert "**2.00**" in text
    assert "a\\|b" in text
    assert "\x1b" not in text
    assert "\n# c" not in text
    assert "model.gguf, 5 bytes, sha256 abab" in text
    assert "processor clock" not in text, "what the system does not tell is left out"


def test_a_hash_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"weights")
    assert around.remembered_sha256(file) is None
    digest = around.sha256(file)
    assert digest == hashlib.sha256(b"weights").hexdigest()
    assert around.remembered_sha256(file) == digest == around.sha256(file)
    file.write_bytes(b"other weights")
    assert around.remembered_sha256(file) is None
    assert around.sha256(file) != digest


def test_a_model_in_parts_is_told_part_by_part(tmp_path: Path) -> None:
    parts = [tmp_path / f"m-0000{n}-of-00002.gguf" for n in (1, 2)]
    for n, part in enumerate(parts, start=1):
        part.write_bytes(b"part" * n)
    told = around.model_files(parts[0], around.sha256)
    assert [(file.name, file.bytes) for file in told] == [(parts[0].name, 4), (parts[1].name, 8)]
    assert [file.sha256 for file in told] == [
        hashlib.sha256(part.read_bytes()).hexdigest() for part in parts
    ]


def test_a_model_in_a_folder_is_told_by_its_files_with_weights(tmp_path: Path) -> None:
    folder = tmp_path / "models--some--tiny" / "snapshots" / "c0ffee"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    for n in (1, 2):
        (folder / f"model-0000{n}-of-00002.safetensors").write_bytes(b"part" * n)
    told = around.model_files(folder, around.remembered_sha256)
    assert told == (
        ModelFile("some/tiny/model-00001-of-00002.safetensors", 4, None),
        ModelFile("some/tiny/model-00002-of-00002.safetensors", 8, None),
    )


def test_a_cache_that_cannot_be_written_costs_no_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blocked").write_text("a file where a folder should be")
    monkeypatch.setenv("EDGESPEC_CACHE_DIR", str(tmp_path / "blocked"))
    file = tmp_path / "model.gguf"
    file.write_bytes(b"weights")
    assert len(around.sha256(file)) == 64


def test_this_process_has_a_peak_of_memory() -> None:
    assert around.peak_memory_bytes() > 2**20
    assert around.usable_cores() >= 1
