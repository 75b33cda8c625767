"""`edgespec history`: the conversations that the chat has kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgespec.cli.asking import ask_to_delete
from edgespec.cli.leaving import verbose_flag
from edgespec.cli.output import note, one_line, write, write_json
from edgespec.cli.table import aligned, flowing
from edgespec.cli.values import Whole
from edgespec.errors import BadInput, NotFound

if TYPE_CHECKING:
    from edgespec.history import History, Summary

_LISTED = 20
_json_flag = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_limit_flag = click.option(
    "--limit", type=Whole(1, 10**9), default=_LISTED, show_default=True, metavar="N",
    help="How many, the last changed first.",
)  # fmt: skip
_number = click.argument("number", type=Whole(1, 2**63 - 1), metavar="NUMBER")


@click.group()
def history() -> None:
    """Find, show, export, rename and delete the conversations that the chat has kept."""


@history.command("list")
@_limit_flag
@_json_flag
@verbose_flag
def list_(limit: int, as_json: bool) -> None:
    """List the conversations."""
    with _history() as kept:
        _tell(kept.recent(limit), "No conversation was kept yet.", as_json=as_json)


@history.command()
@click.argument("text", nargs=-1, required=True)
@_limit_flag
@_json_flag
@verbose_flag
def search(text: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find conversations where one message, or the title, holds every word of TEXT."""
    with _history() as kept:
        found = kept.search(" ".join(text), limit)
        _tell(found, "No conversation holds all of these words.", as_json=as_json)


@history.command()
@_number
@_json_flag
@verbose_flag
def show(number: int, as_json: bool) -> None:
    """Print a conversation as Markdown, or all its branches with --json."""
    with _history() as kept:
        if as_json:
            write_json(kept.as_json(number), indent=2)
        else:
            write(kept.markdown(number))


@history.command()
@_number
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@verbose_flag
def export(number: int, file: Path, force: bool) -> None:
    """Write a conversation to FILE: what ends in .md as Markdown, in .json with all branches."""
    with _history() as kept:
        try:
            kept.export(number, file, replaces=force)
        except FileExistsError:
            told = f"{one_line(str(file))} is there already; --force replaces it."
            raise BadInput(told) from None
    write(f"Conversation {number} is now in {one_line(str(file))}.\n")


@history.command()
@_number
@click.argument("title")
@verbose_flag
def rename(number: int, title: str) -> None:
    """Give a conversation another TITLE; an empty one gives back its first line."""
    with _history() as kept:
        conversation = kept.load(number)
        told: list[str] = []
        kept.listen(told.append)
        conversation.rename(title)
    if told:
        raise BadInput(told[0])
    write(f"Conversation {number} is now called {_titled(conversation.title)}.\n")


@history.command()
@click.argument("numbers", type=Whole(1, 2**63 - 1), nargs=-1, metavar="[NUMBER]...")
@click.option("--all", "every", is_flag=True, help="Delete every conversation.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_json_flag
@verbose_flag
def rm(numbers: tuple[int, ...], every: bool, yes: bool, as_json: bool) -> None:
    """Delete conversations for good."""
    if bool(numbers) == every:
        raise BadInput("Give the numbers of conversations, or --all.")
    with _history() as kept:
        doomed = _doomed(kept, numbers)
        if not yes and doomed:
            ask_to_delete(_question(doomed))
        for summary in doomed:
            kept.delete(summary.id)
    if as_json:
        write_json({"deleted": [summary.id for summary in doomed]}, indent=2)
    else:
        write(f"Deleted {_counted(len(doomed), 'conversation')}.\n")


@contextmanager
def _history() -> Iterator[History]:
    """The user's history, and its notes; nothing is made where there is none."""
    from edgespec.history import History

    kept = History.existing()
    try:
        for line in kept.notes:
            note(line)
        yield kept
    finally:
        kept.close()


def _tell(summaries: Sequence[Summary], none: str, *, as_json: bool) -> None:
    if as_json:
        write_json({"conversations": [_as_dict(summary) for summary in summaries]}, indent=2)
        return
    if not summaries:
        write("\n".join(flowing(none)) + "\n")
        return
    rows = [("NUMBER", "CHANGED", "MESSAGES", "TITLE")]
    rows += [(str(s.id), _local(s.when), str(s.messages), _titled(s.title)) for s in summaries]
    write("\n".join(aligned(rows)) + "\n")


def _as_dict(summary: Summary) -> dict[str, Any]:
    from edgespec.history.export import moment

    return {
        "number": summary.id,
        "title": summary.title,
        "changed": moment(summary.when),
        "messages": summary.messages,
        "snippet": summary.snippet,
    }


def _doomed(kept: History, numbers: Sequence[int]) -> list[Summary]:
    """Those that are to go, all of them where no number is given. Raises: NotFound."""
    by_number = {summary.id: summary for summary in kept.recent(-1)}
    for number in numbers:
        if number not in by_number:
            raise NotFound(
                f"There is no conversation {number}, so nothing was deleted; 'edgespec history"
                " list' shows them."
            )
    return [by_number[number] for number in dict.fromkeys(numbers or by_number)]


def _question(doomed: Sequence[Summary]) -> str:
    messages = _counted(sum(summary.messages for summary in doomed), "message")
    if len(doomed) == 1:
        return f"Delete {_titled(doomed[0].title)} with {messages} for good?"
    return f"Delete {_counted(len(doomed), 'conversation')} with {messages} for good?"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _titled(title: str) -> str:
    return one_line(title) or "(no title)"


def _local(seconds: float) -> str:
    """Day and minute, by the clock of this machine."""
    try:
        return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "(no date)"
