"""Everything edgespec raises on purpose.

EdgespecError            exit code 1
├── BadInput             2   an argument, setting or prompt that cannot work
├── NotFound             3   a file, pair or model that is not there
├── NoAccess             4   a host wants a licence, a token or a key, or a better one
├── NetworkError         5   a host cannot be reached, is not to be, or makes no sense
├── IncompatiblePair     6   target and draft do not share a vocabulary
├── ModelFileError       1   a file that is not what it claims to be
├── TemplateError        1   a chat template that cannot be rendered
├── OutOfMemory          1   what was asked for does not fit
├── BackendMissing       1   the library behind a backend is not installed
├── BackendFailed        1   that library reported a failure
│   └── CacheFull        1   no room in the cache for this pass
└── Cancelled            130 the user stopped it

A message says what happened, where, and what to do next, in one line.
"""

from __future__ import annotations


class EdgespecError(Exception):
    """Base of every error that edgespec raises on purpose."""

    exit_code = 1


class BadInput(EdgespecError):
    """An argument, setting or prompt that cannot work."""

    exit_code = 2


class NotFound(EdgespecError):
    """A file, pair or model that is not there."""

    exit_code = 3


class NoAccess(EdgespecError):
    """A hub or server that wants a licence, a token or a key, or does not accept the one given."""

    exit_code = 4


class NetworkError(EdgespecError):
    """A hub or server that cannot be reached, is not to be, or answers without sense."""

    exit_code = 5


class IncompatiblePair(EdgespecError):
    """Target and draft do not share a vocabulary."""

    exit_code = 6


class ModelFileError(EdgespecError):
    """A file that is not what it claims to be."""


class TemplateError(EdgespecError):
    """A chat template that cannot be rendered."""


class OutOfMemory(EdgespecError):
    """What was asked for does not fit into memory."""


class BackendMissing(EdgespecError):
    """The library behind a backend is not installed."""


class BackendFailed(EdgespecError):
    """The library behind a backend reported a failure."""


class CacheFull(BackendFailed):
    """The cache has no room for this pass; a smaller one may still fit."""


class Cancelled(EdgespecError):
    """The user stopped it."""

    exit_code = 130
