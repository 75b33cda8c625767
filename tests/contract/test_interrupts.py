"""Ctrl+C while native code runs is neither lost nor half done."""

from __future__ import annotations

import signal
import threading

import pytest

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
