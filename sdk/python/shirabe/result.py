"""What a search has found."""

from __future__ import annotations

import html
import importlib
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from shirabe_client.front import choose, front_of, losses_of

from . import pictures
from .objectives import Constraint, ResultSpec, breaking, broken_words
from .outcome import FAILED, INFEASIBLE, STOPPED, VALUE

__all__ = ["Result", "TrialResult"]

_SHOWN = 5  # trials in the table of a notebook
_COLUMNS = 20  # parameters in it


class TrialResult(NamedTuple):
    """One trial.

    state: done, stopped (early, or when the search ended before it, as by its goal; its value is
        what it last reported, if anything, and what it returned then does not count), failed,
        infeasible, or running: begun, and to be gone on with by the next call.
    value: of the first objective; None without one. metrics: the last value of each.
    seconds: from the first to the last moment of its attempts.
    reason: why it failed or was stopped. chosen: why this point was tried.
    folder: its files (checkpoints, traceback.txt); made when there are any.
    values: of all objectives, {metric: value}; empty without a result.
    broken: the constraints that it does not keep, {metric: how far it is outside}.
    """

    number: int
    state: str
    params: Dict[str, Any]
    value: Optional[float]
    metrics: Dict[str, float]
    seconds: float
    reason: str
    chosen: str
    folder: Path
    notes: Dict[str, Any] = {}
    values: Dict[str, float] = {}
    broken: Dict[str, float] = {}

    @property
    def feasible(self) -> bool:
        """Whether it has a result, and keeps all constraints."""
        return self.value is not None and not self.broken

    def row(self) -> Dict[str, Any]:
        """What to_pandas makes a row of."""
        return {
            "number": self.number,
            "state": self.state,
            "value": self.value,
            "seconds": self.seconds,
            **{f"params.{name}": value for name, value in self.params.items()},
            **{f"metrics.{name}": value for name, value in self.metrics.items()},
            **{f"broken.{name}": by for name, by in self.broken.items()},
            "reason": self.reason,
        }


class Result:
    """All trials of a search, and the best.

    name, storage: with both given to shirabe.optimize, the same call goes on with this search.
    objective, direction: "loss" and "minimize"; with several objectives, of the first.
    directions: {metric: "minimize" or "maximize"} of all objectives, the first objective first.
    constraints: each with name, min and max.
    best: the trial that is best in the first objective, of those that are done or stopped and keep
        all constraints; None without one.
    front: of the same, the trials that no other dominates (is as good as in all objectives), the
        best in the first objective first. With one objective, the best alone.
    hypervolume: the volume that the front dominates, up to `reference`, {metric: value}; None with
        one objective, and where it takes too long to tell.
    trials: all, in the order of their numbers.
    ended: why: "trials" (all are done), "goal", "timeout", "interrupted", "exhausted" (a grid).
    reason: the same in words.
    """

    def __init__(self, name: str, storage: Path, result: ResultSpec) -> None:
        self.name = name
        self.storage = storage
        self.objective = result.first.name
        self.direction = result.first.direction
        self.directions: Dict[str, str] = result.directions
        self.constraints: List[Constraint] = list(result.constraints)
        self.trials: List[TrialResult] = []
        self.hypervolume: Optional[float] = None
        self.reference: Dict[str, float] = {}
        self.ended = "trials"
        self.reason = ""

    @property
    def best(self) -> Optional[TrialResult]:
        found = self.front
        return found[0] if found else None

    @property
    def front(self) -> List[TrialResult]:
        found = self._competing()
        return [found[i] for i in front_of([t.values for t in found], self.directions)]

    def best_by(
        self,
        weights: Optional[Mapping[str, float]] = None,
        order: Optional[Sequence[str]] = None,
    ) -> TrialResult:
        """The one trial of the front that `shirabe best` chooses with the same options.

        weights: {objective: weight}: the least weighted sum, each objective taken as a part of its
            range on the front, 0 its best value there and 1 its worst.
        order: objectives: the best in the first of them; the next ones decide ties.
        ValueError: an argument is wrong, or the front is empty.
        """
        self._best()
        front = self.front
        return front[choose([t.values for t in front], self.directions, weights, order)]

    @property
    def params(self) -> Dict[str, Any]:
        """Of the best trial. ValueError if no trial has a value."""
        return dict(self._best().params)

    @property
    def value(self) -> float:
        """Of the best trial. ValueError if no trial has a value."""
        value = self._best().value
        assert value is not None
        return value

    def curve(self) -> List[Optional[float]]:
        """The best value of the first objective after each trial; None before the first that has
        one and keeps all constraints."""
        best: Optional[float] = None
        values: List[Optional[float]] = []
        for trial in self.trials:
            if trial.feasible and trial.state == VALUE:
                assert trial.value is not None
                pick = min if self.direction == "minimize" else max
                best = trial.value if best is None else pick(best, trial.value)
            values.append(best)
        return values

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row a trial: number, state, value, seconds, params.NAME,
        metrics.NAME, broken.NAME of constraints, reason. ImportError without pandas."""
        pandas: Any = importlib.import_module("pandas")
        return pandas.DataFrame([trial.row() for trial in self.trials])

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[TrialResult]:
        return iter(self.trials)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        best = self.best
        if best is None:
            return f"<Result {self.name}: {self._counts()}; {self._nothing()}>"
        values = ", ".join(f"{name}={value:.6g}" for name, value in best.values.items())
        front = f"{self._front_words()}; " if len(self.directions) > 1 else ""
        found = f"best {values} of trial {best.number}, {_short(best.params)}"
        return f"<Result {self.name}: {self._counts()}; {front}{found}>"

    def _repr_html_(self) -> str:
        top = (self.front if len(self.directions) > 1 else self._ranked())[:_SHOWN]
        names = list(top[0].params)[:_COLUMNS] if top else []
        columns = ["trial", *self.directions, *names]
        head = "".join(f"<th>{html.escape(n)}</th>" for n in columns)
        rows = "".join(f"<tr>{_cells(trial, names)}</tr>" for trial in top)
        table = f"<table><tr>{head}</tr>{rows}</table>" if top else ""
        words = [self._counts()] if top else [self._counts(), self._nothing()]
        if top and len(self.directions) > 1:
            words.append(self._front_words())
        title = f"<b>{html.escape(self.name)}</b>: {html.escape('; '.join(words))}"
        return f"<div><p>{title}</p>{self._picture()}{table}</div>"

    def _picture(self) -> str:
        """Of two objectives all trials that keep the constraints, else the best value so far."""
        if len(self.directions) != 2:
            return pictures.curve(self.curve(), self.objective)
        first, second = self.directions
        front = self.front
        numbers = {trial.number for trial in front}
        others = [trial for trial in self._competing() if trial.number not in numbers]
        of_front, of_others = (
            [(t.values[first], t.values[second]) for t in some] for some in (front, others)
        )
        return pictures.front(of_front, of_others, (first, second))

    def _competing(self) -> List[TrialResult]:
        """Those that may be best."""
        found = [trial for trial in self.trials if trial.feasible]
        if len(self.directions) > 1:
            return [trial for trial in found if len(trial.values) == len(self.directions)]
        # A trial that was stopped early counts only where none was done.
        return [trial for trial in found if trial.state == VALUE] or found

    def _ranked(self) -> List[TrialResult]:
        """By the first objective; those that were stopped come last."""
        found = [trial for trial in self.trials if trial.feasible]
        return sorted(
            found, key=lambda t: (t.state != VALUE, losses_of(t.values, self.directions), t.number)
        )

    def _counts(self) -> str:
        parts = [f"{len(self.trials)} trials"]
        for state in (STOPPED, INFEASIBLE, FAILED, "running"):
            count = sum(trial.state == state for trial in self.trials)
            if count:
                parts.append(f"{count} {state}")
        broken = sum(bool(trial.broken) for trial in self.trials)
        return ", ".join([*parts, breaking(broken)] if broken else parts)

    def _front_words(self) -> str:
        size = len(self.front)
        text = f"front of {size} trial{'' if size == 1 else 's'}"
        if self.hypervolume is None:
            return text
        return f"{text}, hypervolume {self.hypervolume:.6g}"

    def _nothing(self) -> str:
        """Why there is no best trial."""
        broken = [trial for trial in self.trials if trial.broken]
        if not broken:
            return f"no {self.objective} yet"
        nearest = min(broken, key=lambda trial: sum(trial.broken.values()))
        words = ", ".join(str(constraint) for constraint in self.constraints)
        breaks = broken_words(nearest.broken)
        return f"no trial keeps {words}; trial {nearest.number} breaks {breaks}"

    def _best(self) -> TrialResult:
        best = self.best
        if best is None:
            if any(trial.broken for trial in self.trials):
                raise ValueError(f"{self.name}: {self._nothing()}")
            reasons = [trial.reason for trial in self.trials if trial.reason]
            why = f": {reasons[-1]}" if reasons else ""
            raise ValueError(f"no trial of {self.name} has a value of {self.objective}{why}")
        return best


def _short(params: Dict[str, Any]) -> str:
    text = repr(params)
    return text if len(text) <= 500 else text[:499] + "…"


def _cells(trial: TrialResult, names: List[str]) -> str:
    values = [str(trial.number), *(f"{value:.6g}" for value in trial.values.values())]
    for name in names:
        value = trial.params.get(name)
        values.append(f"{value:.6g}" if isinstance(value, float) else str(value))
    return "".join(f"<td>{html.escape(value)}</td>" for value in values)
