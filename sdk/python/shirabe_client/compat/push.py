"""Katib's report_metrics, for training code that pushes its metrics itself."""

from __future__ import annotations

import os
from typing import Any, Dict

from shirabe.helper import _report

__all__ = ["report_metrics"]


def report_metrics(
    metrics: Dict[str, Any], db_manager_address: str = "", timeout: float = 0
) -> None:
    """Values of the trial that this program runs in: {"loss": 0.01, "accuracy": 0.99}. Of each
    metric they are counted: the first call is step 1.

    They go the way of shirabe.report, so the address and the timeout of Katib's DB manager are
    taken and not used, and nothing but the standard library is needed in the image.

    ValueError: no trial (KATIB_TRIAL_NAME is not set), or a value that is no number. RuntimeError:
    they cannot be stored.
    """
    name = os.environ.get("KATIB_TRIAL_NAME")
    if name is None:
        raise ValueError("The Trial name is not passed to environment variables")
    values = {}
    for metric, value in metrics.items():
        try:
            values[metric] = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"metric {metric}: {value!r} cannot be converted to a float") from None
    path = os.environ.get("SHIRABE_METRICS_FILE", "")
    if not os.path.isdir(os.path.dirname(path)):
        raise RuntimeError(
            f"Unable to push metrics of Trial {name}: SHIRABE_METRICS_FILE={path!r} is in no folder"
        )
    _report(None, values)
