# SPDX-License-Identifier: Apache-2.0
"""What the programs' /metrics say of queues and lanes, how many series that makes, and who says it."""
from __future__ import annotations

import os
import re
import signal
from collections import Counter

import pytest

from http_client import Client
from tellerline import CALM, PATIENCE, TOP, Program, System
from waiting import wait_until

ROLES = ("worker", "dispatcher", "admitter", "expirer")
#: Names of queues, lanes and such, in front of their values.
SAMPLE = re.compile(r"^(\w+)\{(.*)\} (\S+)$")


class Samples(dict[str, dict[str, float]]):
    """name -> labels, as they are written without the role, -> value."""

    def of(self, name: str, labels: str) -> float | None:
        return self.get(name, {}).get(labels)


def text_of(program: Program) -> str:
    client = Client(program.admin_port)
    try:
        return client.get("/metrics").body.decode()
    finally:
        client.close()


def samples(system: System, *roles: str) -> Samples:
    """Of all programs of these roles that run. Two that say the same series would be a mistake."""
    found = Samples()
    for program in (p for role in roles for p in system.of(role) if p.running):
        for line in text_of(program).splitlines():
            match = SAMPLE.match(line)
            if match:
                labels = re.sub(r'^role="\w+",?', "", match.group(2))
                if 'queue="' in labels:
                    assert labels not in found.get(match.group(1), {}), f"{line} is said twice"
                found.setdefault(match.group(1), {})[labels] = float(match.group(3))
    return found


def families(text: str) -> dict[str, str]:
    """name -> type, checked: each has one HELP and one TYPE, and no sample comes without."""
    types: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"{name} is described twice"
            types[name] = kind
        elif not line.startswith("#"):
            name = re.match(r"\w+", line).group()
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            assert name in types or types.get(base) == "histogram", f"{line} has no TYPE"
    assert Counter(line.split(" ")[2] for line in text.splitlines() if line.startswith("# HELP ")) == Counter(types.keys())
    return types


@pytest.mark.sanitized
def test_a_queue_and_its_lanes(start):
    """A visit from the line to the end, as the metrics tell it; told by one of two replicas, also after one died."""
    settings = {"capacity": 2, "lanes": ["vip", "general"], "default_lane": "general"} | CALM
    system = start({"shop": settings}, admitters=2, expirers=2, dispatchers=2)
    wait_until(lambda: samples(system, "admitter").of("tellerline_queue_state", 'queue="shop",state="open"') == 1,
               PATIENCE, "it is open")
    wait_until(lambda: "tellerline_queue_joined_total" in samples(system, "expirer"), PATIENCE, "it is watched")
    visitors = [system.join("shop") for _ in range(5)]
    queue = 'queue="shop"'

    def values() -> dict[str, float | None]:
        found = samples(system, "admitter", "dispatcher", "expirer")
        return {name: found.of(f"tellerline_queue_{name}", queue)
                for name in ("waiting", "active", "capacity", "admitted_total", "joined_total", "over_admission",
                             "wait_seconds_count", "completed_total", "session_seconds_count", "gave_up_total",
                             "ingest_unapplied", "ingest_age_milliseconds")}

    expected = {"waiting": 3, "active": 2, "capacity": 2, "admitted_total": 2, "joined_total": 5, "over_admission": 0,
                "wait_seconds_count": 2, "completed_total": 0, "session_seconds_count": 0, "gave_up_total": 0,
                "ingest_unapplied": 0, "ingest_age_milliseconds": 0}
    wait_until(lambda: values() == expected, PATIENCE, f"{expected}")
    wait_until(lambda: samples(system, "expirer").of("tellerline_lane_waiting", 'queue="shop",lane="1"') == 3, PATIENCE,
               "the lane waits")
    wait_until(lambda: samples(system, "expirer").of("tellerline_queue_oldest_wait_seconds", queue) >= 1, PATIENCE,
               "the first waits for a second")
    assert system.client().post("/v1/queues/shop/complete", ticket=visitors[0].ticket).status == 200
    assert system.client().post("/v1/queues/shop/leave", ticket=visitors[4].ticket).status == 200
    expected |= {"waiting": 1, "active": 2, "admitted_total": 3, "wait_seconds_count": 3, "completed_total": 1,
                 "session_seconds_count": 1, "gave_up_total": 1}
    wait_until(lambda: values() == expected, PATIENCE, f"{expected}")
    system.set("shop", "capacity=1")  # two are active: allowed when they were admitted
    wait_until(lambda: values()["capacity"] == 1, PATIENCE, "the capacity is set")
    assert values()["over_admission"] == 0
    system.ctl("queue", "pause", "shop")
    wait_until(lambda: samples(system, "admitter").of("tellerline_queue_state", 'queue="shop",state="paused"') == 1,
               PATIENCE, "it is paused")
    holder = next(p for p in system.of("admitter") if 'queue="shop"' in text_of(p))
    holder.kill()
    wait_until(lambda: values()["waiting"] == 1, PATIENCE, "the other one tells it")
    assert values()["admitted_total"] == 0  # what this one has admitted


def test_many_queues_are_not_many_series(start):
    """More queues than metrics.max_queues: the rest is added up."""
    names = [f"q{i}" for i in range(12)]
    system = start({name: {"capacity": 3} | CALM for name in names}, settings={"metrics": {"max_queues": 4}})
    wait_until(lambda: len(samples(system, "admitter").get("tellerline_queue_state", {})) == 5, PATIENCE, "all are held")
    for name in names:
        system.join(name)

    def active() -> dict[str, float]:
        return samples(system, "admitter").get("tellerline_queue_active", {})

    wait_until(lambda: active().get('queue="_other"') == 8, PATIENCE, "eight are added up")
    assert len(active()) == 5 and sum(active().values()) == 12
    found = samples(system, "admitter", "dispatcher", "expirer")
    for name, series in found.items():
        queues = {re.search(r'queue="(\w+)"', labels).group(1) for labels in series if "queue=" in labels}
        assert len(queues) in (0, 5), (name, queues)
    assert found.of("tellerline_queue_state", 'queue="_other",state="open"') == 8
    per_queue = sum('queue="q' in labels for series in found.values() for labels in series) / 4
    assert per_queue <= 75, f"{per_queue} series a queue: monitoring.md says 75"


#: Of a queue or a lane; the others are of a program.
OF_A_QUEUE = re.compile("tellerline_(queue|lane|worker_queue)_")
TABLE_HEAD = "| metric | type | program | meaning |\n|---|---|---|---|\n"


def tables(texts: dict[str, str]) -> str:
    """The tables of docs/operators/metrics.md, from what each role answers at /metrics."""
    types: dict[str, str] = {}
    helps: dict[str, str] = {}
    roles: dict[str, list[str]] = {}
    for role, text in texts.items():
        for name, kind in families(text).items():
            types[name] = kind
            roles.setdefault(name, []).append(role)
        helps |= dict(re.findall(r"^# HELP (\w+) (.*?)\.?$", text, re.M))
    rows = {name: f"| `{name}` | {types[name]} | {'all' if len(roles[name]) == len(texts) else ', '.join(roles[name])} | {helps[name]} |"
            for name in types}
    of_a_queue = [row for name, row in rows.items() if OF_A_QUEUE.match(name)]
    others = [row for name, row in rows.items() if not OF_A_QUEUE.match(name)]
    return ("## Metrics of a queue\n\n" + TABLE_HEAD + "\n".join(of_a_queue)
            + "\n\n## Metrics of the programs\n\n" + TABLE_HEAD + "\n".join(others) + "\n")


def test_every_metric_is_documented(start):
    """docs/operators/metrics.md has what the programs say of their metrics. TELLERLINE_WRITE_DOCS=1 writes it there."""
    system = start({"shop": {"capacity": 1} | CALM}, notifiers=1, archivers=1)
    wait_until(lambda: "tellerline_queue_joined_total" in samples(system, "expirer"), PATIENCE, "it is watched")
    system.join("shop")
    wait_until(lambda: samples(system, "admitter").of("tellerline_queue_active", 'queue="shop"') == 1, PATIENCE, "in")
    texts = {role: text_of(system.of(role)[0]) for role in (*ROLES, "notifier", "archiver")}
    for role, text in texts.items():
        assert f'role="{role}"' in text and "{queue" not in text
    page = TOP / "docs" / "operators" / "metrics.md"
    head, _, _ = page.read_text().partition("## Metrics of a queue")
    if os.environ.get("TELLERLINE_WRITE_DOCS"):
        page.write_text(head + tables(texts))
    assert page.read_text() == head + tables(texts), "run this test with TELLERLINE_WRITE_DOCS=1"


def test_a_refused_reload_is_told(start):
    system = start({"shop": {"capacity": 1}})
    system.expect("reload refused")
    programs = [system.of(role)[0] for role in ROLES]
    file = system.config
    whole = file.read_text()
    for text, failed in ((whole + "\nnonsense: 1\n", 1), (whole, 0)):
        file.write_text(text)
        for program in programs:
            program.send(signal.SIGHUP)
        for program in programs:
            wait_until(lambda p=program: re.search(rf"^tellerline_reload_failed{{.*}} {failed}$", text_of(p), re.M),
                       PATIENCE, f"{program.name} tells it")
            assert re.search(r"^tellerline_reloads_refused_total{.*} [12]$", text_of(program), re.M)
