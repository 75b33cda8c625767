"""Ways to go on with a command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.options import AnswerOptions
from edgespec.tui.command_line import parse
from edgespec.tui.commands import COMMANDS, Attach
from edgespec.tui.completion import Offer, Offers, Sources, offers, takes_while

MODELS = ("qwen2.5-coder-1.5b", "demo", "smollm2-instruct")
SOURCES = Sources(lambda: MODELS, lambda: AnswerOptions(overrides={"temperature": 0.3}))


def texts(text: str) -> list[str]:
    return [offer.text for offer in offers(text, SOURCES).all]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("notes.md", "Notes two.txt", ".hidden", "notes.md.bak"):
        (tmp_path / name).touch()
    (tmp_path / "nested").mkdir()
    (tmp_path / "nested" / "deep.txt").touch()
    return tmp_path


def test_a_slash_offers_every_command_with_its_help() -> None:
    found = offers("/", SOURCES).all
    assert [offer.text.strip() for offer in found] == [f"/{c.name}" for c in COMMANDS]
    assert all(offer.help for offer in found)


def test_a_prefix_offers_what_begins_with_it_whatever_its_case() -> None:
    assert texts("/RE") == ["/regenerate", "/replay", "/rename "]


@pytest.mark.parametrize("text", ["", "hello", "//", "/unknown ", "/set\n", "/new", "/system be"])
def test_nothing_is_offered_where_nothing_can_be(text: str) -> None:
    assert texts(text) == []


def test_settings_show_what_they_are_set_to() -> None:
    (found,) = offers("/set temp", SOURCES).all
    assert found.label == "temperature 0.3"
    assert found.text == "/set temperature "
    assert not found.final


def test_a_switch_offers_both_ways() -> None:
    assert texts("/set reasoning o") == ["/set reasoning on", "/set reasoning off"]


def test_ways_to_guess_are_offered_with_what_they_mean() -> None:
    assert [text.removeprefix("/spec ") for text in texts("/spec ")] == [
        "auto", "off", "ngram", "draft", "tree", "recycling",
    ]  # fmt: skip
    assert texts("/spec n") == ["/spec ngram"]


def test_models_that_begin_so_stand_before_those_that_hold_it() -> None:
    assert texts("/model d") == ["/model demo", "/model qwen2.5-coder-1.5b"]


def test_a_model_name_that_cannot_be_shown_is_not_offered() -> None:
    assert offers("/model ", Sources(lambda: ["a\x1b[2J"])).all == ()


def test_files_are_offered_folders_first_and_hidden_ones_on_demand(folder: Path) -> None:
    assert texts("/file n") == [
        f"/file nested{os.sep}",
        "/file Notes two.txt",
        "/file notes.md",
        "/file notes.md.bak",
    ]
    assert texts("/file .") == ["/file .hidden"]
    assert texts(f"/file nested{os.sep}") == [f"/file nested{os.sep}deep.txt"]


def test_a_path_may_begin_with_a_quotation_mark(folder: Path) -> None:
    (found,) = texts('/file "Notes t')
    assert parse(found) == Attach("Notes two.txt")


def test_a_folder_that_cannot_be_read_offers_nothing(folder: Path) -> None:
    assert texts("/file nowhere/x") == []
    assert texts("/file \0") == []
    assert texts("/file ~nobody-of-this-name/") == []


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_a_name_with_control_characters_is_not_offered(folder: Path) -> None:
    (folder / "z\x1b[2J").touch()
    (folder / "z\nz").touch()
    assert texts("/file z") == []


def test_a_file_that_is_there_stands_though_others_begin_like_it(folder: Path) -> None:
    found = offers("/file notes.md", SOURCES)
    assert found.stands
    assert [offer.text for offer in found.all] == ["/file notes.md.bak"]
    assert not offers("/file note", SOURCES).stands


def test_an_export_is_offered_both_formats_and_the_folders(folder: Path) -> None:
    assert texts("/export talk") == ["/export talk.md", "/export talk.json"]
    assert texts("/export ")[:2] == ["/export conversation.md", "/export conversation.json"]
    assert f"/export nested{os.sep}" in texts("/export n")
    assert texts("/export talk.md") == []


def test_only_a_model_that_is_there_stands() -> None:
    assert offers("/model demo", SOURCES).stands
    assert not offers("/model dem", SOURCES).stands


def test_only_folders_take_a_while() -> None:
    assert takes_while("/file a")
    assert takes_while("/export a")
    assert not takes_while("/model a")
    assert not takes_while("file a")


@given(st.text(st.characters(), max_size=40))
def test_every_offer_goes_on_from_the_command_and_can_be_shown(text: str) -> None:
    found: Offers = offers(f"/{text}", SOURCES)
    for offer in found.all:
        assert isinstance(offer, Offer)
        assert offer.text.startswith("/")
        assert offer.label.isprintable()
        assert offer.help.isprintable()
