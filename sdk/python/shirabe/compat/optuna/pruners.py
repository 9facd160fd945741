"""Optuna's pruners by the early-stopping rule that Shirabe has of their kind."""

from __future__ import annotations

from typing import Any, Dict, Optional, Union

from .exceptions import NotSupported

__all__ = [
    "BasePruner",
    "MedianPruner",
    "NopPruner",
    "PatientPruner",
    "PercentilePruner",
    "SuccessiveHalvingPruner",
    "ThresholdPruner",
    "WilcoxonPruner",
]


class BasePruner:
    """A stopper of Shirabe and its settings; without a name, none."""

    stopper = ""

    def __init__(self, **settings: Any) -> None:
        self.settings: Dict[str, Any] = settings


def _only(pruner: str, **given: Any) -> None:
    """Refuses arguments that differ from (value, the one that is had)."""
    for name, (value, had) in given.items():
        if value != had:
            raise NotSupported(
                f"{pruner}({name}={value!r}): Shirabe's rule looks at every report; leave it at "
                f"{had!r}"
            )


class NopPruner(BasePruner):
    """Stops nothing."""


class MedianPruner(BasePruner):
    stopper = "medianstop"

    def __init__(
        self,
        n_startup_trials: int = 5,
        n_warmup_steps: int = 0,
        interval_steps: int = 1,
        *,
        n_min_trials: int = 1,
    ) -> None:
        _only("MedianPruner", interval_steps=(interval_steps, 1))
        needed = max(n_startup_trials, n_min_trials, 1)
        super().__init__(min_trials_required=needed, start_step=n_warmup_steps + 1)


class PercentilePruner(BasePruner):
    stopper = "percentile"

    def __init__(
        self,
        percentile: float,
        n_startup_trials: int = 5,
        n_warmup_steps: int = 0,
        interval_steps: int = 1,
        *,
        n_min_trials: int = 1,
    ) -> None:
        _only("PercentilePruner", interval_steps=(interval_steps, 1))
        super().__init__(
            percentile=percentile,
            min_trials_required=max(n_startup_trials, n_min_trials, 1),
            start_step=n_warmup_steps + 1,
        )


class SuccessiveHalvingPruner(BasePruner):
    stopper = "asha-stop"

    def __init__(
        self,
        min_resource: Union[str, int] = "auto",
        reduction_factor: int = 4,
        min_early_stopping_rate: int = 0,
        bootstrap_count: int = 0,
    ) -> None:
        _only("SuccessiveHalvingPruner", bootstrap_count=(bootstrap_count, 0))
        first = 1 if min_resource == "auto" else int(min_resource)
        first *= reduction_factor**min_early_stopping_rate
        super().__init__(eta=reduction_factor, min_resource=first)


class PatientPruner(BasePruner):
    stopper = "patience"

    def __init__(
        self, wrapped_pruner: Optional[BasePruner], patience: int, min_delta: float = 0.0
    ) -> None:
        if wrapped_pruner is not None:
            raise NotSupported("PatientPruner(wrapped_pruner=…): rules are not nested; give None")
        super().__init__(patience=patience, min_delta=min_delta)


class ThresholdPruner(BasePruner):
    stopper = "threshold"

    def __init__(
        self,
        lower: Optional[float] = None,
        upper: Optional[float] = None,
        n_warmup_steps: int = 0,
        interval_steps: int = 1,
    ) -> None:
        _only("ThresholdPruner", interval_steps=(interval_steps, 1))
        bounds = {"lower": lower, "upper": upper}
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        if not given:
            raise TypeError("ThresholdPruner needs lower or upper")
        super().__init__(**given, start_step=n_warmup_steps + 1)


class WilcoxonPruner(BasePruner):
    stopper = "wilcoxon"

    def __init__(self, *, p_threshold: float = 0.1, n_startup_steps: int = 2) -> None:
        super().__init__(p_threshold=p_threshold, start_step=max(n_startup_steps, 1))


def __getattr__(name: str) -> Any:
    if name == "HyperbandPruner":
        raise AttributeError(
            "shirabe.compat.optuna.pruners has no HyperbandPruner: brackets of trials are "
            "Shirabe's algorithm `hyperband`; SuccessiveHalvingPruner is one bracket"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
