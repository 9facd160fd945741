"""GetSuggestions beside the services of Optuna and Vizier, in one run: one client, one point of
seven parameters, with the same number of trials in the history and a result more each time. The
services take turns, ROUNDS times, so that what else the machine does meets all of them; each cell
is the median over the rounds of the median wait.

    bench/scale/suggestions_peers.py [SECONDS [ROUNDS]]      by default 3 and 3

Optuna's and Vizier's environments are those of bench/regret and bench/scale/run.sh, below
~/.cache/shirabe/bench. What has no peer of the same kind is left empty.
"""

import os
import statistics
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BENCH = os.path.join(ROOT, "build/release/bin/suggestions_bench")
CACHE = os.path.expanduser("~/.cache/shirabe/bench")
# Our algorithm, and the peers' of the same kind.
KINDS = [("random", "random", "random"), ("tpe", "tpe", None),
         ("bayesianoptimization", "gp", "gp")]
HISTORIES = (10, 100)


def row(words, **more):
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, **more)
    return [cell.strip() for cell in done.stdout.strip().split("\n")[-1].strip("|").split("|")]


def ours(port, algorithm, trials, seconds):
    return float(row([BENCH, "load", port, algorithm, str(trials), "1", "fresh", seconds])[5])


def optuna(sampler, trials, seconds):
    environment = dict(os.environ, PYTHONPATH=CACHE + "/optuna-grpc")
    python = CACHE + ("/torch" if sampler == "gp" else "/optuna") + "/bin/python3"
    words = [python, "bench/scale/suggestions_optuna.py", seconds, sampler, str(trials), "1"]
    return float(row(words, env=environment)[4])


def vizier(algorithm, trials, seconds):
    words = [CACHE + "/vizier/bin/python3", "bench/scale/suggestions_vizier.py", seconds, algorithm,
             str(trials)]
    return float(row(words)[4])


def cell(waits, own):
    if not waits:
        return "", ""
    wait = statistics.median(waits)
    return f"{wait:.2f}", f"{wait / own:.0f}×"


def compare(port, kind, trials, seconds, rounds):
    algorithm, sampler, designer = kind
    waits = {"own": [], "optuna": [], "vizier": []}
    for _ in range(rounds):
        waits["own"].append(ours(port, algorithm, trials, seconds))
        if sampler:
            waits["optuna"].append(optuna(sampler, trials, seconds))
        if designer:
            waits["vizier"].append(vizier(designer, trials, seconds))
    own = statistics.median(waits["own"])
    cells = [algorithm, str(trials), f"{own:.2f}", *cell(waits["optuna"], own),
             *cell(waits["vizier"], own)]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    seconds = sys.argv[1] if len(sys.argv) > 1 else "3"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    server = subprocess.Popen([BENCH, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        port = server.stdout.readline().strip()
        print("| algorithm | trials | Shirabe, ms | Optuna, ms | ratio | Vizier, ms | ratio |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
        for kind in KINDS:
            for trials in HISTORIES:
                compare(port, kind, trials, seconds, rounds)
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
