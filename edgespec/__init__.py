"""Makes a local language model answer faster without changing what it says."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgespec.api import (
        AnswerOptions,
        Chat,
        Explained,
        LoadOptions,
        Message,
        Model,
        ModelInfo,
        Reply,
        Speculation,
        Turn,
        load,
    )
    from edgespec.decoding.events import (
        Alternative,
        Committed,
        Event,
        Finished,
        Guess,
        Kind,
        PromptRead,
        Round,
        Stop,
    )
    from edgespec.decoding.sampling import Sampling
    from edgespec.decoding.stats import Stats
    from edgespec.errors import EdgespecError

__all__ = [
    "Alternative",
    "AnswerOptions",
    "Chat",
    "Committed",
    "EdgespecError",
    "Event",
    "Explained",
    "Finished",
    "Guess",
    "Kind",
    "LoadOptions",
    "Message",
    "Model",
    "ModelInfo",
    "PromptRead",
    "Reply",
    "Round",
    "Sampling",
    "Speculation",
    "Stats",
    "Stop",
    "Turn",
    "load",
]

_EVENTS = (
    "Alternative",
    "Committed",
    "Event",
    "Finished",
    "Guess",
    "Kind",
    "PromptRead",
    "Round",
    "Stop",
)
_HOMES = {
    **dict.fromkeys(_EVENTS, "edgespec.decoding.events"),
    "Sampling": "edgespec.decoding.sampling",
    "Stats": "edgespec.decoding.stats",
    "EdgespecError": "edgespec.errors",
}


def __getattr__(name: str) -> Any:
    """Public names are fetched when first used: `edgespec --version` must not wait for numpy."""
    if name not in __all__:
        raise AttributeError(f"module 'edgespec' has no attribute '{name}'")
    return getattr(import_module(_HOMES.get(name, "edgespec.api")), name)
