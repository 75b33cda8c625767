"""Whether a draft model and a target mean the same thing by the same token id."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from edgespec.errors import IncompatiblePair
from edgespec.models.id_table import IdTable, vocabulary_digest
from edgespec.models.model_header import ModelHeader
from edgespec.models.shown import shown
from edgespec.models.vocabulary import TokenType

_PADDING = re.compile(
    rb"\[PAD\d*\]|<\|?(extra|unused|reserved|padding|pad)[\w| -]*>|\[unused\d+\]",
    re.IGNORECASE,
)
_SPECIAL = ("bos", "eos", "eot")
_STILL_WORKS = "'--proposer ngram' needs no draft model, or name another with --draft"


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Target and draft agree on every token that either can say.

    shared: ids below it exist in both; a draft's id from there on must not be proposed.
    note: differences that do no harm, in words; empty if there are none.
    """

    shared: int
    note: str = ""


def check_vocabularies(target: ModelHeader, draft: ModelHeader) -> Compatibility:
    """Compare the text of every id; ids that are padding in one of the two may differ.

    A drafter with an id table must have been made for this target's vocabulary.
    Raises: IncompatiblePair naming the first id that differs.
    """
    if (table := draft.id_table) is not None:
        return _by_table(target, draft, table)
    if not target.tokens or not draft.tokens:
        return _on_trust(target, draft)
    if target.tokenizer != draft.tokenizer:
        kinds = f"'{shown(target.tokenizer, 40)}' and '{shown(draft.tokenizer, 40)}'"
        raise _incompatible(target, draft, f"their tokenizers are of the kinds {kinds}")
    shared = min(len(target.tokens), len(draft.tokens))
    padded = _check_shared_ids(target, draft)
    for longer in (target, draft):
        _check_extra_ids(target, draft, longer)
    notes = [_size_note(target, draft)]
    if padded:
        notes.append(f"ids that are padding in one and tokens in the other: {padded}")
    # only files of the same format name the ways in which they split text alike
    if target.format == draft.format and target.pretokenizer != draft.pretokenizer:
        pair = f"{shown(target.pretokenizer, 40)}, {shown(draft.pretokenizer, 40)}"
        notes.append(f"they split text differently before tokenizing ({pair})")
    notes += [_special_note(target, draft, name) for name in _SPECIAL]
    return Compatibility(shared, "; ".join(note for note in notes if note))


def _by_table(target: ModelHeader, draft: ModelHeader, table: IdTable) -> Compatibility:
    known = target.vocabulary_size
    if not target.tokens or vocabulary_digest(target.tokens) != table.vocabulary:
        raise _incompatible(target, draft, "it was trained for a model with another vocabulary")
    if table.ids[-1] >= known:
        what = f"its id table names id {table.ids[-1]}, and the target has {known}"
        raise _incompatible(target, draft, what)
    return Compatibility(known, f"the draft knows {len(table.ids)} of the target's {known} tokens")


def _on_trust(target: ModelHeader, draft: ModelHeader) -> Compatibility:
    """A file without a vocabulary leaves only the number of ids to compare."""
    sizes = target.vocabulary_size, draft.vocabulary_size
    if min(sizes) == 0 or sizes[1] > sizes[0]:
        raise _incompatible(target, draft, "one of them carries no vocabulary to compare")
    return Compatibility(min(sizes), "one of them carries no vocabulary, so ids are taken on trust")


def _check_shared_ids(target: ModelHeader, draft: ModelHeader) -> int:
    """How many ids differ because one side has padding there."""
    pairs = enumerate(zip(target.tokens, draft.tokens, strict=False))
    differing = [(i, t, d) for i, (t, d) in pairs if t != d]
    if not differing:
        return 0
    target_pads, draft_pads = _padding_check(target), _padding_check(draft)
    for i, t, d in differing:
        if not target_pads(i, t) and not draft_pads(i, d):
            what = f"id {i} is '{shown(t, 60)}' in the target but '{shown(d, 60)}' in the draft"
            raise _incompatible(target, draft, what)
    return len(differing)


def _check_extra_ids(target: ModelHeader, draft: ModelHeader, longer: ModelHeader) -> None:
    """Ids that only one model has must be padding."""
    shared = min(len(target.tokens), len(draft.tokens))
    is_padding = _padding_check(longer)
    extra = enumerate(longer.tokens[shared:], start=shared)
    real = next(((i, token) for i, token in extra if not is_padding(i, token)), None)
    if real is not None:
        sizes = f"{len(target.tokens)} ids in the target, {len(draft.tokens)} in the draft"
        side = "target" if longer is target else "draft"
        first = f"the first that only the {side} has is {real[0]} '{shown(real[1], 60)}'"
        raise _incompatible(target, draft, f"{sizes}, and {first}")


def _padding_check(header: ModelHeader) -> Callable[[int, bytes], bool]:
    """Tells whether an id of this vocabulary stands for nothing."""
    types = header.token_types
    named = (TokenType.CONTROL, TokenType.USER_DEFINED)

    def is_padding(token: int, text: bytes) -> bool:
        if len(types) and types[token] == TokenType.UNUSED:
            return True
        may_pad = not len(types) or types[token] in named
        return may_pad and _PADDING.fullmatch(text) is not None

    return is_padding


def _size_note(target: ModelHeader, draft: ModelHeader) -> str:
    difference = len(target.tokens) - len(draft.tokens)
    if not difference:
        return ""
    side = "target" if difference > 0 else "draft"
    return f"the {side} has {abs(difference)} more ids, all padding"


def _special_note(target: ModelHeader, draft: ModelHeader, name: str) -> str:
    t, d = target.special_token(name), draft.special_token(name)
    if t == d:
        return ""
    return f"their {name} tokens differ ({t} and {d}); the target's count"


def _incompatible(target: ModelHeader, draft: ModelHeader, why: str) -> IncompatiblePair:
    names = f"{shown(draft.path.name)} cannot draft for {shown(target.path.name)}"
    return IncompatiblePair(f"{names}: {why}; {_STILL_WORKS}.")
