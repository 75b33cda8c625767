"""What a quick benchmark leaves out, by what a pass costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import psutil
import pytest

from edgespec.bench.prompts import Prompt
from edgespec.bench.quick import best_fixed, quick_plan, seconds_since_start
from edgespec.planning.cost import CostCurve

PROMPTS = [
    Prompt(f"{category}-{n}", category, ("word " * (10 + n),))
    for category in ("voice", "chat", "code", "edit")
    for n in (2, 0, 1)
]


@dataclass
class Target:
    cost: CostCurve


@dataclass
class Drafter:
    guess_s: float


@dataclass
class Loaded:
    target: Target
    drafter: Drafter | None


@dataclass
class Model:
    """As much of a model as a plan looks at."""

    loaded: Loaded
    counted: list[str] = field(default_factory=list)

    def count_tokens(self, text: str) -> int:
        self.counted.append(text)
        return len(text.split())


def _model(plain_s: float, guess_s: float | None, wide: float = 1.2) -> Any:
    cost = CostCurve({1: plain_s, 2: plain_s * wide, 16: plain_s * wide * 1.5})
    return Model(Loaded(Target(cost), None if guess_s is None else Drafter(guess_s)))


def test_one_short_prompt_of_each_kind_comes_first() -> None:
    plan = quick_plan(_model(0.2, 0.02), PROMPTS, 100.0)
    assert [prompt.id for prompt in plan.prompts] == ["code-0", "edit-0", "chat-0"]


def test_a_fast_machine_gets_more_prompts_and_never_more_than_fit() -> None:
    slow, fast = (quick_plan(_model(s, s / 10), PROMPTS, 100.0) for s in (0.2, 0.02))
    assert len(slow.prompts) < len(fast.prompts) <= 9
    assert slow.tokens < fast.tokens


@pytest.mark.parametrize("plain_s", [0.001, 0.02, 0.1, 0.15])
@pytest.mark.parametrize("guess_share", [0.02, 0.1, 0.5])
def test_what_is_planned_fits_the_time_prompts_guesses_and_warming_up_included(
    plain_s: float, guess_share: float
) -> None:
    guess_s = guess_share * plain_s
    model = _model(plain_s, guess_s)
    prompts = [replace(prompt, turns=("word " * 60,)) for prompt in PROMPTS]
    plan = quick_plan(model, prompts, 100.0)
    none, auto, fixed = plan.arms
    assert (none, auto, fixed[:6]) == ("none", "auto", "draft:")
    length = int(fixed[6:])
    round_s = model.loaded.target.cost.seconds(length + 1) + length * guess_s
    round_tokens = sum(0.3**depth for depth in range(length + 1))  # of ten guesses three are right
    token_s = plain_s + 1.1 * plain_s + round_s / round_tokens
    read_s = 60 * 0.4 * (3 * plain_s + 2 * guess_s)  # of one prompt, by all arms
    warming_up_s = read_s + 8 * token_s
    planned_s = warming_up_s + len(plan.prompts) * (read_s + plan.tokens * token_s)
    assert planned_s <= 80.0, "a fifth is left for what goes slower"


def test_a_slow_machine_gets_shorter_answers_before_fewer_categories() -> None:
    slow = quick_plan(_model(0.35, 0.035), PROMPTS, 100.0)
    slower = quick_plan(_model(1.0, 0.1), PROMPTS, 100.0)
    assert {p.category for p in slow.prompts} == {"code", "edit", "chat"}
    assert slow.tokens < 16
    assert (len(slower.prompts), slower.tokens) == (1, 8)


def test_turns_of_a_conversation_are_counted_as_answers() -> None:
    talk = Prompt("t", "chat", ("word",) * 4)
    once = quick_plan(_model(0.2, None), [Prompt("o", "chat", ("word",))], 50.0)
    assert quick_plan(_model(0.2, None), [talk], 50.0).tokens * 3 < once.tokens


def test_less_time_is_planned_with_less() -> None:
    long, short = (quick_plan(_model(0.1, 0.01), PROMPTS, s) for s in (100.0, 40.0))
    assert short.tokens * len(short.prompts) < long.tokens * len(long.prompts)


def test_the_clock_runs_since_the_process_began(monkeypatch: pytest.MonkeyPatch) -> None:
    began = psutil.Process().create_time()
    monkeypatch.setattr("edgespec.bench.quick.time", lambda: began + 12.5)
    assert seconds_since_start() == pytest.approx(12.5)


def test_prompts_of_other_kinds_are_taken_where_there_are_no_usual_ones() -> None:
    plan = quick_plan(_model(0.1, None), [Prompt("x", "other", ("word",))], 100.0)
    assert [prompt.id for prompt in plan.prompts] == ["x"]


def test_the_fixed_arm_is_longer_where_guesses_are_cheap() -> None:
    assert best_fixed(_model(0.1, None)) == "ngram:8"
    cheap, dear = best_fixed(_model(0.1, 0.001)), best_fixed(_model(0.1, 0.06))
    assert int(cheap.removeprefix("draft:")) > int(dear.removeprefix("draft:"))
