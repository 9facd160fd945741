"""Programs written for Katib's Python SDK, against a Shirabe server: change the import.

    from shirabe_client.compat.katib import KatibClient, search

    client = KatibClient(client=Client("http://127.0.0.1:7451"))
    client.tune("mnist", objective=train, parameters={"lr": search.double(0.01, 0.1)},
                objective_metric_name="accuracy", max_trial_count=12)
    client.wait_for_experiment_condition("mnist")
    print(client.get_optimal_hyperparameters("mnist").parameter_assignments)

Names and arguments are Katib's. What it returns reads like its models (`Record`), and errors are
those of `shirabe_client.errors`, with the server's reason. Arguments that speak to Kubernetes
(config_file, context, timeout of the API server) are taken and not used.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from ..client import Client, Experiment, Trial
from ..errors import EndedOtherwise, NotFound, WaitTimeout
from . import search
from .push import report_metrics
from .records import Record, plain
from .template import algorithm, collector, container, space, template

__all__ = ["KatibClient", "Record", "report_metrics", "search"]

Json = Dict[str, Any]

_STORAGE_INITIALIZER = (
    "tune() from a model or data-set provider (the storage-initializer form) needs a cluster's "
    "volume and the Kubeflow trainer: give objective= and parameters= instead, or "
    "create_experiment with a trialTemplate of your own"
)


class KatibClient:
    """Katib's client over `client`, or over Client() with the environment's server."""

    def __init__(
        self,
        config_file: Optional[str] = None,
        context: Optional[str] = None,
        client_configuration: Any = None,
        namespace: Optional[str] = None,
        *,
        client: Optional[Client] = None,
    ) -> None:
        self.client = client or Client()
        self.namespace = namespace or self.client.namespace

    # ---- making, changing, removing ------------------------------------------------------------

    def create_experiment(self, experiment: Any, namespace: Optional[str] = None) -> Record:
        """A V1beta1Experiment, or the same as a mapping."""
        body = plain(experiment)
        body.setdefault("apiVersion", "kubeflow.org/v1beta1")
        body.setdefault("kind", "Experiment")
        metadata = body.setdefault("metadata", {})
        if namespace or "namespace" not in metadata:
            metadata["namespace"] = namespace or self.namespace
        body.pop("status", None)
        reply = self.client.transport.call("POST", "/api/v1/experiments", body)
        return Record(reply)

    def tune(
        self,
        name: str,
        model_provider_parameters: Any = None,
        dataset_provider_parameters: Any = None,
        trainer_parameters: Any = None,
        storage_config: Any = None,
        objective: Optional[Callable[[Dict[str, Any]], Any]] = None,
        base_image: Optional[str] = None,
        parameters: Optional[Mapping[str, Any]] = None,
        namespace: Optional[str] = None,
        env_per_trial: Union[Mapping[str, str], List[Any], None] = None,
        algorithm_name: str = "random",
        algorithm_settings: Union[Mapping[str, Any], List[Any], None] = None,
        objective_metric_name: Optional[str] = None,
        additional_metric_names: Optional[List[str]] = None,
        objective_type: str = "maximize",
        objective_goal: Optional[float] = None,
        max_trial_count: Optional[int] = None,
        parallel_trial_count: Optional[int] = None,
        max_failed_trial_count: Optional[int] = None,
        resources_per_trial: Optional[Mapping[str, Any]] = None,
        retain_trials: bool = False,
        packages_to_install: Optional[List[str]] = None,
        pip_index_url: Optional[str] = None,
        metrics_collector_config: Optional[Mapping[str, Any]] = None,
    ) -> Record:
        """An experiment whose trials call `objective` with their parameters.

        objective: a function of one mapping, which uses nothing from outside of itself: its source
            is what travels. It prints its metrics, as name=value.
        parameters: {name: search.double(…)}; a value that is no search space is passed as it is.
        base_image: of the container in a cluster; on one machine the program is its python3.
        """
        if model_provider_parameters or dataset_provider_parameters or trainer_parameters:
            raise ValueError(_STORAGE_INITIALIZER)
        if storage_config is not None:
            raise ValueError(
                "storage_config belongs to the storage-initializer form: " + _STORAGE_INITIALIZER
            )
        if objective is None or not parameters:
            raise ValueError(
                "tune() needs objective= (a function) and parameters= (its search space)"
            )
        _check(objective_metric_name, packages_to_install)
        spec: Json = {
            "objective": {
                "type": objective_type,
                "objectiveMetricName": objective_metric_name,
                "additionalMetricNames": additional_metric_names or None,
                "goal": objective_goal,
            },
            "algorithm": algorithm(algorithm_name, algorithm_settings),
            "parallelTrialCount": parallel_trial_count,
            "maxTrialCount": max_trial_count,
            "maxFailedTrialCount": max_failed_trial_count,
            "metricsCollectorSpec": collector(metrics_collector_config),
            "parameters": space(parameters),
            "trialTemplate": template(
                objective,
                parameters,
                container(base_image, env_per_trial, resources_per_trial),
                retain_trials,
            ),
        }
        return self.create_experiment({"metadata": {"name": name}, "spec": spec}, namespace)

    def edit_experiment_budget(
        self,
        name: str,
        namespace: Optional[str] = None,
        max_trial_count: Optional[int] = None,
        parallel_trial_count: Optional[int] = None,
        max_failed_trial_count: Optional[int] = None,
    ) -> None:
        if (
            max_trial_count is None
            and parallel_trial_count is None
            and max_failed_trial_count is None
        ):
            raise ValueError(
                "give one of max_trial_count, parallel_trial_count and max_failed_trial_count"
            )
        self._get(name, namespace).scale(
            parallel_trial_count, max_trial_count, max_failed_trial_count
        )

    def delete_experiment(
        self, name: str, namespace: Optional[str] = None, delete_options: Any = None
    ) -> None:
        """NotFound if there is none."""
        self._get(name, namespace).delete()

    # ---- reading ---------------------------------------------------------------------------------

    def get_experiment(
        self, name: str, namespace: Optional[str] = None, timeout: float = 120
    ) -> Record:
        return Record(self._get(name, namespace).raw)

    def list_experiments(
        self, namespace: Optional[str] = None, timeout: float = 120
    ) -> List[Record]:
        path = f"/api/v1/namespaces/{namespace or self.namespace}/experiments"
        return [Record(item) for item in self.client.pages(path)]

    def get_experiment_conditions(
        self,
        name: str,
        namespace: Optional[str] = None,
        experiment: Optional[Record] = None,
        timeout: float = 120,
    ) -> List[Record]:
        found = experiment or self.get_experiment(name, namespace)
        conditions: List[Record] = (found.status.conditions if found.status else None) or []
        return conditions

    def is_experiment_created(
        self,
        name: str,
        namespace: Optional[str] = None,
        experiment: Optional[Record] = None,
        timeout: float = 120,
    ) -> bool:
        return self._has_condition(name, namespace, experiment, "Created")

    def is_experiment_running(
        self,
        name: str,
        namespace: Optional[str] = None,
        experiment: Optional[Record] = None,
        timeout: float = 120,
    ) -> bool:
        return self._has_condition(name, namespace, experiment, "Running")

    def is_experiment_restarting(
        self,
        name: str,
        namespace: Optional[str] = None,
        experiment: Optional[Record] = None,
        timeout: float = 120,
    ) -> bool:
        return self._has_condition(name, namespace, experiment, "Restarting")

    def is_experiment_succeeded(
        self,
        name: str,
        namespace: Optional[str] = None,
        experiment: Optional[Record] = None,
        timeout: float = 120,
    ) -> bool:
        return self._has_condition(name, namespace, experiment, "Succeeded")

    def is_experiment_failed(
        self,
        name: str,
        namespace: Optional[str] = None,
        experiment: Optional[Record] = None,
        timeout: float = 120,
    ) -> bool:
        return self._has_condition(name, namespace, experiment, "Failed")

    def wait_for_experiment_condition(
        self,
        name: str,
        namespace: Optional[str] = None,
        expected_condition: str = "Succeeded",
        timeout: float = 600,
        polling_interval: float = 1,
        apiserver_timeout: float = 120,
    ) -> Record:
        """expected_condition: Created, Running, Restarting, Succeeded or Failed. WaitTimeout after
        `timeout` seconds; EndedOtherwise, which is one, as soon as it has ended in another."""
        known = ("Created", "Running", "Restarting", "Succeeded", "Failed")
        if expected_condition not in known:
            raise ValueError(
                f"expected_condition {expected_condition} is none of {', '.join(known)}"
            )
        deadline = time.monotonic() + timeout
        while True:
            found = self._get(name, namespace)
            record = Record(found.raw)
            if self._has_condition(name, namespace, record, expected_condition):
                return record
            if found.ended:
                raise EndedOtherwise(f"{name} has ended {found.state}, not {expected_condition}")
            if time.monotonic() > deadline:
                raise WaitTimeout(
                    f"{name} is {found.state} after {timeout} s, not {expected_condition}"
                )
            time.sleep(polling_interval)

    def list_trials(
        self,
        experiment_name: Optional[str] = None,
        namespace: Optional[str] = None,
        timeout: float = 120,
    ) -> List[Record]:
        """Of one experiment, or of all of the namespace."""
        names = [experiment_name] if experiment_name else self._names(namespace)
        return [Record(t.raw) for name in names for t in self._get(name, namespace).trials()]

    def get_trial(self, name: str, namespace: Optional[str] = None, timeout: float = 120) -> Record:
        return Record(self._trial(name, namespace).raw)

    def get_success_trial_details(
        self,
        experiment_name: Optional[str] = None,
        namespace: Optional[str] = None,
        timeout: float = 120,
    ) -> List[Json]:
        """[{name, parameter_assignments, metrics}] of the trials that have succeeded."""
        return [
            {
                "name": trial.metadata.name,
                "parameter_assignments": trial.spec.parameter_assignments,
                "metrics": trial.status.observation.metrics if trial.status.observation else [],
            }
            for trial in self.list_trials(experiment_name, namespace)
            if trial.status.shirabe.phase == "Succeeded"
        ]

    def get_optimal_hyperparameters(
        self, name: str, namespace: Optional[str] = None, timeout: float = 120
    ) -> Optional[Record]:
        """The best trial so far: best_trial_name, parameter_assignments, observation; or None."""
        found: Optional[Record] = self.get_experiment(name, namespace).status.current_optimal_trial
        return found if found and found.best_trial_name else None

    def get_trial_metrics(
        self,
        name: str,
        namespace: Optional[str] = None,
        db_manager_address: Optional[str] = None,
        timeout: float = 120,
    ) -> List[Record]:
        """What was reported: time_stamp, and metric with name and value (text), as Katib's log."""
        return [
            Record({"timeStamp": o.time, "metric": {"name": o.metric, "value": repr(o.value)}})
            for o in self._trial(name, namespace).observations()
        ]

    def get_job_logs(self, name: str, namespace: Optional[str] = None, follow: bool = False) -> str:
        """What the newest attempt of a trial has printed; with follow, once it has ended."""
        return "".join(self._trial(name, namespace).logs(follow))

    def get_suggestion(
        self, name: str, namespace: Optional[str] = None, timeout: float = 120
    ) -> Record:
        """The experiment's algorithm, and the points that were given out: Katib's Suggestion."""
        return _suggestion(self._get(name, namespace))

    def list_suggestions(
        self, namespace: Optional[str] = None, timeout: float = 120
    ) -> List[Record]:
        return [_suggestion(self._get(name, namespace)) for name in self._names(namespace)]

    # ---- in common -------------------------------------------------------------------------------

    def _get(self, name: str, namespace: Optional[str]) -> Experiment:
        return self.client.get(f"{namespace or self.namespace}/{name}")

    def _names(self, namespace: Optional[str]) -> List[str]:
        return [str(e.metadata.name) for e in self.list_experiments(namespace)]

    def _trial(self, name: str, namespace: Optional[str]) -> Trial:
        experiment, _, number = name.rpartition("-")
        if not experiment or not number.isdigit():
            raise NotFound(f'"{name}" names no trial: they are called EXPERIMENT-7', "NOT_FOUND")
        return self._get(experiment, namespace).trial(int(number))

    def _has_condition(
        self, name: str, namespace: Optional[str], experiment: Optional[Record], kind: str
    ) -> bool:
        conditions = self.get_experiment_conditions(name, namespace, experiment)
        return any(c.type == kind and c.status == "True" for c in conditions)


def _check(objective_metric_name: Optional[str], packages_to_install: Optional[List[str]]) -> None:
    if not objective_metric_name:
        raise ValueError("tune() needs objective_metric_name=, the metric that objective prints")
    if packages_to_install:
        raise ValueError(
            "packages_to_install: trials do not install packages; put "
            f"{', '.join(packages_to_install)} into the image, or into the server's Python"
        )


def _suggestion(experiment: Experiment) -> Record:
    trials = experiment.trials()
    return Record(
        {
            "apiVersion": "kubeflow.org/v1beta1",
            "kind": "Suggestion",
            "metadata": {"name": experiment.name, "namespace": experiment.namespace},
            "spec": {"algorithm": experiment.spec["algorithm"], "requests": len(trials)},
            "status": {
                "suggestionCount": len(trials),
                "suggestions": [
                    {
                        "name": trial.name,
                        "parameterAssignments": trial.raw["spec"]["parameterAssignments"],
                    }
                    for trial in trials
                ],
            },
        }
    )
