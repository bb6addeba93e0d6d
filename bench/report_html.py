# SPDX-License-Identifier: Apache-2.0
"""What a run found, as one HTML page: nothing to fetch, no script, light and dark."""
from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from report import Figure, baseline_of, count, metrics, si, times
from report_svg import is_logarithmic, legend, plot
from report_table import remarks

STYLE = (Path(__file__).parent / "report.css").read_text()

READING = """
<p>Every figure is a <strong>ratio in one run</strong>: the same machine, the same servers, the same client, minutes
apart. The ratio is worth more than the figure beside it: another machine gives other figures, but much the same ratios.
Figures are medians over the repetitions; the pale bar behind a dot, and min–max in the tables, is the spread.
Where figures lie far apart the scale is logarithmic: each line is so many times the one before.</p>
"""

LIMITS = """
<p><strong>What this cannot show.</strong> Servers and load generator share one machine and talk over unix sockets and
loopback: network time is missing everywhere, and on a machine of few cores the generator takes time from what it
measures. Redis runs without persistence in all cases (PostgreSQL with its own, as its users do): with an append-only
file all Redis figures fall, and no design is spared. One queue, one lane, visitors that behave; nothing here says how a
system behaves when things break, except the two rows on what goes wrong. The designs of others are rebuilt from what
their authors wrote, in C and as well as the design allows, so they are faster here than where they come from.</p>
"""


def linked(text: str) -> str:
    """Escaped, with addresses as links."""
    return re.sub(r"https?://[^\s,;)]+", lambda found: f'<a href="{found[0]}">{found[0]}</a>', escape(text))


def definitions(pairs: dict[str, str]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs.items())
    return f"<dl>{rows}</dl>"


def _cells(figure: Figure, repeated: bool) -> str:
    value, ratio = figure["value"], figure["ratio"]
    cells = [si(value["median"]) if value else "–"]
    if repeated:
        cells.append(f"{si(value['low'])}–{si(value['high'])}" if value and len(figure["values"]) > 1 else "")
    cells.append(times(ratio["median"]) if ratio else "")
    return "".join(f"<td>{cell}</td>" for cell in cells)


def _note(figure: Figure) -> str:
    said = [f'<span class="wrong">{escape(text)}</span>' if text.startswith("WRONG") else escape(text)
            for text in remarks(figure)]
    return "; ".join(said)


def figure_table(figures: list[Figure]) -> str:
    """All figures of one metric, for those who read numbers."""
    repeated = any(len(figure["values"]) > 1 for figure in figures)
    baseline = baseline_of(figures)
    head = "<th scope=col></th><th scope=col>n</th><th scope=col>median</th>" + (
        "<th scope=col>min–max</th>" if repeated else "") + (
        f"<th scope=col>× {escape(baseline)}</th>" if baseline else "<th scope=col>ratio</th>") + "<th scope=col></th>"
    rows = "".join(
        f'<tr class="{"ours" if figure["ours"] else ""}"><th scope=row>{escape(figure["name"])}</th>'
        f'<td>{count(figure["n"]) if figure["n"] else ""}</td>{_cells(figure, repeated)}'
        f"<td class=text>{_note(figure)}</td></tr>"
        for figure in sorted(figures, key=lambda figure: figure["n"]))
    return f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _reading(figures: list[Figure]) -> list[str]:
    """What one has to know to read a plot right."""
    values = [edge for figure in figures if figure["value"] for edge in figure["value"].values()]
    return (["logarithmic scale"] if is_logarithmic(values) else []) + (
        ["hollow: extrapolated, see the table"] if any(figure["extrapolated"] for figure in figures) else [])


def metric_part(metric: str, figures: list[Figure], title: str) -> str:
    """One plot with its table."""
    unit, better = figures[0]["unit"] or "", figures[0]["better"]
    heading = metric[:1].upper() + metric[1:] if metric else title
    sizes = sorted({figure["n"] for figure in figures})
    said = [unit, f"{better} is better" if better else "", legend(sizes), *_reading(figures)]
    caption = ", ".join(part for part in said if part)
    return (f"<figure><h3>{escape(heading)}</h3><figcaption>{escape(caption)}</figcaption>{plot(figures, heading)}"
            f"<details><summary>Table</summary>{figure_table(figures)}</details></figure>")


def _verdict_cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "<td></td>"
    if cell["factor"] is None:
        return f'<td class=text>{escape(cell["note"] or "–")}</td>'
    kind = "ahead" if cell["factor"] >= 1 else "behind"
    return f'<td class={kind}>{times(cell["factor"])}</td>'


def verdict_part(verdict: dict[str, Any]) -> str:
    """The table that answers: beaten or not, and why."""
    head = "".join(f"<th scope=col>{escape(metric)}</th>" for metric in verdict["metrics"])
    rows = "".join(
        f'<tr><th scope=row>{escape(row["name"])}{" <span class=soft>(the limit)</span>" if row["limit"] else ""}</th>'
        + "".join(_verdict_cell(row["cells"].get(metric)) for metric in verdict["metrics"]) + "</tr>"
        for row in verdict["rows"])
    why = {}
    for row in verdict["rows"]:
        for metric, cell in row["cells"].items():
            if cell["why"]:
                why.setdefault((metric, cell["why"]), []).append(row["name"])
    reasons = "".join(f"<p><strong>Behind on {escape(metric)}</strong> ({escape(', '.join(names))}): "
                      f"{escape(text)}.</p>" for (metric, text), names in why.items())
    return (f"<figure><h3>How many times better {escape(verdict['ours'])} is, with {verdict['n']:,} waiting</h3>"
            f"<figcaption>Above 1: ahead. Below 1: behind, and why is said below the table.</figcaption>"
            f"<div class=scroll><table class=verdict><thead><tr><th scope=col></th>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table></div>{reasons}</figure>")


def about_part(about: list[dict[str, str]]) -> str:
    """What the names in the plots stand for."""
    if not about:
        return ""
    rows = "".join(f"<dt>{escape(entry['about'])}</dt><dd>{escape(entry.get('what', ''))}"
                   f"<span>{linked(entry.get('source', ''))}</span></dd>" for entry in about)
    return ("<details open><summary>What the names stand for, and where the designs come from</summary>"
            f"<dl class=ways>{rows}</dl></details>")


def group_part(group: dict[str, Any]) -> str:
    """One group: what it measures, the verdict, the plots."""
    parts = [f'<section id="{escape(group["name"])}"><h2>{escape(group["title"])}</h2><p>{escape(group["what"])}</p>']
    if group["status"] != "ok":
        parts.append(f'<p class=failed>{escape(group["status"])}: {escape(group["why"])}</p>')
    if group.get("verdict"):
        parts.append(verdict_part(group["verdict"]))
    parts.append(about_part(group["about"]))
    parts += [metric_part(metric, [figure for figure in group["figures"] if figure["metric"] == metric], group["title"])
              for metric in metrics(group["figures"])]
    return "".join(parts) + "</section>"


def disturbed(results: dict[str, Any]) -> str:
    """A warning when the machine was not ours alone."""
    if results["others"] < 0.05:
        return ""
    return (f'<p class=failed>The machine was not quiet: other programs used {100 * results["others"]:.0f}% of its '
            "processors during the run. Take the spread seriously, and the figures less so.</p>")


def page(results: dict[str, Any]) -> str:
    """The whole report."""
    kind = "quick run" if results["quick"] else "full run"
    links = "".join(f'<a href="#{escape(group["name"])}">{escape(group["title"])}</a>' for group in results["groups"])
    times_run = f'{results["repeat"]} repetition{"s" if results["repeat"] > 1 else ""}'
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tellerline: measurements</title><style>{STYLE}</style></head><body><main>
<h1>Tellerline: measurements</h1>
<p class=soft>{escape(results["started"])}, {kind}, {times_run},
{results["took_s"] / 60:.0f} minutes, made by <code>bench/run</code></p>
<nav>{links}<a href="#machine">Machine and versions</a></nav>
{disturbed(results)}{READING}{LIMITS}
{"".join(group_part(group) for group in results["groups"])}
<section id="machine"><h2>Machine and versions</h2>{definitions(results["machine"])}
<h3>Versions</h3>{definitions(results["versions"])}
<h3>How it was run</h3>{definitions(results["settings"])}</section>
</main></body></html>
"""
