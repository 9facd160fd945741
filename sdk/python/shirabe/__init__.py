"""Shirabe tunes hyperparameters: of a Python function, without a server,

    best = shirabe.optimize(train, {"lr": shirabe.log(1e-5, 1e-1), "opt": ["sgd", "adam"]},
                            minimize="loss", trials=50)

of one objective or several, with constraints on results; and, in a program that Shirabe runs as a
trial, `params`, `report`, `resume`, `checkpoint`, `should_checkpoint`, `should_stop` and `done`,
which helper.py explains: one file that needs nothing else. The rest is loaded when it is first
used. Only the standard library.
"""

import importlib
from typing import TYPE_CHECKING, Any, List

from .helper import (
    checkpoint,
    done,
    params,
    report,
    resume,
    should_checkpoint,
    should_stop,
)

if TYPE_CHECKING:
    from .outcome import Infeasible, TrialFailed
    from .result import Result, TrialResult
    from .space import choice as choice
    from .space import float_, int_
    from .space import log as log
    from .trial import Trial
    from .tuning import optimize

    float = float_  # by an assignment: type checkers take `import … as float` for private
    int = int_

# float and int are left out of `import *`, which must not hide Python's own.
__all__ = [
    "Infeasible",
    "Result",
    "Trial",
    "TrialFailed",
    "TrialResult",
    "checkpoint",
    "done",
    "optimize",
    "params",
    "report",
    "resume",
    "should_checkpoint",
    "should_stop",
]
_PLACES = {
    "Infeasible": "outcome",
    "Result": "result",
    "Trial": "trial",
    "TrialFailed": "outcome",
    "TrialResult": "result",
    "choice": "space",
    "float": "space.float_",
    "int": "space.int_",
    "log": "space",
    "optimize": "tuning",
}


def __getattr__(name: str) -> Any:
    if name == "compat":
        return importlib.import_module(".compat", __name__)
    if name not in _PLACES:
        raise AttributeError(f"module 'shirabe' has no {name!r}")
    module, _, attribute = _PLACES[name].partition(".")
    found = getattr(importlib.import_module("." + module, __name__), attribute or name)
    globals()[name] = found
    return found


def __dir__() -> List[str]:
    return sorted({*globals(), *_PLACES, "compat"})
