"""How far a search is: one line of a terminal, a display of Jupyter, or lines of a log."""

from __future__ import annotations

import html
import importlib
import sys
import threading
import time
from typing import Any, List, Mapping, Optional

from shirabe_client.front import is_as_good, losses_of

from .objectives import ResultSpec, breaking, broken_words
from .outcome import FAILED, INFEASIBLE, OPEN, STOPPED, VALUE, Outcome

__all__ = ["Progress"]

_INTERVAL = 0.1  # seconds between two drawings


class Progress:
    """Counts the trials that end, remembers the best, and shows both. Thread-safe.

    The best is that of the first objective, of the trials that keep all constraints; with several
    objectives their front is counted, too.
    show: None: on a terminal and in Jupyter; True: elsewhere as well, a line a trial.
    """

    def __init__(self, result: ResultSpec, total: Optional[int], show: Optional[bool]):
        self.result, self.total = result, total
        self.counts = {VALUE: 0, STOPPED: 0, FAILED: 0, INFEASIBLE: 0, OPEN: 0}
        self.best: Optional[float] = None
        self.best_number = 0
        self.broken = 0  # trials that do not keep all constraints
        self._least: Optional[List[float]] = None  # the losses of the best
        self._front: List[List[float]] = []
        self.running = 0
        self._began = time.monotonic()
        self._drawn = 0.0
        self._lock = threading.Lock()
        self._thread = threading.get_ident()  # draws: output of others may land anywhere in Jupyter
        self._display: Any = None
        self._way = "" if show is False else _way() or ("log" if show else "")

    @property
    def done(self) -> int:
        return sum(count for kind, count in self.counts.items() if kind != OPEN)

    def count(self, number: int, kind: str, metrics: Mapping[str, float]) -> None:
        """A trial has ended. One that was stopped does not compete with those that were not."""
        with self._lock:
            self.counts[kind] += 1
            if kind != VALUE or self.result.missing(metrics):
                return
            if self.result.broken(metrics):
                self.broken += 1
                return
            losses = losses_of(metrics, self.result.directions)
            # Of equals in the first objective the best in the next one, as in Result.best.
            if self._least is None or losses < self._least:
                self._least = losses
                self.best, self.best_number = metrics[self.result.first.name], number
            if self.result.several:
                self._add_to_front(losses)

    def _add_to_front(self, losses: List[float]) -> None:
        if not any(is_as_good(other, losses) for other in self._front):
            self._front = [other for other in self._front if not is_as_good(losses, other)]
            self._front.append(losses)

    def ended(self, number: int, outcome: Outcome, metrics: Mapping[str, float]) -> None:
        """As count, and shows it."""
        self.count(number, outcome.kind, metrics)
        with self._lock:
            self.running -= 1
        if outcome.kind in (FAILED, INFEASIBLE):
            self.say(f"trial {number} {outcome.kind}: {outcome.reason}")
        elif self._way == "log":
            self.say(f"trial {number} {outcome.kind}{self._words(outcome.kind, metrics)}")
        self.draw()

    def began(self) -> None:
        """A trial has begun."""
        with self._lock:
            self.running += 1
        self.draw()

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._way in ("terminal", "log"):
            clear = "\r\x1b[K" if self._way == "terminal" else ""
            print(f"{clear}{text}", file=sys.stderr, flush=True)

    def text(self) -> str:
        total = "" if self.total is None else f"/{self.total}"
        parts = [f"{self.done}{total} trials"]
        if self.result.several and self._front:
            parts.append(f"front of {len(self._front)}")
        if self.best is not None:
            name = self.result.first.name
            parts.append(f"best {name}={self.best:.6g} (trial {self.best_number})")
        if self.broken:
            parts.append(breaking(self.broken))
        if self.running:
            parts.append(f"{self.running} running")
        for kind in (STOPPED, INFEASIBLE, FAILED):
            if self.counts[kind]:
                parts.append(f"{self.counts[kind]} {kind}")
        seconds = int(time.monotonic() - self._began)
        parts.append(f"{seconds // 60}:{seconds % 60:02d}")
        return "  ".join(parts)

    def _words(self, kind: str, metrics: Mapping[str, float]) -> str:
        """" loss=0.1 memory=2e+10; breaks memory by 4e+09"."""
        if kind != VALUE:
            return ""
        values = "".join(f" {n}={metrics[n]:.6g}" for n in self.result.names() if n in metrics)
        broken = broken_words(self.result.broken(metrics))
        return values + (f"; breaks {broken}" if broken else "")

    def draw(self, last: bool = False) -> None:
        """Shows the state, at most ten times a second."""
        now = time.monotonic()
        if threading.get_ident() != self._thread:
            return
        if not self._way or (now - self._drawn < _INTERVAL and not last):
            return
        with self._lock:
            self._drawn = now
            if self._way == "terminal":
                print(
                    f"\r\x1b[K{self.text()}", end="\n" if last else "", file=sys.stderr, flush=True
                )
            elif self._way == "jupyter":
                self._show_in_jupyter()
            elif last:
                print(self.text(), file=sys.stderr, flush=True)

    def _show_in_jupyter(self) -> None:
        ipython: Any = importlib.import_module("IPython.display")
        part = 100 * self.done / self.total if self.total else 0
        page = ipython.HTML(
            f'<div style="font-family:monospace">{html.escape(self.text())}'
            f'<div style="background:#8883;height:4px;width:30em"><div style="background:#2a7;'
            f'height:4px;width:{min(part, 100):.1f}%"></div></div></div>'
        )
        if self._display is None:
            self._display = ipython.display(page, display_id=True)
        else:
            self._display.update(page)


def _way() -> str:
    """jupyter, terminal or nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython and hasattr(ipython, "get_ipython") else None
    if shell is not None and hasattr(shell, "kernel"):
        return "jupyter"
    return "terminal" if sys.stderr is not None and sys.stderr.isatty() else ""
