#!/usr/bin/env python3
"""Prints shirabe_client/replies.py, the types of what the client is answered, from a server's own
description:

    sdk/python/make_replies.py http://HOST:PORT/openapi.json >sdk/python/shirabe_client/replies.py
"""

import json
import sys
import textwrap
import urllib.request

# What the client reads; with what these refer to.
READ = """AdditionalObjective Asked Attempt Candidates Change Checkpoint ErrorDetail Event Finding
LogPiece ObservationView ResultConstraint ResultFront Told Trial Variant""".split()
HEAD = '''"""What a server answers, as JSON: what `trial.raw`, `attempts()`, `events()` and others
hold. Made from /openapi.json by make_replies.py. What is not NotRequired is always there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if sys.version_info >= (3, 11):
    from typing import NotRequired
elif TYPE_CHECKING:
    from typing_extensions import NotRequired
'''
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def name_of(schema):
    return schema.get("$ref", "").rpartition("/")[2]


def type_of(schema):
    if "$ref" in schema:
        return name_of(schema)
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    words = [w for w in schema.get("enum", [schema.get("const")]) if w is not None]
    if words:
        types = [f"Literal[{', '.join(json.dumps(w) for w in words)}]"]
    else:
        types = [one_type(schema, kind) for kind in kinds if kind != "null"] or ["Any"]
    text = types[0] if len(types) == 1 else f"Union[{', '.join(types)}]"
    return f"Optional[{text}]" if "null" in kinds else text


def one_type(schema, kind):
    if kind == "array":
        return f"List[{type_of(schema['items'])}]"
    if kind == "object":
        return f"Dict[str, {type_of(schema.get('additionalProperties', {}))}]"
    return PLAIN[kind]


def class_of(name, schema):
    lines = [f"class {name}(TypedDict):"]
    for field, value in schema["properties"].items():
        text = type_of(value)
        if field not in schema.get("required", []):
            text = f"NotRequired[{text}]"
        line = f"    {field}: {text}"
        whole = f"{line}  # {value['description']}"
        short = len(whole) <= 100 and value["description"]
        lines += [whole] if short else textwrap.wrap(line, 100, subsequent_indent=" " * 8)
    return "\n".join(lines)


def module(document):
    schemas = document["components"]["schemas"]
    found = list(READ)
    for name in found:  # grows
        for field in schemas[name]["properties"].values():
            refers = name_of(field) or name_of(field.get("items", {}))
            found += [refers] if refers and refers not in found else []
    classes = [class_of(name, schemas[name]) for name in sorted(found)]
    return "\n\n\n".join([HEAD.rstrip(), *classes]) + "\n"


if __name__ == "__main__":
    with urllib.request.urlopen(sys.argv[1]) as reply:
        sys.stdout.write(module(json.load(reply)))
