"""Which vocabularies go together."""

from __future__ import annotations

from pathlib import Path

import pytest
from gguf_bytes import MODEL, Gguf, vocabulary

from edgespec.errors import IncompatiblePair
from edgespec.models.compat import Compatibility, check_vocabularies
from edgespec.models.gguf import read_header

TOKENS = ["a", "b", "ab", "<|end|>"]
UNUSED, CONTROL, USER_DEFINED = 5, 3, 4


@pytest.fixture
def compare(tmp_path: Path):
    def compare(target: Gguf, draft: Gguf) -> Compatibility:
        return check_vocabularies(
            read_header(target.write(tmp_path / "target.gguf")),
            read_header(draft.write(tmp_path / "draft.gguf")),
        )

    return compare


def test_equal_vocabularies_go_together_without_a_note(compare) -> None:
    assert compare(vocabulary(TOKENS), vocabulary(TOKENS)) == Compatibility(4, "")


def test_one_different_id_is_refused_by_name(compare) -> None:
    with pytest.raises(IncompatiblePair) as caught:
        compare(vocabulary(TOKENS), vocabulary(["a", "b", "abc", "<|end|>"]))
    message = str(caught.value)
    assert "draft.gguf cannot draft for target.gguf" in message
    assert "id 2 is 'ab' in the target but 'abc' in the draft" in message
    assert message.endswith(
        "'--proposer ngram' needs no draft model, or name another with --draft."
    )


def test_permuted_ids_are_refused_at_the_first(compare) -> None:
    with pytest.raises(IncompatiblePair, match="id 1 is 'b' in the target but 'ab' in the draft"):
        compare(vocabulary(TOKENS), vocabulary(["a", "ab", "b", "<|end|>"]))


def test_a_difference_that_cannot_be_seen_is_spelled_out(compare) -> None:
    with pytest.raises(IncompatiblePair) as caught:
        compare(vocabulary(["a\u200b"]), vocabulary(["a\x1b"]))
    assert "'a\\u200b' in the target but 'a\\x1b' in the draft" in str(caught.value)


@pytest.mark.parametrize("pad_type", [UNUSED, CONTROL, USER_DEFINED])
@pytest.mark.parametrize("longer", ["target", "draft"])
def test_padding_at_the_end_of_one_is_allowed_with_a_note(
    compare, pad_type: int, longer: str
) -> None:
    short = vocabulary(TOKENS)
    padded = vocabulary(
        [*TOKENS, "[PAD4]", "<|extra_0|>", "<unused7>"], [1, 1, 1, 3, *[pad_type] * 3]
    )
    found = compare(padded, short) if longer == "target" else compare(short, padded)
    assert found == Compatibility(4, f"the {longer} has 3 more ids, all padding")


def test_a_real_token_that_only_one_has_is_refused_with_both_sizes(compare) -> None:
    with pytest.raises(IncompatiblePair) as caught:
        compare(vocabulary([*TOKENS, "[PAD4]", "more"], [1, 1, 1, 3, 5, 1]), vocabulary(TOKENS))
    message = str(caught.value)
    assert "6 ids in the target, 4 in the draft" in message
    assert "the first that only the target has is 5 'more'" in message


def test_text_that_looks_like_padding_but_is_normal_is_a_token(compare) -> None:
    with pytest.raises(IncompatiblePair, match="4 '<pad>'"):
        compare(vocabulary([*TOKENS, "<pad>"]), vocabulary(TOKENS))


def test_padding_where_the_other_has_a_token_is_allowed_and_counted(compare) -> None:
    target = vocabulary([*TOKENS, "<think>"], [1, 1, 1, 3, 4])
    draft = vocabulary([*TOKENS, "[PAD4]"], [1, 1, 1, 3, 5])
    assert compare(target, draft).note == "ids that are padding in one and tokens in the other: 1"


def test_other_special_tokens_are_noted_and_not_refused(compare) -> None:
    target = vocabulary(TOKENS, tokenizer__ggml__eos_token_id=3)
    found = compare(target, vocabulary(TOKENS, tokenizer__ggml__eos_token_id=2))
    assert found == Compatibility(4, "their eos tokens differ (3 and 2); the target's count")


def test_another_way_to_split_text_is_noted(compare) -> None:
    found = compare(vocabulary(TOKENS, tokenizer__ggml__pre="qwen2"), vocabulary(TOKENS))
    assert "split text differently" in found.note


def test_another_kind_of_tokenizer_is_refused(compare) -> None:
    with pytest.raises(IncompatiblePair, match="of the kinds 'gpt2' and 'llama'"):
        compare(vocabulary(TOKENS), vocabulary(TOKENS, tokenizer__ggml__model="llama"))


def test_a_draft_without_vocabulary_is_taken_on_trust_if_it_has_no_more_ids(compare) -> None:
    bare = {key: v for key, v in MODEL.items() if not key.startswith("tokenizer")}
    found = compare(vocabulary(TOKENS), Gguf(bare | {"llama.vocab_size": 3}))
    assert found.shared == 3
    assert "on trust" in found.note
    with pytest.raises(IncompatiblePair, match="no vocabulary to compare"):
        compare(vocabulary(TOKENS), Gguf(bare | {"llama.vocab_size": 5}))
