"""Constraints as Optuna 4 has them: values of the sampler's constraints_func, 0 or less where they
are kept. After the example in Optuna's FAQ, which is the problem of Binh and Korn."""

import warnings

import optuna

warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    x = trial.suggest_float("x", -15, 30)
    y = trial.suggest_float("y", -15, 30)

    # Constraints which are considered feasible if less than or equal to zero.
    # The feasible region is basically the intersection of a circle centered at (x=5, y=0)
    # and the complement to a circle centered at (x=8, y=-3).
    c0 = (x - 5) ** 2 + y**2 - 25
    c1 = -((x - 8) ** 2) - (y + 3) ** 2 + 7.7
    trial.set_user_attr("constraint", (c0, c1))

    v0 = 4 * x**2 + 4 * y**2
    v1 = (x - 5) ** 2 + (y - 5) ** 2
    return v0, v1


def constraints(trial):
    return trial.user_attrs["constraint"]


for sampler in (
    optuna.samplers.NSGAIISampler(population_size=12, seed=1, constraints_func=constraints),
    optuna.samplers.TPESampler(seed=2, constraints_func=constraints),
):
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=150, timeout=600)
    print("Number of finished trials: ", len(study.trials))
    print("Pareto front:")
    trials = sorted(study.best_trials, key=lambda t: t.values)
    assert trials
    for trial in trials:
        print(f"  Trial#{trial.number}")
        print(f"    Values: Values={trial.values}, Constraint={trial.user_attrs['constraint'][0]}")
        print(f"    Params: {trial.params}")
        assert max(trial.user_attrs["constraint"]) <= 0
    for trial in study.trials:
        assert tuple(trial.system_attrs["constraints"]) == tuple(trial.user_attrs["constraint"])
    kept = [t for t in study.trials if max(t.user_attrs["constraint"]) <= 0]
    assert 0 < len(kept) < 150
    front = [
        t.number
        for t in kept
        if not any(
            o.values[0] <= t.values[0] and o.values[1] <= t.values[1] and o.values != t.values
            for o in kept
        )
    ]
    assert [t.number for t in study.best_trials] == front


def single(trial):
    x = trial.suggest_float("x", 0, 1)
    trial.set_user_attr("constraint", [0.4 - x])
    return x


sampler = optuna.samplers.TPESampler(seed=1, constraints_func=constraints)
study = optuna.create_study(sampler=sampler)
study.optimize(single, n_trials=20)
assert study.best_value == min(t.value for t in study.trials if t.params["x"] >= 0.4)
assert study.best_value > min(t.value for t in study.trials)
assert [t.number for t in study.best_trials] == [study.best_trial.number]

never = optuna.create_study(
    sampler=optuna.samplers.TPESampler(seed=1, constraints_func=lambda trial: (1.0,))
)
never.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
assert never.best_trials == []
try:
    never.best_trial
    raise SystemExit("a best trial that breaks its constraint")
except ValueError as error:
    assert "feasible" in str(error), error

space = {"x": optuna.distributions.FloatDistribution(0, 1)}
asked = optuna.create_study(
    sampler=optuna.samplers.TPESampler(seed=1, constraints_func=lambda t: (t.params["x"] - 0.5,))
)
for _ in range(6):
    trial = asked.ask(space)
    asked.tell(trial, -trial.params["x"])
assert asked.best_params["x"] == max(
    t.params["x"] for t in asked.trials if t.params["x"] <= 0.5
)
