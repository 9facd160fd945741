"""Quality by training spent: successive halving of Shirabe beside that of Optuna, Ray Tune and Syne
Tune, one worker.

    bench/fidelity/fidelity.py --problem sgd --budget 20 --seeds 5

A problem is trained epoch by epoch, at most R = 27; all methods search the same space with the same
budget of epochs, counted as they are run: a promoted trial of Shirabe goes on from where its parent
stopped, a trial that a peer stops has cost the epochs it had. What counts is the best loss of a
configuration that was trained to the end, after so many epochs. Prints the mean and its standard
error over the seeds, after a quarter, a half and all of the budget.

  sgd       a linear classifier on scikit-learn's bundled digits, really trained: 4 parameters, its
            error on images that were held out
  crossing  synthetic power laws a + b·t^-c whose fast starters end badly: 4 parameters, a noise
"""

import argparse
import json
import math
import subprocess
import warnings
from pathlib import Path

import numpy as np
import optuna

R, ETA = 27, 3
BUILD = Path(__file__).resolve().parents[2] / "build" / "release" / "bin"
SPACE = [
    {"name": "rate", "type": "double", "min": 1e-5, "max": 10.0, "log": True},
    {"name": "alpha", "type": "double", "min": 1e-8, "max": 1.0, "log": True},
    {"name": "mix", "type": "double", "min": 0.0, "max": 1.0},
    {"name": "power", "type": "double", "min": 0.0, "max": 1.0},
]
WORST = 1.0


class Sgd:
    """Error on held-out digits after each epoch of one configuration."""

    data = None

    def __init__(self, point, seed):
        from sklearn.datasets import load_digits
        from sklearn.linear_model import SGDClassifier
        from sklearn.model_selection import train_test_split

        if Sgd.data is None:
            pixels, digits = load_digits(return_X_y=True)
            Sgd.data = train_test_split(
                pixels / 16.0, digits, test_size=0.4, random_state=0, stratify=digits
            )
        self.model = SGDClassifier(
            loss="log_loss", penalty="elasticnet", l1_ratio=point["mix"], alpha=point["alpha"],
            learning_rate="invscaling", eta0=point["rate"], power_t=point["power"],
            random_state=seed,
        )

    def epoch(self):
        x, held_out, y, truth = Sgd.data
        self.model.partial_fit(x, y, classes=np.arange(10))
        return 1 - self.model.score(held_out, truth)


class Crossing:
    """Of a large rate the start is steep and the end bad."""

    def __init__(self, point, seed):
        x = [math.log10(point["rate"] / 1e-5) / 6, math.log10(point["alpha"] / 1e-8) / 8,
             point["mix"], point["power"]]
        self.end = 0.05 + 0.5 * (x[0] - 0.4) ** 2 + 0.3 * (x[1] - 0.6) ** 2 + 0.1 * (
            x[2] - 0.3) ** 2 + 0.1 * abs(x[3] - 0.7)
        self.speed = 0.3 + 1.2 * x[0]
        key = [seed, *(int(u * 1e9) for u in x)]
        self.random = np.random.default_rng(key)
        self.step = 0

    def epoch(self):
        self.step += 1
        curve = self.end + 0.7 * self.step**-self.speed
        return float(curve + 0.01 * self.random.standard_normal())


PROBLEMS = {"sgd": Sgd, "crossing": Crossing}


class Meter:
    """Counts epochs, and keeps the best loss of what was trained to the end."""

    def __init__(self, problem, budget, seed):
        self.make = lambda point: PROBLEMS[problem](point, seed)
        self.left = budget * R
        self.best, self.curve = WORST, []

    def epoch(self, training):
        self.left -= 1
        loss = training.epoch()
        return loss if math.isfinite(loss) else WORST

    def count(self, epochs, loss):
        if epochs == R:
            self.best = min(self.best, loss)
        self.curve.append((self.left, self.best))


def run_shirabe(algorithm, settings, meter, seed):
    rungs = algorithm in ("hyperband", "asha", "bohb")
    space = SPACE + ([{"name": "epochs", "type": "int", "min": 1, "max": R}] if rungs else [])
    if rungs:
        settings = [*settings, "resource_name=epochs", f"r_l={R}", f"eta={ETA}"]
    command = [BUILD / "regret_ask", algorithm, *settings]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(message, answer=True):
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline()) if answer else None

    say({"space": space, "seed": seed, "max_trials": 0, "parallel": 1}, answer=False)
    trained = {}  # the checkpoints: by configuration, the training and its epochs
    number = 0
    while meter.left > 0:
        point = say({"ask": 1})["points"][0]
        target = point.pop("epochs", R)
        key = json.dumps(point, sort_keys=True)
        training, done = trained.get(key) or (meter.make(point), 0)
        for _ in range(done, target):
            loss = meter.epoch(training)
        trained[key] = (training, target)
        meter.count(target, loss)
        say({"tell": [[number, loss]]}, answer=False)
        number += 1
    process.stdin.close()
    process.wait()


def run_optuna(sampler, pruner, meter):
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    while meter.left > 0:
        trial = study.ask()
        point = {p["name"]: trial.suggest_float(p["name"], p["min"], p["max"], log="log" in p)
                 for p in SPACE}
        training = meter.make(point)
        pruned = False
        for epoch in range(1, R + 1):
            loss = meter.epoch(training)
            trial.report(loss, epoch)
            pruned = epoch < R and trial.should_prune()
            if pruned:
                break
        meter.count(epoch, loss)
        study.tell(trial, None if pruned else loss,
                   optuna.trial.TrialState.PRUNED if pruned else optuna.trial.TrialState.COMPLETE)


def draw(random):
    return {p["name"]: p["min"] * (p["max"] / p["min"]) ** random.random() if "log" in p
            else random.uniform(p["min"], p["max"]) for p in SPACE}


def run_ray(meter, seed):
    """Its ASHA stops trials, and its searcher by default is random."""
    from random import Random
    from types import SimpleNamespace

    from ray.tune.schedulers import ASHAScheduler

    scheduler = ASHAScheduler(time_attr="epoch", metric="loss", mode="min", max_t=R,
                              reduction_factor=ETA)
    numbers, number = Random(seed), 0
    while meter.left > 0:
        number += 1
        training = meter.make(draw(numbers))
        trial = SimpleNamespace(trial_id=str(number))
        scheduler.on_trial_add(None, trial)
        for epoch in range(1, R + 1):
            loss = meter.epoch(training)
            result = {"epoch": epoch, "loss": loss}
            if scheduler.on_trial_result(None, trial, result) == scheduler.STOP:
                break
        scheduler.on_trial_complete(None, trial, result)
        meter.count(epoch, loss)


def run_syne(name, meter, seed):
    import datetime

    from syne_tune.backend.trial_status import Trial
    from syne_tune.config_space import loguniform, uniform
    from syne_tune.optimizer import baselines

    space = {p["name"]: (loguniform if "log" in p else uniform)(p["min"], p["max"]) for p in SPACE}
    np.random.seed(seed)
    scheduler = getattr(baselines, name)(space, metric="loss", time_attr="epoch", max_t=R,
                                         random_seed=seed, reduction_factor=ETA)
    number = 0
    while meter.left > 0:
        config = scheduler.suggest().config
        trial = Trial(number, config, datetime.datetime.now())
        scheduler.on_trial_add(trial)
        training = meter.make(config)
        for epoch in range(1, R + 1):
            loss = meter.epoch(training)
            result = {"epoch": epoch, "loss": loss}
            if scheduler.on_trial_result(trial, result) == "STOP":
                break
        scheduler.on_trial_complete(trial, result)
        meter.count(epoch, loss)
        number += 1


def halving():
    return optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=ETA)


def hyperband():
    return optuna.pruners.HyperbandPruner(min_resource=1, max_resource=R, reduction_factor=ETA)


def tpe(seed):
    return optuna.samplers.TPESampler(seed=seed, multivariate=True)


def random(seed):
    return optuna.samplers.RandomSampler(seed=seed)


METHODS = {
    "shirabe random, all to the end": lambda m, s: run_shirabe("random", [], m, s),
    "shirabe hyperband": lambda m, s: run_shirabe("hyperband", [], m, s),
    "shirabe asha": lambda m, s: run_shirabe("asha", [], m, s),
    "shirabe asha + tpe": lambda m, s: run_shirabe("asha", ["searcher=tpe"], m, s),
    "shirabe asha + multivariate-tpe": lambda m, s: run_shirabe(
        "asha", ["searcher=multivariate-tpe"], m, s),
    "shirabe bohb": lambda m, s: run_shirabe("bohb", [], m, s),
    "optuna random + hyperband": lambda m, s: run_optuna(random(s), hyperband(), m),
    "optuna random + asha": lambda m, s: run_optuna(random(s), halving(), m),
    "optuna tpe + hyperband": lambda m, s: run_optuna(tpe(s), hyperband(), m),
    "optuna tpe + asha": lambda m, s: run_optuna(tpe(s), halving(), m),
    "ray random + asha": run_ray,
    "syne-tune ASHA": lambda m, s: run_syne("ASHA", m, s),
    "syne-tune BOHB": lambda m, s: run_syne("BOHB", m, s),
}


def at(curve, budget, part):
    """The best loss once this part of the budget was spent."""
    best = WORST
    for left, loss in curve:
        if budget * R - left <= part * budget * R:
            best = loss
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problem", choices=sorted(PROBLEMS), required=True)
    parser.add_argument("--budget", type=int, default=20, help="times R epochs")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--method", help="only those whose name has this")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print(f"| {args.problem} | {args.budget // 4} R | {args.budget // 2} R | {args.budget} R |")
    print("| --- | ---: | ---: | ---: |")
    for name, method in METHODS.items():
        if args.method and args.method not in name:
            continue
        results = []
        for seed in range(args.seeds):
            meter = Meter(args.problem, args.budget, seed)
            method(meter, seed)
            results.append([at(meter.curve, args.budget, part) for part in (0.25, 0.5, 1)])
        mean = np.mean(results, axis=0)
        error = np.std(results, axis=0, ddof=1) / math.sqrt(args.seeds)
        cells = " | ".join(f"{m:.4f} ± {e:.4f}" for m, e in zip(mean, error))
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
