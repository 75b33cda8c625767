"""From a target to a drafter of its own: gather answers, learn from them, judge, install."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from edgespec import backends
from edgespec.backends import LoadedModel, Placement
from edgespec.conversation import PromptEncoder
from edgespec.decoding.draft import Tokens
from edgespec.demo import best_format
from edgespec.errors import BadInput, EdgespecError, OutOfMemory
from edgespec.models.identity import fingerprint
from edgespec.models.model_header import ModelHeader, header_of
from edgespec.models.pairs import Pair
from edgespec.models.shown import shown
from edgespec.models.store import cache_dir
from edgespec.options import LoadOptions
from edgespec.text.documents import Document
from edgespec.text.tokenizer import Tokenizer
from edgespec.train.batch import Batch, OffersBatches
from edgespec.train.begun import Begun, Terms
from edgespec.train.gathering import Enough, Gathering, slots_within
from edgespec.train.harvest import Harvest, frames_of, room_for, whose
from edgespec.train.reading import passages, readings, unread
from edgespec.train.records import CONTEXT, Record, Shelf, read_shard
from edgespec.train.vocabulary import most_common

GATHERING_SHARE = 0.45  # of the time
TEXTS_SHARE = 0.5  # of what is left of that, where answers are wanted too
JUDGING_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for.

    pair: whose target gets a drafter. own: whether the target's own answers are data; texts: what
    else is. tokens: of answers. seconds: for everything. most_ids: of the drafter.
    """

    name: str
    pair: Pair
    own: bool
    texts: tuple[Document, ...]
    tokens: int
    seconds: float
    most_ids: int
    memory_bytes: int
    seed: int
    options: LoadOptions

    @property
    def target(self) -> Path:
        return self.pair.target

    @property
    def terms(self) -> Terms:
        names = sorted(text.name for text in self.texts)
        digest = hashlib.blake2b(digest_size=16)
        for text in sorted(text.text for text in self.texts):
            digest.update(hashlib.blake2b(text.encode()).digest())
        data = (*(["self"] if self.own else []), *names)
        return Terms(self.most_ids, self.seed, data, digest.hexdigest())


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where the answers of one target lie, and what was begun with them.

    tell: gets a line now and then.
    """

    folder: Path
    wish: Wish
    tell: Callable[[str], None]

    @property
    def answers(self) -> Shelf:
        """Of the target, for every training."""
        return Shelf(self.folder / "answers")

    @property
    def texts(self) -> Shelf:
        """Of the user, for this training alone."""
        return Shelf(self.course / "texts")

    @property
    def course(self) -> Path:
        return self.folder / "courses" / self.wish.name

    @property
    def checkpoint(self) -> Path:
        return self.course / "training.pt"

    def gathered(self) -> Begun:
        """Have answers and a vocabulary for this training, new ones as far as they lack.

        Raises: BadInput, OutOfMemory, ModelFileError, BackendMissing.
        """
        wish, begun = self.wish, Begun.load(self.course)
        if begun is not None:
            begun.terms.check(wish.terms, wish.name)
            if self._complete(begun):
                return begun
        _must_answer(header_of(wish.target))
        # the demo answers faster in another format
        answering = best_format(wish.pair, wish.options, self.tell).target
        header = header_of(answering)
        with _loaded(header, wish, self.tell) as model:
            encoder = PromptEncoder(model.tokenizer)
            if begun is None:
                always = _always(encoder)
                begun = Begun(model.tokenizer.vocab, always, wish.terms)
            self._gather(begun, model, header)
        self._settle(begun)
        return begun

    def forget_course(self) -> None:
        """Drop what was begun; the answers stay for the next time."""
        shutil.rmtree(self.course, ignore_errors=True)

    def shards(self, begun: Begun) -> tuple[Path, ...]:
        """What is learned from. Raises: BadInput where some of it is gone."""
        paths = [self.answers.folder / name for name in begun.answers]
        paths += [self.texts.folder / name for name in begun.texts]
        for path in paths:
            if not path.is_file():
                raise BadInput(f"{shown(path)} is gone; --fresh begins anew with what is there.")
        return tuple(paths)

    def records(self, begun: Begun) -> Iterator[Record]:
        """Raises: BadInput."""
        for path in self.shards(begun):
            yield from read_shard(path, begun.vocab)

    def _complete(self, begun: Begun) -> bool:
        """Whether there is nothing to gather. Raises: BadInput where it is too late for more."""
        if begun.ids is None:
            return False
        if begun.tokens == self.wish.tokens:
            return True
        if self.checkpoint.is_file():
            # its vocabulary is that of the answers that there were
            raise BadInput(
                f"'{self.wish.name}' has begun to learn from the answers of --tokens"
                f" {begun.tokens}; go on with that, or begin anew with --fresh: the answers stay."
            )
        return False

    def _gather(self, begun: Begun, model: LoadedModel, header: ModelHeader) -> None:
        wish = self.wish

        def spent(seconds: float) -> None:
            begun.gathered_s += seconds
            begun.save(self.course)

        def left() -> float:
            return wish.seconds * GATHERING_SHARE - begun.gathered_s

        lacking = wish.own and self.answers.census().tokens < wish.tokens
        if not lacking and not wish.texts:
            return
        batch = self._batch(model, header)
        # first of all: it says where no answer would fit
        harvest = self._harvest(batch, PromptEncoder(model.tokenizer)) if lacking else None
        begun.save(self.course)  # now that it can be done, and before anything comes of it
        pieces = self._pieces(model.tokenizer, batch.context)
        if pieces:
            seconds = left() * (TEXTS_SHARE if lacking else 1.0)
            self._read(batch, pieces, Gathering(self.texts, self.tell, spent, "texts"), seconds)
        if harvest is not None:
            for slot in range(batch.slots):
                batch.forget(slot)
            answering = Gathering(self.answers, self.tell, spent)
            answering.gather(harvest.passes(), Enough(wish.tokens, left()))
            there = self.answers.census().tokens
            if there < wish.tokens:
                self.tell(
                    f"the time for answers is over, with {there:,} of {wish.tokens:,} tokens;"
                    " --time gives more"
                )

    def _pieces(self, tokenizer: Tokenizer, most: int) -> list[Tokens]:
        """The user's texts in pieces of at most `most` tokens."""
        pieces: list[Tokens] = []
        for text in self.wish.texts:
            found = passages(text.text, tokenizer, most)
            if not found:
                self.tell(f"{text.name} is too short to learn from")
            pieces += found
        return pieces

    def _read(
        self, batch: Batch, pieces: list[Tokens], gathering: Gathering, seconds: float
    ) -> None:
        """Have the pieces scored that were not so before; where some are left out, tell how many
        were read."""
        most = min(self.wish.tokens, sum(len(piece) - 1 for piece in pieces))
        gathering.gather(readings(batch, self._unread(pieces)), Enough(most, seconds))
        lacking = len(self._unread(pieces))
        if lacking:
            full = self.texts.census().tokens >= self.wish.tokens
            self.tell(
                f"{len(pieces) - lacking:,} of {len(pieces):,} pieces of your texts were read;"
                f" {'--tokens' if full else '--time'} gives more"
            )

    def _unread(self, pieces: list[Tokens]) -> list[Tokens]:
        return unread(pieces, {record.ids.tobytes() for record in self.texts})

    def _harvest(self, batch: Batch, encoder: PromptEncoder) -> Harvest:
        """Raises: BadInput where no answer would fit."""
        # other answers than those of an earlier start
        seed = self.wish.seed * 1_000_003 + len(self.answers.shards())
        harvest = Harvest(batch, encoder, seed)
        context = batch.context
        if context < room_for(frames_of(encoder)):
            self.tell(f"long answers are cut short: {whose(context)} context is {context} tokens")
        return harvest

    def _batch(self, model: LoadedModel, header: ModelHeader) -> Batch:
        wish = self.wish
        if not isinstance(model, OffersBatches):
            raise BadInput(
                "Only llama.cpp writes many answers at a time so far; leave --backend out, or give"
                " --backend llamacpp."
            )
        room = room_for(frames_of(PromptEncoder(model.tokenizer)))
        room = min(room, header.context_length or room, CONTEXT)
        slots = slots_within(header.needs(), wish.memory_bytes, room)
        if not slots:
            raise OutOfMemory(
                f"{shown(header.path.name)} alone takes more than the"
                f" {wish.memory_bytes / 2**30:.1f} GiB of --memory; give more, or train for a"
                " smaller copy of it."
            )
        return model.batch(slots, room, wish.options.threads)

    def _settle(self, begun: Begun) -> None:
        if self.wish.own:
            begun.answers = [path.name for path in self.answers.shards()]
        begun.texts = [path.name for path in self.texts.shards()]
        begun.tokens = self.wish.tokens
        if not self.shards(begun):
            raise BadInput(
                "There is nothing to learn from: no answer and no text of some length; give --data"
                " self, longer files, or more --time."
            )
        learned = (record for record in self.records(begun) if not record.held)
        vocabulary = most_common(learned, begun.terms.most_ids, begun.vocab, begun.always)
        begun.ids = vocabulary.ids.tolist()
        begun.save(self.course)


@contextlib.contextmanager
def workshop(wish: Wish, tell: Callable[[str], None]) -> Iterator[Workshop]:
    """The place for this training, for one process at a time. Raises: EdgespecError."""
    folder = cache_dir() / "training" / fingerprint(wish.target)
    course = folder / "courses" / wish.name
    with contextlib.ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(FileLock(folder / "lock", timeout=0))
            _sweep([folder / "answers", course, course / "texts"])
        except Timeout as error:
            raise EdgespecError(
                f"Another edgespec is training for {shown(wish.target.name)}; let it finish, or"
                " stop it and run this again."
            ) from error
        except OSError as error:
            reason = shown(error.strerror or error)
            raise EdgespecError(
                f"{shown(folder)} cannot be used ({reason}); make room, check its permissions, or"
                " have another folder with EDGESPEC_CACHE_DIR."
            ) from error
        yield Workshop(folder, wish, tell)


def _sweep(folders: Iterable[Path]) -> None:
    """Remove what a process that was killed had half written."""
    for folder in folders:
        for path in folder.glob(".*"):
            path.unlink(missing_ok=True)


def _must_answer(header: ModelHeader) -> None:
    """Raises: BadInput for a file that cannot write answers."""
    name = shown(header.path.name)
    if header.id_table is not None:
        raise BadInput(f"{name} is a drafter itself; name a model that answers.")
    if header.format != "gguf":
        raise BadInput(
            f"{name} is no GGUF file, and answers can only be gathered from such so"
            " far; name the target's with --target. MLX then guesses with the drafter too."
        )
    if not header.tokens:
        raise BadInput(f"{name} carries no vocabulary; train for a file that has one.")


@contextlib.contextmanager
def _loaded(header: ModelHeader, wish: Wish, tell: Callable[[str], None]) -> Iterator[LoadedModel]:
    named = wish.options.backend
    # what writes many answers at a time
    backend = backends.find("llamacpp" if named == "auto" else named)
    file = backend.prepare(header.path, tell)
    tell(f"loading {header.path.name}")
    model = backend.load(file, Placement(wish.options.gpu_layers, wish.options.cpu_moe))
    try:
        yield model
    finally:
        model.close()


def _always(encoder: PromptEncoder) -> list[int]:
    """What every conversation holds: the template's tokens, and those that end an answer."""
    ids = set(encoder.tokenizer.end_tokens)
    for frame in frames_of(encoder):
        ids |= {*frame.before, *frame.behind}
    return sorted(ids)
