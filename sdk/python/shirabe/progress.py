"""How far a search is: one line of a terminal, a display of Jupyter, or lines of a log."""

from __future__ import annotations

import html
import importlib
import sys
import threading
import time
from typing import Any, Optional

from .outcome import FAILED, INFEASIBLE, OPEN, STOPPED, VALUE, Outcome

__all__ = ["Progress"]

_INTERVAL = 0.1  # seconds between two drawings


class Progress:
    """Counts the trials that end, remembers the best, and shows both. Thread-safe.

    show: None: on a terminal and in Jupyter; True: elsewhere as well, a line a trial.
    """

    def __init__(self, objective: str, minimize: bool, total: Optional[int], show: Optional[bool]):
        self.objective, self.minimize, self.total = objective, minimize, total
        self.counts = {VALUE: 0, STOPPED: 0, FAILED: 0, INFEASIBLE: 0, OPEN: 0}
        self.best: Optional[float] = None
        self.best_number = 0
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

    def count(self, number: int, kind: str, value: Optional[float]) -> None:
        """A trial has ended."""
        with self._lock:
            self.counts[kind] += 1
            better = value is not None and (
                self.best is None or (value < self.best if self.minimize else value > self.best)
            )
            if better:
                self.best, self.best_number = value, number

    def ended(self, number: int, outcome: Outcome, value: Optional[float]) -> None:
        """As count, and shows it."""
        self.count(number, outcome.kind, value)
        with self._lock:
            self.running -= 1
        if outcome.kind in (FAILED, INFEASIBLE):
            self.say(f"trial {number} {outcome.kind}: {outcome.reason}")
        elif self._way == "log":
            shown = "" if value is None else f" {self.objective}={value:.6g}"
            self.say(f"trial {number} {outcome.kind}{shown}")
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
        if self.best is not None:
            parts.append(f"best {self.objective}={self.best:.6g} (trial {self.best_number})")
        if self.running:
            parts.append(f"{self.running} running")
        for kind in (STOPPED, INFEASIBLE, FAILED):
            if self.counts[kind]:
                parts.append(f"{self.counts[kind]} {kind}")
        seconds = int(time.monotonic() - self._began)
        parts.append(f"{seconds // 60}:{seconds % 60:02d}")
        return "  ".join(parts)

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
