"""One search in a storage folder: an experiment of the child that this process asks and tells."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, Optional, Tuple

from shirabe_client.errors import Conflict, Denied, Invalid, NotFound, WaitTimeout

from . import child
from .asked import Asked, Ended, Found
from .connection import Connection
from .outcome import FAILED, INFEASIBLE, OPEN, STOPPED, VALUE, Outcome
from .problem import Problem, check_same, in_words
from .result import TrialResult
from .slot import Slot, abandoned, take
from .texts import storable
from .trial import Trial, TrialSeed

__all__ = ["Asked", "Ended", "Found", "Study"]

Json = Dict[str, Any]

_API = "/api/v1/namespaces/default/experiments"
_INFEASIBLE = "infeasible: "  # begins the message of a trial that failed on purpose
_WAIT = 0.25  # seconds that the child may take to answer with a point; then Ctrl-C is looked for
_FIRST_PAUSE, _LAST_PAUSE = 0.001, 0.01  # seconds between two looks where it has none for now
_LOOKS = 1.0  # seconds until those of workers that have died are looked for, and it is asked less
_REST = 0.2  # seconds between two looks then
_STATES = {
    "Succeeded": VALUE,
    "EarlyStopped": STOPPED,
    "Killed": STOPPED,
    "Running": OPEN,
    "Pending": OPEN,
}
_STOPPED_BY = {
    "ExperimentEnded": "the search ended before this trial did",
    "KilledByUser": "stopped by a user",
    "StoppedByUser": "stopped by a user",
}


class Study:
    """Thread-safe. close() it: the child ends with its last user."""

    def __init__(
        self, folder: Path, name: str, binary: Optional[str], memory: bool = False
    ) -> None:
        self.name = name
        self.child = child.use(folder, binary, memory)
        self.folder = self.child.folder
        self._path = f"{_API}/{name}"
        self._trials = str(self.folder / "trials" / "default" / name)
        self._connection = Connection(self.child)
        self.problem: Optional[Problem] = None
        self._names: FrozenSet[str] = frozenset()  # of the metrics that are declared
        self.reason = ""  # why there are no more trials
        self._asked_by: Dict[int, Slot] = {}  # of the trials that are open here
        self._lock = threading.Lock()
        self._left: List[Path] = []  # names of workers that may have died
        self._searched = -_LOOKS  # when they were listed, by the monotonic clock

    def close(self) -> None:
        self._connection.close_all()
        child.release(self.child)

    # ---- the experiment ------------------------------------------------------------------------

    def stored(self) -> Optional[Json]:
        """The experiment as it is stored; None if there is none."""
        try:
            found: Json = self._connection.call("GET", self._path)
            return found
        except NotFound:
            return None

    def open(self, problem: Problem, begun_alike: bool = True) -> int:
        """Creates it, or goes on with what is stored: trials that are there already. ValueError in
        the words of the caller: what is wrong, or where it differs from what is stored (in first
        and seed only with begun_alike), or that it is over."""
        self.problem = problem
        self._names = frozenset(problem.declared())
        stored = self.stored()
        if stored is None:
            try:
                body = {"metadata": {"name": self.name}, "spec": problem.spec()}
                head = {"apiVersion": "kubeflow.org/v1beta1", "kind": "Experiment"}
                self._connection.call("POST", _API, {**head, **body})
                return 0
            except Conflict:  # another process was quicker
                stored = self.stored()
            except Invalid as error:
                raise ValueError(in_words(error, problem)) from None
        assert stored is not None
        check_same(self.name, stored["spec"], problem, begun_alike)
        self._fit_counts(stored, problem)
        return int(stored.get("status", {}).get("trials", 0))

    def _fit_counts(self, stored: Json, problem: Problem) -> None:
        """More trials than at first, other workers; and room for those that were left running."""
        status, spec = stored.get("status", {}), stored["spec"]
        trials, now = problem.trials, spec.get("maxTrialCount")
        held = [c for c in status.get("conditions", []) if c["status"] == "True"]
        ended = [c["message"] for c in held if c["type"] in ("Succeeded", "Failed")]
        if ended and (trials is None or (now is not None and trials <= now)):
            return
        parallel = problem.parallel + int(status.get("trialsRunning", 0))
        counts = {"parallelTrialCount": parallel}
        if trials is not None:
            counts = {"parallelTrialCount": min(parallel, trials), "maxTrialCount": trials}
        try:
            self._connection.call("POST", self._path + ":scale", counts)
        except Conflict:
            if not ended:
                raise
            raise ValueError(
                f"trials={trials}: name={self.name!r} is over, and takes no more than the "
                f"trials={now} it was called with: {ended[0]}. Give this one another name"
            ) from None
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            found = self.stored() or stored
            if all(found["spec"].get(name) == count for name, count in counts.items()):
                return
            time.sleep(0.005)

    def delete(self) -> None:
        """Ends it, and removes its records and its files."""
        self._connection.call("DELETE", f"{self._path}?waitSeconds=60")

    # ---- asking and telling --------------------------------------------------------------------

    def slots(self, count: int) -> List[Slot]:
        """So many names for workers, the first that are free."""
        return take(self._workers(), count)

    def _workers(self) -> Path:
        return self.folder / "workers" / self.name

    def look(self, slot: Slot, wait: float = 0.0) -> Found:
        """The slot's trial; why there is none; None while it is being thought of.
        wait: seconds that the child may take for the answer."""
        body = {"caller": slot.name, "waitSeconds": wait}
        slot.busy = True  # also where nothing comes: the child may make the trial later
        try:
            reply = self._connection.call("POST", self._path + ":ask", body)
        except WaitTimeout:
            return None
        return self._found(reply, slot)

    def _found(self, reply: Json, slot: Slot) -> Found:
        if reply.get("trial"):
            status = reply["trial"]["status"]["shirabe"]
            assert self.problem
            self._asked_by[int(status["number"])] = slot
            params = {
                name: self.problem.space[name].decode(value)
                for name, value in reply["parameters"].items()
            }
            return Asked(
                int(status["number"]),
                {name: params[name] for name in self.problem.space},
                int(reply["attempt"]),
                reply["token"],
                int(status.get("lastStep", 0)),
            )
        if reply.get("ended"):
            slot.busy = False
            self.reason = str(reply.get("reason", "")).replace("the experiment has ended: ", "", 1)
            return Ended(self.reason)
        return None

    def ask(self, slot: Slot, give_up: Callable[[], bool]) -> Found:
        """As look, until there is an answer; None once give_up() says so. The child answers when
        there is a point; at once where there can be none before another trial has ended."""
        began = time.monotonic()
        pause = _FIRST_PAUSE
        while not give_up():
            asked_at = time.monotonic()
            often = asked_at - began < _LOOKS
            found = self.look(slot, _WAIT if often else 4 * _WAIT)
            if found is None and not often:
                found = self.take_over()
            if found is not None:
                return found
            if time.monotonic() - asked_at < _WAIT:
                time.sleep(pause if often else _REST)
                pause = min(2 * pause, _LAST_PAUSE)
        return None

    def take_over(self) -> Optional[Asked]:
        """A trial of a worker that has died, maybe of another process: without it the search would
        never end."""
        for path in self._abandoned():
            try:
                slot = Slot(path)
            except OSError:  # its worker lives
                continue
            found = self.look(slot)
            if isinstance(found, Asked):
                return found._replace(left_behind=slot)
            slot.free()
        return None

    def _abandoned(self) -> Iterator[Path]:
        """Each once in a second, whichever of the workers of this process looks."""
        while True:
            with self._lock:
                if time.monotonic() - self._searched >= _LOOKS:
                    self._searched = time.monotonic()
                    self._left = abandoned(self._workers())
                if not self._left:
                    return
                path = self._left.pop(0)
            yield path

    def report(self, asked: Asked, step: int, metrics: Mapping[str, float]) -> Optional[str]:
        """Stores those metrics that are declared. Why the trial should end, or None."""
        declared = self._declared(metrics)
        if not declared:
            return None
        try:
            return self._tell(asked, {"metrics": declared, "step": step}).get("stop") or None
        except Denied:  # it has been ended from elsewhere
            return "it was ended meanwhile"

    def tell(
        self,
        asked: Asked,
        outcome: Outcome,
        trial: Optional[Trial] = None,
        next_for: Optional[Slot] = None,
    ) -> Found:
        """Ends the trial; not one that is stopped, which has ended, or open. What is stored when it
        returns stays. Notes of the trial are kept in its folder, as are the last values of metrics
        that are not declared; its result comes after what it has reported. One that was ended from
        elsewhere meanwhile stays so, and its stop_reason is set. next_for: asks for this slot's
        next trial by the same request, and gives it if it is there already."""
        self._keep_notes(asked, outcome, trial)
        if outcome.kind == OPEN:
            return None
        if outcome.kind == STOPPED:
            self._ended(asked)
            return None
        reason = storable(outcome.reason)
        body: Json = {"end": "failed", "message": reason}
        if outcome.kind == VALUE:
            body = {"end": "completed", "metrics": self._declared(outcome.metrics)}
            if trial and trial.last_step and body["metrics"]:
                body["step"] = trial.last_step + 1
        elif outcome.kind == INFEASIBLE:
            body["message"] = _INFEASIBLE + reason
        if next_for:
            body["nextFor"] = next_for.name
        try:
            reply = self._tell(asked, body)
        except (Conflict, Denied):
            reply = {"stop": "it was ended meanwhile"}
        if trial and reply.get("stop"):
            trial.stop_reason = str(reply["stop"])
        self._ended(asked)
        if next_for is None:
            return None
        next_for.busy = True  # also where it has none yet: see look
        return self._found(reply.get("next") or {}, next_for)

    def _keep_notes(self, asked: Asked, outcome: Outcome, trial: Optional[Trial]) -> None:
        path = self._notes(asked.number)
        notes = trial.notes if trial else {}
        told = {**(trial.reported if trial else {}), **outcome.metrics}
        others = {n: v for n, v in told.items() if n not in self._names}
        if notes or others:
            stored = _read(path)  # of an attempt that was interrupted
            metrics = {**stored.get("metrics", {}), **_json_safe(others)}
            notes = {**stored, **notes, **({"metrics": metrics} if metrics else {})}
            _write(path, json.dumps(notes))
        if outcome.trace:
            _write(path.with_name("traceback.txt"), storable(outcome.trace))

    def _ended(self, asked: Asked) -> None:
        slot = self._asked_by.pop(asked.number, None)
        if slot:
            slot.busy = False

    def seed(self, asked: Asked) -> TrialSeed:
        name = f"{self.name}-{asked.number}"
        folder = f"{self._trials}/{name}/output"
        return TrialSeed(name, asked.number, asked.params, folder, asked.last_step)

    def _tell(self, asked: Asked, body: Json) -> Json:
        body = {**body, "attempt": asked.attempt, "token": asked.token}
        reply = self._connection.call("POST", f"{self._path}/trials/{asked.number}:tell", body)
        return reply or {}

    def _declared(self, metrics: Mapping[str, float]) -> Json:
        return _json_safe({n: v for n, v in metrics.items() if n in self._names})

    # ---- results -------------------------------------------------------------------------------

    def results(self) -> List[TrialResult]:
        """All trials that are stored, in their order."""
        return [self._result(raw) for raw in self._connection.pages(self._path + "/trials")]

    def _result(self, raw: Json) -> TrialResult:
        assert self.problem
        status = raw["status"]["shirabe"]
        held = [c for c in raw["status"].get("conditions", []) if c["status"] == "True"]
        state = _STATES.get(status["phase"], FAILED)
        reason = "" if state in (VALUE, OPEN) or not held else str(held[-1]["message"])
        if state == STOPPED and held:
            reason = _STOPPED_BY.get(held[-1]["reason"], reason)
        if state == FAILED and reason.startswith(_INFEASIBLE):
            state, reason = INFEASIBLE, reason[len(_INFEASIBLE) :]
        observed = raw["status"].get("observation", {}).get("metrics", [])
        if state == VALUE and status.get("infeasible"):  # told by others, without all metrics
            state, reason = INFEASIBLE, str(held[-1]["message"]) if held else ""
        notes = _read(self._notes(int(status["number"])))
        values, broken = self._measured(state, status)
        return TrialResult(
            number=int(status["number"]),
            state=state,
            params={
                a["name"]: self.problem.space[a["name"]].decode(a["value"])
                for a in raw["spec"]["parameterAssignments"]
            },
            value=values.get(self.problem.result.first.name),
            metrics={
                **{m["name"]: float(m["latest"]) for m in observed if _is_number(m["latest"])},
                **{name: float(value) for name, value in notes.get("metrics", {}).items()},
            },
            seconds=float(status.get("seconds", 0)),
            reason=reason,
            chosen=str(status.get("explanation", "")),
            folder=self._notes(int(status["number"])).parent,
            notes=notes,
            values=values,
            broken=broken,
        )

    def _measured(self, state: str, status: Json) -> Tuple[Dict[str, float], Dict[str, float]]:
        """The values of the objectives, and by how much constraints are broken."""
        assert self.problem
        if state not in (VALUE, STOPPED) or status.get("infeasible"):
            return {}, {}
        if self.problem.result.several:
            told = status.get("objectives", [])
            values = {o["metricName"]: float(o["value"]) for o in told if "value" in o}
        else:
            value = status.get("objective")
            values = {} if value is None else {self.problem.result.first.name: float(value)}
        held = {c["metricName"]: float(c.get("brokenBy", 0)) for c in status.get("constraints", [])}
        return values, {name: by for name, by in held.items() if by > 0}

    def hypervolume(self, size: int) -> Tuple[Optional[float], Dict[str, float]]:
        """Of a front of so many trials, and from where it is measured; None where the program does
        not tell it, and of a front that another process has changed since. The program stores a
        trial's end and the front at once."""
        assert self.problem
        status = (self.stored() or {}).get("status", {})
        front = status.get("shirabe", {}).get("front", {})
        if int(front.get("size", 0)) != size or "hypervolume" not in front:
            return None, {}
        reference = map(float, front["reference"])
        named = dict(zip(self.problem.result.directions, reference))
        return float(front["hypervolume"]), named

    def _notes(self, number: int) -> Path:
        return Path(f"{self._trials}/{self.name}-{number}/output/notes.json")


def _json_safe(metrics: Mapping[str, float]) -> Json:
    """JSON has no NaN: what it lacks travels as text."""
    return {n: v if v - v == 0 else str(v) for n, v in metrics.items()}


def _is_number(text: str) -> bool:
    try:
        float(text)
        return True
    except ValueError:  # Katib's word for a metric that was never seen
        return False


def _read(path: Path) -> Json:
    try:
        found = json.loads(path.read_text("utf-8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".tmp")
    beside.write_text(text, "utf-8")
    beside.replace(path)
