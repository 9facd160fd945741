"""How a study that learns its space from its first trial is kept by Shirabe, which knows the space
from the beginning: the first trials wait until one has ended well, and then begin the search."""

from __future__ import annotations

import atexit
import datetime
import hashlib
import json
import math
import os
import random
import re
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ... import child
from ...objectives import ResultSpec
from ...outcome import FAILED, STOPPED, VALUE, Outcome
from ...problem import Problem
from ...result import TrialResult
from ...runner import Conductor, Limits, StudyLink
from ...progress import Progress
from ...slot import Slot
from ...study import Asked
from ...study import Study as CoreStudy
from ...texts import storable
from ...trial import Trial as CoreTrial
from ...tuning import variant
from .distributions import CategoricalDistribution, Distribution, from_json, of, to_json
from .exceptions import NotSupported
from .pruners import BasePruner, MedianPruner
from .results import constraint_name, result_spec, value_names
from .samplers import BaseSampler
from .trial import FrozenTrial, Trial, TrialState, draw

__all__ = ["Engine", "folder_of", "key_of", "meta_path"]

PRUNED = "pruned by the objective"
_MOST_AT_ONCE = 1000  # trials that are asked for and not told
_memory: List[Path] = []  # the folder of all studies without a storage


def folder_of(storage: Any) -> Path:
    """Where a study lies: a folder, or one beside the file of a sqlite:/// address; without a
    storage, one that goes with this process."""
    if storage is None:
        if not _memory:
            _memory.append(Path(tempfile.mkdtemp(prefix="shirabe-")))
            atexit.register(_remove, _memory[0], os.getpid())
        return _memory[0]
    if not isinstance(storage, (str, os.PathLike)):
        raise NotSupported(f"storage={storage!r}: give a folder, or a sqlite:/// address")
    text = os.fspath(storage)
    if text.startswith("sqlite:///"):
        path = Path(text[len("sqlite:///") :])
        return path.with_name(path.name + ".shirabe")
    if "://" in text:
        raise NotSupported(
            f"storage={text!r}: studies lie in a folder here; for many machines run `shirabe serve "
            "--db postgres://…` and use shirabe_client"
        )
    return Path(text)


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def key_of(name: str) -> str:
    """The name as Shirabe takes it: the same, or a shape of it with a digest."""
    if re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", name):
        return name
    word = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24].strip("-")
    return f"{word or 'study'}-{hashlib.sha256(storable(name).encode()).hexdigest()[:10]}"


def meta_path(folder: Path, name: str) -> Path:
    return folder / "optuna" / f"{key_of(name)}.json"


class Engine:
    """One study's trials. Thread-safe once the space is known."""

    def __init__(self, storage: Any, name: str, directions: List[str]) -> None:
        self.folder = folder_of(storage)
        self.in_memory = storage is None
        self.name = name
        self.directions = directions
        self.constraints: List[str] = []  # their keys, once the space is known
        self.metric_names: Optional[List[str]] = None
        self.sampler = BaseSampler()
        self.pruner: BasePruner = MedianPruner()
        self.user_attrs: Dict[str, Any] = {}
        self.space: Optional[Dict[str, Distribution]] = None
        self.early: List[Trial] = []  # those before the space was known
        self.queue: List[Dict[str, Any]] = []
        self.slots: Dict[int, Slot] = {}  # of trials that were asked for
        self.asked: Dict[int, Asked] = {}
        self._free: List[Slot] = []
        self.core: Optional[CoreStudy] = None
        self.rng = random.Random()
        self.lock = threading.RLock()

    # ---- the space -----------------------------------------------------------------------------

    def begin(self) -> None:
        """After sampler and pruner are set: a grid has its space, a stored study too."""
        self.rng = random.Random(self.sampler.seed)
        stored = self._read_meta()
        if stored:
            self.directions = stored["directions"]
            self.metric_names = stored["metric_names"]
            self.user_attrs = stored["user_attrs"]
        if stored.get("space"):
            self.constraints = stored["constraints"]
            space = {name: from_json(kind) for name, kind in stored["space"].items()}
            self._open(space, [], stored.get("spec"))
        elif self.sampler.search_space:
            grid = self.sampler.search_space.items()
            self._open({name: CategoricalDistribution(values) for name, values in grid}, [])
        else:
            self.write_meta()

    def establish(
        self, space: Mapping[str, Distribution], constraints: Iterable[str] = ()
    ) -> None:
        """The space is known, and the keys of the constraints. The trials before are told to the
        study, or become its own."""
        if not space:
            raise NotSupported("the objective asks for no parameter: there is nothing to search")
        for name in [name for point in self.queue for name in point]:
            if name not in space:
                raise ValueError(f"enqueue_trial: the space has no {name!r}")
        rest = [self._filled(point, space) for point in self.queue]
        points = [*[self._point(trial, space) for trial in self.early], *rest]
        self.constraints = list(constraints)
        self._open(dict(space), points)
        early, self.early, self.queue = self.early, [], []
        for trial in list(early):
            core = self.take()
            # In their order; but what matters is that each has its own values.
            trial = next((t for t in early if _alike(t.params, core.params)), trial)
            early.remove(trial)
            trial.bind(self.space or {}, core)
            trial.number = core.number - 1
            if trial.state.is_finished():
                if trial.state == TrialState.COMPLETE and trial.objectives == 1:
                    trial.should_prune()  # its reports are there for others to be compared with
                self.finish(trial)

    def _point(self, trial: Trial, space: Mapping[str, Distribution]) -> Dict[str, Any]:
        for name, distribution in trial.distributions.items():
            if space.get(name) != distribution:
                raise NotSupported(
                    f"trial {trial.number} asked for {name!r} as {distribution}, and another did "
                    "not: a space that changes from trial to trial cannot be had"
                )
        return self._filled({**trial.fixed, **trial.params}, space)

    def _filled(
        self, point: Mapping[str, Any], space: Mapping[str, Distribution]
    ) -> Dict[str, Any]:
        """The point, with random values where it has none."""
        return {
            name: point[name] if name in point else draw(distribution, self.rng)
            for name, distribution in space.items()
        }

    def _open(
        self,
        space: Dict[str, Distribution],
        points: List[Dict[str, Any]],
        spec: Optional[Mapping[str, Any]] = None,
    ) -> None:
        parameters = {name: kind.parameter() for name, kind in space.items()}
        first = [{n: parameters[n].encode(v) for n, v in point.items()} for point in points]
        chosen = spec or {
            "algorithm": (self.sampler.algorithm, self.sampler.settings),
            "stopper": self._stopper(),
            "seed": self.sampler.seed,
        }
        algorithm, stopper = tuple(chosen["algorithm"]), tuple(chosen["stopper"])
        problem = Problem(
            space=parameters,
            result=self._result_spec(),
            parallel=_MOST_AT_ONCE,
            algorithm=variant("algorithm", algorithm) or {},
            stopper=variant("stopper", stopper) if stopper[0] else None,
            seed=chosen["seed"],
            first=first,
        )
        core = CoreStudy(self.folder, key_of(self.name), None, self.in_memory)
        try:
            core.open(problem, begun_alike=False)
        except BaseException:
            core.close()
            raise
        self.core, self.space = core, space
        self.write_meta({"algorithm": algorithm, "stopper": stopper, "seed": chosen["seed"]})

    def _result_spec(self) -> ResultSpec:
        return result_spec(self.directions, self.constraints)

    def _stopper(self) -> Tuple[str, Dict[str, Any]]:
        """As in Optuna, trials of several objectives are never pruned."""
        if len(self.directions) > 1:
            return "", {}
        return self.pruner.stopper, self.pruner.settings

    # ---- trials --------------------------------------------------------------------------------

    def first(self, number: int) -> Trial:
        """One of those before the space is known, kept in `early`."""
        trial = Trial(number, None, None, self.rng)
        trial.objectives = len(self.directions)
        if self.queue:
            trial.fixed = self.queue.pop(0)
        self.early.append(trial)
        return trial

    def take(self) -> CoreTrial:
        """The study's next trial, until finish()."""
        assert self.core
        with self.lock:
            slot = self._free.pop() if self._free else self.core.slots(1)[0]
        asked = self.core.ask(slot, lambda: False)
        if not isinstance(asked, Asked):
            slot.free()
            raise RuntimeError(f"there are no more trials: {self.core.reason}")
        with self.lock:
            self.slots[asked.number], self.asked[asked.number] = slot, asked
        progress = Progress(self._result_spec(), None, False)
        link = StudyLink(Conductor(self.core, Limits(), progress), asked)
        return CoreTrial(self.core.seed(asked), link)

    def wrap(self, core: CoreTrial) -> Trial:
        trial = Trial(core.number - 1, self.space, core, self.rng)
        trial.objectives = len(self.directions)
        return trial

    def finish(self, trial: Trial) -> None:
        """Tells the study about one that take() gave."""
        assert self.core and trial.core
        with self.lock:
            slot = self.slots.pop(trial.core.number)
            asked = self.asked.pop(trial.core.number)
        trial.core.notes = trial.notes()
        self.core.tell(asked, self.outcome(trial), trial.core)
        with self.lock:
            self._free.append(slot)

    def outcome(self, trial: Trial) -> Outcome:
        """How the study hears of it."""
        if trial.core is not None and trial.core.stop_reason is not None:
            return Outcome(STOPPED)
        if trial.state == TrialState.COMPLETE:
            assert trial.values is not None
            metrics = dict(zip(value_names(len(self.directions)), trial.values))
            metrics.update({constraint_name(k): v for k, v in trial.constraints.items()})
            return Outcome(VALUE, metrics)
        if trial.state == TrialState.PRUNED:
            return Outcome(FAILED, reason=PRUNED)
        return Outcome(FAILED, reason=trial.fail_reason or "the trial failed")

    def trials(self) -> List[FrozenTrial]:
        if self.core is None:
            return [trial.frozen() for trial in self.early]
        return [self._frozen(result) for result in self.core.results()]

    def _frozen(self, result: TrialResult) -> FrozenTrial:
        state = {
            VALUE: TrialState.COMPLETE,
            STOPPED: TrialState.PRUNED,
            "running": TrialState.RUNNING,
        }
        kind = state.get(result.state, TrialState.FAIL)
        notes = result.notes
        if result.state == FAILED and result.reason.startswith(PRUNED):
            kind = TrialState.PRUNED
        values = list(result.values.values()) or None
        if kind == TrialState.PRUNED:
            values = notes.get("values")
        found = FrozenTrial(result.number - 1, kind, values)
        if kind == TrialState.COMPLETE:
            measured = {key: result.metrics.get(constraint_name(key)) for key in self.constraints}
            found.set_constraints({k: v for k, v in measured.items() if v is not None})
        found.params = notes.get("params", result.params)
        found.distributions = {
            name: kind for name, kind in (self.space or {}).items() if name in found.params
        }
        found.user_attrs = notes.get("attrs", {})
        found.intermediate_values = {int(s): float(v) for s, v in notes.get("reports", {}).items()}
        if notes.get("start"):
            found.datetime_start = found.datetime_start or _time(notes["start"])
        if notes.get("end"):
            found.datetime_complete = _time(notes["end"])
        if result.reason:
            found.system_attrs["fail_reason"] = result.reason
        return found

    def close(self) -> None:
        """The child ends with its last user."""
        core, self.core = self.core, None
        for slot in [*self._free, *self.slots.values()]:
            slot.free()
        if core:
            core.close()

    # ---- what is stored beside -----------------------------------------------------------------

    def write_meta(self, spec: Optional[Mapping[str, Any]] = None) -> None:
        path = meta_path(self.folder, self.name)
        stored = self._read_meta()
        stored.update(
            name=self.name,
            directions=self.directions,
            metric_names=self.metric_names,
            user_attrs=self.user_attrs,
            constraints=self.constraints,
        )
        if spec:
            stored["spec"] = spec
        if self.space:
            stored["space"] = {name: to_json(kind) for name, kind in self.space.items()}
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        beside.write_text(json.dumps(stored, default=str), "utf-8")
        beside.replace(path)

    def _read_meta(self) -> Dict[str, Any]:
        try:
            found: Dict[str, Any] = json.loads(meta_path(self.folder, self.name).read_text("utf-8"))
            return found
        except (OSError, ValueError):
            return {}


def _alike(some: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether they are the same, but for the last digits of floats: a point is kept in [0, 1]."""
    for name, value in some.items():
        if isinstance(value, float) and isinstance(values[name], float):
            if not math.isclose(value, values[name], rel_tol=1e-9, abs_tol=1e-12):
                return False
        elif value != values[name]:
            return False
    return True


def _time(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds)
