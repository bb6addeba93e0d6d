# SPDX-License-Identifier: Apache-2.0
"""Overbooking: more are called than there is capacity, and only as many as there is capacity get in."""
from __future__ import annotations

import os
import random
import threading
import time

import pytest

import wire
from actors import Actor
from faults import conclude
from history import History
from http_client import Visitor
from sse import EventStream
from tellerline import CALM, PATIENCE, System
from test_rate import kill_admitters
from waiting import patient, wait_until

pytestmark = pytest.mark.together(seconds=20)

#: Learned before: six in ten never come.
LEARNED = ":0:400:600"


def learned(system: System, queue: str) -> None:
    """The admitter has begun to count, and is told what it would have learned from a thousand visitors."""
    state = system.key(queue, "state")
    since = wait_until(lambda: (system.store.command("HGET", state, "called") or "").partition(":")[0], PATIENCE,
                       "it counts")
    system.store.command("HSET", state, "called", f"{int(since) - 1}{LEARNED}")


def check(system: System, visitor, worker: int = 0) -> int:
    return system.client(worker).get(f"{visitor.path}/check", ticket=visitor.ticket).status


def gets_in(system: System, visitor) -> None:
    """The worker may know of the turn a moment later than the store."""
    wait_until(lambda: check(system, visitor) == 204, PATIENCE, "the gate is open")


def most_claimed(system: System, queue: str) -> int:
    """By the events: how many sessions were claimed at the same time."""
    claimed: set[int] = set()
    most = 0
    for step in system.steps(queue):
        freed = {place for place, _ in step.freed}
        claimed = (claimed | (set(step.deadlines) - set(step.admitted))) - freed
        most = max(most, len(claimed))
    return most


def test_who_comes_when_it_is_full_is_next(share):
    """Four are called to two counters. The first two who come get in; the others are next, in their order, and get in
    the moment a session ends. Through any worker."""
    system = share(workers=2)
    shop = system.queue(capacity=2, overbook=2)
    learned(system, shop)
    visitors = [system.join(shop, worker=i % 2) for i in range(6)]
    wait_until(lambda: system.active(shop) == 4, PATIENCE, "four are called")
    gets_in(system, visitors[3])
    gets_in(system, visitors[1])
    for worker in (0, 1):
        for late in (visitors[2], visitors[0]):
            client = system.client(worker)
            wait_until(lambda: late.status(client).get("called"), PATIENCE, "this worker knows of the turn")
            assert check(system, late, worker) == 401
            view = late.status(client)
            assert (view["status"], view["position"], view["ahead"], view["called"]) == ("waiting", 1, 0, True)
    assert check(system, visitors[3]) == 204
    cookie = {"Cookie": f"tellerline_{shop}={visitors[0].ticket}"}
    page = system.client().get(f"/q/{shop}", headers=cookie).body.decode()
    assert 'data-tl="called">' in page
    stream = EventStream(system.of("worker")[1].http_port, f"/v1/queues/{shop}/events", visitors[0].ticket)
    assert stream.event("position").json["called"] is True
    assert visitors[3].complete()["status"] == "completed"
    assert stream.event("admitted").json["status"] == "active"
    stream.close()
    gets_in(system, visitors[0])
    assert check(system, visitors[2]) == 401, "the one before went first"
    assert visitors[1].leave()["status"] == "left"
    gets_in(system, visitors[2])
    assert most_claimed(system, shop) == 2


def test_a_claim_that_goes_away_gives_its_turn_up(share):
    system = share(workers=2)
    shop = system.queue(overbook=1, claim_ttl="3s")
    learned(system, shop)
    visitors = [system.join(shop) for _ in range(3)]
    wait_until(lambda: system.active(shop) == 2, PATIENCE, "two are called")
    gets_in(system, visitors[0])
    assert check(system, visitors[1]) == 401
    wait_until(lambda: system.active(shop) == 1, PATIENCE, "who does not ask again loses the turn")
    wait_until(lambda: visitors[1].status().get("end_reason") == "unclaimed", PATIENCE, "and is told so")
    visitors[0].complete()
    wait_until(visitors[2].is_active, PATIENCE, "the next one is called")
    assert check(system, visitors[2]) == 204


def test_the_share_is_learned(share):
    """Half of those called never come: after a while more are called than there are counters."""
    system = share(workers=2)
    shop = system.queue(capacity=20, overbook=10, claim_ttl="600ms")
    wait_until(lambda: system.store.command("HGET", system.key(shop, "state"), "called"), PATIENCE, "it counts")
    client, most = system.client(), 0
    done: set[str] = set()

    def is_overbooked() -> bool:
        nonlocal most
        while system.waiting(shop) < 60:
            Visitor(client, shop).join()
        most = max(most, system.active(shop))
        for visitor in system.store.command("ZRANGE", system.key(shop, "active"), 0, -1):
            if visitor in done or hash(visitor) % 2:
                continue
            done.add(visitor)
            session = system.store.command("HGET", system.key(shop, "sessions"), visitor)
            if session:
                wire_claim(system, shop, visitor, int(session.partition(":")[0]))
        return most > 20

    wait_until(is_overbooked, PATIENCE, "more are called than there are counters")
    assert most <= 30, most
    assert most_claimed(system, shop) <= 20


def wire_claim(system: System, queue: str, visitor: str, place: int) -> None:
    """The visitor comes and goes, as a worker tells it."""
    global BATCH
    BATCH += 1
    generation = int(system.store.command("HGET", system.key(queue, "state"), "generation"))
    commands = [[4, visitor, place], [3, visitor, place]]
    payload = wire.pack([1, "test", BATCH, generation, 0, commands])
    system.store.command("XADD", system.key(queue, "ingest"), "*", "d", payload)


BATCH = 0


@pytest.mark.sanitized
def test_three_admitters_that_die_let_no_more_in(start):
    """Visitors come or do not come, while admitters are killed: active and claimed stay within their bounds, and who has
    the next turn keeps it, by the events and by what visitors were told."""
    system = start({"shop": {"capacity": 5, "overbook": 5} | CALM | {"claim_ttl": "1s"}}, admitters=3, workers=2,
                   settings={"retention": {"events_entries": 1000000}})
    learned(system, "shop")
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={seed}")
    history, stop = History(), threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    actors = [Actor(i, seed, ports, "shop", history, stop, time.monotonic() + patient(4 * PATIENCE), served=(0.3, 1.0),
                    leavers=0.05, noshows=0.3) for i in range(16)]
    for actor in actors:
        actor.start()
    try:
        kill_admitters(system, 10, random.Random(seed))
        # When these happen is a matter of chance, so visitors come until they have.
        wait_until(lambda: max(step.active for step in system.steps("shop")) > 5, PATIENCE, "it is overbooked", every=0.2)
        wait_until(lambda: any(stay.turns for stay in list(history.stays)), PATIENCE, "somebody has the next turn")
    finally:
        stop.set()
    conclude(system, "shop", 5, actors, history, patient(3.0), f"TELLERLINE_SEED={seed}", overbook=5)


def test_by_default_nothing_is_counted(share):
    system = share(workers=2)
    shop = system.queue()
    visitor = system.join(shop)
    wait_until(visitor.is_active, PATIENCE, "is called")
    gets_in(system, visitor)
    visitor.complete()
    assert system.store.command("HEXISTS", system.key(shop, "state"), "called") == 0


def test_overbook_is_a_number_up_to_the_capacity(share):
    system = share(workers=2)
    shop = system.queue()
    for value in ("2", "-1", "x"):
        done = system.ctl("queue", "set", shop, f"overbook={value}")
        assert done.returncode != 0 and "overbook" in done.stderr, (value, done)
