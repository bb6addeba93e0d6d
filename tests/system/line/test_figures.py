# SPDX-License-Identifier: Apache-2.0
"""The figures that autoscalers and alerts use: the ingest backlog and the number of open event streams."""
from __future__ import annotations

import re

from figures_of import metric
from sse import EventStream
from tellerline import CALM, PATIENCE, Program, System
from waiting import wait_until


def total(system: System, name: str) -> int:
    return sum(metric(program, name) for program in system.of("dispatcher"))


def unapplied(system: System) -> int:
    return total(system, "tellerline_dispatcher_ingest_unapplied")


def age_ms(system: System) -> int:
    return max(metric(program, "tellerline_dispatcher_ingest_age_milliseconds")
               for program in system.of("dispatcher"))


def behind(system: System, queue: str) -> list:
    """The entries that are not applied, including presence, while the store refuses to apply any."""
    key = system.key(queue, "ingest")
    groups = system.store.command("XINFO", "GROUPS", key)
    group = dict(zip(groups[0][::2], groups[0][1::2]))
    if group["pending"] == 0:
        return system.store.command("XRANGE", key, f"({group['last-delivered-id']}", "+")
    oldest = system.store.command("XPENDING", key, "dispatchers")[1]
    return system.store.command("XRANGE", key, oldest, "+")


def test_lag_is_told_and_goes_away(start) -> None:
    """Batches that cannot be applied are counted, by one replica only, and their age grows."""
    system = start({"bank": {"capacity": 0} | CALM, "shop": CALM}, dispatchers=2,
                   settings={"http": {"join_wait": "200ms"}})
    assert system.client().post("/v1/queues/bank/join").status in (200, 202)
    wait_until(lambda: system.waiting("bank") == 1, PATIENCE, "a visitor waits")
    # The store refuses the one command that takes an entry off the stream. Everything else works.
    system.store.command("ACL", "SETUSER", "default", "-xack")
    for _ in range(3):
        assert system.client().post("/v1/queues/bank/join").status == 202
    assert len(behind(system, "bank")) >= 3
    wait_until(lambda: unapplied(system) == len(behind(system, "bank")), PATIENCE, "every entry counts once")
    wait_until(lambda: age_ms(system) >= 2000, PATIENCE, "the oldest grows older")
    told_ms = age_ms(system)
    seconds, micros = map(int, system.store.command("TIME"))
    assert told_ms <= seconds * 1000 + micros // 1000 - int(behind(system, "bank")[0][0].split("-")[0])

    system.store.command("ACL", "SETUSER", "default", "+xack")
    wait_until(lambda: unapplied(system) == 0 and age_ms(system) == 0, PATIENCE, "all is applied")
    assert system.waiting("bank") == 4


def test_what_cannot_be_measured_stops_nothing(start) -> None:
    system = start({"bank": {"capacity": 1} | CALM})
    system.store.command("ACL", "SETUSER", "default", "-xinfo")
    dispatcher = system.of("dispatcher")[0]
    system.join("bank")
    wait_until(lambda: "cannot tell how far the line is behind" in dispatcher.text(), PATIENCE,
               "the dispatcher says so")
    system.join("bank")
    assert dispatcher.ready()
    system.store.command("ACL", "SETUSER", "default", "+xinfo")  # the audit after the test needs it


def test_open_event_streams_are_counted(start) -> None:
    """Streams count while they are open. A long poll does not count."""
    system = start({"bank": {"capacity": 0} | CALM})
    worker = system.of("worker")[0]
    line = [system.join("bank") for _ in range(3)]
    streams = [EventStream(visitor.client.port, f"{visitor.path}/events", visitor.ticket)
               for visitor in line[:2]]
    name = "tellerline_worker_event_streams"
    wait_until(lambda: metric(worker, name) == 2, PATIENCE, "two streams are open")

    poll = system.client()
    poll.send("GET", f"{line[2].path}/status?wait=20s", ticket=line[2].ticket)
    wait_until(lambda: metric(worker, "tellerline_worker_subscribers") == 3, PATIENCE, "a third one waits")
    assert metric(worker, name) == 2

    for left, stream in enumerate(reversed(streams)):
        stream.close()
        wait_until(lambda: metric(worker, name) == 1 - left, PATIENCE, "a closed one is gone")
