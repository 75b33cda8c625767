"""What the command line of a benchmark asks for, checked before anything is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgespec.cli.bench_places import plot_place, report_place
from edgespec.cli.options import Given
from edgespec.cli.output import note
from edgespec.cli.shell import joined
from edgespec.errors import BadInput
from edgespec.models.shown import shown

if TYPE_CHECKING:
    from edgespec.bench.arms import Peer
    from edgespec.bench.prompts import Prompt

USUAL_PER_CATEGORY = 3
_NOT_HERE = {  # shared flags that arms and tokens take the place of
    "proposer": "--arms",
    "draft_tokens": "--arms",
    "always_draft": "--arms",
    "max_tokens": "--tokens",
}
# the name and password of an address, which may stand behind a flag and need no scheme
_SIGNED_IN = re.compile(r"(?P<before>^(?:--peer=)?|://)[^/?#\s@]*(?::[^/?#\s@]*)?@(?=\S)")
_NEVER_EMPTY = ("arms", "yardstick", "categories", "prompts", "report", "plot")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be measured, and where it is written to."""

    prompts: tuple[Prompt, ...]
    arms: tuple[str, ...]
    yardstick: str
    runs: int
    tokens: int
    quick: bool
    explore: bool
    peers: tuple[Peer, ...]
    report: Path | None
    plot: Path | None


def wanted(given: Given, options: Mapping[str, Any]) -> Wanted:
    """Raises: BadInput, NotFound, EdgespecError for what cannot work."""
    _check_flags(given, options)
    return Wanted(
        arms=_arms(options),
        prompts=_prompts(options),
        yardstick=options["yardstick"],
        runs=options["runs"],
        tokens=options["tokens"],
        quick=options["quick"],
        explore=options["explore"],
        report=report_place(options["report"]),
        plot=plot_place(options["plot"]),
        peers=_peers(options["peers"]),
    )


def without_passwords(words: Sequence[str]) -> str:
    """A command line for a report: who signs in where is nobody else's business."""
    return joined([_SIGNED_IN.sub(r"\g<before>", word) for word in words])


def _check_flags(given: Given, options: Mapping[str, Any]) -> None:
    for flag, instead in _NOT_HERE.items():
        if flag in given.on_line:
            raise BadInput(f"bench has no --{flag.replace('_', '-')}; say it with {instead}.")
    for name in _NEVER_EMPTY:
        if options[name] is not None and not options[name].strip(" ,"):
            raise BadInput(f"--{name} is empty; give it a value or leave it out.")
    if options["quick"] and (options["arms"] or options["peers"]):
        raise BadInput("--quick chooses its arms itself; leave --arms and --peer out.")
    if options["explore"] and (options["arms"] or options["quick"]):
        raise BadInput("--explore chooses its arms itself; leave --arms and --quick out.")
    if options["explore"] and given.values["temperature"]:
        raise BadInput("--explore replays greedy answers; leave --temperature out.")


def _arms(options: Mapping[str, Any]) -> tuple[str, ...]:
    from edgespec.bench.arms import PLAIN_LOOP, speculation

    arms, yardstick = _listed(options["arms"]), options["yardstick"]
    for name in (*arms, yardstick):
        if name != PLAIN_LOOP and not (name is yardstick and name.startswith("peer:")):
            speculation(name)
    for number, name in enumerate(arms):
        if name in arms[:number]:
            raise BadInput(f"--arms names {name} twice; leave one of them out.")
    return arms


def _prompts(options: Mapping[str, Any]) -> tuple[Prompt, ...]:
    """The prompts that are asked for, so many of each category."""
    from edgespec.bench.prompts import read, shipped

    categories, file = _listed(options["categories"]), options["prompts"]
    found = read(Path(file), note) if file else shipped(categories)
    if file and categories:
        found = _of(found, categories, file)
    most = options["per_category"]
    if most is None:
        most = "all" if file or options["quick"] else USUAL_PER_CATEGORY
    if most == "all":
        return found
    seen: dict[str, int] = {}
    kept = []
    for prompt in found:
        seen[prompt.category] = seen.get(prompt.category, 0) + 1
        if seen[prompt.category] <= most:
            kept.append(prompt)
    return tuple(kept)


def _of(found: Sequence[Prompt], categories: Sequence[str], file: str) -> tuple[Prompt, ...]:
    known = dict.fromkeys(prompt.category for prompt in found)
    if unknown := [shown(name, 60) for name in categories if name not in known]:
        there = ", ".join(list(known)[:20])
        raise BadInput(f"{shown(file)} has no prompt of {', '.join(unknown)}; it has: {there}.")
    return tuple(prompt for prompt in found if prompt.category in categories)


def _peers(urls: tuple[str, ...]) -> tuple[Peer, ...]:
    if not urls:
        return ()
    from edgespec.bench.peer import Peer

    found: dict[str, Peer] = {}
    for url in urls:
        peer = Peer(url)
        if peer.name in found:
            raise BadInput(f"--peer names {peer.name} twice; leave one of them out.")
        found[peer.name] = peer
    return tuple(found.values())


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(name for part in (text or "").split(",") if (name := part.strip()))
