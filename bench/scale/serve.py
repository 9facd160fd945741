#!/usr/bin/env python3
"""One server under many experiments. Prints Markdown lines for bench/RESULTS.md.

    serve.py SHIRABE burst   [--experiments 120] [--parallel 30] [--trials 60] [--seconds 20]
    serve.py SHIRABE long    [--trials 20000]
    serve.py SHIRABE recover [--experiments 20]
    serve.py SHIRABE soak    [--minutes 60]
    serve.py SHIRABE idle    [--experiments 5000] [--seconds 20]
    serve.py SHIRABE ended   [--trials 100000]

burst: all experiments at once, every trial a process that sleeps; how many run at the same time.
long: one experiment of no-op trials; the cost of a trial in each quarter.
recover: kill -9 of the server under running trials; seconds until the next one answers and runs on.
soak: experiments come, run and are deleted without end; memory, descriptors and threads every
minute, and their growth by a straight line over the second half.
idle: experiments that wait, paused or for somebody who asks; what the server does meanwhile: its
share of a core, its writes to the disk and the revisions of its store.
ended: one experiment of trials that are asked for and told at once; the memory for each that ended,
and what is left of it after the experiment is deleted.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import statistics
import struct
import subprocess
import tempfile
import time

SPEC = """apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {{name: {name}}}
spec:
  objective: {{type: minimize, objectiveMetricName: loss}}
  algorithm: {{algorithmName: {algorithm}}}
  parallelTrialCount: {parallel}
  maxTrialCount: {trials}
  parameters:
    - {{name: lr, parameterType: double, feasibleSpace: {{min: "0", max: "1"}}}}
    - {{name: wd, parameterType: double, feasibleSpace: {{min: "0", max: "1"}}}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{{name: lr, reference: lr}}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec: {{template: {{spec: {{containers: [{{name: main, command: {command}}}]}}}}}}
"""
ECHO = ["/bin/echo", "loss=${trialParameters.lr}"]


class Server:
    """A server of a home of its own, and the commands against it."""

    def __init__(self, shirabe, *options):
        self.shirabe = shirabe
        self.options = options
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="shirabe-bench-"))
        self.environment = {**os.environ, "SHIRABE_HOME": str(self.home)}
        self.start()

    def start(self):
        ready = self.home / "ready"
        ready.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [self.shirabe, "serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--insecure",
             "--rate", "0", *self.options,
             "--ready-file", str(ready)],
            env=self.environment, stderr=open(self.home / "log", "a"))
        while not ready.exists():
            if self.process.poll() is not None:
                raise SystemExit((self.home / "log").read_text())
            time.sleep(0.002)
        self.address = json.loads(ready.read_text())["grpc"]

    def run(self, *words):
        result = subprocess.run([self.shirabe, *words, "--server", self.address],
                                env=self.environment, capture_output=True, text=True)
        if result.returncode != 0:
            raise SystemExit(f"shirabe {' '.join(words)}: {result.stderr}")
        return result.stdout

    def apply(self, names, parallel, trials, command=None, algorithm="random"):
        words = []
        for name in names:
            path = self.home / f"{name}.yaml"
            path.write_text(SPEC.format(name=name, parallel=parallel, trials=trials,
                                        algorithm=algorithm, command=json.dumps(command or ECHO)))
            words += ["-f", str(path)]
        self.run("apply", *words)

    def statuses(self):
        experiments = json.loads(self.run("get", "exp", "-o", "json"))["items"]
        return [experiment["status"] for experiment in experiments]

    def usage(self):
        """MB resident, open descriptors, threads."""
        fields = dict(line.split(":", 1) for line in
                      pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines())
        return (int(fields["VmRSS"].split()[0]) / 1024,
                len(os.listdir(f"/proc/{self.process.pid}/fd")), int(fields["Threads"]))

    def spent(self):
        """Seconds of CPU, bytes handed to the disk, and the revision of the store."""
        times = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        lines = dict(line.split(": ") for line in
                     pathlib.Path(f"/proc/{self.process.pid}/io").read_text().splitlines())
        with sqlite3.connect(f"file:{self.home}/shirabe.db?mode=ro", uri=True) as db:
            revision = db.execute("SELECT revision FROM store").fetchone()[0]
        return ((int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"),
                int(lines["write_bytes"]), revision)

    def end(self):
        self.process.terminate()
        code = self.process.wait(timeout=60)
        if code != 0:
            raise SystemExit(f"the server ended with {code}")

    def stop(self):
        self.end()
        shutil.rmtree(self.home, ignore_errors=True)


def ended(status):
    return any(condition["type"] in ("Succeeded", "Failed") and condition["status"] == "True"
               for condition in status.get("conditions", []))


def burst(server, options):
    began = time.perf_counter()
    sleeper = ["/bin/sh", "-c", f"sleep {options.seconds}; echo loss=$0", "${trialParameters.lr}"]
    server.apply([f"e{i}" for i in range(options.experiments)], options.parallel, options.trials,
                 sleeper)
    most, memory = 0, 0
    while True:
        time.sleep(1)
        statuses = server.statuses()
        most = max(most, sum(status.get("trialsRunning", 0) for status in statuses))
        memory = max(memory, server.usage()[0])
        if all(ended(status) for status in statuses):
            break
    good = sum(status.get("trialsSucceeded", 0) for status in statuses)
    print(f"| {options.experiments} experiments x {options.parallel} parallel | {most} at once | "
          f"{good} of {options.experiments * options.trials} trials succeeded | "
          f"{time.perf_counter() - began:.0f} s | {memory:.0f} MB |")


def long(server, options):
    server.apply(["long"], 8, options.trials)
    marks, began, memory = [], time.perf_counter(), 0
    while len(marks) < 4:
        time.sleep(0.2)
        done = server.statuses()[0].get("trialsSucceeded", 0)
        memory = max(memory, server.usage()[0])
        while len(marks) < 4 and done >= options.trials * (len(marks) + 1) // 4:
            marks.append(time.perf_counter() - began)
    quarters = [(b - a) / (options.trials / 4) * 1000 for a, b in zip([0] + marks, marks)]
    print(f"| {options.trials} trials in one experiment | "
          f"{' / '.join(f'{quarter:.2f}' for quarter in quarters)} ms a trial, by quarter | "
          f"{memory:.0f} MB |")


def recover(server, options):
    server.apply([f"e{i}" for i in range(options.experiments)], 10, 1000,
                 ["/bin/sh", "-c", "sleep 0.5; echo loss=$0", "${trialParameters.lr}"])
    times = []
    for _ in range(5):
        time.sleep(3)
        before = sum(status.get("trialsSucceeded", 0) for status in server.statuses())
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        began = time.perf_counter()
        server.start()
        answered = time.perf_counter() - began
        while sum(status.get("trialsSucceeded", 0) for status in server.statuses()) <= before + 200:
            time.sleep(0.01)
        times.append((answered, time.perf_counter() - began))
    print(f"| kill -9 under {options.experiments * 10} running trials, five times | answers after "
          f"{statistics.median(t[0] for t in times):.2f} s, worst {max(t[0] for t in times):.2f} s "
          f"| 200 more trials booked after {statistics.median(t[1] for t in times):.2f} s |")


def soak(server, options):
    samples, began, round_number = [], time.time(), 0
    while time.time() - began < options.minutes * 60:
        names = [f"s{round_number}-{i}" for i in range(5)]
        algorithms = ["random", "tpe", "bayesianoptimization", "cmaes", "sobol"]
        for name, algorithm in zip(names, algorithms):
            server.apply([name], 2, 20, algorithm=algorithm)
        while not all(ended(status) for status in server.statuses()):
            time.sleep(0.2)
        for name in names:
            server.run("get", "trials", name, "-o", "json")
            server.run("delete", name)
        round_number += 1
        if time.time() - began >= 60 * len(samples):
            samples.append(server.usage())
            print(f"minute {len(samples) - 1}: {samples[-1][0]:.1f} MB, {samples[-1][1]} "
                  f"descriptors, {samples[-1][2]} threads, {round_number * 5} experiments",
                  flush=True)
    half = [sample[0] for sample in samples[len(samples) // 2:]]
    middle = (len(half) - 1) / 2
    spread = sum((i - middle) ** 2 for i in range(len(half))) or 1
    slope = sum((i - middle) * value for i, value in enumerate(half)) / spread
    print(f"| soak, {options.minutes} min, {round_number * 5} experiments of 20 trials | "
          f"{samples[0][0]:.0f} MB first, {samples[-1][0]:.0f} MB last, {slope * 60:+.2f} MB/h "
          f"over the second half | {samples[0][1]} to {samples[-1][1]} descriptors |")


ASKED = """apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {{name: {name}}}
spec:
  objective: {{type: minimize, objectiveMetricName: loss}}
  algorithm: {{algorithmName: random}}
  parameters:
    - {{name: lr, parameterType: double, feasibleSpace: {{min: "0", max: "1"}}}}
    - {{name: wd, parameterType: double, feasibleSpace: {{min: "0", max: "1"}}}}
  shirabe: {{askAndTell: true}}
"""


def clone(server, count):
    """As many more experiments as the first two, by their rows: the server is down meanwhile."""
    with sqlite3.connect(server.home / "shirabe.db") as db:
        kinds = db.execute("SELECT n.name, n.namespace, e.body FROM name n JOIN experiment e "
                           "USING (id)").fetchall()
        first, revision = (db.execute("SELECT max(id) FROM name").fetchone()[0],
                           db.execute("SELECT revision FROM store").fetchone()[0])
        for i in range(count - len(kinds)):
            name, namespace, body = kinds[i % len(kinds)]
            other = f"x{i:0{len(name) - 1}d}"
            db.execute("INSERT INTO name(id, namespace, name) VALUES (?, ?, ?)",
                       (first + 1 + i, namespace, other))
            db.execute("INSERT INTO experiment VALUES (?, ?, ?)",
                       (first + 1 + i, revision, body.replace(name.encode(), other.encode())))


def idle(server, options):
    paused, asked = "idle-paused", "idle-asking"
    server.apply([paused], 2, 10, ["/bin/sh", "-c", "sleep 3600; echo $0", "${trialParameters.lr}"])
    server.run("pause", paused)
    path = server.home / "asked.yaml"
    path.write_text(ASKED.format(name=asked))
    server.run("apply", "-f", str(path))
    time.sleep(2)
    server.end()
    clone(server, options.experiments)
    began = time.perf_counter()
    server.start()
    while True:
        with sqlite3.connect(f"file:{server.home}/shirabe.db?mode=ro", uri=True) as db:
            owned = db.execute("SELECT count(*) FROM name JOIN experiment USING (id) "
                               "WHERE holder <> ''").fetchone()[0]
        if owned >= options.experiments:
            break
        time.sleep(0.2)
    took_up = time.perf_counter() - began
    time.sleep(10)
    before, start = server.spent(), time.perf_counter()
    time.sleep(options.seconds)
    after, seconds = server.spent(), time.perf_counter() - start
    print(f"| {options.experiments} idle experiments | {(after[0] - before[0]) / seconds:.2%} of a "
          f"core | {(after[2] - before[2]) / seconds:.2f} revisions/s | "
          f"{(after[1] - before[1]) / seconds / 1024:.1f} kB/s to the disk | "
          f"{server.usage()[0]:.0f} MB | taken up after {took_up:.1f} s |")


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def text(tag, value):
    return varint(tag << 3 | 2) + varint(len(value)) + value


def ended_trial(number):
    """The record of a trial that succeeded, by the fields of records.proto."""
    point = struct.pack("<2d", number * 0.6180339887 % 1, number * 0.4142135623 % 1)
    return (text(1, b"default") + text(2, b"many") + varint(3 << 3) + varint(number) +
            text(4, text(1, point)) + varint(9 << 3) + varint(2) +
            varint(16 << 3 | 1) + struct.pack("<d", number % 97 / 97) +
            varint(19 << 3) + varint(1))


def ended_trials(server, options):
    path = server.home / "asked.yaml"
    path.write_text(ASKED.format(name="many"))
    server.run("apply", "-f", str(path))
    time.sleep(1)
    before = server.usage()[0]
    server.end()
    with sqlite3.connect(server.home / "shirabe.db") as db:
        key, revision = db.execute("SELECT id, revision FROM experiment").fetchone()
        for number in range(1, options.trials + 1):
            db.execute("INSERT INTO trial VALUES (?, ?, 0, ?, ?)",
                       (key, number, revision, ended_trial(number)))
    server.start()
    while not server.run("get", "trials", "many", "-o", "name", "--limit", "1"):
        time.sleep(0.1)
    server.run("ask", "many")
    most = server.usage()[0]
    began = time.perf_counter()
    server.run("delete", "many")
    deleted = time.perf_counter() - began
    time.sleep(12)
    after = server.usage()[0]
    print(f"| {options.trials} trials that ended | "
          f"{(most - before) * 1024 * 1024 / options.trials:.0f} B each | "
          f"{before:.0f} MB before, {most:.0f} MB with them, {after:.0f} MB after the deletion, "
          f"which took {deleted:.2f} s |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shirabe")
    parser.add_argument("part", choices=["burst", "long", "recover", "soak", "idle", "ended"])
    parser.add_argument("--experiments", type=int)
    parser.add_argument("--parallel", type=int, default=30)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    defaults = {"burst": (120, 60), "long": (1, 20000), "recover": (20, 0), "soak": (5, 20),
                "idle": (5000, 0), "ended": (1, 100000)}
    options.experiments = options.experiments or defaults[options.part][0]
    options.trials = options.trials or defaults[options.part][1]
    any_number = ["--max-experiments", "0"] if options.part == "idle" else []
    server = Server(options.shirabe, *any_number)
    try:
        {"burst": burst, "long": long, "recover": recover, "soak": soak, "idle": idle,
         "ended": ended_trials}[options.part](server, options)
    finally:
        if server.process.poll() is None:
            server.stop()


if __name__ == "__main__":
    main()
