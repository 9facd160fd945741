"""One call of Study.optimize: runs the objective, and makes states of what it does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple, Type

from ...outcome import Outcome, from_exception
from ...study import Asked
from ...trial import Trial as CoreTrial
from .engine import Engine
from .exceptions import NotSupported, TrialPruned
from .results import read_values
from .trial import FrozenTrial, Trial, TrialState

if TYPE_CHECKING:
    from .study import Study

__all__ = ["Callback", "Run", "last_report"]

Callback = Callable[["Study", FrozenTrial], None]


class Run:
    """Used by one call, in as many threads as that has."""

    def __init__(
        self,
        study: Study,
        func: Callable[[Trial], Any],
        catch: Tuple[Type[Exception], ...],
        callbacks: List[Callback],
    ) -> None:
        self._study, self._func, self._catch, self._callbacks = study, func, catch, callbacks
        self._trials: Dict[int, Trial] = {}
        self.error: Optional[BaseException] = None

    @property
    def has_callbacks(self) -> bool:
        return bool(self._callbacks)

    def first(self, engine: Engine) -> None:
        """A trial before the space is known. Raises what `catch` does not name."""
        trial = engine.first(len(engine.early))
        try:
            error = self._call(trial)
        except BaseException:
            engine.early.remove(trial)
            raise
        self._study.end(trial, trial.state, trial.values)
        self._report(trial)
        if error is not None:
            raise error

    def body(self, core: CoreTrial) -> Outcome:
        trial = self._study.engine.wrap(core)
        self._trials[core.number] = trial
        error = self._call(trial)
        trial.ended = time.time()
        core.notes = trial.notes()
        if error is not None:
            self.error = self.error or error
        return self._study.engine.outcome(trial)

    def on_end(self, asked: Asked, outcome: Outcome, core: CoreTrial) -> None:
        self._report(self._trials.pop(asked.number))
        if self.error is not None:
            self._study.stop()

    def _report(self, trial: Trial) -> None:
        frozen = trial.frozen()
        self._study.say(frozen)
        for callback in self._callbacks:
            callback(self._study, frozen)

    def _call(self, trial: Trial) -> Optional[BaseException]:
        """Runs the objective, and sets the trial's state and value. The exception that is to end
        the study, if there was one."""
        trial.study = self._study
        try:
            returned = self._func(trial)
        except TrialPruned:
            trial.state, trial.values = TrialState.PRUNED, last_report(trial)
            return None
        except (Exception, SystemExit) as error:
            trial.state = TrialState.FAIL
            trial.fail_reason = from_exception(error).reason
            caught = isinstance(error, self._catch) and not isinstance(error, NotSupported)
            return None if caught else error
        if trial.core is not None and trial.core.stop_reason is not None:
            trial.state, trial.values = TrialState.PRUNED, last_report(trial)
            return None
        values, why = read_values(returned, trial.objectives)
        try:
            why = why or self._study.constrain(trial, values)
        except Exception as error:
            trial.state, trial.fail_reason = TrialState.FAIL, from_exception(error).reason
            return error
        if why:
            trial.state, trial.fail_reason = TrialState.FAIL, why
        else:
            trial.state, trial.values = TrialState.COMPLETE, values
        return None


def last_report(trial: Trial) -> Optional[List[float]]:
    """The value of a pruned trial."""
    return [trial.reports[max(trial.reports)]] if trial.reports else None
