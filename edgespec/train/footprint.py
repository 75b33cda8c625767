"""What this process takes of main memory, and giving back what it holds without need."""

from __future__ import annotations

import ctypes
import gc

import psutil


def takes_more_than(most_bytes: int) -> bool:
    """Whether it does, even once everything was given back that is not in use."""
    if _taken() <= most_bytes:
        return False
    gc.collect()
    _give_back()
    return _taken() > most_bytes


def _taken() -> int:
    taken: int = psutil.Process().memory_info().rss
    return taken


def _give_back() -> None:
    """glibc keeps what was freed; after steps of many lengths that is more than what is used."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # another C library, or another system
        return
