# SPDX-License-Identifier: Apache-2.0
"""What a run found, as tables on a terminal."""
from __future__ import annotations

from typing import Any

from report import Figure, baseline_of, count, metrics, si, times


def table(head: list[str], rows: list[list[str]], indent: str = "  ") -> str:
    """Columns as wide as their widest cell; the first and the last to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [cell.ljust(widths[i]) if i in (0, len(row) - 1) else cell.rjust(widths[i])
                 for i, cell in enumerate(row)]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def remarks(figure: Figure) -> list[str]:
    """What has to be said beside a figure."""
    said = []
    if figure["skip"]:
        said.append(f"not measured: {figure['skip']}")
    if "over" in figure:
        said.append(f"over {figure['over']:.0f} s, {figure['done']:,} of {figure['of']:,} done")
    if figure["wrong"]:
        said.append(f"WRONG: {figure['wrong']:,}")
    if figure["met"] is not None:
        said.append(f"target {figure['target']:g} {'reached' if figure['met'] else 'not reached'}")
    return said + figure["notes"]


def value_cells(figure: Figure) -> list[str]:
    """Median, spread and ratio to the baseline."""
    value, ratio = figure["value"], figure["ratio"]
    if not value:
        return ["–", "", ""]
    return [si(value["median"]),
            f"{si(value['low'])}–{si(value['high'])}" if len(figure["values"]) > 1 else "",
            times(ratio["median"]) if ratio else ""]


def metric_table(figures: list[Figure]) -> str:
    """All figures of one metric."""
    baseline = baseline_of(figures)
    rows = [[figure["name"], count(figure["n"]) if figure["n"] else "", *value_cells(figure),
             "; ".join(remarks(figure))] for figure in sorted(figures, key=lambda figure: figure["n"])]
    return table(["", "n", "median", "min–max", f"× {baseline}" if baseline else "ratio", ""], rows)


def verdict_text(verdict: dict[str, Any]) -> str:
    """How many times better ours is than each other name."""
    rows = []
    for row in verdict["rows"]:
        cells = [row["cells"].get(metric) for metric in verdict["metrics"]]
        rows.append([row["name"] + (" (the limit)" if row["limit"] else ""),
                     *["" if cell is None else times(cell["factor"]) or "–" for cell in cells], ""])
    return (f"  {verdict['ours']} is so many times better, with {verdict['n']:,} waiting (below 1: worse)\n"
            + table(["", *verdict["metrics"], ""], rows))


def group_text(group: dict[str, Any]) -> str:
    """Everything a group found."""
    parts = [f"{group['title']} ({group['name']})"]
    if group["status"] != "ok":
        parts.append(f"  {group['status']}: {group['why']}")
    for metric in metrics(group["figures"]):
        chosen = [figure for figure in group["figures"] if figure["metric"] == metric]
        better = f", {chosen[0]['better']} is better" if chosen[0]["better"] else ""
        parts.append(f"\n  {metric or group['title']} [{chosen[0]['unit'] or ''}]{better}\n{metric_table(chosen)}")
    if group.get("verdict"):
        parts.append("\n" + verdict_text(group["verdict"]))
    return "\n".join(parts) + "\n"
