"""Runs the trials of a study in this process: in the caller's thread, or in several."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

from .outcome import FAILED, INFEASIBLE, OPEN, STOPPED, VALUE, Outcome, not_finite
from .progress import Progress
from .slot import Slot
from .study import Asked, Ended, Found, Study
from .trial import Link, Trial

__all__ = ["Conductor", "Limits", "interrupts", "run_threads"]

_LOOK = 0.1  # seconds between two looks of the main thread at its workers
_ERRORS_AT_FIRST = 3  # trials that fail before any has a result: something is wrong with them all


class Limits(NamedTuple):
    """seconds: no trial begins after them. failures: of trials, after which the search ends; None:
    when the first three fail. trials: to run in this call; None for any number."""

    seconds: Optional[float] = None
    failures: Optional[int] = None
    trials: Optional[int] = None


class Conductor:
    """Says whether to go on, and counts. Thread-safe."""

    def __init__(self, study: Study, limits: Limits, progress: Progress) -> None:
        self.study = study
        self.limits = limits
        self.progress = progress
        self.ended = ""  # why no trial begins any more: a word of Result.ended
        self.reason = ""
        self.last_failure: Optional[Outcome] = None
        self.graceful = True  # Ctrl-C waits for what runs
        self.looks_ahead = True  # a trial's end asks for the next: nothing may stop it in between
        self.on_end: Callable[[Asked, Outcome, Trial], None] = lambda *_: None
        self._began = time.monotonic()
        self._begun = 0
        self._lock = threading.Lock()

    @property
    def interrupted(self) -> bool:
        return self.ended == "interrupted"

    def stop(self, ended: str, reason: str = "") -> None:
        """No trial begins any more; the first reason stays."""
        with self._lock:
            if not self.ended:
                self.ended, self.reason = ended, reason

    def is_over(self) -> bool:
        seconds = self.limits.seconds
        if not self.ended and seconds is not None and time.monotonic() - self._began >= seconds:
            self.stop("timeout", f"timeout={seconds:g} s is over")
        return bool(self.ended)

    def gives_up(self) -> bool:
        """Whether a trial that was counted need not begin: not for the reason that it was the last
        one, which another thread has found meanwhile."""
        return self.is_over() and self.ended != "trials"

    def may_begin(self) -> bool:
        """Counts one more trial to begin, if there may be one."""
        if self.is_over():
            return False
        with self._lock:
            if self.limits.trials is not None and self._begun >= self.limits.trials:
                self.ended = self.ended or "trials"
                return False
            self._begun += 1
            return True

    def may_begin_after(self, outcome: Outcome) -> bool:
        """As may_begin, before the trial that has ended so is told. One that has failed may be the
        one too many."""
        return self.looks_ahead and outcome.kind not in (FAILED, OPEN) and self.may_begin()

    def began(self, asked: Asked) -> Trial:
        self.progress.began()
        return Trial(self.study.seed(asked), StudyLink(self, asked))

    def finish(
        self, asked: Asked, outcome: Outcome, trial: Trial, next_for: Optional[Slot] = None
    ) -> Found:
        """Tells the study, counts, and ends the search where too many have failed. next_for: the
        next trial of this slot, if it is there already."""
        assert self.study.problem
        metrics = {**trial.reported, **outcome.metrics}
        if outcome.kind == VALUE:
            reason = not_finite(self.study.problem.result, metrics)
            if reason:
                outcome = Outcome(INFEASIBLE, outcome.metrics, reason)
        before = trial.stop_reason
        found = self.study.tell(asked, outcome, trial, next_for)
        if trial.stop_reason != before:  # from elsewhere: what it returned came too late
            outcome, metrics = Outcome(STOPPED, reason=trial.stop_reason or ""), trial.reported
        if outcome.kind != OPEN:
            trial.close()
        self.on_end(asked, outcome, trial)
        self.progress.ended(asked.number, outcome, metrics)
        if outcome.kind == FAILED:
            self._count_failure(outcome)
        return found

    def end_of(self, ended: Ended) -> None:
        """The study has no more trials."""
        reason = ended.reason
        word = "goal" if "goal" in reason else "trials"
        self.stop("exhausted" if "no further point" in reason else word, reason)

    def _count_failure(self, outcome: Outcome) -> None:
        self.last_failure = outcome
        counts = self.progress.counts
        most = self.limits.failures
        if most is not None and counts[FAILED] > most:
            self.stop("failed", f"{counts[FAILED]} trials have failed, more than max_failed={most}")
        elif (
            most is None
            and counts[VALUE] + counts[STOPPED] == 0
            and counts[FAILED] >= _ERRORS_AT_FIRST
        ):
            self.stop("failed", f"the first {counts[FAILED]} trials have all failed")


class StudyLink(Link):
    def __init__(self, conductor: Conductor, asked: Asked) -> None:
        self._conductor = conductor
        self._asked = asked

    def report(self, step: int, metrics: Any) -> Optional[str]:
        return self._conductor.study.report(self._asked, step, metrics)

    def is_stopping(self) -> bool:
        return self._conductor.interrupted


@contextlib.contextmanager
def interrupts(conductor: Conductor) -> Iterator[None]:
    """Ctrl-C, once: no new trials, and those that run may end; twice: KeyboardInterrupt. Only in
    the main thread, and where the program has no handler of its own."""
    main = threading.current_thread() is threading.main_thread()
    ours = main and conductor.graceful
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def on_signal(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        conductor.stop("interrupted", "interrupted")
        count = conductor.progress.running
        conductor.progress.say(
            f"stopping: waits for {count} running trial{'' if count == 1 else 's'}; Ctrl-C again "
            "ends at once"
        )

    signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def run_threads(conductor: Conductor, body: Callable[[Trial], Outcome], parallel: int) -> None:
    """Until the study has no more trials or the conductor ends it. body raises KeyboardInterrupt,
    and what is no Exception: the search then ends with it, and the trial stays open."""
    slots = conductor.study.slots(parallel)
    try:
        with interrupts(conductor):
            if parallel == 1:
                _work(conductor, body, slots[0])
            else:
                _work_in_threads(conductor, body, slots)
    finally:
        for slot in slots:
            slot.free()


def _work(conductor: Conductor, body: Callable[[Trial], Outcome], slot: Slot) -> None:
    found: Found = None
    may_begin = conductor.may_begin()
    if may_begin:
        found = conductor.study.take_over()
    while may_begin:
        found = found or conductor.study.ask(slot, conductor.gives_up)
        if isinstance(found, Ended):
            conductor.end_of(found)
        if not isinstance(found, Asked):
            return
        asked = found
        try:
            trial = conductor.began(asked)
            outcome = body(trial)
            ahead = conductor.may_begin_after(outcome)
            found = conductor.finish(asked, outcome, trial, slot if ahead else None)
        finally:
            if asked.left_behind:
                asked.left_behind.free()
        # One that was given just before Ctrl-C stays open, for the next call.
        may_begin = not conductor.interrupted if ahead else conductor.may_begin()


def _work_in_threads(
    conductor: Conductor, body: Callable[[Trial], Outcome], slots: List[Slot]
) -> None:
    errors: List[BaseException] = []

    def work(slot: Slot) -> None:
        try:
            _work(conductor, body, slot)
        except BaseException as error:  # the caller raises it
            errors.append(error)
            conductor.stop("interrupted" if isinstance(error, KeyboardInterrupt) else "error")

    # Daemons: a function that never returns must not keep the program after the second Ctrl-C.
    threads = [
        threading.Thread(target=work, args=(slot,), name=f"shirabe-{slot.name}", daemon=True)
        for slot in slots
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_LOOK)
            conductor.progress.draw()
    if errors:
        raise errors[0]
