"""What the trials of a study come to: values of its objectives, constraints, and which are best.

A constraint is Optuna's: kept where its value is 0 or less. At the server it is a metric with the
bound max = 0; the values are metrics, too."""

from __future__ import annotations

import math
from typing import Any, List, Sequence, Tuple

from shirabe_client.front import losses_of

from ...objectives import Constraint, Objective, ResultSpec
from .exceptions import NotSupported
from .trial import FrozenTrial, Trial, TrialState

__all__ = [
    "best_trials",
    "check_constraints",
    "constraint_name",
    "is_feasible",
    "read_values",
    "result_spec",
    "value_names",
]


def value_names(objectives: int) -> List[str]:
    """The metrics of a study's values."""
    return ["value"] if objectives == 1 else [f"value_{index}" for index in range(objectives)]


def constraint_name(key: str) -> str:
    """The metric of a constraint."""
    return f"constraint_{key}"


def result_spec(directions: Sequence[str], constraints: Sequence[str]) -> ResultSpec:
    names = value_names(len(directions))
    return ResultSpec(
        [Objective(name, way) for name, way in zip(names, directions)],
        [Constraint(constraint_name(key), max=0.0) for key in constraints],
    )


def read_values(returned: Any, objectives: int) -> Tuple[List[float], str]:
    """What an objective returned, or why it is no result, in Optuna's words."""
    given = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if len(given) != objectives:
        return [], (
            f"The number of the values {len(given)} did not match the number of the objectives "
            f"{objectives}."
        )
    values = []
    for value in given:
        try:
            values.append(float(value))
        except (TypeError, ValueError):
            return [], f"The value {value!r} could not be cast to float."
        if not math.isfinite(values[-1]):
            return [], f"The value {values[-1]} is not acceptable."
    return values, ""


def check_constraints(trial: Trial, known: Sequence[str]) -> None:
    """NotSupported where a trial has other constraints than the study began with."""
    if set(trial.constraints) != set(known):
        there = ", ".join(map(repr, trial.constraints)) or "none"
        began = ", ".join(map(repr, known)) or "none"
        raise NotSupported(
            f"trial {trial.number} has the constraints {there}, and the study began with {began}: "
            "constraints that change from trial to trial cannot be had; set all of them in every "
            "trial, and give the sampler its constraints_func again where a study is loaded"
        )


def is_feasible(trial: FrozenTrial) -> bool:
    return all(value <= 0 for value in trial.constraints.values())


def best_trials(trials: Sequence[FrozenTrial], directions: Sequence[str]) -> List[FrozenTrial]:
    """The complete and feasible ones that no other dominates, in the order of their numbers; as in
    Optuna, all of those that are equal."""
    ways = dict(zip(value_names(len(directions)), directions))
    losses = [
        (losses_of(dict(zip(ways, trial.values or [])), ways), trial)
        for trial in trials
        if trial.state == TrialState.COMPLETE and is_feasible(trial)
    ]
    front: List[List[float]] = []
    for mine, _ in sorted(losses, key=lambda pair: pair[0]):
        if not any(all(a <= b for a, b in zip(other, mine)) for other in reversed(front)):
            front.append(mine)
    kept = {tuple(mine) for mine in front}
    return [trial for mine, trial in losses if tuple(mine) in kept]
