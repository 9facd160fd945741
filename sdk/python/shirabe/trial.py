"""What a function that shirabe.optimize runs is given as `trial`."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from shirabe_client.arguments import whole

from .helper import _committed
from .outcome import number_of

__all__ = ["Link", "Trial", "TrialSeed"]

_LAST_STEP = 2**63 - 3  # what the database counts to, less the step of the result
_KEPT = 2  # checkpoints of a trial that runs; the newest after its end


class TrialSeed(NamedTuple):
    """What a Trial is made of, in any process."""

    name: str
    number: int
    params: Dict[str, Any]
    folder: str
    last_step: int = 0


class Link:
    """How a trial reaches the search that it belongs to."""

    def report(self, step: int, metrics: Dict[str, float]) -> Optional[str]:
        """Stores them. Why the trial should end now, or None."""
        raise NotImplementedError

    def is_stopping(self) -> bool:
        """Whether the whole search is to end (Ctrl-C): trials may save and return None."""
        raise NotImplementedError


class Trial:
    """One point of the space, while its function runs. For one thread at a time.

    name, number: "digits-7" and 7; number counts from 1.
    params: {name: value}.
    seed: a number below 2^31 for generators, the same whenever this trial is run again.
    folder: for files of the function; kept, and the same when the trial goes on later.
    stop_reason: why should_stop() is True; None while it is not.
    """

    def __init__(self, seed: TrialSeed, link: Link) -> None:
        self.name = seed.name
        self.number = seed.number
        self.params = dict(seed.params)
        self.seed = zlib.crc32(seed.name.encode()) & 0x7FFFFFFF
        self.reported: Dict[str, float] = {}  # the last value of each metric
        self.stop_reason: Optional[str] = None
        self.notes: Dict[str, Any] = {}  # kept with the result: what JSON has
        self._folder = seed.folder
        self.last_step = seed.last_step
        self._link = link
        self._saved = False

    def __repr__(self) -> str:
        return f"<Trial {self.name} {self.params}>"

    @property
    def folder(self) -> Path:
        folder = Path(self._folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def report(self, step: Optional[int] = None, /, **metrics: float) -> None:
        """Values at a step, stored when it returns: report(epoch, loss=0.3). Without a step: the
        one after the last. Early stopping looks at the objective; other metrics are kept.

        TypeError: a step that is no whole number, a value that is no number.
        """
        if step is None:
            step = self.last_step + 1
        step = _step(step, ": write report(step, loss=0.3)")
        if step > _LAST_STEP:
            raise ValueError(f"step must be at most {_LAST_STEP}, not {step}")
        values = {name: number_of(name, value) for name, value in metrics.items()}
        if not values:
            raise TypeError("report has no metric: write report(step, loss=0.3)")
        self.last_step = max(self.last_step, step)
        self.reported.update(values)
        why = self._link.report(step, values)
        self.stop_reason = self.stop_reason or why

    def should_stop(self) -> bool:
        """Whether to return now: the trial is worse than others (with a stopper: what it reported
        counts), or the search was interrupted: save a checkpoint and return None, and the next
        call goes on with it."""
        if self.stop_reason is None and self._link.is_stopping():
            self.stop_reason = "interrupted"
        return self.stop_reason is not None

    def should_checkpoint(self) -> bool:
        """Whether to save now: the search is interrupted, and nothing was saved since."""
        return self.should_stop() and self.stop_reason == "interrupted" and not self._saved

    @contextlib.contextmanager
    def checkpoint(self, step: int) -> Iterator[Path]:
        """A folder to save into, which counts once the block has ended without an exception; of a
        step that is saved already it is thrown away. The newest two are kept. Steps begin at 0."""
        target = self.folder / "checkpoints" / str(_step(step))
        if target.exists():
            with tempfile.TemporaryDirectory(prefix="shirabe-") as scratch:
                yield Path(scratch)
        else:
            with _committed(target) as beside:
                yield beside
            self._prune(_KEPT)
        self._saved = self.stop_reason is not None

    def resume(self) -> Optional[Path]:
        """The folder of the newest checkpoint, named after its step; None at the beginning."""
        saved = self._checkpoints()
        return saved[-1] if saved else None

    def close(self) -> None:
        """It is over: only its newest checkpoint stays."""
        self._prune(1)

    def _checkpoints(self) -> List[Path]:
        root = f"{self._folder}/checkpoints"
        if not os.path.isdir(root):
            return []
        steps = [path for path in Path(root).iterdir() if path.name.isdigit()]
        return sorted(steps, key=lambda path: int(path.name))

    def _prune(self, keep: int) -> None:
        for old in self._checkpoints()[:-keep]:
            shutil.rmtree(old, ignore_errors=True)


def _step(step: Any, fix: str = "") -> int:
    number = whole("step", step, fix)
    if number < 0:
        raise ValueError(f"step must not be negative, as {number} is")
    return number
