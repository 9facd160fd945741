"""Trials that the program runs itself: one by one, in a batch, with the space given first."""

import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)

study = optuna.create_study(direction="maximize")
for _ in range(4):
    trial = study.ask()
    c = trial.suggest_float("C", 1e-7, 10.0, log=True)
    solver = trial.suggest_categorical("solver", ("lbfgs", "saga"))
    study.tell(trial, 1 - abs(c - 1) / 10 + (solver == "saga"))
assert len(study.trials) == 4 and study.best_trial.number in range(4)

space = {
    "x": optuna.distributions.FloatDistribution(-10, 10),
    "n": optuna.distributions.IntDistribution(1, 9, step=2),
    "k": optuna.distributions.CategoricalDistribution(["a", "b"]),
}
study = optuna.create_study()
for number in range(6):
    trial = study.ask(space)
    assert set(trial.params) == {"x", "n", "k"}
    if number == 2:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    elif number == 3:
        trial.report(4.5, 1)
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    else:
        study.tell(trial.number, trial.params["x"] ** 2)
try:
    study.tell(trial, 1.0)
    raise SystemExit("told twice")
except ValueError:
    pass
study.tell(trial, 1.0, skip_if_finished=True)
states = [t.state.name for t in study.trials]
assert states == ["COMPLETE", "COMPLETE", "FAIL", "PRUNED", "COMPLETE", "COMPLETE"], states
assert study.trials[3].value == 4.5

batch_study = optuna.create_study()
for _ in range(3):
    batch = [batch_study.ask() for _ in range(4)]
    points = [t.suggest_float("x", -10, 10) for t in batch]
    for t, x in zip(batch, points):
        batch_study.tell(t, x * x)
assert len(batch_study.trials) == 12
assert all(t.value == t.params["x"] ** 2 for t in batch_study.trials)
