"""Arguments as programs give them: errors name the argument and the value before anything is sent.
"""

from __future__ import annotations

import operator
from typing import Any, Dict, List

__all__ = ["mapping", "seconds", "texts", "whole"]


def whole(what: str, value: Any, fix: str = "") -> int:
    """A whole number of any library."""
    try:
        return int(operator.index(value))
    except TypeError:
        raise TypeError(f"{what} must be a whole number, not {value!r}{fix}") from None


def seconds(what: str, value: Any) -> float:
    try:
        if not isinstance(value, str):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{what} must be a number of seconds, not {value!r}")


def texts(what: str, values: Any) -> List[str]:
    """A list of texts; not one text, which would be the list of its characters."""
    try:
        found = [] if isinstance(values, str) else list(values)
        if not isinstance(values, str) and all(isinstance(text, str) for text in found):
            return found
    except TypeError:
        pass
    raise TypeError(f'{what} must be a list of texts, not {values!r}: write {what}=["…"]')


def mapping(what: str, value: Any, wanted: str) -> Dict[str, Any]:
    try:
        return dict(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be {wanted}, not {value!r}") from None
