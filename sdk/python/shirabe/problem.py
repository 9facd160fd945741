"""What is searched: as the caller says it, as the server has it, and whether both are the same."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

from shirabe_client.errors import ShirabeError

from . import space

__all__ = ["Problem", "check_same", "in_words"]

Json = Dict[str, Any]


class Problem(NamedTuple):
    """What is searched. direction: minimize or maximize. metrics: others to record by step.
    trials: in all; None for any number. algorithm, stopper: Katib's {algorithmName, …}. first:
    points to try first, as the server has them."""

    space: Dict[str, space.Parameter]
    objective: str
    direction: str
    metrics: List[str] = []
    trials: Optional[int] = None
    parallel: int = 1
    algorithm: Json = {}
    stopper: Optional[Json] = None
    seed: Optional[int] = None
    goal: Optional[float] = None
    first: List[Json] = []

    def spec(self) -> Json:
        """As spec of an experiment. What a function returns last is its result."""
        objective: Json = {"type": self.direction, "objectiveMetricName": self.objective}
        objective["metricStrategies"] = [
            {"name": name, "value": "latest"} for name in [self.objective, *self.metrics]
        ]
        if self.metrics:
            objective["additionalMetricNames"] = self.metrics
        if self.goal is not None:
            objective["goal"] = self.goal
        spec: Json = {
            "objective": objective,
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
        return spec


def check_same(name: str, stored: Json, problem: Problem) -> None:
    """ValueError where the call differs from the one that began the search."""
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
    was, now = stored["objective"], mine["objective"]
    for what in ("type", "objectiveMetricName", "additionalMetricNames"):
        if was.get(what) != now.get(what):
            differences.append(f"{what} was {was.get(what)} and is {now.get(what)}")
    if differences:
        raise ValueError(
            f"name={name!r} is stored already, as another search: {'; '.join(differences)}. Give "
            "this one another name, or call it as at first"
        )


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
