# SPDX-License-Identifier: Apache-2.0
"""bench/run: its statistics, tables, plots and page, and one small run with the real programs.

The run needs the programs of bench/ (configured with -DTELLERLINE_BENCH=ON, in build/bench as bench/run does, or in
the tested build folder). Without them it is skipped. It checks that figures and a report are produced, not their
values.
"""
from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import SimpleNamespace

import pytest

from redis_server import Redis as Store
from tellerline import BIN, TOP
from waiting import patient

sys.path.insert(0, str(TOP / "bench"))
from groups import GROUPS, Group, Verdict  # noqa: E402
from report import check_line, collect, count, judge, si, spread, times  # noqa: E402
from report_html import linked, metric_part, page  # noqa: E402
from report_svg import Axis, is_logarithmic, linear_ticks, plot, room_for, shortened  # noqa: E402
from report_table import metric_table, table  # noqa: E402
from servers import Redis  # noqa: E402

BUILDS = [BIN.parent, TOP / "build" / "bench"]


def line(name: str, value: float, n: int = 1000, **more: object) -> dict[str, object]:
    return {"metric": "join", "name": name, "n": n, "value": value, "unit": "1/s", "better": "higher", **more}


def three_repetitions() -> list[dict[str, object]]:
    """Our figure is compared with the base of the same repetition, not with the base's median."""
    return collect([[line("base", 100.0), line("ours", 50.0, baseline="base", ours=True, target=0.4)],
                    [line("base", 200.0), line("ours", 80.0, baseline="base", ours=True, target=0.4)],
                    [line("base", 50.0), line("ours", 10.0, baseline="base", ours=True, target=0.4)]])


# ---- statistics

def test_the_median_and_both_ends_tell_a_spread():
    assert spread([3.0, 1.0, 2.0]) == {"median": 2.0, "low": 1.0, "high": 3.0}
    assert spread([4.0, 1.0]) == {"median": 2.5, "low": 1.0, "high": 4.0}
    assert spread([]) is None


def test_a_ratio_is_taken_within_each_repetition():
    base, ours = three_repetitions()
    assert ours["value"] == {"median": 50.0, "low": 10.0, "high": 80.0}
    assert ours["ratio"] == {"median": 0.4, "low": 0.2, "high": 0.5}
    assert base["ratio"] is None
    assert ours["met"] is True and base["met"] is None


def test_a_baseline_measured_first_and_last_counts_by_its_median():
    base, ours = collect([[line("base", 100.0), line("ours", 50.0, baseline="base"), line("base", 300.0)]])
    assert ours["ratio"]["median"] == 0.25
    assert base["values"] == [100.0, 300.0]


def test_a_target_that_is_missed_is_told():
    figure, = collect([[line("ours", 3.0, ratio=0.3, target=0.5)]])
    assert figure["met"] is False
    figure, = collect([[line("ours", 3.0, better="lower", target=2.0)]])
    assert figure["met"] is False


def test_the_largest_count_of_wrong_answers_and_every_note_are_kept():
    figure, = collect([[line("a", 1.0, wrong=3, note="first")], [line("a", 2.0, note="second")]])
    assert figure["wrong"] == 3
    assert figure["notes"] == ["first", "second"]


def test_what_was_left_out_or_took_too_long_has_no_value():
    left, late = collect([[{"metric": "join", "name": "left", "n": 1, "skip": "no such server"},
                           {"metric": "join", "name": "late", "n": 1, "better": "higher",
                            "over": 9, "done": 1, "of": 2}]])
    assert left["value"] is None and left["skip"] == "no such server"
    assert late["value"] is None and (late["over"], late["done"], late["of"]) == (9, 1, 2)


def test_what_only_one_repetition_measured_says_so():
    skipped = {"metric": "join", "name": "a", "n": 1000, "unit": "1/s", "skip": "too slow"}
    figure, = collect([[line("a", 5.0)], [skipped]])
    assert figure["skip"] is None and figure["values"] == [5.0]
    assert figure["notes"] == ["not measured in 1 of 2 repetitions: too slow"]


@pytest.mark.parametrize("bad", [{"name": ""}, {"name": "a", "better": "more", "value": 1},
                                 {"name": "a", "better": "lower"}, {"name": "a", "better": "lower", "value": "1"},
                                 {"name": "a", "better": "lower", "value": float("nan")}])
def test_a_line_that_is_no_figure_is_refused(bad):
    assert check_line(bad) is not None


def test_the_verdict_says_where_ours_is_behind_and_why():
    figures = collect([[line("ours", 10.0, ours=True), line("slow", 4.0), line("limit", 40.0),
                        line("ours", 99.0, n=10), line("slow", 1.0, n=10),
                        line("ours", 2.0, better="lower") | {"metric": "wait", "unit": "ms"},
                        line("slow", 8.0, better="lower") | {"metric": "wait", "unit": "ms"}]])
    found = judge(figures, Verdict(ours="ours", why={"join": "because", "wait": ""}, limits=("limit",)))
    slow, limit = found["rows"]
    assert found["n"] == 1000
    assert slow["cells"]["join"] == {"factor": 2.5, "why": None, "note": None}
    assert slow["cells"]["wait"]["factor"] == 4.0
    assert limit["limit"] and limit["cells"]["join"] == {"factor": 0.25, "why": "because", "note": None}
    assert "wait" not in limit["cells"]


# ---- tables and plots

def test_numbers_are_short():
    assert [si(v) for v in (0, 0.0123, 12.345, 1234, 12345, 999_950, 2_000_000)] == \
        ["0", "0.0123", "12.3", "1,234", "12.3k", "1,000k", "2M"]
    assert [times(v) for v in (None, 0, 0.001, 0.5, 3.14, 1234)] == ["", "0×", "1/1,000×", "0.5×", "3.1×", "1,234×"]
    assert [count(n) for n in (7, 1000, 1500, 2_000_000)] == ["7", "1k", "1,500", "2M"]


def test_columns_line_up():
    text = table(["", "n", ""], [["a", "10", "said"], ["longer", "9", ""]], indent="")
    assert text == "         n\na       10  said\nlonger   9"


def test_a_table_says_what_was_wrong_and_what_took_too_long():
    figures = collect([[line("a", 5.0, wrong=7, over=2.0, done=1, of=9), {"name": "b", "metric": "join", "n": 1000,
                                                                         "unit": "1/s", "skip": "no server"}]])
    text = metric_table(figures)
    assert "WRONG: 7" in text and "over 2 s, 1 of 9 done" in text and "not measured: no server" in text


def test_a_table_names_a_baseline_only_if_it_is_the_same_of_all():
    figures = collect([[line("a", 5.0), line("b", 5.0, baseline="a"), line("c", 5.0), line("d", 5.0, baseline="c")]])
    assert "× a" in metric_table(figures[:2]) and "× c" in metric_table(figures[2:])
    assert "×  " not in metric_table(figures).splitlines()[0] and "ratio" in metric_table(figures).splitlines()[0]


def test_axes_are_linear_until_figures_lie_far_apart():
    assert not is_logarithmic([10, 100]) and is_logarithmic([1, 100]) and not is_logarithmic([0, 5])
    assert linear_ticks(10.0) == [0, 2, 4, 6, 8, 10]
    assert linear_ticks(0.0) == [0, 1]
    axis = Axis([1.0, 10.0, 100.0, 1000.0])
    distances = [axis.x(10 ** (i + 1)) - axis.x(10 ** i) for i in range(3)]
    assert max(distances) - min(distances) < 0.3
    assert axis.x(0) < axis.x(1)


def test_a_plot_has_a_dot_for_each_value_and_is_well_formed():
    figures = collect([[line("a & <b>", 5.0), line("a & <b>", 7.0, n=10), line("ours", 9000.0, ours=True, wrong=1)]])
    tree = ElementTree.fromstring(plot(figures, 'title "quoted"'))
    dots = tree.findall("circle")
    assert len(dots) == 3
    assert [dot.get("class") for dot in dots].count("dot ours wrong") == 1
    assert "a & <b>" in [text.text for text in tree.findall("text")]
    xs = {dot.findtext("title"): float(dot.get("cx")) for dot in dots}
    assert xs["a & <b>, n = 1,000: 5 1/s"] < xs["a & <b>, n = 10: 7 1/s"] < xs["ours, n = 1,000: 9,000 1/s"]


def test_long_names_get_room_and_too_long_ones_are_cut():
    short, long = "a", "b" * 200
    assert room_for([short]) < room_for([short, "c" * 40]) < room_for([long]) < 500
    assert shortened(short, 236) == short
    assert shortened(long, 420).endswith("b…") and len(shortened(long, 420)) < 60


def test_what_was_extrapolated_is_drawn_hollow_and_said():
    figures = collect([[line("a", 5.0, extrapolated=True, note="only half could be asked"), line("b", 7.0)]])
    dots = ElementTree.fromstring(plot(figures, "t")).findall("circle")
    assert [dot.get("class") for dot in dots] == ["dot other guess", "dot other"]
    part = metric_part("join", figures, "t")
    assert "hollow: extrapolated" in part and "only half could be asked" in part
    assert "hollow" not in metric_part("join", figures[1:], "t")


# ---- the page

class Reader(HTMLParser):
    """Collects what a page would fetch or run, and checks that its elements are closed."""

    EMPTY = {"meta", "br"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched, self.ids, self.open = [], set(), []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        fetching = ("script", "link", "img", "iframe", "object", "embed", "base")
        if tag in fetching or "src" in given or "onclick" in given:
            self.fetched.append(tag)
        self.ids.add(given.get("id"))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.fetched += ["src"] if "src" in dict(attrs) else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read_page(text: str) -> Reader:
    reader = Reader(text)
    assert reader.open == [] and reader.fetched == []
    assert "@import" not in text and "url(" not in text
    assert "prefers-color-scheme: dark" in text
    return reader


def results(**more: object) -> dict[str, object]:
    figures = three_repetitions()
    group = {"name": "g", "title": "A <group>", "what": "What & why", "status": "failed", "why": "exit status 3",
             "seconds": 1, "about": [{"about": "base", "what": "w", "source": "Title, https://example.org/a"}],
             "figures": figures,
             "verdict": judge(figures, Verdict(ours="ours", why={"join": "because"}))}
    return {"started": "2026-01-01", "quick": True, "repeat": 3, "took_s": 61.0, "others": 0.0,
            "machine": {"cores": "2"}, "versions": {"redis": "7"}, "settings": {"n": "1,000"},
            "groups": [group], **more}


def test_the_page_stands_alone_and_escapes_what_it_shows():
    text = page(results())
    assert {"g", "machine"} <= read_page(text).ids
    assert "A &lt;group&gt;" in text and "What &amp; why" in text and "exit status 3" in text
    assert "target 0.4 reached" in text and "Behind on join" in text and "because" in text
    assert '<a href="https://example.org/a">' in text


def test_the_page_says_when_the_machine_was_not_quiet():
    assert "not quiet" not in page(results())
    assert "other programs used 30%" in page(results(others=0.3))


def test_addresses_become_links_and_nothing_else_does():
    assert linked("a <b> https://x.org/y, z") == 'a &lt;b&gt; <a href="https://x.org/y">https://x.org/y</a>, z'


# ---- the run

@pytest.fixture
def bench(tmp_path):
    """bench/run as a module, and a run of it that uses tmp_path."""
    loader = SourceFileLoader("bench_run", str(TOP / "bench" / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    loader.exec_module(module)
    (tmp_path / "log").mkdir()
    args = SimpleNamespace(quick=True, repeat=2, sizes=[10], budget=1.0, out=tmp_path, build=tmp_path, only=None)
    return module.Run(args, SimpleNamespace(progress=lambda text: None), tmp_path)


def shell(script: str, **more: object) -> Group:
    return Group(name="shell", title="Shell", what="", command=["/bin/sh", "-c", script], **more)


def test_every_repetition_of_a_group_is_collected(bench):
    found = bench.group(shell('echo \'{"progress": "half", "done": 1, "of": 2}\'; echo \'{"versions": {"sh": "1"}}\'; '
                              'echo \'{"about": "a", "what": "w"}\'; '
                              'echo "{\\"name\\": \\"a\\", \\"n\\": $BENCH_SIZES, \\"value\\": $$, '
                              '\\"better\\": \\"lower\\"}"'))
    assert found["status"] == "ok" and len(found["figures"]) == 1
    assert len(set(found["figures"][0]["values"])) == 2 and found["figures"][0]["n"] == 10
    assert bench.versions["sh"] == "1"
    assert found["about"] == [{"about": "a", "what": "w"}]


def test_a_group_that_fails_says_why_and_keeps_what_it_found(bench):
    found = bench.group(shell('echo \'{"name": "a", "n": 1, "value": 1, "better": "lower"}\'; '
                              'echo no luck >&2; exit 3'))
    assert found["status"] == "failed" and found["why"] == "exit status 3: no luck"
    assert len(found["figures"]) == 1


def test_what_is_no_measurement_is_a_failure(bench):
    assert "no measurement" in bench.group(shell("echo nonsense"))["why"]
    assert "no number" in bench.group(shell('echo \'{"name": "a", "better": "lower", "value": "x"}\''))["why"]


def test_a_group_that_lacks_something_is_not_run_and_says_so(bench):
    found = bench.group(shell("true", needs=("bin:nothing_bench",)))
    assert found["status"] == "not run" and "nothing_bench" in found["why"] and found["figures"] == []


def test_a_group_gets_a_fresh_server_that_ends_with_it(bench, tmp_path):
    found = bench.group(shell('test -S "$BENCH_REDIS" && echo "{\\"name\\": \\"pid\\", \\"value\\": $BENCH_REDIS_PID, '
                              '\\"better\\": \\"lower\\"}"', needs=("redis",)))
    assert found["status"] == "ok", found["why"]
    pids = {int(pid) for pid in found["figures"][0]["values"]}
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("durability, tcp, says", [
    ("none", False, {"appendonly": "no"}), ("everysec", True, {"appendonly": "yes", "appendfsync": "everysec"}),
    ("fsync", False, {"appendonly": "yes", "appendfsync": "always"}), ("replicated", True, {"appendonly": "yes"})])
def test_a_server_is_as_durable_as_asked(tmp_path, durability, tcp, says):
    server = Redis(tmp_path / "redis", None, durability, tcp)
    try:
        client = Store(server.socket)
        client.command("SET", "written", "1")
        assert {name: client.command("CONFIG", "GET", name)[1] for name in says} == says
        if durability == "replicated":
            assert client.command("WAIT", "1", "60000") == 1
        client.close()
        assert server.url == (f"redis://127.0.0.1:{server.port}" if tcp else f"unix://{server.socket}")
        assert server.has("WAIT") and not server.has("NOTHING")
    finally:
        server.stop()


def test_the_names_of_groups_are_told():
    told = subprocess.run([TOP / "bench" / "run", "--list"], capture_output=True, text=True, check=True).stdout
    assert [row.split()[0] for row in told.splitlines()] == [group.name for group in GROUPS]


@pytest.mark.sanitized  # the build that has the programs of bench/
def test_a_tiny_run_gives_figures_and_a_report(tmp_path):
    build = next((build for build in BUILDS if (build / "bin" / "ways_bench").exists()), None)
    if build is None:
        pytest.skip("needs the programs of bench/: configure with -DTELLERLINE_BENCH=ON, or run bench/run --quick once")
    done = subprocess.run([TOP / "bench" / "run", "--quick", "--only", "ways", "--sizes", "1000", "--no-build",
                           "--build", build, "--out", tmp_path], capture_output=True, text=True, timeout=patient(300))
    found = json.loads((tmp_path / "results.json").read_text())
    group, = found["groups"]
    assert group["status"] in ("ok", "incomplete") and done.returncode == (group["status"] != "ok"), group["why"]
    figures = {(figure["metric"], figure["name"]): figure for figure in group["figures"]}
    for metric in ("join", "position, p50", "positions", "admission of 1,400", "expiry of 1,400"):
        assert figures[metric, "Tellerline"]["value"]["median"] > 0
        assert figures[metric, "Tellerline"]["wrong"] == 0
    assert figures["position: Redis commands", "Tellerline"]["value"]["median"] == 0
    assert figures["position: Redis commands", "plain Redis"]["value"]["median"] == 1
    assert group["verdict"]["n"] == 1000 and len(group["about"]) >= 10
    read_page((tmp_path / "report.html").read_text())
    assert "Tellerline is so many times better" in done.stdout
