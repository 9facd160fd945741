"""Katib's model objects, both ways: its classes become plain JSON, and replies of the server can
be read with its attribute names (experiment.status.current_optimal_trial.best_trial_name)."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping

__all__ = ["Record", "plain", "wrap"]


class Record(Mapping[str, Any]):
    """A JSON object with attributes in Katib's spelling; None for what is not there. Also a
    mapping, with the keys of the JSON."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return wrap(self._data.get(_camel(name)))

    def __getitem__(self, key: str) -> Any:
        return wrap(self._data[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"Record({dict(self._data)!r})"

    def to_dict(self) -> Dict[str, Any]:
        return dict(self._data)


def wrap(value: Any) -> Any:
    """Objects as Records, in lists too."""
    if isinstance(value, Mapping):
        return Record(value)
    if isinstance(value, list):
        return [wrap(item) for item in value]
    return value


def plain(value: Any) -> Any:
    """A model of Katib's or Kubernetes' packages (which know their JSON names), a Record, a mapping
    or a list, as JSON. What is None is left out."""
    names = getattr(value, "attribute_map", None)
    if isinstance(names, Mapping):
        members: Dict[str, Any] = {json: getattr(value, name) for name, json in names.items()}
        return plain(members)
    if isinstance(value, Mapping):
        items: Dict[str, Any] = {k: plain(v) for k, v in value.items() if v is not None}
        return items
    if isinstance(value, (list, tuple)):
        listed: List[Any] = [plain(item) for item in value]
        return listed
    return value


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda found: found.group(1).upper(), name)
