"""One trial of an experiment: what it is, what it has reported, and telling about it."""

from __future__ import annotations

import warnings
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Union,
)

from . import replies
from .arguments import texts, whole
from .transport import Transport

if TYPE_CHECKING:
    from .experiment import Experiment

Json = Dict[str, Any]
Value = Union[float, int, str]

_TERMINAL = ("Succeeded", "Killed", "Failed", "MetricsUnavailable", "EarlyStopped")


class Observation(NamedTuple):
    """A value of a metric at a step. `superseded`: a later attempt has run the step again;
    `implicit_step`: the step was counted, not reported."""

    metric: str
    step: int
    value: float
    attempt: int
    time: str
    superseded: bool = False
    implicit_step: bool = False


def annotation(
    note: Optional[str], add_tags: Sequence[str], remove_tags: Sequence[str]
) -> Json:
    """The body of an annotate request."""
    body: Json = {
        "addTags": texts("add_tags", add_tags),
        "removeTags": texts("remove_tags", remove_tags),
    }
    if note is not None:
        body["note"] = note
    return body


class Trial:
    """One point of the search space, tried once. `parameters` are numbers and text."""

    def __init__(
        self,
        experiment: Experiment,
        raw: replies.Trial,
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

    @property
    def objectives(self) -> Dict[str, float]:
        """{metric: value} of the objectives that it has a value of so far."""
        told = self.raw["status"]["shirabe"].get("objectives", [])
        if not told and self.objective is not None:
            return {self.experiment.objective: self.objective}
        return {o["metricName"]: float(o["value"]) for o in told if "value" in o}

    @property
    def constraints(self) -> List[replies.ConstraintResult]:
        """What became of each constraint so far: {metricName, min, max, value, brokenBy}."""
        return list(self.raw["status"]["shirabe"].get("constraints", []))

    @property
    def broken(self) -> Dict[str, float]:
        """{metric: how far it is outside} of the constraints that it does not keep."""
        by = {c["metricName"]: float(c.get("brokenBy", 0)) for c in self.constraints}
        return {metric: amount for metric, amount in by.items() if amount > 0}

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
            body["step"] = step = whole("step", step)
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

        Telling the same again changes nothing; another result is a Conflict. Of a trial that was
        stopped before, no result but the last one reported counts: a UserWarning says so.
        """
        if value is not None:
            metrics = {self.experiment.objective: value, **metrics}
        body: Json = {"end": "failed" if failed else "completed", "metrics": _numbers(metrics)}
        if step is None and self._last_step and not self.ended:
            step = self._last_step + 1
        if step is not None:
            body["step"] = whole("step", step)
        if message:
            body["message"] = message
        self._tell(body)
        return self.refresh()

    def retry(self) -> None:
        """Makes a new trial with the same point."""
        self._transport.call("POST", self._path() + ":retry", idempotent=False)

    def stop(self) -> None:
        """Ends it early; its best value counts."""
        self._transport.call("POST", self._path() + ":stop", idempotent=False)

    @property
    def note(self) -> str:
        return str(self.raw["status"]["shirabe"].get("note", ""))

    @property
    def tags(self) -> List[str]:
        return list(self.raw["status"]["shirabe"].get("tags", []))

    def annotate(
        self,
        note: Optional[str] = None,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
    ) -> None:
        """note: in place of the one that is there, "" removes it; None leaves it as it is."""
        body = annotation(note, add_tags, remove_tags)
        self._transport.call("POST", self._path() + ":annotate", body, idempotent=True)

    def observations(
        self, metric: Optional[str] = None, all_attempts: bool = False
    ) -> List[Observation]:
        """By attempt, step and metric. all_attempts: also what a later attempt has run again."""
        items: Iterator[replies.ObservationView] = self.experiment.client.pages(
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
                i.get("implicitStep", False),
            )
            for i in items
        ]

    def attempts(self) -> List[replies.Attempt]:
        """The executions of the trial: where, how long, why each ended, what it cost."""
        return list(self.experiment.client.pages(self._path() + "/attempts"))

    def checkpoints(self) -> List[replies.Checkpoint]:
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
            piece: replies.LogPiece = event.data
            yield piece["text"]

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
            **{f"broken.{metric}": by for metric, by in self.broken.items()},
        }

    def _tell(self, body: Json) -> Optional[str]:
        if self._token:
            body["token"] = self._token
        # Sent again after a lost answer, values with a step count once.
        safe = "step" in body or "end" in body
        reply: replies.Told = self._transport.call(
            "POST", self._path() + ":tell", body, idempotent=safe
        )
        if "end" in body and reply.get("ignored"):
            warnings.warn(
                f"trial {self.name} was stopped before ({reply.get('stop')}): "
                "this result does not count",
                stacklevel=3,
            )
        return reply.get("stop")

    @property
    def _transport(self) -> Transport:
        return self.experiment.client.transport

    def _path(self) -> str:
        owner = self.experiment
        return f"{owner.client.path(f'{owner.namespace}/{owner.name}')}/trials/{self.number}"


def _numbers(metrics: Mapping[str, float]) -> Dict[str, Union[float, str]]:
    """JSON has no NaN: what it lacks travels as text."""
    numbers: Dict[str, Union[float, str]] = {}
    for name, value in metrics.items():
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"metric {name}: {value!r} is not a number") from None
        finite = number - number == 0
        numbers[name] = number if finite else str(number)
    return numbers


def _number_or_none(text: str) -> Optional[float]:
    try:
        return float(text)
    except ValueError:  # Katib's word for a metric that was never seen
        return None
