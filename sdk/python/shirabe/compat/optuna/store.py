"""Making, loading and removing studies."""

from __future__ import annotations

import json
import uuid
from typing import Any, List, Optional, Sequence

from .engine import Engine, folder_of, meta_path
from .exceptions import DuplicatedStudyError
from .logging import get_logger
from .pruners import BasePruner
from .samplers import BaseSampler
from .study import Study

__all__ = ["create_study", "delete_study", "get_all_study_names", "load_study"]

_log = get_logger("shirabe.compat.optuna")


def create_study(
    *,
    storage: Any = None,
    sampler: Optional[BaseSampler] = None,
    pruner: Optional[BasePruner] = None,
    study_name: Optional[str] = None,
    direction: Any = None,
    load_if_exists: bool = False,
    directions: Optional[Sequence[Any]] = None,
) -> Study:
    """A new study. direction: minimize or maximize; directions: of several objectives, of which the
    function returns the values in this order. storage: a folder, or a sqlite:/// address, beside
    whose file the folder is; without one, it goes with this process."""
    if directions is not None:
        if direction is not None:
            raise ValueError("give direction or directions, not both")
        if len(directions) == 0:
            raise ValueError("The number of objectives must be greater than 0.")
    words = [_direction(given) for given in directions or [direction]]
    name = study_name or f"no-name-{uuid.uuid4()}"
    known = storage is not None and meta_path(folder_of(storage), name).exists()
    if known and not load_if_exists:
        raise DuplicatedStudyError(
            f"Another study with name '{name}' already exists: give another name, or "
            "load_if_exists=True"
        )
    study = Study(Engine(storage, name, words), sampler, pruner)
    where = "in memory" if storage is None else f"in {study.engine.folder}"
    if known:
        _log.info("Using an existing study %s with name: %s", where, name)
    else:
        _log.info("A new study created %s with name: %s", where, name)
    return study


def load_study(
    *,
    study_name: Optional[str],
    storage: Any,
    sampler: Optional[BaseSampler] = None,
    pruner: Optional[BasePruner] = None,
) -> Study:
    """A study of a storage; KeyError if there is none. Its sampler and pruner stay the first."""
    names = get_all_study_names(storage)
    name = names[0] if study_name is None and len(names) == 1 else study_name
    if name is None or name not in names:
        raise KeyError(f"Record does not exist: study {name!r} in {storage!r}, which has {names}")
    return Study(Engine(storage, name, ["minimize"]), sampler, pruner)


def _direction(given: Any) -> str:
    word = str(getattr(given, "name", given or "minimize")).lower()
    if word not in ("minimize", "maximize"):
        raise ValueError(f"direction={given!r}: it is minimize or maximize")
    return word


def delete_study(*, study_name: str, storage: Any) -> None:
    """Removes it with its trials; KeyError if there is none."""
    study = load_study(study_name=study_name, storage=storage)
    if study.engine.core is not None:
        study.engine.core.delete()
    study.close()
    meta_path(folder_of(storage), study_name).unlink()


def get_all_study_names(storage: Any) -> List[str]:
    folder = meta_path(folder_of(storage), "x").parent
    return sorted(json.loads(path.read_text("utf-8"))["name"] for path in folder.glob("*.json"))
