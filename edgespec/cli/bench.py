"""`edgespec bench`: how fast a pair is here, plainly and with guesses."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from edgespec.cli.bench_places import write_report
from edgespec.cli.bench_stopping import stopped_like_ctrl_c
from edgespec.cli.bench_wanted import USUAL_PER_CATEGORY, Wanted, without_passwords
from edgespec.cli.bench_wanted import wanted as as_wanted
from edgespec.cli.leaving import take_no_more_interrupts
from edgespec.cli.machine import this_machine
from edgespec.cli.opening import tell_about_gpu
from edgespec.cli.options import Given, Names, shared_flags
from edgespec.cli.output import Progress, note, say, write, write_json
from edgespec.cli.values import Whole
from edgespec.errors import BadInput, Cancelled, EdgespecError
from edgespec.models.shown import shown

if TYPE_CHECKING:
    from edgespec.api import AnswerOptions, Model
    from edgespec.bench.arms import Setup
    from edgespec.bench.predicting import Predicted
    from edgespec.bench.prompts import Prompt
    from edgespec.bench.recorded import Recorded
    from edgespec.bench.report import Report
    from edgespec.bench.runner import Outcome, Plan


@click.command()
@click.argument("pair", required=False)
@click.option("--arms", metavar="A,B,…", help="What to compare, such as none,draft:4,auto.")
@click.option(
    "--yardstick",
    default="none",
    show_default=True,
    metavar="ARM",
    help="The arm that speed-ups are ratios to.",
)
@click.option(
    "--runs",
    type=Whole(1, 1000),
    default=3,
    show_default=True,
    metavar="N",
    help="How often each arm answers each prompt.",
)
@click.option(
    "--tokens",
    type=Whole(2, 100_000),
    default=128,
    show_default=True,
    metavar="N",
    help="Longest answer.",
)
@click.option("--categories", metavar="A,B,…", help="Only prompts of these categories.")
@click.option(
    "--per-category",
    type=Whole(1, 100_000, word="all"),
    metavar="N|all",
    help=f"Prompts of each category.  [default: {USUAL_PER_CATEGORY}; all of a FILE]",
)
@click.option("--prompts", metavar="FILE", help="Prompts of your own, one JSON object a line.")
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="URL",
    help="Another program that answers on this machine; may be repeated.",
)
@click.option("--quick", is_flag=True, help="Under two minutes; ends with what to use.")
@click.option(
    "--explore",
    is_flag=True,
    help="First replay recorded answers with auto, n-gram and draft model, also at fixed lengths;"
    " then measure only what wins there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--report", metavar="FILE", help="Write everything as Markdown too.")
@click.option("--plot", metavar="DIR", help="Draw pictures into this folder too.")
@shared_flags
def bench(given: Given, pair: str | None, **options: Any) -> None:
    """Measure PAIR on this machine: plain decoding and ways of guessing.

    Answers are greedy unless --temperature says otherwise. Arms: plain-loop (the library's own
    loop), none, and a proposer with or without a length: auto, ngram:8, draft:4.
    """
    names = given.which(pair)  # a model that cannot be chosen is told before files are read
    wanted = as_wanted(given, options)
    with stopped_like_ctrl_c():
        _bench(given, names, wanted, as_json=options["as_json"])


def _bench(given: Given, names: Names, wanted: Wanted, *, as_json: bool) -> None:
    from edgespec.api import Speculation, load

    name, target, draft = names
    with load(
        name,
        target=target,
        draft=draft,
        options=given.load_options(),
        speculation=Speculation(rule=given.values["rule"]),
        report=Progress(verbose=given.verbose),
    ) as model:
        for line in model.info.notes:
            note(line)
        tell_about_gpu(given)
        predicted = None
        if wanted.explore:
            predicted = _predicted(model, given, wanted, told=not as_json)
            wanted = replace(wanted, arms=predicted.arms)
        report = _measured(model, given, wanted)
        if predicted is not None:
            report = replace(report, extra=predicted.extra)
        advice = _advice(model, report) if wanted.quick else ""
    _show(report, advice, as_json=as_json)
    if wanted.report is not None:
        write_report(wanted.report, report.markdown())
    if wanted.plot is not None:
        from edgespec.bench.plots import draw

        for path in draw(report, wanted.plot):
            say(f"wrote {shown(path)}")
    if report.outcome.interrupted:
        raise Cancelled("stopped; what was measured until then is above")
    if wanted.peers and not report.outcome.beside_yardstick():
        raise EdgespecError("No peer could be measured, and nothing else was asked for.")


def _measured(model: Model, given: Given, wanted: Wanted) -> Report:
    from edgespec.backends import SessionOptions
    from edgespec.bench import surroundings as around
    from edgespec.bench.arms import Setup
    from edgespec.bench.report import Costs, Report
    from edgespec.bench.surroundings import Host

    machine = this_machine()
    host = Host(machine.system, machine.cpu, machine.cores, machine.memory_bytes)
    say_step = Progress(verbose=given.verbose)
    say_step("hashing the model files; once, some seconds for each GiB")
    here = around.surroundings(
        model,
        host,
        given.values["threads"],
        without_passwords(["edgespec", *sys.argv[1:]]),
        # a hash that would have to be made now has no place in two minutes
        hashes=around.remembered_sha256 if wanted.quick else around.sha256,
    )
    load = given.load_options()
    session = SessionOptions(model.info.context, load.threads, load.kv_type, load.flash_attention)
    setup = Setup(_answer_options(given), session, given.system, given.values["rule"])
    cost = model.loaded.target.cost
    before = cost.measured()
    outcome, notes = _run(model, setup, wanted)
    costs = Costs(before, cost.measured(), cost.context)
    return Report(outcome, here, costs, around.peak_memory_bytes(), tuple(notes))


def _predicted(model: Model, given: Given, wanted: Wanted, *, told: bool) -> Predicted:
    """What replaying says, also on stdout where a person reads."""
    from edgespec.bench.predicting import predict
    from edgespec.bench.recording import record
    from edgespec.cli.bench_screen import drawn

    plan, _ = _plan(model, wanted)
    tell = Progress(verbose=given.verbose)
    records: list[Recorded] = []
    for number, prompt in enumerate(plan.prompts, 1):
        tell(f"recording the answer to prompt {number} of {len(plan.prompts)}")
        records += record(model, prompt, plan.tokens, given.system)
    predicted = predict(model, records, given.load_options())
    if told:
        write(drawn([predicted.table()]))
    return predicted


def _run(model: Model, setup: Setup, wanted: Wanted) -> tuple[Outcome, list[str]]:
    from edgespec.bench.arms import open_arms, usual_arms
    from edgespec.bench.conversing import Margins
    from edgespec.bench.runner import Helpers, Runner
    from edgespec.bench.surroundings import load_average
    from edgespec.cli.bench_screen import HowFar

    plan, notes = _plan(model, wanted)
    names = wanted.arms or usual_arms(model)
    if wanted.quick:
        plan, names = _quick(model, plan)
    if plan.yardstick not in names and not plan.yardstick.startswith("peer:"):
        names = (plan.yardstick, *names)
    arms, left_out = open_arms(names, model, setup, wanted.peers)
    if plan.yardstick not in [arm.name for arm in arms]:
        raise BadInput(f"The yardstick '{plan.yardstick}' is not there to measure; name another.")
    greedy = not setup.options.overrides.get("temperature")
    # a margin is a prompt read once more, for which two minutes have no room
    margins = Margins(model, setup.system, setup.options) if greedy and not wanted.quick else None
    with HowFar() as how_far:
        helpers = Helpers(how_far, margins, load_average)
        outcome = Runner(arms, plan, helpers).run()
        if outcome.interrupted:
            take_no_more_interrupts()  # until what was measured is told
    return outcome, [*notes, *left_out]


def _plan(model: Model, wanted: Wanted) -> tuple[Plan, list[str]]:
    """What fits the context, and a note on what does not."""
    from edgespec.bench.runner import Plan

    around_a_turn, notes, needs = 64, list[str](), list[int]()
    fitting: list[Prompt] = []
    for prompt in wanted.prompts:
        turns = [model.count_tokens(turn) + wanted.tokens + around_a_turn for turn in prompt.turns]
        needs.append(sum(turns))
        if sum(turns) <= model.info.context:
            fitting.append(prompt)
        else:
            notes.append(
                f"{prompt.id} is left out: it needs a --context of about {sum(turns)} tokens."
            )
    if not fitting:
        raise BadInput(
            f"No prompt fits the context of {model.info.context} tokens; the shortest needs a"
            f" --context of about {min(needs)}, or lower --tokens."
        )
    return Plan(tuple(fitting), wanted.runs, wanted.tokens, wanted.yardstick), notes


def _quick(model: Model, plan: Plan) -> tuple[Plan, tuple[str, ...]]:
    """What of the plan fits what is left of two minutes, and the arms."""
    from edgespec.bench import quick

    left_s = max(0.0, quick.WITHIN_S - quick.seconds_since_start())
    chosen = quick.quick_plan(model, plan.prompts, left_s)
    tokens = min(chosen.tokens, plan.tokens)
    smaller = replace(plan, prompts=chosen.prompts, runs=1, tokens=tokens, within_s=left_s)
    return smaller, chosen.arms


def _answer_options(given: Given) -> AnswerOptions:
    """Greedy and seeded, unless the user asks for another sampler."""
    from edgespec.decoding.sampling import Sampling

    options = given.answer_options()
    overrides = {"seed": 1, **options.overrides}
    sampling = None if overrides.get("temperature") else Sampling(temperature=0.0)
    return replace(options, sampling=sampling, overrides=overrides)


def _advice(model: Model, report: Report) -> str:
    from edgespec.bench.report import advice

    return advice(report.results, model.info.draft is not None, bool(report.busy()))


def _show(report: Report, advice: str, *, as_json: bool) -> None:
    for line in report.all_notes():
        note(line)
    if as_json:
        write_json({**report.as_json(), "advice": advice or None}, indent=2)
        return
    from edgespec.cli.bench_screen import drawn
    from edgespec.cli.table import flowing

    write(drawn(report.short_tables()))
    for sentence in filter(None, (report.verdict(), advice)):
        write("".join(f"{line}\n" for line in flowing(sentence)))
