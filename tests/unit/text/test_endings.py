"""The names of the tokens that end an answer."""

from __future__ import annotations

from byte_tokenizer import ByteTokenizer

from edgespec.text.endings import end_names


def test_a_token_that_ends_an_answer_has_the_name_that_spells_it() -> None:
    assert end_names(ByteTokenizer()) == {257: "<|im_end|>", 258: "<eos>"}


def test_a_token_whose_name_cannot_be_found_out_has_none() -> None:
    assert end_names(ByteTokenizer(end_tokens=frozenset({258, 300}))) == {258: "<eos>", 300: ""}


def test_a_name_that_is_plain_text_to_a_vocabulary_names_nothing() -> None:
    class WithoutControls(ByteTokenizer):
        def encode(self, text: str, *, special: bool) -> list[int]:
            return super().encode(text, special=False)

    assert end_names(WithoutControls()) == {257: "", 258: ""}
