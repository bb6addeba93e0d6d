# SPDX-License-Identifier: Apache-2.0
"""From the lines that groups print to what a run found: medians, spread, ratios, and the verdict."""
from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median
from typing import Any

from groups import Verdict

Line = dict[str, Any]
Figure = dict[str, Any]
_KEY = ("metric", "name", "n", "unit")


def spread(values: Iterable[float]) -> dict[str, float] | None:
    """Median, smallest and largest of some numbers; None of none."""
    numbers = sorted(values)
    if not numbers:
        return None
    return {"median": median(numbers), "low": numbers[0], "high": numbers[-1]}


def _key(line: Line) -> tuple[Any, ...]:
    return (line.get("metric", ""), line["name"], int(line.get("n", 0)), line.get("unit", ""))


def check_line(line: Line) -> str | None:
    """What is wrong with a line that a group printed as a figure; None if nothing is."""
    if not isinstance(line.get("name"), str) or not line["name"]:
        return "a figure without a name"
    if "skip" in line:
        return None
    if line.get("better", "higher") not in ("higher", "lower"):
        return "`better` is neither higher nor lower"
    value = line.get("value")
    if value is None and "over" in line:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return "a value that is no number"
    return None


def _ratio(line: Line, values: dict[tuple[Any, ...], float]) -> float | None:
    """Of one line to its baseline in the same repetition."""
    if isinstance(line.get("ratio"), (int, float)):
        return float(line["ratio"])
    if not isinstance(line.get("baseline"), str) or "value" not in line:
        return None
    base = values.get((line.get("metric", ""), line["baseline"], int(line.get("n", 0)), line.get("unit", "")))
    return line["value"] / base if base else None


def _met(figure: Figure) -> bool | None:
    """Whether the target the design names is reached; None without one."""
    target = figure.get("target")
    reached = figure["ratio"] or (None if figure["baseline"] else figure["value"])
    if target is None or reached is None:
        return None
    return reached["median"] >= target if figure["better"] == "higher" else reached["median"] <= target


def _figure(lines: list[Line], ratios: list[float]) -> Figure:
    last = lines[-1]
    figure: Figure = {name: last.get(name) for name in ("unit", "better", "baseline", "target", "skip")}
    if not isinstance(figure["baseline"], str):  # a number: the group compared by itself
        figure["baseline"] = None
    figure |= {"metric": last.get("metric", ""), "name": last["name"], "n": int(last.get("n", 0)),
               "better": figure["better"] or "higher",
               "ours": bool(last.get("ours")), "extrapolated": any(line.get("extrapolated") for line in lines),
               "values": [line["value"] for line in lines if "value" in line],
               "wrong": max(int(line.get("wrong", 0)) for line in lines),
               "notes": sorted({line["note"] for line in lines if line.get("note")}),
               "ratio": spread(ratios)}
    figure["value"] = spread(figure["values"])
    skipped = [line["skip"] for line in lines if line.get("skip")]
    if skipped and figure["values"]:
        figure["skip"] = None
        figure["notes"].append(f"not measured in {len(skipped)} of {len(lines)} repetitions: {skipped[-1]}")
    late = [line for line in lines if "over" in line]
    if late:
        figure |= {name: late[-1].get(name) for name in ("over", "done", "of")}
    figure["met"] = _met(figure)
    return figure


def collect(repetitions: list[list[Line]]) -> list[Figure]:
    """One figure per metric, name and n, in the order they first came, over all repetitions."""
    lines: dict[tuple[Any, ...], list[Line]] = {}
    ratios: dict[tuple[Any, ...], list[float]] = {}
    for repetition in repetitions:
        measured: dict[tuple[Any, ...], list[float]] = {}
        for line in repetition:
            if "value" in line:
                measured.setdefault(_key(line), []).append(line["value"])
        values = {key: median(found) for key, found in measured.items()}
        for line in repetition:
            lines.setdefault(_key(line), []).append(line)
            ratio = _ratio(line, values)
            if ratio is not None:
                ratios.setdefault(_key(line), []).append(ratio)
    return [_figure(found, ratios.get(key, [])) for key, found in lines.items()]


def metrics(figures: list[Figure]) -> list[str]:
    """The metrics, in the order they first came."""
    return list(dict.fromkeys(figure["metric"] for figure in figures))


def baseline_of(figures: list[Figure]) -> str | None:
    """What all of them that have a ratio are compared with; None if that differs from one to the other."""
    names = {figure["baseline"] for figure in figures if figure["baseline"]}
    return names.pop() if len(names) == 1 else None


def factor(ours: Figure, theirs: Figure) -> float | None:
    """How many times better ours is (below 1: worse); None where either has no value."""
    if not ours["value"] or not theirs["value"]:
        return None
    good, bad = ours["value"]["median"], theirs["value"]["median"]
    if ours["better"] == "lower":
        good, bad = bad, good
    return good / bad if bad else None


def judge(figures: list[Figure], verdict: Verdict) -> dict[str, Any]:
    """At the largest n: by how much ours beats each other name, by metric, and why not where it does not."""
    found = {(f["metric"], f["name"], f["n"]): f for f in figures}
    largest = max((n for metric, name, n in found if name == verdict.ours and metric in verdict.why), default=0)
    names = [name for name in dict.fromkeys(f["name"] for f in figures)
             if name != verdict.ours and any((metric, name, largest) in found for metric in verdict.why)]
    rows = []
    for name in names:
        cells = {}
        for metric, why in verdict.why.items():
            ours, theirs = found.get((metric, verdict.ours, largest)), found.get((metric, name, largest))
            if ours is None or theirs is None:
                continue
            times = factor(ours, theirs)
            cells[metric] = {"factor": times, "why": why if times is not None and times < 1 else None,
                             "note": theirs["skip"] or (f"over {theirs['over']:.0f} s" if "over" in theirs else None)}
        rows.append({"name": name, "limit": name in verdict.limits, "cells": cells})
    return {"n": largest, "ours": verdict.ours, "metrics": list(verdict.why), "rows": rows}


def si(value: float) -> str:
    """A number for people, three digits: 1,234 · 12.3k · 4.56M · 0.012."""
    size = abs(value)
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            scaled = value / {"G": 1e9, "M": 1e6, "k": 1e3}[letter]
            return f"{scaled:.3g}{letter}" if abs(scaled) < 999.5 else f"{scaled:,.0f}{letter}"
    if size >= 1000:
        return f"{value:,.0f}"
    return "0" if value == 0 else f"{value:.3g}"


def times(value: float | None) -> str:
    """A ratio for people: 0.52×, 1,200×, 1/640×."""
    if value is None:
        return ""
    if 0 < value < 0.02:
        return f"1/{1 / value:,.0f}×"
    return f"{value:,.0f}×" if value >= 99.5 else f"{value:.2g}×"


def count(n: int) -> str:
    """How many wait, for a heading: 10k, 1M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if n >= size and n % size == 0:
            return f"{n // size}{letter}"
    return f"{n:,}"
