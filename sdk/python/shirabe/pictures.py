"""The picture of a Result in a notebook: the best value over the trials, or the front."""

from __future__ import annotations

import html
from typing import List, Optional, Sequence, Tuple

__all__ = ["curve", "front"]

Point = Tuple[float, float]

_WIDTH, _HEIGHT = 480, 120  # in pixels
_EDGE = 5
_TALL = 240  # of a front


def curve(values: Sequence[Optional[float]], objective: str) -> str:
    """The best value so far over the trials; nothing of fewer than two."""
    points = [(float(i), value) for i, value in enumerate(values) if value is not None]
    if len(points) < 2:
        return ""
    ends = f"{points[0][1]:.4g} to {points[-1][1]:.4g}"
    last = (float(len(values) - 1), points[0][1])
    placed = _placed(points, [(0.0, points[0][1]), last], _HEIGHT)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    line = f'<polyline fill="none" stroke="#2a7" stroke-width="2" points="{path}"/>'
    return _svg(f"best {objective} so far: {ends}", line, _HEIGHT)


def front(best: Sequence[Point], others: Sequence[Point], names: Tuple[str, str]) -> str:
    """Trials by two objectives, those of the front marked; nothing without a front."""
    if not best:
        return ""
    label = f"{names[1]} by {names[0]}: {len(best)} trials on the front, {len(others)} others"
    dots = _dots(_placed(others, best, _TALL), '2.5" fill="#888" fill-opacity="0.5')
    dots += _dots(_placed(best, others, _TALL), '3.5" fill="#2a7')
    across, up = (html.escape(name) for name in names)
    axes = (
        f'<text x="{_WIDTH - _EDGE}" y="{_TALL - _EDGE}" font-size="11" fill="#888" '
        f'text-anchor="end">{across} →</text>'
        f'<text x="{_EDGE}" y="12" font-size="11" fill="#888">↑ {up}</text>'
    )
    return _svg(label, axes + dots, _TALL)


def _placed(points: Sequence[Point], others: Sequence[Point], height: int) -> List[Point]:
    """In pixels, on a picture that holds the others, too."""
    every = [*points, *others]
    if not every:
        return []
    left, right = min(x for x, _ in every), max(x for x, _ in every)
    low, high = min(y for _, y in every), max(y for _, y in every)
    across = (_WIDTH - 2 * _EDGE) / ((right - left) or 1.0)
    up = (height - 2 * _EDGE) / ((high - low) or 1.0)
    return [(_EDGE + (x - left) * across, _EDGE + (high - y) * up) for x, y in points]


def _dots(points: Sequence[Point], radius_and_fill: str) -> str:
    return "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius_and_fill}"/>' for x, y in points)


def _svg(label: str, inside: str, height: int) -> str:
    text = html.escape(label)
    return (
        f'<svg width="{_WIDTH}" height="{height}" role="img" aria-label="{text}">'
        f"<title>{text}</title>{inside}</svg>"
    )
