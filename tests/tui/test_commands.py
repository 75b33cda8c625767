"""Lines that begin with a slash, and what they ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.options import AnswerOptions, Speculation
from edgespec.tui.command_line import SPECULATION_WORDS, as_message, parse, quoted
from edgespec.tui.commands import (
    COMMANDS,
    Attach,
    Branch,
    ChangeSetting,
    ChangeSpeculation,
    Command,
    Continue,
    Copy,
    Delete,
    Detach,
    Edit,
    Export,
    Help,
    NewChat,
    Parsed,
    Quit,
    Regenerate,
    Rename,
    Replay,
    Say,
    Search,
    SetSystem,
    ShowMode,
    ShowSetting,
    ShowSpeculation,
    SwitchModel,
    Unknown,
    Wrong,
)
from edgespec.tui.settable import SETTINGS, Value, in_words, value_of

any_text = st.text(st.characters(), max_size=60)
names = st.sampled_from([command.name for command in COMMANDS])

EXAMPLES: dict[str, Command] = {
    "/system": SetSystem(None),
    "/system -": SetSystem(""),
    "/system You are terse.\nVery.": SetSystem("You are terse.\nVery."),
    "/set": ShowSetting(None),
    "/set temperature": ShowSetting("temperature"),
    "/set temperature 0.3": ChangeSetting("temperature", 0.3),
    "/set temperature = 0.3": ChangeSetting("temperature", 0.3),
    "/set temperature=0.3": ChangeSetting("temperature", 0.3),
    "/set top-k 20": ChangeSetting("top_k", 20),
    "/set top_p default": ChangeSetting("top_p", None),
    "/set max_tokens 200": ChangeSetting("max_tokens", 200),
    "/set seed 7": ChangeSetting("seed", 7),
    "/set reasoning off": ChangeSetting("reasoning", False),
    "/file notes.md": Attach("notes.md"),
    "/file my notes.md": Attach("my notes.md"),
    "/file 'my notes.md'": Attach("my notes.md"),
    '/file "~/a b.txt"': Attach("~/a b.txt"),
    "/file -": Detach(),
    "/export talk.md": Export("talk.md"),
    "/export": Export(""),
    "/export ~/talk.JSON": Export("~/talk.JSON"),
    "/new": NewChat(),
    "/NEW ": NewChat(),
    "/model": SwitchModel(None),
    "/model qwen2.5-coder:q4_0": SwitchModel("qwen2.5-coder:q4_0"),
    "/spec": ShowSpeculation(),
    "/spec auto": ChangeSpeculation("auto", None),
    "/spec off": ChangeSpeculation("none", None),
    "/spec ngram 12": ChangeSpeculation("ngram", 12),
    "/spec draft": ChangeSpeculation("draft", None),
    "/spec 4": ChangeSpeculation(None, 4),
    "/help": Help(),
    "/?": Help(),
    "/copy": Copy(None),
    "/copy 2": Copy(2),
    "/edit": Edit(1),
    "/edit 3": Edit(3),
    "/regenerate": Regenerate(),
    "/continue": Continue(),
    "/branch": Branch("next"),
    "/branch next": Branch("next"),
    "/branch previous": Branch("previous"),
    "/branch 2": Branch(2),
    "/search two words": Search("two words"),
    "/search": Search(""),
    "/rename  A better\ttitle ": Rename("A better title"),
    "/delete": Delete(),
    "/replay": Replay(),
    "/show": ShowMode(),
    "/quit": Quit(),
    "/exit": Quit(),
}
WRONG = {
    "/set warmth 3": "no setting 'warmth'",
    "/set temperature hot": "temperature is a number",
    "/set temperature nan": "finite",
    "/set temperature 300": "temperature",
    "/set top_k 2.5": "top_k is a whole number",
    "/set top_p 1.5": "top_p",
    "/set max_tokens 0": "max_tokens",
    "/set seed -1": "seed",
    f"/set seed {2**63}": "seed",
    f"/set top_k {'9' * 400}": "top_k",
    "/set reasoning maybe": "on, off",
    "/file": "name a text file",
    "/export talk.txt": ".md or .json",
    "/new chat": "nothing stands behind it",
    "/spec fast": "auto, off, ngram, draft",
    "/spec 65": "64",
    "/spec ngram 1 2": "auto, off, ngram, draft",
    "/copy one": "number of a code block",
    "/copy 0": "number of a code block",
    "/edit -1": "1 for the last message",
    "/branch sideways": "next, previous",
    "/rename": "give a title",
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_a_command_is_what_it_says(text: str) -> None:
    assert parse(text) == EXAMPLES[text]


def test_every_command_has_an_example() -> None:
    named = {text[1:].split()[0].lower() for text in EXAMPLES}
    assert {command.name for command in COMMANDS} <= named


def test_the_help_names_every_way_to_guess_and_what_may_be_left_out() -> None:
    by_name = {command.name: command for command in COMMANDS}
    ways = by_name["spec"].help.removeprefix("guess: ").split("|")
    assert ways == list(SPECULATION_WORDS)
    assert all(by_name[name].usage.startswith("[") for name in ("copy", "edit", "export"))


@pytest.mark.parametrize("text", WRONG)
def test_what_a_command_cannot_take_is_told_in_one_line(text: str) -> None:
    found = parse(text)
    assert isinstance(found, Wrong)
    assert WRONG[text] in found.reason
    assert "\n" not in found.reason


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("/regenrate", "regenerate"), ("/halp", "help"), ("/usr/bin/env fails", None), ("/", None)],
)
def test_an_unknown_command_names_the_nearest_one(text: str, nearest: str | None) -> None:
    found = parse(text)
    assert isinstance(found, Unknown)
    assert found.nearest == nearest
    assert "// begins a message" in found.reason


def test_a_name_with_control_characters_is_told_escaped() -> None:
    found = parse("/\x1b]0;title\x07")
    assert isinstance(found, Unknown)
    assert found.reason.isprintable()


@pytest.mark.parametrize(("text", "sent"), [("//etc/hosts?", "/etc/hosts?"), (" /new", " /new")])
def test_a_message_may_begin_with_a_slash(text: str, sent: str) -> None:
    assert parse(text) == Say(sent)


@given(any_text)
def test_no_text_makes_the_parser_fail(text: str) -> None:
    found: Parsed = parse(f"/{text}")
    if isinstance(found, (Unknown, Wrong)):
        assert found.reason.isprintable()


@given(names, any_text)
def test_no_argument_makes_a_command_fail(name: str, rest: str) -> None:
    found = parse(f"/{name} {rest}")
    assert not isinstance(found, (Say, Unknown))
    if isinstance(found, Wrong):
        assert found.reason.isprintable()


@given(any_text)
def test_any_message_can_be_written_so_that_it_is_sent_as_it_is(text: str) -> None:
    assert parse(as_message(text)) == Say(text)


@given(any_text)
def test_any_path_can_be_written_behind_file(path: str) -> None:
    assert parse(f"/file {quoted(path)}") == Attach(path)


@given(
    st.one_of(
        st.tuples(st.just("temperature"), st.floats(0, 100)),
        st.tuples(st.just("min_p"), st.floats(0, 1)),
        st.tuples(st.just("top_k"), st.integers(0, 2**31)),
        st.tuples(st.just("seed"), st.integers(0, 2**63 - 1)),
        st.tuples(st.just("max_tokens"), st.integers(1, 2**31)),
        st.tuples(st.just("reasoning"), st.booleans()),
    )
)
def test_a_setting_comes_back_as_it_was_written(setting: tuple[str, Value]) -> None:
    name, value = setting
    written = {True: "on", False: "off"}[value] if isinstance(value, bool) else repr(value)
    change = parse(f"/set {name} {written}")
    assert isinstance(change, ChangeSetting)
    options = change.applied(AnswerOptions())
    assert value_of(options, name) == value
    back = ChangeSetting(name, None).applied(options)
    assert back == AnswerOptions()


def test_other_settings_stay_when_one_is_changed() -> None:
    options = ChangeSetting("seed", 3).applied(AnswerOptions(overrides={"top_k": 5}, max_tokens=9))
    assert options == AnswerOptions(overrides={"top_k": 5, "seed": 3}, max_tokens=9)


def test_every_setting_is_shown_in_one_line_whether_it_is_set_or_not() -> None:
    options = AnswerOptions(overrides={"temperature": 0.25}, reasoning=True)
    lines = {name: in_words(options, name) for name in SETTINGS}
    assert lines["temperature"] == "temperature 0.25"
    assert lines["reasoning"] == "reasoning on"
    assert lines["seed"] == "seed default"


def test_a_length_alone_leaves_the_proposer_and_a_proposer_alone_frees_the_length() -> None:
    now = Speculation(proposer="ngram", always_draft=True)
    longer = ChangeSpeculation(None, 8).applied(now)
    assert longer == Speculation(proposer="ngram", draft_tokens=8, always_draft=True)
    assert ChangeSpeculation("draft", None).applied(longer).draft_tokens is None
