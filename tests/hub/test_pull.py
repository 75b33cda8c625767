"""`edgespec pull`: says what it would fetch, asks, fetches, checks, records."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fake_backends import WITHOUT_LLAMA_CPP
from fake_hub import COMMIT, FakeHub, Fault
from scene import DRAFT, TARGET, Pull
from tiny_models import TinyModels

from edgespec.backends import installed
from edgespec.cli import recommend
from edgespec.errors import ModelFileError
from edgespec.models.catalogue import Build, Catalogue, Entry, Source, catalogue
from edgespec.models.gguf import read_header
from edgespec.models.hub import Hub
from edgespec.models.installed import find_installed


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgespec.cli.pull._can_answer", lambda: True)


def test_a_pull_fetches_both_halves_and_records_them(
    models: FakeHub, pull: Pull, client: Hub
) -> None:
    result = pull(TARGET, "--draft", DRAFT, "--yes")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{TARGET} is here. Next: edgespec chat {TARGET}\n"
    for told in (TARGET, DRAFT, "big-Q4_K_M.gguf", COMMIT[:8], "apache-2.0", "memory", "fetch"):
        assert told in result.stderr
    pair = find_installed(TARGET)
    assert pair is not None
    assert pair.draft is not None
    assert pair.target.commit == pair.draft.commit == COMMIT
    assert pair.target.files[0].read_bytes() == models.repos[TARGET].files["big-Q4_K_M.gguf"]
    assert pair.draft.files[0].read_bytes() == models.repos[DRAFT].files["small-Q8_0.gguf"]
    assert pair.target.files[0].is_relative_to(client.cache)


def test_what_was_pulled_is_found_by_its_name_without_the_hub(models: FakeHub, pull: Pull) -> None:
    from edgespec.models.pairs import resolve

    pull(f"{TARGET}:Q8_0", "--draft", DRAFT, "--yes")
    models.seen.clear()
    pair = resolve(f"{TARGET}:Q8_0", None, None)
    assert (pair.target.name, pair.draft and pair.draft.name) == (
        "big-Q8_0.gguf",
        "small-Q8_0.gguf",
    )
    assert models.seen == []


def test_the_second_pull_fetches_nothing_and_asks_nothing(models: FakeHub, pull: Pull) -> None:
    pull(TARGET, "--yes")
    sent = models.bytes_sent
    result = pull(TARGET)
    assert result.exit_code == 0
    assert "nothing: all is here" in result.stderr
    assert models.bytes_sent == sent


def test_what_is_missing_of_a_pair_comes_back_with_its_draft(models: FakeHub, pull: Pull) -> None:
    pull(TARGET, "--draft", DRAFT, "--yes")
    pair = find_installed(TARGET)
    assert pair is not None
    assert pair.draft is not None
    for file in pair.draft.files:
        file.unlink()
        file.parent.parent.parent.joinpath("blobs").rename(file.parent.parent.parent / "gone")
    result = pull(TARGET, "--yes")
    assert result.exit_code == 0, result.output
    again = find_installed(TARGET)
    assert again is not None
    assert again.complete
    assert again.draft == pair.draft


def test_a_pair_of_the_catalogue_is_pulled_by_its_name(
    models: FakeHub, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Source(TARGET, file="big-Q8_0.gguf", revision=COMMIT)
    build = Build("gguf", target, Source(DRAFT, quant="Q8_0"), ("https://example.org",))
    entry = Entry("big", "Big", "for tests", (build,), "mit")
    monkeypatch.setattr("edgespec.models.pulling.catalogue", lambda: Catalogue((entry,)))
    models.repos[TARGET].tags = ()
    told = json.loads(pull("Big", "--yes", "--json").stdout)
    assert told["pair"] == "big"
    assert told["licence"] == "mit"
    assert told["target"]["files"][0]["name"] == "big-Q8_0.gguf"
    assert told["draft"]["repo"] == DRAFT
    assert find_installed("big") is not None


def test_a_dry_run_tells_and_leaves_nothing_behind(
    models: FakeHub, pull: Pull, client: Hub
) -> None:
    result = pull(TARGET, "--draft", DRAFT, "--dry-run")
    assert result.exit_code == 0
    assert "target    org/big-GGUF at c0ffee00: big-Q4_K_M.gguf, F32" in result.stdout
    assert "main memory" in result.stdout
    assert not client.cache.exists()
    assert find_installed(TARGET) is None


def test_json_is_one_object_with_everything_that_was_decided(models: FakeHub, pull: Pull) -> None:
    result = pull(TARGET, "--draft", DRAFT, "--yes", "--json")
    told = json.loads(result.stdout)
    assert told["fetched"] is True
    assert told["target"]["commit"] == COMMIT
    assert told["licence"] == "apache-2.0"
    assert told["fits"] is True
    assert Path(told["draft"]["files"][0]["path"]).is_file()
    dry = json.loads(pull(TARGET, "--draft", DRAFT, "--dry-run", "--json").stdout)
    assert dry["fetched"] is False
    assert dry["bytes_to_fetch"] == 0


def test_without_a_terminal_nothing_is_fetched_unasked(
    models: FakeHub, pull: Pull, client: Hub
) -> None:
    result = pull(f"{TARGET}:q8_0", "--draft", DRAFT)
    assert result.exit_code == 2
    line = f"run: edgespec pull {TARGET}:q8_0 --draft {DRAFT} --yes"
    assert line in result.stderr
    assert not client.cache.exists()


@pytest.mark.usefixtures("at_a_terminal")
@pytest.mark.parametrize(("answer", "code"), [("n\n", 130), ("y\n", 0), ("\n", 0)])
def test_a_person_is_asked_after_the_plan_was_told(
    models: FakeHub, pull: Pull, answer: str, code: int
) -> None:
    result = pull(TARGET, input=answer)
    assert result.exit_code == code
    assert result.stderr.index("memory") < result.stderr.index("Fetch this?")
    assert (find_installed(TARGET) is not None) == (code == 0)


def test_an_incompatible_draft_is_found_before_anything_is_fetched(
    models: FakeHub, pull: Pull, client: Hub, tiny_models: TinyModels
) -> None:
    other = tiny_models(tokens=[f"w{i}" for i in range(384)]).read_bytes()
    models.add("org/other", {"other-Q8_0.gguf": other})
    result = pull(TARGET, "--draft", "org/other", "--yes")
    assert result.exit_code == 6
    assert "id 0 is" in result.stderr or "tokenizers" in result.stderr
    assert f"edgespec pull {TARGET} --draft none" in result.stderr
    assert not client.cache.exists()


def test_a_model_is_no_draft_for_itself(models: FakeHub, pull: Pull) -> None:
    result = pull(TARGET, "--draft", TARGET, "--yes")
    assert result.exit_code == 2
    assert "both target and draft" in result.stderr


def test_a_quantisation_that_is_not_there_names_those_that_are(models: FakeHub, pull: Pull) -> None:
    result = pull(f"{TARGET}:Q2_K", "--yes")
    assert result.exit_code == 3
    assert "org/big-GGUF: There is no quantisation 'Q2_K'; there are Q4_K_M, Q8_0." in result.stderr


def test_a_split_model_is_fetched_whole_and_judged_as_one(
    fake_hub: FakeHub, pull: Pull, tiny_models: TinyModels
) -> None:
    content = tiny_models(seed=2).read_bytes()
    names = [f"m-Q8_0-0000{n}-of-00002.gguf" for n in (1, 2)]
    fake_hub.add(TARGET, {name: content for name in names})
    result = pull(TARGET, "--yes")
    assert result.exit_code == 0, result.output
    pair = find_installed(TARGET)
    assert pair is not None
    assert [file.name for file in pair.target.files] == names


def test_only_the_header_is_read_before_the_yes(
    fake_hub: FakeHub, pull: Pull, tiny_models: TinyModels
) -> None:
    content = tiny_models(seed=3).read_bytes()
    fake_hub.add(TARGET, {"m-Q8_0.gguf": content + bytes(30_000_000)})
    assert pull(TARGET, "--dry-run").exit_code == 0
    assert 0 < fake_hub.bytes_sent < 8_000_000


def test_a_header_longer_than_a_connection_lasts_is_read_in_pieces(
    fake_hub: FakeHub, pull: Pull, tiny_models: TinyModels, waits: list[float]
) -> None:
    content = tiny_models(seed=3).read_bytes()
    fake_hub.add(TARGET, {"m-Q8_0.gguf": content})
    fake_hub.faults += [Fault(cut=700)] * 4
    result = pull(TARGET, "--dry-run")
    assert result.exit_code == 0, result.output
    ranges = [seen.headers.get("range") for seen in fake_hub.content_requests()]
    assert ranges[:3] == [None, "bytes=700-", "bytes=1400-"]


def test_a_connection_that_ends_behind_the_header_is_no_fault(
    fake_hub: FakeHub, pull: Pull, tiny_models: TinyModels, waits: list[float]
) -> None:
    content = tiny_models(seed=3).read_bytes() + bytes(3_000_000)
    fake_hub.add(TARGET, {"m-Q8_0.gguf": content})
    fake_hub.faults += [Fault(cut=len(content) - 2_900_000)]
    assert pull(TARGET, "--dry-run").exit_code == 0
    assert waits == []


def test_a_host_that_cannot_go_on_sends_the_header_from_its_start(
    fake_hub: FakeHub, pull: Pull, tiny_models: TinyModels, waits: list[float]
) -> None:
    fake_hub.add(TARGET, {"m-Q8_0.gguf": tiny_models(seed=3).read_bytes()})
    fake_hub.faults += [Fault(cut=700), Fault(ignore_range=True)]
    assert pull(TARGET, "--dry-run").exit_code == 0
    assert len(waits) == 1


@pytest.mark.parametrize("begins", [None, b"something else", b"version https://git-lfs"])
def test_a_damaged_header_is_the_fault_of_the_hub(
    fake_hub: FakeHub, pull: Pull, tiny_models: TinyModels, begins: bytes | None
) -> None:
    content = tiny_models(seed=3).read_bytes()[:3000] if begins is None else begins
    fake_hub.add(TARGET, {"m-Q8_0.gguf": content})
    result = pull(TARGET, "--yes")
    assert result.exit_code == 1
    assert "it is damaged on the hub, so choose another file" in result.stderr
    assert "download it again" not in result.stderr


def test_a_data_folder_that_cannot_be_written_is_noticed_before_the_fetch(
    models: FakeHub, pull: Pull, client: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("EDGESPEC_DATA_DIR", str(tmp_path / "file" / "data"))
    result = pull(TARGET, "--yes")
    assert result.exit_code == 1
    assert "where pulled pairs are recorded, cannot be written" in result.stderr
    assert not client.cache.exists()


def test_what_is_no_gguf_file_is_found_before_the_yes(fake_hub: FakeHub, pull: Pull) -> None:
    fake_hub.add(TARGET, {"m-Q8_0.gguf": b"PK\3\4" + bytes(5000)})
    result = pull(TARGET, "--yes")
    assert result.exit_code == 1
    assert "m-Q8_0.gguf is not a GGUF file" in result.stderr


def test_a_gated_repository_is_told_before_the_yes(models: FakeHub, pull: Pull) -> None:
    models.repos[TARGET].gated = True
    result = pull(TARGET)
    assert result.exit_code == 4
    assert "accept its terms at https://hf.co/org/big-GGUF" in result.stderr


def test_offline_is_exit_code_5(
    models: FakeHub, pull: Pull, client: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hub, "from_environment", lambda: replace(client, offline=True))
    result = pull(TARGET, "--yes")
    assert result.exit_code == 5
    assert "HF_HUB_OFFLINE" in result.stderr


def test_offline_what_is_in_the_cache_can_be_pulled(
    models: FakeHub, pull: Pull, client: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull(TARGET, "--yes")
    monkeypatch.setattr(Hub, "from_environment", lambda: replace(client, offline=True))
    models.seen.clear()
    result = pull(TARGET)
    assert result.exit_code == 0, result.output
    assert models.seen == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("no-such-pair", 3),
        ("org/no-such", 3),
        ("demo", 2),
        ("./file.gguf", 2),
        ("org/../x", 2),
        ("a\x1b]52;c;aGk=\x07/b", 2),
        ("", 2),
    ],
)
def test_a_name_that_leads_nowhere_is_one_clean_line(
    models: FakeHub, pull: Pull, name: str, code: int
) -> None:
    result = pull(name, "--yes")
    assert result.exit_code == code
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("edgespec: ")
    assert "\x1b" not in line
    assert "\x07" not in line


def test_what_the_hub_says_about_itself_reaches_no_terminal_raw(
    models: FakeHub, pull: Pull
) -> None:
    models.repos[TARGET].tags = ("license:\x1b]0;owned\x07mit\u202e",)
    result = pull(TARGET, "--dry-run")
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    assert "\x07" not in result.output
    assert "\u202e" not in result.output


def test_a_model_that_does_not_fit_is_told_with_what_would_help(
    models: FakeHub, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgespec.cli.pull_plan.available_memory", lambda: 0)
    monkeypatch.setattr("edgespec.loading.available_memory", lambda: 20 << 20)
    told = json.loads(pull(TARGET, "--dry-run", "--json").stdout)
    assert told["fits"] is False
    assert "too little" in told["memory_advice"]


def test_an_mlx_model_is_not_fetched_where_mlx_cannot_run(
    fake_hub: FakeHub, pull: Pull, client: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = replace(recommend.room_here(), formats=("gguf",), makeshift=())
    monkeypatch.setattr(recommend, "room_here", lambda: room)
    fake_hub.add(TARGET, {"config.json": b"{}", "model.safetensors": bytes(5000)})
    result = pull(TARGET, "--yes")
    assert result.exit_code == 3
    assert "comes as MLX only, which no backend here runs; name a GGUF version" in result.stderr
    assert not client.cache.exists()


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Mac with MLX and without llama.cpp."""
    monkeypatch.setattr("edgespec.backends.installed", lambda: WITHOUT_LLAMA_CPP)


@pytest.mark.usefixtures("mac")
def test_a_mac_without_llama_cpp_pulls_gguf_pairs_that_mlx_converts(
    fake_hub: FakeHub, pull: Pull, tiny_models: TinyModels
) -> None:
    entry = catalogue().find("qwen2.5-coder-1.5b")
    assert entry is not None
    (build,) = entry.builds
    fake_hub.add(build.target.repo, {build.target.file: tiny_models(seed=1).read_bytes()})
    result = pull(entry.name, "--yes")
    assert result.exit_code == 0, result.output
    assert find_installed(entry.name) is not None


@pytest.mark.usefixtures("mac")
def test_a_gguf_model_that_mlx_does_not_convert_is_told_before_it_is_fetched(
    fake_hub: FakeHub, pull: Pull, client: Hub, tiny_models: TinyModels
) -> None:
    content = tiny_models(seed=1, sliding_window=64).read_bytes() + bytes(30_000_000)
    fake_hub.add("org/gemma-GGUF", {"gemma-Q4_K_M.gguf": content})
    result = pull("org/gemma-GGUF", "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "GGUF files of 'gemma2' are not converted. Nothing was fetched" in result.stderr
    assert fake_hub.bytes_sent < 8_000_000
    assert not client.cache.exists()


def test_mlx_itself_turns_down_what_it_does_not_convert(
    monkeypatch: pytest.MonkeyPatch, tiny_models: TinyModels
) -> None:
    pytest.importorskip("mlx_lm")
    entries = {"mlx": installed()["mlx"]}
    monkeypatch.setattr("edgespec.backends.installed", lambda: entries)
    room = recommend.room_here()
    assert {*room.formats, *room.makeshift} == {"mlx", "gguf"}
    assert room.check is not None
    room.check(read_header(tiny_models(seed=1)))
    with pytest.raises(ModelFileError, match="is of the architecture 'gemma2'"):
        room.check(read_header(tiny_models(seed=1, sliding_window=64)))


def test_a_base_model_is_told_before_the_question(
    models: FakeHub, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = Build("gguf", Source(TARGET, quant="Q8_0"), None, ("https://example.org",))
    entries = [Entry(name, "T", "a", (build,), base=name == "base") for name in ("base", "other")]
    monkeypatch.setattr("edgespec.models.pulling.catalogue", lambda: Catalogue(tuple(entries)))
    assert "\nkind      a base model: it goes on with a text" in pull("base").stderr
    assert "a base model" not in pull("other").stderr
    told = [json.loads(pull(each.name, "--dry-run", "--json").stdout)["base"] for each in entries]
    assert told == [True, False]


def test_mlx_models_are_fetched_whole(
    fake_hub: FakeHub, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = replace(recommend.room_here(), formats=("gguf",), makeshift=("mlx",))
    monkeypatch.setattr(recommend, "room_here", lambda: room)
    files = mlx_files("a", "b")
    large = {"model.safetensors"}
    fake_hub.add(TARGET, {**files, "README.md": b"", "modeling.py": b"evil"}, large=large)
    result = pull(TARGET, "--yes")
    assert result.exit_code == 0, result.output
    pair = find_installed(TARGET)
    assert pair is not None
    assert sorted(file.name for file in pair.target.files) == sorted(files)
    assert pair.path(pair.target) == pair.target.files[0].parent


def test_mlx_vocabularies_are_compared_before_a_pair_is_recorded(
    fake_hub: FakeHub, pull: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = replace(recommend.room_here(), formats=("gguf",), makeshift=("mlx",))
    monkeypatch.setattr(recommend, "room_here", lambda: room)
    fake_hub.add(TARGET, mlx_files("a", "b"))
    fake_hub.add("org/other-MLX", mlx_files("b", "a"))
    result = pull(TARGET, "--draft", "org/other-MLX", "--yes")
    assert result.exit_code == 6
    assert "id 0 is 'a' in the target but 'b' in the draft" in result.stderr
    assert find_installed(TARGET) is None


def mlx_files(*tokens: str) -> dict[str, bytes]:
    """A model in a folder, with one tensor."""
    entry = b'{"w": {"dtype": "U8", "shape": [4096], "data_offsets": [0, 4096]}}'
    vocab = {text: n for n, text in enumerate(tokens)}
    return {
        "config.json": b'{"model_type": "llama"}',
        "model.safetensors": len(entry).to_bytes(8, "little") + entry + bytes(4096),
        "tokenizer.json": json.dumps({"model": {"type": "BPE", "vocab": vocab}}).encode(),
    }


def test_no_room_on_the_disk_is_told_before_the_question(
    models: FakeHub, pull: Pull, client: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr("edgespec.models.fetch.shutil.disk_usage", lambda _: free)
    result = pull(TARGET)
    assert result.exit_code == 1
    assert "make room, or move the cache with HF_HOME" in result.stderr
    assert not client.cache.exists()


def test_a_fetch_that_breaks_for_good_is_exit_code_5_and_no_pair_is_recorded(
    models: FakeHub, pull: Pull, waits: list[float]
) -> None:
    models.faults += [Fault(), *[Fault(cut=10)] * 9]
    result = pull(TARGET, "--yes")
    assert result.exit_code == 5
    assert find_installed(TARGET) is None
    assert "try 2 of 6" in result.stderr
