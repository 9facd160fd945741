"""What is best: the objectives of a search and the constraints on its results, as a caller of
shirabe.optimize gives them. Their order is that of minimize=, then that of maximize=."""

from __future__ import annotations

import math
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from .texts import check_storable

__all__ = [
    "Constraint",
    "Objective",
    "ResultSpec",
    "breaking",
    "broken_words",
    "number",
    "read_result_spec",
    "shown",
]

_MOST_OBJECTIVES = 8  # the server's limit, spec.objective included
_BOUND = re.compile(r"\s*(?P<name>.*?\S)\s*(?P<sign><=|>=|≤|≥|<|>|==|=)\s*(?P<bound>\S+)\s*")


class Objective(NamedTuple):
    """A metric to minimize or maximize. The search ends when a trial is as good as every goal; the
    hypervolume is measured from the reference."""

    name: str
    direction: str
    goal: Optional[float] = None
    reference: Optional[float] = None


class Constraint(NamedTuple):
    """A result keeps it if min <= its value of the metric <= max; None: no bound on that side."""

    name: str
    min: Optional[float] = None
    max: Optional[float] = None

    def broken_by(self, value: float) -> float:
        """How far the value is outside; 0 where it keeps the constraint."""
        below = 0.0 if self.min is None else self.min - value
        above = 0.0 if self.max is None else value - self.max
        return max(below, above, 0.0)

    def __str__(self) -> str:
        if self.max is None:
            return self.name if self.min is None else f"{self.name} >= {shown(self.min)}"
        least = "" if self.min is None else f"{shown(self.min)} <= "
        return f"{least}{self.name} <= {shown(self.max)}"


class ResultSpec(NamedTuple):
    """The metrics that the result of every trial must have, and what is made of them."""

    objectives: List[Objective]
    constraints: List[Constraint] = []

    @property
    def first(self) -> Objective:
        return self.objectives[0]

    @property
    def several(self) -> bool:
        """Whether there is more than one objective."""
        return len(self.objectives) > 1

    @property
    def directions(self) -> Dict[str, str]:
        return {objective.name: objective.direction for objective in self.objectives}

    def names(self) -> List[str]:
        """Of the metrics, the objectives' before the constraints'."""
        both = [o.name for o in self.objectives] + [c.name for c in self.constraints]
        return list(dict.fromkeys(both))

    def missing(self, *metrics: Mapping[str, float]) -> List[str]:
        """The names that none of these has."""
        return [name for name in self.names() if not any(name in some for some in metrics)]

    def values(self, metrics: Mapping[str, float]) -> Dict[str, float]:
        """Of the objectives, those that are there."""
        return {o.name: metrics[o.name] for o in self.objectives if o.name in metrics}

    def broken(self, metrics: Mapping[str, float]) -> Dict[str, float]:
        """The constraints that these values do not keep, and by how much."""
        by = {c.name: c.broken_by(metrics[c.name]) for c in self.constraints if c.name in metrics}
        return {name: amount for name, amount in by.items() if amount > 0}

    def to_spec(self, spec: Dict[str, Any]) -> None:
        """Into the specification of an experiment, which has objective and shirabe already."""
        objective, shirabe = spec["objective"], spec["shirabe"]
        objective.update(type=self.first.direction, objectiveMetricName=self.first.name)
        if self.first.goal is not None:
            objective["goal"] = self.first.goal
        if self.first.reference is not None:
            shirabe["objectiveReference"] = self.first.reference
        if self.several:
            shirabe["additionalObjectives"] = [_additional(o) for o in self.objectives[1:]]
        if self.constraints:
            shirabe["constraints"] = [
                {"metricName": c.name, **_known(min=c.min, max=c.max)} for c in self.constraints
            ]


def breaking(count: int) -> str:
    """Of so many trials: "3 break constraints"."""
    return f"{count} {'breaks' if count == 1 else 'break'} constraints"


def broken_words(broken: Mapping[str, float]) -> str:
    """ "memory by 1.2e+09, recall by 0.02"; "" where all constraints are kept."""
    return ", ".join(f"{name} by {by:.6g}" for name, by in broken.items())


def shown(value: float) -> str:
    """As short as it can be without losing a digit."""
    short = f"{value:.12g}"
    return short if float(short) == value else repr(value)


def _additional(objective: Objective) -> Dict[str, Any]:
    more = _known(goal=objective.goal, reference=objective.reference)
    return {"metricName": objective.name, "type": objective.direction, **more}


def _known(**values: Optional[float]) -> Dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


# ---- arguments ----------------------------------------------------------------------------------


def read_result_spec(
    directions: Mapping[str, Any], goal: Any, reference: Any, constraints: Any
) -> ResultSpec:
    """directions: {"minimize": …, "maximize": …}, as they were given."""
    ways = _directions(directions)
    goals = _by_objective("goal", goal, list(ways))
    references = _by_objective("reference", reference, list(ways))
    if references and len(ways) == 1:
        raise ValueError(
            f"reference={reference!r} is where the hypervolume of several objectives is measured "
            "from: leave it out"
        )
    found = [Objective(n, way, goals.get(n), references.get(n)) for n, way in ways.items()]
    return ResultSpec(found, _constraints(constraints))


def _directions(given: Mapping[str, Any]) -> Dict[str, str]:
    ways: Dict[str, str] = {}
    for way, named in given.items():
        names = [] if named is None else [named] if isinstance(named, str) else named
        if not isinstance(names, (list, tuple)) or not all(
            isinstance(name, str) and name for name in names
        ):
            raise TypeError(
                f"{way} is the name of a metric, as {way}='loss', or a list of names, not {named!r}"
            )
        for name in names:
            if name in ways:
                raise ValueError(f"{way}={named!r}: {name!r} is named twice: remove one")
            check_storable(way, name)
            ways[name] = way
    if not ways:
        raise ValueError('say what is best: minimize="loss", maximize="accuracy", or both')
    if len(ways) > _MOST_OBJECTIVES:
        raise ValueError(
            f"minimize, maximize: {len(ways)} objectives, and at most {_MOST_OBJECTIVES}: make "
            "constraints of some, or name them in metrics="
        )
    return ways


def _by_objective(what: str, given: Any, names: List[str]) -> Dict[str, float]:
    """A number of the only objective, or {objective: number}."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if len(names) > 1 or what == "reference":
            example = {names[0]: given}
            raise TypeError(f"{what}={given!r}: say which objective it is of, as {what}={example}")
        return {names[0]: number(what, given)}
    for name in given:
        if name not in names:
            raise ValueError(f"{what}: {name!r} is no objective; they are {', '.join(names)}")
    return {name: number(f'{what}["{name}"]', value) for name, value in given.items()}


def _constraints(given: Any) -> List[Constraint]:
    """{"memory": {"max": 16e9}}, or texts such as "memory <= 16e9"."""
    if given is None:
        return []
    if isinstance(given, str):
        given = [given]
    bounds: Dict[str, Dict[str, float]] = {}
    if isinstance(given, Mapping):
        for name, sides in given.items():
            bounds[name] = _sides(name, sides)
    elif isinstance(given, (list, tuple)):
        for text in given:
            _read_bound(text, bounds)
    else:
        raise TypeError(f'constraints is {given!r}: give {{"memory": {{"max": 16e9}}}}')
    for name, sides in bounds.items():
        check_storable("constraints", name)
        if "min" in sides and "max" in sides and sides["min"] > sides["max"]:
            raise ValueError(
                f'constraints["{name}"]: min {sides["min"]:g} is greater than max '
                f'{sides["max"]:g}: no value keeps it'
            )
    return [Constraint(name, sides.get("min"), sides.get("max")) for name, sides in bounds.items()]


def _sides(name: Any, sides: Any) -> Dict[str, float]:
    if not isinstance(name, str) or not name:
        raise TypeError(f"constraints: {name!r} is not the name of a metric")
    where = f'constraints["{name}"]'
    if not isinstance(sides, Mapping) or not sides or not set(sides) <= {"min", "max"}:
        raise TypeError(f'{where} is {sides!r}: give {{"min": …}}, {{"max": …}} or both')
    return {side: number(f'{where}["{side}"]', bound) for side, bound in sides.items()}


def _read_bound(text: Any, bounds: Dict[str, Dict[str, float]]) -> None:
    """Into what is known of the metric: two texts may give both sides of it."""
    found = _BOUND.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError(f'constraints: {text!r} cannot be read: write "memory <= 16e9"')
    side = {"<=": "max", "≤": "max", ">=": "min", "≥": "min"}.get(found["sign"])
    if side is None:
        raise ValueError(f"constraints: {text!r}: a value at the bound keeps it: write <= or >=")
    sides = bounds.setdefault(found["name"], {})
    if side in sides:
        raise ValueError(f"constraints: {text!r}: {found['name']!r} has a {side} already")
    sides[side] = number(f"constraints: {text!r}: the bound", found["bound"])


def number(what: str, value: Any) -> float:
    """A finite number; TypeError, ValueError where it is none."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be a number, not {value!r}") from None
    if not math.isfinite(found):
        raise ValueError(f"{what} must be finite, not {found}")
    return found
