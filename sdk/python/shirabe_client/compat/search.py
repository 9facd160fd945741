"""Katib's `search`: the space of one parameter of tune()."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Union

__all__ = ["categorical", "double", "int"]

_Number = Union[float, str]


def double(
    min: _Number, max: _Number, step: Optional[_Number] = None, distribution: Optional[str] = None
) -> Dict[str, Any]:
    """A number between min and max, both included. distribution: uniform, logUniform, normal or
    logNormal."""
    return _numeric("double", min, max, step, distribution)


def int(
    min: _Number, max: _Number, step: Optional[_Number] = None, distribution: Optional[str] = None
) -> Dict[str, Any]:
    """A whole number between min and max, both included."""
    return _numeric("int", min, max, step, distribution)


def categorical(list: Sequence[Any]) -> Dict[str, Any]:
    """One of these; the program gets it as text."""
    return {
        "parameterType": "categorical",
        "feasibleSpace": {"list": [str(value) for value in list]},
    }


def _numeric(
    kind: str, least: _Number, most: _Number, step: Optional[_Number], distribution: Optional[str]
) -> Dict[str, Any]:
    space = {"min": str(least), "max": str(most)}
    if step is not None:
        space["step"] = str(step)
    if distribution is not None:
        space["distribution"] = distribution
    return {"parameterType": kind, "feasibleSpace": space}
