"""What the early-stopping rules of Optuna and Ray Tune save on the curves of curves.jsonl: the same
replay as replay.cc, on so many workers in lock-step, in many orders; prints rows of the same table.
Each rule is asked through its own interface, with its defaults where nothing else is said. Optuna's
WilcoxonPruner is left out, as ours is in replay.cc: it compares folds, not epochs.

    python3 bench/stopping/peers.py bench/stopping/curves.jsonl [WORKERS] [ORDERS] [PART]

PART: only the rules whose names have it. Needs optuna, scipy and ray[tune].
"""

import json
import random
import sys
import types

EPOCHS = 40


class OptunaRule:
    def __init__(self, pruner):
        import optuna
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna = optuna
        self.study = optuna.create_study(direction="maximize", pruner=pruner(optuna.pruners))

    def begin(self):
        return self.study.ask()

    def stops(self, trial, epoch, value):
        trial.report(value, epoch)
        return trial.should_prune()

    def end(self, trial, epoch, value, stopped):
        states = self.optuna.trial.TrialState
        self.study.tell(trial, None if stopped else value,
                        state=states.PRUNED if stopped else states.COMPLETE)


class Hashable(types.SimpleNamespace):
    def __hash__(self):
        return hash(self.trial_id)


class RayRule:
    controller = types.SimpleNamespace(get_live_trials=lambda: [])

    def __init__(self, make):
        from ray.tune import schedulers
        self.scheduler = make(schedulers)
        self.count = 0

    def begin(self):
        self.count += 1
        trial = Hashable(trial_id=str(self.count))
        self.scheduler.on_trial_add(self.controller, trial)
        return trial

    @staticmethod
    def result(epoch, value):
        return {"training_iteration": epoch, "accuracy": value}

    def stops(self, trial, epoch, value):
        answer = self.scheduler.on_trial_result(self.controller, trial, self.result(epoch, value))
        return answer == self.scheduler.STOP

    def end(self, trial, epoch, value, stopped):
        if not stopped:
            self.scheduler.on_trial_complete(self.controller, trial, self.result(epoch, value))


TUNE = {"time_attr": "training_iteration", "metric": "accuracy", "mode": "max"}
RULES = {
    "Optuna MedianPruner": lambda: OptunaRule(lambda p: p.MedianPruner()),
    "Optuna PercentilePruner(75)": lambda: OptunaRule(lambda p: p.PercentilePruner(75.0)),
    "Optuna PercentilePruner(25)": lambda: OptunaRule(lambda p: p.PercentilePruner(25.0)),
    "Optuna SuccessiveHalvingPruner": lambda: OptunaRule(lambda p: p.SuccessiveHalvingPruner()),
    "Optuna SuccessiveHalvingPruner, min_resource 4": lambda: OptunaRule(
        lambda p: p.SuccessiveHalvingPruner(min_resource=4)),
    "Optuna HyperbandPruner": lambda: OptunaRule(
        lambda p: p.HyperbandPruner(max_resource=EPOCHS)),
    "Optuna PatientPruner(MedianPruner, 10)": lambda: OptunaRule(
        lambda p: p.PatientPruner(p.MedianPruner(), patience=10)),
    "Optuna PatientPruner(none, 10)": lambda: OptunaRule(
        lambda p: p.PatientPruner(None, patience=10)),
    "Optuna ThresholdPruner, lower 0.5, 5 warm-up steps": lambda: OptunaRule(
        lambda p: p.ThresholdPruner(lower=0.5, n_warmup_steps=5)),
    "Ray ASHAScheduler": lambda: RayRule(lambda s: s.ASHAScheduler(max_t=EPOCHS, **TUNE)),
    "Ray ASHAScheduler, grace_period 4": lambda: RayRule(
        lambda s: s.ASHAScheduler(max_t=EPOCHS, grace_period=4, **TUNE)),
    "Ray MedianStoppingRule, grace_period 4": lambda: RayRule(
        lambda s: s.MedianStoppingRule(grace_period=4, **TUNE)),
}


def replay(curves, rule, workers):
    """(epochs run, trials stopped, best value seen)"""
    running, waiting = [], list(curves)
    epochs = stopped = 0
    best = 0.0
    while running or waiting:
        while len(running) < workers and waiting:
            running.append([rule.begin(), waiting.pop(0), 0])
        for entry in list(running):
            trial, values, _ = entry
            entry[2] += 1
            value = values[entry[2] - 1]
            epochs, best = epochs + 1, max(best, value)
            done = entry[2] == len(values)
            stop = rule.stops(trial, entry[2], value) and not done
            if done or stop:
                rule.end(trial, entry[2], value, stop)
                stopped += stop
                running.remove(entry)
    return epochs, stopped, best


def main():
    lines = open(sys.argv[1]).read().splitlines()
    curves = [json.loads(line)["values"] for line in lines]
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    orders = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    everything, top = sum(map(len, curves)), max(map(max, curves))
    print("| rule | epochs saved | trials stopped | best lost, mean | at most |")
    print("| --- | ---: | ---: | ---: | ---: |")
    part = sys.argv[4] if len(sys.argv) > 4 else ""
    for name, make in RULES.items():
        if part not in name:
            continue
        runs = []
        for seed in range(orders):
            order = random.Random(seed).sample(curves, len(curves))
            runs.append(replay(order, make(), workers))
        saved = 100 * (1 - sum(r[0] for r in runs) / orders / everything)
        lost = [top - r[2] for r in runs]
        print(f"| {name} | {saved:.0f} % | {sum(r[1] for r in runs) / orders:.1f} of {len(curves)} "
              f"| {sum(lost) / orders:.4f} | {max(lost):.4f} |", flush=True)


if __name__ == "__main__":
    main()
