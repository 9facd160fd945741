"""What preemption wastes, for real: a program of 200 steps of 50 ms which saves every 10 steps, two
at a time, while their machines are taken away. Called by run.sh: real.py SHIRABE WORK

Wasted is what all attempts ran, less what they run undisturbed; for each reclaim. The floor of one
is the program's own start and, without notice, half of the time between two saves; with notice,
half a step and a save. Beside it, on the same reclaims: the same program without checkpoints, and
preemption as a failure.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SDK = HERE.parents[1] / "sdk" / "python"
TRIALS, STEPS, STEP, EVERY = 6, 200, 0.05, 10
TIMES = [2.1 * i + 0.7 for i in range(1, 15)]

PROGRAM = f"""
import sys, time
sys.path.insert(0, {str(SDK)!r})
import shirabe
saves = sys.argv[1] == "saves"
path = shirabe.resume() if saves else None
first = int(path.name) + 1 if path else 1
for step in range(first, {STEPS} + 1):
    time.sleep({STEP})
    shirabe.report(step, loss=1 / step)
    stop = saves and shirabe.should_stop()
    if saves and (step % {EVERY} == 0 or stop):
        with shirabe.checkpoint(step) as folder:
            (folder / "state").write_text(str(step))
    if stop and step < {STEPS}:
        sys.exit(75)
shirabe.done()
"""

SPEC = """apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: %(name)s}
spec:
  parallelTrialCount: 2
  maxTrialCount: %(trials)d
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  parameters:
    - {name: lr, parameterType: double, feasibleSpace: {min: "0.1", max: "0.9"}}
  shirabe:
    attempts: {maxPreemptions: %(preemptions)d}
    capacity: {spot: required}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: lr, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
              - name: main
                image: none
                command: [python3, %(program)s, %(mode)s, "${trialParameters.lr}"]
"""


class Bench:
    def __init__(self, shirabe, work):
        self.shirabe, self.work = shirabe, pathlib.Path(work)
        (self.work / "program.py").write_text(PROGRAM)

    def attempts(self, name, mode, notice=None, preemptions=100):
        """The ledger of one experiment; notice None: no machine is taken away."""
        spec, nodes = self.work / f"{name}.yaml", self.work / f"{name}-nodes.yaml"
        spec.write_text(SPEC % {"name": name, "mode": mode, "trials": TRIALS,
                                "preemptions": preemptions, "program": self.work / "program.py"})
        reclaim = {} if notice is None else {"reclaim": {"times": TIMES, "noticeSeconds": notice}}
        nodes.write_text(json.dumps({"pools": [
            {"name": "spot", "capacity": "spot", "slots": 2, "pricePerHour": 1, **reclaim}]}))
        environment = {**os.environ, "SHIRABE_HOME": str(self.work / name)}
        subprocess.run([self.shirabe, "run", "-f", spec, "--nodes", nodes], env=environment,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        output = subprocess.run([self.shirabe, "get", "attempts", name, "-o", "json"], check=True,
                                env=environment, capture_output=True, text=True).stdout
        return json.loads(output)["items"]


def seconds(attempts):
    return sum(attempt["seconds"] for attempt in attempts)


def start_seconds():
    """The interpreter and the helper, without a step of training."""
    times = []
    for _ in range(11):
        begin = time.perf_counter()
        subprocess.run(["python3", "-c", f"import sys; sys.path.insert(0, {str(SDK)!r}); "
                        "import shirabe"], check=True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main():
    bench = Bench(sys.argv[1], sys.argv[2])
    plain = seconds(bench.attempts("plain", "saves"))
    start = start_seconds()
    period = (plain / TRIALS - start) * EVERY / STEPS
    save = period - EVERY * STEP  # and the reports of ten steps
    print(f"Undisturbed {plain / TRIALS:.2f} s a trial; the start takes {start:.3f} s, a save and "
          f"ten reports {save:.3f} s.\n")
    print("| | reclaims | finished | wasted each | floor each | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for label, name, mode, notice, preemptions in (
            ("**no notice**", "sudden", "saves", 0, 100),
            ("**2 s notice**", "noticed", "saves", 2, 100),
            ("from scratch", "scratch", "forgets", 0, 100),
            ("preemption = failure", "failure", "forgets", 0, 0)):
        attempts = bench.attempts(name, mode, notice, preemptions)
        reclaims = sum(attempt["cause"] == "preempted-spot" for attempt in attempts)
        finished = sum(attempt["cause"] == "completed" for attempt in attempts)
        useful = plain * finished / TRIALS
        wasted = (seconds(attempts) - useful) / max(1, reclaims)
        floor = start + (STEP / 2 + save if notice else period / 2)
        print(f"| {label} | {reclaims} | {finished} of {TRIALS} | {wasted:.2f} s | {floor:.2f} s "
              f"| {wasted / floor:.2f} |")


if __name__ == "__main__":
    main()
