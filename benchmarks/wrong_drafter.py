"""What `auto` loses to a drafter that is always wrong and always sure of itself.

    uv run python benchmarks/wrong_drafter.py --target T.gguf --draft D.gguf --runs 5

The draft model's scores are moved by one token id, so that it costs what it costs, is as confident
as it is, and is never right. Arms take turns; printed are medians of the ratio to plain decoding.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

import edgespec
from edgespec import Message, Model, backends
from edgespec.backends import Placement, SessionOptions
from edgespec.bench.prompts import CATEGORIES, shipped
from edgespec.conversation import PromptEncoder
from edgespec.decoding.draft import Draft, Row, Tokens
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Proposer
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.decoding.session import Caps, Scores, Session
from edgespec.planning.model_source import DraftCost, ModelSource
from edgespec.planning.planner import Auto
from edgespec.planning.sources import NGramSource
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.nothing import Nothing


@dataclass(frozen=True, slots=True)
class MovedScores:
    """Scores whose every token has its neighbour's."""

    inner: Scores

    def top(self, node: int) -> int:
        return int(self.logits(node).argmax())

    def logits(self, node: int) -> Row:
        return np.roll(self.inner.logits(node), 1)


class Wrong:
    """A draft model's session that always says the token beside its own."""

    def __init__(self, inner: Session) -> None:
        self._inner = inner

    @property
    def caps(self) -> Caps:
        return self._inner.caps

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        return self._inner.prefill(tokens)

    def held(self, tokens: Tokens) -> int:
        return self._inner.held(tokens)

    def verify(self, draft: Draft) -> Scores:
        return MovedScores(self._inner.verify(draft))

    def commit(self, path: Sequence[int], next_token: int) -> None:
        self._inner.commit(path, next_token)

    def reset(self) -> None:
        self._inner.reset()


def wrong_auto(model: Model, draft: Path) -> tuple[Auto, SmallModel]:
    """The planner with an n-gram and the wrong drafter, and that drafter."""
    loaded = backends.find("auto").load(draft, Placement())
    session = loaded.session(SessionOptions(2048, lazy=True, rows=1))
    drafter = SmallModel(Wrong(session), session.caps.vocab)
    cost, ngram = model.loaded.target.cost, NGramSource(model.loaded.target.cost)
    takes = model.loaded.drafter.takes if model.loaded.drafter else DraftCost(0.02)
    return Auto([ngram, ModelSource(drafter, cost, takes, ngram)], cost), drafter


def speed(model: Model, prompt: Tokens, proposer: Proposer, tokens: int) -> tuple[float, int]:
    """Tokens a second behind the first round, and guesses accepted."""
    session = model.loaded.target.session
    session.reset()
    request = Request(prompt, Sampling(0.0, seed=1), tokens)
    rounds, times = [], []
    for event in speculate(session, request, proposer):
        if isinstance(event, Round):
            rounds.append(event)
            times.append(perf_counter())
    made = sum(len(r.tokens) for r in rounds[1:])
    return made / (times[-1] - times[0]), sum(r.accepted for r in rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--per-category", type=int, default=1)
    options = parser.parse_args()
    ratios: dict[str, list[float]] = defaultdict(list)
    with edgespec.load(target=str(options.target), draft=str(options.draft), context=2048) as model:
        auto, drafter = wrong_auto(model, options.draft)
        encoder = PromptEncoder(model.loaded.models[0].tokenizer)
        chosen = [p for c in CATEGORIES for p in shipped([c])[: options.per_category]]
        for run in range(options.runs):
            for prompt in chosen:
                ids = encoder.encode([Message("user", prompt.turns[0])], {})
                arms: list[tuple[str, Proposer]] = [("none", Nothing()), ("auto", auto)]
                told = {}
                for name, proposer in arms[:: 1 if run % 2 else -1]:
                    drafter.forget()
                    told[name], _ = speed(model, ids, proposer, options.tokens)
                ratios[prompt.category].append(told["auto"] / told["none"])
            print(f"run {run + 1} of {options.runs} done", flush=True)
    print(f"\n{options.target.name} + a wrong {options.draft.name}, {options.tokens} tokens\n")
    print("| category | auto with a wrong drafter, times plain |\n|---|---|")
    for category, values in ratios.items():
        print(f"| {category} | {median(values):.2f} ({min(values):.2f}-{max(values):.2f}) |")


if __name__ == "__main__":
    main()
