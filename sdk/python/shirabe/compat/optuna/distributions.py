"""Optuna's distributions, as ranges and choices of Shirabe."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple, Union

from ...space import Choice, Parameter, Range

__all__ = [
    "BaseDistribution",
    "CategoricalDistribution",
    "FloatDistribution",
    "IntDistribution",
    "from_json",
    "of",
    "to_json",
]

_PLAIN = (type(None), bool, int, float, str)


class BaseDistribution:
    """Equal to another of the same class and values."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in sorted(vars(self).items()))
        return f"{type(self).__name__}({values})"

    def parameter(self) -> Parameter:
        """As Shirabe has it. ValueError if it holds no value."""
        raise NotImplementedError


class FloatDistribution(BaseDistribution):
    def __init__(
        self, low: float, high: float, log: bool = False, step: Optional[float] = None
    ) -> None:
        self.low, self.high, self.log, self.step = float(low), float(high), log, step
        self.parameter()

    def parameter(self) -> Parameter:
        return Range("double", self.low, self.high, self.step, self.log)


class IntDistribution(BaseDistribution):
    def __init__(self, low: int, high: int, log: bool = False, step: int = 1) -> None:
        self.low, self.high, self.log, self.step = int(low), int(high), log, int(step)
        self.parameter()

    def parameter(self) -> Parameter:
        step = self.step if self.step != 1 else None
        if step and step > self.high - self.low:  # only low is left
            return Range("int", self.low, self.low)
        return Range("int", self.low, self.high, step, self.log)


class CategoricalDistribution(BaseDistribution):
    def __init__(self, choices: Sequence[Any]) -> None:
        self.choices: Tuple[Any, ...] = tuple(choices)
        for value in self.choices:
            if not isinstance(value, _PLAIN):
                raise ValueError(
                    f"choices holds {value!r}: a choice is None, a bool, a number or a text; name "
                    "the others, and look them up in a dict"
                )
        self.parameter()

    def parameter(self) -> Parameter:
        return Choice(list(self.choices))


Distribution = Union[FloatDistribution, IntDistribution, CategoricalDistribution]


def of(parameter: Parameter) -> Distribution:
    """The distribution that a parameter came from."""
    if isinstance(parameter, Choice):
        return CategoricalDistribution(parameter.values)
    if parameter.kind == "int":
        return IntDistribution(parameter.low, parameter.high, parameter.log, parameter.step or 1)
    return FloatDistribution(parameter.low, parameter.high, parameter.log, parameter.step)


def to_json(distribution: Distribution) -> Dict[str, Any]:
    return {"kind": type(distribution).__name__, **vars(distribution)}


def from_json(stored: Dict[str, Any]) -> Distribution:
    kinds: Dict[str, Any] = {
        kind.__name__: kind
        for kind in (FloatDistribution, IntDistribution, CategoricalDistribution)
    }
    values = {name: value for name, value in stored.items() if name != "kind"}
    made: Distribution = kinds[stored["kind"]](**values)
    return made
