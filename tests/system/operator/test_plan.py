# SPDX-License-Identifier: Apache-2.0
"""`tellerline plan`: worked examples, the configuration it prints, and simulations of real and drawn crowds."""
from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

import bank
from tellerline import BIN, TOP, environment, run
from waiting import patient

TELLERLINE = BIN / "tellerline"

SITE = ["--tps", "1000", "--session", "5m", "--calls", "6/session"]


def plan(*args: str) -> subprocess.CompletedProcess[str]:
    return run(TELLERLINE, "plan", *args, timeout=patient(120))


def text_of(*args: str) -> str:
    done = plan(*args)
    assert done.returncode == 0, done
    return done.stdout


def json_of(*args: str) -> dict:
    done = plan(*args, "-o", "json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


# ---- the plan ----

#: Options, and lines that must be in the answer.
EXAMPLES = {
    "repeats": (
        [*SITE, "--failure-rate", "0.15", "--safety", "0"],
        ["with repeats              6 x (1 + 0.15) = 6.9",
         "on the site at once       1,000 x 300 s / 6.9 = 43,478",
         "...all until session_ttl  1,000 x 375 s / 6.9 = 54,348",
         "visitors per second       1,000 / 6.9 = 144.93",
         "visitors per period       1,000 x 10 s / 6.9 = 1,449",
         "rate.admit                1,449 x (1 - 0) = 1,449, rounded down: 1,400",
         "rate: { admit: 1400, every: 10s, shape: smooth, burst: 0 }",
         "session_ttl: 375s"]),
    "calls a minute": (
        ["--tps", "1000", "--session", "4m", "--calls", "6/min"],
        ["requests of a session     6 x 240 s / 60 s = 24",
         "visitors per minute       1,000 x 60 s / 24 = 2,500",
         "visitors per period       1,000 x 10 s / 24 = 416",
         "rate.admit                416 x (1 - 0.3) = 291, rounded down: 290"]),
    "one minute": (
        ["--tps", "1000", "--session", "1m", "--calls", "10/session", "--safety", "40%"],
        ["visitors per minute       1,000 x 60 s / 10 = 6,000",
         "visitors per period       1,000 x 10 s / 10 = 1,000",
         "rate.admit                1,000 x (1 - 0.4) = 600, rounded down: 600"]),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples(name):
    args, lines = EXAMPLES[name]
    said = [line.strip() for line in text_of(*args).splitlines()]
    for line in lines:
        assert line in said, "\n".join(said)


def test_the_page_says_what_the_command_says(tmp_path):
    """Every example of docs/operators/planning.md gives the lines it shows, and its commands run."""
    page = (TOP / "docs" / "operators" / "planning.md").read_text()
    shown = re.findall(r"^```\n\$ tellerline (plan .*)\n((?:.+\n)+)```", page, re.MULTILINE)
    assert len(shown) == len(EXAMPLES)
    for command, lines in shown:
        said = text_of(*shlex.split(command)[1:]).splitlines()
        for line in lines.splitlines():
            assert line in said, (command, line)
    scripts = re.findall(r"^```sh\n(.+?)```", page, re.MULTILINE | re.DOTALL)
    assert len(scripts) >= 2
    for text in scripts:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text.replace("tests/data", str(TOP / "tests/data"))],
                              cwd=tmp_path, env=environment({"PATH": f"{BIN}:{os.environ['PATH']}"}),
                              timeout=patient(60),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (text, done)
    assert (tmp_path / "line.svg").exists()


def test_the_table_of_sizes_is_what_the_command_says():
    """Each row of "How big a machine?" in docs/operators/planning.md; the last column is 5 KB for each visitor."""
    page = (TOP / "docs" / "operators" / "planning.md").read_text().partition("### How big a machine?")[2]
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) MB \| ([\d.]+) GB \|$", page, re.MULTILINE)
    assert [row[0] for row in rows] == ["50,000", "500,000", "5,000,000"]
    for visitors, joins, processes, redis, pages in rows:
        n = visitors.replace(",", "")
        said = re.sub(" +", " ", text_of(*SITE, "--visitors", n))
        for text in (f"\n joins {joins} per second", f"\n worker processes {processes} on", f"\n memory of Redis {redis} MB:"):
            assert text in said, (text, said)
        assert float(pages) == int(n) * 5e3 / 1e9


def test_a_round_choice_of_people():
    """One site took 300 where the planner says 290. With the safety that this choice means, it says the same."""
    site = ["--tps", "1000", "--session", "4m", "--calls", "6/min"]
    admit = json_of(*site)["plan"]["settings"]["rate"]["admit"]
    assert abs(admit - 300) <= 0.04 * 300
    assert json_of(*site, "--safety", "0.28")["plan"]["settings"]["rate"]["admit"] == 300


def test_waits():
    said = text_of(*SITE, "--visitors", "250000")
    for row in [r" 1,000  9\.1 s +11 s$", r" 100,000  15 min 9 s +17 min 51 s$", r" 1,000,000  2 h 32 min +2 h 59 min$",
                r" 250,000  37 min 53 s +44 min 39 s$", r" per second  110 +93\.33$"]:
        assert re.search(row, said, re.MULTILINE), (row, said)
    assert not re.search(" $", said + text_of(*SITE, "--policy", "rate"), re.MULTILINE)
    waits = {row["ahead"]: row for row in json_of(*SITE, "--visitors", "250000")["plan"]["waits"]}
    assert sorted(waits) == [1000, 10000, 100000, 250000, 1000000]
    assert waits[100000]["wait_ms"] == 909090 and waits[100000]["wait_without_complete_ms"] == 1071428


@pytest.mark.parametrize("policy", ["counter", "rate", "both"])
@pytest.mark.parametrize("more", [[], ["--burst", "50"], ["--shape", "batches", "--period", "1m"],
                                  ["--tps", "49.5", "--period", "250ms", "--calls", "1/session", "--session", "1s"],
                                  ["--visitors", "1000000", "--no-shows", "20%"]],
                         ids=["plain", "burst", "batches", "small", "crowd"])
def test_configuration_is_valid(tmp_path, policy, more):
    done = plan(*SITE, *more, "--policy", policy, "--yaml")
    assert done.returncode == 0, done
    path = tmp_path / "sale.yaml"
    path.write_text(done.stdout)
    checked = run(TELLERLINE, "check", "--config", str(path))
    assert checked.returncode == 0 and "1 queue" in checked.stdout, (done.stdout, checked)
    assert f"policy: {policy}" in done.stdout
    assert ("capacity:" in done.stdout) == (policy != "rate") and ("rate:" in done.stdout) == (policy != "counter")


def test_configuration_is_the_same_everywhere():
    yaml = plan(*SITE, "--yaml").stdout
    assert text_of(*SITE).endswith(yaml) and json_of(*SITE)["plan"]["yaml"] == yaml


#: Options, the exit status, and what the message must say.
WRONG = [
    ([], 2, "--tps is missing, for example --tps 1000"),
    (["--tps", "1000"], 2, "--session is missing"),
    (["--tps", "1000", "--session", "5m"], 2, "--calls is missing"),
    ([*SITE, "--tps", "0"], 2, "--tps is missing"),
    ([*SITE, "--tps", "-5"], 2, '--tps: "-5" is not a number'),
    ([*SITE, "--tps", "nan"], 2, '--tps: "nan" is not a number'),
    ([*SITE, "--tps", "1e99"], 2, "is not a number"),
    ([*SITE, "--margin", "11"], 2, "out of bounds (0 to 10)"),
    ([*SITE, "--tps", "10000000000"], 2, "out of bounds (0 to 1000000000)"),
    ([*SITE, "--calls", "6"], 2, "must end with /session, /s, /min or /h"),
    ([*SITE, "--calls", "0/min"], 2, "must be a number of calls"),
    ([*SITE, "--session", "5"], 2, "is not a duration"),
    ([*SITE, "--session", "8d"], 2, "out of bounds (1s to 7d)"),
    ([*SITE, "--safety", "1"], 2, "are at most 95%"),
    ([*SITE, "--safety", "150%"], 2, "out of bounds"),
    ([*SITE, "--failure-rate", "-1"], 2, "is not a number such as 0.9 or 90%"),
    ([*SITE, "--policy", "lottery"], 2, "is not one of counter, rate, both"),
    ([*SITE, "--tps", "0.001"], 2, "the shortest period for one is 8572s"),
    ([*SITE, "--svg", "x.svg"], 2, "--svg needs --simulate"),
    ([*SITE, "--simulate"], 2, "who comes? --visitors N, or --arrivals FILE"),
    ([*SITE, "--simulate", "--visitors", "10000001"], 2, "at most 10000000 can be replayed"),
    ([*SITE, "--simulate", "--visitors", "5", "--arrivals", "x"], 2, "leave out --visitors"),
    ([*SITE, "--simulate", "--visitors", "5", "--yaml"], 2, "leave out -o and --simulate"),
    ([*SITE, "--simulate", "--arrivals", "/nonexistent.csv"], 2, "cannot open /nonexistent.csv: No such file"),
    ([*SITE, "--simulate", "--visitors", "5", "--svg", "/nonexistent/x.svg"], 2, "cannot create /nonexistent/x.svg"),
    ([*SITE, "--shape", "batches", "--burst", "3"], 2, "--burst is for --shape smooth"),
    ([*SITE, "--peak", "11m"], 2, "--peak is later than --over"),
    (["--simulate", "--visitors", "5", "--queue", "none"], 1, 'there is no queue "none"'),
    ([*SITE, "word"], 2, "usage: tellerline plan [options]"),
]


@pytest.mark.parametrize("args,status,part", WRONG, ids=[" ".join(row[0][-3:]) or "nothing" for row in WRONG])
def test_wrong_options(args, status, part):
    done = plan(*args)
    assert (done.returncode, done.stdout) == (status, "") and part in done.stderr, done


def test_help():
    said = text_of("--help")
    assert "--calls N/UNIT" in said and "--simulate" in said and "Limits are rounded down" in said
    assert "  plan " in run(TELLERLINE, "--help").stdout
    assert all(len(line) <= 100 for line in said.splitlines())


# ---- the simulation ----

def configured(tmp_path: Path, capacity: int) -> list[str]:
    path = tmp_path / f"bank-{capacity}.yaml"
    path.write_text(f"queues:\n  bank:\n    capacity: {capacity}\n    session_ttl: 1d\n")
    return ["--config", str(path), "-q", "bank"]


def longest_line(arrivals: list[float], starts: list[float]) -> int:
    """The most who wait at once; those who begin in the moment another arrives do not wait any more."""
    steps = sorted([(at, 1, 1) for at in arrivals] + [(at, 0, -1) for at in starts])
    line = longest = 0
    moments = {at for at, _, _ in steps}
    by_moment = dict.fromkeys(sorted(moments), 0)
    for at, _, change in steps:
        by_moment[at] += change
    for change in by_moment.values():
        line += change
        longest = max(longest, line)
    return longest


def test_days_of_a_bank(tmp_path):
    """The same waits as an independent simulation of the same line (bank.simulate)."""
    for day, customers in bank.days().items():
        path = tmp_path / f"{day}.csv"
        path.write_text("arrival,session\n" + "".join(
            f"{int(each.arrival) // 3600}:{int(each.arrival) // 60 % 60:02}:{int(each.arrival) % 60:02},"
            f"{each.service:.0f}\n" for each in customers))
        arrivals = [each.arrival for each in customers]
        for capacity in (1, 2, 3):
            starts = bank.simulate(arrivals, [each.service for each in customers], capacity)
            waits = sorted(start - at for at, start in zip(arrivals, starts))
            found = json_of("--simulate", "--arrivals", str(path), *configured(tmp_path, capacity))["simulation"]
            assert found["served"] == found["arrived"] == len(customers)
            assert found["waits"] == {"median_ms": 1000 * waits[(len(waits) - 1) // 2], "longest_ms": 1000 * waits[-1],
                                      "p90_ms": 1000 * waits[(9 * len(waits) + 9) // 10 - 1]}, (day, capacity)
            assert found["longest_line"] == longest_line(arrivals, starts), (day, capacity)
            assert found["most_active"] <= capacity and found["slots"]["empty_in_line"] == 0


CROWD = [*SITE, "--simulate", "--visitors", "20000", "--over", "1m", "--patience", "1m", "--waiting-ttl", "30s", "--no-shows",
         "5%"]


def test_simulation_adds_up():
    found = json_of(*CROWD)
    sim = found["simulation"]
    assert sim["arrived"] == 20000 == sum(sim[name] for name in
                                          ("served", "no_shows", "gave_up", "refused", "still_waiting"))
    assert sim["gave_up"] > 0 and sim["no_shows"] > 0 and sim["still_waiting"] == 0
    assert sim["settings"] == found["plan"]["settings"]
    assert sim["most_active"] <= found["plan"]["settings"]["capacity"]
    assert sum(point["arrived"] for point in sim["series"]) == 20000
    assert max(point["waiting"] for point in sim["series"]) == sim["longest_line"]
    rate = found["plan"]["settings"]["rate"]["admit"] / 10
    assert sim["served"] + sim["no_shows"] <= 1 + rate * sim["line_empty_from_ms"] / 1000
    assert sim["busiest_share_of_tps"] < 0.75, "the default keeps 30 % unused"
    assert json_of(*CROWD)["simulation"] == sim
    assert json_of(*CROWD, "--seed", "2")["simulation"] != sim


@pytest.mark.sanitized
def test_text_and_svg(tmp_path):
    svg = tmp_path / "line.svg"
    said = text_of(*CROWD, "--opens-after", "30s", "--svg", str(svg))
    assert all(len(line) <= 80 for line in said.splitlines()), said
    assert "\033" not in said and "|###" in said.replace(" ", "")
    for line in [r"^  longest line +[\d,]+$", r"^  still waiting +0 +0 %$", r"^  The queue opens after 30 s\.$",
                 r"^  wait: median +\d.*$", r"^  wait: nine in ten +\d.*$", r"^  slots empty +\d+ %$",
                 r"^  \.\.\.called, and did not come +[\d,]+ +\d.* %$", r"^  of what the site serves +\d+ %$"]:
        assert re.search(line, said, re.MULTILINE), (line, said)
    root = xml.parse(svg).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    paths = root.findall("{http://www.w3.org/2000/svg}path")
    assert [path.get("class") for path in paths] == ["waiting", "active"]
    assert all(len(path.get("d")) > 500 for path in paths)
    titles = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "20,000 come in a rush within 60 s, who give up after 60 s on average (seed 1)" in titles


def on_terminal(**env: str) -> str:
    """What the command writes to a terminal."""
    ours, its = pty.openpty()
    with subprocess.Popen([TELLERLINE, "plan", *CROWD], stdout=its, stdin=subprocess.DEVNULL,
                          env=environment({"TERM": "xterm", **env})) as process:
        os.close(its)
        said = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the end, when the other side is closed
                break
            if not part:
                break
            said += part
        os.close(ours)
    assert process.returncode == 0
    return said.decode()


def test_colour():
    assert "\033[36m#" in on_terminal()
    assert "\033" not in on_terminal(NO_COLOR="1")
    assert "\033" not in on_terminal(TERM="dumb")


#: Content, and what the message must say after the name of the file.
WRONG_FILES = [
    ("1\n2\nthree\n", ':3: "three" is not a time'),
    ("arrival,session\n9:00:00,60\n9:00:10,a while\n", ':3: "a while" is not a session'),
    ("1\n\n9:00:00\n", ":3: "),
    ("time,session\n1,2\n", ':1: the first line is neither an arrival nor names a column "arrival"'),
    ("", ":1: there is no arrival in the file"),
]


@pytest.mark.parametrize("text,part", WRONG_FILES)
def test_wrong_file(tmp_path, text, part):
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    done = plan(*SITE, "--simulate", "--arrivals", str(path))
    assert (done.returncode, done.stdout) == (1, "") and f"{path}{part}" in done.stderr, done


def test_arrivals_need_a_session(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text("1,5\n2\n")
    args = ["--simulate", "--arrivals", str(path), *configured(tmp_path, 2)]
    done = plan(*args)
    assert done.returncode == 1 and "--session is missing" in done.stderr, done
    assert json_of(*args, "--session", "10s")["simulation"]["served"] == 2


def test_a_million():
    sim = json_of(*SITE, "--simulate", "--visitors", "1000000", "--patience", "30m")["simulation"]
    assert sim["arrived"] == 1000000 == sim["served"] + sim["no_shows"] + sim["gave_up"]
