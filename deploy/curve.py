#!/usr/bin/env python3
"""Draws how the best result of an experiment came about, as text:

    shirabe get trials NAME -o json | deploy/curve.py METRIC maximize|minimize

A column is a trial, in order; `·` is its own result, `*` the best until then. What gave no result
has no mark of its own.
"""

import json
import math
import sys

ROWS = 8
WIDTH = 64  # columns of a wide drawing; more trials share one


def results(items, metric, best):
    """(own, best until then) of each trial; own is None where there is none."""
    key = "max" if best is max else "min"
    drawn, record = [], None
    for item in sorted(items, key=lambda item: int(item["metadata"]["name"].rsplit("-", 1)[1])):
        metrics = item.get("status", {}).get("observation", {}).get("metrics", [])
        values = [float(m[key]) for m in metrics if m["name"] == metric]
        own = values[0] if values and math.isfinite(values[0]) else None
        if own is not None:
            record = own if record is None else best(record, own)
        drawn.append((own, record))
    return drawn


def draw(drawn, best):
    shown = [value for pair in drawn for value in pair if value is not None]
    if not shown:
        return ["no trial has given a result yet"]
    low, high = min(shown), max(shown)
    share = -(-len(drawn) // WIDTH)
    wide = 2 if len(drawn) * 2 <= WIDTH else 1

    def row(value):
        return 0 if high == low else round((high - value) / (high - low) * (ROWS - 1))

    columns = []
    for first in range(0, len(drawn), share):
        group = drawn[first:first + share]
        marks = [" "] * ROWS
        for own, _ in group:
            if own is not None:
                marks[row(own)] = "·"
        if group[-1][1] is not None:
            marks[row(group[-1][1])] = "*"
        columns.append(marks)
    lines = []
    for at in range(1 if high == low else ROWS):
        label = f"{high - (high - low) * at / (ROWS - 1):10.4g}"
        lines.append(f"{label} |" + "".join(" " * (wide - 1) + marks[at] for marks in columns))
    each = "" if share == 1 else f", {share} in a column"
    lines.append(" " * 10 + " +" + "-" * (len(columns) * wide))
    lines.append(" " * 12 + f"trials 1 to {len(drawn)}{each}; * the best until then, · each result")
    return [line.rstrip() for line in lines]


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in ("maximize", "minimize"):
        sys.exit(__doc__)
    best = max if sys.argv[2] == "maximize" else min
    drawn = results(json.load(sys.stdin)["items"], sys.argv[1], best)
    print("\n".join(draw(drawn, best)))


main()
