"""shirabe.optimize: tunes a function of this program."""

from __future__ import annotations

import functools
import os
import re
import secrets
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import calling, processes
from .child import default_folder
from .objectives import number, read_result_spec
from .outcome import FAILED, OPEN, TrialFailed
from .problem import Problem
from .progress import Progress
from .result import Result
from .runner import Conductor, Limits, run_threads
from .space import Parameter, read_space
from .study import Study
from .texts import check_storable

__all__ = ["optimize"]

_LONGEST_NAME = 40
_MOST_PARALLEL = 1000

Names = Union[str, Sequence[str], None]
Variant = Union[str, Tuple[str, Mapping[str, Any]]]


_HELP = """Calls fn with points of the space, and looks for the best.

    best = shirabe.optimize(train, {"lr": shirabe.log(1e-5, 1e-1), "layers": [2, 4, 8]},
                            minimize="loss", trials=50, parallel=2)
    print(best.params, best.value)

fn is called with the parameters by their names, train(lr=…, layers=…), or with one dict if it
takes one argument of another name; and with `trial` if it takes that (shirabe.Trial: report,
should_stop, checkpoint, resume). It returns the number, or a dict of metrics with it, or None
if it has reported it; with several objectives or constraints, a dict of all their metrics: a trial
without one of them has failed. An exception makes the trial failed, and shirabe.Infeasible says
that the point gives no result; both are kept with the reason, and the search goes on, unless the
first three trials all fail.

space: {name: shirabe.float, int, log or choice, or a list of values, or a range}.
minimize, maximize: the name of the metric; or a list of names, or both, for several objectives:
    the search is then for the front, the trials that no other dominates. The first objective is
    the first of minimize, or of maximize if that is all there is.
constraints: {metric: {"min": number, "max": number}}, one of the two or both, or a list of texts
    such as "memory <= 16e9". The best trial and the front are of those that keep them.
trials: in all, those of earlier calls with this name included; failed ones count. A later call may
    ask for more, unless the search has ended otherwise (by its goal, or all points were tried).
parallel: how many run at the same time.
workers: "threads" of this process (parallel=1: the thread of the caller), or "processes", for
    functions that compute in Python; they and the values of the space must be picklable, or
    cloudpickle be installed.
name: the same call goes on where one of this name was interrupted or killed, and returns at
    once if all is done. Lower-case letters, digits and '-'. Without it, a new search.
storage: a folder for all this (default $SHIRABE_HOME/python); a trial that has ended is in its
    database, and stays even if this process is killed.
algorithm, stopper: a name of `shirabe algorithms`, or (name, {setting: value}). The stopper
    looks at what trial.report says of the objective; there is none with several objectives.
metrics: names of other metrics to record step by step; of others the last value is kept.
first: points to try first, {name: value} with every parameter.
goal: the search ends when a trial is as good; {metric: number} with several objectives: as good in
    all that are named. What still runs then (parallel > 1) is "stopped": of it counts what it has
    reported, and not what it returns later. reference: {metric: number}: the hypervolume of the
    front is measured from there (default: the worst result).
timeout: seconds after which no trial begins.
max_failed: the search ends when more trials than this have failed; it may then be the first
    three, too.
seed: the same numbers give the same points (with parallel=1).
progress: True or False; by default on a terminal and in Jupyter.
binary: the program `shirabe` (default: $SHIRABE_BINARY, the scripts of this Python, the PATH).

Ctrl-C: no trial begins any more, and the running ones may end (trial.should_stop is True); the
Result says so. A second one raises KeyboardInterrupt; what ran is run again by the next call.

ValueError, TypeError: an argument is wrong, or differs from the stored search of this name (trials,
    parallel, workers, timeout, max_failed and progress may), or that takes no more trials.
TrialFailed: the first three trials failed, or more than max_failed, or all; with `result`.
FileNotFoundError: no program. shirabe_client.errors.Unavailable: it does not start.
"""


def optimize(
    fn: Callable[..., Any],
    space: Mapping[str, Any],
    *,
    minimize: Names = None,
    maximize: Names = None,
    constraints: Union[Mapping[str, Mapping[str, float]], Sequence[str], None] = None,
    trials: int = 20,
    parallel: int = 1,
    workers: str = "threads",
    name: Optional[str] = None,
    storage: Union[str, "os.PathLike[str]", None] = None,
    algorithm: Variant = "auto",
    stopper: Optional[Variant] = None,
    metrics: Sequence[str] = (),
    first: Sequence[Mapping[str, Any]] = (),
    goal: Union[float, Mapping[str, float], None] = None,
    reference: Optional[Mapping[str, float]] = None,
    timeout: Optional[float] = None,
    max_failed: Optional[int] = None,
    seed: Optional[int] = None,
    progress: Optional[bool] = None,
    binary: Optional[str] = None,
) -> Result:
    _check_guard()
    directions = {"minimize": minimize, "maximize": maximize}
    wanted = read_result_spec(directions, goal, reference, constraints)
    known = read_space(space)
    problem = Problem(
        space=known,
        result=wanted,
        metrics=_names("metrics", metrics, wanted.names()),
        trials=_count("trials", trials, 0),
        parallel=min(_count("parallel", parallel, 1), max(trials, 1)),
        algorithm=variant("algorithm", algorithm) or {},
        stopper=variant("stopper", stopper),
        seed=None if seed is None else _count("seed", seed, 0),
        first=_points(first, known),
    )
    limits = Limits(
        None if timeout is None else number("timeout", timeout),
        None if max_failed is None else _count("max_failed", max_failed, 0),
    )
    work = _Work(fn, problem, workers)
    folder = _folder(storage)
    name = _checked_name(name) if name is not None else _fresh_name(fn)
    if trials == 0:
        return Result(name, folder, wanted)
    study = Study(folder, name, binary)
    try:
        result = Result(name, study.folder, wanted)
        conductor = _begin(study, problem, limits, progress)
        try:
            work.run(conductor)
        finally:
            conductor.progress.draw(last=True)
        _fill(result, study, conductor)
    finally:
        study.close()
    return _checked(result, conductor)


optimize.__doc__ = _HELP


class _Work:
    """The function, and how it is run. ValueError, TypeError: it cannot be."""

    def __init__(self, fn: Any, problem: Problem, workers: Any) -> None:
        if workers not in ("threads", "processes"):
            raise ValueError(f'workers must be "threads" or "processes", not {workers!r}')
        how = calling.adapt(fn, problem.space)
        self._parallel = problem.parallel
        self._body = functools.partial(calling.run, fn, how, problem.result)
        self._sent: Optional[processes.Sent] = None
        if workers == "processes":
            self._sent = processes.Sent(fn, how, problem)

    def run(self, conductor: Conductor) -> None:
        if self._sent:
            processes.run_processes(conductor, self._sent, self._parallel)
        else:
            run_threads(conductor, self._body, self._parallel)


def _check_guard() -> None:
    if processes.is_worker_starting():
        raise RuntimeError(
            "shirabe.optimize is called while a worker imports this file: put the call under "
            '`if __name__ == "__main__":`'
        )


def _begin(study: Study, problem: Problem, limits: Limits, show: Optional[bool]) -> Conductor:
    """Opens the study; what earlier calls have done counts as done."""
    progress = Progress(problem.result, problem.trials, show)
    if study.open(problem):
        for trial in study.results():
            if trial.state != OPEN:
                progress.count(trial.number, trial.state, {**trial.metrics, **trial.values})
        progress.counts["failed"] = 0  # those of earlier calls are no reason to end this one
        if progress.done:
            progress.say(f"goes on with {study.name}: {progress.done} trials are done")
    return Conductor(study, limits, progress)


def _fill(result: Result, study: Study, conductor: Conductor) -> None:
    result.trials = study.results()
    result.ended = conductor.ended or "trials"
    result.reason = conductor.reason or study.reason
    if len(result.directions) > 1:
        result.hypervolume, result.reference = study.hypervolume(len(result.front))
    if result.ended == "interrupted":
        again = f'the same call with name="{study.name}" goes on'
        conductor.progress.say(f"interrupted after {len(result.trials)} trials: {again}")


def _checked(result: Result, conductor: Conductor) -> Result:
    """The result, or TrialFailed. Trials that are infeasible end no search."""
    failed = [trial.reason for trial in result.trials if trial.state == FAILED]
    nothing = all(trial.value is None for trial in result.trials)
    if result.ended != "failed" and not (failed and nothing and result.ended != "interrupted"):
        return result
    reason = result.reason if result.ended == "failed" else "no trial has a result"
    last = conductor.last_failure  # none where all have failed in earlier calls
    error = TrialFailed(f"{reason}; the last: {last.reason if last else failed[-1]}")
    error.result = result
    raise error from (last.error if last else None)


# ---- arguments ----------------------------------------------------------------------------------


def _names(what: str, names: Sequence[str], known: Sequence[str]) -> List[str]:
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"{what} is a list of names, not {names!r}")
    for name in names:
        check_storable(what, name)
    return [name for name in dict.fromkeys(names) if name not in known]


def _count(what: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    number = int(value)
    most = _MOST_PARALLEL if what == "parallel" else 2**53 if what == "seed" else 1_000_000
    if not least <= number <= most:
        raise ValueError(f"{what} must be from {least} to {most}, not {number}")
    return number


def variant(what: str, named: Optional[Variant]) -> Optional[Dict[str, Any]]:
    """A name, or a name and settings, as Katib has them."""
    if named is None:
        return None
    name, settings = (named, {}) if isinstance(named, str) else (*named, {}, {})[:2]
    if not isinstance(name, str) or not isinstance(settings, Mapping):
        raise TypeError(f'{what} is a name, or (name, {{"setting": value}}), not {named!r}')
    found: Dict[str, Any] = {"algorithmName": name}
    if settings:
        found["algorithmSettings"] = [
            {"name": str(n), "value": str(v).lower() if isinstance(v, bool) else str(v)}
            for n, v in settings.items()
        ]
    return found


def _folder(storage: Union[str, "os.PathLike[str]", None]) -> Path:
    if storage is None:
        return default_folder()
    if isinstance(storage, bytes) or not isinstance(storage, (str, os.PathLike)):
        raise TypeError(f"storage must be the path of a folder, not {storage!r}")
    if not os.fspath(storage):
        raise ValueError("storage is empty: give a folder, or leave it out")
    return Path(storage)


def _points(points: Sequence[Mapping[str, Any]], space: Mapping[str, Parameter]) -> List[Any]:
    encoded = []
    for index, point in enumerate(points):
        if not isinstance(point, Mapping):
            raise TypeError(f"first[{index}] is {point!r}: give {{name: value}}")
        values = {}
        for name, value in point.items():
            if name not in space:
                raise ValueError(f"first[{index}]: the space has no {name!r}")
            try:
                values[name] = space[name].encode(value)
            except (TypeError, ValueError) as error:
                raise type(error)(f'first[{index}]["{name}"]: {error}') from None
        missing = [name for name in space if name not in values]
        if missing:
            raise ValueError(f"first[{index}] has no {missing[0]!r}: give every parameter a value")
        encoded.append(values)
    return encoded


def _checked_name(name: Any) -> str:
    good = isinstance(name, str) and re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name)
    if not good or len(name) > _LONGEST_NAME:
        raise ValueError(
            f"name={name!r} must be 1 to {_LONGEST_NAME} lower-case letters, digits and '-', "
            "beginning and ending with a letter or digit"
        )
    return str(name)


def _fresh_name(fn: Any) -> str:
    """After the function and the time; never given twice."""
    inner = getattr(fn, "func", fn)
    word = re.sub(r"[^a-z0-9]+", "-", str(getattr(inner, "__name__", "")).lower())
    word = word.strip("-")[:14].strip("-") or "search"
    return f"{word}-{time.strftime('%y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
