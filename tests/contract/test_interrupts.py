"""Ctrl+C while native code runs is neither lost nor half done, wherever it comes."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
from interrupting import assert_whole_after_interrupts, interrupted_everywhere
from llama_trials import EXACT, Models, session

from edgespec_llamacpp.library import interrupts_wait


def test_an_interrupt_takes_effect_when_the_native_call_is_over() -> None:
    done = []

    def loads() -> None:
        with interrupts_wait() as interrupted:
            signal.raise_signal(signal.SIGINT)
            done.append(interrupted())

    with pytest.raises(KeyboardInterrupt):
        loads()
    assert done == [True]


def test_without_an_interrupt_the_old_handler_is_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts_wait() as interrupted:
        assert signal.getsignal(signal.SIGINT) is not before
        assert not interrupted()
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_leave_signals_alone() -> None:
    told = []

    def work() -> None:
        with interrupts_wait() as interrupted:
            told.append(interrupted())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert told == [False]


@pytest.mark.parametrize(
    "shape", [{}, {"sliding_window": 8}, {"recurrent": True}, {"hybrid": True}], ids=str
)
def test_a_session_is_whole_wherever_it_is_interrupted(
    llama: Models, shape: dict[str, int | bool]
) -> None:
    model = llama(layers=2, **shape) if "recurrent" not in shape else llama(recurrent=True)
    assert_whole_after_interrupts("edgespec_llamacpp/", session(model), session(model))


def test_the_librarys_own_loop_is_whole_wherever_it_is_interrupted(llama: Models) -> None:
    loop = llama(layers=2).plain_loop(EXACT)
    prompt = np.random.default_rng(0).integers(0, 384, 150).astype(np.int32)

    def says() -> list[int]:
        return list(loop.answer(prompt, 5, ()))

    truth = says()
    for place in interrupted_everywhere("edgespec_llamacpp/", says, loop.forget):
        assert says() == truth, place


def test_a_batch_is_whole_wherever_it_is_interrupted(llama: Models) -> None:
    """A step either counts for all its texts or for none."""
    batch = llama(layers=2).batch(3, 40, threads=1)

    def anew() -> None:
        for slot in range(3):
            batch.forget(slot)
            batch.step([slot], [slot + 1])

    anew()
    once = batch.step([0, 2], [8, 9]).copy()
    twice = batch.step([0, 2], [8, 9]).copy()
    for place in interrupted_everywhere(
        "edgespec_llamacpp/", lambda: batch.step([0, 2], [8, 9]), anew
    ):
        row = batch.step([0, 2], [8, 9]).copy()
        assert min(np.abs(row - right).max() for right in (once, twice)) < 1e-4, place
        assert np.isfinite(batch.step([1], [7])).all(), "a text that had no part in it goes on"
