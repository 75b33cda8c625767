"""`benchmarks/long_context.py`: arms take turns, and nobody reads the prompt on the clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from edgespec.options import Speculation

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "long_context.py"


@pytest.fixture(scope="module")
def long_context() -> ModuleType:
    spec = spec_from_file_location("long_context", SCRIPT)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class FakeModel:
    """Keeps which arm was asked for how many tokens, and when its caches were emptied."""

    speculation: Speculation = field(default_factory=Speculation)
    done: list[Any] = field(default_factory=list)

    def forget(self) -> None:
        self.done.append("forget")

    def generate(self, _prompt: str, *, max_tokens: int, **_sampling: Any) -> SimpleNamespace:
        self.done.append((self.speculation.proposer, max_tokens))
        figures = SimpleNamespace(tokens_per_second=10.0, time_to_first_token_s=0.5)
        return SimpleNamespace(stats=figures)


def test_both_arms_warm_up_and_who_goes_first_changes(long_context: ModuleType) -> None:
    model = FakeModel()
    told = long_context.speeds(model, "prompt", 64, 3)
    assert model.done[:2] == [("none", 64), ("auto", 64)], "by these, each has read the prompt"
    assert [arm for arm, _ in model.done[2:]] == ["none", "auto", "auto", "none", "none", "auto"]
    assert [set(speeds) for speeds in told] == [{"none", "auto"}] * 3


def test_the_wait_for_a_prompt_read_anew_is_measured_in_turns_too(
    long_context: ModuleType,
) -> None:
    model = FakeModel()
    assert long_context.waits(model, "prompt", 2) == {"none": 0.5, "auto": 0.5}
    none, auto = ("none", 8), ("auto", 8)
    assert model.done == ["forget", none, "forget", auto, "forget", auto, "forget", none]
