"""The parts of an experiment that `KatibClient.tune` writes: the search space, the algorithm, and a
Job whose container runs a function's source."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import textwrap
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from .records import plain

Json = Dict[str, Any]

# Reads name=value arguments by the types of the search space, and calls the objective with them.
_MAIN = """

import json as _json, sys as _sys
_types = {types}
_values = dict(_word.split("=", 1) for _word in _sys.argv[1:])
_readers = {{"int": int, "double": float}}
{name}({{_k: _readers.get(_types.get(_k), str)(_v) for _k, _v in _values.items()}})
"""


def space(parameters: Mapping[str, Any]) -> List[Json]:
    """spec.parameters: those of `parameters` that are searched."""
    return [{"name": k, **plain(v)} for k, v in parameters.items() if _is_space(v)]


def algorithm(name: str, settings: Union[Mapping[str, Any], List[Any], None]) -> Json:
    """spec.algorithm."""
    return {"algorithmName": name, "algorithmSettings": _settings(settings)}


def collector(config: Optional[Mapping[str, Any]]) -> Json:
    """spec.metricsCollectorSpec."""
    return {"collector": dict(config or {"kind": "StdOut"})}


def container(
    image: Optional[str],
    variables: Union[Mapping[str, str], List[Any], None],
    resources: Optional[Mapping[str, Any]],
) -> Json:
    """What tune() says of the container that runs a trial."""
    return {
        "image": image or "python:3.11",
        "env": _environment(variables),
        "resources": _resources(resources),
    }


def _is_space(value: Any) -> bool:
    return isinstance(plain(value), dict) and "feasibleSpace" in plain(value)


def _settings(settings: Union[Mapping[str, Any], List[Any], None]) -> Optional[List[Json]]:
    if not settings:
        return None
    if isinstance(settings, Mapping):
        return [{"name": name, "value": str(value)} for name, value in settings.items()]
    return [plain(setting) for setting in settings]


def _environment(variables: Union[Mapping[str, str], List[Any], None]) -> Optional[List[Json]]:
    if not variables:
        return None
    if isinstance(variables, Mapping):
        return [{"name": name, "value": str(value)} for name, value in variables.items()]
    return [plain(variable) for variable in variables]


def _resources(resources: Optional[Mapping[str, Any]]) -> Optional[Json]:
    if not resources:
        return None
    amounts = {("nvidia.com/gpu" if k == "gpu" else k): str(v) for k, v in resources.items()}
    return {"requests": amounts, "limits": amounts}


def template(
    objective: Callable[[Dict[str, Any]], Any],
    parameters: Mapping[str, Any],
    container: Json,
    retain: bool,
) -> Json:
    """A Job whose container runs the function's source with the trial's parameters."""
    spaces = {name: plain(space) for name, space in parameters.items() if _is_space(space)}
    types = {name: space.get("parameterType", "categorical") for name, space in spaces.items()}
    code = _program(objective, types)
    fixed = [f"{name}={value}" for name, value in parameters.items() if name not in spaces]
    searched = [f"{name}=${{trialParameters.{name}}}" for name in spaces]
    main = {
        "name": "training-container",
        "command": ["python3", "-u", "-c", code],
        "args": searched + fixed,
        **{key: value for key, value in container.items() if value is not None},
    }
    return {
        "retain": retain,
        "primaryContainerName": "training-container",
        "trialParameters": [{"name": name, "reference": name} for name in spaces],
        "trialSpec": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "spec": {"template": {"spec": {"containers": [main], "restartPolicy": "Never"}}},
        },
    }


def _program(objective: Callable[[Dict[str, Any]], Any], types: Dict[str, Any]) -> str:
    """The objective's source, and what calls it. ValueError if that cannot run by itself."""
    try:
        source = textwrap.dedent(inspect.getsource(objective))
        code = source + _MAIN.format(types=json.dumps(types), name=_defined_by(source))
        compile(code, "<objective>", "exec")
    except (OSError, TypeError, ValueError, SyntaxError) as error:
        raise ValueError(
            "objective must be a function defined with def, whose source runs by itself in the "
            f"trial, not {objective!r}: {error}"
        ) from None
    return code


def _defined_by(source: str) -> str:
    """The name of the one function (or class) that the source defines."""
    found = ast.parse(source).body
    if len(found) != 1 or not isinstance(found[0], (ast.FunctionDef, ast.ClassDef)):
        raise ValueError("its source is no def")
    for decorator in map(ast.unparse, found[0].decorator_list):
        if not hasattr(builtins, decorator):
            raise ValueError(f"@{decorator} does not travel with it: remove the decorator")
    return found[0].name
