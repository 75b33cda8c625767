"""Flags that are right alone and cancel one another together."""

from __future__ import annotations

from collections.abc import Iterator

import click

from edgespec.cli.options import Given


def check_guessing(given: Given, *, prediction: bool = False) -> None:
    """For a command in which nothing can be set later. prediction: whether one is given.

    Raises: click.UsageError where the command line says how to guess, and not to guess.
    """
    stops = next(_says_not_to(given), None)
    how = [*_says_how(given), *(["--prediction"] if prediction else [])]
    if stops and how:
        raise click.UsageError(
            f"{how[0]} says how to guess, but with {stops} nothing is guessed; leave one out"
        )


def _says_not_to(given: Given) -> Iterator[str]:
    if "proposer" in given.on_line and given.values["proposer"] == "none":
        yield "--proposer none"
    if "draft_tokens" in given.on_line and given.values["draft_tokens"] == 0:
        yield "--draft-tokens 0"


def _says_how(given: Given) -> Iterator[str]:
    """A draft model's file is not among them: it says what to load, not how to use it."""
    values, on_line = given.values, given.on_line
    if "proposer" in on_line and values["proposer"] not in ("none", "auto"):
        yield f"--proposer {values['proposer']}"
    if "draft_tokens" in on_line and values["draft_tokens"] not in (0, "auto"):
        yield f"--draft-tokens {values['draft_tokens']}"
    for name in ("always_draft", "remember"):
        if name in on_line and values[name]:
            yield f"--{name.replace('_', '-')}"
