"""On real llama.cpp, the text under the coupled rule is the plain text, whoever drafts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from answer_trials import never_vacuous
from every_proposer import fifty_rounds
from llama_trials import (
    EXACT,
    Chains,
    Make,
    Models,
    Oracle,
    Told,
    Trees,
    answer,
    ask,
    assert_same_text,
    sampler,
    session,
    with_prediction,
    words,
)
from tiny_models import Shape

from edgespec.decoding.proposer import Proposer
from edgespec.planning.cost import CostCurve
from edgespec.planning.measure import measure
from edgespec.planning.model_source import DraftCost, ModelSource
from edgespec.planning.planner import Auto
from edgespec.planning.sources import NGramSource
from edgespec.planning.strict import StrictSession
from edgespec.proposers.combine import FirstOf, Fixed
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.ngram import NGram
from edgespec.proposers.nothing import Nothing

SEEDS = range(20)
SHAPE = Shape(layers=2)
LENGTHS = (0, 1, 3, 8, 16)
SAMPLERS = [(t, p) for t in (0.0, 0.7, 1.3) for p in (False, True)]
NAMES = [f"T={t}{', penalised' if p else ''}" for t, p in SAMPLERS]
FLAT = {n: 1e-3 for n in (1, 2, 4, 8, 16, 32)}
STEPS = {1: 1.0e-3, 2: 1.1e-3, 3: 2.4e-3, 4: 1.4e-3, 8: 1.5e-3, 9: 4e-3, 16: 4.2e-3}
LINE = {n: n * 1e-3 for n in (1, 2, 4, 8, 16)}


def _auto(drafter: SmallModel, seconds: dict[int, float], guess_s: float) -> Auto:
    cost = CostCurve(seconds)
    return Auto([NGramSource(cost), ModelSource(drafter, cost, DraftCost(guess_s))], cost)


class Drafters:
    """Every proposer, with its own drafting session on a noisy copy of the target."""

    def __init__(self, llama: Models) -> None:
        self.copies = [
            SmallModel(session(llama(**SHAPE, noise=n)), 384) for n in (0.012, 0.055, 0.15)
        ]

    def chains(self) -> dict[str, Make]:
        middle = self.copies[1]
        return {
            "n-gram": lambda seed, k, truth: Fixed(NGram(), k),
            "noisy copy": lambda seed, k, truth: Fixed(self.copies[seed % 3], k),
            "first of": lambda seed, k, truth: Fixed(FirstOf(NGram(4), middle), k),
            "random chain": lambda seed, k, truth: Chains(truth, k, seed),
        }

    def autos(self) -> dict[str, Proposer]:
        near, middle, _ = self.copies
        return {
            "auto, flat cost": _auto(near, FLAT, 1e-5),
            "auto, steps": _auto(middle, STEPS, 1e-4),
            "auto, linear cost": _auto(middle, LINE, 1e-4),
        }


@pytest.mark.parametrize(("temperature", "penalised"), SAMPLERS, ids=NAMES)
def test_in_one_class_of_widths_the_text_is_the_plain_text_to_the_bit(
    llama: Models, temperature: float, penalised: bool
) -> None:
    """No near tie is excused here: all widths of the class round alike."""
    widths = measure(session(llama(**SHAPE)), words(0), within_s=0.05).strict_widths(
        dearest_plain=99
    )
    assert widths == (2, 4, 8, 16), "the widths that agree with each other on this model"
    target, drafters = StrictSession(session(llama(**SHAPE)), widths), Drafters(llama)
    runs: dict[str, list[Told]] = defaultdict(list)
    for seed in SEEDS:
        request = ask(words(seed), sampler(temperature, seed, penalised=penalised))
        plain = answer(target, request)
        assert answer(target, request, Nothing()).tokens == plain.tokens
        request = with_prediction(request, plain.tokens)
        for name, make in drafters.chains().items():
            for length in LENGTHS if name == "n-gram" else LENGTHS[1:]:
                fast = answer(target, request, make(seed, length, plain.tokens))
                assert (fast.tokens, fast.why) == (plain.tokens, plain.why), (name, length, seed)
                assert length or not fast.drafted
                runs[name].append(fast)
        for name, auto in drafters.autos().items():
            fast = answer(target, request, auto)
            assert (fast.tokens, fast.why) == (plain.tokens, plain.why), (name, seed)
            runs[name].append(fast)
    runs.pop("auto, linear cost")  # may rightly draft nothing
    never_vacuous(runs)


@pytest.mark.parametrize(("temperature", "penalised"), SAMPLERS, ids=NAMES)
def test_at_any_width_the_text_is_the_plain_text_but_for_near_ties(
    llama: Models, temperature: float, penalised: bool
) -> None:
    target, oracle = session(llama(**SHAPE)), Oracle(session(llama(**SHAPE)))
    drafters, same = Drafters(llama), list[bool]()
    runs: dict[str, list[Told]] = defaultdict(list)
    for seed in SEEDS:
        request = ask(words(seed), sampler(temperature, seed, penalised=penalised))
        plain = answer(target, request)
        assert len(plain.tokens) == request.max_tokens
        request = with_prediction(request, plain.tokens)
        fast = {
            name: answer(target, request, make(seed, LENGTHS[1 + seed % 4], plain.tokens))
            for name, make in drafters.chains().items()
        }
        fast |= {name: answer(target, request, a) for name, a in drafters.autos().items()}
        for name, told in fast.items():
            same.append(assert_same_text(told, plain, request, oracle))
            runs[name].append(told)
    runs.pop("auto, linear cost")
    never_vacuous(runs)
    assert sum(same) > 0.97 * len(same)


@pytest.mark.parametrize(("temperature", "penalised"), SAMPLERS, ids=NAMES)
def test_trees_change_nothing_also_after_fifty_rounds_in_the_cache(
    llama: Models, temperature: float, penalised: bool
) -> None:
    model = llama(**SHAPE)
    oracle, alone, used = Oracle(session(model, 512)), session(model, 512), session(model, 512)
    same, runs, widest, deepest = list[bool](), list[Told](), 0, 0
    for seed in SEEDS:
        worn = seed % 5 == 0
        prompt = fifty_rounds(used, seed) if worn else words(seed)
        request = ask(prompt, sampler(temperature, seed, penalised=penalised), max_tokens=70)
        plain = answer(alone, request)
        trees = Trees(plain.tokens, (64, 16, 3)[seed % 3], seed)
        told = answer(used, request, trees)
        assert not worn or told.reused == len(prompt) - 1
        same.append(assert_same_text(told, plain, request, oracle))
        widest, deepest = max(widest, trees.widest), max(deepest, trees.deepest_made)
        runs.append(told)
    assert (widest, deepest) == (64, 8)
    never_vacuous({"trees": runs})
    assert sum(same) >= 0.95 * len(same)


@pytest.mark.parametrize("kv_type", ["f32", "bf16"])
def test_in_one_class_of_widths_a_long_text_is_the_plain_text_too(
    llama: Models, kv_type: str
) -> None:
    """Attention of the CPU sums in another way once the text is longer than 256 tokens."""
    options = replace(EXACT, context=512, kv_type=kv_type, flash_attention="auto")
    target = StrictSession(llama(**SHAPE).session(options), (2, 4, 8, 16))
    runs: dict[str, list[Told]] = defaultdict(list)
    for seed in range(6):
        prompt = words(seed, length=240)
        request = ask(prompt, sampler(0.9, seed), max_tokens=60)
        plain = answer(target, request)
        for length in (3, 15):
            told = answer(target, request, Chains(plain.tokens, length, seed))
            assert told.tokens == plain.tokens, (length, seed)
            runs["chain"].append(told)
    never_vacuous(runs)


def test_trees_in_strict_mode_are_turned_down_since_siblings_round_otherwise(
    llama: Models,
) -> None:
    target = StrictSession(session(llama(**SHAPE)), (2, 4, 8, 16))
    request = ask(words(0), sampler(0.7, 0))
    plain = answer(target, request)
    told = answer(target, request, Trees(plain.tokens, 16, 0))
    assert told.tokens == plain.tokens
    assert any("tree" in note for note in told.notes)
