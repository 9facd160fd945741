"""How a function is called with the parameters of a trial, by what its signature takes."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from typing import Any, Callable, Dict, Iterable, Optional, Tuple

from .helper import _here, _running
from .objectives import ResultSpec
from .outcome import FAILED, OPEN, STOPPED, VALUE, Infeasible, Outcome, from_exception, from_return
from .texts import as_json
from .trial import Trial

__all__ = ["adapt", "run"]

Body = Callable[[Trial], Any]


def adapt(function: Callable[..., Any], names: Iterable[str]) -> str:
    """How to call it: "keywords" if it takes every parameter by its name, "dict" if it takes one
    argument, "trial" if that is called trial; "+trial" is added if it takes one besides.
    TypeError if it takes neither."""
    if not callable(function):
        raise TypeError(f"fn is {function!r}: give a function")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions in C have none
        return "dict"
    names = list(names)
    kinds = inspect.Parameter
    given = signature.parameters.values()
    by_name = {p.name for p in given if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)}
    catches_all = any(p.kind == kinds.VAR_KEYWORD for p in given)
    also = "+trial" if "trial" in by_name and "trial" not in names else ""
    rest = [p for p in given if not (also and p.name == "trial")]
    plain = (kinds.VAR_KEYWORD, kinds.VAR_POSITIONAL)
    needed = [p for p in rest if p.default is kinds.empty and p.kind not in plain]
    takes_all = catches_all or set(names) <= by_name
    if takes_all and all(p.name in names and p.kind != kinds.POSITIONAL_ONLY for p in needed):
        return "keywords" + also
    if len(needed) == 1 and needed[0].kind != kinds.KEYWORD_ONLY:
        return "dict" + also
    if not needed and also:
        return "trial"
    if not needed and any(p.kind == kinds.VAR_POSITIONAL for p in given):
        return "dict" + also
    name = getattr(function, "__name__", repr(function))
    raise TypeError(
        f"{name}{signature} cannot be called with the parameters {', '.join(names)}: let it take "
        f"them by these names, or one dict: def {name}(params)"
    )


def run(function: Callable[..., Any], how: str, result: ResultSpec, trial: Trial) -> Outcome:
    """Calls it for a trial, whose notes are then such as can be stored. Raises nothing but
    KeyboardInterrupt, and what is no Exception at all (but SystemExit, which is a failure of the
    trial)."""
    try:
        outcome = _run(function, how, result, trial)
    finally:
        trial.notes, problem = _stored_notes(trial.notes)
    if problem and outcome.kind == VALUE:
        return Outcome(FAILED, reason=problem)
    return outcome


def _run(function: Callable[..., Any], how: str, result: ResultSpec, trial: Trial) -> Outcome:
    before = _here.set(trial)
    _running.append(trial)
    try:
        returned = _call_here(function, how, trial)
    except Infeasible as error:
        return from_exception(error)
    except (Exception, SystemExit) as error:
        if trial.stop_reason not in (None, "interrupted"):
            return Outcome(STOPPED, reason=trial.stop_reason or "")
        return from_exception(error)
    finally:
        _running.remove(trial)
        _here.reset(before)
    if trial.stop_reason not in (None, "interrupted"):
        # It has ended with what it reported; what it returned meanwhile is kept beside.
        return Outcome(STOPPED, reason=trial.stop_reason or "")
    if trial.stop_reason == "interrupted" and returned is None:
        return Outcome(OPEN)
    return from_return(returned, result, trial.reported)


def _stored_notes(notes: Any) -> Tuple[Dict[str, Any], str]:
    """Those that can be stored, as they will be read; and why another cannot."""
    if not isinstance(notes, dict):
        return {}, f"trial.notes must be a dict, not a value of the type {type(notes).__name__}"
    stored: Dict[str, Any] = {}
    problem = ""
    for name, value in dict(notes).items():
        try:
            if name == "metrics":
                raise TypeError("metrics that were reported have this name: choose another")
            stored.update(as_json({name: value}))
        except TypeError as error:
            problem = f"trial.notes[{name!r}] cannot be stored: {error}"
    return stored, problem


def _call_here(function: Callable[..., Any], how: str, trial: Trial) -> Any:
    """As _call. A process that the function forks ends with it: the search is its parent's."""
    process = os.getpid()
    error: Optional[BaseException] = None
    try:
        return _call(function, how, trial)
    except BaseException as raised:
        error = raised
        raise
    finally:
        if os.getpid() != process:
            _end_fork(error)


def _end_fork(error: Optional[BaseException]) -> None:
    code = 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        traceback.print_exception(type(error), error, error.__traceback__)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)


def _call(function: Callable[..., Any], how: str, trial: Trial) -> Any:
    words = {"trial": trial} if how.endswith("+trial") else {}
    if how == "trial":
        return function(trial)
    if how.startswith("keywords"):
        return function(**trial.params, **words)
    return function(dict(trial.params), **words)
