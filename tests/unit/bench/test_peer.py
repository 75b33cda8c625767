"""Another program, asked over real HTTP: which one it is, what it is asked, its figures."""

from __future__ import annotations

import pytest
from fake_peer import (
    EVENTS,
    HI,
    Canned,
    Serve,
    as_events,
    as_json,
    as_lines,
    asked,
    delta,
    ending,
    llama_server,
    ollama,
    other,
)

from edgespec.bench.dialects import Piece
from edgespec.bench.peer import Peer
from edgespec.errors import BadInput

# --- which program it is -----------------------------------------------------------------------


def test_llama_server_is_known_by_its_properties_alone(serve: Serve) -> None:
    fake = serve(llama_server())
    peer = Peer(fake.url)
    assert peer.kind == "llama-server"
    assert peer.name == f"llama-server@{fake.url.removeprefix('http://')}"
    assert fake.asked == ["/props"]


def test_ollama_is_asked_for_its_loaded_model_and_no_more(serve: Serve) -> None:
    fake = serve(ollama(as_lines({"message": {"content": "Hi"}, "done": True})))
    peer = Peer(fake.url)
    peer.answer(HI, 16)
    assert peer.kind == "ollama"
    assert fake.asked == ["/props", "/api/version", "/api/ps", "/api/chat"]
    assert fake.bodies[0]["model"] == "llama3"


def test_a_named_model_of_ollama_is_not_looked_for(serve: Serve) -> None:
    fake = serve(ollama(as_lines({"message": {"content": "Hi"}, "done": True})))
    Peer(fake.url, model="qwen3:8b").answer(HI, 16)
    assert fake.asked == ["/props", "/api/version", "/api/chat"]
    assert fake.bodies[0]["model"] == "qwen3:8b"


@pytest.mark.parametrize("end", ["#qwen/qwen3:8b", "/#qwen/qwen3:8b", "/v1#qwen/qwen3:8b"])
def test_a_model_may_be_named_behind_the_address(serve: Serve, end: str) -> None:
    fake = serve(other("a", "b"))
    peer = Peer(fake.url + end)
    peer.answer(HI, 16)
    assert fake.bodies[0]["model"] == "qwen/qwen3:8b"
    assert peer.name == f"openai@{fake.url.removeprefix('http://')}#qwen/qwen3:8b"


@pytest.mark.parametrize("loaded", [(), ("a", "b")])
def test_ollama_without_one_loaded_model_must_be_told_which(
    serve: Serve, loaded: tuple[str, ...]
) -> None:
    with pytest.raises(BadInput, match=r"offers 2 models; .* as in \S+#llama3: llama3, qwen3\.$"):
        Peer(serve(ollama(as_lines(), loaded)).url)


def test_a_server_with_one_model_is_asked_for_that(serve: Serve) -> None:
    fake = serve(other("qwen"))
    peer = Peer(fake.url)
    peer.answer(HI, 16)
    assert (peer.kind, fake.bodies[0]["model"]) == ("openai", "qwen")


def test_a_server_that_says_200_to_everything_is_not_taken_for_another(serve: Serve) -> None:
    nothing = as_json({"error": "Unexpected endpoint or method."})
    fake = serve({"/props": nothing, "/api/version": nothing} | other("qwen"))
    assert Peer(fake.url).kind == "openai"


@pytest.mark.parametrize(
    ("models", "complaint"),
    [((), "offers no model; load one"), (("a", "b"), r"offers 2 models; .*#a: a, b\.$")],
)
def test_a_server_with_no_or_several_models_says_so(
    serve: Serve, models: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        Peer(serve(other(*models)).url)


def test_a_label_takes_the_place_of_kind_and_address(serve: Serve) -> None:
    assert Peer(serve(llama_server()).url, label="draft:3\x1b[2J").name == "draft:3\\x1b[2J"


# --- what is asked -----------------------------------------------------------------------------


def test_the_question_is_greedy_streamed_and_keeps_the_prompt_cache_out(serve: Serve) -> None:
    fake = serve(llama_server())
    asked(fake)
    assert fake.bodies == [
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
            ],
            "max_tokens": 16,
            "seed": 1,
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "cache_prompt": False,
            "repeat_penalty": 1.0,
        }
    ]


def test_ollama_gets_its_settings_as_options(serve: Serve) -> None:
    fake = serve(ollama(as_lines({"message": {"content": "Hi"}, "done": True})))
    Peer(fake.url).answer(HI, 16, seed=7, temperature=0.5)
    assert fake.bodies[0]["options"] == {
        "num_predict": 16,
        "seed": 7,
        "temperature": 0.5,
        "repeat_penalty": 1.0,
    }


def test_no_two_questions_to_vllm_share_a_prefix_cache(serve: Serve) -> None:
    fake = serve(other("qwen", owner="vllm"))
    peer = Peer(fake.url)
    peer.answer(HI, 16)
    peer.answer(HI, 16)
    salts = [body["cache_salt"] for body in fake.bodies]
    assert len(set(salts)) == 2
    assert all(salts)


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
def test_an_address_may_be_given_as_programs_print_it(serve: Serve, end: str) -> None:
    fake = serve(llama_server())
    assert Peer(fake.url + end).answer(HI, 16).text == "Hello"
    assert Peer(fake.url.removeprefix("http://") + end).kind == "llama-server"


def test_a_proxy_of_the_environment_does_not_stand_in_between(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert asked(serve(llama_server())).text == "Hello"


# --- figures -----------------------------------------------------------------------------------


def test_the_clock_of_llama_server_is_believed_and_starts_behind_the_first_token(
    serve: Serve,
) -> None:
    timings = {"predicted_n": 101, "predicted_ms": 2000.0, "prompt_n": 9, "prompt_ms": 50.0}
    usage = {"prompt_tokens": 12, "completion_tokens": 101}
    end = {"choices": [], "usage": usage, "timings": timings}
    answer = asked(serve(llama_server(as_events(delta("Hel"), delta("lo"), ending(), end))))
    assert (answer.text, answer.tokens, answer.prompt_tokens) == ("Hello", 101, 12)
    assert answer.tokens_per_second == pytest.approx(50.0)
    assert answer.seconds_to_first_token > 0


def test_the_clock_of_ollama_is_believed_and_starts_behind_the_first_token(serve: Serve) -> None:
    lines = [
        {"message": {"content": "", "thinking": "Hm. "}, "done": False},
        {"message": {"content": "Hi"}, "done": False},
        {
            "message": {"content": ""},
            "done": True,
            "eval_count": 21,
            "eval_duration": 4_000_000_000,
            "prompt_eval_count": 12,
        },
    ]
    answer = asked(serve(ollama(as_lines(*lines))))
    assert (answer.text, answer.tokens, answer.prompt_tokens) == ("Hm. Hi", 21, 12)
    assert answer.tokens_per_second == pytest.approx(5.0)


def test_without_a_clock_of_its_own_tokens_are_those_of_the_usage(serve: Serve) -> None:
    usage = {"usage": {"prompt_tokens": 12, "completion_tokens": 40}, "choices": []}
    chunks = as_events(*[delta("Hel")] * 9, ending(), usage)
    answer = asked(serve(other("qwen", answer=chunks)))
    assert answer.tokens == 40
    assert answer.tokens_per_second is not None


@pytest.mark.parametrize(
    ("pieces", "tokens", "speed"),
    [
        (["four"] * 10, 40, 4.0),  # each piece holds four tokens, the first one too
        (["four", *["sixteen letters."] * 9], 37, 4.0),  # the first holds one, others four
        (["Certainly! ", *["it "] * 9], 10, 1.0),  # one each, however long the first is
        (["it ", *["Certainly! "] * 9], 10, 1.0),
        (["a long beginning " * 9, *["it "] * 9], 12, 1.0),  # others hold one each at least
    ],
)
def test_our_clock_counts_no_token_that_came_before_it_started(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, pieces: list[str], tokens: int, speed: float
) -> None:
    now, read = [0.0], Peer._piece

    def a_second_later(peer: Peer, line: str) -> Piece:
        now[0] += 1.0
        return read(peer, line)

    monkeypatch.setattr(Peer, "_piece", a_second_later)
    monkeypatch.setattr("edgespec.bench.peer.perf_counter", lambda: now[0])
    usage = {"usage": {"completion_tokens": tokens}, "choices": []}
    chunks = as_events(*map(delta, pieces), ending(), usage)
    answer = asked(serve(other("qwen", answer=chunks)))
    assert answer.tokens == tokens
    assert answer.tokens_per_second == pytest.approx(speed)


def test_a_burst_of_a_few_pieces_without_a_clock_has_no_speed(serve: Serve) -> None:
    usage = {"usage": {"completion_tokens": 400}, "choices": []}
    chunks = as_events(*[delta("Hel")] * 3, ending(), usage)
    answer = asked(serve(other("qwen", answer=chunks)))
    assert (answer.tokens, answer.tokens_per_second) == (400, None)


def test_without_any_figures_tokens_are_the_pieces_that_came(serve: Serve) -> None:
    answer = asked(serve(other("qwen")))
    assert (answer.tokens, answer.prompt_tokens) == (2, None)


def test_one_token_has_no_speed(serve: Serve) -> None:
    timings = {"predicted_n": 1, "predicted_ms": 0.001}
    answer = asked(serve(llama_server(as_events(delta("Hi"), ending(timings=timings)))))
    assert (answer.tokens, answer.tokens_per_second) == (1, None)


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_what_a_model_thinks_belongs_to_its_answer(serve: Serve, key: str) -> None:
    answer = asked(serve(llama_server(as_events(delta("Hm. ", key), delta("Hi"), ending()))))
    assert (answer.text, answer.tokens) == ("Hm. Hi", 2)


@pytest.mark.parametrize(
    "timings",
    [
        {"predicted_n": "many", "predicted_ms": "long"},
        {"predicted_n": -3, "predicted_ms": float("nan")},
        {"predicted_n": 2.5, "predicted_ms": float("inf")},
        {"predicted_n": None, "predicted_ms": -1},
        {"predicted_n": 10**400, "predicted_ms": 10**400},
        {"predicted_n": True, "predicted_ms": 1e-300},
        {"predicted_n": 10**12, "predicted_ms": 1e300},
        [],
    ],
)
def test_figures_that_cannot_be_are_measured_here_instead(serve: Serve, timings: object) -> None:
    chunks = as_events(delta("Hel"), delta("lo"), ending(timings=timings))
    answer = asked(serve(llama_server(chunks)))
    assert answer.tokens == 2
    assert answer.tokens_per_second is None or answer.tokens_per_second > 0


def test_signs_of_life_between_pieces_are_not_text(serve: Serve) -> None:
    body = b': keepalive 1/2\n\ndata: {"choices": []}\n\n' + as_events(delta("Hi"), ending()).body
    answer = asked(serve(llama_server(Canned(body, kind=EVENTS))))
    assert (answer.text, answer.tokens) == ("Hi", 1)


def test_halves_of_characters_are_put_together_or_replaced(serve: Serve) -> None:
    chunks = as_events(delta("\ud83d"), delta("\ude00 \udc00"), ending())
    assert asked(serve(llama_server(chunks))).text == "\U0001f600 \ufffd"
