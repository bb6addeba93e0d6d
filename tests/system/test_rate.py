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
from waiting import wait_until

ACTORS, SECONDS, TTL = 24, 10.0, 30.0
STALENESS = 3.0

#: Policy, capacity and rate.
RULES = {
    "smooth": ("rate", None, Rate(20, 1.0, TTL)),
    "smooth-burst": ("rate", None, Rate(20, 1.0, TTL, burst=5)),
    "lumps": ("rate", None, Rate(20, 1.0, TTL, lumps=True)),
    "both": ("both", 4, Rate(20, 1.0, TTL)),
    "both-lumps": ("both", 4, Rate(6, 0.5, TTL, lumps=True)),
}


def settings_of(policy: str, capacity: int | None, rate: Rate) -> dict:
    shape = {"shape": "lumps"} if rate.lumps else {"burst": rate.burst}
    queue = {"policy": policy, "rate": {"admit": rate.admit, "every": f"{rate.every * 1000:g}ms"} | shape,
             "session_ttl": f"{TTL:g}s", "claim_ttl": f"{TTL:g}s", "waiting_ttl": "20s"}
    return queue | ({"capacity": capacity} if capacity is not None else {})


def kill_admitters(system: System, seconds: float, chance: random.Random) -> int:
    """One at a time, at a random moment; every second one stays away until the next."""
    end, kills = time.monotonic() + seconds, 0
    away = None
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.0, 1.0))  # at a random moment
        program = chance.choice([program for program in system.of("admitter") if program is not away])
        program.kill()
        kills += 1
        if away is not None:
            away.start()
            away = None
        if chance.random() < 0.5:
            away = program
        else:
            program.start()
    if away is not None:
        away.start()
    return kills


@pytest.mark.parametrize("rule", RULES)
def test_admitters_that_die_never_exceed_the_rate(start, rule):
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={seed}")
    policy, capacity, rate = RULES[rule]
    system = start({"door": settings_of(policy, capacity, rate)}, admitters=3,
                   settings={"http": {"join_wait": "1s"}, "streams": {"events_length": 1000000}})
    history, stop = History(), threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    deadline = time.monotonic() + SECONDS + 90
    actors = [Actor(i, seed, ports, "door", history, stop, deadline) for i in range(ACTORS)]
    for actor in actors:
        actor.start()
    try:
        kills = kill_admitters(system, SECONDS, random.Random(seed))
    finally:
        stop.set()
    conclude(system, "door", capacity, actors, history, STALENESS, f"TELLERLINE_SEED={seed}", rate)
    admitted = system.numbers("door")["admitted"]
    print(f"{admitted} admitted, {kills} kills")
    assert admitted > rate.admit, "the rate is used"
    assert capacity is not None or max(step.active for step in system.steps("door")) > 0


def test_a_rate_is_changed_while_visitors_wait(start):
    """At once, announced, and neither lost nor granted twice: a day's rate becomes one of seconds, then lumps."""
    system = start({"door": {"policy": "rate", "rate": {"admit": 1, "every": "1d"}} | CALM}, settings=PROMPT)
    visitors = [system.join("door") for _ in range(12)]
    assert system.client().get("/v1/queues/door").json.get("capacity") is None
    system.set("door", "rate.admit=5", "rate.every=1s")
    wait_until(visitors[5].is_active, PATIENCE, "the new rate is in force")
    assert any(line.startswith("door") and "5/1s" in line for line in system.ctl("queues").stdout.splitlines())
    public = system.client().get("/v1/queues/door").json
    assert (public["rate_admit"], public["rate_every_ms"]) == (5, 1000)
    assert "capacity" not in public and "capacity" not in visitors[-1].status()
    system.set("door", "rate_shape=lumps", "rate_every=2s")
    wait_until(visitors[11].is_active, PATIENCE, "the lumps are admitted")
    system.set("door", "policy=counter", "capacity=13")
    later = [system.join("door") for _ in range(3)]
    wait_until(later[0].is_active, PATIENCE, "one is left of the capacity")
    assert later[1].status()["status"] == "waiting"
    system.set("door", "policy=both", "capacity=20")
    wait_until(later[2].is_active, PATIENCE, "by both")


def test_a_wait_by_rate_is_known_at_once(start):
    """The estimate of a queue with a rate is the rate, before any admission was seen."""
    system = start({"door": {"policy": "rate", "rate": {"admit": 2, "every": "1h", "shape": "lumps"}} | CALM},
                   settings=PROMPT)
    visitors = [system.join("door") for _ in range(5)]
    views = [visitor.status() for visitor in visitors]
    assert [view["eta_high"] for view in views] == [3600, 3600, 7200, 7200, 10800]
    assert [view["eta_low"] for view in views] == [0, 0, 3600, 3600, 7200]
