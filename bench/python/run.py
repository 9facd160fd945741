#!/usr/bin/env python3
"""What a trial costs beside the function: shirabe.optimize, the same through Optuna's names, and
Optuna's study.optimize, in turn, in one run, with SQLite on the same disk on both sides.

    bench/python/run.py [--trials 200] [--rounds 3] [--binary build/release/bin/shirabe]

In a Python that has optuna. The function adds two numbers and the points are random, so that what
is measured is asking and telling: wall time a trial, and processor time of Python and of the child.
A trial costs the difference between a search of so many and one of a single trial, by their number
less one; what that one takes, which is mostly begin and end, stands in the last column. Each figure
is the median of the rounds; with other work on the machine only ratios mean something.
Last: a request and its answer over loopback and over a Unix socket, with no server behind.
"""

import argparse
import os
import resource
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "sdk" / "python"))


def value(x, y):
    return (x - 0.3) ** 2 + y


def asked(trial):
    return value(trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1))


def by_optimize(trials, folder, algorithm="random", parallel=1):
    import shirabe

    space = {"x": shirabe.float(0, 1), "y": shirabe.float(0, 1)}
    best = shirabe.optimize(
        value,
        space,
        minimize="loss",
        trials=trials,
        algorithm=algorithm,
        parallel=parallel,
        storage=folder / "shirabe",
        progress=False,
    )
    assert len(best) == trials


def by_study(optuna, trials, folder, sampler=None):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = f"sqlite:///{folder}/study.db"
    study = optuna.create_study(storage=storage, sampler=sampler)
    study.optimize(asked, n_trials=trials)


def by_optuna(trials, folder):
    import optuna

    by_study(optuna, trials, folder, optuna.samplers.RandomSampler(seed=1))


def by_optuna_default(trials, folder):
    import optuna

    by_study(optuna, trials, folder)


def by_names(trials, folder):
    import shirabe.compat.optuna as optuna

    by_study(optuna, trials, folder, optuna.samplers.RandomSampler(seed=1))


WAYS = {
    "shirabe.optimize, random": by_optimize,
    "shirabe.compat.optuna, RandomSampler": by_names,
    "Optuna, RandomSampler": by_optuna,
    "shirabe.optimize, auto": lambda trials, folder: by_optimize(trials, folder, "auto"),
    "Optuna, its default (TPE)": by_optuna_default,
}


def cpu(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measure(way, trials):
    """Wall, Python's and the child's milliseconds of a whole search."""
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        began = time.perf_counter()
        mine, theirs = cpu(resource.RUSAGE_SELF), cpu(resource.RUSAGE_CHILDREN)
        way(trials, Path(folder))
        wall = time.perf_counter() - began
        times = wall, cpu(resource.RUSAGE_SELF) - mine, cpu(resource.RUSAGE_CHILDREN) - theirs
    return [1000 * seconds for seconds in times]


def per_trial(way, trials):
    """Wall, Python's and the child's milliseconds a trial; and the wall time of a search of one."""
    one, all_of_them = measure(way, 1), measure(way, trials)
    return [*((many - few) / (trials - 1) for few, many in zip(one, all_of_them)), one[0]]


def round_trip(family, address, count=5000):
    """Microseconds of a request of 200 bytes and an answer of 700, as ask has them."""
    server = socket.socket(family)
    server.bind(address)
    server.listen()

    def answer():
        connection, _ = server.accept()
        with connection:
            while connection.recv(4096):
                connection.sendall(b"x" * 700)

    threading.Thread(target=answer, daemon=True).start()
    client = socket.socket(family)
    client.connect(server.getsockname())
    if family == socket.AF_INET:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    began = time.perf_counter()
    for _ in range(count):
        client.sendall(b"x" * 200)
        client.recv(4096)
    seconds = time.perf_counter() - began
    client.close()
    server.close()
    return 1e6 * seconds / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--binary", default=str(ROOT / "build" / "release" / "bin" / "shirabe"))
    args = parser.parse_args()
    os.environ["SHIRABE_BINARY"] = args.binary
    import optuna  # noqa: F401  (the peer must be there; its import is not measured)

    figures = {name: [] for name in WAYS}
    for _ in range(args.rounds):
        for name, way in WAYS.items():
            figures[name].append(per_trial(way, args.trials))
    head = f"| {args.trials} trials, one at a time | ms a trial | Python's CPU | the child's CPU |"
    print(head + " begin and end |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, found in figures.items():
        print(
            f"| {name} | " + " | ".join(f"{statistics.median(c):.2f}" for c in zip(*found)) + " |"
        )
    with tempfile.TemporaryDirectory() as folder:
        ways = [(socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, f"{folder}/s")]
        inet, unix = (
            statistics.median(
                round_trip(f, a if f == socket.AF_INET else a + str(i)) for i in range(args.rounds)
            )
            for f, a in ways
        )
    print(f"\nrequest and answer: loopback {inet:.0f} µs, Unix socket {unix:.0f} µs")
    print("load:", *os.getloadavg())


if __name__ == "__main__":
    main()
