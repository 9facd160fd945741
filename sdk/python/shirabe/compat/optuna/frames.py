"""Study.trials_dataframe: the columns that Optuna has."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Tuple

from .trial import FrozenTrial

if TYPE_CHECKING:
    from .study import Study

__all__ = ["ATTRIBUTES", "frame_of"]

ATTRIBUTES = (
    "number",
    "value",
    "datetime_start",
    "datetime_complete",
    "duration",
    "params",
    "user_attrs",
    "system_attrs",
    "state",
)


def frame_of(study: Study, attrs: Tuple[str, ...]) -> Any:
    """A row a trial. With several objectives values_0, values_1, … stand in the place of value, and
    the names of set_metric_names in that of the numbers."""
    pandas: Any = importlib.import_module("pandas")
    several = len(study.directions) > 1
    names = study.metric_names
    columns = {"value": "values"} if several else {}
    wanted = [columns.get(attr, attr) for attr in attrs]
    ends: List[Any] = list(names or range(len(study.directions)))
    return pandas.DataFrame([_row(trial, wanted, ends, bool(names)) for trial in study.trials])


def _row(
    trial: FrozenTrial, attrs: Sequence[str], ends: Sequence[Any], named: bool
) -> Dict[str, Any]:
    row: Dict[str, Any] = {}
    for attr in attrs:
        value = getattr(trial, attr)
        if attr == "values":
            values = value or [None] * len(ends)
            row.update({f"values_{end}": part for end, part in zip(ends, values)})
        elif attr == "value":
            row[f"value_{ends[0]}" if named else "value"] = value
        elif isinstance(value, Mapping):
            row.update({f"{attr}_{name}": part for name, part in value.items()})
        else:
            row[attr] = value.name if attr == "state" else value
    return row
