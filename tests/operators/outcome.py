"""Asserts what an experiment of examples/ has found: outcome.py EXPERIMENT TRIALS

EXPERIMENT is its object, TRIALS what `shirabe get trials -o json` printed. The program of each
trial prints its learning rate as its loss, in the end: so each trial's loss is its own learning
rate, and the best trial is that of the lowest.
"""

import json
import sys


def metrics_of(observation: dict) -> dict:
    return {metric["name"]: metric["latest"] for metric in observation["metrics"]}


def assigned(assignments: list) -> dict:
    return {assignment["name"]: assignment["value"] for assignment in assignments}


def main() -> None:
    experiment, trials = (json.load(open(path)) for path in sys.argv[1:])
    losses = {}
    for trial in trials["items"]:
        name = trial["metadata"]["name"]
        rate = assigned(trial["spec"]["parameterAssignments"])["lr"]
        loss = metrics_of(trial["status"]["observation"])["loss"]
        assert float(loss) == float(rate), f"{name}: loss {loss} with a learning rate of {rate}"
        losses[name] = float(loss)
    assert len(losses) == 3, losses
    best = experiment["status"]["currentOptimalTrial"]
    assert best["bestTrialName"] == min(losses, key=losses.get), f"{best} of {losses}"
    assert float(metrics_of(best["observation"])["loss"]) == min(losses.values()), best
    print(f"best {best['bestTrialName']}, loss {min(losses.values()):.6f}")


main()
