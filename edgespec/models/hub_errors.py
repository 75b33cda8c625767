"""What went wrong between us and the hub, in our words, and whether to try once more."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import sleep
from urllib.parse import urlsplit

import httpx2
from huggingface_hub.errors import (
    DisabledRepoError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import parse_ratelimit_headers  # type: ignore[attr-defined]

from edgespec.errors import EdgespecError, NetworkError, NoAccess, NotFound
from edgespec.models.hub_settings import is_usual
from edgespec.models.shown import shown

FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, OSError)
_WORTH_ANOTHER = (408, 425, 429, 500, 502, 503, 504)
_HUNG_UP = ("disconnected", "peer closed connection")
_TRIES = 6
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 120.0
_LOGIN = "'hf auth login'"


class Broken(httpx2.HTTPError):
    """A transfer that ended in a way that another try may cure."""


class Senseless(httpx2.HTTPError):
    """An answer that no hub gives, and that another try would not better."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of the hub, for messages."""

    endpoint: str
    repo: str
    revision: str
    has_token: bool

    @property
    def host(self) -> str:
        # without the name and password that may stand before it
        return shown(urlsplit(self.endpoint).netloc.rpartition("@")[2] or self.endpoint, 100)

    @property
    def to_check(self) -> str:
        """What to look at when no sensible answer comes."""
        return "the connection" if is_usual(self.endpoint) else "HF_ENDPOINT and the connection"


class Patience:
    """Waits longer each time, so often and so long; `renew` after real progress."""

    def __init__(self, asked: Asked, note: Callable[[str], None]) -> None:
        self._asked = asked
        self._note = note
        self._tries = 1

    def renew(self) -> None:
        self._tries = 1

    def wait(self, error: Exception) -> None:
        """Wait before the next try. Raises: what `error` means, when another would not help."""
        wanted_s = _wanted_wait_s(error)
        hopeless = self._tries >= _TRIES or (wanted_s or 0) > _LONGEST_WAIT_S
        if hopeless or not _is_passing(error):
            raise meaning(error, self._asked) from error
        wait_s = _FIRST_WAIT_S * 2 ** (self._tries - 1) if wanted_s is None else wanted_s
        self._tries += 1
        self._note(f"{_reason(error)}; try {self._tries} of {_TRIES} in {wait_s:.0f} s")
        sleep(wait_s)


def meaning(error: Exception, asked: Asked) -> EdgespecError:
    """The error that the user sees for one of FAILURES."""
    if isinstance(error, OfflineModeIsEnabled):
        return offline(asked.repo)
    if isinstance(error, HfHubHTTPError):
        return _refusal(error, asked) or _status_error(error, asked)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return EdgespecError("The disk is full; make room and run this again.")
    if isinstance(error, OSError) and error.errno and not isinstance(error, ConnectionError):
        reason, where = shown(error.strerror or error), shown(error.filename or "the cache")
        return EdgespecError(f"{where}: {reason}; check the cache's folder and its disk.")
    silent = isinstance(error, httpx2.TransportError)
    broke = "cannot be reached" if silent and _is_passing(error) else "did not deliver"
    return NetworkError(
        f"{asked.host} {broke} ({_reason(error)}); check {asked.to_check} and run this again."
    )


def _refusal(error: HfHubHTTPError, asked: Asked) -> EdgespecError | None:
    """What the hub itself gives as the reason; None where it gives none."""
    repo = shown(asked.repo, 100)
    match error:
        case GatedRepoError():  # first, since it is a RepositoryNotFoundError as well
            return NoAccess(
                f"{repo} is gated: accept its terms at https://hf.co/{repo}, then {_LOGIN}"
                " with that account and run this again."
            )
        case DisabledRepoError():
            return NoAccess(f"The hub has disabled {repo}; choose another repository.")
        case RevisionNotFoundError():
            return NotFound(
                f"{repo} has no revision '{shown(asked.revision, 100)}'; check the branch, tag or"
                " commit."
            )
        case RepositoryNotFoundError():
            return _no_repository(asked)
        case EntryNotFoundError():
            return NotFound(
                f"{repo} does not hold that file any more; run this again to see what it holds."
            )
    return None


def offline(repo: str) -> NetworkError:
    return NetworkError(
        f"{shown(repo, 100)} is not complete in the cache and HF_HUB_OFFLINE is set; unset it and"
        " run this again."
    )


def status_of(error: Exception) -> int | None:
    """The HTTP status behind an error; None where none came."""
    return error.response.status_code if isinstance(error, HfHubHTTPError) else None


def _status_error(error: HfHubHTTPError, asked: Asked) -> EdgespecError:
    repo, where, status = shown(asked.repo, 100), asked.host, error.response.status_code
    if status == 401 and asked.has_token:
        return NoAccess(f"{where} does not accept your token; renew it with {_LOGIN}.")
    if status in (401, 403):
        account = "your account may not" if asked.has_token else "without an account you may not"
        return NoAccess(
            f"{where} says that {account} read {repo} (status {status}); ask for access at"
            f" https://hf.co/{repo}, then {_LOGIN}."
        )
    if status == 429:
        wanted_s = _wanted_wait_s(error)
        when = f"in {wanted_s:.0f} s" if wanted_s else "in a few minutes"
        more = "" if asked.has_token else f", or {_LOGIN}, which allows more requests"
        return NetworkError(f"{where} turns down so many requests; run this again {when}{more}.")
    if status == 404:
        return _no_repository(asked)
    return NetworkError(f"{where} answered with status {status}; run this again later.")


def _no_repository(asked: Asked) -> NotFound:
    repo = shown(asked.repo, 100)
    return NotFound(
        f"{asked.host} shows no repository {repo}; check the spelling, or, if it is private, run"
        f" {_LOGIN} with an account that may read it."
    )


def _is_passing(error: Exception) -> bool:
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in _WORTH_ANOTHER
    if isinstance(error, httpx2.RemoteProtocolError):
        # the same class stands for answers that are no HTTP, which stay so
        return any(words in str(error) for words in _HUNG_UP)
    final = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)
    return isinstance(error, (Broken, httpx2.TransportError)) and not isinstance(error, final)


def _wanted_wait_s(error: Exception) -> float | None:
    """How long the server asks to wait, in seconds; None where it does not."""
    if not isinstance(error, HfHubHTTPError) or status_of(error) not in _WORTH_ANOTHER:
        return None
    headers: Mapping[str, str] = error.response.headers
    told = headers.get("retry-after", "").strip()
    if told.isdecimal():
        return float(told[:9])
    try:
        return max(0.0, (parsedate_to_datetime(told) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        pass
    limit = parse_ratelimit_headers(headers)
    return float(limit.reset_in_seconds) if limit and limit.remaining == 0 else None


def _reason(error: Exception) -> str:
    status = status_of(error)
    if status is not None:
        return f"status {status}"
    return shown(str(error) or type(error).__name__, 160)
