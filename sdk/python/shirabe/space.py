"""The values that a search may try, as shirabe.optimize takes them.

{"lr": shirabe.log(1e-5, 1e-1),       # a float, uniform in its logarithm
 "dropout": shirabe.float(0, 0.5),
 "layers": shirabe.int(1, 8),         # both ends are tried
 "batch": [16, 32, 64],               # numbers in an order
 "opt": ["sgd", "adam"]}              # categories: any objects of Python
"""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .texts import check_storable, storable

Json = Dict[str, Any]

__all__ = ["Choice", "Parameter", "Range", "choice", "float_", "int_", "log", "read_space"]


class Range:
    """Numbers from low to high, both included: kind "double" or "int"; in steps from low, if there
    is one; uniform in the logarithm with log."""

    def __init__(self, kind: str, low: Any, high: Any, step: Any = None, log: bool = False) -> None:
        self.kind, self.log = kind, bool(log)
        self.low, self.high = _bound(kind, "low", low), _bound(kind, "high", high)
        self.step = None if step is None else _bound(kind, "step", step)
        shown = repr(self)
        if self.low > self.high:
            raise ValueError(f"{shown}: low is greater than high: swap them")
        if self.log and self.low <= 0:
            raise ValueError(f"{shown}: a logarithm needs low > 0, not {self.low!r}")
        if self.step is not None and self.step <= 0:
            raise ValueError(f"{shown}: step must be greater than 0")
        if self.step is not None and self.log:
            raise ValueError(f"{shown}: step and log do not go together: leave one out")

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step={self.step!r}"
        if self.log and self.kind == "double":
            return f"log({self.low!r}, {self.high!r})"
        name = "float" if self.kind == "double" else "int"
        return f"{name}({self.low!r}, {self.high!r}{step}{', log=True' if self.log else ''})"

    def feasible(self) -> Json:
        """As Katib's feasibleSpace."""
        space = {"min": repr(self.low), "max": repr(self.high)}
        if self.step is not None:
            space["step"] = repr(self.step)
        if self.log:
            space["distribution"] = "logUniform"
        return space

    def decode(self, value: Any) -> Any:
        """What the server says, a number or text, as the function gets it."""
        return int(value) if self.kind == "int" else float(value)

    def encode(self, value: Any) -> Any:
        """As the server has it. ValueError if it is none of the values."""
        number = _bound(self.kind, "value", value)
        if not self.low <= number <= self.high:
            raise ValueError(f"{value!r} is not in {self!r}")
        return number


class Choice:
    """One of these values. Ordered: numbers of which neighbours are alike; else categories."""

    def __init__(self, values: Sequence[Any], ordered: Optional[bool] = None) -> None:
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
            raise TypeError(f"choice takes a list of values, not {_short(values)}")
        if not values:
            raise ValueError("choice has no values: give at least one")
        self.values = list(values)
        plain = all(_is_number(v) and math.isfinite(v) for v in self.values)
        distinct = plain and len({float(v) for v in self.values}) == len(self.values)
        if plain and not distinct:
            raise ValueError(f"{self!r}: a number is there twice: remove one")
        if ordered and not distinct:
            raise ValueError(f"{self!r}: only numbers that differ have an order")
        self.ordered = distinct if ordered is None else ordered
        self.kind = "discrete" if self.ordered else "categorical"
        self.texts = [repr(float(v)) for v in values] if self.ordered else _texts(self.values)
        if len(set(self.texts)) < len(self.texts):
            raise ValueError(f"{self!r}: a value is there twice: remove one")

    def __repr__(self) -> str:
        return f"choice([{', '.join(_short(v) for v in self.values[:20])}])"

    def feasible(self) -> Json:
        return {"list": self.texts}

    def place(self, value: Any) -> int:
        """Of what decode() gave."""
        return next(place for place, mine in enumerate(self.values) if mine is value)

    def decode(self, value: Any) -> Any:
        if self.ordered:
            return min(self.values, key=lambda v: abs(float(v) - float(value)))
        return self.values[self.texts.index(str(value))]

    def encode(self, value: Any) -> Any:
        for mine, text in zip(self.values, self.texts):
            if mine is value or (type(mine) is type(value) and mine == value):
                return float(mine) if self.ordered else text
        if self.ordered and _is_number(value) and float(value) in map(float, self.values):
            return float(value)
        raise ValueError(f"{_short(value)} is not in {self!r}")


Parameter = Union[Range, Choice]


def float_(low: float, high: float, *, step: Optional[float] = None, log: bool = False) -> Range:
    """A float from low to high, both included.

    step: only low, low + step, …; not with log.
    log: uniform in the logarithm, for what spans orders of magnitude; needs low > 0.
    """
    return Range("double", low, high, step, log)


def int_(low: int, high: int, *, step: Optional[int] = None, log: bool = False) -> Range:
    """A whole number from low to high, both included; step and log as of float."""
    return Range("int", low, high, step, log)


def log(low: float, high: float) -> Range:
    """A float that is uniform in its logarithm: float(low, high, log=True)."""
    return Range("double", low, high, None, True)


def choice(values: Sequence[Any], *, ordered: Optional[bool] = None) -> Choice:
    """One of these values, of any type; the function gets the object itself.

    ordered: neighbours are alike (numbers only). By default numbers are ordered, and everything
        else is a set of categories.
    """
    return Choice(values, ordered)


def read_space(space: Mapping[str, Any]) -> Dict[str, Parameter]:
    """{name: range or list} with every value checked. Errors name the parameter and the fix."""
    if not isinstance(space, Mapping):
        raise TypeError(f'space is {_short(space)}: give a dict, as {{"lr": shirabe.log(1e-5, 1)}}')
    if not space:
        raise ValueError("space is empty: name at least one parameter")
    return {_checked_name(name): _parameter(name, value) for name, value in space.items()}


def describe(space: Mapping[str, Parameter]) -> List[Json]:
    """The space as Katib's list of parameters. ValueError for a name that cannot be stored."""
    for name in space:
        check_storable("space", name)
    return [
        {"name": name, "parameterType": p.kind, "feasibleSpace": p.feasible()}
        for name, p in space.items()
    ]


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"space: the name {name!r} of a parameter must be a text that is not empty")
    return name


def _parameter(name: str, value: Any) -> Parameter:
    if isinstance(value, (Range, Choice)):
        return value
    try:
        if isinstance(value, range) and len(value):
            ends = sorted((value[0], value[-1]))
            step = abs(value.step)
            return Range("int", ends[0], ends[1], step if step > 1 and len(value) > 1 else None)
        if isinstance(value, list):
            return Choice(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f'space["{name}"]: {error}') from None
    fix = "write shirabe.float(0, 1), shirabe.int(1, 8), shirabe.log(1e-5, 1) or a list of values"
    if isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value)):
        fix = f"write shirabe.float{value!r} for the range, or {list(value)!r} for the two values"
    elif isinstance(value, (str, bool, numbers.Number)):
        fix = "it is no range: leave it out, and give it to the function by functools.partial"
    raise TypeError(f'space["{name}"] is {_short(value)}: {fix}')


def _bound(kind: str, what: str, value: Any) -> Any:
    """A number of any library as one of Python."""
    try:
        if isinstance(value, (bool, str)):
            raise TypeError
        number = operator.index(value) if kind == "int" else float(value)
    except TypeError:
        if kind == "int" and _is_number(value) and float(value).is_integer():
            return int(value)
        wanted = "a whole number" if kind == "int" else "a number"
        raise TypeError(f"{what} must be {wanted}, not {_short(value)}") from None
    if not math.isfinite(number):
        raise ValueError(f"{what} must be finite, not {number!r}")
    return number


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _texts(values: List[Any]) -> List[str]:
    """A text for each category, the same in every process."""
    words = [value for value in values if isinstance(value, str)]
    texts: List[str] = []
    for number, value in enumerate(values):
        text = storable(value) if isinstance(value, str) and value else repr(value)
        has_address = " at 0x" in text  # another one the next time
        if has_address:
            text = str(getattr(value, "__name__", f"{type(value).__name__} {number}"))
        if text in words and not isinstance(value, str):
            text = f"{text} ({type(value).__name__})"
        if has_address and text in texts and values[texts.index(text)] != value:
            text = f"{text} {number}"  # another function of the same name
        texts.append(text)
    return texts


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
