"""Colours: blue for what was guessed right, orange for what was not.

Blue and orange stay apart for every common colour-vision deficiency, and no meaning hangs on
colour alone: corrections are underlined, bonus tokens bold, rejected guesses struck through; where
there are no colours of ours, accepted guesses are italic.
"""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="edgespec-dark",
    primary="#5aa9e6",
    secondary="#8fb8d8",
    accent="#f0a868",
    warning="#f0a868",
    error="#ff9e64",
    success="#5aa9e6",
    foreground="#d5dbe3",
    background="#11151b",
    surface="#11151b",
    panel="#1a2029",
    dark=True,
)
LIGHT = Theme(
    name="edgespec-light",
    primary="#1f6fb2",
    secondary="#3f6f96",
    accent="#a34d00",
    warning="#a34d00",
    error="#a34d00",
    success="#1f6fb2",
    foreground="#1f2730",
    background="#fbfaf7",
    surface="#fbfaf7",
    panel="#efede7",
    dark=False,
)

_DARK_TOKENS = {
    "token-accepted": "#0e3a5c",
    "token-correction": "#f5b27a",
    "token-bonus": "#ffffff",
    "token-rejected": "#c98f66",
    "token-chosen": "#f0a868",
    "quiet": "#8a94a3",
    "rule": "#323c49",
    "code": "#1a2029",
    "syntax-keyword": "#7fb8ec",
    "syntax-name": "#b4cfe8",
    "syntax-string": "#e5b88c",
    "syntax-number": "#f3cb98",
}
_LIGHT_TOKENS = {
    "token-accepted": "#cfe5f7",
    "token-correction": "#8f4300",
    "token-bonus": "#000000",
    "token-rejected": "#a05a22",
    "token-chosen": "#a34d00",
    "quiet": "#5f6975",
    "rule": "#cbc7bd",
    "code": "#efede7",
    "syntax-keyword": "#1a5e99",
    "syntax-name": "#2b4a68",
    "syntax-string": "#8a4200",
    "syntax-number": "#74460a",
}
# the terminal's own sixteen colours: what they look like is the user's choice
_ANSI_TOKENS = {
    "token-accepted": "ansi_blue",
    "token-correction": "ansi_yellow",
    "token-bonus": "ansi_default",
    "token-rejected": "ansi_yellow",
    "token-chosen": "ansi_default",
    "quiet": "ansi_default",
    "rule": "ansi_bright_black",
    "code": "ansi_default",
    "syntax-keyword": "ansi_default",
    "syntax-name": "ansi_default",
    "syntax-string": "ansi_default",
    "syntax-number": "ansi_default",
}


def token_colours(theme: Theme) -> dict[str, str]:
    """The variables that the chat's styles use, for any theme; a theme may define its own."""
    if theme.ansi:
        return _ANSI_TOKENS
    return _DARK_TOKENS if theme.dark else _LIGHT_TOKENS
