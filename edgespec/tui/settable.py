"""The settings of an answer that may be changed while one chats, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from edgespec.errors import BadInput
from edgespec.models.shown import shown
from edgespec.options import AnswerOptions

Value = float | int | bool
DEFAULT = "default"
_HIGHEST = 2**63 - 1
_SWITCH = {"on": True, "off": False}


@dataclass(frozen=True, slots=True)
class Setting:
    """One that `/set` knows. kind: int, float, or bool for on and off."""

    name: str
    help: str
    kind: type[int] | type[float] | type[bool]
    sampling: bool = True


SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("temperature", "0 always takes the likeliest token", float),
        Setting("top_k", "keep the K likeliest tokens; 0 keeps all", int),
        Setting("top_p", "keep the likeliest tokens that hold the share P together", float),
        Setting("min_p", "drop tokens below P times the likeliest one's probability", float),
        Setting("repeat_penalty", "divides the score of recent tokens; 1 is off", float),
        Setting("presence_penalty", "taken from the score of recent tokens; 0 is off", float),
        Setting("frequency_penalty", "the same for each time a token appeared; 0 is off", float),
        Setting("seed", "the same seed gives the same answer", int),
        Setting("max_tokens", "longest answer", int, sampling=False),
        Setting("reasoning", "whether a reasoning model thinks first", bool, sampling=False),
    )
}


def checked(name: str, written: str) -> Value | None:
    """The value that was written, if it may be one; None for the word "default".

    Raises: BadInput with the names there are, or what the setting allows.
    """
    setting = SETTINGS.get(name)
    if setting is None:
        raise BadInput(f"no setting '{shown(name, 40)}'; there are: {', '.join(SETTINGS)}")
    if written.lower() == DEFAULT:
        return None
    value = _read(setting, written)
    changed(AnswerOptions(), name, value)
    return value


def changed(options: AnswerOptions, name: str, value: Value | None) -> AnswerOptions:
    """The options with one setting changed; None takes it back to what it is by default.

    Raises: BadInput when the setting does not allow the value.
    """
    if not SETTINGS[name].sampling:
        change: dict[str, Any] = {name: value}
        return replace(options, **change)
    overrides = {key: kept for key, kept in options.overrides.items() if key != name}
    if value is not None:
        from edgespec.decoding.sampling import Sampling  # numpy: not before the first paint

        override: dict[str, Any] = {name: value}
        Sampling(**override)  # raises for a value that is not allowed
        overrides[name] = value
    return replace(options, overrides=overrides)


def value_of(options: AnswerOptions, name: str) -> Value | None:
    """What a setting is set to; None = what it is by default."""
    if SETTINGS[name].sampling:
        return options.overrides.get(name)
    value: Value | None = getattr(options, name)
    return value


def in_words(options: AnswerOptions, name: str) -> str:
    """One line, such as "temperature 0.3"."""
    value = value_of(options, name)
    return f"{name} {DEFAULT if value is None else _written(value)}"


def _read(setting: Setting, written: str) -> Value:
    if setting.kind is bool:
        if written.lower() not in _SWITCH:
            raise BadInput(f"{setting.name} is on, off or {DEFAULT}, not '{shown(written, 40)}'")
        return _SWITCH[written.lower()]
    try:
        value: Value = setting.kind(written)
    except (ValueError, OverflowError):
        kind = "whole number" if setting.kind is int else "number"
        raise BadInput(
            f"{setting.name} is a {kind} or {DEFAULT}, not '{shown(written, 40)}'"
        ) from None
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInput(f"{setting.name} is {written}; give a finite number")
    # no setting goes higher, and a number of hundreds of digits is no float in an error
    least = 0 if setting.name == "seed" else -_HIGHEST
    if not least <= value <= _HIGHEST:
        raise BadInput(f"{setting.name} must be a number from {least} to {_HIGHEST}")
    return value


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
