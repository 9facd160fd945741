"""Trains a linear classifier epoch by epoch, and prunes trials that fall behind."""

import logging
import sys

import optuna

optuna.logging.get_logger("optuna").addHandler(logging.StreamHandler(sys.stdout))


def objective(trial):
    alpha = trial.suggest_float("alpha", 1e-5, 1e-1, log=True)
    bad = trial.suggest_categorical("kind", ["good", "bad"]) == "bad"
    error = 1.0
    for step in range(30):
        error = error * (0.9 if not bad else 0.999) + alpha / 100
        trial.report(error, step)
        if trial.should_prune():
            raise optuna.TrialPruned()
    return error


study = optuna.create_study(pruner=optuna.pruners.MedianPruner(n_startup_trials=3))
study.optimize(objective, n_trials=30)
states = [t.state for t in study.trials]
pruned = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.PRUNED])
complete = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
assert len(pruned) + len(complete) == 30
assert pruned, "nothing was pruned"
assert all(0 < len(t.intermediate_values) <= 30 for t in pruned)
assert all(t.value == t.intermediate_values[t.last_step] for t in pruned)
assert study.best_params["kind"] == "good"
