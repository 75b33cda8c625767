"""What a hub may call a file: only what every system takes for the same file."""

from __future__ import annotations

import pytest

from edgespec.errors import EdgespecError
from edgespec.models.hub_names import check_file


def refusal(name: str) -> str:
    """Why a file of this name is refused; empty where it is taken."""
    try:
        check_file("org/m", name)
    except EdgespecError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "name",
    [
        *("CON.gguf", "con.gguf", "Nul.tar.gguf", "aux .gguf", "COM1.gguf", "lpt\u00b9.gguf"),
        *("sub/PRN.gguf", "CON/m.gguf", "CONIN$.gguf"),
        *("a:b.gguf", "a<b.gguf", "a|b.gguf", "a?.gguf", "a*.gguf", 'a"b.gguf', "a\\b.gguf"),
        *("dir./m.gguf", "dir /m.gguf", "../m.gguf", "/m.gguf", "a//m.gguf", "./m.gguf"),
        *("a\tb.gguf", "a\u202eb.gguf", f"{'x' * 251}.gguf"),
    ],
    ids=ascii,
)
def test_a_name_that_some_system_cannot_have_is_refused(name: str) -> None:
    assert "unsafe name" in refusal(name)


@pytest.mark.parametrize("name", ["console.gguf", "m.con.gguf", "COM10.gguf", "auxiliary/m.gguf"])
def test_one_that_only_looks_so_is_taken(name: str) -> None:
    assert refusal(name) == ""
