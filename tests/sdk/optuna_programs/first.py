"""Minimises a parabola, looks at the results, and goes on for more trials."""

import optuna


def objective(trial):
    x = trial.suggest_float("x", -10, 10)
    return (x - 2) ** 2


study = optuna.create_study()
study.optimize(objective, n_trials=15)

found = study.best_params["x"]
print("Found x:", found, "(x - 2)^2:", (found - 2) ** 2)
assert study.best_params == study.best_trial.params
assert study.best_value == study.best_trial.value
assert study.best_trial.state == optuna.trial.TrialState.COMPLETE
assert study.best_value == min(t.value for t in study.trials)
assert len(study.trials) == 15

study.optimize(objective, n_trials=5)
assert len(study.trials) == 20
assert [t.number for t in study.trials] == list(range(20))
assert study.direction.name == "MINIMIZE"
assert all(t.duration.total_seconds() >= 0 for t in study.trials)
