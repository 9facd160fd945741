"""What a search has found."""

from __future__ import annotations

import html
import importlib
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from .outcome import FAILED, INFEASIBLE, STOPPED, VALUE

__all__ = ["Result", "TrialResult"]

_SHOWN = 5  # trials in the table of a notebook
_COLUMNS = 20  # parameters in it
_WIDTH, _HEIGHT = 480, 120  # of the curve, in pixels


class TrialResult(NamedTuple):
    """One trial.

    state: done, stopped (early; its value is what it last reported), failed, infeasible, or
        running: begun, and to be gone on with by the next call.
    value: of the objective; None without one. metrics: the last value of each.
    seconds: from the first to the last moment of its attempts.
    reason: why it failed or was stopped. chosen: why this point was tried.
    folder: its files (checkpoints, traceback.txt); made when there are any.
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

    def row(self) -> Dict[str, Any]:
        """What to_pandas makes a row of."""
        return {
            "number": self.number,
            "state": self.state,
            "value": self.value,
            "seconds": self.seconds,
            **{f"params.{name}": value for name, value in self.params.items()},
            **{f"metrics.{name}": value for name, value in self.metrics.items()},
            "reason": self.reason,
        }


class Result:
    """All trials of a search, and the best.

    name, storage: with both given to shirabe.optimize, the same call goes on with this search.
    objective, direction: "loss" and "minimize".
    best: the trial with the best value, of those that are done or stopped; None without one.
    trials: all, in the order of their numbers.
    ended: why: "trials" (all are done), "goal", "timeout", "interrupted", "exhausted" (a grid).
    reason: the same in words.
    """

    def __init__(self, name: str, storage: Path, objective: str, direction: str) -> None:
        self.name = name
        self.storage = storage
        self.objective = objective
        self.direction = direction
        self.trials: List[TrialResult] = []
        self.ended = "trials"
        self.reason = ""

    @property
    def best(self) -> Optional[TrialResult]:
        found = [trial for trial in self.trials if trial.value is not None]
        if not found:
            return None
        # A trial that was stopped early counts only where none was done.
        found = [trial for trial in found if trial.state == VALUE] or found
        sign = 1 if self.direction == "minimize" else -1
        return min(found, key=lambda trial: sign * (trial.value or 0.0))

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
        """The best value after each trial; None before the first that has one."""
        best: Optional[float] = None
        values: List[Optional[float]] = []
        for trial in self.trials:
            if trial.value is not None and trial.state == VALUE:
                pick = min if self.direction == "minimize" else max
                best = trial.value if best is None else pick(best, trial.value)
            values.append(best)
        return values

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row a trial: number, state, value, seconds, params.NAME,
        metrics.NAME, reason. ImportError without pandas."""
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
        found = (
            f"no {self.objective} yet"
            if best is None
            else f"best {self.objective}={best.value:.6g} of trial {best.number}, "
            + _short(best.params)
        )
        return f"<Result {self.name}: {self._counts()}; {found}>"

    def _repr_html_(self) -> str:
        sign = 1 if self.direction == "minimize" else -1
        top = sorted(
            (t for t in self.trials if t.value is not None),
            key=lambda t: (t.state != VALUE, sign * (t.value or 0.0)),
        )[:_SHOWN]
        names = list(top[0].params)[:_COLUMNS] if top else []
        head = "".join(f"<th>{html.escape(n)}</th>" for n in ["trial", self.objective, *names])
        rows = "".join(f"<tr>{_cells(trial, names)}</tr>" for trial in top)
        table = f"<table><tr>{head}</tr>{rows}</table>" if top else ""
        title = f"<b>{html.escape(self.name)}</b>: {html.escape(self._counts())}"
        return f"<div><p>{title}</p>{self._svg()}{table}</div>"

    def _svg(self) -> str:
        """The best value so far over the trials."""
        curve = self.curve()
        points = [(i, value) for i, value in enumerate(curve) if value is not None]
        if len(points) < 2:
            return ""
        low, high = min(v for _, v in points), max(v for _, v in points)
        across, up = (_WIDTH - 10) / max(len(curve) - 1, 1), (_HEIGHT - 10) / ((high - low) or 1.0)
        path = " ".join(f"{5 + i * across:.1f},{5 + (high - v) * up:.1f}" for i, v in points)
        ends = f"{points[0][1]:.4g} to {points[-1][1]:.4g}"
        label = html.escape(f"best {self.objective} so far: {ends}")
        return (
            f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{label}">'
            f'<title>{label}</title><polyline fill="none" stroke="#2a7" stroke-width="2" '
            f'points="{path}"/></svg>'
        )

    def _counts(self) -> str:
        parts = [f"{len(self.trials)} trials"]
        for state in (STOPPED, INFEASIBLE, FAILED, "running"):
            count = sum(trial.state == state for trial in self.trials)
            if count:
                parts.append(f"{count} {state}")
        return ", ".join(parts)

    def _best(self) -> TrialResult:
        best = self.best
        if best is None:
            reasons = [trial.reason for trial in self.trials if trial.reason]
            why = f": {reasons[-1]}" if reasons else ""
            raise ValueError(f"no trial of {self.name} has a value of {self.objective}{why}")
        return best


def _short(params: Dict[str, Any]) -> str:
    text = repr(params)
    return text if len(text) <= 500 else text[:499] + "…"


def _cells(trial: TrialResult, names: List[str]) -> str:
    values = [str(trial.number), f"{trial.value:.6g}"]
    for name in names:
        value = trial.params.get(name)
        values.append(f"{value:.6g}" if isinstance(value, float) else str(value))
    return "".join(f"<td>{html.escape(value)}</td>" for value in values)
