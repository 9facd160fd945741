"""Every kind of parameter, maximised by a seeded sampler."""

import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    optimizer = trial.suggest_categorical("optimizer", ["MomentumSGD", "Adam", None])
    layers = trial.suggest_int("num_layers", 1, 3)
    channels = trial.suggest_int("num_channels", 32, 512, log=True)
    units = trial.suggest_int("num_units", 10, 100, step=5)
    dropout = trial.suggest_float("dropout_rate", 0.0, 1.0)
    rate = trial.suggest_float("learning_rate", 1e-5, 1e-2, log=True)
    drop_path = trial.suggest_float("drop_path_rate", 0.0, 1.0, step=0.1)
    bias = trial.suggest_categorical("bias", [True, False])
    batch = trial.suggest_categorical("batch", [16, 32, 64])
    assert trial.suggest_int("num_layers", 1, 3) == layers  # asked again: the same
    assert optimizer in ("MomentumSGD", "Adam", None) and bias in (True, False)
    assert isinstance(layers, int) and isinstance(channels, int) and isinstance(dropout, float)
    assert units % 5 == 0 and 10 <= units <= 100 and 32 <= channels <= 512
    assert batch in (16, 32, 64) and isinstance(batch, int)
    assert abs(drop_path * 10 - round(drop_path * 10)) < 1e-9
    return layers - dropout - abs(rate - 1e-3) * 100 + (optimizer == "Adam") + bias


study = optuna.create_study(
    direction="maximize", sampler=optuna.samplers.TPESampler(seed=10, n_startup_trials=5)
)
study.optimize(objective, n_trials=20)
assert len(study.best_params) == 9
assert study.best_value == max(t.value for t in study.trials)
assert set(study.best_trial.distributions) == set(study.best_params)
