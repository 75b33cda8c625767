"""What llama.cpp says in its log explains the call that it was said in, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from llama_trials import Models, session

from edgespec.decoding.draft import EMPTY
from edgespec.errors import BackendFailed
from edgespec.testing import read
from edgespec_llamacpp import library as library_module
from edgespec_llamacpp.library import errors_since, library, log_mark


def _say(line: str) -> None:
    """As the library does, from whatever thread."""
    library_module._KEPT[0](0, line.encode(), None)


@pytest.mark.parametrize(
    ("said", "reason"),
    [([], "it gave no reason"), (["a warning\n", "failed to ", "compute\n"], "failed to compute")],
)
def test_a_pass_that_failed_is_explained_by_what_was_said_meanwhile(
    llama: Models, monkeypatch: pytest.MonkeyPatch, said: list[str], reason: str
) -> None:
    target = session(llama(layers=2))
    read(target, [1, 2])
    _say("failed to load foo\n")

    def fails(*_: Any) -> int:
        for line in said:
            _say(line)
        return -1

    monkeypatch.setattr(library(), "llama_decode", fails)
    with pytest.raises(BackendFailed) as caught:
        target.verify(EMPTY)
    assert str(caught.value) == f"llama.cpp could not run the model (code -1): {reason}"


def test_what_another_model_is_told_of_erases_no_reason(llama: Models) -> None:
    """Another thread may load one at any time."""
    mark = log_mark()
    _say("failed to find foo\n")
    session(llama(layers=2)).close()
    later = log_mark()
    assert "failed to find foo" in errors_since(mark)
    assert errors_since(later) == "it gave no reason"
