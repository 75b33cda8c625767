"""The demo runs in the number format that is faster here, decided once by measurement."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_models import TinyModels

from edgespec import demo, measuring
from edgespec.backends import BackendProbe, Placement
from edgespec.errors import BackendFailed, EdgespecError
from edgespec.loading import DEFAULT_CONTEXT
from edgespec.models.pairs import Pair
from edgespec.options import LoadOptions
from edgespec.planning.measure import Measurement


class Weights:
    """A loaded file that costs what its name says."""

    closed = 0

    def close(self) -> None:
        Weights.closed += 1


class Fake:
    """Writes copies and loads files; remembers both."""

    fails = False
    build = "for a CPU"

    def __init__(self) -> None:
        self.written: list[Path] = []
        self.loaded: list[Path] = []

    def probe(self) -> BackendProbe:
        return BackendProbe("fake", "1", (), gpu=False, build=self.build)

    def load(self, path: Path, placement: Placement) -> Weights:
        self.loaded.append(path)
        return Weights()

    def requantize(self, source: Path, target: Path, number_format: str) -> None:
        target.write_bytes(b"half a copy")
        if self.fails:
            raise BackendFailed("The disk is full.")
        assert number_format == "bf16"
        target.write_bytes(source.read_bytes())
        self.written.append(target)


class Machine:
    """Costs by format: seconds of a plain pass, and of one more row."""

    shipped, copied = (1.0, 0.9), (1.05, 0.3)
    at_rest = True

    def measured(self, model: object, path: Path, options: LoadOptions, report: object) -> object:
        plain, row = self.copied if "bf16" in path.name else self.shipped
        seconds = {n: plain + row * (n - 1) for n in (1, 2, 4, 8, 16)}

        class Measured:
            measurement = Measurement(
                seconds, ((1, 2, 4, 8, 16),), 0.0, context=48, sample=48, at_rest=self.at_rest
            )

        assert options.context == DEFAULT_CONTEXT, "as it will be, so that it is measured once"
        assert not options.strict
        return Measured()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(demo, "measured_session", made.measured)
    return made


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setattr(demo.backends, "find", lambda name: fake)
    return fake


@pytest.fixture
def shipped(tiny_models: TinyModels) -> Pair:
    return Pair("demo", tiny_models(layers=1))


def _chosen(pair: Pair, told: list[str] | None = None) -> Pair:
    report = (told if told is not None else []).append
    return demo.best_format(pair, LoadOptions(strict=True), report)


def test_cheaper_wide_passes_make_the_copy_the_demo(
    machine: Machine, backend: Fake, shipped: Pair, cache_of_the_test: Path
) -> None:
    told: list[str] = []
    chosen = _chosen(shipped, told)
    assert chosen.target != shipped.target
    assert chosen.target.is_relative_to(cache_of_the_test)
    assert chosen.target.read_bytes() == shipped.target.read_bytes()
    assert (chosen.name, chosen.draft) == ("demo", None)
    assert "bf16 copy" in told[0]
    assert not list(cache_of_the_test.rglob("*.part"))


def test_only_the_demo_and_drafters_trained_for_it_get_another_format(
    machine: Machine, backend: Fake, shipped: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "find_demo", lambda: shipped.target)
    trained = Pair("mine", shipped.target, demo.trained_dir() / "mine" / "drafter.gguf")
    elsewhere = Pair("a file", shipped.target, shipped.target.with_name("other.gguf"))
    weights = Pair("a file", shipped.target)
    assert _chosen(trained).target != shipped.target
    assert _chosen(elsewhere) == elsewhere
    assert _chosen(weights) == weights, "a file that is named is the file that answers"


def test_the_decision_is_made_once(machine: Machine, backend: Fake, shipped: Pair) -> None:
    Weights.closed = 0
    first = _chosen(shipped)
    assert (len(backend.written), len(backend.loaded), Weights.closed) == (1, 2, 2)
    told: list[str] = []
    assert _chosen(shipped, told) == first
    assert (len(backend.written), len(backend.loaded), told) == (1, 2, [])


def test_where_the_shipped_format_is_faster_it_stays_and_the_copy_goes(
    machine: Machine, backend: Fake, shipped: Pair, cache_of_the_test: Path
) -> None:
    machine.copied = (2.0, 0.9)
    assert _chosen(shipped) == shipped
    assert not list(cache_of_the_test.rglob("*.gguf"))
    assert _chosen(shipped) == shipped
    assert len(backend.written) == 1


def test_a_slower_plain_pass_may_be_worth_a_cheaper_wide_one(
    machine: Machine, backend: Fake, shipped: Pair
) -> None:
    machine.shipped, machine.copied = (1.0, 0.7), (1.6, 0.2)
    assert _chosen(shipped) != shipped


def test_a_slower_plain_pass_may_also_cost_too_much(
    machine: Machine, backend: Fake, shipped: Pair
) -> None:
    machine.shipped, machine.copied = (1.0, 0.4), (1.6, 0.2)
    assert _chosen(shipped) == shipped


def test_a_copy_that_could_not_be_written_leaves_nothing_behind(
    machine: Machine, backend: Fake, shipped: Pair, cache_of_the_test: Path
) -> None:
    backend.fails = True
    assert _chosen(shipped) == shipped, "it answers with what there is"
    left = [path for path in cache_of_the_test.rglob("*") if path.stat().st_size]
    assert not [path for path in left if path.is_file()]
    backend.fails = False
    assert _chosen(shipped) != shipped, "the next start tries again"


def test_a_copy_that_was_deleted_or_cut_is_made_again(
    machine: Machine, backend: Fake, shipped: Pair
) -> None:
    copy = _chosen(shipped).target
    copy.unlink()
    assert _chosen(shipped).target == copy
    copy.write_bytes(copy.read_bytes()[:2000])
    assert _chosen(shipped).target == copy
    assert len(backend.written) == 3


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"nonsense"])
def test_a_damaged_decision_is_made_again(
    machine: Machine, backend: Fake, shipped: Pair, content: bytes
) -> None:
    copy = _chosen(shipped).target
    (decision,) = copy.parent.glob("*.choice")
    decision.write_bytes(content)
    assert _chosen(shipped).target == copy
    assert decision.read_bytes() == b"bf16"


def test_what_other_programs_disturbed_is_decided_again_without_them(
    machine: Machine, backend: Fake, shipped: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "busy", lambda: True)
    machine.at_rest, machine.copied = False, (2.0, 0.9)
    assert _chosen(shipped) == shipped
    machine.copied = Machine.copied
    assert _chosen(shipped) == shipped
    assert len(backend.loaded) == 2, "while it stays busy, the first figures serve"
    monkeypatch.setattr(demo, "busy", lambda: False)
    assert _chosen(shipped) != shipped
    machine.at_rest = True
    assert _chosen(shipped) != shipped
    machine.copied = (2.0, 0.9)
    assert _chosen(shipped) != shipped, "this was decided at rest"
    assert len(backend.written) == 1, "the copy was kept until then"


def test_two_machines_that_share_a_cache_decide_each_for_itself(
    machine: Machine, backend: Fake, shipped: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "processor_identity", lambda: "one")
    assert _chosen(shipped) != shipped
    monkeypatch.setattr(measuring, "processor_identity", lambda: "another")
    machine.copied = (2.0, 0.9)
    assert _chosen(shipped) == shipped
    monkeypatch.setattr(measuring, "processor_identity", lambda: "one")
    assert _chosen(shipped) != shipped


def test_another_build_of_the_backend_decides_for_itself(
    machine: Machine, backend: Fake, shipped: Pair
) -> None:
    assert _chosen(shipped) != shipped
    backend.build, machine.copied = "for a GPU", (2.0, 0.9)
    assert _chosen(shipped) == shipped
    backend.build = Fake.build
    assert _chosen(shipped) != shipped
    assert len(backend.loaded) == 4, "each decided once"


def test_a_decision_that_cannot_be_kept_serves_this_start(
    machine: Machine, backend: Fake, shipped: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise EdgespecError("No room is left.")

    monkeypatch.setattr(demo, "write_atomically", full)
    told: list[str] = []
    assert _chosen(shipped, told) != shipped
    assert told[-1] == "the choice of a number format is not kept: No room is left."


def test_a_cache_that_cannot_be_used_is_done_without(
    machine: Machine, backend: Fake, shipped: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("EDGESPEC_CACHE_DIR", str(tmp_path / "file"))
    assert _chosen(shipped) == shipped


def test_other_pairs_are_left_as_they_are(machine: Machine, backend: Fake, shipped: Pair) -> None:
    other = Pair("mine", shipped.target)
    assert _chosen(other) is other
    assert not backend.written
    assert not backend.loaded


def test_another_file_is_another_decision(
    machine: Machine, backend: Fake, shipped: Pair, tiny_models: TinyModels
) -> None:
    first = _chosen(shipped)
    second = _chosen(Pair("demo", tiny_models(layers=2)))
    assert first.target != second.target
    assert len(backend.written) == 2


def test_a_backend_that_writes_no_other_format_runs_the_demo_as_it_is(
    monkeypatch: pytest.MonkeyPatch, shipped: Pair
) -> None:
    class ReadsOnly:
        @classmethod
        def load(cls, path: Path, placement: Placement) -> Weights:
            raise AssertionError("nothing has to be measured")

    monkeypatch.setattr(demo.backends, "find", lambda name: ReadsOnly)
    assert _chosen(shipped) == shipped
