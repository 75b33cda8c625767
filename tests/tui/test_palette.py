"""The colours: told apart by everybody, and readable."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from textual.theme import Theme

from edgespec.tui.theme import DARK, LIGHT, token_colours

Colour = NDArray[np.float64]
THEMES = pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
# Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB
VISION = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
SEEN_BY = pytest.mark.parametrize("vision", list(VISION))
TEXT_ON_CODE = ("syntax-keyword", "syntax-name", "syntax-string", "syntax-number", "quiet")
TEXT = ("token-correction", "token-bonus", "token-rejected", *TEXT_ON_CODE)


def linear(colour: str) -> Colour:
    channels = np.array([int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Source: WCAG 2.2, relative luminance."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    low, high = sorted((float(linear(one) @ weights), float(linear(other) @ weights)))
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, vision: str) -> Colour:
    """CIE L*a*b* under D65, of what somebody with this vision sees."""
    seen = np.clip(VISION[vision] @ linear(colour), 0, 1)
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = to_xyz @ seen / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(one: str, other: str, vision: str) -> float:
    return float(np.linalg.norm(lab(one, vision) - lab(other, vision)))


def written(theme: Theme) -> str:
    assert theme.foreground is not None
    return theme.foreground


def ground(theme: Theme) -> str:
    assert theme.background is not None
    return theme.background


def text_colours(theme: Theme) -> Iterator[tuple[str, str, str]]:
    """Every colour of text with the backgrounds it stands on: name, colour, background."""
    colours = token_colours(theme)
    named = {name: getattr(theme, name) for name in ("primary", "error", "warning", "foreground")}
    for name, colour in {**named, **{name: colours[name] for name in TEXT}}.items():
        yield name, colour, ground(theme)
    for name, colour in {
        "foreground": written(theme),
        **{n: colours[n] for n in TEXT_ON_CODE},
    }.items():
        yield f"{name} on code", colour, colours["code"]
    yield "chosen token", ground(theme), colours["token-chosen"]


@THEMES
def test_every_colour_of_text_is_readable_on_its_background(theme: Theme) -> None:
    for name, colour, background in text_colours(theme):
        assert contrast(colour, background) >= 4.5, name
    assert contrast(written(theme), token_colours(theme)["token-accepted"]) >= 7


@THEMES
@SEEN_BY
def test_what_was_right_and_what_was_wrong_differ_for_everybody(theme: Theme, vision: str) -> None:
    colours = token_colours(theme)
    wrong = [colours["token-correction"], colours["token-rejected"]]
    right = [colours["token-accepted"], str(theme.primary)]
    for one, other in itertools.product(right, wrong):
        assert difference(one, other, vision) >= 25


@THEMES
@SEEN_BY
def test_a_tint_is_seen_on_the_background(theme: Theme, vision: str) -> None:
    colours = token_colours(theme)
    assert difference(colours["token-accepted"], ground(theme), vision) >= 8
    assert difference(colours["token-chosen"], ground(theme), vision) >= 40
    assert difference(colours["token-chosen"], colours["token-accepted"], vision) >= 25


def test_the_check_would_see_green_and_red() -> None:
    green, red = "#1f5c2e", "#6b1f1f"
    assert difference(green, red, "usual") > 40
    assert difference(green, red, "deuteranopia") < 15
