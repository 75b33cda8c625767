"""Files of conversations: which they are, and what is no conversation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgespec.bench.conversations import ConversationFile
from edgespec.errors import BadInput, NotFound
from edgespec.text.template import Message

TURNS = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
SAID = [Message("user", "Hi"), Message("assistant", "Hello.")]


def opened(tmp_path: Path, text: str) -> ConversationFile | None:
    file = tmp_path / "said.json"
    file.write_text(text, encoding="utf-8")
    return ConversationFile.open(file)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (json.dumps(TURNS), 1),
        (json.dumps({"messages": TURNS}), 1),
        (json.dumps([{"messages": TURNS}, {"messages": TURNS}]), 2),
        (json.dumps([TURNS, TURNS]), 2),
        (json.dumps({"messages": TURNS}) + "\n\n" + json.dumps({"messages": TURNS}) + "\n", 2),
        ("\ufeff" + json.dumps(TURNS, indent=2), 1),
    ],
    ids=["messages", "an object", "objects", "lists", "lines", "byte order mark"],
)
def test_every_usual_form_of_a_conversation_is_read(tmp_path: Path, text: str, count: int) -> None:
    found = opened(tmp_path, text)
    assert found is not None
    assert found.conversations() == [SAID] * count


@pytest.mark.parametrize(
    "text", ['{"prompt": "Hi"}', '{"turns": ["Hi"]}\n{"turns": ["Ho"]}', "", "x"]
)
def test_prompts_are_no_conversation(tmp_path: Path, text: str) -> None:
    assert opened(tmp_path, text) is None


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ([3], "conversation 1 is no conversation"),
        ([{"role": "user"}], "content is no text"),
        ([{"role": "robot", "content": "Hi"}], "none of the roles"),
        ([{"role": "user", "content": ["Hi"]}], "content is no text"),
        ([{"role": "user", "content": "\ud800"}], "no valid Unicode"),
        ({"messages": 4}, "is no conversation"),
        ([{"messages": TURNS}, {"no": 1}], "conversation 2 is no conversation"),
        ([{"messages": [["user", "Hi"]]}], "none of the roles"),
    ],
    ids=str,
)
def test_what_is_no_conversation_is_told(tmp_path: Path, content: object, fault: str) -> None:
    found = opened(tmp_path, json.dumps(content))
    assert found is not None
    with pytest.raises(BadInput, match=fault):
        found.conversations()


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["{good}", "", '{"messages": [}', "{good}"], "line 3 is no JSON"),
        (["{", "{good}"], "line 1 is no JSON"),
        (["{good}", "null"], "line 2 is no conversation"),
        (["{good}", '{"messages": [{"role": "user"}]}'], "line 2 has a turn whose content"),
    ],
)
def test_the_line_of_a_broken_conversation_is_named(
    tmp_path: Path, lines: list[str], fault: str
) -> None:
    good = json.dumps({"messages": TURNS})
    found = opened(tmp_path, "\n".join(good if line == "{good}" else line for line in lines))
    assert found is not None
    with pytest.raises(BadInput, match=fault):
        found.conversations()


@pytest.mark.parametrize(
    "text",
    ['[\n{"role": "user",\n', '{\n"messages": [\n', "[" * 100_000],
    ids=["a list", "an object", "too deep"],
)
def test_a_file_whose_json_is_broken_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match=r"is begun as JSON, but is none: "):
        opened(tmp_path, text)


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85"], ids=ascii)
def test_only_a_line_feed_ends_a_line(tmp_path: Path, end: str) -> None:
    said = [{"role": "user", "content": f"a{end}b"}]
    line = json.dumps({"messages": said}, ensure_ascii=False)
    found = opened(tmp_path, f"{line}\r\n{line}\n")
    assert found is not None
    assert found.conversations() == [[Message("user", f"a{end}b")]] * 2


def test_a_file_that_is_not_there_or_not_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no file"):
        ConversationFile.open(tmp_path / "no.json")
    with pytest.raises(BadInput, match="is a folder"):
        ConversationFile.open(tmp_path)
    (tmp_path / "latin.json").write_bytes(b'["\xe9"]')
    with pytest.raises(BadInput, match="not UTF-8"):
        ConversationFile.open(tmp_path / "latin.json")
