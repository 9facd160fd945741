"""Constraints as Optuna 5 has them: trial.set_constraint, without a sampler's function."""

import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    x = trial.suggest_float("x", -10, 10)
    trial.set_constraint("at least 5", 5 - x)
    trial.set_constraint("at most 9", x - 9)
    return x


study = optuna.create_study(direction="minimize")
study.enqueue_trial({"x": -10.0})  # breaks the first, and has the better value
study.enqueue_trial({"x": 5.0})
study.optimize(objective, n_trials=15)
assert study.trials[0].params == {"x": -10.0} and study.trials[1].params == {"x": 5.0}
assert study.best_trial.number == 1 and study.best_value == 5.0
assert study.best_trial.constraints == {"at least 5": 0.0, "at most 9": -4.0}
assert study.trials[0].constraints == {"at least 5": 15.0, "at most 9": -19.0}
