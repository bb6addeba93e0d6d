# SPDX-License-Identifier: Apache-2.0
"""A queue with all rules in play, for tests of faults: a rate, a capacity and lanes with weights. Visitors of both lanes
come and go; the history checker judges the windows of the rate, the shares of the lanes and the capacity."""
from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from actors import Actor
from faults import conclude
from history import History, Rate, Shares, check
from http_client import Answer
from tellerline import System
from test_pass import key_file
from waiting import PATIENCE, patient, wait_until

API_KEY = "k" * 40
LANES, WEIGHTS = ["vip", "normal"], (2, 1)
CAPACITY, ACTORS, STALENESS, TTL = 6, 12, 3.0, 30.0
#: Both limit: visitors stay so long that six of them take about twenty turns a second.
RATES = {"smooth": Rate(20, 1.0, TTL, burst=2), "batches": Rate(6, 0.4, TTL, batches=True)}


def seed() -> int:
    chosen = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={chosen}")
    return chosen


def rate_setting(rate: Rate) -> dict[str, Any]:
    shape = {"shape": "batches"} if rate.batches else {"burst": rate.burst}
    return {"admit": rate.admit, "every": f"{rate.every * 1000:g}ms"} | shape


def queue_of(rate: Rate) -> dict[str, Any]:
    """claim_ttl is session_ttl, so that an admission tells when it was."""
    return {"policy": "both", "rate": rate_setting(rate), "capacity": CAPACITY, "lanes": LANES,
            "lane_weights": list(WEIGHTS), "session_ttl": f"{rate.ttl:g}s", "claim_ttl": f"{rate.ttl:g}s",
            "waiting_ttl": "20s"}


def settings(folder: Path) -> dict[str, Any]:
    return {"secrets": {"api_keys": key_file(folder / "api.keys", f"shop {API_KEY}\n")}, "http": {"join_wait": "1s"},
            "redis": {"timeout": "1s"}, "retention": {"events_entries": 1000000}}


class LaneActor(Actor):
    """Whom the site's back end names, in a lane that it chooses."""

    visits = 0

    def _enter(self) -> Answer:
        self.visits += 1
        body = {"visitor": f"{self.name}-{self.visits}", "lane": self._random.choice(LANES)}
        return self._some_client().post(f"{self._path}/join", json.dumps(body).encode(), ticket=API_KEY)


@contextlib.contextmanager
def visitors(system: System, queue: str, rate: Rate, chosen: int) -> Iterator[History]:
    """Visitors come and go during the block. Then the line drains, and the history is checked."""
    history, stop = History(shares=[Shares(0.0, WEIGHTS)]), threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    deadline = time.monotonic() + patient(2 * PATIENCE)
    actors = [LaneActor(i, chosen, ports, queue, history, stop, deadline, served=(0.0, 0.4))
              for i in range(ACTORS)]
    for actor in actors:
        actor.start()
    try:
        wait_until(lambda: len(history.stays) > ACTORS, PATIENCE, "visitors come and go")
        yield history
        come_and_go(history)
    finally:
        stop.set()
    conclude(system, queue, CAPACITY, actors, history, patient(STALENESS), f"TELLERLINE_SEED={chosen}", rate)
    assert {stay.place >> 48 for stay in history.stays} == {0, 1}, "visitors of both lanes"


def come_and_go(history: History) -> None:
    """Waits until more visitors have joined than have a place at once."""
    enough = len(history.stays) + CAPACITY + 2
    wait_until(lambda: len(history.stays) >= enough, PATIENCE, "more visitors come")


def judge(system: System, queue: str, history: History, rate: Rate) -> None:
    """For tests without actors, after the line has drained."""
    check(history, system.steps(queue), CAPACITY, system.final(queue), patient(STALENESS), one_clock=True, rate=rate)
