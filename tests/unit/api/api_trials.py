"""What the tests of the API share."""

from __future__ import annotations

from collections.abc import Callable

from edgespec.api import Model

Load = Callable[..., Model]
"""Loads a tiny target, with settings of load()."""
