"""The catalogue: every entry can be used, and a wrong one is named."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from edgespec.errors import EdgespecError
from edgespec.models.catalogue import COMMIT, catalogue, is_repo, read_catalogue
from edgespec.models.names import Named, parse

ENTRIES = catalogue().entries

ONE = """
[[pair]]
name = "one"
title = "One"
about = "a pair"
[pair.gguf]
target = { repo = "org/one-GGUF", quant = "Q4_K_M", stated_gb = 2.5 }
draft = { repo = "org/small-GGUF", file = "small-q8_0.gguf", size = 500 }
evidence = ["https://example.org/one"]
verified = false
"""


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_entry_is_well_formed_and_says_who_names_its_repositories(entry) -> None:  # type: ignore[no-untyped-def]
    assert parse(entry.name) == Named(entry.name)
    assert catalogue().find(entry.name.upper()) is entry
    for build in entry.builds:
        assert build.evidence
        assert all(url.startswith("https://") for url in build.evidence)
        assert build.target != build.draft
        for source in build.sources:
            assert is_repo(source.repo)
            assert not source.file or source.file.endswith(".gguf")
            assert source.bytes is None or 10**7 < source.bytes < 10**11
            assert not build.verified or COMMIT.fullmatch(source.revision)
        if build.format == "mlx":
            assert not any(source.file or source.quant for source in build.sources)


def test_the_catalogue_spans_small_and_large_machines_with_and_without_draft_models() -> None:
    sizes = [b.bytes for entry in ENTRIES for b in entry.builds if b.bytes is not None]
    assert len(ENTRIES) >= 16
    assert min(sizes) < 2e9
    assert max(sizes) > 20e9
    assert {b.draft is None for entry in ENTRIES for b in entry.builds} == {True, False}
    assert {b.format for entry in ENTRIES for b in entry.builds} == {"gguf", "mlx"}


def test_models_that_only_go_on_with_texts_are_marked() -> None:
    assert {e.name for e in ENTRIES if e.base} == {"qwen2.5-coder-7b", "qwen2.5-coder-14b"}
    assert not any(e.base and "Instruct" in e.title for e in ENTRIES)


def test_a_verified_entry_has_every_size_and_revision() -> None:
    raw = tomllib.loads(files("edgespec.models").joinpath("pairs.toml").read_text("utf-8"))
    for table in raw["pair"]:
        for kind in {"gguf", "mlx"} & table.keys():
            if table[kind]["verified"]:
                sources = [table[kind][side] for side in ("target", "draft") if side in table[kind]]
                assert all("revision" in source and "size" in source for source in sources)


def test_sizes_add_up_only_where_all_are_known() -> None:
    (entry,) = read_catalogue(ONE).entries
    (build,) = entry.builds
    assert build.bytes == 2_500_000_500
    assert read_catalogue(ONE.replace(", size = 500", "")).entries[0].builds[0].bytes is None
    assert (entry.licence, entry.context) == (None, None)
    assert build.target.label == "org/one-GGUF:Q4_K_M"


def test_the_first_wanted_format_that_exists_is_chosen() -> None:
    (entry,) = read_catalogue(ONE).entries
    assert entry.build("mlx", "gguf") is entry.builds[0]
    assert entry.build("mlx") is None


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('name = "one"', 'name = "One two"', "small letters"),
        ('name = "one"', "", "small letters"),
        ('about = "a pair"', "", "its about is missing"),
        ("[pair.gguf]", "[pair.onnx]", "its key 'onnx'"),
        ("org/one-GGUF", "../one", "not a repository"),
        ("org/one-GGUF", "one", "not a repository"),
        ('quant = "Q4_K_M"', 'quant = "q4 k"', "not a revision or a quantisation"),
        ('quant = "Q4_K_M", ', "", "needs either a file or a quant"),
        ('quant = "Q4_K_M"', 'quant = "Q4_K_M", file = "a.gguf"', "either a file or a quant"),
        ("small-q8_0.gguf", "small.bin", "not a GGUF file"),
        ("size = 500", "size = -1", "not a number above 0"),
        ("size = 500", 'size = "big"', "not a number above 0"),
        ("size = 500", "bits = 4", "its key 'bits'"),
        ("verified = false", "verified = true", "lacks a revision or a size"),
        ("verified = false", "", "whether it is verified"),
        ('["https://example.org/one"]', "[]", "evidence is missing"),
        ('["https://example.org/one"]', '["a friend"]', "not a list of addresses"),
        ('title = "One"', 'title = "One"\ncontext = "long"', "not a number of tokens"),
        ('title = "One"', 'title = "One"\nbase = 1', "neither true nor false"),
        ("draft = {", "draft = 3 #", "lacks a target, or one that is a table"),
    ],
)
def test_a_wrong_entry_is_named_with_what_is_wrong(old: str, new: str, what: str) -> None:
    assert old in ONE
    with pytest.raises(EdgespecError, match=what) as caught:
        read_catalogue(ONE.replace(old, new))
    assert "\n" not in str(caught.value)


def test_a_name_that_comes_twice_is_wrong() -> None:
    with pytest.raises(EdgespecError, match="'one' cannot be used: the name comes twice"):
        read_catalogue(ONE + ONE)


def test_what_is_no_toml_is_said_in_one_line() -> None:
    with pytest.raises(EdgespecError, match="not valid TOML"):
        read_catalogue("[[pair]\nname")
