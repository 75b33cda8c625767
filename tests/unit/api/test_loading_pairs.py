"""Loading a pair: what is refused, what is told, and that nothing stays open."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_trials import Load
from tiny_models import TinyModels

import edgespec_llamacpp.library as native
from edgespec import backends
from edgespec.api import Speculation, load
from edgespec.decoding.events import Round
from edgespec.errors import (
    BackendMissing,
    BadInput,
    IncompatiblePair,
    ModelFileError,
    NotFound,
    OutOfMemory,
)
from edgespec.loading import LEAST_CONTEXT, Loaded, open_pair
from edgespec.models.gguf import read_header
from edgespec_llamacpp.model import LlamaModel

ASK = "Tell me of the other model"


def test_a_pair_tells_what_it_is(opened: Load, tiny_models: TinyModels) -> None:
    target, draft = tiny_models(layers=2), tiny_models(layers=2, noise=0.03)
    info = opened(str(target), draft=str(draft)).info
    assert (info.target, info.draft) == (target.name, draft.name)
    assert (info.pair, info.backend, info.context) == ("tiny llama 0", "llamacpp", 256)
    assert info.device.startswith("CPU")
    assert info.exactness.startswith(("bit-exact", "same up to rounding"))
    assert info.notes == ()


def test_a_draft_with_another_vocabulary_is_refused(opened: Load, tiny_models: TinyModels) -> None:
    tokens = [token.decode() for token in read_header(tiny_models()).tokens]
    other = tiny_models(layers=1, tokens=tuple([*tokens[:300][::-1], *tokens[300:]]))
    with pytest.raises(IncompatiblePair, match=r"id 0 is .* in the target but"):
        opened(draft=str(other))


def test_a_shorter_vocabulary_is_refused_unless_the_rest_is_padding(
    opened: Load, tiny_models: TinyModels
) -> None:
    tokens = [token.decode() for token in read_header(tiny_models()).tokens]
    longer = tuple([*tokens, "<|extra_0|>", "<|extra_1|>"])
    wide = tiny_models(layers=1, tokens=longer)
    model = opened(draft=str(wide), proposer="draft", draft_tokens=4)
    reply = model.generate(ASK, seed=1, max_tokens=20, temperature=1.3)
    assert reply.stats.drafted > 0
    with pytest.raises(IncompatiblePair):
        opened(str(tiny_models(layers=1, vocab=380)), draft=str(tiny_models(layers=2)))


def test_the_target_is_not_its_own_draft(opened: Load, tiny_models: TinyModels) -> None:
    with pytest.raises(BadInput, match="both target and draft"):
        opened(draft=str(tiny_models(layers=2)))


def test_a_folder_is_a_pair_and_draft_none_leaves_the_draft_out(
    tiny_models: TinyModels, tmp_path: Path
) -> None:
    pytest.importorskip("llama_cpp")
    folder = tmp_path / "pair"
    folder.mkdir()
    (folder / "big.gguf").symlink_to(tiny_models())
    (folder / "small.gguf").symlink_to(tiny_models(layers=1))
    with load(str(folder), threads=1) as model:
        assert (model.info.target, model.info.draft) == ("big.gguf", "small.gguf")
        assert any("the largest model" in note for note in model.info.notes)
    with load(str(folder), draft="none", threads=1) as model:
        assert model.info.draft is None
        assert model.generate(ASK, seed=1, max_tokens=3).finish_reason == "length"


@pytest.mark.parametrize("proposer", ["none", "ngram", "recycling"])
def test_a_draft_that_would_not_be_used_is_not_loaded(
    opened: Load, tiny_models: TinyModels, proposer: str
) -> None:
    draft = str(tiny_models(layers=2, noise=0.03))
    model = opened(draft=draft, proposer=proposer)
    assert model.info.draft is None
    assert len(model.loaded.models) == 1


def test_a_drafter_that_is_not_there_is_named_before_anything_is_loaded(
    opened: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            backends.find("llamacpp"), "load", lambda *_: pytest.fail("a model was loaded")
        )
        with pytest.raises(BadInput, match=r"has no draft model; name one with --draft FILE"):
            opened(proposer="draft")
    model = opened()
    with pytest.raises(BadInput, match="has no draft model"):
        model.speculation = Speculation("draft")
    assert model.speculation == Speculation(), "it guesses as before"


def test_more_context_than_memory_is_refused_before_anything_is_loaded(
    opened: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = backends.find("llamacpp")
    monkeypatch.setattr(adapter, "load", lambda *_: pytest.fail("a model was loaded"))
    with pytest.raises(OutOfMemory, match=r"are free, .* too little: --context \d+"):
        opened(context=2**34)


def test_a_context_that_holds_no_conversation_is_refused_before_anything_is_loaded(
    opened: Load, tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            backends.find("llamacpp"), "load", lambda *_: pytest.fail("a model was loaded")
        )
        for few in (1, LEAST_CONTEXT - 1):
            with pytest.raises(BadInput, match=r"holds no conversation; give --context 16 or"):
                opened(context=few)
        short = tiny_models(layers=2, noise=0.03, context=1)
        with pytest.raises(BadInput, match="draft model was trained on texts of 1 tokens"):
            opened(draft=str(short))
        with pytest.raises(BadInput, match="A context of 1 tokens"):
            opened(str(short), context=None)


def test_a_draft_with_less_context_is_told_once(opened: Load, tiny_models: TinyModels) -> None:
    short = tiny_models(layers=2, noise=0.03, context=128)
    model = opened(draft=str(short), proposer="draft", draft_tokens=3)
    assert any("reads 128 tokens" in note for note in model.info.notes)
    no_end = dict.fromkeys(model.loaded.models[0].tokenizer.end_tokens, -1e6)
    events = list(model.stream(ASK, seed=1, max_tokens=180, logit_bias=no_end))
    rounds = [event for event in events if isinstance(event, Round)]
    assert rounds[1].guesses
    assert "its context of 128 tokens is full" in rounds[-1].plan


def test_a_draft_with_enough_context_reads_the_end_of_longer_texts(
    opened: Load, tiny_models: TinyModels
) -> None:
    short = tiny_models(layers=2, noise=0.012)  # of 512 tokens
    long = tiny_models(layers=2, context=2048)
    model = opened(str(long), draft=str(short), proposer="draft", draft_tokens=3, context=1024)
    assert not any("draft model" in note for note in model.info.notes)
    no_end = dict.fromkeys(model.loaded.models[0].tokenizer.end_tokens, -1e6)
    prompt = ASK * 80
    assert model.count_tokens(prompt) > 600
    told = {"seed": 1, "max_tokens": 60, "logit_bias": no_end, "temperature": 0.0}
    guessed = model.generate(prompt, **told)
    assert guessed.stats.drafted > 60
    model.speculation = Speculation(proposer="none")
    assert model.generate(prompt, **told).token_ids == guessed.token_ids


def test_a_state_that_cannot_be_taken_back_is_told_and_runs_plainly(
    opened: Load, tiny_models: TinyModels
) -> None:
    model = opened(str(tiny_models(recurrent=True)), proposer="ngram")
    assert model.info.exactness.startswith("bit-exact: "), "there is one width, and it was compared"
    assert "Plain decoding: this model's state cannot be taken back." in model.info.notes
    replies = []
    for speculation in (Speculation("none"), Speculation("ngram", draft_tokens=8)):
        model.speculation = speculation
        replies.append(model.generate(ASK, seed=1, max_tokens=40))
    assert replies[0].token_ids == replies[1].token_ids
    assert replies[1].stats.drafted == 0
    chat = model.chat(max_tokens=8, seed=1)
    chat.send("Hello")
    assert chat.send("And then?").stats.completion_tokens > 0


def test_a_recurrent_model_may_draft(opened: Load, tiny_models: TinyModels) -> None:
    """It reads the text anew each round, which is dear but right."""
    draft = str(tiny_models(recurrent=True))
    model = opened(draft=draft, proposer="draft", draft_tokens=3)
    fast = model.generate(ASK, seed=1, max_tokens=20)
    model.speculation = Speculation("none")
    assert model.generate(ASK, seed=1, max_tokens=20).token_ids == fast.token_ids
    assert fast.stats.drafted > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"zap": 1}, "load\\(\\) knows no setting 'zap'"),
        ({"proposer": "magic"}, "No proposer 'magic'"),
        ({"rule": "both"}, "No rule 'both'"),
        ({"draft_tokens": 65}, "draft_tokens is 65"),
        ({"context": 0}, "context is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"kv_type": "f8"}, "--kv-type f8 is unknown"),
        ({"flash_attention": "perhaps"}, "--flash-attention is 'perhaps'"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    opened: Load, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        opened(**settings)


def test_names_that_people_know_are_understood(opened: Load, tiny_models: TinyModels) -> None:
    draft = str(tiny_models(layers=2, noise=0.03))
    model = opened(draft_model=draft, num_draft_tokens=3)
    assert model.info.draft is not None
    assert model.speculation == Speculation("auto", draft_tokens=3)
    assert opened(prompt_lookup=True).speculation.proposer == "ngram"


def test_files_that_are_no_models_are_refused(opened: Load, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        opened(str(tmp_path / "nothing.gguf"))
    garbage = tmp_path / "garbage.gguf"
    garbage.write_bytes(b"GGUF" + b"\xff" * 100)
    with pytest.raises(ModelFileError, match=r"garbage\.gguf"):
        opened(str(garbage))


def test_a_load_that_fails_leaves_nothing_open(
    opened: Load, tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[LlamaModel] = []
    real = LlamaModel.session

    def session(self: LlamaModel, options: Any) -> Any:
        made.append(self)
        if len(made) == 2:
            raise OutOfMemory("no room for the draft")
        return real(self, options)

    monkeypatch.setattr(LlamaModel, "session", session)
    with pytest.raises(OutOfMemory, match="no room for the draft"):
        opened(draft=str(tiny_models(layers=2, noise=0.03)))
    assert [model._handle for model in made] == [None, None]


@pytest.mark.parametrize("place", ["edgespec.loading._earlier", "edgespec.desk.PromptEncoder"])
def test_what_fails_after_all_was_measured_leaves_nothing_open_either(
    opened: Load, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    made: list[LlamaModel] = []
    real = LlamaModel.session

    def session(self: LlamaModel, options: Any) -> Any:
        made.append(self)
        return real(self, options)

    def fails(*_: object) -> None:
        raise ModelFileError("too much")

    monkeypatch.setattr(LlamaModel, "session", session)
    monkeypatch.setattr(place, fails)
    with pytest.raises(ModelFileError, match="too much"):
        opened()
    assert [model._handle for model in made] == [None]


def test_a_drafter_that_was_asked_for_and_left_out_leaves_nothing_open(
    opened: Load, tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_out(pair: Any, *rest: Any) -> Loaded:
        made.append(replace(open_pair(replace(pair, draft=None), *rest), draft_left_out=True))
        return made[0]

    made: list[Loaded] = []
    monkeypatch.setattr("edgespec.api.open_pair", left_out)
    with pytest.raises(BadInput, match="--fit left the draft model"):
        opened(draft=str(tiny_models(layers=2, noise=0.03)), proposer="draft")
    (model,) = made[0].models
    assert isinstance(model, LlamaModel)
    assert model._handle is None


def test_a_backend_that_nobody_knows_is_named_with_those_there_are(opened: Load) -> None:
    with pytest.raises(NotFound, match=r"No backend 'cuda'; installed are: llamacpp"):
        opened(backend="cuda")


def test_without_any_backend_the_line_that_installs_one_is_told(
    opened: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Missing:
        @classmethod
        def probe(cls) -> None:
            raise BackendMissing("It needs a library. Install it with: pip install it")

    monkeypatch.setattr(backends, "_load", lambda entry: Missing)
    with pytest.raises(BackendMissing, match=r"No backend works here\. .*pip install it"):
        opened()


def test_a_library_that_is_not_installed_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(BackendMissing, match='pip install "llama-cpp-python>='):
        native.library.__wrapped__()
