"""What is searched: as the caller says it, as the server has it, and whether both are the same."""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional

from shirabe_client.errors import ShirabeError

from . import space
from .objectives import Constraint, ResultSpec, shown

__all__ = ["Problem", "check_same", "in_words"]

Json = Dict[str, Any]

SIDES = ("min", "max")  # of a constraint
_LONGEST_SHOWN = 200  # characters of a list of points


class Problem(NamedTuple):
    """What is searched. metrics: others than those of the result, to record by step. trials: in
    all; None for any number. algorithm, stopper: Katib's {algorithmName, …}. first: points to try
    first, as the server has them."""

    space: Dict[str, space.Parameter]
    result: ResultSpec
    metrics: List[str] = []
    trials: Optional[int] = None
    parallel: int = 1
    algorithm: Json = {}
    stopper: Optional[Json] = None
    seed: Optional[int] = None
    first: List[Json] = []

    def spec(self) -> Json:
        """As spec of an experiment. What a function returns last is its result."""
        names = self.declared()
        spec: Json = {
            "objective": {
                "metricStrategies": [{"name": name, "value": "latest"} for name in names],
                **({"additionalMetricNames": names[1:]} if names[1:] else {}),
            },
            "parameters": space.describe(self.space),
            "algorithm": self.algorithm or {"algorithmName": "auto"},
            "parallelTrialCount": self.parallel,
            "resumePolicy": "LongRunning",
            "shirabe": {"askAndTell": True},
        }
        if self.trials is not None:
            spec["maxTrialCount"] = self.trials
            spec["parallelTrialCount"] = min(self.parallel, self.trials)
        if self.stopper:
            spec["earlyStopping"] = self.stopper
        if self.seed is not None:
            spec["shirabe"]["seed"] = self.seed
        if self.first:
            spec["shirabe"]["start"] = self.first
        self.result.to_spec(spec)
        return spec

    def declared(self) -> List[str]:
        """The metrics that are recorded, the first objective first."""
        return [*self.result.names(), *self.metrics]


def check_same(name: str, stored: Json, problem: Problem, begun_alike: bool = True) -> None:
    """ValueError where the call differs from the one that began the search. begun_alike: in first
    and seed, too, which say how it begins."""
    mine = problem.spec()
    old = {p["name"]: p for p in stored["parameters"]}
    new = {p["name"]: p for p in mine["parameters"]}
    differences = [f"{n!r} is new" for n in new if n not in old]
    differences += [f"{n!r} is missing" for n in old if n not in new]
    for n in new:
        if n in old and _normal(old[n]) != _normal(new[n]):
            differences.append(f"{n!r} was {_shown(old[n])} and is {problem.space[n]!r}")
    for what, key in (("algorithm", "algorithm"), ("stopper", "earlyStopping")):
        was, now = stored.get(key), mine.get(key)
        if was != now:
            differences.append(f"{what} was {_variant(was)} and is {_variant(now)}")
    differences += _results_differ(stored, mine)
    if begun_alike and not differences:
        differences += _beginnings_differ(stored, mine, problem)
    if differences:
        raise ValueError(
            f"name={name!r} is stored already, as another search: {'; '.join(differences)}. Give "
            "this one another name, or call it as at first"
        )


def _results_differ(stored: Json, mine: Json) -> List[str]:
    """In what is measured, what is best, and what is good enough."""
    differences = []
    for what, of in (
        ("the objectives were", _objectives_of),
        ("constraints were", _constraints_of),
        ("metrics were", _metrics_of),
        ("goal was", _goals_of),
    ):
        was, now = of(stored), of(mine)
        if was != now:
            verb = what.rpartition(" ")[2].replace("were", "are").replace("was", "is")
            differences.append(f"{what} {was or 'none'} and {verb} {now or 'none'}")
    return differences


def _beginnings_differ(stored: Json, mine: Json, problem: Problem) -> List[str]:
    """Of the same space: in the first points, and the seed."""
    was, now = stored.get("shirabe", {}), mine["shirabe"]
    differences = []
    points = [_points(of.get("start", []), problem) for of in (was, now)]
    if points[0] != points[1]:
        differences.append(f"first was {_listed(points[0])} and is {_listed(points[1])}")
    seeds = [of.get("seed") for of in (was, now)]
    if seeds[0] != seeds[1]:
        differences.append(f"seed was {seeds[0]} and is {seeds[1]}")
    return differences


def _points(start: List[Json], problem: Problem) -> List[Json]:
    """As the caller says them."""
    space = problem.space
    return [{n: space[n].decode(point[n]) for n in space if n in point} for point in start]


def _listed(points: List[Json]) -> str:
    text = ", ".join(map(repr, points)) or "none"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def _objectives_of(spec: Json) -> str:
    objective, shirabe = spec["objective"], spec.get("shirabe", {})
    first = {
        "type": objective["type"],
        "metricName": objective["objectiveMetricName"],
        "reference": shirabe.get("objectiveReference"),
    }
    return ", ".join(
        f"{o['type']} {o['metricName']}"
        + (f" from {shown(float(o['reference']))}" if o.get("reference") is not None else "")
        for o in [first, *shirabe.get("additionalObjectives", [])]
    )


def _goals_of(spec: Json) -> str:
    objective, more = spec["objective"], spec.get("shirabe", {}).get("additionalObjectives", [])
    goals = {objective["objectiveMetricName"]: objective.get("goal")}
    goals.update({o["metricName"]: o.get("goal") for o in more})
    given = {n: shown(float(goal)) for n, goal in goals.items() if goal is not None}
    return ", ".join(f"{n} {goal}" if more else goal for n, goal in given.items())


def _constraints_of(spec: Json) -> str:
    given = spec.get("shirabe", {}).get("constraints", [])
    kept = [
        Constraint(c["metricName"], *(None if c.get(k) is None else float(c[k]) for k in SIDES))
        for c in given
    ]
    return ", ".join(sorted(map(str, kept)))


def _metrics_of(spec: Json) -> str:
    """Those that are recorded beside the results."""
    shirabe = spec.get("shirabe", {})
    kept = [*shirabe.get("additionalObjectives", []), *shirabe.get("constraints", [])]
    known = {entry["metricName"] for entry in kept}
    return ", ".join(sorted(set(spec["objective"].get("additionalMetricNames", [])) - known))


def _normal(parameter: Json) -> Json:
    feasible = parameter["feasibleSpace"]
    numbers = {k: float(v) for k, v in feasible.items() if k in ("min", "max", "step")}
    distribution = feasible.get("distribution", "uniform")
    values = [str(v) for v in feasible.get("list", [])]
    if parameter["parameterType"] == "discrete":
        values = [str(float(v)) for v in values]
    return {**numbers, "type": parameter["parameterType"], "log": distribution, "list": values}


def _shown(parameter: Json) -> str:
    feasible = parameter["feasibleSpace"]
    if "list" in feasible:
        return f"choice({feasible['list']})"
    log = " in logarithm" if feasible.get("distribution") == "logUniform" else ""
    step = f" by {feasible['step']}" if "step" in feasible else ""
    return f"{parameter['parameterType']} {feasible['min']}…{feasible['max']}{step}{log}"


def _variant(found: Optional[Json]) -> str:
    if not found:
        return "none"
    settings = ", ".join(f"{s['name']}={s['value']}" for s in found.get("algorithmSettings", []))
    return str(found["algorithmName"]) + (f"({settings})" if settings else "")


def in_words(error: ShirabeError, problem: Problem) -> str:
    """The server's findings, with the names that the caller used."""
    names = list(problem.space)
    lines = []
    for detail in getattr(error, "details", []):
        field = detail.field
        field = _of_result(field, problem.result)
        if field.startswith("spec.parameters["):
            index = int(field[len("spec.parameters[") :].partition("]")[0])
            field = f'space["{names[index]}"]' if index < len(names) else "space"
        for theirs, ours in (
            ("spec.parameters", "space"),
            ("spec.algorithm", "algorithm"),
            ("spec.earlyStopping", "stopper"),
            ("spec.maxTrialCount", "trials"),
            ("spec.parallelTrialCount", "parallel"),
            ("spec.objective", "metric"),
            ("spec.shirabe.start", "first"),
            ("spec.shirabe.seed", "seed"),
            ("metadata.name", "name"),
        ):
            if field.startswith(theirs):
                field = ours
        lines.append(f"{field}: {detail.reason}")
    return "; ".join(lines) or str(error.message)


def _of_result(field: str, result: ResultSpec) -> str:
    """The argument that a field of the objectives or constraints came from; others as they are."""
    found = re.match(r"spec\.shirabe\.(additionalObjectives|constraints)(?:\[(\d+)\])?", field)
    if field.startswith("spec.shirabe.objectiveReference"):
        return "reference"
    if not found:
        return field
    index = None if found[2] is None else int(found[2])
    if found[1] == "constraints":
        known = index is not None and index < len(result.constraints)
        return f'constraints["{result.constraints[index or 0].name}"]' if known else "constraints"
    if index is None or index + 1 >= len(result.objectives):
        return "minimize, maximize"
    return f'{result.objectives[index + 1].direction}="{result.objectives[index + 1].name}"'
