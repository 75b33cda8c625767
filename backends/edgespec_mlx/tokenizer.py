"""Text to tokens and back, with the tokenizer.json of a model's folder."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from edgespec.errors import BadInput, ModelFileError, NotFound
from edgespec.models.folder_header import FolderHeader
from edgespec.models.shown import shown
from edgespec.models.vocabulary import looks_special, read_json
from edgespec.models.wire import damaged
from edgespec.text.thoughts import MARKS
from edgespec_mlx.endings import end_tokens
from edgespec_mlx.spelling import bytes_of_letters

_MOST_BYTES: Final = 256 << 20
_MOST_TEMPLATE_BYTES: Final = 1 << 22
_MOST_GROWTH: Final = 256
_DEEPEST: Final = 16
_ANY_TEXT: Final = "Once, 12 words\n"
_SPACE: Final = "\u2581"  # how SentencePiece spells a space


class Spelling(Protocol):
    """How a vocabulary spells bytes."""

    def raw(self, token: str) -> bytes: ...


class Letters:
    """One visible letter for each byte, as GPT-2 spells them."""

    def raw(self, token: str) -> bytes:
        known = bytes_of_letters()
        return b"".join(
            bytes((known[c],)) if c in known else c.encode("utf-8", "replace") for c in token
        )


class Pieces:
    """Text with marked spaces, and `<0x0A>` for bytes that no piece holds."""

    def raw(self, token: str) -> bytes:
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            try:
                return bytes((int(token[3:5], 16),))
            except ValueError:
                pass
        return token.replace(_SPACE, " ").encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class _Added:
    """Tokens beside the vocabulary's own, by id: their texts, and which are control tokens."""

    texts: Mapping[int, str]
    control: frozenset[int]


class NoTexts:
    """The tokens of a drafter whose ids are its own: nobody reads or writes text with it."""

    end_tokens: frozenset[int] = frozenset()
    bos: int | None = None

    def __init__(self, vocab: int) -> None:
        self.vocab = vocab

    def encode(self, text: str, *, special: bool) -> list[int]:
        raise BadInput("A drafter with ids of its own reads no text; give it the target's ids.")

    def piece(self, token: int) -> bytes:
        return b""

    def template(self) -> str | None:
        return None

    def special_text(self, name: str) -> str:
        return ""


class FolderTokenizer:
    """The vocabulary of one folder.

    vocab: scores that the model gives, which may be more than there are tokens.
    """

    def __init__(self, header: FolderHeader, vocab: int) -> None:
        self.vocab, self._header = vocab, header
        path = header.path / "tokenizer.json"
        values = _values(path)
        settings = _optional(header.path / "tokenizer_config.json")
        self._added = _mark_control(values, settings)
        self._spelling = _spelling(path, values)
        _check_growth(path, values.get("normalizer"))
        self._library, self._in_use = _loaded(path, values), threading.Lock()
        self._names = {text: token for token, text in self._added.texts.items()}
        self._settings = settings
        self._pieces: dict[int, bytes] = {}
        controls = {self._added.texts[token]: token for token in self._added.control}
        named = (*_ids(header.config), *_ids(header.generation), self._named("eos"))
        self.end_tokens = frozenset(t for t in end_tokens(controls, named) if 0 <= t < vocab)

    @property
    def bos(self) -> int | None:
        """The token that every text must start with, where the model wants one."""
        token = self._named("bos")
        wanted = self._settings.get("add_bos_token")
        if token is None or wanted is False:
            return None
        if wanted is not True:
            with _faults_of(self._header.path / "tokenizer.json"):
                wanted = self._library.encode("").ids[:1] == [token]
        return token if wanted else None

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Token ids; with `special`, names of control tokens become those tokens."""
        clean = text.encode("utf-8", "replace").decode("utf-8")
        with self._in_use:
            # the library's word for: what looks like a control token stays text
            self._library.encode_special_tokens = not special
            with _faults_of(self._header.path / "tokenizer.json"):
                ids: list[int] = self._library.encode(clean, add_special_tokens=False).ids
        if ids and max(ids) >= self.vocab:
            raise BadInput(
                f"A part of this text is token {max(ids)}, and {shown(self._header.name, 80)} knows"
                f" {self.vocab} only; its tokenizer.json belongs to another model."
            )
        return ids

    def piece(self, token: int) -> bytes:
        """The bytes of a token's text; control tokens that mark no thought have none."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._read_piece(token)
        return known

    def template(self) -> str | None:
        """The chat template of the folder, or None."""
        folder = self._header.path
        own = folder / "chat_template.jinja"
        try:
            if own.is_file():  # a pipe would never end
                with own.open("rb") as file:
                    return file.read(_MOST_TEMPLATE_BYTES).decode("utf-8", "replace")
        except OSError:
            pass
        kept = _optional(folder / "chat_template.json")
        for found in (self._settings.get("chat_template"), kept.get("chat_template")):
            template = _default_template(found)
            if template is not None:
                return template
        return None

    def special_text(self, name: str) -> str:
        """The text of the "bos" or "eos" token; empty where there is none."""
        told = _text_of(self._settings.get(f"{name}_token"))
        token = self._header.special_token(name)
        return told or self._added.texts.get(-1 if token is None else token, "")

    def _named(self, name: str) -> int | None:
        """The id of the "bos" or "eos" token."""
        text = _text_of(self._settings.get(f"{name}_token"))
        if text and (token := self._library.token_to_id(text)) is not None:
            return int(token)
        return self._header.special_token(name)

    def _read_piece(self, token: int) -> bytes:
        added = self._added.texts.get(token)
        if token in self._added.control and added not in MARKS:
            return b""
        if added is not None:
            return added.encode("utf-8", "replace")
        text = self._library.id_to_token(token) if 0 <= token < self.vocab else None
        return b"" if text is None else self._spelling.raw(text)


def _values(path: Path) -> dict[str, Any]:
    try:
        return read_json(path, _MOST_BYTES)
    except FileNotFoundError as error:
        raise NotFound(
            f"{shown(path)} is missing, and edgespec reads no other tokenizer; download it, or save"
            " it with transformers' AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)."
        ) from error


def _optional(path: Path) -> dict[str, Any]:
    """A JSON object; empty where there is no such file."""
    try:
        return read_json(path, _MOST_TEMPLATE_BYTES)
    except OSError:
        return {}


def _mark_control(values: dict[str, Any], settings: Mapping[str, Any]) -> _Added:
    """Find the control tokens and mark those in `values` that nobody marked: else the text of one
    in a user's message would become it."""
    named = {_text_of(settings.get(f"{n}_token")) for n in ("bos", "eos", "pad", "unk")}
    texts: dict[int, str] = {}
    control: set[int] = set()
    for entry in values.get("added_tokens") or ():
        token, text = entry["id"], entry["content"]
        texts[token] = text
        if entry.get("special") or looks_special(text) or text in named:
            entry["special"] = True
            control.add(token)
    return _Added(texts, frozenset(control))


def _spelling(path: Path, values: Mapping[str, Any]) -> Spelling:
    kind = (values.get("model") or {}).get("type")
    if kind not in ("BPE", "Unigram", None):
        raise ModelFileError(
            f"{shown(path)} is a tokenizer of the kind '{shown(kind, 40)}', which edgespec does not"
            " know; use a GGUF file of this model."
        )
    parts = json.dumps([values.get("decoder"), values.get("pre_tokenizer")])
    return Letters() if '"ByteLevel"' in parts else Pieces()


def _loaded(path: Path, values: Mapping[str, Any]) -> Any:
    from tokenizers import Tokenizer

    with _faults_of(path):
        tokenizer = Tokenizer.from_str(json.dumps(values))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        read = tokenizer.encode(_ANY_TEXT, add_special_tokens=False).ids
    if not read:
        raise damaged(path, "it reads every text as nothing")
    return tokenizer


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    """Tell what the library raises: an Exception, or a panic, which is none."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        told = shown(" ".join(str(error).split()), 160)
        raise damaged(path, f"it is no tokenizer ({told})") from error


def _check_growth(path: Path, normalizer: Any) -> None:
    """Refuse rules that would make a text many times as long, one after the other."""
    growth = 1
    for rule in _rules(normalizer):
        pattern, text = rule.get("pattern"), rule.get("content")
        if isinstance(text, str) and isinstance(pattern, dict):
            # an expression may fit between any two letters as well
            growth *= max(1, len(text) + (pattern.get("String") in (None, "")))
    if growth > _MOST_GROWTH:
        raise damaged(path, f"its rules make a text {growth} times as long")


def _rules(normalizer: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """A normalizer, or the parts of one that is a sequence."""
    if not isinstance(normalizer, dict) or depth > _DEEPEST:
        return
    yield normalizer
    parts = normalizer.get("normalizers")
    for part in parts if isinstance(parts, list) else ():
        yield from _rules(part, depth + 1)


def _text_of(value: Any) -> str:
    """A token's text, which may be told as such or within an object."""
    found = value.get("content") if isinstance(value, dict) else value
    return found if isinstance(found, str) else ""


def _ids(values: Mapping[str, Any]) -> list[int]:
    value = values.get("eos_token_id")
    return [t for t in (value if isinstance(value, list) else [value]) if type(t) is int]


def _default_template(found: Any) -> str | None:
    """A template, or the one called "default" of several."""
    if isinstance(found, str):
        return found
    if not isinstance(found, list):
        return None
    named = {t.get("name"): t.get("template") for t in found if isinstance(t, dict)}
    chosen = named.get("default")
    return chosen if isinstance(chosen, str) else None
