"""Katib's clients in pods, with Katib's own SDK, and what their test needs outside of pods:
clients.py collect|push|ask|shell|generations …
"""

import json
import os
import sys
import time
from pathlib import Path

DB_MANAGER = "katib-db-manager.kubeflow:6789"


def first_processes() -> set[int]:
    """Those that containers of this pod began with, but for the pause container's and this one."""
    found = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) in (1, os.getpid()):
            continue
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == 0:
            found.add(int(folder.name))
    return found


def collect(path: str) -> None:
    """A collector as Katib's: it waits until every process that it found has ended, then reports
    what stands in the file, for the trial that it knows by the name of its pod."""
    awaited = first_processes()
    print("waiting for", sorted(awaited), flush=True)
    while any(Path(f"/proc/{pid}").exists() for pid in awaited):
        time.sleep(0.2)
    import grpc
    from kubeflow.katib import katib_api_pb2 as api
    from kubeflow.katib import katib_api_pb2_grpc as services

    log = api.ObservationLog()
    for line in Path(path).read_text().splitlines():
        name, _, value = line.partition("=")
        log.metric_logs.append(
            api.MetricLog(
                time_stamp="0001-01-01T00:00:00Z", metric=api.Metric(name=name, value=value)
            )
        )
    request = api.ReportObservationLogRequest(
        trial_name=os.environ["TrialNamePrefix"], observation_log=log
    )
    services.DBManagerStub(grpc.insecure_channel(DB_MANAGER)).ReportObservationLog(
        request, timeout=30
    )
    print("reported", len(log.metric_logs), "values", flush=True)


def push(value: str) -> None:
    """A training program that reports by itself, and then takes its time."""
    from kubeflow.katib import report_metrics

    print("this is", os.environ["KATIB_TRIAL_NAME"], flush=True)
    report_metrics({"accuracy": value}, timeout=30)
    time.sleep(12)


def answered(call) -> list:
    """What it says once it has something to say: the SDK raises until the trial has a status."""
    for _ in range(100):
        try:
            found = list(call())
        except RuntimeError as error:
            found = []
            print(error)
        if found:
            break
        time.sleep(0.3)
    return found


def ask(experiment: str) -> None:
    """What a notebook asks of a trial while it runs."""
    from kubeflow.katib import KatibClient

    client = KatibClient(namespace="default")
    trial = f"{experiment}-1"
    metrics = answered(lambda: client.get_trial_metrics(trial))
    assert [one.metric.name for one in metrics] == ["accuracy"], metrics
    lines = answered(lambda: client.get_job_logs(experiment, trial))
    assert f"this is {trial}" in lines, lines
    assert not client.is_experiment_succeeded(experiment), "the trial was to be running"
    print("answered")


# What deploy/examples/katib-pbt/train.py does, in a shell: it counts the generations.
SCRIPT = """
file=/var/log/katib/checkpoints/training.ckpt
step=0
[ ! -f $file ] || step=$(cat $file)
step=$((step + 1))
echo "Validation-accuracy=0.$step"
echo $step >$file
"""


def shell() -> None:
    """Makes of the example, on the standard input, one for an image that the cluster has."""
    experiment = json.load(sys.stdin)
    spec = experiment["spec"]
    spec.update(maxTrialCount=6, parallelTrialCount=2)
    for setting in spec["algorithm"]["algorithmSettings"]:
        if setting["name"] == "n_population":
            setting["value"] = "2"
    pod = spec["trialTemplate"]["trialSpec"]["spec"]["template"]["spec"]
    pod["containers"][0].update(image="localhost/tiny:1", command=["sh", "-c", SCRIPT, "train"])
    json.dump(experiment, sys.stdout)


def generations(path: str) -> None:
    """Of six trials two begin, and each of the others goes on from where one before it ended.

    The members do not wait for each other: one may be further ahead."""
    attempts = json.loads(Path(path).read_text())["items"]
    steps = sorted(int(one.get("resumedFromStep", 0)) for one in attempts)
    assert len(steps) == 6 and steps.count(0) == 2 and steps[-1] >= 2, steps
    assert set(steps) == set(range(steps[-1] + 1)), steps


PARTS = {one.__name__: one for one in (collect, push, ask, shell, generations)}
PARTS[sys.argv[1]](*sys.argv[2:])
