"""User attributes, callbacks, stop, catch, and failures."""

import math

import optuna
from optuna.trial import TrialState

optuna.logging.set_verbosity(optuna.logging.ERROR)
seen = []


def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    trial.set_user_attr("square", x * x)
    if trial.number == 1:
        raise ValueError("a point that fails")
    if trial.number == 2:
        return math.nan
    return x


study = optuna.create_study()
study.set_user_attr("contributors", ["Akiba", "Sano"])
study.optimize(
    objective,
    n_trials=6,
    catch=(ValueError,),
    callbacks=[lambda study, trial: seen.append((trial.number, trial.state))],
)
assert [number for number, _ in seen] == list(range(6))
assert seen[1][1] == seen[2][1] == TrialState.FAIL
assert study.user_attrs == {"contributors": ["Akiba", "Sano"]}
assert study.best_trial.user_attrs["square"] == study.best_params["x"] ** 2
assert [t.state for t in study.trials].count(TrialState.FAIL) == 2


def stop_when_good(study, trial):
    if len(study.trials) >= 8:
        study.stop()


study.optimize(objective, n_trials=100, callbacks=[stop_when_good])
assert len(study.trials) == 8


def wrong(trial):
    trial.suggest_float("x", 0, 1)
    raise KeyError("not caught")


try:
    study.optimize(wrong, n_trials=5)
    raise SystemExit("the error is lost")
except KeyError:
    pass
assert study.trials[-1].state == TrialState.FAIL and len(study.trials) == 9

later = optuna.create_study()
later.optimize(
    objective,
    timeout=60,
    catch=ValueError,
    callbacks=[optuna.study.MaxTrialsCallback(4, states=(TrialState.COMPLETE,))],
)
assert len(later.get_trials(states=(TrialState.COMPLETE,))) == 4
