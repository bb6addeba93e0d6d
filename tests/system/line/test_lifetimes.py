# SPDX-License-Identifier: Apache-2.0
"""Expiry and changes while running: sessions, claims, absence, capacity, pause, lanes."""
from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest

from http_client import Client, Visitor
from sse import EventStream
from tellerline import CALM, PATIENCE, System
from test_answers import API_KEY
from waiting import patient, wait_until
from wire import read_ticket

pytestmark = pytest.mark.together(seconds=40)

#: Sessions end some ms after their deadline; a busy machine needs more. The expirer looks at all of them every 5 s.
LATE_MS = 500


def end_of(system: System, queue: str, visitor: Visitor) -> tuple[int, int]:
    """When and why the visitor's place ended: Redis time in ms, and reason."""
    score = system.store.command("ZSCORE", system.key(queue, "ended"), visitor.view["visitor"])
    return divmod(int(score), 8)


def deadline_of(system: System, queue: str, visitor: Visitor) -> int:
    return int(system.store.command("ZSCORE", system.key(queue, "active"),
                                    visitor.view["visitor"]))


def lateness(system: System, queue: str, places: set[int]) -> list[int]:
    """How many ms after its last deadline each of these sessions ended, according to the events."""
    deadlines: dict[int, int] = {}
    late = []
    for step in system.steps(queue):
        deadlines |= step.deadlines
        for place, reason in step.freed:
            if place in places:
                assert reason == "expired", (place, reason)
                late.append(step.time_ms - deadlines[place])
    assert len(late) == len(places), (late, places)
    return late


@pytest.mark.sanitized
def test_session_ends_at_its_deadline(share, figure):
    system = share(workers=2)
    bank = system.queue(capacity=20, session_ttl="1500ms", claim_ttl="10m")

    def has_been(visitor: Visitor, *states: str) -> None:
        wait_until(lambda: visitor.status()["status"] in states, PATIENCE, " or ".join(states))

    visitors = [system.join(bank) for _ in range(20)]
    for visitor in visitors:
        # The claim turns claim_ttl into session_ttl.
        has_been(visitor, "active", "expired")
    for visitor in visitors:
        has_been(visitor, "expired")
        assert visitor.view["end_reason"] == "expired", visitor.view
    late = sorted(lateness(system, bank, {read_ticket(visitor.ticket).place for visitor in visitors}))
    figure(f"sessions ended {late[0]} to {late[-1]} ms after their deadline")
    assert late[0] >= 0 and late[len(late) // 2] < patient(LATE_MS), late
    visitors = [system.join(bank) for _ in range(21)]
    for visitor in visitors:
        has_been(visitor, "active", "expired")  # the last one, after an end
    assert system.numbers(bank)["expired"] >= 21


def test_unclaimed_admission_is_given_on(share):
    system = share(workers=2)
    bank = system.queue(claim_ttl="2s")
    silent, present = system.join(bank), system.join(bank)
    wait_until(present.is_active, PATIENCE, "the visitor who shows up gets the silent visitor's counter")
    _, reason = end_of(system, bank, silent)
    assert reason == 4
    view = silent.status()
    assert (view["status"], view["end_reason"]) == ("expired", "unclaimed")
    assert system.numbers(bank)["unclaimed"] == 1
    # A claimed session lasts longer than claim_ttl.
    claimed = system.key(bank, "sessions")
    wait_until(lambda: system.store.command("HVALS", claimed)[0].endswith(":1"), PATIENCE, "claimed")
    left = deadline_of(system, bank, present)
    seconds, _ = system.store.command("TIME")
    assert left / 1000 - int(seconds) > 60


def test_asking_extends_no_session(share):
    """A forgotten tab asks on and on: its page, its status, its stream. Only the site keeps a session that slides."""
    system = share(workers=2)
    bank = system.queue(capacity=2, session_ttl="4s", session_sliding=True, session_max="10m")
    forgotten, used = system.join(bank), system.join(bank)
    wait_until(lambda: forgotten.is_active() and used.is_active(), PATIENCE, "both are inside")

    def is_over() -> bool:
        used.client.get(f"/v1/queues/{bank}/check", ticket=used.ticket)
        forgotten.client.get(f"/q/{bank}", ticket=forgotten.ticket)
        forgotten.client.get(f"/v1/queues/{bank}/status?wait=1s", ticket=forgotten.ticket)
        return forgotten.status()["status"] == "expired"

    with contextlib.closing(EventStream(forgotten.client.port, f"{forgotten.path}/events", forgotten.ticket)):
        wait_until(is_over, PATIENCE, "the session of a tab that only asks ends")
    assert used.is_active(), "the site's checks keep a session"


def test_absent_are_dropped_and_present_kept(start):
    """waiting_ttl: visitors who poll (any worker) stay, the others are dropped, and places behind them move up."""
    bank = "bank"
    system = start({bank: CALM | {"capacity": 1, "waiting_ttl": "4s"}}, workers=2)
    first = system.join(bank)
    line = [system.join(bank, worker=i % 2) for i in range(12)]
    absent, present = line[::3], [visitor for i, visitor in enumerate(line) if i % 3]
    ports = [program.http_port for program in system.of("worker")]
    poller = Poller([first, *present], ports)
    poller.start()
    try:
        wait_until(lambda: system.waiting(bank) <= len(present), PATIENCE, "the absent go")
        # The same time once more: visitors who poll are still there.
        began = int(system.store.command("TIME")[0])
        wait_until(lambda: int(system.store.command("TIME")[0]) > began + 5, PATIENCE, "5 s", every=0.1)
        assert system.waiting(bank) == len(present)
    finally:
        poller.stop()
    for i, visitor in enumerate(present):
        assert visitor.status()["position"] == i + 1
    for visitor in absent:
        view = visitor.status()
        assert (view["status"], view["end_reason"]) == ("expired", "absent")
    assert system.numbers(bank)["absent"] == len(absent)


def test_silence_of_a_worker_costs_nobody_a_place(start):
    """A worker that is cut off for longer than waiting_ttl keeps its visitors. When it is gone for good, they go too."""
    system = start({"bank": CALM | {"capacity": 1, "waiting_ttl": "4s"}}, workers=2)
    first = system.join("bank")
    there = [system.join("bank", worker=0) for _ in range(4)]
    cut_off = [system.join("bank", worker=1) for _ in range(6)]
    streams = [EventStream(visitor.client.port, f"{visitor.path}/events", visitor.ticket) for visitor in cut_off[:3]]
    for stream in streams:
        stream.event("position")
    for visitor in cut_off[3:]:
        visitor.status()
    worker = system.of("worker")[1]
    processes = [worker.pid, *worker.children()]

    def redis_seconds() -> float:
        seconds, micros = system.store.command("TIME")
        return int(seconds) + int(micros) / 1e6

    poller = Poller([first, *there], [system.of("worker")[0].http_port])
    poller.start()
    try:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        began = redis_seconds()
        wait_until(lambda: redis_seconds() > began + 6.5, PATIENCE, "more than waiting_ttl and its buckets", every=0.1)
        for process in processes:
            os.kill(process, signal.SIGCONT)
        for visitor in cut_off:  # those without a stream ask again
            assert visitor.status()["status"] == "waiting", visitor.view
        assert system.waiting("bank") == len(there) + len(cut_off)
        worker.kill()
        wait_until(lambda: system.waiting("bank") == len(there), PATIENCE, "the visitors of a dead worker go")
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
        poller.stop()
        for stream in streams:
            stream.close()


def test_a_worker_that_ends_says_farewell(start):
    system = start({"bank": CALM | {"capacity": 1, "waiting_ttl": "4s"}}, workers=2)
    for i in range(4):
        system.join("bank", worker=i % 2)
    reports = system.key("bank", "reports")
    wait_until(lambda: system.store.command("ZCARD", reports) == 2, PATIENCE, "both workers report")
    system.of("worker")[1].stop()
    wait_until(lambda: system.store.command("ZCARD", reports) == 1, PATIENCE, "the one that ended does not")


class Poller(threading.Thread):
    """Visitors who poll, each time at another worker."""

    def __init__(self, visitors: list[Visitor], ports: list[int]) -> None:
        super().__init__(daemon=True)
        self._tickets = [(visitor.path, visitor.ticket) for visitor in visitors]
        self._clients = [Client(port) for port in ports]
        self._stopped = threading.Event()
        self.bad: list[str] = []

    def run(self) -> None:
        turn = 0
        while not self._stopped.wait(0.2):
            turn += 1
            for path, ticket in self._tickets:
                answer = self._clients[turn % len(self._clients)].get(f"{path}/status", ticket)
                if answer.status != 200:
                    self.bad.append(f"{answer.status} {answer.body!r}")

    def stop(self) -> None:
        self._stopped.set()
        self.join()
        for client in self._clients:
            client.close()
        assert not self.bad, self.bad[:5]


def test_capacity_changed_while_running(share):
    system = share(workers=2)
    bank = system.queue(capacity=3)
    visitors = [system.join(bank) for _ in range(12)]
    wait_until(lambda: system.active(bank) == 3, PATIENCE, "three are active")
    system.set(bank, "capacity=6")
    wait_until(lambda: system.active(bank) == 6, PATIENCE, "raised: more are admitted at once")

    system.set(bank, "capacity=2")
    client = system.client()
    wait_until(lambda: client.get(f"/v1/queues/{bank}").json["capacity"] == 2, PATIENCE, "told")
    assert system.active(bank) == 6, "a lower capacity ends no session"
    for done in visitors[:4]:
        done.complete()
    wait_until(lambda: system.active(bank) == 2, PATIENCE, "two are left")
    assert visitors[6].status()["position"] == 1, "no visitor was admitted above the new capacity"
    visitors[4].complete()
    wait_until(visitors[6].is_active, PATIENCE, "below it, the next is admitted")

    system.set(bank, "capacity=0")
    visitors[5].complete()
    visitors[6].complete()
    wait_until(lambda: system.active(bank) == 0, PATIENCE, "empty")
    assert visitors[7].status()["position"] == 1
    system.set(bank, "capacity=100")
    wait_until(visitors[11].is_active, PATIENCE, "everyone is in")


def test_pause_and_resume(share):
    system = share(workers=2)
    bank = system.queue(mode="paused")
    visitors = [system.join(bank) for _ in range(3)]
    assert [visitor.view["position"] for visitor in visitors] == [1, 2, 3]
    client = system.client()
    wait_until(lambda: client.get(f"/v1/queues/{bank}").json["paused"], PATIENCE, "the worker says so")
    system.set(bank, "mode=open")
    wait_until(visitors[0].is_active, PATIENCE, "resumed")
    system.set(bank, "mode=paused")
    visitors[0].complete()
    assert visitors[1].status()["position"] == 1 and system.active(bank) == 0
    system.set(bank, "mode=open")
    wait_until(visitors[1].is_active, PATIENCE, "resumed again")


def test_not_open_yet(share):
    """Joining works before opens_at. No visitor is admitted before it, and all at once after it."""
    system = share(workers=2)
    bank = system.queue(capacity=5, opens_at="2099-01-01T00:00:00Z")
    visitors = [system.join(bank) for _ in range(3)]
    client = system.client()
    view = wait_until(lambda: (now := client.get(f"/v1/queues/{bank}").json)["open"] is False and now, PATIENCE,
                      "it is not open")
    assert view["opens_at"].startswith("2099-01-01T00:00:00"), view
    assert system.active(bank) == 0
    system.set(bank, "opens_at=2020-01-01T00:00:00Z")
    for visitor in visitors:
        wait_until(visitor.is_active, PATIENCE, "open")


def test_two_lanes(start):
    """The first lane is served first. Positions count all visitors who will be admitted before."""
    def keys(system: System) -> None:
        path = system.directory / "api.keys"
        path.write_text(f"shop {API_KEY}\n")
        path.chmod(0o600)

    system = start({"bank": {"capacity": 1, "lanes": ["vip", "normal"]} | CALM}, workers=2,
                   prepare=keys)
    normal = [system.join("bank") for _ in range(4)]
    wait_until(normal[0].is_active, PATIENCE, "the first is active")
    vip = [join_as(system, f"vip-{i}", "vip", i % 2) for i in range(3)]
    for worker in (0, 1):
        client = system.client(worker)
        wait_until(lambda c=client: [v.status(c)["position"] for v in vip + normal[1:]]
                   == [1, 2, 3, 4, 5, 6], PATIENCE, "vip stand before normal")
    # The same visitor joins again: the answer is the place already held, whatever lane is requested.
    again = join_as(system, "vip-1", "normal", 0)
    assert again.view["position"] == 2

    order = [normal[0], *vip, *normal[1:]]
    for done, following in zip(order, order[1:]):
        done.complete()
        wait_until(following.is_active, PATIENCE, "vip first, then normal, each in order")


def join_as(system: System, name: str, lane: str, worker: int) -> Visitor:
    visitor = system.visitor("bank", worker)
    body = f'{{"visitor": "{name}", "lane": "{lane}"}}'.encode()
    answer = visitor.client.post(f"{visitor.path}/join", body, ticket=API_KEY)
    assert answer.status == 200 and answer.json["visitor"] == name, answer.body
    visitor.view, visitor.ticket = answer.json, answer.json["ticket"]
    return visitor
