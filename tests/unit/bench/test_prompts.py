"""The prompts that come with edgespec, and those of a file."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest

from edgespec.bench.prompts import CATEGORIES, UNNAMED, Prompt, read, shipped
from edgespec.errors import BadInput, EdgespecError, NotFound


def written(folder: Path, *lines: object) -> Path:
    path = folder / "question.jsonl"
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def fault(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}")
    return message.removeprefix(f"{path}")


# --- shipped ---------------------------------------------------------------------------------


def test_every_category_has_at_least_eight_prompts_of_its_own() -> None:
    assert {p.category for p in shipped()} == set(CATEGORIES)
    for category in CATEGORIES:
        prompts = shipped([category])
        assert len(prompts) >= 8
        assert {p.category for p in prompts} == {category}


def test_no_two_shipped_prompts_share_an_id_or_a_text() -> None:
    prompts = shipped()
    assert len({p.id for p in prompts}) == len(prompts)
    turns = [turn for p in prompts for turn in p.turns]
    assert len(set(turns)) == len(turns)


def test_no_two_shipped_prompts_are_variants_of_one_another() -> None:
    def words(prompt: Prompt) -> set[str]:
        return set(" ".join(prompt.turns).lower().split())

    alike = [
        (a.id, b.id)
        for a, b in combinations(shipped(), 2)
        if len(words(a) & words(b)) > 0.6 * len(words(a) | words(b))
    ]
    assert alike == []


def test_an_edit_brings_a_whole_file_and_a_summary_a_long_document() -> None:
    for prompt in shipped(["edit"]):
        assert 40 <= len(prompt.turns[0].splitlines()) <= 120, prompt.id
    for prompt in shipped(["summary"]):
        assert 600 <= len(prompt.turns[0].split()) <= 1200, prompt.id


def test_a_spoken_question_is_short() -> None:
    assert all(len(turn.split()) <= 20 for p in shipped(["voice"]) for turn in p.turns)


def test_some_prompts_have_two_turns() -> None:
    assert any(len(p.turns) == 2 for p in shipped())


def test_shipped_categories_come_in_the_order_of_the_list_however_they_are_asked_for() -> None:
    assert shipped(["voice", "chat", "voice"]) == shipped(["chat"]) + shipped(["voice"])


def test_a_category_that_there_is_not_names_those_that_there_are() -> None:
    with pytest.raises(BadInput, match=r"no category 'poems'; there are: chat, code, edit"):
        shipped(["chat", "poems"])


# --- read ------------------------------------------------------------------------------------


def test_our_own_lines_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "a", "category": "chat", "turns": ["Hi", "And you?"]})
    assert read(path) == (Prompt("a", "chat", ("Hi", "And you?")),)


def test_spec_bench_lines_are_read(tmp_path: Path) -> None:
    line = {"question_id": 241, "category": "qa", "turns": ["Who?"], "reference": ["Nobody."]}
    assert read(written(tmp_path, line)) == (Prompt("241", "qa", ("Who?",)),)


def test_a_plain_prompt_needs_no_id_and_no_category(tmp_path: Path) -> None:
    path = written(tmp_path, "", {"prompt": "Hi"})
    assert read(path) == (Prompt("line-2", UNNAMED, ("Hi",)),)


def test_repeated_prompts_are_left_out_and_noted_once(tmp_path: Path) -> None:
    notes: list[str] = []
    lines = [{"id": f"{n}", "prompt": text} for n, text in enumerate(["Hi", "Ho", "Hi", "Hi"])]
    prompts = read(written(tmp_path, *lines), notes.append)
    assert [p.id for p in prompts] == ["0", "1"]
    assert notes == [f"{tmp_path / 'question.jsonl'}: 2 repeated prompts left out"]


def test_an_id_for_two_prompts_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "a", "prompt": "Hi"}, {"id": "a", "prompt": "Ho"})
    assert fault(path) == ", line 2: the id 'a' is taken; give each prompt its own."


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "question.jsonl"
    path.write_bytes('\ufeff{"prompt": "Grüße"}\r\n\r\n{"prompt": "Hi"}\r\n'.encode())
    assert [p.turns for p in read(path)] == [("Grüße",), ("Hi",)]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("Write a poem.", "not JSON"),
        ('{"prompt": "Hi"', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('["Hi"]', "not an object"),
        ('{"id": "b"}', "no turns"),
        ('{"turns": []}', "no turns"),
        ('{"turns": "Hi"}', "no turns"),
        ('{"turns": null}', "no turns"),
        ('{"turns": ["Hi", ""]}', "an empty turn"),
        ('{"prompt": " \\n"}', "an empty turn"),
        ('{"turns": ["Hi", 7]}', "a turn that is not text"),
        ('{"prompt": {"text": "Hi"}}', "a turn that is not text"),
        ('{"prompt": "\\ud800"}', "a turn that is no valid Unicode"),
        (json.dumps({"prompt": "x" * 10_000_000}), "longer than 1 MiB"),
    ],
)
def test_a_line_that_is_no_prompt_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = written(tmp_path, {"prompt": "A good one."}, line)
    assert fault(path).startswith(f", line 2: {complaint}; ")


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "question.jsonl"
    path.write_bytes(b'{"prompt": "Hi"}\n{"prompt": "Gr\xfc\xdfe"}\n')
    assert fault(path) == ", line 2: not UTF-8; save the file as UTF-8."


@pytest.mark.parametrize("content", [b"", b"\n \n\r\n"])
def test_a_file_without_prompts_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "question.jsonl"
    path.write_bytes(content)
    assert fault(path).startswith(" holds no prompt; give one object a line")


@pytest.mark.parametrize("name", ["absent.jsonl", "nul\0.jsonl", "file/below.jsonl"])
def test_a_file_that_is_not_there_is_not_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotFound, match=r"There is no file .*; give a file of prompts\.$"):
        read(tmp_path / name)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert fault(tmp_path) == " is a folder; give a file of prompts."


def test_a_name_no_disk_can_hold_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(EdgespecError, match=r"cannot be read \(File name too long\)"):
        read(tmp_path / ("x" * 5000))


def test_ids_and_categories_cannot_write_to_a_terminal(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "\x1b[2Ja\nb", "category": "\u202egnp", "prompt": "Hi"})
    (prompt,) = read(path)
    assert prompt.id.isprintable()
    assert prompt.category.isprintable()
    assert prompt.id == "\\x1b[2Ja\\nb"
