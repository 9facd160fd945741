"""Texts that come from outside, as a database and a file can hold them."""

from __future__ import annotations

__all__ = ["check_storable", "storable"]


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
