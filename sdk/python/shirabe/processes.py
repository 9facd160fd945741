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
from typing import Any, Callable, Dict, List, Optional

from .calling import run
from .objectives import ResultSpec
from .outcome import FAILED, OPEN, Outcome, from_exception
from .runner import Conductor, interrupts
from .slot import Slot
from .study import Asked, Ended, Found
from .trial import Link, Trial

__all__ = ["Sent", "is_worker_starting", "run_processes"]

_LOOK = 0.2  # seconds
_FIRST_PAUSE, _LAST_PAUSE = 0.0005, 0.02  # seconds between two looks for a point
_PATIENCE, _REST = 1.0, 0.2  # seconds without a point, and between two looks after them
_END = 5.0  # seconds that a worker has to end
_PR_SET_PDEATHSIG = 1  # of Linux's prctl


class Sent:
    """A function on its way to worker processes, and how they are started: spawned where it can be
    imported there, else sent by value (cloudpickle) or forked. ValueError if it cannot be."""

    def __init__(self, function: Callable[..., Any], how: str, result: ResultSpec) -> None:
        self.how, self.result = how, result
        self.payload: Any = None
        self.method = "spawn"
        main = getattr(sys.modules["__main__"], "__file__", None)
        if main is not None and not os.path.exists(main):  # a program from stdin: no way to spawn
            self.method, self.payload = "fork", function
            return
        at_prompt = main is None
        try:
            self.payload = pickle.dumps(function)
            if not (at_prompt and _belongs_to_main(function)):
                return
            problem = "it is defined at a prompt"
        except Exception as error:
            problem = " ".join(str(error).split())
        if importlib.util.find_spec("cloudpickle"):
            cloudpickle: Any = importlib.import_module("cloudpickle")
            try:
                self.payload = cloudpickle.dumps(function)
                return
            except Exception as error:
                problem = " ".join(str(error).split())
        elif self.payload is not None:
            self.method, self.payload = "fork", function
            return
        name = getattr(function, "__name__", repr(function))
        raise ValueError(
            f"workers='processes': {name} cannot be sent to a worker process ({problem}): define "
            "it at the top level of a module, pip install cloudpickle, or use workers='threads'"
        )


def _belongs_to_main(function: Any) -> bool:
    inner = getattr(function, "func", function)  # of functools.partial
    return getattr(inner, "__module__", "__main__") == "__main__"


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
            worker.pipe.send(("run", self._conductor.study.seed(found)))
        return waits

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
            self._finish(worker, rest[0])

    def _answer(self, worker: _Worker, answer: Any) -> None:
        try:
            worker.pipe.send(answer)
        except OSError:
            pass  # it has died: its pipe says so

    def _finish(self, worker: _Worker, outcome: Outcome) -> None:
        assert worker.asked and worker.trial
        asked, trial = worker.asked, worker.trial
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
            function = sent.payload if sent.method == "fork" else pickle.loads(sent.payload)
        except Exception as error:
            pipe.send(("failed", f"a worker process cannot load the function: {error!r}"))
            return
        pipe.send(("ready",))
        while True:
            _, seed = pipe.recv()
            outcome = _run(function, sent, Trial(seed, _PipeLink(pipe)))
            pipe.send(("end", outcome._replace(error=None)))
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
