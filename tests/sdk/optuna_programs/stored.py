"""A study in a database: it goes on in another process, and shows its history."""

import subprocess
import sys

import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)
ADDRESS = "sqlite:///example.db"


def objective(trial):
    x = trial.suggest_float("x", -10, 10)
    k = trial.suggest_categorical("k", [1, "one", None, True])
    return (x - 2) ** 2 + (k is None)


study = optuna.create_study(
    study_name="example study", storage=ADDRESS, load_if_exists=len(sys.argv) > 1
)
study.optimize(objective, n_trials=3)
if len(sys.argv) > 1:
    sys.exit(0)

try:
    optuna.create_study(study_name="example study", storage=ADDRESS)
    raise SystemExit("created twice")
except optuna.exceptions.DuplicatedStudyError:
    pass
del study
subprocess.run([sys.executable, __file__, "again"], check=True, timeout=120)
study = optuna.load_study(study_name="example study", storage=ADDRESS)
assert len(study.trials) == 6
assert optuna.get_all_study_names(ADDRESS) == ["example study"]
values = [(t.params["x"] - 2) ** 2 + (t.params["k"] is None) for t in study.trials]
assert all(abs(v - t.value) < 1e-12 for v, t in zip(values, study.trials))
optuna.delete_study(study_name="example study", storage=ADDRESS)
assert optuna.get_all_study_names(ADDRESS) == []
