"""Small charts out of block characters; they need no colour."""

from __future__ import annotations

from collections.abc import Sequence

_LEVELS = " ▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_SMALLEST = 1  # eighths: what is there at all is seen


def spark(values: Sequence[float], width: int) -> str:
    """The latest `width` values as bars from zero; the greatest shown fills its cell."""
    # not Textual's Sparkline, whose bars start at the smallest value and so overstate changes
    latest = values[-width:] if width > 0 else ()
    most = max(latest, default=0.0)
    return "".join(_LEVELS[_eighths(value / most if most else 0.0)] for value in latest)


def bar(share: float, width: int) -> str:
    """A lying bar: `share` of `width` cells, from 0 to 1, the rest blank."""
    filled, part = divmod(_eighths(share, width), 8)
    text = "█" * filled + (_EIGHTHS[part] if part else "")
    return text.ljust(width)


def columns(shares: Sequence[float], height: int, width: int = 2) -> list[str]:
    """Standing bars, `width` cells each and a cell apart; `height` rows, the topmost first."""
    levels = [_eighths(share, height) for share in shares]
    rows = []
    for above in range(height - 1, -1, -1):
        cells = (_LEVELS[min(max(level - 8 * above, 0), 8)] for level in levels)
        rows.append(" ".join(cell * width for cell in cells))
    return rows


def _eighths(share: float, cells: int = 1) -> int:
    inside = min(max(share, 0.0), 1.0)
    return min(max(round(inside * cells * 8), _SMALLEST), cells * 8) if inside > 0 else 0
