"""Two objectives, after Optuna's tutorial on multi-objective optimization: how much a model
computes, and how accurate it is."""

import math

import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    layers = trial.suggest_int("n_layers", 1, 4)
    units = trial.suggest_int("n_units", 16, 256, log=True)
    dropout = trial.suggest_float("dropout", 0.0, 0.5)
    flops = layers * units**2
    accuracy = (1 - math.exp(-math.log(flops) / 4)) * (1 - (dropout - 0.2) ** 2)
    return flops, accuracy


study = optuna.create_study(directions=["minimize", "maximize"])
study.optimize(objective, n_trials=40, timeout=300)
assert len(study.trials) == 40
assert [d.name for d in study.directions] == ["MINIMIZE", "MAXIMIZE"]

best = study.best_trials
print(f"Number of trials on the Pareto front: {len(best)}")
assert 1 < len(best) <= 40
assert [t.number for t in best] == sorted(t.number for t in best)


def dominates(a, b):
    as_good = a.values[0] <= b.values[0] and a.values[1] >= b.values[1]
    return as_good and a.values != b.values


for trial in study.trials:
    assert trial.state == optuna.trial.TrialState.COMPLETE and len(trial.values) == 2
    dominated = any(dominates(other, trial) for other in study.trials)
    assert dominated == (trial.number not in [t.number for t in best])

most_accurate = max(best, key=lambda t: t.values[1])
print("Trial with highest accuracy: ")
print(f"\tnumber: {most_accurate.number}")
print(f"\tparams: {most_accurate.params}")
print(f"\tvalues: {most_accurate.values}")
assert set(most_accurate.params) == {"n_layers", "n_units", "dropout"}
assert most_accurate.values[1] == max(t.values[1] for t in study.trials)

for name in ("best_trial", "best_value", "best_params", "direction"):
    try:
        getattr(study, name)
        raise SystemExit(f"{name} of several objectives")
    except RuntimeError:
        pass
try:
    most_accurate.value
    raise SystemExit("value of several objectives")
except RuntimeError:
    pass


def pruning(trial):
    objective(trial)
    for call in (lambda: trial.report(1.0, 1), trial.should_prune):
        try:
            call()
            raise SystemExit("several objectives are pruned")
        except NotImplementedError:
            pass
    raise optuna.TrialPruned


study.optimize(pruning, n_trials=1)
assert study.trials[-1].state == optuna.trial.TrialState.PRUNED
assert study.trials[-1].values is None


def wrong(trial):
    flops, accuracy = objective(trial)
    return [flops, (flops, accuracy, 1), (flops, math.nan), ("?", 1.0)][trial.number % 4]


study.optimize(wrong, n_trials=4)
assert [t.state.name for t in study.trials[-4:]] == ["FAIL"] * 4

study = optuna.create_study(directions=["maximize", "minimize"])
for number in range(8):
    trial = study.ask()
    x = trial.suggest_float("x", 0, 1)
    if number == 3:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    else:
        study.tell(trial, (x, x * x))
try:
    study.tell(study.ask(), 1.0, state=optuna.trial.TrialState.COMPLETE)
    raise SystemExit("one value of two")
except ValueError:
    pass
assert [t.number for t in study.best_trials] == [0, 1, 2, 4, 5, 6, 7]
for t in study.best_trials:
    x = t.params["x"]
    assert t.values == [x, x * x]

one = optuna.create_study(directions=["maximize"])
assert one.best_trials == []
one.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=5)
assert one.best_trials[0].number == one.best_trial.number
assert one.best_trial.values == [one.best_value] == [one.best_trial.value]
