"""What was learned is installed whole, or not at all, and never unasked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
from tiny_models import TinyModels
from train_trials import counting

from edgespec.cli.train import _tell
from edgespec.errors import BadInput, EdgespecError
from edgespec.models.installed import find_installed, trained_dir
from edgespec.models.pairs import Pair
from edgespec.models.trained import GGUF_NAME, folder_of, install
from edgespec.options import LoadOptions
from edgespec.train.begun import Begun
from edgespec.train.report import held_out
from edgespec.train.workshop import Wish, Workshop, workshop

pytest.importorskip("torch", reason="torch is in the extra 'train'")
pytest.importorskip("gguf")

from edgespec.train.learning import Learned, learn


@pytest.fixture
def shop(tiny_models: TinyModels) -> Iterator[Workshop]:
    pair, options = Pair("tiny", tiny_models(layers=2)), LoadOptions(threads=1)
    # a course without time is one step
    wish = Wish("mine", pair, True, (), 300, 0.0, 64, 8 << 30, 7, options)
    with workshop(wish, lambda line: None) as opened:
        yield opened


@pytest.fixture
def begun(shop: Workshop) -> Begun:
    kept = shop.answers.add([counting(n, held=n % 4 == 0) for n in range(24)])
    ids = list(range(100))
    return Begun(384, [0], shop.wish.terms, tokens=300, ids=ids, answers=[kept.name])


def _learned(shop: Workshop, begun: Begun) -> Learned:
    return learn(shop, begun, "cpu", lambda: False)


def test_ctrl_c_while_it_judges_ends_that_and_installs_nothing(
    shop: Workshop, begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    telling = replace(shop, tell=told.append)
    with monkeypatch.context() as patched:
        patched.setattr("edgespec.train.learning.judged", lambda *_: pytest.fail("it went on"))
        with pytest.raises(KeyboardInterrupt):
            learn(telling, begun, "cpu", lambda: any(line.startswith("judging") for line in told))
    assert told[-1].startswith("judging")
    assert find_installed("mine") is None
    assert not trained_dir().exists()
    assert _learned(telling, begun).folder == folder_of("mine")
    assert "going on with the training that was begun" in told
    assert find_installed("mine") is not None


def test_ctrl_c_after_the_last_answer_was_judged_installs_nothing(
    shop: Workshop, begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressed: list[bool] = []
    monkeypatch.setattr("edgespec.train.learning.judged", lambda *_: pressed.append(True) or [])
    with pytest.raises(KeyboardInterrupt):
        learn(shop, begun, "cpu", lambda: bool(pressed))
    assert pressed
    assert find_installed("mine") is None


def test_a_disk_that_refuses_leaves_the_drafter_that_was_there(
    shop: Workshop, begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    _learned(shop, begun)
    drafter = folder_of("mine") / GGUF_NAME
    before = drafter.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("edgespec.train.learning.write_safetensors", full)
        with pytest.raises(EdgespecError, match=r"No space left .*run this again, nothing is lost"):
            _learned(shop, begun)
    assert drafter.read_bytes() == before
    assert os.listdir(trained_dir()) == ["mine"]
    assert shop.checkpoint.exists()
    _learned(shop, begun)
    assert drafter.read_bytes() != before


def test_a_name_that_was_taken_meanwhile_is_left_to_its_owner(
    shop: Workshop, begun: Begun, tiny_models: TinyModels
) -> None:
    drafter = folder_of("mine") / GGUF_NAME
    drafter.parent.mkdir(parents=True)
    drafter.write_bytes(b"of another target")
    install("mine", tiny_models(layers=3))
    with pytest.raises(BadInput, match="delete it first with 'edgespec rm mine'"):
        _learned(shop, begun)
    assert drafter.read_bytes() == b"of another target"
    assert shop.checkpoint.exists()


def test_what_is_said_of_guesses_is_said_of_the_answers_that_were_judged(
    shop: Workshop,
    begun: Begun,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("edgespec.train.learning.held_out", partial(held_out, most=100))
    learned = _learned(shop, begun)
    told = learned.as_json()
    assert (told["judged_tokens"], told["held_out_tokens"]) == (120, 240)
    _tell(learned, shop)
    assert (
        "Guesses accepted on 120 tokens of answers that were held out:" in capsys.readouterr().out
    )


def test_what_a_killed_one_left_half_made_goes_with_the_next(shop: Workshop, begun: Begun) -> None:
    (trained_dir() / ".new-k1ll3d" / "whole").mkdir(parents=True)
    (trained_dir() / ".new-k1ll3d" / "whole" / GGUF_NAME).write_bytes(b"half")
    _learned(shop, begun)
    assert os.listdir(trained_dir()) == ["mine"]
