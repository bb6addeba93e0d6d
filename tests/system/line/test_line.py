# SPDX-License-Identifier: Apache-2.0
"""The line: places, positions, admission, and the change from one visitor to the next."""
from __future__ import annotations

import time

import pytest

from http_client import Client, Visitor
from tellerline import PATIENCE, System
from waiting import patient, wait_until

pytestmark = pytest.mark.together(seconds=10)

#: Everything that happens in the line has a timer of seconds behind it, by which it would be found in the end. In this
#: time (seconds; some hundred milliseconds are usual) only few such timers end.
PROMPTLY = 10.0



def positions(visitors: list[Visitor], system: System, worker: int) -> list[int]:
    client = system.client(worker)
    return [visitor.status(client)["position"] for visitor in visitors]


def join_alternating(system: System, queue: str, count: int) -> list[Visitor]:
    clients = [system.client(0), system.client(1)]
    return [Visitor(clients[i % 2], queue).join() for i in range(count)]


@pytest.mark.sanitized
def test_hundred_joins_through_two_workers(share, figure):
    """Two of every program, one line: positions 1 to 90 behind 10 active visitors, falling as visitors leave."""
    system = share(workers=2, dispatchers=2, admitters=2, expirers=2)
    visitors = join_alternating(system, system.queue(capacity=10), 100)
    for visitor in visitors[:10]:
        wait_until(visitor.is_active, PATIENCE, "the first ten are active")
    line = visitors[10:]
    for worker in (0, 1):
        wait_until(lambda w=worker: positions(line, system, w) == list(range(1, 91)), PATIENCE,
                   "positions 1..90")
    for visitor in line:
        assert visitor.view["ahead"] == visitor.view["position"] - 1
        assert (visitor.view["waiting"], visitor.view["active"]) == (90, 10)

    def one_leaves() -> float:
        gone = line.pop(len(line) // 2)
        delay = leave_and_watch(system, line[-1], gone)
        for worker in (0, 1):
            # Visitors behind moved up by exactly one. Visitors ahead did not move.
            assert positions(line, system, worker) == list(range(1, len(line) + 1))
        return delay

    delays = [one_leaves() for _ in range(20)]
    figure(f"20 leaves, each seen on both workers after {min(delays) * 1000:.1f} to {max(delays) * 1000:.1f} ms")
    assert sum(delays) < patient(PROMPTLY), delays


def leave_and_watch(system: System, last: Visitor, gone: Visitor) -> float:
    """Seconds from sending the leave until the last in line has moved up by one on both workers."""
    clients = [system.client(0), system.client(1)]
    before = last.status(clients[0])["position"]
    sender = system.client(0)
    began = time.monotonic()
    sender.send("POST", f"{gone.path}/leave", ticket=gone.ticket)

    def moved() -> bool:
        seen = [last.status(client)["position"] for client in clients]
        assert set(seen) <= {before, before - 1}, f"from {before} to {seen}"
        return seen == [before - 1, before - 1]

    wait_until(moved, PATIENCE, "the place behind falls by one on both workers", every=0.001)
    delay = time.monotonic() - began
    answer = sender.receive()
    assert answer.status == 200 and answer.json["status"] == "left", answer.body
    return delay


def test_turn_takes_one_event(share, figure):
    """The next visitor is active after `complete` within the time of one event, not of one timer period."""
    turns = 100
    system = share(workers=2)
    counter = system.queue()
    client, watcher = system.client(), system.client()
    visitors = [Visitor(client, counter).join() for _ in range(turns + 1)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is active")

    times = []
    for done, following in zip(visitors, visitors[1:]):
        assert following.view["status"] == "waiting"
        began = time.monotonic()
        client.send("POST", f"{done.path}/complete", ticket=done.ticket)
        wait_until(lambda f=following: f.status(watcher)["status"] == "active", PATIENCE,
                   "the next is active", every=0.0002)
        times.append(time.monotonic() - began)
        assert client.receive().json["status"] == "completed"
    figure(f"{turns} turns from complete to the next being active in {sum(times) * 1000:.0f} ms, "
           f"max {max(times) * 1000:.1f} ms")
    assert sum(times) < patient(PROMPTLY), times


def test_free_counter_takes_the_next_who_comes_at_once(share, figure):
    """A counter that became free while the line was empty is not forgotten."""
    system = share(workers=2)
    client, bank = system.client(), system.queue()

    def time_of_one() -> float:
        began = time.monotonic()
        visitor = Visitor(client, bank).join()
        wait_until(visitor.is_active, PATIENCE, "active at once", every=0.0005)
        took = time.monotonic() - began
        assert visitor.complete()["status"] == "completed"
        return took

    times = [time_of_one() for _ in range(20)]
    figure(f"20 times from join to active at a free counter: max {max(times) * 1000:.1f} ms")
    assert sum(times) < patient(PROMPTLY), times


def test_place_is_known_on_every_worker_at_once(share):
    """A fresh ticket of one worker is valid at the other, which may not have read the event yet."""
    system = share(workers=2)
    bank = system.queue()
    other = system.client(1)
    clients = [system.client(0), other]
    for i in range(50):
        visitor = Visitor(clients[0], bank).join()
        view = visitor.status(other)
        assert view["status"] in ("waiting", "active"), f"join {i}: {view}"


def test_joining_again_keeps_the_place(share):
    system = share(workers=2)
    bank = system.queue(capacity=0)  # nobody's place changes meanwhile
    system.join(bank)
    visitor = system.join(bank)
    system.join(bank)
    before = visitor.status()
    visitor.join()
    again = Visitor(system.client(1), bank, visitor.ticket).join()
    for view in (visitor.view, again.view):
        assert (view["visitor"], view["position"]) == (before["visitor"], before["position"])
    assert system.numbers(bank)["joined"] == 3


def test_ends_are_told_and_may_be_repeated(share):
    """Leave and complete are idempotent. A visitor whose place has ended may join again, at the back."""
    system = share(workers=2)
    bank = system.queue()
    first, second, third = (system.join(bank) for _ in range(3))
    wait_until(first.is_active, PATIENCE, "the first is active")

    answer = second.client.post(f"{second.path}/complete", ticket=second.ticket)
    assert answer.problem(409)["type"].endswith("/not-admitted")

    for _ in range(2):
        assert first.complete()["status"] == "completed"
        assert third.leave()["status"] == "left"
    wait_until(second.is_active, PATIENCE, "the second is active")
    assert first.status()["status"] == "completed"
    numbers = system.numbers(bank)
    assert (numbers["completed"], numbers["left"], numbers["admitted"]) == (1, 1, 2)

    third.join()
    assert third.view["status"] == "waiting" and third.view["position"] == 1
    assert first.join().status()["position"] == 2


def test_public_numbers_and_health(share):
    system = share(workers=2, dispatchers=2, admitters=2, expirers=2)
    bank = system.queue(capacity=2)
    visitors = [system.join(bank) for _ in range(5)]
    wait_until(visitors[1].is_active, PATIENCE, "two are active")
    client = system.client()
    view = wait_until(lambda: (now := client.get(f"/v1/queues/{bank}").json)["active"] == now["capacity"] == 2 and now,
                      PATIENCE, "numbers")
    assert view["queue"] == bank and view["open"] is True
    assert (view["waiting"], view["active"], view["capacity"]) == (3, 2, 2)
    assert client.get("/livez").status == 200 and client.get("/readyz").status == 200
    for program in system.programs:
        assert_metrics(program.role, program.admin_port)


def assert_metrics(role: str, port: int) -> None:
    client = Client(port)
    try:
        text = client.get("/metrics")
        assert text.status == 200 and text.headers["content-type"].startswith("text/plain")
        assert f"tellerline_{role}_" in text.body.decode()
        assert client.get("/livez").status == 200
    finally:
        client.close()
