"""Taking turns: who answers when, and what becomes of faults, time limits and Ctrl+C."""

from __future__ import annotations

import pytest
from bench_fakes import CHAT, CODE, TALK, Clock, FakeArm, FakeMargins

from edgespec.bench.prompts import Prompt
from edgespec.bench.runner import Helpers, Outcome, Plan, Runner
from edgespec.errors import BackendFailed


def _run(arms: list[FakeArm], plan: Plan, helpers: Helpers | None = None) -> Outcome:
    return Runner(arms, plan, helpers).run()


def _order(arms: list[FakeArm], plan: Plan) -> list[list[str]]:
    """Who answered each prompt, the first one first."""
    order: list[str] = []

    def noticed(_done: int, _total: int, line: str) -> None:
        if line.startswith("run") and not line.endswith("done"):
            order.append(line.rsplit(", ", 1)[1])

    _run(arms, plan, Helpers(noticed))
    return [order[n : n + len(arms)] for n in range(0, len(order), len(arms))]


def test_the_order_of_arms_rotates_with_run_and_prompt() -> None:
    arms = [FakeArm(name) for name in ("none", "auto", "draft:4")]
    assert _order(arms, Plan((CHAT, CODE), runs=2)) == [
        ["none", "auto", "draft:4"],
        ["auto", "draft:4", "none"],
        ["auto", "draft:4", "none"],
        ["draft:4", "none", "auto"],
    ]


@pytest.mark.parametrize("count", range(2, 7))
@pytest.mark.parametrize("categories", range(1, 5))
def test_no_arm_goes_first_twice_in_a_category_before_every_other_did(
    count: int, categories: int
) -> None:
    """Also where as many categories take turns as there are arms."""
    arms = [FakeArm(f"arm {n}") for n in range(count)]
    prompts = [Prompt(f"{n}", f"{n % categories}", ("Hi",)) for n in range(count * categories)]
    order = _order(arms, Plan(tuple(prompts), runs=1, yardstick="arm 0"))
    for category in range(categories):
        first = {names[0] for names in order[category::categories]}
        assert first == {arm.name for arm in arms}


def test_every_arm_warms_up_before_anything_counts() -> None:
    arms = [FakeArm("none"), FakeArm("auto")]
    outcome = _run(arms, Plan((CHAT,), runs=1, tokens=50))
    assert [arm.asked for arm in arms] == [[("chat-1", 8), ("chat-1", 50)]] * 2
    assert len(outcome.records) == 2


def test_each_turn_of_a_prompt_is_a_record_of_its_own() -> None:
    outcome = _run([FakeArm("none")], Plan((TALK,), runs=2))
    assert [record.place for record in outcome.records] == [
        (0, "talk-1", 0),
        (0, "talk-1", 1),
        (1, "talk-1", 0),
        (1, "talk-1", 1),
    ]


def test_the_margin_is_asked_where_ids_first_differ() -> None:
    margins = FakeMargins(0.25)
    arms = [FakeArm("none", ids=(1, 2, 3)), FakeArm("auto", ids=(1, 2, 9)), FakeArm("draft:4")]
    outcome = _run(arms, Plan((CHAT,), runs=1), Helpers(margins=margins))
    told = {c.record.arm: (c.parted_at, c.margin) for c in outcome.comparisons}
    assert told == {"auto": (2, 0.25), "draft:4": (None, None)}
    assert margins.asked == [("chat-1", 0, (1, 2))]


def test_a_shorter_answer_parts_at_its_end() -> None:
    arms = [FakeArm("none", ids=(1, 2, 3)), FakeArm("auto", ids=(1, 2))]
    (comparison,) = _run(arms, Plan((CHAT,), runs=1)).comparisons
    assert comparison.parted_at == 2
    assert comparison.margin is None


def test_turns_behind_a_difference_are_not_compared() -> None:
    arms = [FakeArm("none"), FakeArm("auto", ids=(7,))]
    outcome = _run(arms, Plan((TALK,), runs=1))
    assert [(c.record.turn, c.parted_at) for c in outcome.comparisons] == [(0, 0)]


def test_an_arm_without_ids_is_compared_by_its_text() -> None:
    arms = [FakeArm("none"), FakeArm("peer:other", ids=None)]
    (comparison,) = _run(arms, Plan((CHAT,), runs=1)).comparisons
    assert comparison.parted_at is None


def test_an_arm_that_fails_leaves_and_the_others_go_on() -> None:
    broken = FakeArm("draft:4", fails=BackendFailed("it burst"))
    outcome = _run([FakeArm("none"), broken], Plan((CHAT, CODE), runs=2))
    assert [r.arm for r in outcome.records] == ["none"] * 4
    assert outcome.notes == ["draft:4 takes no further part: it burst"]
    assert not outcome.cut


def test_without_its_yardstick_nothing_is_measured() -> None:
    arms = [FakeArm("none", fails=BackendFailed("it burst")), FakeArm("auto")]
    with pytest.raises(BackendFailed, match="it burst"):
        _run(arms, Plan((CHAT,)))


def test_ctrl_c_keeps_what_was_measured() -> None:
    arms = [FakeArm("none"), FakeArm("auto", fails=KeyboardInterrupt())]
    outcome = _run(arms, Plan((CHAT,)))
    assert [record.arm for record in outcome.records] == ["none"]
    assert outcome.interrupted
    assert outcome.cut == "stopped early"


def test_time_that_is_up_ends_an_answer_and_drops_it() -> None:
    clock = Clock()
    arms = [FakeArm("none", clock), FakeArm("auto", clock, seconds=3.0)]
    outcome = _run(arms, Plan((CHAT, CODE), runs=9, within_s=6.5), Helpers(clock=clock))
    assert [record.arm for record in outcome.records] == ["none"]
    assert outcome.cut == "its time was up"
    assert not outcome.interrupted
    assert clock.now == 8.0


def test_loads_are_read_around_each_run_even_a_cut_one() -> None:
    loads = iter([1.0, 2.0, 3.0, 4.0])
    arms = [FakeArm("none"), FakeArm("auto", fails=KeyboardInterrupt())]
    outcome = _run(arms, Plan((CHAT,)), Helpers(load=lambda: next(loads)))
    assert [(x.before, x.after) for x in outcome.loads] == [(1.0, 2.0)]
