"""The line: places, positions, admission, and the change from one visitor to the next."""
from __future__ import annotations

import statistics
import time

from http_client import Visitor
from tellerline import CALM, PATIENCE, System
from waiting import one_of, wait_until


def positions(visitors: list[Visitor], system: System, worker: int) -> list[int]:
    client = system.client(worker)
    return [visitor.status(client)["position"] for visitor in visitors]


def join_alternating(system: System, queue: str, count: int) -> list[Visitor]:
    clients = [system.client(0), system.client(1)]
    return [Visitor(clients[i % 2], queue).join() for i in range(count)]


def test_hundred_joins_through_two_workers(start, figure):
    """Two of every program, one line: positions 1 to 90 behind 10 active visitors, falling as visitors leave."""
    system = start({"bank": {"capacity": 10} | CALM}, workers=2, dispatchers=2, admitters=2,
                   expirers=2)
    visitors = join_alternating(system, "bank", 100)
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

    delays = [one_leaves() for _ in range(4)]
    delays += one_of(20, one_leaves, 0.1, "seconds until a leave is seen on both workers")
    figure("a leave seen on both workers after "
           + ", ".join(f"{delay * 1000:.1f}" for delay in delays) + " ms")


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


def test_turn_takes_one_event(start, figure):
    """The next visitor is active after `complete` within the time of one event, not of one timer period.

    The limit is the time of about ten requests on this machine at this moment.
    """
    turns = 1000
    system = start({"counter": {"capacity": 1} | CALM})
    client, watcher = system.client(), system.client()
    visitors = [Visitor(client, "counter").join() for _ in range(turns + 1)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is active")

    times, requests = [], []
    for done, following in zip(visitors, visitors[1:]):
        assert following.view["status"] == "waiting"
        began = time.monotonic()
        following.status(watcher)
        requests.append((time.monotonic() - began) * 1000)
        began = time.monotonic()
        client.send("POST", f"{done.path}/complete", ticket=done.ticket)
        wait_until(lambda f=following: f.status(watcher)["status"] == "active", PATIENCE,
                   "the next is active", every=0.0002)
        times.append((time.monotonic() - began) * 1000)
        assert client.receive().json["status"] == "completed"
    times.sort()
    median = statistics.median(times)
    figure(f"{turns} turns from complete to the next being active: median {median:.2f} ms, "
           f"p99 {times[int(turns * 0.99)]:.2f} ms, max {times[-1]:.2f} ms")
    assert median < max(10, 10 * statistics.median(requests)), f"median {median:.2f} ms"


def test_free_counter_takes_the_next_who_comes_at_once(start, figure):
    """A counter that became free while the line was empty is not forgotten."""
    system = start({"bank": {"capacity": 1} | CALM})
    client = system.client()

    def time_of_one() -> float:
        began = time.monotonic()
        visitor = Visitor(client, "bank").join()
        wait_until(visitor.is_active, PATIENCE, "active at once", every=0.0005)
        took = (time.monotonic() - began) * 1000
        assert visitor.complete()["status"] == "completed"
        return took

    def median_of_twenty() -> float:
        times = [time_of_one() for _ in range(20)]
        figure(f"from join to active at a free counter: median {statistics.median(times):.2f} ms, "
               f"max {max(times):.2f} ms")
        return statistics.median(times)

    one_of(10, median_of_twenty, 100, "ms from join to active")


def test_place_is_known_on_every_worker_at_once(start):
    """A fresh ticket of one worker is valid at the other, which may not have read the event yet."""
    system = start({"bank": {"capacity": 1} | CALM}, workers=2)
    other = system.client(1)
    clients = [system.client(0), other]
    for i in range(200):
        visitor = Visitor(clients[0], "bank").join()
        view = visitor.status(other)
        assert view["status"] in ("waiting", "active"), f"join {i}: {view}"


def test_joining_again_keeps_the_place(start):
    system = start({"bank": {"capacity": 1} | CALM}, workers=2)
    system.join("bank")
    visitor = system.join("bank")
    system.join("bank")
    before = visitor.status()
    visitor.join()
    again = Visitor(system.client(1), "bank", visitor.ticket).join()
    for view in (visitor.view, again.view):
        assert (view["visitor"], view["position"]) == (before["visitor"], before["position"])
    assert system.numbers("bank")["joined"] == 3


def test_ends_are_told_and_may_be_repeated(start):
    """Leave and complete are idempotent. A visitor whose place has ended may join again, at the back."""
    system = start({"bank": {"capacity": 1} | CALM})
    first, second, third = (system.join("bank") for _ in range(3))
    wait_until(first.is_active, PATIENCE, "the first is active")

    answer = second.client.post(f"{second.path}/complete", ticket=second.ticket)
    assert answer.problem(409)["type"].endswith("/not-admitted")

    for _ in range(2):
        assert first.complete()["status"] == "completed"
        assert third.leave()["status"] == "left"
    wait_until(second.is_active, PATIENCE, "the second is active")
    assert first.status()["status"] == "completed"
    numbers = system.numbers("bank")
    assert (numbers["completed"], numbers["left"], numbers["admitted"]) == (1, 1, 2)

    third.join()
    assert third.view["status"] == "waiting" and third.view["position"] == 1
    assert first.join().status()["position"] == 2


def test_public_numbers_and_health(start):
    system = start({"bank": {"capacity": 2} | CALM})
    visitors = [system.join("bank") for _ in range(5)]
    wait_until(visitors[1].is_active, PATIENCE, "two are active")
    client = system.client()
    wait_until(lambda: client.get("/v1/queues/bank").json["active"] == 2, PATIENCE, "numbers")
    view = client.get("/v1/queues/bank").json
    assert view["queue"] == "bank" and view["open"] is True
    assert (view["waiting"], view["active"], view["capacity"]) == (3, 2, 2)
    assert client.get("/livez").status == 200 and client.get("/readyz").status == 200
    for program in system.programs:
        assert_metrics(system, program.role, program.admin_port)


def assert_metrics(system: System, role: str, port: int) -> None:
    client = Visitor(system.client(), "bank").client
    client = type(client)(port)
    try:
        text = client.get("/metrics")
        assert text.status == 200 and text.headers["content-type"].startswith("text/plain")
        assert f"tellerline_{role}_" in text.body.decode()
        assert client.get("/livez").status == 200
    finally:
        client.close()
