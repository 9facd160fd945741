"""The front of several objectives: the results that no other dominates, which is to be as good in
all of them. Pure.

A result is {metric: value}; directions are {metric: "minimize" or "maximize"}, in the order of the
specification. Losses are the values with the sign that is to be minimised.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence

__all__ = ["choose", "front_of", "is_as_good", "losses_of"]

Values = Mapping[str, float]
Directions = Mapping[str, str]


def losses_of(values: Values, directions: Directions) -> List[float]:
    return [-values[n] if way == "maximize" else values[n] for n, way in directions.items()]


def front_of(results: Sequence[Values], directions: Directions) -> List[int]:
    """The places of the results on the front, the best in the first objective first; of those that
    are equal in all of them, the earliest."""
    losses = [losses_of(values, directions) for values in results]
    front: List[int] = []
    for place in sorted(range(len(losses)), key=lambda i: (losses[i], i)):
        # What comes later is no better in the first objective. The last of the front are the best
        # in the others, and are compared first.
        if not any(is_as_good(losses[i], losses[place]) for i in reversed(front)):
            front.append(place)
    return front


def choose(
    results: Sequence[Values],
    directions: Directions,
    weights: Optional[Mapping[str, float]],
    order: Optional[Sequence[str]],
) -> int:
    """The place of the one result of a front, not an empty one, that `shirabe best` chooses too.

    weights: {metric: weight}: the least weighted sum of the objectives, each as a part of its range
        on the front, 0 the best and 1 the worst. An objective without a weight does not count.
    order: metrics: the best in the first of them; a later one decides where those before are equal.
    """
    if (weights is None) == (order is None):
        raise ValueError('give weights={"metric": 1, …} or order=["metric", …], one of them')
    losses = [losses_of(values, directions) for values in results]
    places = {name: place for place, name in enumerate(directions)}
    if weights is not None:
        sums = _weighted(losses, _checked_weights(weights, places))
        return min(range(len(losses)), key=sums.__getitem__)
    assert order is not None
    if isinstance(order, str) or not order:
        raise ValueError(f"order is a list of metrics, not {order!r}")
    ranked = [_place("order", name, places) for name in order]
    return min(range(len(losses)), key=lambda i: [losses[i][place] for place in ranked])


def is_as_good(some: Sequence[float], other: Sequence[float]) -> bool:
    """Of two vectors of losses, whether the first is as good in all, or better."""
    return all(a <= b for a, b in zip(some, other))


def _place(what: str, name: str, places: Mapping[str, int]) -> int:
    if name not in places:
        raise ValueError(f"{what}: {name!r} is no objective; they are {', '.join(places)}")
    return places[name]


def _checked_weights(weights: Mapping[str, float], places: Mapping[str, int]) -> Dict[int, float]:
    checked = {}
    for name, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise TypeError(f"weights[{name!r}] must be a number, not {weight!r}")
        if not 0 < weight < float("inf"):
            raise ValueError(f"weights[{name!r}] must be above 0 and finite, not {weight}")
        checked[_place("weights", name, places)] = float(weight)
    if not checked:
        raise ValueError('weights is empty: give {"metric": weight, …}')
    return checked


def _weighted(losses: Sequence[Sequence[float]], weights: Mapping[int, float]) -> List[float]:
    sums = [0.0] * len(losses)
    for place, weight in weights.items():
        column = [one[place] for one in losses]
        least, span = min(column), max(column) - min(column)
        for index, loss in enumerate(column):
            sums[index] += weight * (loss - least) / span if span > 0 else 0.0
    return sums
