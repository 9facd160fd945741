"""Asserts what became of an experiment: ledger.py ATTEMPTS TRIALS COUNT CAUSE…

ATTEMPTS and TRIALS are what `shirabe get … -o json` printed. All COUNT trials have succeeded,
each with exactly one attempt that completed, its last; the other attempts were lost for one of the
CAUSEs, each of which occurs (but those with a `?` only may).
"""

import json
import sys

TERMINAL = {"Succeeded", "EarlyStopped", "Failed", "MetricsUnavailable", "Killed"}


def check_trials(trials: list, count: int) -> None:
    assert len(trials) == count, f"{len(trials)} trials instead of {count}"
    for trial in trials:
        conditions = trial["status"]["conditions"]
        ends = {c["type"] for c in conditions if c["status"] == "True"} & TERMINAL
        assert ends == {"Succeeded"}, f"{trial['metadata']['name']} ended as {ends}"


def check_attempts(attempts: list, count: int, wanted: set, allowed: set) -> None:
    by_trial: dict[str, list] = {}
    for attempt in attempts:
        by_trial.setdefault(attempt["trial"], []).append(attempt)
    assert len(by_trial) == count, f"attempts of {len(by_trial)} trials instead of {count}"
    seen = set()
    for trial, chain in by_trial.items():
        chain.sort(key=lambda attempt: attempt["number"])
        numbers = [attempt["number"] for attempt in chain]
        assert numbers == list(range(1, len(chain) + 1)), f"{trial}: attempts {numbers}"
        causes = [attempt["cause"] for attempt in chain]
        assert causes[-1] == "completed" and "completed" not in causes[:-1], f"{trial}: {causes}"
        seen.update(causes[:-1])
    assert seen <= wanted | allowed, f"lost for {seen}, not for {wanted | allowed}"
    assert wanted <= seen, f"lost for {seen}, not for {wanted}"


def main() -> None:
    attempts, trials = (json.load(open(path))["items"] for path in sys.argv[1:3])
    count, causes = int(sys.argv[3]), sys.argv[4:]
    check_trials(trials, count)
    wanted = {cause for cause in causes if not cause.endswith("?")}
    check_attempts(attempts, count, wanted, {cause.rstrip("?") for cause in causes})
    print(f"{count} trials, {len(attempts)} attempts: {sorted({a['cause'] for a in attempts})}")


main()
