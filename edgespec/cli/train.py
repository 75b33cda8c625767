"""`edgespec train`: makes a drafter of its own for a target, from the target's own answers."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

import click

from edgespec.cli.install import install_line
from edgespec.cli.options import Given, hide_all_but, shared_flags
from edgespec.cli.output import one_line, say, write, write_json
from edgespec.cli.table import aligned
from edgespec.cli.values import Real, Whole
from edgespec.errors import BackendMissing, BadInput

if TYPE_CHECKING:
    from edgespec.train.learning import Learned
    from edgespec.train.workshop import Wish, Workshop

_SELF = "self"
_USED = ("target", "backend", "threads", "gpu_layers", "cpu_moe", "seed")
_NEEDS = ("torch", "gguf", "safetensors")
_GIB = 1 << 30


@click.command()
@click.argument("pair", required=False)
@click.option(
    "--data",
    multiple=True,
    default=(_SELF,),
    show_default=True,
    metavar="self|FILE",
    help="What to learn from; may be repeated. self: questions that the target asks itself and"
    " answers. FILE: a text of yours, of which the target says at every place how it would go on.",
)
@click.option(
    "--out", default="", metavar="NAME", help="Name of the pair.  [default: PAIR-trained]"
)
@click.option(
    "--tokens",
    type=Whole(100, 10**9),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Tokens of answers to learn from, and at most of your texts.",
)
@click.option(
    "--time",
    "minutes",
    type=Real(0, 100_000, above=True),
    default=60.0,
    metavar="MIN",
    show_default=True,
    help="Minutes for everything; some less than half for answers and texts.",
)
@click.option(
    "--vocabulary",
    type=Whole(64, 1 << 20),
    default=12_288,
    metavar="K",
    show_default=True,
    help="Tokens that the drafter knows; more cost time a guess.",
)
@click.option(
    "--memory",
    type=Real(0, 100_000, above=True),
    metavar="GB",
    help="Most memory to take.  [default: half of what is free]",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda", "mps"]),
    default="auto",
    show_default=True,
    help="Where to train; answers come from the backend.",
)
@click.option("--fresh", is_flag=True, help="Begin anew with the answers that are there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@shared_flags
def train(given: Given, pair: str | None, data: tuple[str, ...], **wanted: Any) -> None:
    """Train a small drafter for PAIR's target, and install both as a pair of their own.

    The target answers questions of its own; from what it said, and nearly said, a model of some
    ten million parameters learns to guess. This can be broken off at any time: the same command
    goes on. From the same answers a drafter soon learns nothing more: more of them (--tokens) help
    more than more time with them, and the last lines of the output say which of both is short.
    """
    _check(given, pair)
    _must_have_torch()
    wish = _wish(given, pair, data, wanted)
    from edgespec.train.workshop import workshop

    with workshop(wish, lambda line: say(one_line(line))) as shop:
        if wanted["fresh"]:
            shop.forget_course()
        learned = _learned(shop, wanted["device"])
        shop.forget_course()
    if wanted["as_json"]:
        write_json(learned.as_json(), indent=2)
    else:
        _tell(learned, shop)


hide_all_but(_USED, train)


def _check(given: Given, pair: str | None) -> None:
    """Raises: BadInput for flags that would change nothing, and where no target is named."""
    for name in sorted(given.on_line - set(_USED)):
        flag = f"--{name.replace('_', '-')}"
        raise BadInput(f"train makes a drafter and asks it nothing; leave {flag} out.")
    if pair is None and "target" not in given.on_line:
        raise BadInput("Name the PAIR whose target gets a drafter, or a file with --target FILE.")


def _must_have_torch() -> None:
    """Raises: BackendMissing with the line that installs what is missing."""
    missing = [name for name in _NEEDS if find_spec(name) is None]
    if missing:
        raise BackendMissing(
            f"Training needs {' and '.join(missing)}. Install with: {install_line('train')}"
        )


def _wish(given: Given, pair: str | None, data: tuple[str, ...], wanted: Mapping[str, Any]) -> Wish:
    from edgespec.api import LoadOptions
    from edgespec.models.available import available_memory
    from edgespec.models.pairs import resolve
    from edgespec.models.trained import check_name, name_from
    from edgespec.text.documents import read_document
    from edgespec.train.workshop import Wish

    name, target, _ = given.which(pair)
    chosen = resolve(name, target, "none")
    out = wanted["out"] or name_from(chosen.name)
    check_name(out, chosen.target)
    options: LoadOptions = given.load_options()
    return Wish(
        out,
        chosen,
        _SELF in data,
        tuple(read_document(file) for file in data if file != _SELF),
        wanted["tokens"],
        wanted["minutes"] * 60.0,
        wanted["vocabulary"],
        int((wanted["memory"] or available_memory() / 2 / _GIB) * _GIB),
        given.values["seed"] or 0,
        options,
    )


def _learned(shop: Workshop, device: str) -> Learned:
    begun = shop.gathered()
    from edgespec.train.learning import device_here, learn

    with _asked_to_stop() as stopped:
        return learn(shop, begun, device_here(device), stopped)


@contextmanager
def _asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl+C was pressed in here; a step of the training is not broken off by it."""
    pressed: list[int] = []
    if current_thread() is not main_thread():
        yield lambda: False  # only the main thread may say what signals do
        return
    before = signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _tell(learned: Learned, shop: Workshop) -> None:
    from edgespec.models.sizes import size_text
    from edgespec.train.report import table

    data = learned.data
    write(
        f"Trained on {data.tokens - data.held:,} tokens of answers for"
        f" {learned.place.seconds / 60:.0f} minutes: {learned.parameters / 1e6:.1f} million"
        f" parameters, {learned.known:,} tokens known.\n"
    )
    if learned.judged:
        write(
            f"Guesses accepted on {learned.judged_tokens:,} tokens of answers that were held out:\n"
        )
        write("\n".join(aligned(table(learned.judged))) + "\n")
    write(f"{learned.advice}\n")
    kept = sum(path.stat().st_size for path in shop.answers.shards())
    if kept:
        write(
            f"The answers stay for another training: {size_text(kept)} in"
            f" {one_line(str(shop.answers.folder))}.\n"
        )
    write(f"'edgespec chat {learned.name}' guesses with it; 'edgespec rm' deletes it.\n")
