"""A study in an SQLite storage of Optuna: nine parameters, one objective, so many trials.

    study.py TRIALS FILE

Runs in the environment that has Optuna, which makes the tables; the rows are written at once,
because Optuna's own way takes a tenth of a second a trial. The objective is a function of the
parameters with noise, so that pictures of it show something. `shirabe import optuna` reads the same
file, so that both sides show the same trials. Prints how long the writing took.
"""

import datetime
import json
import math
import random
import sqlite3
import sys
import time

import optuna

BEGIN = datetime.datetime(2026, 1, 1)
UNITS = [f"unit{i}" for i in range(5)]
OPTIMIZERS = ["adam", "sgd", "lion"]


def distributions():
    """The nine parameters, as Optuna stores what they may be."""
    d = optuna.distributions
    space = {name: d.FloatDistribution(0, 1) for name in UNITS}
    space["lr"] = d.FloatDistribution(1e-5, 1e-1, log=True)
    space["layers"] = d.IntDistribution(1, 12)
    space["momentum"] = d.FloatDistribution(0.5, 0.999)
    space["optimizer"] = d.CategoricalDistribution(OPTIMIZERS)
    return {name: d.distribution_to_json(one) for name, one in space.items()}


def point(rng):
    values = {name: rng.random() for name in UNITS}
    values["lr"] = 10 ** rng.uniform(-5, -1)
    values["layers"] = rng.randint(1, 12)
    values["momentum"] = rng.uniform(0.5, 0.999)
    values["optimizer"] = rng.randrange(len(OPTIMIZERS))
    return values


def loss(values, rng):
    distance = (math.log10(values["lr"]) + 3) ** 2 + 0.3 * values["optimizer"]
    distance += 2 * (values["unit0"] - 0.3) ** 2 + abs(values["layers"] - 6) / 20
    return distance + 0.05 * rng.gauss(0, 1)


def rows(trials):
    rng = random.Random(7)
    space = distributions()
    for number in range(trials):
        values = point(rng)
        start = BEGIN + datetime.timedelta(seconds=2 * number)
        end = start + datetime.timedelta(seconds=rng.expovariate(0.1) + 1)
        parameters = [(number + 1, name, value, space[name]) for name, value in values.items()]
        yield (number + 1, number, str(start), str(end)), parameters, loss(values, rng)


def write(trials, file):
    study = optuna.create_study(storage=f"sqlite:///{file}", study_name="large")
    study.set_metric_names(["loss"])
    with sqlite3.connect(file) as database:
        for trial, parameters, value in rows(trials):
            database.execute("insert into trials values (?, ?, 1, 'COMPLETE', ?, ?)", trial)
            database.executemany(
                "insert into trial_params (trial_id, param_name, param_value, distribution_json)"
                " values (?, ?, ?, ?)", parameters)
            database.execute(
                "insert into trial_values (trial_id, objective, value, value_type)"
                " values (?, 0, ?, 'FINITE')", (trial[0], value))


def main():
    trials, file = int(sys.argv[1]), sys.argv[2]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    start = time.perf_counter()
    write(trials, file)
    print(json.dumps({"seconds": round(time.perf_counter() - start, 2),
                      "optuna": optuna.__version__}))


if __name__ == "__main__":
    main()
