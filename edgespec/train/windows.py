"""How much of a shelf is in memory at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edgespec.errors import BadInput
from edgespec.models.shown import shown
from edgespec.train.records import NEAR, Census

_TOKEN_BYTES = NEAR * (4 + 2) + 4  # of an answer, in memory
_PROMPT_SHARE = 1.5  # for prompts, and for the lesson that is being made


def bytes_in_memory(census: Census) -> int:
    return int(census.tokens * _TOKEN_BYTES * _PROMPT_SHARE)


def windows(
    shards: Sequence[tuple[Path, int]], most_bytes: int, rng: np.random.Generator
) -> list[list[Path]]:
    """All shards in random order, in groups that fit into memory together.

    shards: with the bytes that each takes there. Raises: BadInput where one alone does not fit.
    """
    groups: list[list[Path]] = []
    used = most_bytes + 1
    for n in rng.permutation(len(shards)):
        path, size = shards[n]
        if size > most_bytes:
            raise BadInput(
                f"{shown(path.name)} takes {size >> 20} MiB, and --memory leaves"
                f" {max(0, most_bytes) >> 20} MiB for answers; give more."
            )
        if used + size > most_bytes:
            groups.append([])
            used = 0
        groups[-1].append(path)
        used += size
    return groups
