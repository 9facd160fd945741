#!/usr/bin/env python3
"""The importances that Optuna's PED-ANOVA gives the 80 trials of PedAnovaTest.IsThatOfOptuna, which
holds ours against them, and what it takes for 1,000 trials of 20 parameters.

    python3 bench/importance/ped_optuna.py        needs: pip install optuna
"""

import math
import random
import time
import warnings

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

SPACE = {
    "x": FloatDistribution(0.0, 1.0),
    "lr": FloatDistribution(1e-5, 1e-1, log=True),
    "k": IntDistribution(1, 8),
    "c": CategoricalDistribution(["a", "b", "d"]),
}


def part(value: float) -> float:
    return value - math.floor(value)


def trials() -> optuna.Study:
    study = optuna.create_study()
    for i in range(1, 81):
        x, e = part(i * 0.7548776662466927), part(i * 0.5698402909980532)
        k = 1 + int(8 * part(i * 0.4301597090019468))
        c = int(3 * part(i * 0.3183098861837907))
        loss = (x - 0.3) ** 2 + 0.2 * (e - 0.5) ** 2 + 0.05 * abs(k - 4) + 0.05 * c
        params = {"x": x, "lr": min(max(10 ** (-5 + 4 * e), 1e-5), 1e-1), "k": k, "c": "abd"[c]}
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=SPACE, value=loss)
        )
    return study


def large() -> optuna.Study:
    space = {f"x{j}": FloatDistribution(0.0, 1.0) for j in range(20)}
    study = optuna.create_study()
    random.seed(1)
    for _ in range(1000):
        params = {name: random.random() for name in space}
        loss = sum(math.sin(3 * x) / (1 + j) for j, x in enumerate(params.values()))
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=space, value=loss)
        )
    return study


def importances(study: optuna.Study) -> dict:
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    return optuna.importance.get_param_importances(study, evaluator=evaluator, normalize=False)


def main() -> None:
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print("optuna", optuna.__version__)
    for name, value in importances(trials()).items():
        print(f"{name:3} {value!r}")
    study = large()
    start = time.perf_counter()
    importances(study)
    print(f"1,000 trials of 20 parameters: {1e3 * (time.perf_counter() - start):.1f} ms")


if __name__ == "__main__":
    main()
