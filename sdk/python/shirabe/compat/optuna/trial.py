"""Optuna's trials: while they run, and as they have ended."""

from __future__ import annotations

import datetime
import enum
import math
import random
import time
import warnings
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ...space import Choice, Range
from ...texts import as_json
from ...trial import Trial as CoreTrial
from .distributions import (
    CategoricalDistribution,
    Distribution,
    FloatDistribution,
    IntDistribution,
)
from .exceptions import NotSupported

__all__ = ["FrozenTrial", "Trial", "TrialState", "stored_attribute"]


class TrialState(enum.IntEnum):
    RUNNING = 0
    COMPLETE = 1
    PRUNED = 2
    FAIL = 3
    WAITING = 4

    def is_finished(self) -> bool:
        return self not in (TrialState.RUNNING, TrialState.WAITING)


class FrozenTrial:
    """A trial as it is stored. values: one of each objective, None without a result; constraints:
    {key: value}, kept where the value is 0 or less; times are those of this machine."""

    def __init__(
        self, number: int, state: TrialState, values: Optional[Sequence[float]]
    ) -> None:
        self.number = number
        self.state = state
        self.values = None if values is None else list(values)
        self.constraints: Dict[str, float] = {}
        self.params: Dict[str, Any] = {}
        self.distributions: Dict[str, Distribution] = {}
        self.user_attrs: Dict[str, Any] = {}
        self.system_attrs: Dict[str, Any] = {}
        self.intermediate_values: Dict[int, float] = {}
        self.datetime_start: Optional[datetime.datetime] = None
        self.datetime_complete: Optional[datetime.datetime] = None

    @property
    def value(self) -> Optional[float]:
        """RuntimeError where there are several."""
        if self.values is None:
            return None
        if len(self.values) > 1:
            raise RuntimeError(
                "This attribute is not available during multi-objective optimization."
            )
        return self.values[0]

    @property
    def duration(self) -> Optional[datetime.timedelta]:
        if self.datetime_start is None or self.datetime_complete is None:
            return None
        return self.datetime_complete - self.datetime_start

    def set_constraints(self, constraints: Mapping[str, float]) -> None:
        """In Optuna 4 the values of constraints_func are a system attribute."""
        self.constraints = dict(constraints)
        if constraints and list(constraints) == [str(i) for i in range(len(constraints))]:
            self.system_attrs["constraints"] = list(constraints.values())

    @property
    def last_step(self) -> Optional[int]:
        return max(self.intermediate_values, default=None)

    def __repr__(self) -> str:
        return (
            f"FrozenTrial(number={self.number}, state={self.state!r}, values={self.values}, "
            f"params={self.params})"
        )


class Trial:
    """A trial that an objective runs. One of the first, while the space is not known, draws its
    values itself; the others have a trial of the study, with all values."""

    def __init__(
        self,
        number: int,
        space: Optional[Mapping[str, Distribution]],
        core: Optional[CoreTrial],
        rng: random.Random,
    ) -> None:
        self.number = number
        self.study: Any = None  # the Study that it is of
        self.params: Dict[str, Any] = {}
        self.distributions: Dict[str, Distribution] = {}
        self.user_attrs: Dict[str, Any] = {}
        self.fixed: Dict[str, Any] = {}  # values for names that it may ask for
        self.fail_reason = ""
        self.reports: Dict[int, float] = {}
        self.state = TrialState.RUNNING
        self.values: Optional[List[float]] = None
        self.constraints: Dict[str, float] = {}
        self.objectives = 1  # how many the study has
        self.began = time.time()
        self.ended: Optional[float] = None
        self.core = core
        self._space = space
        self._rng = rng
        self._unsent: Dict[int, float] = {}

    # ---- parameters ----------------------------------------------------------------------------

    def suggest_float(
        self,
        name: str,
        low: float,
        high: float,
        *,
        step: Optional[float] = None,
        log: bool = False,
    ) -> float:
        """A float from low to high, both included."""
        value: float = self._suggest(name, FloatDistribution(low, high, log, step))
        return value

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """A whole number from low to high, both included."""
        value: int = self._suggest(name, IntDistribution(low, high, log, step))
        return value

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of the choices: None, bools, numbers or texts."""
        return self._suggest(name, CategoricalDistribution(choices))

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        return self.suggest_float(name, low, high)

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        return self.suggest_float(name, low, high, log=True)

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        return self.suggest_float(name, low, high, step=q)

    def _suggest(self, name: str, distribution: Distribution) -> Any:
        known = self.distributions.get(name)
        if known is not None and known != distribution:
            raise ValueError(f"{name!r} is asked for as {distribution} and, before, as {known}")
        if known is None:
            self.params[name] = self._value(name, distribution)
            self.distributions[name] = distribution
        return self.params[name]

    def _value(self, name: str, distribution: Distribution) -> Any:
        if self._space is None:
            if name in self.fixed:
                return self.fixed[name]
            return draw(distribution, self._rng)
        if name not in self._space:
            raise NotSupported(
                f"this trial asks for {name!r}, which the space of the study has not "
                f"({', '.join(self._space)}): a space that changes from trial to trial cannot be "
                "had; ask for all parameters first, and use those that are needed"
            )
        assert self.core
        value = self.core.params[name]
        had = self._space[name]
        if had != distribution:
            try:  # a grid's values lie in the objective's range
                if isinstance(had, CategoricalDistribution):
                    distribution.parameter().encode(value)
                    return type(distribution.parameter().decode(value))(value)
            except ValueError:
                pass
            raise NotSupported(
                f"{name!r} was {had} in the first trial and is {distribution}: ranges that change "
                "from trial to trial cannot be had"
            )
        return value

    def bind(self, space: Mapping[str, Distribution], core: CoreTrial) -> None:
        """The space is known now, and the study has this trial, with the values drawn so far."""
        self._space, self.core = space, core

    # ---- values ----------------------------------------------------------------------------------

    def report(self, value: float, step: int) -> None:
        """A value of the objective at a step; should_prune looks at it."""
        self._check_one_objective("report")
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise TypeError(f"report takes a number, not {value!r}") from None
        if step < 0:
            raise ValueError(f"step must not be negative, as {step} is")
        if step in self.reports:
            warnings.warn(f"step {step} is reported already: this value is left out", stacklevel=2)
            return
        self.reports[int(step)] = self._unsent[int(step)] = number

    def should_prune(self) -> bool:
        """Whether the pruner would end this trial now. Without it a trial runs to its end."""
        self._check_one_objective("should_prune")
        if self.core is None:
            return False
        for step in sorted(self._unsent):
            if self.core.stop_reason is None:
                self.core.report(step, value=self._unsent[step])
        self._unsent.clear()
        return self.core.stop_reason is not None

    def set_user_attr(self, key: str, value: Any) -> None:
        """Kept with the trial. TypeError for what JSON has not; a number of NumPy is one."""
        self.user_attrs.update(stored_attribute(key, value))

    def set_constraint(self, key: str, value: float) -> None:
        """A constraint: kept where the value is 0 or less. Every trial of a study sets the same."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise TypeError(f"constraint {key!r} is {value!r}: give a number") from None
        if math.isnan(number):
            raise ValueError(f"constraint {key!r}: Constraint values cannot be NaN.")
        if key in self.constraints:
            warnings.warn(f"constraint {key!r} is set already: this is left out", stacklevel=2)
            return
        self.constraints[str(key)] = number

    def _check_one_objective(self, what: str) -> None:
        if self.objectives > 1:
            raise NotImplementedError(
                f"Trial.{what} is not supported for multi-objective optimization."
            )

    @property
    def relative_params(self) -> Dict[str, Any]:
        return dict(self.core.params) if self.core else {}

    @property
    def datetime_start(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.began)

    def frozen(self) -> FrozenTrial:
        """As it is now."""
        found = FrozenTrial(self.number, self.state, self.values)
        found.set_constraints(self.constraints)
        found.params, found.distributions = dict(self.params), dict(self.distributions)
        found.user_attrs = dict(self.user_attrs)
        found.intermediate_values = dict(self.reports)
        if self.fail_reason:
            found.system_attrs["fail_reason"] = self.fail_reason
        found.datetime_start = self.datetime_start
        if self.ended is not None:
            found.datetime_complete = datetime.datetime.fromtimestamp(self.ended)
        return found

    def notes(self) -> Dict[str, Any]:
        """What is stored beside the value."""
        notes: Dict[str, Any] = {"start": self.began, "end": self.ended}
        if self.core is not None and self.params != self.core.params:
            # Drawn before the study had the trial, to the last digit; or not all were asked for.
            notes["params"] = self.params
        if self.user_attrs:
            notes["attrs"] = self.user_attrs
        if self.reports:
            notes["reports"] = self.reports
        if self.values is not None and self.state == TrialState.PRUNED:
            notes["values"] = self.values
        return notes


def stored_attribute(key: str, value: Any) -> Dict[str, Any]:
    """{key: value} as it is read from the storage. TypeError, with the key and the type, for what
    JSON has not."""
    try:
        found: Dict[str, Any] = as_json({key: value})
        return found
    except TypeError as error:
        raise TypeError(
            f"user attribute {key!r} is a {type(value).__name__} that cannot be stored: {error}"
        ) from None


def draw(distribution: Distribution, rng: random.Random) -> Any:
    """A random value of it."""
    parameter = distribution.parameter()
    if isinstance(parameter, Choice):
        return rng.choice(parameter.values)
    assert isinstance(parameter, Range)
    low, high, step = parameter.low, parameter.high, parameter.step
    if step is not None:
        count = int((high - low) / step + 1e-9)
        value = low + rng.randint(0, count) * step
        return parameter.decode(min(value, high))
    if parameter.kind == "int" and not parameter.log:
        return rng.randint(low, high)
    if parameter.log:
        value = math.exp(rng.uniform(math.log(low), math.log(high)))
    else:
        value = rng.uniform(low, high)
    value = min(max(value, low), high)
    return round(value) if parameter.kind == "int" else value
