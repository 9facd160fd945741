"""Runs curves of the quality bench: one method, many problems; called in the environment of the
problems (see run.sh), or by hand:

  run.py --track A --method gp --ask build/release/bin/regret_ask --dims 5

A method is a process that speaks the protocol of ask.cc. Its name is a peer of peers.py, or an
algorithm of Shirabe (kept as shirabe-NAME), or anything with --command. One line of JSON a curve is
kept in TRACK/METHOD.jsonl, and what is there is not run again, unless with --fresh. Peers' curves
lie in curves/, those of Shirabe, which change from day to day, in build/curves/. A line has
  at        trials, of which the first `start` are random points that all methods share
  regret    best true loss among so many trials, less the optimum; under noise, as on the tables,
            that of the point which the method recommends after so many
  ms, p99   processor time a suggestion
"""

import argparse
import concurrent.futures
import heapq
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

import numpy

import problems

HERE = pathlib.Path(__file__).resolve().parent
KEPT = HERE / "curves"
OWN = HERE.parents[1] / "build" / "curves"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
ENVIRONMENTS = CACHE / "shirabe" / "bench"
PEERS = {"random": "problems", "optuna-gp": "torch", "optuna-tpe": "torch",
         "optuna-tpe-mv": "torch", "optuna-cmaes": "torch", "optuna-nsga2": "torch",
         "ax": "torch", "skopt": "skopt",
         "smac": "smac", "vizier": "vizier", "hyperopt": "classics", "cmaes-package": "classics",
         "rustuna-tpe": "rustuna", "rustuna-cmaes": "rustuna", "rustuna-nsga2": "rustuna",
         "pycma": "classics", "pymoo-de": "classics", "pymoo-nsga2": "classics"}
# Populations cannot be given points of others by their own interfaces: these start by themselves.
ALONE = {"optuna-cmaes", "optuna-nsga2", "rustuna-cmaes", "rustuna-nsga2", "cmaes-package",
         "pycma", "pymoo-de", "pymoo-nsga2", "shirabe-cmaes", "shirabe-de", "shirabe-nsga2"}
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


class Method:
    """The process of one method. It serves one curve after the other, each from a header on:
    starting Python and torch, or compiling what JAX runs, takes longer than many a curve."""

    kept = {}  # command → Method, in each worker

    def __init__(self, command):
        log = None if "VERBOSE" in os.environ else subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=log, text=True, env={**os.environ, **ONE_THREAD})

    @classmethod
    def start(cls, command, header):
        method = cls.kept.get(tuple(command))
        if method is None:
            method = cls.kept[tuple(command)] = cls(command)
        method.send(header)
        return method

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, message):
        self.send(message)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args} ended at {message}; see it with VERBOSE=1")
        return json.loads(line)

    def close(self):
        """What is left in its pipes is of no curve that follows."""
        Method.kept.pop(tuple(self.process.args), None)
        self.process.kill()
        self.process.wait()


def checkpoints(trials, every):
    at = {t for t in range(1, trials + 1)
          if t % (5 if t <= 50 else 10 if t <= 200 else 50) == 0}
    if every:
        at = {t for t in at if t % every == 0}
    return sorted(at | {trials})


class Curve:
    """One method on one problem from one seed."""

    def __init__(self, job):
        self.job = job
        self.problem = problems.load(job["problem"])
        self.noise = self.problem.stream(job["seed"], 1)
        self.trials = job["trials"]
        self.by_method = self.problem.by_method and not self.problem.workers
        self.at = checkpoints(self.trials, 25 if self.by_method else 0)
        self.best, self.regret, self.seconds = self.problem.best(), [], []
        self.done = self.asked = self.clock = 0

    def run(self):
        start = self.problem.design(self.job["seed"])[:self.job["start"]]
        method = Method.start(self.job["command"], {
            "method": self.job["method"], "space": self.problem.space, "seed": self.job["seed"],
            "max_trials": self.trials, "parallel": self.problem.workers or self.problem.batch,
            "objectives": self.problem.objectives, "constraints": self.problem.constraints})
        try:
            if start:
                method.send({"add": [[point, self.evaluate(point)] for point in start]})
            if self.problem.workers:
                self.run_workers(method)
            while self.done < self.trials and self.step(method):
                pass
        except Exception:
            method.close()
            raise
        self.note(self.trials, lambda: self.best.loss)  # an exhausted space changes no more
        return self.row()

    def step(self, method):
        count = min(self.problem.batch, self.trials - self.done)
        answer = method.ask({"ask": count})
        if not answer["points"]:
            return False
        self.seconds.append(answer["seconds"] / len(answer["points"]))
        losses = [self.evaluate(point) for point in answer["points"]]
        method.send({"tell": list(enumerate(losses, self.asked))})
        self.asked += len(losses)
        if self.by_method:
            self.note(self.done, lambda: self.recommended(method))
        return True

    def run_workers(self, method):
        """Each worker takes a trial when it has ended one. The clock is in trials: as many as so
        many workers end in that time, when each takes the mean."""
        count = self.trials - self.done
        began, running = self.done, []  # the heap: when it ends, its identity, its point
        durations = self.problem.durations(self.job["seed"], count)
        for identity, duration in enumerate(durations):
            now = 0.0
            if len(running) == self.problem.workers:
                now = self.end_one(method, running, began)
            answer = method.ask({"ask": 1})
            if not answer["points"]:
                break
            self.seconds.append(answer["seconds"])
            heapq.heappush(running, (now + duration, identity, answer["points"][0]))
        while running:
            self.end_one(method, running, began)
        self.done = self.trials

    def end_one(self, method, running, began):
        now, identity, point = heapq.heappop(running)
        self.clock = began + now * self.problem.workers
        method.send({"tell": [[identity, self.evaluate(point)]]})
        return now

    def evaluate(self, point):
        """What the method is told of this point."""
        loss = self.problem.loss(point)
        told = self.problem.told(point, loss, self.noise)
        self.done += 1
        if self.problem.workers and self.clock:
            self.note(self.clock - 1e-9, lambda: self.best.loss)  # until now
        self.best.add(point, loss, told)
        if not self.by_method and not self.clock:
            self.note(self.done, lambda: self.best.loss)
        return told

    def recommended(self, method):
        return self.problem.loss(method.ask({"recommend": True})["point"])

    def note(self, trials, value):
        while len(self.regret) < len(self.at) and self.at[len(self.regret)] <= trials:
            self.regret.append(float(f"{value() - self.problem.f_opt:.6g}"))

    def row(self):
        ms = 1e3 * numpy.array(self.seconds or [0])
        return {"problem": self.job["problem"], "seed": self.job["seed"],
                "start": self.job["start"], "at": self.at, "regret": self.regret,
                "ms": float(f"{ms.mean():.3g}"), "p99": float(f"{numpy.quantile(ms, .99):.3g}")}


def run_curve(job):
    return job, Curve(job).run()


def budget(problem):
    match = problems.NAME.match(problem)
    if not match:
        if problem.startswith(("choice-", "sklearn-")):
            return 60
        return 150 if problem.startswith(("front-", "biobj-")) else 200 if "-w" in problem else 100
    if match[5] == "q":
        return {8: 106, 32: 202}[int(match[6])]
    if match[5] == "w":
        return 200
    return 200 if int(match[3]) >= 10 else 100


def command_of(args):
    if args.command:
        return args.method, shlex.split(args.command)
    if args.method in PEERS:
        python = ENVIRONMENTS / PEERS[args.method] / "bin" / "python3"
        return args.method, [str(python), str(HERE / "peers.py"), args.method]
    return f"shirabe-{args.method}", [args.ask, args.method, *args.set]


def read(path):
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["problem"], row["seed"]): row for row in rows}


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for _, row in sorted(rows.items())))


def jobs_of(args, rows):
    method, command = command_of(args)
    start = args.start if args.start >= 0 else 0 if method in ALONE else problems.DESIGN
    names = problems.names(args.track, args.dims, args.instances)
    if args.problems:
        names = [name for name in names if any(part in name for part in args.problems)]
    for seed in args.seeds:
        for name in names:
            row = rows.get((name, seed))
            trials = args.trials or budget(name)
            if row and not args.fresh and row["at"][-1] >= trials:
                continue
            yield {"method": method, "command": command, "problem": name, "seed": seed,
                   "trials": trials, "start": start}


def numbers(text):
    return [int(part) for part in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(description="curves of the quality bench")
    parser.add_argument("--track", choices=problems.TRACKS, default="A")
    parser.add_argument("--method", required=True)
    parser.add_argument("--ask", default="build/release/bin/regret_ask")
    parser.add_argument("--command", help="a program that speaks the protocol, for --method NAME")
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE")
    parser.add_argument("--name", help="keep the curves under this name")
    parser.add_argument("--curves", type=pathlib.Path, help="folder")
    parser.add_argument("--problems", nargs="*", help="parts of names: f003 svm -m30")
    parser.add_argument("--dims", type=numbers)
    parser.add_argument("--instances", type=numbers, default=[1])
    parser.add_argument("--seeds", type=numbers, default=[1])
    parser.add_argument("--trials", type=int)
    parser.add_argument("--start", type=int, default=-1, help="random points that are given")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="run again what is there")
    return parser.parse_args()


def main():
    args = parse()
    name = args.name or command_of(args)[0]
    folder = args.curves or (OWN if name.startswith("shirabe-") else KEPT)
    path = folder / args.track / f"{name}.jsonl"
    jobs = list(jobs_of(args, read(path)))
    failed, begin = 0, time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        futures = [pool.submit(run_curve, job) for job in jobs]
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            try:
                job, row = future.result()
            except (RuntimeError, OSError) as error:
                failed += 1
                print(f"{name}: {error}", file=sys.stderr)
                continue
            rows = read(path)  # again: another run may add to the same file
            rows[row["problem"], row["seed"]] = row
            write(path, rows)
            print(f"{name} {row['problem']} seed {row['seed']}: {row['regret'][-1]:.3g}, "
                  f"{row['ms']:.3g} ms ({done} of {len(jobs)}, "
                  f"{time.monotonic() - begin:.0f} s)", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
