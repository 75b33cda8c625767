"""Numbers of bytes in words, in the units that the hub uses."""

from __future__ import annotations


def size_text(n_bytes: int | None) -> str:
    """Such as "5.6 GB", "98 MB", "3 kB"; only of nothing it says 0."""
    if n_bytes is None:
        return "size unknown"
    if n_bytes >= 999_500_000:
        return f"{n_bytes / 1e9:.1f} GB"
    if n_bytes >= 999_500 or not n_bytes:
        return f"{n_bytes / 1e6:.0f} MB"
    return f"{max(1.0, n_bytes / 1e3):.0f} kB"
