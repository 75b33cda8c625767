"""The flags that every command with a model shares, and what they ask for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from edgespec.cli.leaving import verbose_flag
from edgespec.cli.settings import Setting
from edgespec.cli.usual import pair_to_answer
from edgespec.cli.values import BackendName, Real, StopText, Whole
from edgespec.errors import BadInput

if TYPE_CHECKING:
    from edgespec.options import AnswerOptions, LoadOptions, Speculation

Names = tuple[str | None, str | None, str | None]  # a pair, a target and a draft
SAMPLER = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repeat_penalty",
    "presence_penalty",
    "frequency_penalty",
    "seed",
)
_PENALTY = Real(-100, 100)
_LAYERS = Whole(0, 10_000, word="all")


def _setting(flag: str, help_text: str, **attrs: Any) -> Callable[..., Any]:
    return click.option(flag, cls=Setting, help=help_text, **attrs)


_DRAFT = _setting("--draft", "Smaller model that guesses ahead.", metavar="FILE")
_FLAGS = (
    _setting("--target", "Model file to answer with, in place of a PAIR.", metavar="FILE"),
    _DRAFT,
    _setting(
        "--backend", "Library that runs the model.", type=BackendName(), default="auto",
        metavar="auto|NAME", show_default=True,
    ),
    _setting(
        "--proposer", "What makes guesses.", default="auto", show_default=True,
        type=click.Choice(["auto", "none", "ngram", "draft", "recycling", "tree"]),
    ),
    _setting(
        "--draft-tokens", "Most tokens to guess at a time; auto measures what pays.",
        type=Whole(0, 64, word="auto"), default="auto", metavar="auto|N", show_default=True,
    ),
    _setting(
        "--always-draft/--no-always-draft",
        "Show mode: guess even where it makes the answer slower.", default=False,
    ),
    _setting(
        "--rule",
        "How guesses are judged. coupled: a seed gives the same text as without guesses; rejection:"
        " only the distribution of texts is the same.",
        type=click.Choice(["coupled", "rejection"]), default="coupled", show_default=True,
    ),
    _setting(
        "--strict/--no-strict", "Only passes that score to the bit as plain decoding does.",
        default=False,
    ),
    _setting(
        "--temperature", "0 always takes the likeliest token.  [default: the model's own]",
        type=Real(0, 100), metavar="T",
    ),
    _setting("--top-k", "Keep the K likeliest tokens; 0 keeps all.",
             type=Whole(0, 2**31), metavar="K"),
    _setting("--top-p", "Keep the likeliest tokens that hold the share P together.",
             type=Real(0, 1, above=True), metavar="P"),
    _setting("--min-p", "Drop tokens below P times the likeliest one's probability.",
             type=Real(0, 1), metavar="P"),
    _setting("--repeat-penalty", "Divides the score of recent tokens; 1 is off.",
             type=Real(0, 100, above=True), metavar="X"),
    _setting("--presence-penalty", "Taken from the score of recent tokens; 0 is off.",
             type=_PENALTY, metavar="X"),
    _setting("--frequency-penalty", "The same for each time a token appeared; 0 is off.",
             type=_PENALTY, metavar="X"),
    _setting("--seed", "The same seed gives the same answer.  [default: a fresh one]",
             type=Whole(0, 2**63 - 1), metavar="N"),
    _setting("--max-tokens", "Longest answer.  [default: until the model ends]",
             type=Whole(1, 2**31), metavar="N"),
    _setting("--stop", "End the answer before this text; may be repeated.",
             type=StopText(), multiple=True, metavar="TEXT"),
    _setting("--system", "System message.", default="", metavar="TEXT"),
    _setting("--reasoning", "Ask a reasoning model to think first, or not to.",
             type=click.Choice(["on", "off"])),
    _setting("--context", "Tokens the conversation may hold; --fit may lower it."
             "  [default: the model's own, at most 4096]",
             type=Whole(16, 2**31), metavar="N"),
    _setting("--threads", "CPU threads.  [default: the physical cores]",
             type=Whole(1, 1024), metavar="N"),
    _setting("--gpu-layers", "Layers of the target on the GPU.", type=_LAYERS, default="all",
             metavar="all|N", show_default=True),
    _setting("--draft-gpu-layers", "Layers of the draft model on the GPU.", type=_LAYERS,
             default="all", metavar="all|N", show_default=True),
    _setting("--kv-type", "Number format of the cache.", default="auto", show_default=True,
             type=click.Choice(["auto", "f32", "f16", "bf16", "q8_0", "q4_0"])),
    _setting("--cpu-moe/--no-cpu-moe", "Keep a mixture's experts in main memory.", default=False),
    _setting("--fit/--no-fit", "Where memory is short, load what fits and say what was changed.",
             default=False),
    _setting("--remember/--no-remember",
             "Guess from this model's earlier answers too, as far as the history keeps them.",
             default=False),
    _setting("--flash-attention", "Fused attention kernels.", default="auto", show_default=True,
             type=click.Choice(["auto", "on", "off"])),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Given:
    """What flags, environment and config file ask for; nothing is loaded yet.

    values: by flag name, checked. on_line: the names that the command line itself set.
    """

    values: Mapping[str, Any]
    on_line: frozenset[str]
    verbose: bool = False

    @property
    def system(self) -> str:
        return str(self.values["system"])

    @property
    def leaves_guessing_open(self) -> bool:
        """Whether nothing says how to guess, so that what was tuned for the target may."""
        asked = {"draft", "proposer", "draft_tokens", "always_draft"} & self.on_line
        values = [self.values[name] for name in ("proposer", "draft_tokens", "always_draft")]
        return not asked and values == ["auto", "auto", False]

    def which(self, pair: str | None, usual: Callable[[], str] = pair_to_answer) -> Names:
        """The pair, the target and the draft to load.

        A PAIR on the line puts a target and a draft from the environment or the config aside.
        usual: finds the pair where nothing names a model.
        """
        target, draft = self.values["target"], self.draft_beside(pair)
        if pair is not None:
            if "target" in self.on_line:
                raise BadInput(f"Both the pair {pair!r} and --target name a model; give one.")
            return pair, None, draft
        if target is None:
            return usual(), None, draft
        return None, target, draft

    def draft_beside(self, pair: str | None) -> Any:
        """What --draft holds; beside a PAIR on the line, only what stands there too."""
        return self.values["draft"] if pair is None or "draft" in self.on_line else None

    def load_options(self) -> LoadOptions:
        from edgespec.options import LoadOptions

        plain = ("backend", "context", "threads", "kv_type", "cpu_moe", "flash_attention")
        switches = ("strict", "fit", "remember")
        return LoadOptions(
            **{name: self.values[name] for name in (*plain, *switches)},
            gpu_layers=_unless("all", self.values["gpu_layers"]),
            draft_gpu_layers=_unless("all", self.values["draft_gpu_layers"]),
        )

    def speculation(self) -> Speculation:
        from edgespec.options import Speculation

        return Speculation(
            proposer=self.values["proposer"],
            draft_tokens=_unless("auto", self.values["draft_tokens"]),
            always_draft=self.values["always_draft"],
            rule=self.values["rule"],
        )

    def answer_options(self, prediction: str = "") -> AnswerOptions:
        from edgespec.options import AnswerOptions

        reasoning = self.values["reasoning"]
        return AnswerOptions(
            overrides={
                name: self.values[name] for name in SAMPLER if self.values[name] is not None
            },
            max_tokens=self.values["max_tokens"],
            stop=tuple(self.values["stop"]),
            prediction=prediction,
            reasoning=None if reasoning is None else reasoning == "on",
        )


def shared_flags(
    command: Callable[..., Any], draft: Callable[..., Any] = _DRAFT
) -> Callable[..., Any]:
    """Adds the shared flags; the command gets them as one `Given`, its first argument.

    draft: another form of the flag --draft.
    """

    @functools.wraps(command)
    def collected(**arguments: Any) -> Any:
        context = click.get_current_context()
        values = {
            param.name: arguments.pop(param.name)
            for param in context.command.params
            if isinstance(param, Setting) and param.name
        }
        on_line = frozenset(
            name
            for name in values
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        )
        verbose = bool(getattr(context.obj, "verbose", False))
        return command(Given(values, on_line, verbose), **arguments)

    decorated: Callable[..., Any] = collected
    for flag in reversed(_FLAGS):
        decorated = (draft if flag is _DRAFT else flag)(decorated)
    return verbose_flag(decorated)


def hide_all_but(used: Collection[str], command: click.Command) -> None:
    """Leave shared flags that change nothing in a command out of its help.

    The command still knows them, and turns them down in words.
    """
    for flag in command.params:
        if isinstance(flag, Setting) and flag.name not in used:
            flag.hidden = True


def _unless(word: str, value: int | str) -> int | None:
    return None if value == word else int(value)
