"""Optuna's study over an Engine."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
import weakref
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
)

from ...progress import Progress
from ...runner import Conductor, Limits, run_threads
from .distributions import Distribution
from .engine import Engine
from .exceptions import NotSupported
from .frames import ATTRIBUTES, frame_of
from .logging import get_logger
from .pruners import BasePruner, MedianPruner
from .results import best_trials, check_constraints, is_feasible, read_values
from .running import Callback, Run, last_report
from .samplers import BaseSampler
from .trial import FrozenTrial, Trial, TrialState, stored_attribute

__all__ = ["MaxTrialsCallback", "Study", "StudyDirection"]

_log = get_logger("shirabe.compat.optuna")
_ANY = 10**9  # failed trials that end nothing


class Study:
    """Made by create_study and load_study."""

    def __init__(self, engine: Engine, sampler: Any, pruner: Any) -> None:
        for what, value, kind in (
            ("sampler", sampler, BaseSampler),
            ("pruner", pruner, BasePruner),
        ):
            if value is not None and not isinstance(value, kind):
                raise NotSupported(
                    f"{what}={value!r}: give one of shirabe.compat.optuna.{what}s; code of others "
                    "does not run in Shirabe"
                )
        self.engine = engine
        engine.sampler = sampler or BaseSampler()
        engine.pruner = pruner or MedianPruner()
        engine.begin()
        self.close = weakref.finalize(self, engine.close)
        self._conductor: Optional[Conductor] = None
        self._stopped = False
        self._asked: Dict[int, Trial] = {}  # by number, those of ask() that were not told
        self._best: Optional[Tuple[float, int]] = None
        self._lock = threading.Lock()

    # ---- what it is ----------------------------------------------------------------------------

    @property
    def study_name(self) -> str:
        return self.engine.name

    @property
    def direction(self) -> Any:
        """RuntimeError where there are several objectives."""
        self._check_one("direction", "directions", "all directions")
        return self.directions[0]

    @property
    def directions(self) -> List[Any]:
        return [StudyDirection(way) for way in self.engine.directions]

    @property
    def sampler(self) -> BaseSampler:
        return self.engine.sampler

    @property
    def pruner(self) -> BasePruner:
        return self.engine.pruner

    @property
    def user_attrs(self) -> Dict[str, Any]:
        return dict(self.engine.user_attrs)

    def set_user_attr(self, key: str, value: Any) -> None:
        """Kept with the study. TypeError for what JSON has not; a number of NumPy is one."""
        self.engine.user_attrs.update(stored_attribute(key, value))
        self.engine.write_meta()

    # ---- results -------------------------------------------------------------------------------

    @property
    def trials(self) -> List[FrozenTrial]:
        return self.get_trials()

    def get_trials(
        self, deepcopy: bool = True, states: Optional[Sequence[TrialState]] = None
    ) -> List[FrozenTrial]:
        """In the order of their numbers; of these states."""
        found = self.engine.trials()
        return [trial for trial in found if states is None or trial.state in states]

    @property
    def best_trial(self) -> FrozenTrial:
        """ValueError while no trial is complete and keeps all constraints; RuntimeError where there
        are several objectives."""
        self._check_one("best trial", "best_trials", "the best trials")
        done = self.get_trials(states=[TrialState.COMPLETE])
        if not done:
            raise ValueError("No trials are completed yet.")
        best = best_trials(done, self.engine.directions)
        if not best:
            raise ValueError("No feasible trials are completed yet.")
        return best[0]

    @property
    def best_trials(self) -> List[FrozenTrial]:
        """The front: the trials that no other dominates, of those that keep all constraints."""
        return best_trials(self.get_trials(), self.engine.directions)

    @property
    def best_params(self) -> Dict[str, Any]:
        return self.best_trial.params

    @property
    def best_value(self) -> float:
        value = self.best_trial.value
        assert value is not None
        return value

    def trials_dataframe(
        self, attrs: Tuple[str, ...] = ATTRIBUTES, multi_index: bool = False
    ) -> Any:
        """A pandas.DataFrame with a row a trial. ImportError without pandas."""
        if multi_index:
            raise NotSupported("trials_dataframe(multi_index=True): columns have one name here")
        return frame_of(self, attrs)

    @property
    def metric_names(self) -> Optional[List[str]]:
        return self.engine.metric_names

    def set_metric_names(self, metric_names: Sequence[str]) -> None:
        """Names of the objectives in trials_dataframe()."""
        if len(metric_names) != len(self.engine.directions):
            raise ValueError(
                f"metric_names={list(metric_names)!r}: The number of objectives must match the "
                "length of the metric names."
            )
        self.engine.metric_names = list(metric_names)
        self.engine.write_meta()

    def _check_one(self, what: str, instead: str, they: str) -> None:
        if len(self.engine.directions) > 1:
            raise RuntimeError(
                f"A single {what} cannot be retrieved from a multi-objective study. Consider "
                f"using Study.{instead} to retrieve a list containing {they}."
            )

    # ---- running -------------------------------------------------------------------------------

    def optimize(
        self,
        func: Callable[[Trial], Any],
        n_trials: Optional[int] = None,
        timeout: Optional[float] = None,
        n_jobs: int = 1,
        catch: Union[Iterable[Type[Exception]], Type[Exception]] = (),
        callbacks: Optional[Iterable[Callback]] = None,
        gc_after_trial: bool = False,
        show_progress_bar: bool = False,
    ) -> None:
        """Calls the objective for n_trials more trials, or until the timeout, in n_jobs threads.

        An exception that `catch` does not name ends it, as does Ctrl-C; what is stored stays, and
        a trial that was cut short is run again by the next call. So does the end of the space: no
        point is tried twice.
        """
        if not callable(func):
            raise TypeError(f"func is {func!r}: give a function of a trial")
        if n_trials is not None and n_trials < 0:
            raise ValueError(f"n_trials must not be negative, as {n_trials} is")
        if self._conductor is not None:
            raise RuntimeError("Nested invocation of `Study.optimize` method isn't allowed.")
        kinds = (catch,) if isinstance(catch, type) else tuple(catch)
        run = Run(self, func, kinds, list(callbacks or ()))
        jobs = (os.cpu_count() or 1) if n_jobs == -1 else max(n_jobs, 1)
        self._stopped = False
        began, count = time.monotonic(), 0
        while self.engine.space is None and not self._stopped:
            left = None if timeout is None else timeout - (time.monotonic() - began)
            if (n_trials is not None and count >= n_trials) or (left is not None and left <= 0):
                return
            run.first(self.engine)
            count += 1
        if self._stopped or n_trials == count:
            return
        left = None if timeout is None else max(timeout - (time.monotonic() - began), 0.0)
        more = None if n_trials is None else n_trials - count
        self._run(run, Limits(left, _ANY, more), jobs, show_progress_bar)

    def _run(self, run: Run, limits: Limits, jobs: int, show: bool) -> None:
        core = self.engine.core
        assert core
        assert core.problem
        progress = Progress(core.problem.result, limits.trials, None if show else False)
        self._conductor = conductor = Conductor(core, limits, progress)
        conductor.graceful = False
        conductor.on_end = run.on_end
        conductor.looks_ahead = not run.has_callbacks  # which may end it, or enqueue a trial
        try:
            run_threads(conductor, run.body, jobs)
        finally:
            self._conductor = None
            progress.draw(last=True)
        if run.error is not None:
            raise run.error
        if conductor.ended == "exhausted" and self.sampler.algorithm != "grid":
            _log.warning(
                "optimize ends before its time: %s, and none is tried twice", conductor.reason
            )

    def stop(self) -> None:
        """No trial begins any more; for callbacks and objectives."""
        self._stopped = True
        if self._conductor is not None:
            self._conductor.stop("stopped")

    def enqueue_trial(
        self,
        params: Mapping[str, Any],
        user_attrs: Optional[Mapping[str, Any]] = None,
        skip_if_exists: bool = False,
    ) -> None:
        """A point to try first, all or some of the parameters: before the study's first trial."""
        if self.engine.space is not None:
            raise NotSupported(
                "enqueue_trial: the search has begun, and its algorithm chooses the points; call "
                "it before the first trial"
            )
        if not (skip_if_exists and dict(params) in self.engine.queue):
            self.engine.queue.append(dict(params))

    def ask(self, fixed_distributions: Optional[Mapping[str, Distribution]] = None) -> Trial:
        """A trial to run and tell. With the distributions, its params are there at once."""
        engine = self.engine
        with self._lock:
            # How many constraints the sampler's function has, only a first result shows.
            known = fixed_distributions and engine.sampler.constraints_func is None
            if engine.space is None and fixed_distributions and known:
                engine.establish(fixed_distributions)
            if engine.space is None:
                trial = engine.first(len(engine.early))
            else:
                trial = engine.wrap(engine.take())
            self._asked[trial.number] = trial
        for name, distribution in (fixed_distributions or {}).items():
            trial._suggest(name, distribution)
        return trial

    def tell(
        self,
        trial: Union[Trial, int],
        values: Union[float, Sequence[float], None] = None,
        state: Optional[TrialState] = None,
        skip_if_finished: bool = False,
    ) -> FrozenTrial:
        """The result of a trial of ask(): a value of each objective, or a state without (FAIL,
        PRUNED)."""
        number = trial if isinstance(trial, int) else trial.number
        found = self._asked.get(number) if isinstance(trial, int) else trial
        if found is None or found.state.is_finished():
            if skip_if_finished and found is not None:
                return found.frozen()
            raise ValueError(f"trial {number} is told already, or was never asked for")
        if state not in (None, TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL):
            raise ValueError(f"state={state!r}: a trial ends COMPLETE, PRUNED or FAIL")
        result: Optional[List[float]] = None
        if state == TrialState.PRUNED and values is None:
            result = last_report(found)
        elif state != TrialState.FAIL:
            result, why = read_values(values, len(self.engine.directions))
            why = why or self.constrain(found, result)
            if why and state is not None:
                raise ValueError(f"trial {number} is {state.name}: {why}")
            if why:
                warnings.warn(f"trial {number} has failed: {why}", stacklevel=2)
                state, result, found.fail_reason = TrialState.FAIL, None, why
            state = state or TrialState.COMPLETE
        with self._lock:
            self.end(found, state, result)
            self._asked.pop(number, None)
        return found.frozen()

    def constrain(self, trial: Trial, values: List[float]) -> str:
        """Sets the constraints of a trial with these values. Why it has no result after all, or "".
        NotSupported, or what the sampler's function raises: they cannot be had."""
        func = self.engine.sampler.constraints_func
        if func is not None:
            frozen = trial.frozen()
            frozen.state, frozen.values = TrialState.COMPLETE, values
            for index, value in enumerate(func(frozen)):
                trial.set_constraint(str(index), value)
        if self.engine.space is not None:
            check_constraints(trial, self.engine.constraints)
        for key, value in trial.constraints.items():
            if math.isinf(value):
                return f"The constraint {key!r} is {value}: it must be finite."
        return ""

    def end(self, trial: Trial, state: TrialState, values: Optional[List[float]]) -> None:
        """Of a trial that this study runs itself."""
        trial.state, trial.values, trial.ended = state, values, time.time()
        engine = self.engine
        if trial.core is not None:
            engine.finish(trial)
        elif state == TrialState.COMPLETE:
            engine.establish(trial.distributions, trial.constraints)
            self._asked = {other.number: other for other in self._asked.values()}

    def say(self, trial: FrozenTrial) -> None:
        """Optuna's line about a trial that has ended."""
        if trial.state == TrialState.COMPLETE and trial.values is not None:
            several = len(trial.values) > 1
            best = "" if several else self._best_words(trial)
            _log.info(
                "Trial %d finished with %s: %s and parameters: %s.%s",
                trial.number,
                "values" if several else "value",
                trial.values if several else trial.value,
                trial.params,
                best,
            )
        elif trial.state == TrialState.PRUNED:
            _log.info("Trial %d pruned. ", trial.number)
        else:
            reason = trial.system_attrs.get("fail_reason", "no value")
            _log.warning(
                "Trial %d failed with parameters: %s: %s", trial.number, trial.params, reason
            )

    def _best_words(self, trial: FrozenTrial) -> str:
        """After this trial; "" while none keeps all constraints."""
        assert trial.value is not None
        sign = 1 if self.engine.directions[0] == "minimize" else -1
        with self._lock:
            better = self._best is None or sign * trial.value < sign * self._best[0]
            if better and is_feasible(trial):
                self._best = (trial.value, trial.number)
            if self._best is None:
                return ""
            value, number = self._best
        return f" Best is trial {number} with value: {value}."

    def add_trial(self, trial: Any) -> None:
        raise NotSupported("add_trial: results from elsewhere come in by `shirabe import`")

    def add_trials(self, trials: Any) -> None:
        self.add_trial(None)


class StudyDirection(str):
    """minimize or maximize, as a text; with Optuna's name."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"

    @property
    def name(self) -> str:
        return self.upper()


class MaxTrialsCallback:
    """Stops the study once so many trials of it have one of these states."""

    def __init__(
        self, n_trials: int, states: Optional[Iterable[TrialState]] = (TrialState.COMPLETE,)
    ) -> None:
        self._n_trials = n_trials
        self._states = None if states is None else list(states)

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        if len(study.get_trials(states=self._states)) >= self._n_trials:
            study.stop()
