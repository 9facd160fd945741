"""Experiments of a Shirabe server, from Python.

    from shirabe_client import Client

    client = Client("http://127.0.0.1:7451")
    experiment = client.create(open("experiment.yaml").read())
    while trial := experiment.ask():
        for step in range(100):
            if trial.report(step, loss=train(trial.parameters)):
                break                       # not worth going on
        trial.tell(loss=evaluate())
    print(experiment.best.parameters)

Only the standard library. Objects hold what the server last said (`raw`); `refresh()` asks again.
Errors are those of `shirabe_client.errors`. A client may be shared by threads.
"""

from __future__ import annotations

import importlib
import os
import socket
import time
from getpass import getuser
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Union
from urllib.parse import quote

from .errors import NotFound, ShirabeError, WaitTimeout
from .transport import Transport, find_token

__all__ = ["Best", "Change", "Client", "Experiment", "Observation", "Trial"]

Json = Dict[str, Any]
Value = Union[float, int, str]
Spec = Union[str, Path, Mapping[str, Any]]

_ENDED = ("Succeeded", "Failed")
_TERMINAL = ("Succeeded", "Killed", "Failed", "MetricsUnavailable", "EarlyStopped")
_FIRST_LOOK, _LAST_LOOK = 0.1, 2.0  # seconds between two looks of wait()


class Best(NamedTuple):
    """The best trial so far: its name, the value of the objective, at which step, its point."""

    trial: str
    value: float
    step: int
    parameters: Dict[str, Value]


class Observation(NamedTuple):
    """A value of a metric at a step. `superseded`: a later attempt has run the step again."""

    metric: str
    step: int
    value: float
    attempt: int
    time: str
    superseded: bool = False


class Change(NamedTuple):
    """Something has changed: kind is experiment, trial, attempt or deleted."""

    kind: str
    namespace: str
    experiment: str
    trial: Optional[str]
    revision: int


class Client:
    """A server, and who calls it.

    url: http://HOST:PORT or https://…; default $SHIRABE_URL.
    token, token_file: default $SHIRABE_TOKEN_FILE; for a server of this machine also the file that
        it makes in $SHIRABE_HOME.
    namespace: of names that come without one; default $SHIRABE_NAMESPACE, else "default".
    ca, certificate, key: PEM files, for https.
    timeout: seconds for one request. retry_for: seconds for which a server that has answered before
        may be gone; what cannot be sent twice is not.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        token_file: Optional[str] = None,
        namespace: Optional[str] = None,
        ca: Optional[str] = None,
        certificate: Optional[str] = None,
        key: Optional[str] = None,
        timeout: float = 30.0,
        retry_for: float = 10.0,
    ) -> None:
        url = url or os.environ.get("SHIRABE_URL")
        if not url:
            raise ValueError("no server: give Client(url) or set SHIRABE_URL to http://HOST:PORT")
        self.namespace = namespace or os.environ.get("SHIRABE_NAMESPACE") or "default"
        self.transport = Transport(
            url,
            find_token(token, token_file, url),
            ca=ca,
            certificate=certificate,
            key=key,
            timeout=timeout,
            retry_for=retry_for,
        )

    def create(self, spec: Spec) -> Experiment:
        """A new experiment: YAML or JSON text, a path to it, or the same as a mapping. Conflict if
        there is one of its name, Invalid with every field that is wrong."""
        return Experiment(self, self.transport.call("POST", self._list(), _body(spec)))

    def apply(self, spec: Spec) -> Experiment:
        """Creates the experiment, or changes the counts and the goal of the one that exists.
        Conflict if that is another search."""
        body = _body(spec)
        if isinstance(body, str):
            try:
                return self.create(body)
            except ShirabeError as error:
                if error.code != "ALREADY_EXISTS":
                    raise
            # Only the server reads YAML: it says what the text is called.
            name = _name_in(body)
        else:
            name = str(body.get("metadata", {}).get("name", ""))
        return Experiment(self, self.transport.call("PUT", self.path(name), body))

    def get(self, name: str) -> Experiment:
        """NotFound if there is none."""
        return Experiment(self, self.transport.call("GET", self.path(name)))

    def list(self, filter: Optional[str] = None, sort: Optional[str] = None) -> List[Experiment]:
        """The experiments of the namespace. filter: 'state=Running'; sort: 'age', '~best'."""
        return [
            Experiment(self, item) for item in self.pages(self._list(), filter=filter, sort=sort)
        ]

    def delete(self, name: str, timeout: float = 60.0) -> None:
        """Ends it, waits until nothing of it runs, and removes it. What is not there is fine."""
        try:
            self.transport.call(
                "DELETE",
                self.path(name),
                query={"waitSeconds": int(min(timeout, 300))},
                timeout=timeout + 10,
            )
        except NotFound:
            pass

    def watch(
        self, experiment: Optional[str] = None, after: Optional[int] = None
    ) -> Iterator[Change]:
        """Yields what changes, for ever: of one experiment or of the namespace; from now on, or
        since a revision. A lost connection is taken up again where it was lost."""
        scope = (
            self.path(experiment) if experiment else f"/api/v1/namespaces/{quote(self.namespace)}"
        )
        for event in self.transport.events(scope + "/watch", {"after": after}):
            d = event.data
            yield Change(d["kind"], d["namespace"], d["experiment"], d.get("trial"), d["revision"])

    def validate(self, spec: Spec) -> List[Json]:
        """The findings about an experiment, each {level, field, message, line, column}; nothing is
        stored."""
        reply = self.transport.call("POST", "/api/v1/validate", _body(spec), idempotent=True)
        return list(reply["findings"])

    def algorithms(self) -> List[Json]:
        """The algorithms of the server, each {name, help, settings, …}."""
        return list(self.pages("/api/v1/algorithms"))

    def version(self) -> str:
        return str(self.transport.call("GET", "/version")["version"])

    def pages(self, path: str, **query: Any) -> Iterator[Json]:
        """The items of a list, page by page."""
        token: Optional[str] = None
        while True:
            page = self.transport.call("GET", path, query={**query, "pageToken": token})
            yield from page["items"]
            token = page.get("nextPageToken")
            if not token:
                return

    def path(self, name: str) -> str:
        """Of an experiment, "name" or "namespace/name"."""
        namespace, _, last = name.rpartition("/")
        return f"/api/v1/namespaces/{quote(namespace or self.namespace)}/experiments/{quote(last)}"

    def _list(self) -> str:
        return f"/api/v1/namespaces/{quote(self.namespace)}/experiments"


class Experiment:
    """An experiment as the server last described it in `raw`, shaped as Katib's objects are."""

    def __init__(self, client: Client, raw: Json) -> None:
        self.client = client
        self.raw = raw

    def __repr__(self) -> str:
        return f"<Experiment {self.namespace}/{self.name} {self.state}>"

    @property
    def name(self) -> str:
        return str(self.raw["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.raw["metadata"].get("namespace", "default"))

    @property
    def spec(self) -> Json:
        spec: Json = self.raw["spec"]
        return spec

    @property
    def status(self) -> Json:
        status: Json = self.raw.get("status") or {}
        return status

    @property
    def objective(self) -> str:
        """Name of the metric that is optimised."""
        return str(self.spec["objective"]["objectiveMetricName"])

    @property
    def state(self) -> str:
        """Created, Running, Succeeded or Failed."""
        held = [c["type"] for c in self.status.get("conditions", []) if c["status"] == "True"]
        return str(held[-1]) if held else "Created"

    @property
    def ended(self) -> bool:
        return self.state in _ENDED

    @property
    def best(self) -> Optional[Best]:
        """None while no trial has a value that counts."""
        found = self.status.get("currentOptimalTrial") or {}
        metrics = {m["name"]: m for m in found.get("observation", {}).get("metrics", [])}
        metric = metrics.get(self.objective)
        if not found.get("bestTrialName") or metric is None:
            return None
        which = self._strategy()
        return Best(
            str(found["bestTrialName"]),
            float(metric.get(which, "nan")),
            int(metric.get(which + "Step", 0)),
            self.typed(found.get("parameterAssignments", [])),
        )

    def refresh(self) -> Experiment:
        """Asks the server again; the same object."""
        self.raw = self.client.transport.call("GET", self._path())
        return self

    def wait(self, until: str = "completed", timeout: Optional[float] = None) -> Experiment:
        """Returns once it is succeeded, completed (ended in whatever way) or running.

        timeout: seconds; None waits for ever. WaitTimeout after it, and at once if an experiment
        that was to succeed has failed.
        """
        if until not in ("succeeded", "completed", "running"):
            raise ValueError(f'until="{until}" is none of succeeded, completed and running')
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = _FIRST_LOOK
        while True:
            state = self.refresh().state
            if self.ended and (until != "succeeded" or state == "Succeeded"):
                return self
            if until == "running" and state == "Running":
                return self
            if self.ended:
                raise WaitTimeout(f"{self.name} has ended {state}: it will never be {until}")
            left = pause if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeout(f"{self.name} is {state} after {timeout} s, not yet {until}")
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LAST_LOOK)

    def delete(self, timeout: float = 60.0) -> None:
        self.client.delete(f"{self.namespace}/{self.name}", timeout)

    def pause(self) -> None:
        """Starts no new trials; running ones go on."""
        self._send("pause")

    def resume(self) -> None:
        self._send("resume")

    def stop(self) -> None:
        """Ends it: running trials may save, then stop. Final."""
        self._send("stop")

    def cancel(self) -> None:
        """Ends it and its trials at once. Final."""
        self._send("cancel")

    def scale(
        self,
        parallel: Optional[int] = None,
        max_trials: Optional[int] = None,
        max_failed: Optional[int] = None,
    ) -> None:
        """Changes the counts, also while it runs; None leaves one as it is."""
        counts = {
            "parallelTrialCount": parallel,
            "maxTrialCount": max_trials,
            "maxFailedTrialCount": max_failed,
        }
        self._send("scale", {name: count for name, count in counts.items() if count is not None})

    def trials(self, filter: Optional[str] = None, sort: Optional[str] = None) -> List[Trial]:
        """filter: 'state=Failed,param.lr<1e-3'; sort: a field, '~objective' for descending."""
        items = self.client.pages(self._path() + "/trials", filter=filter, sort=sort)
        return [Trial(self, item) for item in items]

    def trial(self, number: int) -> Trial:
        return Trial(self, self.client.transport.call("GET", f"{self._path()}/trials/{number}"))

    def ask(self, caller: Optional[str] = None, wait: float = 20.0) -> Optional[Trial]:
        """The next trial for the caller to run, with spec.shirabe.askAndTell; None once the
        experiment has ended.

        caller: one name a worker (default: user, host and process). Who asks again is given the
            same trial until it has been told, so that nothing is lost with an answer.
        wait: seconds for one request; asks again until there is a trial, or the end.
        """
        caller = caller or f"{getuser()}@{socket.gethostname()}-{os.getpid()}"
        wait = min(max(wait, 0.0), 60.0)
        while True:
            reply = self.client.transport.call(
                "POST",
                self._path() + ":ask",
                {"caller": caller, "waitSeconds": wait},
                timeout=wait + 20,
                idempotent=True,
            )
            if reply.get("trial"):
                return Trial(self, reply["trial"], reply["parameters"], reply["token"])
            if reply["ended"]:
                return None
            time.sleep(_FIRST_LOOK if wait else 1.0)

    def suggest(self, count: int = 5) -> List[Dict[str, Value]]:
        """The points that would be tried next. Nothing is stored."""
        reply = self.client.transport.call(
            "GET", self._path() + "/suggestions", query={"count": count}
        )
        return [self.typed(item["parameterAssignments"]) for item in reply["items"]]

    def events(self) -> List[Json]:
        """What happened, oldest first, each {type, reason, message, trial, time, …}."""
        return list(self.client.pages(self._path() + "/events"))

    def watch(self, after: Optional[int] = None) -> Iterator[Change]:
        """As Client.watch, of this experiment."""
        return self.client.watch(f"{self.namespace}/{self.name}", after)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row a trial: trial, state, objective, step, seconds, cost, and
        param.NAME and metric.NAME for each parameter and metric. ImportError without pandas."""
        pandas: Any = importlib.import_module("pandas")
        return pandas.DataFrame([trial.row() for trial in self.trials()])

    def typed(self, assignments: List[Json]) -> Dict[str, Value]:
        """Katib's list of {name, value: text} as numbers and text, by the types of the space."""
        kinds = {p["name"]: p.get("parameterType", "") for p in self.spec.get("parameters", [])}
        return {a["name"]: _typed(kinds.get(a["name"], ""), str(a["value"])) for a in assignments}

    def _strategy(self) -> str:
        """min, max or latest: which value of the objective counts."""
        objective = self.spec["objective"]
        for strategy in objective.get("metricStrategies", []):
            if strategy["name"] == self.objective:
                return str(strategy["value"])
        return "max" if objective["type"] == "maximize" else "min"

    def _send(self, verb: str, body: Optional[Json] = None) -> None:
        self.client.transport.call("POST", f"{self._path()}:{verb}", body, idempotent=True)

    def _path(self) -> str:
        return self.client.path(f"{self.namespace}/{self.name}")


class Trial:
    """One point of the search space, tried once. `parameters` are numbers and text."""

    def __init__(
        self,
        experiment: Experiment,
        raw: Json,
        parameters: Optional[Dict[str, Value]] = None,
        token: str = "",
    ) -> None:
        self.experiment = experiment
        self.raw = raw
        self.parameters = parameters or experiment.typed(raw["spec"]["parameterAssignments"])
        self._token = token  # of the attempt that was asked for
        self._last_step = int(raw["status"]["shirabe"].get("lastStep", 0))

    def __repr__(self) -> str:
        return f"<Trial {self.name} {self.phase}>"

    @property
    def name(self) -> str:
        return str(self.raw["metadata"]["name"])

    @property
    def number(self) -> int:
        return int(self.raw["status"]["shirabe"]["number"])

    @property
    def phase(self) -> str:
        """Pending, Running, Succeeded, EarlyStopped, Failed, MetricsUnavailable or Killed."""
        return str(self.raw["status"]["shirabe"]["phase"])

    @property
    def ended(self) -> bool:
        return self.phase in _TERMINAL

    @property
    def objective(self) -> Optional[float]:
        value = self.raw["status"]["shirabe"].get("objective")
        return None if value is None else float(value)

    def refresh(self) -> Trial:
        self.raw = self._transport.call("GET", self._path())
        return self

    def report(self, step: Optional[int] = None, **metrics: float) -> Optional[str]:
        """Values at a step; without one, each metric counts its own. Stored when it returns.

        Returns why the trial should stop now, or None if it may go on. One that should stop has
        ended for the server: it need not be told.
        """
        body: Json = {"metrics": _numbers(metrics)}
        if step is not None:
            body["step"] = step
        stop = self._tell(body)
        self._last_step = self._last_step + 1 if step is None else max(self._last_step, step)
        return stop

    def tell(
        self,
        value: Optional[float] = None,
        *,
        step: Optional[int] = None,
        failed: bool = False,
        message: str = "",
        **metrics: float,
    ) -> Trial:
        """Ends the trial. value: of the objective; other metrics by name. failed: it has no result.
        step: of the result (default: the one after the last that was reported).

        Telling the same again changes nothing; another result is a Conflict.
        """
        if value is not None:
            metrics = {self.experiment.objective: value, **metrics}
        body: Json = {"end": "failed" if failed else "completed", "metrics": _numbers(metrics)}
        if step is None and self._last_step and not self.ended:
            step = self._last_step + 1
        if step is not None:
            body["step"] = step
        if message:
            body["message"] = message
        self._tell(body)
        return self.refresh()

    def retry(self) -> None:
        """Makes a new trial with the same point."""
        self._transport.call("POST", self._path() + ":retry", idempotent=False)

    def observations(
        self, metric: Optional[str] = None, all_attempts: bool = False
    ) -> List[Observation]:
        """By attempt, step and metric. all_attempts: also what a later attempt has run again."""
        items = self.experiment.client.pages(
            self._path() + "/observations", metric=metric, allAttempts=all_attempts or None
        )
        return [
            Observation(
                i["metric"],
                i["step"],
                float(i["value"]),
                i["attempt"],
                i.get("time", ""),
                i.get("superseded", False),
            )
            for i in items
        ]

    def attempts(self) -> List[Json]:
        """The executions of the trial: where, how long, why each ended, what it cost."""
        return list(self.experiment.client.pages(self._path() + "/attempts"))

    def checkpoints(self) -> List[Json]:
        return list(self.experiment.client.pages(self._path() + "/checkpoints"))

    def logs(self, follow: bool = False, attempt: Optional[int] = None) -> Iterator[str]:
        """What the newest (or a given) attempt has printed, in pieces of whole lines; with follow
        until it has ended. Nothing if no attempt has begun."""
        number = attempt or self.refresh().raw["status"]["shirabe"].get("attempts", 0)
        if not number:
            return
        path = f"{self._path()}/attempts/{number}/log"
        if not follow:
            text = self._transport.call("GET", path)
            if text:
                yield str(text)
            return
        for event in self._transport.events(path, {"follow": True}):
            yield str(event.data["text"])

    def row(self) -> Dict[str, Any]:
        """What to_pandas() makes a row of."""
        status = self.raw["status"]["shirabe"]
        metrics = self.raw["status"].get("observation", {}).get("metrics", [])
        return {
            "trial": self.number,
            "state": self.phase,
            "objective": self.objective,
            "step": status.get("step"),
            "seconds": status.get("seconds", 0),
            "cost": status.get("cost", 0),
            **{f"param.{name}": value for name, value in self.parameters.items()},
            **{f"metric.{m['name']}": _number_or_none(m["latest"]) for m in metrics},
        }

    def _tell(self, body: Json) -> Optional[str]:
        if self._token:
            body["token"] = self._token
        # Sent again after a lost answer, values with a step count once.
        safe = "step" in body or "end" in body
        reply = self._transport.call("POST", self._path() + ":tell", body, idempotent=safe)
        stop = (reply or {}).get("stop")
        return str(stop) if stop else None

    @property
    def _transport(self) -> Transport:
        return self.experiment.client.transport

    def _path(self) -> str:
        owner = self.experiment
        return f"{owner.client.path(f'{owner.namespace}/{owner.name}')}/trials/{self.number}"


def _typed(kind: str, text: str) -> Value:
    if kind == "int":
        return int(text)
    if kind in ("double", "discrete"):
        number = float(text)
        return int(number) if kind == "discrete" and text.lstrip("-").isdigit() else number
    return text


def _numbers(metrics: Mapping[str, float]) -> Dict[str, Union[float, str]]:
    """JSON has no NaN: what it lacks travels as text."""
    numbers: Dict[str, Union[float, str]] = {}
    for name, value in metrics.items():
        number = float(value)
        finite = number - number == 0
        numbers[name] = number if finite else str(number)
    return numbers


def _number_or_none(text: str) -> Optional[float]:
    try:
        return float(text)
    except ValueError:  # Katib's word for a metric that was never seen
        return None


def _body(spec: Spec) -> Any:
    if isinstance(spec, Path):
        return spec.read_text("utf-8")
    return spec if isinstance(spec, str) else dict(spec)


def _name_in(yaml: str) -> str:
    """metadata.name of a YAML text in block or flow style."""
    inside = False
    for line in yaml.splitlines():
        if line.startswith("metadata:"):
            inside, line = True, line[len("metadata:") :]
        elif inside and line[:1].strip():
            break
        for part in line.strip(" {}").split(",") if inside else []:
            key, _, value = part.strip().partition(":")
            if key.strip("\"' ") == "name":
                return value.split(" #")[0].strip("\"' ")
    raise ValueError("metadata.name is not to be found: give apply() a mapping")
