"""Points of one's own first; several threads; samplers; the table of all trials."""

import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    x = trial.suggest_float("x", -100, 100)
    y = trial.suggest_int("y", -100, 100)
    return x**2 + y


study = optuna.create_study()
study.enqueue_trial({"x": 5, "y": 7})
study.enqueue_trial({"x": -3.5})
study.optimize(objective, n_trials=4)
assert study.trials[0].params == {"x": 5, "y": 7}
assert study.trials[1].params["x"] == -3.5

for sampler in (
    optuna.samplers.RandomSampler(seed=1),
    optuna.samplers.TPESampler(multivariate=True),
    optuna.samplers.GridSampler({"x": [-50, 0, 50], "y": [-99, 0, 99]}),
):
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=9, n_jobs=3)
    assert len(study.trials) == 9, sampler
assert study.best_params == {"x": 0, "y": -99}
assert study.best_value == -99

try:
    import pandas  # noqa: F401
except ImportError:
    pass
else:
    frame = study.trials_dataframe()
    assert list(frame.columns)[:2] == ["number", "value"]
    assert {"params_x", "params_y", "state", "duration"} <= set(frame.columns)
    assert len(study.trials_dataframe(attrs=("number", "value", "params"))) == 9
