"""Asserts what digits_test.sh found: digits_check.py WANTED GOT ATTEMPTS EXPERIMENT, all JSON.

WANTED is the best trial of the same experiment on a laptop, undisturbed; GOT that of the cluster.
"""

import collections
import json
import sys


def main() -> None:
    wanted, got, attempts, experiment = (json.load(open(path)) for path in sys.argv[1:])
    assert got == wanted, f"the best trial is another than on a laptop: {got} instead of {wanted}"

    status = experiment["status"]
    assert status["trialsSucceeded"] == 6, status
    assert not status.get("trialsFailed"), status
    best = status["currentOptimalTrial"]
    assert best["bestTrialName"] == wanted["trial"], best

    attempts = attempts["items"]
    causes = collections.Counter(attempt["cause"] for attempt in attempts)
    lost = [attempt for attempt in attempts if attempt["cause"] != "completed"]
    assert causes["completed"] == 6, causes
    assert lost, "no attempt was lost: the node was empty"
    # Until the control plane knows that the node has no power it may still place a pod there, which
    # never starts: nothing but time is lost with it.
    unstarted = [attempt for attempt in lost if attempt["cause"] == "never-ran"]
    started = [attempt for attempt in lost if attempt not in unstarted]
    assert started, lost
    for attempt in started:
        assert attempt["cause"] in ("preempted-node", "infrastructure"), attempt
        assert attempt["node"], attempt
    for attempt in unstarted:
        assert not attempt["seconds"] and not attempt["status"]["observations"], attempt
    successors = [
        other
        for attempt in lost
        for other in attempts
        if other["trial"] == attempt["trial"] and other["number"] == attempt["number"] + 1
    ]
    assert len(successors) == len(lost), "a lost attempt has no successor"
    resumed = [attempt for attempt in successors if attempt["resumedFromStep"] > 0]
    assert resumed, f"none went on from a checkpoint: {successors}"
    redone = sum(attempt["stepsRedone"] for attempt in attempts)
    print(
        f"6 trials, {len(started)} attempts lost with the node, {len(unstarted)} that had not "
        f"begun, {len(resumed)} went on from there, {redone} epochs done again, the same best trial"
    )


main()
