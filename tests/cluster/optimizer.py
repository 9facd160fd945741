"""Kubeflow's OptimizerClient against a cluster, each call of it:
optimizer.py create|succession|run|left NAME
"""

import sys
import time

from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.optimizer import OptimizerClient
from kubeflow.optimizer.types.algorithm_types import RandomSearch
from kubeflow.optimizer.types.optimization_types import Objective, TrialConfig
from kubeflow.optimizer.types.search_types import Search
from kubeflow.trainer.types.types import CustomTrainer, TrainJobTemplate
from kubernetes.client import ApiException


def train(lr):
    import time

    print(f"training with {lr}", flush=True)
    time.sleep(10)
    print(f"loss={float(lr)}", flush=True)


def create(client: OptimizerClient) -> None:
    print(
        client.optimize(
            TrainJobTemplate(trainer=CustomTrainer(func=train), runtime="plain"),
            search_space={"lr": Search.uniform(0.25, 0.5)},
            trial_config=TrialConfig(num_trials=2, parallel_trials=1),
            objectives=[Objective(metric="loss")],
            algorithm=RandomSearch(random_state=7),
        )
    )


def succession(client: OptimizerClient, name: str) -> None:
    """Over an eviction: until the TrainJob is the second attempt's, and how long there is none."""
    print("watching", flush=True)
    gone, longest, until = 0.0, 0.0, time.monotonic() + 240
    while time.monotonic() < until:
        now = time.monotonic()
        try:
            found = client.backend.custom_api.get_namespaced_custom_object(
                "trainer.kubeflow.org", "v1alpha1", "sdk", "trainjobs", f"{name}-1"
            )
        except ApiException as error:
            assert error.status == 404, error
            gone = gone or now
        else:
            longest, gone = max(longest, now - gone if gone else 0.0), 0.0
            if found["metadata"]["labels"]["shirabe.dev/attempt"] == "2":
                print(f"there was no TrainJob for {1000 * longest:.0f} ms")
                assert longest < 10, longest
                return
        time.sleep(0.05)
    raise AssertionError("no second attempt")


def run(client: OptimizerClient, name: str) -> None:
    """While a trial runs, after the first attempt of one was evicted, and until the end."""
    running = client.wait_for_job_status(name, {"Running"}, timeout=60, polling_interval=1)
    trial = next(one for one in running.trials if one.trainjob.status == "Running")
    assert trial.trainjob.name == trial.name, trial
    assert trial.trainjob.steps[0].name == "node-0", trial
    assert name in [one.name for one in client.list_jobs()]
    until = time.monotonic() + 15
    while not (lines := list(client.get_job_logs(name, trial.name))) and time.monotonic() < until:
        time.sleep(0.5)
    assert any(line.startswith("training with 0.") for line in lines), lines
    followed = list(client.get_job_logs(name, trial.name, follow=True))
    assert followed[-1].startswith("loss=0."), followed
    seen = []
    done = client.wait_for_job_status(name, timeout=120, callbacks=[lambda one: seen.append(one)])
    assert done.status == "Complete" and seen, (done.status, seen)
    assert [one.trainjob.status for one in done.trials] == ["Complete"] * 2, done.trials
    best = client.get_best_results(name)
    assert best is not None and best.metrics[0].name == "loss", best
    assert float(best.metrics[0].latest) == float(best.parameters["lr"]), best
    events = client.get_job_events(name)
    assert any("evict" in one.message for one in events), events
    lines = list(client.get_job_logs(name))
    assert lines[-1] == f"loss={float(best.parameters['lr'])}", lines
    client.delete_job(name)


def left(client: OptimizerClient, name: str) -> None:
    names = [one.name for one in client.list_jobs()]
    assert name not in names, names


PARTS = {one.__name__: one for one in (create, succession, run, left)}
CLIENT = OptimizerClient(KubernetesBackendConfig(namespace="sdk"))
PARTS[sys.argv[1]](CLIENT, *sys.argv[2:])
