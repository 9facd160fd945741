"""Runs the trials of a study in worker processes: the caller's thread asks and tells, and passes on
what the workers report. A worker that dies costs its trial, and is replaced."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from .calling import run
from .outcome import FAILED, OPEN, Outcome, from_exception
from .problem import Problem
from .runner import Conductor, interrupts
from .slot import Slot
from .space import Choice
from .study import Asked, Ended, Found
from .trial import Link, Trial, TrialSeed

__all__ = ["Sent", "is_worker_starting", "run_processes"]

_LOOK = 0.2  # seconds
_FIRST_PAUSE, _LAST_PAUSE = 0.0005, 0.02  # seconds between two looks for a point
_PATIENCE, _REST = 1.0, 0.2  # seconds without a point, and between two looks after them
_END = 5.0  # seconds that a worker has to end
_PR_SET_PDEATHSIG = 1  # of Linux's prctl


class Sent:
    """A function, and the values that it may be given, on their way to worker processes, and how
    those are started: spawned where all can be imported there, else with all sent by value
    (cloudpickle), or forked. ValueError if it cannot be."""

    def __init__(self, function: Callable[..., Any], how: str, problem: Problem) -> None:
        self.how, self.result = how, problem.result
        self.method = "spawn"
        self._names = list(_choices(problem))
        main = getattr(sys.modules["__main__"], "__file__", None)
        parts: Dict[str, Any] = {getattr(function, "__name__", repr(function)): function}
        parts.update({f'space["{n}"]': c.values for n, c in _choices(problem).items()})
        self._parts = parts
        if main is not None and not os.path.exists(main):  # a program from stdin: no way to spawn
            self.method = "fork"
            return
        why = self._pack(parts, _by_reference)
        if why and importlib.util.find_spec("cloudpickle"):
            cloudpickle: Any = importlib.import_module("cloudpickle")
            why = self._pack(parts, cloudpickle.dumps)
        elif why and main is None:
            self.method, why = "fork", ""
        if why:
            raise ValueError(
                f"workers='processes': {why}: define it at the top level of a module, pip install "
                "cloudpickle, or use workers='threads'"
            )

    def _pack(self, parts: Dict[str, Any], dumps: Callable[[Any], bytes]) -> str:
        """Makes bytes of the parts, or says why one cannot be sent."""
        packed = {}
        for what, part in parts.items():
            try:
                packed[what] = dumps(part)
            except Exception as error:
                return f"{what} cannot be sent to a worker process ({' '.join(str(error).split())})"
        self._parts = packed
        return ""

    def load(self) -> Tuple[Callable[..., Any], Dict[str, List[Any]]]:
        """In the worker: the function, and the values of each choice."""
        loaded = []
        for what, part in self._parts.items():
            try:
                loaded.append(part if self.method == "fork" else pickle.loads(part))
            except Exception as error:
                raise ValueError(
                    f"a worker process cannot load {what}: {error!r}: define it at the top level "
                    'of a module, not under `if __name__ == "__main__":`'
                ) from None
        return loaded[0], dict(zip(self._names, loaded[1:]))


def _by_reference(value: Any) -> bytes:
    """ValueError for what a process that is spawned cannot import, as it has no such main file."""
    data = pickle.dumps(value)
    if b"__main__" in data and getattr(sys.modules["__main__"], "__file__", None) is None:
        raise ValueError("it is defined at a prompt")
    return data


def _choices(problem: Problem) -> Dict[str, Choice]:
    return {n: kind for n, kind in problem.space.items() if isinstance(kind, Choice)}


class _Worker:
    def __init__(self, sent: Sent, slot: Slot) -> None:
        self.slot = slot
        self.asked: Optional[Asked] = None
        self.found: Found = None  # what came with the end of its last trial
        self.trial: Optional[Trial] = None
        self.ready = False
        self.is_new = True
        self.resting: Optional[Slot] = None  # its own, while it goes on for one that died
        context: Any = multiprocessing.get_context(sent.method)
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(theirs, sent, os.getpid()), name=f"shirabe-{slot.name}"
        )
        self.process.start()
        theirs.close()

    def end(self, deadline: float) -> None:
        self.pipe.close()
        self.process.join(max(0.0, deadline - time.monotonic()))
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def run_processes(conductor: Conductor, sent: Sent, parallel: int) -> None:
    """Until the study has no more trials or the conductor ends it."""
    slots = conductor.study.slots(parallel)
    workers: List[_Worker] = []
    try:
        with interrupts(conductor):
            for slot in slots:
                workers.append(_Worker(sent, slot))
            _Dispatcher(conductor, sent, workers).run()
        deadline = time.monotonic() + _END
    except BaseException:
        deadline = time.monotonic()
        raise
    finally:
        for worker in workers:
            worker.end(deadline)
        for slot in slots:
            slot.free()


class _Dispatcher:
    def __init__(self, conductor: Conductor, sent: Sent, workers: List[_Worker]) -> None:
        self._conductor = conductor
        self._sent = sent
        self._workers = workers
        self._pause = _FIRST_PAUSE
        self._waits_since: Optional[float] = None  # for a point; by the monotonic clock
        self._counted: Dict[str, bool] = {}  # slots for which a trial may begin

    def run(self) -> None:
        while True:
            waits = self._hand_out()
            self._waits_since = (self._waits_since or time.monotonic()) if waits else None
            busy = [w for w in self._workers if w.asked or not w.ready]
            if not any(w.asked for w in self._workers) and self._conductor.is_over():
                return
            timeout = self._pause if waits else _LOOK
            self._pause = min(2 * self._pause, _REST if self._is_long() else _LAST_PAUSE)
            pipes = {w.pipe: w for w in busy}
            for pipe in multiprocessing.connection.wait(list(pipes), timeout):
                self._pause = _FIRST_PAUSE
                self._hear(pipes[pipe])
            self._conductor.progress.draw()

    def _hand_out(self) -> bool:
        """A trial for each worker that has none; whether one of them still waits for a point."""
        waits = False
        for worker in self._workers:
            if worker.asked or not worker.ready:
                continue
            if self._conductor.is_over() and (self._conductor.interrupted or not worker.found):
                return False
            if not self._counted.get(worker.slot.name):
                if not self._conductor.may_begin():
                    return False
                self._counted[worker.slot.name] = True
            found = self._find(worker)
            if isinstance(found, Ended):
                self._conductor.end_of(found)
                return False
            if found is None:
                waits = True
                continue
            worker.asked, worker.trial = found, self._conductor.began(found)
            worker.pipe.send(("run", self._seed(found)))
        return waits

    def _seed(self, asked: Asked) -> TrialSeed:
        """With the places of chosen values: the worker has the values themselves."""
        seed, problem = self._conductor.study.seed(asked), self._conductor.study.problem
        assert problem
        choices = _choices(problem)
        params = {n: choices[n].place(v) if n in choices else v for n, v in seed.params.items()}
        return seed._replace(params=params)

    def _find(self, worker: _Worker) -> Found:
        """A trial that was left behind, at first and where there is nothing else; or its own."""
        first, worker.is_new = worker.is_new, False
        found, worker.found = worker.found, None
        if first:
            found = self._conductor.study.take_over()
        found = found or self._conductor.study.look(worker.slot)
        if found is None and self._is_long():
            found = self._conductor.study.take_over()
        if isinstance(found, Asked) and found.left_behind:
            worker.resting, worker.slot = worker.slot, found.left_behind
        return found

    def _is_long(self) -> bool:
        return self._waits_since is not None and time.monotonic() - self._waits_since > _PATIENCE

    def _hear(self, worker: _Worker) -> None:
        try:
            kind, *rest = worker.pipe.recv()
        except (EOFError, OSError):
            self._replace(worker)
            return
        if kind == "ready":
            worker.ready = True
        elif kind == "failed":
            raise ValueError(rest[0])
        elif kind == "look":
            self._answer(worker, self._conductor.interrupted)
        elif kind == "report":
            step, metrics = rest
            assert worker.asked and worker.trial
            worker.trial.reported.update(metrics)
            worker.trial.last_step = max(worker.trial.last_step, step)
            self._answer(worker, self._conductor.study.report(worker.asked, step, metrics))
        else:
            self._finish(worker, *rest)

    def _answer(self, worker: _Worker, answer: Any) -> None:
        try:
            worker.pipe.send(answer)
        except OSError:
            pass  # it has died: its pipe says so

    def _finish(
        self, worker: _Worker, outcome: Outcome, notes: Optional[Dict[str, Any]] = None
    ) -> None:
        assert worker.asked and worker.trial
        asked, trial = worker.asked, worker.trial
        trial.notes = notes or {}
        worker.asked = worker.trial = None
        slot = worker.resting or worker.slot
        ahead = self._conductor.may_begin_after(outcome)
        worker.found = self._conductor.finish(asked, outcome, trial, slot if ahead else None)
        self._counted[slot.name] = ahead
        if outcome.kind == OPEN and not self._conductor.interrupted:
            raise KeyboardInterrupt  # the function raised it: Ctrl-C does not come to workers
        if worker.resting:
            worker.slot.free()
            worker.slot, worker.resting = worker.resting, None

    def _replace(self, worker: _Worker) -> None:
        """A worker has died, with its trial."""
        worker.process.join(_END)
        reason = _death(worker.process.exitcode)
        if not worker.ready and self._conductor.is_over():  # Ctrl-C may have come to it, too
            self._workers.remove(worker)
            worker.pipe.close()
            return
        if not worker.ready:
            raise RuntimeError(
                f"a worker process did not start ({reason}): put the call of shirabe.optimize "
                'under `if __name__ == "__main__":`, so that workers can import the file'
            )
        slot = worker.resting or worker.slot
        if worker.asked:
            self._finish(worker, Outcome(FAILED, reason=f"its worker process {reason}"))
        worker.pipe.close()
        self._workers[self._workers.index(worker)] = _Worker(self._sent, slot)


def _death(code: Optional[int]) -> str:
    if code is None:
        return "does not answer"
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    hint = " (out of memory?)" if -code == signal.SIGKILL else ""
    return f"was killed by {name}{hint}"


# ---- in the worker ------------------------------------------------------------------------------


class _PipeLink(Link):
    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()  # functions may have threads

    def report(self, step: int, metrics: Dict[str, float]) -> Optional[str]:
        answer: Optional[str] = self._ask("report", step, metrics)
        return answer

    def is_stopping(self) -> bool:
        return bool(self._ask("look"))

    def _ask(self, *words: Any) -> Any:
        with self._lock:
            self._pipe.send(words)
            return self._pipe.recv()


def _serve(pipe: Any, sent: Sent, parent: int) -> None:
    """Runs trials until the pipe ends; dies with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    _die_with(parent)
    try:
        try:
            function, choices = sent.load()
        except ValueError as error:
            pipe.send(("failed", str(error)))
            return
        pipe.send(("ready",))
        while True:
            _, seed = pipe.recv()
            params = {n: choices[n][v] if n in choices else v for n, v in seed.params.items()}
            trial = Trial(seed._replace(params=params), _PipeLink(pipe))
            outcome = _run(function, sent, trial)
            pipe.send(("end", outcome._replace(error=None), trial.notes))
    except (EOFError, OSError):
        return  # the search is over


def _run(function: Any, sent: Sent, trial: Trial) -> Outcome:
    try:
        return run(function, sent.how, sent.result, trial)
    except KeyboardInterrupt:
        return Outcome(OPEN)
    except BaseException as error:
        return from_exception(error)


def _die_with(parent: int) -> None:
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except (AttributeError, OSError):
        pass  # no Linux
    if os.getppid() != parent:
        os._exit(1)


def is_worker_starting() -> bool:
    """Whether this process is a spawned one that still imports its main file."""
    return bool(getattr(multiprocessing.current_process(), "_inheriting", False))
