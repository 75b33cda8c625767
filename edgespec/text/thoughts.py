"""The marks that models put around what they think before they answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# what opens a thought, and what closes it
THOUGHT_MARKS: Final[Mapping[str, str]] = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
}
