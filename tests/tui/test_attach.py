"""Files that go along with a message."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from composing import ComposerApp
from hypothesis import given
from hypothesis import strategies as st
from textual.message import Message
from waiting import wait_until

from edgespec.errors import BadInput, EdgespecError, NotFound
from edgespec.text.documents import MAX_BYTES, decoded
from edgespec.tui import composer
from edgespec.tui.attach import Attached, Attachments, Room, framed, read_attachment, refusal
from edgespec.tui.composer import Composer


def test_a_text_file_is_read_and_named_without_its_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("\ufeffGrüße\n", encoding="utf-8")
    assert read_attachment(str(tmp_path / "notes.md")) == Attached("notes.md", "Grüße\n")


def test_a_tilde_is_the_users_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "notes.md").write_text("here")
    assert read_attachment("~/notes.md").text == "here"


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="is not there"):
        read_attachment(str(tmp_path / "none.txt"))


def test_a_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        read_attachment(str(tmp_path))


def test_a_binary_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"text\0more")
    with pytest.raises(BadInput, match="zero byte"):
        read_attachment(str(tmp_path / "a.bin"))


def test_text_that_is_not_utf8_is_told_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("ab\u00e9".encode("latin-1"))
    with pytest.raises(BadInput, match=r"not UTF-8 text \(byte 2\)"):
        read_attachment(str(tmp_path / "latin.txt"))


def test_a_file_that_is_too_large_is_told(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_bytes(b"a" * (MAX_BYTES + 1))
    with pytest.raises(BadInput, match="more than 4 MiB"):
        read_attachment(str(tmp_path / "big.txt"))


def test_an_empty_file_is_attached(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    assert read_attachment(str(tmp_path / "empty.txt")).text == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_nobody_writes_to_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="no file"):
        read_attachment(str(tmp_path / "pipe"))


@pytest.mark.parametrize("path", ["a\0b", "~nobody-of-this-name/x", "a" * 5000, ""])
def test_a_path_that_cannot_be_is_told_in_one_printable_line(path: str) -> None:
    with pytest.raises(EdgespecError) as raised:
        read_attachment(path)
    assert str(raised.value).isprintable()


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_a_name_with_control_characters_and_quotes_cannot_leave_its_frame(tmp_path: Path) -> None:
    name = '\x1b]0;x\x07a"> <b\n.txt'
    (tmp_path / name).write_text("text")
    attached = read_attachment(str(tmp_path / name))
    assert attached.name.isprintable()
    assert '"' not in attached.name
    first_line = framed("question", [attached]).splitlines()[0]
    assert first_line == f'<document name="{attached.name}">'
    with pytest.raises(NotFound) as raised:
        read_attachment(str(tmp_path / f"{name}.not"))
    assert str(raised.value).isprintable()


def test_documents_stand_before_the_message_in_their_order() -> None:
    attached = [Attached("a.txt", "one\n"), Attached("b.txt", "two")]
    assert framed("what?", attached) == (
        '<document name="a.txt">\none\n</document>\n\n'
        '<document name="b.txt">\ntwo\n</document>\n\nwhat?'
    )


def test_what_fits_is_not_refused() -> None:
    assert refusal([Attached("a", "x", 900), Attached("b", "y", 99)], Room(2000, 1000)) == ""


def test_what_does_not_fit_now_is_refused_with_numbers_and_ways_out() -> None:
    reason = refusal([Attached("a", "x", 1500)], Room(2000, 1000))
    assert "1,500 tokens, 1,000 of 2,000 are free" in reason
    assert "/new" in reason
    assert "/file -" in reason


def test_what_never_fits_is_not_sent_to_a_new_chat() -> None:
    assert "/new" not in refusal([Attached("a", "x", 2500)], Room(2000, 1000))


def test_what_is_not_counted_is_sent_only_if_its_bytes_would_fit() -> None:
    assert refusal([Attached("a", "x" * 900)], Room(2000, 1000)) == ""
    assert "being counted" in refusal([Attached("a", "\u00e9" * 900)], Room(2000, 1000))


def test_a_count_for_what_was_taken_back_is_dropped() -> None:
    attachments = Attachments()
    tag = attachments.add(Attached("a", "x"))
    assert attachments.remove_last() == Attached("a", "x")
    other = attachments.add(Attached("b", "y"))
    assert not attachments.counted(tag, 5)
    assert attachments.counted(other, 7)
    assert attachments.all == (Attached("b", "y", 7),)


def test_another_model_counts_anew() -> None:
    attachments = Attachments()
    tag = attachments.add(Attached("a", "x"))
    attachments.counted(tag, 5)
    assert attachments.uncounted() == ()
    attachments.forget_counts()
    assert attachments.uncounted() == ((tag, framed("", [Attached("a", "x")])),)


def test_each_can_be_taken_back_by_its_place() -> None:
    attachments = Attachments()
    for name in ("a", "b", "c"):
        attachments.add(Attached(name, name))
    assert attachments.remove(1) == Attached("b", "b")
    assert attachments.remove(5) is None
    assert [one.name for one in attachments.take()] == ["a", "c"]
    assert attachments.all == ()


@given(st.binary(max_size=40))
def test_bytes_are_text_or_refused_in_one_line(data: bytes) -> None:
    try:
        told = decoded(data, "file")
    except BadInput as error:
        told = str(error)
    assert "\0" not in told


def test_a_home_that_nobody_has_is_told_in_one_sentence() -> None:
    with pytest.raises(BadInput, match=r"cannot be read: .*[^.]\.$"):
        read_attachment("~nobody-of-this-name/file.txt")


async def test_a_file_that_a_dead_disk_holds_back_is_left_out_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    let_go, read = threading.Event(), list[str]()

    def hang(path: str) -> Attached:
        let_go.wait(9.0)
        read.append(path)
        return Attached(path, "late", 1)

    monkeypatch.setattr(composer, "read_attachment", hang)
    app = ComposerApp()
    async with app.run_test() as pilot:

        def submit(text: str) -> None:
            app.composer.box.put(text)
            app.composer.box.submit()

        def heard(kind: type[Message]) -> list[Message]:
            return [message for message in app.heard if isinstance(message, kind)]

        submit("/file dead.txt")
        submit("hi")
        await wait_until(lambda: heard(Composer.Refused), "the refusal")
        assert "/file - leaves it out" in str(heard(Composer.Refused))
        assert app.composer.box.text == "hi"
        submit("/file -")
        submit("hi")
        await wait_until(lambda: heard(Composer.Submitted), "the message")
        let_go.set()
        await wait_until(lambda: read)
        await pilot.pause()
        assert app.composer.attached == ()
