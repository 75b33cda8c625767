"""Which processor there is, and whether other programs keep it busy."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgespec.models import available
from edgespec.models.available import busy
from edgespec.models.processor import processor_identity, processor_name

X86 = """\
processor\t: {core}
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: {model}
model name\t: AMD EPYC
stepping\t: 1
cpu MHz\t\t: {mhz}
flags\t\t: fpu {flags}

"""
ARM = "processor\t: 0\nBogoMIPS\t: {mips}\nFeatures\t: fp asimd\nCPU part\t: {part}\n\n"


def _identity(folder: Path, text: str) -> str:
    file = folder / "cpuinfo"
    file.write_text(text)
    return processor_identity(file)


def test_processors_of_one_name_are_told_apart_by_model_and_by_what_they_compute(
    tmp_path: Path,
) -> None:
    known = [
        _identity(tmp_path, X86.format(core=0, model=model, mhz=2000, flags=flags))
        for model, flags in ((17, "avx2"), (1, "avx2"), (17, "avx2 avx512f"))
    ]
    known += [_identity(tmp_path, ARM.format(mips=50, part=part)) for part in ("0xd0b", "0xd49")]
    assert len(set(known)) == 5


def test_a_processor_is_the_same_at_another_clock_and_whatever_its_other_cores_say(
    tmp_path: Path,
) -> None:
    first = X86.format(core=0, model=17, mhz=2000, flags="avx2")
    faster = X86.format(core=0, model=17, mhz=3500, flags="avx2")
    other = X86.format(core=1, model=18, mhz=2000, flags="")
    assert _identity(tmp_path, first + other) == _identity(tmp_path, faster)
    slow, quick = (_identity(tmp_path, ARM.format(mips=mips, part="0xd0b")) for mips in (50, 99))
    assert slow == quick


def test_where_the_system_has_no_such_list_the_name_stands_for_it(tmp_path: Path) -> None:
    assert processor_identity(tmp_path / "none") == processor_name() != ""


class Machine:
    """Two cores: `used` of them by everybody, `own` by this process, while it is looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, used: float, own: float) -> None:
        self.used, self.own, self.now = used, own, 100.0
        monkeypatch.setattr(available.psutil, "cpu_percent", self.percent)
        monkeypatch.setattr(available.psutil, "cpu_count", lambda: 2)
        monkeypatch.setattr(available, "perf_counter", lambda: self.now)
        monkeypatch.setattr(available, "process_time", lambda: self.own * self.now)

    def percent(self, look_s: float) -> float:
        self.now += look_s
        return 100 * self.used / 2


@pytest.mark.parametrize(
    ("used", "own", "found"),
    [(0.2, 0.0, False), (0.8, 0.0, True), (1.0, 0.9, False), (2.0, 1.0, True), (0.5, 0.7, False)],
)
def test_only_what_other_programs_take_makes_the_machine_busy(
    used: float, own: float, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    Machine(monkeypatch, used, own)
    assert busy() is found
