"""What asking a study for a trial gives."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Union

from .slot import Slot

__all__ = ["Asked", "Ended", "Found"]


class Asked(NamedTuple):
    """A trial to run, and what telling about it needs."""

    number: int
    params: Dict[str, Any]
    attempt: int
    token: str
    last_step: int
    left_behind: Optional[Slot] = None  # its name, where a worker that died had it; to be freed


class Ended(NamedTuple):
    """There is nothing more to try, and why."""

    reason: str


Found = Union[Asked, Ended, None]
"""What asking gave: None while there is nothing yet."""
