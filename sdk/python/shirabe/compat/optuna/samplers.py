"""Optuna's samplers by the algorithm that Shirabe has of their kind. An argument that has no
counterpart is refused where it is given a value of its own."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from .exceptions import NotSupported
from .trial import FrozenTrial

__all__ = [
    "BaseSampler",
    "BruteForceSampler",
    "CmaEsSampler",
    "GPSampler",
    "GridSampler",
    "NSGAIISampler",
    "QMCSampler",
    "RandomSampler",
    "TPESampler",
]


Constraints = Callable[[FrozenTrial], Sequence[float]]


class BaseSampler:
    """An algorithm of Shirabe, its settings and a seed."""

    algorithm = "auto"
    # Arguments that change nothing here: what they choose is done, or does not arise.
    harmless: Sequence[str] = ()

    def __init__(self, *, seed: Optional[int] = None, **others: Any) -> None:
        self.seed = seed
        self.settings: Dict[str, Any] = {}
        self.search_space: Optional[Dict[str, List[Any]]] = None
        # Of a complete trial: values that are 0 or less where it keeps its constraints.
        self.constraints_func: Optional[Constraints] = None
        for name, value in others.items():
            if name not in self.harmless and value not in (None, False):
                raise NotSupported(
                    f"{type(self).__name__}({name}={value!r}): Shirabe's {self.algorithm} has "
                    "nothing of this kind; leave it out"
                )

    def reseed_rng(self) -> None:
        """Nothing: every study draws from its own seed."""


class RandomSampler(BaseSampler):
    algorithm = "random"

    def __init__(self, seed: Optional[int] = None) -> None:
        super().__init__(seed=seed)


class TPESampler(BaseSampler):
    algorithm = "tpe"
    harmless = (
        "consider_prior",
        "consider_magic_clip",
        "consider_endpoints",
        "warn_independent_sampling",
        "constant_liar",
    )

    def __init__(
        self,
        *,
        n_startup_trials: int = 10,
        n_ei_candidates: int = 24,
        prior_weight: Optional[float] = None,
        multivariate: Optional[bool] = None,
        seed: Optional[int] = None,
        constraints_func: Optional[Constraints] = None,
        **others: Any,
    ) -> None:
        super().__init__(seed=seed, **others)
        self.constraints_func = constraints_func
        if multivariate:
            self.algorithm = "multivariate-tpe"
        self.settings = {"n_startup_trials": n_startup_trials, "n_EI_candidates": n_ei_candidates}
        if prior_weight is not None:
            self.settings["prior_weight"] = prior_weight


class GPSampler(BaseSampler):
    algorithm = "bayesianoptimization"
    harmless = ("independent_sampler", "deterministic_objective", "warn_independent_sampling")

    def __init__(
        self,
        *,
        seed: Optional[int] = None,
        n_startup_trials: int = 10,
        constraints_func: Optional[Constraints] = None,
        **others: Any,
    ) -> None:
        super().__init__(seed=seed, **others)
        self.constraints_func = constraints_func
        self.settings = {"n_initial_points": max(n_startup_trials, 1)}


class CmaEsSampler(BaseSampler):
    algorithm = "cmaes"
    harmless = (
        "n_startup_trials",
        "independent_sampler",
        "warn_independent_sampling",
        "inc_popsize",
    )

    def __init__(
        self,
        *,
        seed: Optional[int] = None,
        restart_strategy: Optional[str] = None,
        popsize: Optional[int] = None,
        lr_adapt: bool = False,
        **others: Any,
    ) -> None:
        super().__init__(seed=seed, **others)
        self.settings = {"restart_strategy": restart_strategy or "none", "lr_adapt": bool(lr_adapt)}
        if popsize is not None:
            self.settings["popsize"] = popsize


class QMCSampler(BaseSampler):
    algorithm = "sobol"
    harmless = (
        "scramble",
        "independent_sampler",
        "warn_asynchronous_seeding",
        "warn_independent_sampling",
    )

    def __init__(
        self, *, qmc_type: str = "sobol", seed: Optional[int] = None, **others: Any
    ) -> None:
        super().__init__(seed=seed, **others)
        if qmc_type != "sobol":
            raise NotSupported(f"QMCSampler(qmc_type={qmc_type!r}): there is sobol, scrambled")


class NSGAIISampler(BaseSampler):
    algorithm = "nsga2"
    harmless = ("crossover_prob", "swapping_prob")

    def __init__(
        self,
        *,
        population_size: int = 50,
        seed: Optional[int] = None,
        constraints_func: Optional[Constraints] = None,
        **others: Any,
    ) -> None:
        super().__init__(seed=seed, **others)
        self.constraints_func = constraints_func
        self.settings = {"population_size": population_size}


class GridSampler(BaseSampler):
    """The combinations of these values; the objective's distributions are not looked at."""

    algorithm = "grid"

    def __init__(
        self, search_space: Mapping[str, Sequence[Any]], seed: Optional[int] = None
    ) -> None:
        super().__init__(seed=seed)
        self.search_space = {
            # A value that is there twice would be tried twice.
            name: list({(type(v), v): v for v in values}.values())
            for name, values in search_space.items()
        }


class BruteForceSampler(BaseSampler):
    algorithm = "grid"
    harmless = ("avoid_premature_stop",)


def __getattr__(name: str) -> Any:
    if name in ("NSGAIIISampler", "PartialFixedSampler", "BaseGASampler"):
        raise AttributeError(
            f"shirabe.compat.optuna.samplers has no {name}: see `shirabe algorithms`"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
