"""An answer again without speculation: side by side, and where the two part."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_model import plain

from edgespec.decoding.events import Alternative, Finished, PromptRead, Stop
from edgespec.options import AnswerOptions, Explained, Turn
from edgespec.text.template import Message
from edgespec.tui.replay import Made, Replay, first_difference, margin_of
from edgespec.tui.transcript import Mark

FIGURES = {
    "decode_s": 2.0,
    "tokens_per_second": 40.25,
    "time_to_first_token_s": 0.5,
    "completion_tokens": 3,
}
RUNS = (("a", Mark.PLAIN), ("b", Mark.ACCEPTED), ("c", Mark.BONUS))


def replay(*ids: int, begun: tuple[int, ...] = ()) -> Replay:
    turn = Turn((Message("user", "hi"),), begun=begun, options=AnswerOptions(max_tokens=500))
    made = Replay.of(turn, 1, 2, Made((1, 1, 1), RUNS, FIGURES))
    made.hear(PromptRead(5, 5, 0, 0.1), 1.0)
    for number, id in enumerate(ids):
        event = plain("bcd"[number])
        token = event.tokens[0]
        made.hear(type(event)(number, (type(token)(id, token.kind, text=token.text),), (), 0, 0, 0),
                  2.0 + number)  # fmt: skip
    return made


def test_it_asks_for_the_same_turn_plain_and_for_no_more_tokens() -> None:
    made = replay()
    assert made.turn.speculation is not None
    assert made.turn.speculation.proposer == "none"
    assert made.turn.options.max_tokens == 3
    assert made.turn.messages == (Message("user", "hi"),)


def test_both_times_stand_side_by_side() -> None:
    made = replay(1, 1, 1)
    made.hear(Finished(Stop.LENGTH), 5.0)
    head, decoding, speed, first, tokens, verdict = made.lines()
    assert head.split() == ["as", "answered", "plain"]
    assert max(map(len, (head, decoding, speed, first, tokens))) <= 44  # beside an open panel
    assert decoding.split()[-2:] == ["2.00", "2.00"]
    assert speed.split()[-2:] == ["40.2", "1.0"]
    assert first.split()[-2] == "0.50"
    assert tokens.split()[-2:] == ["3", "3"]
    assert verdict == "the same text, token for token (3)"


@pytest.mark.parametrize(
    ("tokens", "told"), [(3.0, "3"), (None, "unknown"), ("3", "unknown"), ([], "unknown")]
)
def test_figures_of_a_foreign_history_are_told_as_far_as_they_are_numbers(
    tokens: object, told: str
) -> None:
    made = replace(replay(1, 1, 1), figures={**FIGURES, "completion_tokens": tokens})
    assert made.lines()[-2].split() == ["tokens", told, "3"]


def test_the_first_difference_is_told_with_both_tokens_and_the_margin() -> None:
    made = replay(1, 8, 9)
    assert made.difference == 1
    explained = Explained(1, 8, -0.70, (Alternative(8, -0.70, "c"), Alternative(1, -0.75, "b")))
    (*_, verdict) = made.lines(margin_of(explained, 1))
    assert verdict == (
        "first difference at token 2: “b” as answered, “c” here;"
        " the two were 0.0500 apart in log-probability"
    )


def test_where_the_other_token_is_not_among_the_best_the_best_two_are_compared() -> None:
    explained = Explained(1, 8, -3.0, (Alternative(5, -0.5), Alternative(6, -0.75)))
    assert margin_of(explained, 1) == (
        "the likeliest two were 0.2500 apart in log-probability there"
    )


def test_a_replay_that_was_stopped_says_how_far_it_was_the_same() -> None:
    made = replay(1, 1)
    made.hear(Finished(Stop.CANCELLED), 5.0)
    assert made.lines()[-1] == "stopped; the same up to token 2"


def test_a_steered_answer_is_replayed_from_the_chosen_token_on() -> None:
    made = replay(1, 7, begun=(1,))
    assert made.written == (1, 1, 7)
    assert made.difference == 2
    assert "“c” as answered, “c” here" in made.lines()[-1]
    assert made.lines()[0].split() == ["from", "token", "2", "as", "answered", "plain"]
    assert len(made.lines()[0]) <= 44


def test_a_difference_needs_a_token_on_both_sides() -> None:
    assert first_difference((1, 2), (1, 2, 3)) is None
    assert first_difference((1, 2), (1, 3)) == 1
