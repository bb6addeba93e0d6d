# SPDX-License-Identifier: Apache-2.0
"""Admission by rate, with three admitters of which one after the other is killed at a random moment.

Every window is counted, in the events and in what visitors were told of their own admission. TELLERLINE_SEED=N repeats
the choices of a run.
"""
from __future__ import annotations

import os
import random
import threading
import time

import pytest

from actors import Actor
from faults import conclude
from history import History, Rate
from tellerline import CALM, PATIENCE, System
from test_store_trouble import PROMPT
from waiting import patient, wait_until

ACTORS, KILLS, TTL = 8, 20, 30.0
STALENESS = 3.0

#: Policy, capacity and rate, by the name of the queue. Eight visitors at a time ask for more than each of them gives.
RULES = {
    "smooth": ("rate", None, Rate(10, 1.0, TTL)),
    "smooth-burst": ("rate", None, Rate(10, 1.0, TTL, burst=3)),
    "batches": ("rate", None, Rate(10, 1.0, TTL, batches=True)),
    "both": ("both", 4, Rate(10, 1.0, TTL)),
    "both-batches": ("both", 4, Rate(5, 0.5, TTL, batches=True)),
}


def settings_of(policy: str, capacity: int | None, rate: Rate) -> dict:
    shape = {"shape": "batches"} if rate.batches else {"burst": rate.burst}
    queue = {"policy": policy, "rate": {"admit": rate.admit, "every": f"{rate.every * 1000:g}ms"} | shape,
             "session_ttl": f"{TTL:g}s", "claim_ttl": f"{TTL:g}s", "waiting_ttl": "20s"}
    return queue | ({"capacity": capacity} if capacity is not None else {})


def kill_admitters(system: System, kills: int, chance: random.Random) -> None:
    """One at a time, at a random moment; every second one stays away until the next."""
    away = None
    for _ in range(kills):
        time.sleep(chance.uniform(0.0, 1.0))  # at a random moment
        program = chance.choice([program for program in system.of("admitter") if program is not away])
        program.kill()
        if away is not None:
            away.start()
            away = None
        if chance.random() < 0.5:
            away = program
        else:
            program.start()
    if away is not None:
        away.start()


@pytest.mark.sanitized
@pytest.mark.long(seconds=20)
def test_admitters_that_die_never_exceed_the_rate(start):
    """A queue for each of the rules, all at once."""
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={seed}")
    system = start({queue: settings_of(*rule) for queue, rule in RULES.items()}, admitters=3,
                   settings={"http": {"join_wait": "1s"}, "retention": {"events_entries": 1000000}})
    histories, stop = {queue: History() for queue in RULES}, threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    deadline = time.monotonic() + patient(120)
    actors = {queue: [Actor(i, seed, ports, queue, histories[queue], stop, deadline) for i in range(ACTORS)]
              for queue in RULES}
    for actor in sum(actors.values(), []):
        actor.start()
    try:
        kill_admitters(system, KILLS, random.Random(seed))
        for queue, (_, _, rate) in RULES.items():
            wait_until(lambda q=queue, r=rate: system.numbers(q)["admitted"] > 3 * r.admit, PATIENCE,
                       f"the rate of {queue} is used")
    finally:
        stop.set()
    for queue, (_, capacity, rate) in RULES.items():
        conclude(system, queue, capacity, actors[queue], histories[queue], patient(STALENESS),
                 f"{queue}, TELLERLINE_SEED={seed}", rate)
        assert max(step.active for step in system.steps(queue)) > 0


def test_a_rate_is_changed_while_visitors_wait(start):
    """At once, announced, and neither lost nor granted twice: a day's rate becomes one of seconds, then batches."""
    system = start({"door": {"policy": "rate", "rate": {"admit": 1, "every": "1d"}} | CALM}, settings=PROMPT)
    visitors = [system.join("door") for _ in range(12)]
    assert system.client().get("/v1/queues/door").json.get("capacity") is None
    system.set("door", "rate.admit=5", "rate.every=400ms")
    wait_until(visitors[5].is_active, PATIENCE, "the new rate is in force")
    assert any(line.startswith("door ") and "5/400ms" in line for line in system.ctl("queue", "list").stdout.splitlines())
    public = system.client().get("/v1/queues/door").json
    assert (public["rate_admit"], public["rate_every_ms"]) == (5, 400)
    assert "capacity" not in public and "capacity" not in visitors[-1].status()
    system.set("door", "rate.shape=batches", "rate.every=800ms")
    wait_until(visitors[11].is_active, PATIENCE, "the batches are admitted")
    system.set("door", "policy=counter", "capacity=13")
    later = [system.join("door") for _ in range(3)]
    wait_until(later[0].is_active, PATIENCE, "one is left of the capacity")
    assert later[1].status()["status"] == "waiting"
    system.set("door", "policy=both", "capacity=20")
    wait_until(later[2].is_active, PATIENCE, "by both")


def test_a_wait_by_rate_is_known_at_once(start):
    """The estimate of a queue with a rate is the rate, before any admission was seen."""
    system = start({"door": {"policy": "rate", "rate": {"admit": 2, "every": "1h", "shape": "batches"}} | CALM},
                   settings=PROMPT)
    visitors = [system.join("door") for _ in range(5)]
    views = [visitor.status() for visitor in visitors]
    assert [view["eta_high"] for view in views] == [3600, 3600, 7200, 7200, 10800]
    assert [view["eta_low"] for view in views] == [0, 0, 3600, 3600, 7200]
