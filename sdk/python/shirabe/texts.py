"""Texts that come from outside, as a database and a file can hold them."""

from __future__ import annotations

import json
from typing import Any

from shirabe_client.transport import python_number

__all__ = ["as_json", "check_storable", "storable"]


def as_json(value: Any) -> Any:
    """The value as a file of JSON gives it back: a copy, with the numbers of NumPy and others as
    Python's. TypeError for what JSON has not."""
    try:
        return json.loads(json.dumps(value, default=python_number))
    except Exception as error:  # a number of another library may raise any
        raise TypeError(str(error)) from None


def storable(text: str) -> str:
    """The text with what no message and no file can hold, NUL and halves of characters, as escapes:
    names of files and output of other programs get into texts of exceptions."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def check_storable(what: str, name: str) -> None:
    """ValueError for a name that cannot be stored as it is."""
    if storable(name) != name:
        raise ValueError(
            f"{what}: the name {name!r} holds NUL or half a character, which cannot be stored: "
            "rename it"
        )
