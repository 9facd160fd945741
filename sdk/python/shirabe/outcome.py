"""How a trial has ended, from what its function returned or raised."""

from __future__ import annotations

import os
import traceback
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from .objectives import ResultSpec

__all__ = ["FAILED", "INFEASIBLE", "OPEN", "STOPPED", "VALUE", "Infeasible", "Outcome"]

VALUE = "done"  # it has a result
STOPPED = "stopped"  # stopped early: what it reported counts
FAILED = "failed"  # an error: reason says which
INFEASIBLE = "infeasible"  # the function said that this point gives no result
OPEN = "running"  # not over: the next call goes on with it

_LONGEST_REASON = 500  # characters


class Infeasible(Exception):
    """Raised by a function of shirabe.optimize: this point gives no result (it does not fit into
    memory, the simulation does not converge). The trial is over and counts, without a value; the
    reason is kept. Unlike other exceptions it never ends the search."""


class TrialFailed(RuntimeError):
    """The search has ended because trials fail. `result`: what there is; `__cause__`: the last
    exception of the function, where it was raised in this process."""

    result: Any = None


class Outcome(NamedTuple):
    """kind: one of the words above. metrics: by name; for VALUE those of the result. reason: one
    line. trace: the traceback of a failure. error: the exception itself, in this process only."""

    kind: str
    metrics: Dict[str, float] = {}
    reason: str = ""
    trace: str = ""
    error: Optional[BaseException] = None


def from_return(returned: Any, result: ResultSpec, reported: Mapping[str, float]) -> Outcome:
    """A number, where there is one objective; a mapping of metrics; or None after reports of all.
    Those of the result that it does not have must have been reported."""
    names = result.names()
    example = f"a dict with {', '.join(map(repr, names))}"
    if len(names) == 1:
        example = "the number, or " + example
    if returned is None:
        missing = result.missing(reported)
        if not missing:
            return Outcome(VALUE)
        absent = ", ".join(missing)
        why = f"the function returned nothing and reported no {absent}: return {example}"
        return Outcome(FAILED, reason=why)
    if result.several and not isinstance(returned, Mapping):
        why = f"the function returned {_short(returned)}, and there are several objectives: "
        return Outcome(FAILED, reason=why + f"return {example}")
    metrics = returned if isinstance(returned, Mapping) else {result.first.name: returned}
    try:
        values = {str(name): number_of(str(name), value) for name, value in metrics.items()}
    except TypeError as error:
        return Outcome(FAILED, reason=f"the function returned {_short(returned)}: {error}")
    missing = result.missing(values, reported)
    if missing:
        there = ", ".join(map(repr, values)) or "nothing"
        absent = ", ".join(map(repr, missing))
        add = f"add {'it' if len(missing) == 1 else 'them'} to the dict"
        fix = add if isinstance(returned, Mapping) else f"return {example}"
        return Outcome(FAILED, reason=f"the function returned {there}, but not {absent}: {fix}")
    return Outcome(VALUE, values)


def not_finite(result: ResultSpec, metrics: Mapping[str, float]) -> str:
    """Why these give no result: one that counts is infinite or NaN; "" where none is."""
    for name in result.names():
        value = metrics.get(name, 0.0)
        if value - value != 0:
            return f"{name} is {value}: a result must be finite"
    return ""


def from_exception(error: BaseException) -> Outcome:
    """Of what the function raised; SystemExit too, which ends the trial and not the search."""
    if isinstance(error, Infeasible):
        return Outcome(INFEASIBLE, reason=_line(error) or "infeasible", error=error)
    if isinstance(error, SystemExit):
        reason = f"the function called sys.exit({error.code!r}): return or raise instead"
    else:
        name, text = type(error).__name__, _line(error)
        reason = f"{name}: {text}" if text else name
    frames = _frames_of_function(error)
    if frames:
        last = frames[-1]
        reason += f" ({os.path.basename(last.filename)}:{last.lineno} in {last.name})"
    try:
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except Exception:  # a __str__ that raises, for instance
        trace = ""
    return Outcome(FAILED, reason=reason[:_LONGEST_REASON], trace=trace, error=error)


def number_of(name: str, value: Any) -> float:
    """A number of any library (NumPy's and PyTorch's scalars) as a float. TypeError for others."""
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"{name} is the text {_short(value)}: give a number")
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except Exception:
        shape = getattr(value, "shape", None)
        what = f"an array of shape {shape}" if shape else _short(value)
        raise TypeError(f"{name} is {what}: give one number") from None


def _line(error: BaseException) -> str:
    try:
        return " ".join(str(error).split())[:_LONGEST_REASON]
    except Exception:
        return "(its text cannot be shown)"


def _frames_of_function(error: BaseException) -> List[traceback.FrameSummary]:
    here = os.path.dirname(os.path.abspath(__file__))
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if not frame.filename.startswith(here)]


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "…"
