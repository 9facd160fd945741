#!/usr/bin/env python3
"""No-op trials, metric ingest, memory and latency of the whole system, beside its peers and the
floor of the machine. Prints Markdown; bench/scale/run.sh calls it.

    scale.py SHIRABE FLOOR FOLDER [--trials N] [--many N] [--points N] [--peer NAME=PYTHON]…
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# One line of the metrics file each: what a training loop writes, a million times.
WRITER = ('BEGIN { for (i = 1; i <= n; i++) printf "{\\"step\\":%d,\\"metrics\\":{\\"loss\\":%.6f}}'
          '\\n", i, 1 / i > ENVIRON["SHIRABE_METRICS_FILE"] }')


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = pathlib.Path(options.folder)

    def environment(self, name):
        """A fresh, empty state folder, on the disk where fsync counts."""
        home = self.folder / name
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        return {**os.environ, "SHIRABE_HOME": str(home)}

    def start(self, environment, name, trials, *command, parallel=2):
        return subprocess.Popen(
            [self.options.shirabe, "run", "--name", name, "--algorithm", "random",
             "--param", "x=0..1", "--minimize",
             "loss", "--max-trials", str(trials), "--parallel", str(min(parallel, trials)), "--",
             *command],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def noop(self, environment, name, trials):
        start = time.perf_counter()
        process = self.start(environment, name, trials, "/bin/echo", "loss={x}")
        if process.wait() != 0:
            raise SystemExit(f"shirabe run {name} failed with exit code {process.returncode}")
        return time.perf_counter() - start

    def floor(self):
        output = subprocess.run([self.options.floor, "3", str(self.folder), "/bin/echo", "loss=1"],
                                capture_output=True, text=True, check=True).stdout
        return json.loads(output)

    def peer(self, name, python):
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        # Ray Tune starts a process of a second a trial: a tenth of the trials gives its rate.
        trials = max(1, self.options.trials // 10) if name == "ray" else self.options.trials
        result = subprocess.run(
            [python, HERE / "peers.py", name, str(trials), "2", str(folder)],
            capture_output=True, text=True, timeout=900)
        if result.returncode != 0:
            return None, result.stderr.strip().splitlines()[-1:] or ["failed"]
        answer = json.loads(result.stdout.splitlines()[-1])
        return {**answer, "rate": trials / answer["seconds"]}, None

    def command(self, environment, *arguments):
        """Median wall time of a command in ms."""
        times = []
        for _ in range(21):
            start = time.perf_counter()
            subprocess.run([self.options.shirabe, *arguments], env=environment, check=True,
                           stdout=subprocess.DEVNULL)
            times.append((time.perf_counter() - start) * 1000)
        return statistics.median(times)


def resident_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), platform.machine())
    return (f"{os.cpu_count()} cores of {model}, Linux {platform.release()}, "
            f"Python {platform.python_version()}")


def throughput(bench):
    options = bench.options
    floor = bench.floor()
    seconds = bench.noop(bench.environment("noop"), "noop", options.trials)
    ours = options.trials / seconds
    print(f"## {options.trials} no-op trials, two at a time\n")
    print("| system | trials/s | Shirabe is |\n| --- | ---: | ---: |")
    print(f"| **Shirabe** (SQLite, synchronous=FULL) | **{ours:.0f}** | |")
    for entry in options.peer:
        name, _, python = entry.partition("=")
        answer, error = bench.peer(name, python)
        if error:
            print(f"| {name} | did not run: {error[0]} | |")
            continue
        rate = answer["rate"]
        print(f"| {name} {answer['version']} | {rate:.1f} | {ours / rate:.1f}× |")
    print(f"| floor: posix_spawn and wait, two at a time | {floor['spawn_2']:.0f} "
          f"| {ours / floor['spawn_2']:.2f}× |")
    print(f"\nOne durable append (4 KiB and fdatasync) at a time: {floor['fsync']:.0f}/s, so "
          f"{ours / floor['fsync']:.2f} trials for each.\n")


def ingest(bench):
    points = bench.options.points
    environment = bench.environment("ingest")
    alone = {**environment, "SHIRABE_METRICS_FILE": str(bench.folder / "ingest" / "alone")}
    start = time.perf_counter()
    subprocess.run(["awk", "-v", f"n={points}", WRITER], env=alone, check=True)
    writing = time.perf_counter() - start
    start = time.perf_counter()
    process = bench.start(environment, "ingest", 1, "awk", "-v", f"n={points}",
                          WRITER.replace("{", "{{"), "{x}")
    if process.wait() != 0:
        raise SystemExit("the ingest trial failed")
    seconds = time.perf_counter() - start
    print(f"## One trial that writes {points} points to its metrics file\n")
    print("| | seconds | points/s |\n| --- | ---: | ---: |")
    print(f"| **until all are durable and the experiment has ended** | {seconds:.1f} "
          f"| **{points / seconds:.0f}** |")
    print(f"| the program alone | {writing:.1f} | {points / writing:.0f} |\n")


def latency(bench):
    environment = bench.environment("latency")
    bench.noop(environment, "many", 10000)
    print("## Latency with 10,000 trials in the store (median of 21, process start included)\n")
    print("| command | ms |\n| --- | ---: |")
    for arguments in (("version",), ("get", "experiments"), ("get", "trials", "many", "-o", "name"),
                      ("get", "trials", "many"), ("best", "many")):
        print(f"| `shirabe {' '.join(arguments)}` | {bench.command(environment, *arguments):.1f} |")
    print()


def memory(bench):
    many = bench.options.many
    environment = bench.environment("memory")
    start = time.perf_counter()
    process = bench.start(environment, "memory", many, "/bin/echo", "loss={x}")
    most = 0.0
    while process.poll() is None:
        most = max(most, resident_mb(process.pid))
        time.sleep(0.5)
    seconds = time.perf_counter() - start
    size = sum(f.stat().st_size for f in (bench.folder / "memory").glob("*.db*")) / 1e6
    print(f"## {many} trials in one experiment\n")
    print("| exit code | greatest resident memory | trials/s | database |\n"
          "| ---: | ---: | ---: | ---: |")
    print(f"| {process.returncode} | **{most:.0f} MB** | {many / seconds:.0f} | {size:.0f} MB |\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shirabe")
    parser.add_argument("floor")
    parser.add_argument("folder")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--many", type=int, default=100000)
    parser.add_argument("--points", type=int, default=1000000)
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--only", choices=["throughput", "ingest", "latency", "memory"])
    bench = Bench(parser.parse_args())
    version = subprocess.run([bench.options.shirabe, "version"], capture_output=True, text=True)
    print(f"{version.stdout.splitlines()[0]} · {machine()} · {time.strftime('%Y-%m-%d')}\n")
    for part in (throughput, ingest, latency, memory):
        if bench.options.only in (None, part.__name__):
            part(bench)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
