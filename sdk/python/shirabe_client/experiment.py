"""An experiment of a server: its state and its trials, and what can be asked of it."""

from __future__ import annotations

import importlib
import os
import socket
import time
from getpass import getuser
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Union,
)

from . import replies
from .arguments import mapping, seconds, whole
from .errors import EndedOtherwise, WaitTimeout
from .front import choose
from .trial import Json, Trial, Value, annotation

if TYPE_CHECKING:
    from .client import Client

_ENDED = ("Succeeded", "Failed")
_FIRST_LOOK, _LAST_LOOK = 0.1, 2.0  # seconds between two looks of wait() and ask()


class Best(NamedTuple):
    """The best trial so far: its name, the value of the objective, at which step, its point."""

    trial: str
    value: float
    step: int
    parameters: Dict[str, Value]


class FrontPoint(NamedTuple):
    """A trial of the front: its name, {metric: value} of all objectives, its point."""

    trial: str
    values: Dict[str, float]
    parameters: Dict[str, Value]


class Change(NamedTuple):
    """Something has changed: kind is experiment, trial, attempt or deleted."""

    kind: str
    namespace: str
    experiment: str
    trial: Optional[str]
    revision: int


class Experiment:
    """An experiment as the server last described it in `raw`, shaped as Katib's objects are."""

    def __init__(self, client: Client, raw: Json) -> None:
        self.client, self.raw = client, raw
        self.reason = ""  # why the last ask() had no trial, in the server's words

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
        """Name of the metric that is optimised; of several objectives the first."""
        return str(self.spec["objective"]["objectiveMetricName"])

    @property
    def objectives(self) -> Dict[str, str]:
        """{metric: "minimize" or "maximize"} of all objectives, in the specification's order."""
        more: List[replies.AdditionalObjective] = self._extra.get("additionalObjectives", [])
        first = {self.objective: str(self.spec["objective"]["type"])}
        return {**first, **{o["metricName"]: o["type"] for o in more}}

    @property
    def constraints(self) -> List[replies.ResultConstraint]:
        """What results must keep, each {metricName, min, max}."""
        return list(self._extra.get("constraints", []))

    @property
    def _extra(self) -> Json:
        extra: Json = self.spec.get("shirabe") or {}
        return extra

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

    @property
    def front(self) -> List[FrontPoint]:
        """With several objectives: the trials that no other dominates, of those that keep all
        constraints, the best in the first objective first; the server names 100 at most, and
        `front_size` says how many they are."""
        found = [
            FrontPoint(
                item["trialName"],
                dict(zip(self.objectives, map(float, item.get("values", [])))),
                self.typed(item.get("parameterAssignments", [])),
            )
            for item in self._front.get("trials", [])
        ]
        return found

    @property
    def front_size(self) -> int:
        return self._front.get("size", 0)

    @property
    def hypervolume(self) -> Optional[float]:
        """The volume that the front dominates, up to `reference`; None without a front, and where
        the server leaves it out, as it would take too long."""
        volume = self._front.get("hypervolume")
        return None if volume is None else float(volume)

    @property
    def reference(self) -> Dict[str, float]:
        """{metric: value} from where the hypervolume is measured: as specified, or the worst result
        so far."""
        return dict(zip(self.objectives, map(float, self._front.get("reference", []))))

    def best_by(
        self,
        weights: Optional[Mapping[str, float]] = None,
        order: Optional[Sequence[str]] = None,
    ) -> FrontPoint:
        """The one trial of `front` that `shirabe best` chooses with the same options.

        weights: {metric: weight}: the least weighted sum of the objectives, each as a part of its
            range on the front. order: metrics: the best in the first; the next ones decide ties.
        ValueError: an argument is wrong, or there is no front.
        """
        front = self.front
        if not front:
            raise ValueError(f"{self.name} has no front: it has one objective, or no result yet")
        return front[choose([point.values for point in front], self.objectives, weights, order)]

    @property
    def _front(self) -> replies.ResultFront:
        front: replies.ResultFront = self.status.get("shirabe", {}).get("front", {})
        return front

    def refresh(self) -> Experiment:
        """Asks the server again; the same object."""
        self.raw = self.client.transport.call("GET", self._path())
        return self

    def wait(self, until: str = "completed", timeout: Optional[float] = None) -> Experiment:
        """Returns once it is succeeded, completed (ended in whatever way) or running.

        timeout: seconds; None waits for ever. WaitTimeout after it; EndedOtherwise, which is one,
        at once if an experiment that was to succeed has failed.
        """
        if until not in ("succeeded", "completed", "running"):
            raise ValueError(f'until="{until}" is none of succeeded, completed and running')
        deadline = None if timeout is None else time.monotonic() + seconds("timeout", timeout)
        pause = _FIRST_LOOK
        while True:
            state = self.refresh().state
            if self.ended and (until != "succeeded" or state == "Succeeded"):
                return self
            if until == "running" and state == "Running":
                return self
            if self.ended:
                raise EndedOtherwise(f"{self.name} has ended {state}: it will never be {until}")
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
        ranges: Optional[Mapping[str, Mapping[str, Any]]] = None,
    ) -> None:
        """Changes the counts, also while it runs; None leaves one as it is.

        ranges: parameters whose range gets wider or narrower, each with what changes of its
        feasibleSpace: {"lr": {"max": 0.5}, "optimizer": {"list": ["sgd", "adam"]}}. Trials that
        lie outside then are kept as results; the algorithm learns from the others.
        """
        counts = {
            "parallelTrialCount": parallel,
            "maxTrialCount": max_trials,
            "maxFailedTrialCount": max_failed,
        }
        body: Json = {name: count for name, count in counts.items() if count is not None}
        if ranges:
            body["parameters"] = [
                {"name": name, "feasibleSpace": dict(space)} for name, space in ranges.items()
            ]
        self._send("scale", body)

    def try_point(
        self, parameters: Mapping[str, Value], like: Union[int, Trial, None] = None
    ) -> None:
        """Makes a trial with these values, before those that the algorithm proposes.

        like: the trial that has the values of the other parameters; None draws them at random.
        """
        body: Json = {"parameters": mapping("parameters", parameters, "{name: value}")}
        if like is not None:
            body["like"] = like.number if isinstance(like, Trial) else whole("like", like)
        self._send("try", body, idempotent=False)

    @property
    def note(self) -> str:
        return str(self.status.get("shirabe", {}).get("note", ""))

    @property
    def tags(self) -> List[str]:
        return list(self.status.get("shirabe", {}).get("tags", []))

    def annotate(
        self,
        note: Optional[str] = None,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
    ) -> None:
        """note: in place of the one that is there, "" removes it; None leaves it as it is."""
        self._send("annotate", annotation(note, add_tags, remove_tags))

    def trials(self, filter: Optional[str] = None, sort: Optional[str] = None) -> List[Trial]:
        """filter: 'state=Failed,param.lr<1e-3'; sort: a field, '~objective' for descending."""
        items = self.client.pages(self._path() + "/trials", filter=filter, sort=sort)
        return [Trial(self, item) for item in items]

    def trial(self, number: int) -> Trial:
        return Trial(self, self.client.transport.call("GET", f"{self._path()}/trials/{number}"))

    def ask(self, caller: Optional[str] = None, wait: float = 20.0) -> Optional[Trial]:
        """The next trial for the caller to run, with spec.shirabe.askAndTell; None once the
        experiment has ended: `reason` is why.

        caller: one name a worker (default: user, host and process). Who asks again is given the
            same trial until it has been told, so that nothing is lost with an answer.
        wait: seconds for one request, which the server uses while a point may come; where none can
            (all trials are given out) it is asked again after a pause of up to 2 s.
        """
        caller = caller or f"{getuser()}@{socket.gethostname()}-{os.getpid()}"
        wait = min(max(seconds("wait", wait), 0.0), 60.0)
        body, pause = {"caller": caller, "waitSeconds": wait}, _FIRST_LOOK if wait else 1.0
        while True:
            reply: replies.Asked = self.client.transport.call(
                "POST", self._path() + ":ask", body, timeout=wait + 20, idempotent=True
            )
            self.reason = str(reply.get("reason", ""))
            if reply.get("trial"):
                return Trial(self, reply["trial"], reply["parameters"], reply["token"])
            if reply["ended"]:
                return None
            time.sleep(pause)
            pause = min(2 * pause, _LAST_LOOK, wait or pause)

    def suggest(self, count: int = 5) -> List[Dict[str, Value]]:
        """The points that would be tried next. Nothing is stored."""
        reply: replies.Candidates = self.client.transport.call(
            "GET", self._path() + "/suggestions", query={"count": count}
        )
        return [self.typed(item["parameterAssignments"]) for item in reply["items"]]

    def importance(self, method: str = "gp") -> Json:
        """How much each parameter matters: {basis, method, parameters: [{parameter, total,
        firstOrder, verdict}, …]}, the most important first, each share with its band of 90 %.
        method "ped" asks what separates the best tenth of the trials: {parameter, share}."""
        return self._analysis("importance", method=method)

    def ablation(self, start: Optional[int] = None, end: Optional[int] = None) -> Json:
        """What brought the gain from trial `start` (the median one) to trial `end` (the best one):
        {basis, fromTrial, toTrial, steps: [{parameter, fromValue, toValue, gain}, …]}."""
        query = {"from": start, "to": end}
        return self._analysis("ablation", **{k: v for k, v in query.items() if v is not None})

    def partial_dependence(self, parameter: str, other: Optional[str] = None) -> Json:
        """The objective by a parameter, or by two, averaged over all others: {basis, axes, mean,
        low, high}; of two parameters the second varies fastest."""
        query = {"parameter": parameter}
        if other is not None:
            query["with"] = other
        return self._analysis("partial-dependence", **query)

    def events(self) -> List[replies.Event]:
        """What happened, oldest first, each {type, reason, message, trial, time, …}."""
        return list(self.client.pages(self._path() + "/events"))

    def watch(self, after: Optional[int] = None) -> Iterator[Change]:
        """As Client.watch, of this experiment."""
        return self.client.watch(f"{self.namespace}/{self.name}", after)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row a trial: trial, state, objective, step, seconds, cost, and
        param.NAME, metric.NAME and broken.NAME for each parameter, metric and constraint.
        ImportError without pandas."""
        pandas: Any = importlib.import_module("pandas")
        return pandas.DataFrame([trial.row() for trial in self.trials()])

    def typed(self, assignments: Iterable[Mapping[str, Any]]) -> Dict[str, Value]:
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

    def _send(self, verb: str, body: Optional[Json] = None, idempotent: bool = True) -> None:
        path = f"{self._path()}:{verb}"
        self.client.transport.call("POST", path, body, idempotent=idempotent)

    def _analysis(self, kind: str, **query: Any) -> Json:
        reply: Json = self.client.transport.call("GET", f"{self._path()}/{kind}", query=query)
        return reply

    def _path(self) -> str:
        return self.client.path(f"{self.namespace}/{self.name}")


def _typed(kind: str, text: str) -> Value:
    if kind == "int":
        return int(text)
    if kind in ("double", "discrete"):
        number = float(text)
        return int(number) if kind == "discrete" and text.lstrip("-").isdigit() else number
    return text
