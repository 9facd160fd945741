#!/usr/bin/env python3
"""Measures a controller in the cluster that bench/scale/cluster.sh has made, within its network.

    cluster.py BIN CLUSTER burst|long|small [--experiments N] [--parallel N] [--trials N]
               [--seconds S] [--limit S] [--verbose]

Of burst and small, no program ends before all are running; then each goes on for S seconds, half
more or less.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import ssl
import statistics
import subprocess
import tempfile
import time
import urllib.request

SPEC = """apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {{name: {name}}}
spec:
  objective: {{type: minimize, objectiveMetricName: loss}}
  algorithm: {{algorithmName: random}}
  parallelTrialCount: {parallel}
  maxTrialCount: {trials}
  parameters:
    - {{name: lr, parameterType: double, feasibleSpace: {{min: "0", max: "1"}}}}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{{name: lr, reference: lr}}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
              - {{name: main, image: none, command: [train, "--lr=${{trialParameters.lr}}"]}}
---
"""
# Experiments, trials at a time, trials in all (each), seconds that a program runs, and at most.
SCENARIOS = {"burst": (120, 30, 40, 120, 1500), "long": (1, 500, 20000, 10, 3600),
             "small": (8, 10, 20, 10, 120)}
PODS_PER_PROCESS = 1500  # whose connections 20,000 open files are enough for
TICKS = os.sysconf("SC_CLK_TCK")
UNVERIFIED = ssl._create_unverified_context()  # a certificate of its own


def cpu_seconds(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


def series(text, family):
    """[({label: value}, number)] of one family of an exposition."""
    found = []
    for labels, value in re.findall(rf"^{family}(?:{{(.*)}})? (\S+)$", text, re.M):
        found.append((dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)))
    return found


class Run:
    """A controller of a home of its own, and whoever plays the pods."""

    def __init__(self, options):
        self.options = options
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="shirabe-bench-"))
        self.started = time.monotonic()
        self.token = make_token()
        self.controller = subprocess.Popen(
            [f"{options.bin}/shirabe", "controller", "--advertise", "127.0.0.1:7450", "--grpc",
             "127.0.0.1:7450", "--http", "127.0.0.1:7451", "--rate", "0",
             "--connections-per-address", "0", "--image", "none",
             "--ready-file", str(self.home / "ready")],
            env={**os.environ, "SHIRABE_HOME": str(self.home)},
            stderr=open(self.home / "log", "w"))
        while not (self.home / "ready").exists():
            if self.controller.poll() is not None:
                raise SystemExit((self.home / "log").read_text())
            time.sleep(0.05)
        hold = options.experiments * options.parallel if options.scenario != "long" else 0
        parts = 1 + (hold - 1) // PODS_PER_PROCESS if hold else 1
        self.sidecars = [subprocess.Popen(
            [f"{options.bin}/scale_sidecars", os.environ["KUBECONFIG"], str(options.seconds),
             str(options.seconds / 2), str(hold // parts), str(part), str(parts)],
            stdout=open(self.home / f"events-{part}", "w"),
            stderr=open(self.home / f"complaints-{part}", "w")) for part in range(parts)]
        self.parts = {path.stem: int(path.read_text())
                      for path in pathlib.Path(options.cluster, "run").glob("*.pid")}

    def metrics(self):
        request = urllib.request.Request("https://127.0.0.1:7451/metrics",
                                         headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, context=UNVERIFIED, timeout=30) as reply:
            return reply.read().decode()

    def cpu(self):
        used = {"controller": cpu_seconds(self.controller.pid),
                "sidecars": sum(cpu_seconds(process.pid) for process in self.sidecars)}
        return {**used, **{name: cpu_seconds(pid) for name, pid in self.parts.items()}}

    def lines(self, kind):
        """What the sidecars have printed: events, or complaints."""
        return [line for path in sorted(self.home.glob(f"{kind}-*"))
                for line in path.read_text().splitlines()]

    def events(self):
        """{what: {experiment: [(seconds, trial)]}}"""
        found = collections.defaultdict(lambda: collections.defaultdict(list))
        for line in self.lines("events"):
            seconds, what, experiment, trial = line.split()
            found[what][experiment].append((float(seconds), int(trial)))
        return found

    def stop(self):
        self.controller.terminate()
        code = self.controller.wait(timeout=60)
        for process in self.sidecars:
            process.kill()
            process.wait()
        if os.environ.get("KEEP"):
            print("home:", self.home)
        else:
            shutil.rmtree(self.home, ignore_errors=True)
        if code != 0:
            raise SystemExit(f"the controller ended with {code}")


def kubectl(*words, **more):
    return subprocess.run(["kubectl", *words], check=True, text=True, capture_output=True,
                          **more).stdout


def make_token():
    """Of an account that may read the controller's metrics."""
    kubectl("apply", "-f", str(pathlib.Path(__file__).with_name("account.yaml")))
    return kubectl("create", "token", "bench", "--audience", "shirabe", "--duration", "6h").strip()


def api_requests():
    """What the API server has answered, to all of its clients, by verb and resource."""
    counts = collections.Counter()
    for labels, value in series(kubectl("get", "--raw", "/metrics"), "apiserver_request_total"):
        parts = [labels["resource"], labels["subresource"]]
        counts[labels["verb"], "/".join(part for part in parts if part)] += value
    return counts


def own_requests(text):
    counts = collections.Counter()
    for labels, value in series(text, "shirabe_kube_requests_total"):
        counts[labels["verb"], labels["resource"]] += value
    return counts


def apply(options):
    text = "".join(SPEC.format(name=f"e{i}", parallel=options.parallel, trials=options.trials)
                   for i in range(options.experiments))
    kubectl("create", "-f", "-", input=text)


def watch(run, options):
    """Until all experiments have ended: (the most memory, samples, whether they have)."""
    began = time.monotonic()
    samples = []
    while time.monotonic() - began < options.limit:
        time.sleep(2)
        text = run.metrics()
        states = {labels["status"]: value
                  for labels, value in series(text, "katib_trials_current")}
        ended = sum(value for labels, value in series(text, "katib_experiments_current")
                    if labels["status"] in ("Succeeded", "Failed"))
        cpu = run.cpu()
        samples.append((time.monotonic() - began, resident_mb(run.controller.pid), cpu, states))
        if options.verbose:
            print(f"{samples[-1][0]:.0f} s, {samples[-1][1]:.0f} MB, "
                  f"{ {k: round(v, 1) for k, v in cpu.items()} }, {states}", flush=True)
        if ended >= options.experiments:
            return samples, True
    return samples, False


def at_once(events):
    """(the most pods that ran at once, when that was reached, seconds at 99 % of it)"""
    steps = sorted([(t, 1) for of in events["running"].values() for t, _ in of] +
                   [(t, -1) for of in events["end"].values() for t, _ in of])
    most = now = 0
    reached = 0.0
    history = []
    for t, step in steps:
        now += step
        history.append((t, now))
        if now > most:
            most, reached = now, t
    held = sum(later[0] - (t) for (t, count), later in zip(history, history[1:])
               if count >= 0.99 * most)
    return most, reached, held


def idle_share(samples, pods):
    """Of a core, by the controller while so many pods run and nothing changes; for how long."""
    calm = [(at, cpu["controller"]) for at, _, cpu, states in samples
            if states.get("Running") == pods]
    calm = [one for one in calm if one[0] >= calm[0][0] + 15]  # the last have just been started
    if len(calm) < 5:
        return None
    seconds = calm[-1][0] - calm[0][0]
    return (calm[-1][1] - calm[0][1]) / seconds, seconds


def replacements(events, what, parallel):
    """Seconds from the end of a pod to the next object of its experiment, in order."""
    waits = []
    for experiment, ends in events["end"].items():
        later = sorted(t for t, _ in events[what][experiment])[parallel:]
        waits += [new - end for end, new in zip(sorted(t for t, _ in ends), later)]
    return waits


def quantiles(values):
    values = sorted(values)
    if not values:
        return "none"
    at = [values[min(len(values) - 1, int(len(values) * q))] for q in (0.5, 0.9, 0.99)]
    return "p50 {:.2f} s, p90 {:.2f} s, p99 {:.2f} s".format(*at) + f", most {values[-1]:.2f} s"


def starts(events):
    """Seconds from the sight of a Job to that of its running pod."""
    waits = []
    for experiment, jobs in events["job"].items():
        running = {trial: t for t, trial in events["running"][experiment]}
        waits += [running[trial] - t for t, trial in jobs if trial in running]
    return waits


def row(name, value):
    print(f"| {name} | {value} |")


def print_requests(title, before, after, trials):
    print(f"\n| {title}, for each trial | |\n| --- | ---: |")
    total = 0
    for (verb, resource), count in (after - before).most_common(24):
        total += count
        if count / trials >= 0.005:
            row(f"{verb} {resource}", f"{count / trials:.2f}")
    row("**all**", f"**{total / trials:.2f}**")


def print_objects(options):
    experiment = kubectl("get", "experiments", "e0", "-o", "json")
    trials = kubectl("get", "trials", "-o", "name").split()
    row("the Experiment object, at the end", f"{len(experiment) / 1000:.1f} kB")
    row("Trial objects kept, of each experiment", f"{len(trials) / options.experiments:.0f}")


def report(run, options, samples, began):
    events = run.events()
    ended = sum(len(of) for of in events["end"].values())
    most, reached, held = at_once(events)
    last = samples[-1]
    used = {name: value for name, value in last[2].items()}
    total = sum(used.values())
    print(f"\n| {options.scenario}: {options.experiments} × {options.parallel} parallel, "
          f"{options.trials} trials each, programs of {options.seconds:g} s | |\n| --- | ---: |")
    row("pods that ran at once", f"**{most:,}**")
    row("… reached after", f"{reached - began:.0f} s")
    row("… held (99 % of it) for", f"{held:.0f} s")
    row("trials that ended", f"{ended:,} in {last[0]:.0f} s: {ended / last[0]:.1f}/s")
    row("pods lost", sum(len(of) for of in events["lost"].values()))
    row("resident, the most", f"**{max(sample[1] for sample in samples):.0f} MB** "
        f"(at the start {samples[0][1]:.0f}, at the end {last[1]:.0f})")
    row("CPU of the controller", f"{used['controller']:.1f} s, "
        f"{1000 * used['controller'] / max(ended, 1):.1f} ms a trial, "
        f"**{100 * used['controller'] / total:.0f} %** of all")
    idle = idle_share(samples, most)
    if idle:
        row("… of a core while they run and nothing changes", f"{idle[0]:.3f}, for {idle[1]:.0f} s")
    row("CPU of the others", ", ".join(f"{name} {value:.0f} s" for name, value in
                                       sorted(used.items(), key=lambda item: -item[1])
                                       if name != "controller" and value >= 1))
    row("end of a pod → next Job seen", quantiles(replacements(events, "job", options.parallel)))
    row("end of a pod → next pod seen", quantiles(replacements(events, "pod", options.parallel)))
    row("Job seen → its pod runs (the cluster's part)", quantiles(starts(events)))
    print_objects(options)
    states = last[3]
    row("how the trials ended", ", ".join(f"{k} {v:g}" for k, v in states.items() if v))
    return ended


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("cluster")
    parser.add_argument("scenario", choices=SCENARIOS)
    for name in ("experiments", "parallel", "trials", "seconds", "limit"):
        parser.add_argument(f"--{name}", type=float if name == "seconds" else int)
    parser.add_argument("--verbose", action="store_true", help="a line every two seconds")
    options = parser.parse_args()
    names = ("experiments", "parallel", "trials", "seconds", "limit")
    for name, value in zip(names, SCENARIOS[options.scenario]):
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def main():
    options = parse()
    run = Run(options)
    try:
        before, own_before = api_requests(), own_requests(run.metrics())
        began = time.monotonic()
        apply(options)
        samples, over = watch(run, options)
        time.sleep(3)  # for what is cleared away after the last
        ended = report(run, options, samples, began)
        print_requests("requests of the controller", own_before, own_requests(run.metrics()), ended)
        print_requests("requests of all to the API server", before, api_requests(), ended)
        complaints = run.lines("complaints")
        if complaints:
            print(f"\n{len(complaints)} complaints of sidecars, the last: {complaints[-1]}")
        if not over:
            raise SystemExit(f"not all experiments have ended after {options.limit} s")
    finally:
        run.stop()


if __name__ == "__main__":
    main()
