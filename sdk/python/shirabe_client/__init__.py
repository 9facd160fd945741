"""A Shirabe server from Python: `Client`, and Katib's names in `shirabe_client.compat.katib`.

Code that runs inside a trial wants `import shirabe` instead: one file, no server.
"""

from .client import Best, Change, Client, Experiment, FrontPoint, Observation, Trial
from .errors import (
    Conflict,
    Denied,
    Detail,
    EndedOtherwise,
    Invalid,
    NotFound,
    ShirabeError,
    Unavailable,
    WaitTimeout,
)

__all__ = [
    "Best",
    "Change",
    "Client",
    "Conflict",
    "Denied",
    "Detail",
    "EndedOtherwise",
    "Experiment",
    "FrontPoint",
    "Invalid",
    "NotFound",
    "Observation",
    "ShirabeError",
    "Trial",
    "Unavailable",
    "WaitTimeout",
]
