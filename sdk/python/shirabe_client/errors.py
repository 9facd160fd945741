"""What goes wrong between a program and a Shirabe server, as exceptions.

Every one carries the server's own words: `code` (NOT_FOUND, …), `message` (what is wrong, and how
to mend it), `details` (the fields to blame) and `status` (HTTP; 0 if no answer came).
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Type

__all__ = [
    "Conflict",
    "Denied",
    "Detail",
    "EndedOtherwise",
    "Invalid",
    "NotFound",
    "ShirabeError",
    "Unavailable",
    "WaitTimeout",
]


class Detail(NamedTuple):
    """One part of a request that is to blame: a field or parameter, why, and where it stands."""

    field: str
    reason: str
    line: Optional[int] = None
    column: Optional[int] = None


class ShirabeError(Exception):
    """An error of the server, or on the way to it."""

    def __init__(
        self,
        message: str,
        code: str = "UNKNOWN",
        status: int = 0,
        details: Optional[List[Detail]] = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.details = details or []

    def __str__(self) -> str:
        return self.message if self.code == "UNKNOWN" else f"{self.code}: {self.message}"


class Invalid(ShirabeError):
    """The request, or the experiment in it, is not valid: `details` names each field."""


class NotFound(ShirabeError):
    """There is no such experiment, trial or attempt."""


class Conflict(ShirabeError):
    """It exists already, was changed meanwhile, or its state does not allow it."""


class Denied(ShirabeError):
    """The token is missing, unknown, or not allowed to do this."""


class Unavailable(ShirabeError):
    """The server cannot be reached, or cannot do it just now: try again later."""


class WaitTimeout(ShirabeError):
    """What was waited for has not come in time."""


class EndedOtherwise(WaitTimeout):
    """What was waited for will never come: the experiment has ended in another state."""


_BY_STATUS: Dict[int, Type[ShirabeError]] = {
    400: Invalid,
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    415: Invalid,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: WaitTimeout,
}


def from_reply(status: int, body: Any) -> ShirabeError:
    """The exception for a reply that is no success. A body that is not ours is shown as it is."""
    kind = _BY_STATUS.get(status, ShirabeError)
    if not isinstance(body, Mapping):
        return kind(str(body)[:500] or f"the server answered {status}", status=status)
    details = [
        Detail(str(d.get("field", "")), str(d.get("reason", "")), d.get("line"), d.get("column"))
        for d in body.get("details") or []
        if isinstance(d, Mapping)
    ]
    message = str(body.get("message", f"the server answered {status}"))
    return kind(message, str(body.get("code", "UNKNOWN")), status, details)
