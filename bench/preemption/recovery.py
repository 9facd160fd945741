"""Recovery after kill -9, for real: 10,000 trials are done and 100 run when the controller dies.

Prints how long a new `shirabe run` takes, from its start, until it has taken up the 100 running
programs, which are told to end as it starts, has stored their results and has ended.
Called by run.sh: recovery.py SHIRABE WORK
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

DONE, RUNNING = 10_000, 100

TRIAL = """n=${SHIRABE_TRIAL##*-}
echo loss=0.5
[ "$n" -le %d ] && exit 0
: > "$1/running/$n"
while [ ! -e "$1/go" ]; do sleep 0.1; done
"""

SPEC = """apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: recovery}
spec:
  parallelTrialCount: %d
  maxTrialCount: %d
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  parameters:
    - {name: lr, parameterType: double, feasibleSpace: {min: "0.1", max: "0.9"}}
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
                command: [/bin/sh, %s/trial.sh, "%s", "${trialParameters.lr}"]
"""


def start(shirabe, home):
    return subprocess.Popen([shirabe, "run", "-f", str(home / "spec.yaml")],
                            env=dict(os.environ, SHIRABE_HOME=str(home / "state")),
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(condition, process, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end or process.poll() is not None:
            sys.exit("recovery: the first run did not get as far as its last trials")
        time.sleep(0.05)


def measure(shirabe, home):
    """Seconds from the start of the second controller to its end, and the end's status."""
    (home / "running").mkdir()
    (home / "trial.sh").write_text(TRIAL % DONE)
    (home / "spec.yaml").write_text(SPEC % (RUNNING, DONE + RUNNING, home, home))
    first = start(shirabe, home)
    wait_for(lambda: len(os.listdir(home / "running")) == RUNNING, first, 600)
    time.sleep(1)  # the last starts are recorded
    first.send_signal(signal.SIGKILL)
    first.wait()
    begin = time.monotonic()
    second = start(shirabe, home)
    (home / "go").touch()
    if second.wait(timeout=120) != 0:
        sys.exit("recovery: the second run failed")
    seconds = time.monotonic() - begin
    shown = subprocess.run([shirabe, "get", "experiment", "recovery", "-o", "json"],
                           env=dict(os.environ, SHIRABE_HOME=str(home / "state")),
                           capture_output=True, text=True, check=True).stdout
    return seconds, json.loads(shown)["status"]


def main():
    shirabe, work = sys.argv[1], sys.argv[2]
    with tempfile.TemporaryDirectory(dir=work) as folder:
        seconds, status = measure(os.path.abspath(shirabe), pathlib.Path(folder))
    print("| what | figure |\n| --- | --- |")
    print(f"| from the start of the new controller to its end | {seconds:.2f} s |")
    print(f"| trials succeeded, of {DONE + RUNNING} | {status.get('trialsSucceeded')} |")
    print(f"| preempted, failed | {status.get('shirabe', {}).get('preemptions', 0)}, "
          f"{status.get('trialsFailed', 0)} |")


if __name__ == "__main__":
    main()
