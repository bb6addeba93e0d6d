# SPDX-License-Identifier: Apache-2.0
"""Plots as inline SVG: no script, no font, no colour of their own (the page's style sheet gives them)."""
from __future__ import annotations

import math
from html import escape

from report import Figure, count, si

WIDTH, RIGHT, ROW, TOP, BOTTOM = 920, 112, 30, 12, 34
LEFT_LEAST, LEFT_MOST, LETTER = 236, 420, 7.3  # room for the names, and about how wide a letter is
RADIUS = (3.5, 5.0, 6.5)  # of the dots, smallest n first


def is_logarithmic(values: list[float]) -> bool:
    """Whether numbers are so far apart that a linear axis would hide the small ones."""
    positive = [value for value in values if value > 0]
    return len(positive) > 1 and max(positive) / min(positive) > 20


def linear_ticks(top: float) -> list[float]:
    """0 and three to six round steps, the last at or above top."""
    if top <= 0:
        return [0.0, 1.0]
    step = 10 ** math.floor(math.log10(top / 3))
    for wider in (1, 2, 5, 10):
        if top / (step * wider) <= 6:
            step *= wider
            break
    return [i * step for i in range(math.ceil(top / step - 1e-9) + 1)]


class Axis:
    """From values to x. On a logarithmic axis zero has no place: it stands at the left end."""

    def __init__(self, values: list[float], left: float = LEFT_LEAST) -> None:
        self.left = left
        self.logarithmic = is_logarithmic(values)
        if self.logarithmic:
            positive = [value for value in values if value > 0]
            self._low = math.floor(math.log10(min(positive)) - 0.05)
            self._high = math.ceil(math.log10(max(positive)) + 0.02)
            decades = self._high - self._low
            step = math.ceil(decades / 8)
            self.ticks = [10.0 ** power for power in range(self._low, self._high + 1, step)]
        else:
            self.ticks = linear_ticks(max(values, default=0.0))
            self._low, self._high = 0, self.ticks[-1]

    def x(self, value: float) -> float:
        if self.logarithmic:
            value = math.log10(value) if value > 0 else self._low
        share = (value - self._low) / (self._high - self._low)
        return round(self.left + min(max(share, 0.0), 1.0) * (WIDTH - self.left - RIGHT), 1)


def room_for(names: list[str]) -> float:
    """How far from the left the plot begins."""
    return min(LEFT_MOST, max(LEFT_LEAST, 24 + LETTER * max(map(len, names), default=0)))


def shortened(name: str, left: float) -> str:
    """A name that fits to the left of the plot."""
    letters = int((left - 24) / LETTER)
    return name if len(name) <= letters else name[:letters - 1] + "…"


def _label(figures: list[Figure]) -> str:
    """What stands at the right end of a row: the value at the largest n."""
    last = figures[-1]
    if not last["value"]:
        return "not measured" if last["skip"] else "over the time"
    return si(last["value"]["median"])


def _row(figures: list[Figure], sizes: list[int], axis: Axis, y: float) -> str:
    """One name: a dot per n, joined, each with its spread."""
    kind = "ours" if figures[0]["ours"] else "other"
    parts = [f'<text class="name {kind}" x="{axis.left - 14}" y="{y + 4}" text-anchor="end">'
             f'{escape(shortened(figures[0]["name"], axis.left))}</text>']
    shown = [figure for figure in figures if figure["value"]]
    points = [(axis.x(figure["value"]["median"]), figure) for figure in shown]
    if len(points) > 1:
        path = " ".join(f"{x},{y}" for x, _ in points)
        parts.append(f'<polyline class="link {kind}" points="{path}"/>')
    for x, figure in points:
        low, high = axis.x(figure["value"]["low"]), axis.x(figure["value"]["high"])
        place = sizes.index(figure["n"]) + max(0, len(RADIUS) - len(sizes))
        radius = RADIUS[min(place, len(RADIUS) - 1)]
        wrong = (" wrong" if figure["wrong"] else "") + (" guess" if figure["extrapolated"] else "")
        if high - low > 2 * radius:
            parts.append(f'<line class="spread {kind}" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>')
        title = f'{figure["name"]}, n = {figure["n"]:,}: {si(figure["value"]["median"])} {figure["unit"] or ""}'
        parts.append(f'<circle class="dot {kind}{wrong}" cx="{x}" cy="{y}" r="{radius}">'
                     f"<title>{escape(title)}</title></circle>")
    wrong = " wrong" if figures[-1]["wrong"] else ""
    parts.append(f'<text class="value {kind}{wrong}" x="{WIDTH - RIGHT + 14}" y="{y + 4}">'
                 f"{escape(_label(figures))}</text>")
    return "".join(parts)


def _grid(axis: Axis, bottom: float) -> str:
    parts = []
    for tick in axis.ticks:
        x = axis.x(tick)
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"/>'
                     f'<text class="tick" x="{x}" y="{bottom + 18}" text-anchor="middle">{si(tick)}</text>')
    return "".join(parts)


def plot(figures: list[Figure], title: str) -> str:
    """A row per name, a dot per n (the larger n, the larger the dot), on one axis."""
    names = list(dict.fromkeys(figure["name"] for figure in figures))
    sizes = sorted({figure["n"] for figure in figures})
    values = [edge for figure in figures if figure["value"] for edge in figure["value"].values()]
    if not values:
        return ""
    axis = Axis(values, room_for(names))
    bottom = TOP + ROW * len(names)
    rows = [_row(sorted((f for f in figures if f["name"] == name), key=lambda f: f["n"]), sizes, axis,
                 TOP + ROW * (i + 0.5)) for i, name in enumerate(names)]
    scale = "logarithmic" if axis.logarithmic else "linear"
    return (f'<svg viewBox="0 0 {WIDTH} {bottom + BOTTOM}" role="img" aria-label="{escape(title)}, {scale} scale">'
            f'{_grid(axis, bottom)}{"".join(rows)}</svg>')


def legend(sizes: list[int]) -> str:
    """What the sizes of the dots mean, for the line under a plot."""
    if not sizes or sizes == [0]:
        return ""
    return "n = " + ", ".join(count(size) for size in sizes) + (
        f" (the larger the dot, the more wait; at the right: {count(sizes[-1])})" if len(sizes) > 1 else "")
