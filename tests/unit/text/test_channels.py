"""Thoughts and answers in channels of their own, as gpt-oss and Gemma 4 say them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.conversation import PromptEncoder, Spoken
from edgespec.text.detokenize import Detokenizer
from edgespec.text.narrate import Narrator
from edgespec.text.stops import StopStrings
from edgespec.text.template import Message
from edgespec.text.thoughts import without_thought

HARMONY = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>")
GEMMA = ("<|channel>", "<channel|>", "<|turn>", "<turn|>")
HARMONY_TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m.role }}"
    "{% if m.role == 'assistant' %}<|channel|>final{% endif %}"
    "<|message|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
GEMMA_TEMPLATE = (
    "{% for m in messages %}<|turn>{{ m.role }}\n{{ m.content }}<turn|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn>assistant\n{% endif %}"
)


@dataclass(frozen=True)
class Bytes:
    """One token for each byte, then control tokens. spelled: whether those have a text too."""

    controls: tuple[str, ...]
    source: str | None = None
    spelled: bool = False
    bos: int | None = None

    @property
    def vocab(self) -> int:
        return 256 + len(self.controls)

    @property
    def end_tokens(self) -> frozenset[int]:
        ends = ("<|return|>", "<turn|>")
        return frozenset(256 + n for n, name in enumerate(self.controls) if name in ends)

    def encode(self, text: str, *, special: bool) -> list[int]:
        names = "|".join(map(re.escape, self.controls))
        parts = re.split(f"({names})", text) if special and names else [text]
        ids: list[int] = []
        for part in parts:
            ids += [256 + self.controls.index(part)] if part in self.controls else part.encode()
        return ids

    def piece(self, token: int) -> bytes:
        if token < 256:
            return bytes([token])
        return self.controls[token - 256].encode() if self.spelled else b""

    def template(self) -> str | None:
        return self.source

    def special_text(self, name: str) -> str:
        return ""


def told(text: str, controls: tuple[str, ...] = HARMONY, *, spelled: bool = False) -> str:
    """What is shown of an answer of these tokens."""
    tokenizer = Bytes(controls, spelled=spelled)
    detokenizer = Detokenizer(tokenizer)
    ids = tokenizer.encode(text, special=True)
    return "".join([*map(detokenizer.feed, ids), detokenizer.flush()])


FINAL = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"<|channel|>analysis<|message|>Hm.<|end|>{FINAL}4", "<think>Hm.</think>\n\n4"),
        ("<|channel|>final<|message|>4", "4"),
        ("<|channel|>analysis<|message|>Hm", "<think>Hm"),
        (f"<|channel|>analysis<|message|><|end|>{FINAL}4", "4"),
        ("<|channel|>commentary<|message|>I look it up.", "I look it up."),
        (
            "<|channel|>analysis<|message|>One.<|end|>"
            f"<|start|>assistant<|channel|>analysis<|message|>Two.<|end|>{FINAL}4",
            "<think>One.\n\nTwo.</think>\n\n4",
        ),
        ("4<|message|>2", "42"),
        ("<|channel|>a name that never comes to an end", "a name that never comes to an end"),
    ],
)
def test_what_gpt_oss_thinks_is_marked_and_its_answer_is_not(said: str, shown: str) -> None:
    assert told(said) == shown


@pytest.mark.parametrize("spelled", [False, True])
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("<|channel>thought\nHm.\n<channel|>4", "<think>Hm.\n</think>\n\n4"),
        ("<|channel>thought\n<channel|>4", "4"),
        ("<|channel>thought<channel|>4", "4"),
        ("<|channel>thought\nHm", "<think>Hm"),
        ("4", "4"),
    ],
)
def test_what_gemma_thinks_is_marked_and_its_answer_is_not(
    said: str, shown: str, spelled: bool
) -> None:
    assert told(said, GEMMA, spelled=spelled) == shown


@given(st.text(max_size=30))
def test_a_model_without_channels_is_shown_as_it_is(text: str) -> None:
    assert told(text, ()) == text
    assert told(f"<|channel|>{text}<|message|>", ("<|message|>",)) == f"<|channel|>{text}"


@given(st.lists(st.sampled_from([*HARMONY, "analysis", "final", "Hm", "\n"]), max_size=12))
def test_marks_come_in_pairs_whatever_a_model_says(pieces: list[str]) -> None:
    shown = told("".join(pieces))
    assert 0 <= shown.count("<think>") - shown.count("</think>") <= 1


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("<think>Hm.</think>\n\n4", "4"),
        ("4 </think> 2", "4 </think> 2"),
        ("<think>Hm", ""),
        ("4", "4"),
    ],
)
def test_history_is_told_without_what_was_thought(reply: str, answer: str) -> None:
    assert without_thought(reply) == answer


@pytest.mark.parametrize(
    ("controls", "source"), [(HARMONY, HARMONY_TEMPLATE), (GEMMA, GEMMA_TEMPLATE)]
)
def test_old_thoughts_are_not_in_the_next_prompt(controls: tuple[str, ...], source: str) -> None:
    tokenizer = Bytes(controls, source)
    encoder = PromptEncoder(tokenizer)
    asked, more = Message("user", "2+2?"), Message("user", "And 3?")
    thought = Message("assistant", "<think>Hm.</think>\n\n4")
    plain = Message("assistant", "4")
    expected = encoder.encode([asked, plain, more], {}).tolist()
    assert encoder.encode([asked, thought, more], {}).tolist() == expected
    ids = encoder.encode([asked], {})
    assert encoder.continued(Spoken([asked], thought, ids), more, {}) is None


def test_a_reply_without_a_thought_is_continued_by_its_ids() -> None:
    tokenizer = Bytes(GEMMA, GEMMA_TEMPLATE)
    encoder = PromptEncoder(tokenizer)
    asked, reply, more = Message("user", "2+2?"), Message("assistant", "4"), Message("user", "3?")
    ids = encoder.encode([asked], {})
    spoken = Spoken([asked], reply, [*ids.tolist(), ord("4")])  # type: ignore[arg-type]
    continued = encoder.continued(spoken, more, {})
    assert continued is not None
    assert continued.tolist() == encoder.encode([asked, reply, more], {}).tolist()


def test_without_channels_the_template_cuts_thoughts_itself() -> None:
    tokenizer = Bytes(("<|turn>", "<turn|>"), GEMMA_TEMPLATE)
    encoder = PromptEncoder(tokenizer)
    talk = [Message("user", "2+2?"), Message("assistant", "<think>Hm.</think>4")]
    ids = encoder.encode([*talk, Message("user", "3?")], {}).tolist()
    assert b"<think>Hm.</think>4" in bytes(one for one in ids if one < 256)


@pytest.mark.parametrize("stop", ["\n\n", "\n", "think"])
def test_a_stop_string_is_looked_for_in_what_the_model_said_alone(stop: str) -> None:
    tokenizer = Bytes(HARMONY)
    said = f"<|channel|>analysis<|message|>Hm.<|end|>{FINAL}4{stop}5"
    ids = tokenizer.encode(said, special=True)
    assert StopStrings(tokenizer, [stop]).first_stop(ids) == len(ids) - 1
    narrator = Narrator(tokenizer, [stop])
    assert "".join(narrator.begun(ids)) == "<think>Hm.</think>\n\n4"


def test_no_stop_string_reaches_from_a_thought_into_the_answer() -> None:
    tokenizer = Bytes(HARMONY)
    ids = tokenizer.encode(f"<|channel|>analysis<|message|>a<|end|>{FINAL}b", special=True)
    assert StopStrings(tokenizer, ["ab"]).first_stop(ids) is None
    narrator = Narrator(tokenizer, ["ab"])
    assert "".join(narrator.begun(ids)) == "<think>a</think>\n\nb"
