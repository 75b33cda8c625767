"""`edgespec run`: one answer."""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from edgespec.cli.answer import Answer, until_interrupted
from edgespec.cli.documents import checked_prompt, read_stdin
from edgespec.cli.opening import open_model, tell_about_gpu
from edgespec.cli.options import Given, shared_flags
from edgespec.cli.output import Progress, ReadingLine, note, one_line, say
from edgespec.cli.printers import EventsPrinter, JsonPrinter, Printer, TextPrinter
from edgespec.cli.shell import quoted
from edgespec.cli.summary import summary
from edgespec.cli.together import check_guessing
from edgespec.decoding.events import PromptRead
from edgespec.errors import BadInput, Cancelled
from edgespec.text.documents import read_document, with_documents

if TYPE_CHECKING:
    from edgespec.api import AnswerOptions, Message, Model


@dataclass(frozen=True, slots=True)
class Question:
    """What is sent to the model, and the seed of its answer."""

    prompt: str | list[Message]
    options: AnswerOptions
    seed: int


@click.command()
@click.argument("words", nargs=-1, metavar="[PAIR] PROMPT")
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="Put this text file before the prompt; may be repeated.",
)
@click.option(
    "--prediction",
    metavar="FILE",
    help="Text that the answer may largely repeat; a source of guesses only.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object at the end.")
@click.option("--events", "as_events", is_flag=True, help="Print one JSON object per event.")
@shared_flags
def run(given: Given, words: tuple[str, ...], **wanted: Any) -> None:
    """Answer PROMPT once; - reads it from standard input.

    PAIR is `demo`, a pair that was pulled, user/repo:quant, or a folder with a model and its draft
    model. Without one, and without --target, the pair that was used last answers, or the demo.
    """
    if wanted["as_json"] and wanted["as_events"]:
        raise click.UsageError("--json and --events exclude each other; give one")
    check_guessing(given, prediction=bool(wanted["prediction"]))
    pair, prompt = _pair_and_prompt(words)
    names = given.which(pair)  # a model that cannot be chosen is told before files are read
    if pair is None and "target" not in given.on_line:
        _tell_if_a_pair(prompt)
    asked = checked_prompt(read_stdin() if prompt == "-" else prompt)
    text = with_documents(asked, [read_document(name) for name in wanted["files"]])
    prediction = read_document(wanted["prediction"]).text if wanted["prediction"] else ""
    with open_model(given, names, Progress(verbose=given.verbose)) as model:
        for line in model.info.notes:
            note(line)
        tell_about_gpu(given)
        answer = _ask(model, _question(given, text, prediction), _printer(wanted))
    if answer.cancelled:
        raise Cancelled("stopped before the answer was complete")


def _ask(model: Model, question: Question, printer: Printer) -> Answer:
    answer, reading = Answer(model.plain_tokens_per_second), ReadingLine()
    try:
        stream = model.stream(question.prompt, question.options)
        for event in until_interrupted(stream, model.cancel):
            answer.take(event)
            if isinstance(event, PromptRead):
                reading.show(event.read, event.total)
            else:
                reading.close()
            printer.show(event)
        printer.finish(answer, question.seed, model.info)
    finally:
        reading.close()
        printer.close()
    for fault in answer.faults:
        note(fault)
    if sys.stderr.isatty():
        say(one_line(summary(answer)))
    return answer


def _pair_and_prompt(words: tuple[str, ...]) -> tuple[str | None, str]:
    match words:
        case (prompt,):
            return None, prompt
        case (pair, prompt):
            return pair, prompt
        case ():
            raise BadInput("The PROMPT is missing; give it in quotes, or - to read standard input.")
        case _:
            raise BadInput(
                f"run takes a PAIR and one PROMPT but got {len(words)} words; put the prompt in"
                " quotes."
            )


def _tell_if_a_pair(prompt: str) -> None:
    """One word is a prompt; where it is the name of a pair, that was hardly meant."""
    from edgespec.models.catalogue import catalogue
    from edgespec.models.installed import find_installed
    from edgespec.models.pairs import DEMO

    known = prompt.casefold() == DEMO or catalogue().find(prompt) or find_installed(prompt)
    if known:
        name = quoted(one_line(prompt))
        note(
            f"{name} is taken for the prompt; the pair of that name answers with: edgespec run"
            f" {name} PROMPT"
        )


def _question(given: Given, text: str, prediction: str) -> Question:
    from edgespec.api import Message

    options = given.answer_options(prediction)
    # drawn here, so that the answer can be asked for again
    seed = int(options.overrides.get("seed", secrets.randbits(32)))
    options = replace(options, overrides={**options.overrides, "seed": seed})
    if not given.system:
        return Question(text, options, seed)
    return Question([Message("system", given.system), Message("user", text)], options, seed)


def _printer(wanted: dict[str, Any]) -> Printer:
    if wanted["as_json"]:
        return JsonPrinter()
    return EventsPrinter() if wanted["as_events"] else TextPrinter()
