# SPDX-License-Identifier: Apache-2.0
"""Random faults of every kind while visitors come and go; the history checker decides.

TELLERLINE_SEED=N repeats the choices of a run. `tests/run --soak SECONDS` runs all faults at once for so long.
"""
from __future__ import annotations

import os
import random
import threading
import time

import pytest

from faults import Faults, live_through
from postgres_server import PostgresServer
from redis_server import RedisError, RedisGone
from site_stand_in import Site
from tellerline import PATIENCE, System
from waiting import patient, wait_until

pytestmark = pytest.mark.sanitized

CAPACITY = 4
#: Places whose client got no answer are called and never claimed. A visitor who is there claims within a moment.
CLAIM_TTL = f"{patient(10):.0f}s"
QUEUE = {"capacity": CAPACITY, "session_ttl": "60s", "claim_ttl": CLAIM_TTL, "waiting_ttl": "60s", "recovery_window": "5s"}
PROGRAMS = ["kill", "kill_child", "freeze"]
STORE = ["store_killed", "store_frozen", "connections_cut", "store_full", "disk_full", "store_demoted", "poison"]
LOSSES = ["tail_lost", "emptied", "flushed"]
POSTGRES = ["postgres_killed", "postgres_cut", "postgres_frozen"]


def seed() -> int:
    chosen = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={chosen}")
    return chosen


def run(start, figure, kinds: list[str], fsync: str = "always", postgres: PostgresServer | None = None, **how: float) -> None:
    archive = {"archive": {"url": postgres.url, "restore": "auto", "reconcile": "2s"}} if postgres else {}
    system = start({"door": QUEUE}, workers=2, dispatchers=2, admitters=2, expirers=2, archivers=2 if postgres else 0,
                   redis={"appendfsync": fsync},
                   settings={"http": {"join_wait": "1s"}, "worker": {"processes": 2}, "redis": {"timeout": "1s"},
                             "retention": {"events_entries": 1000000}} | archive)
    figure(live_through(system, "door", CAPACITY, seed(), kinds, postgres=postgres, **how))


@pytest.mark.long(seconds=35)
@pytest.mark.parametrize("kinds, rounds", [(PROGRAMS + STORE, 1), (["tail_lost"], 3), (["flushed", "emptied"], 2)],
                         ids=["nothing-lost", "tail-lost", "all-lost"])
def test_random_faults(start, figure, kinds, rounds):
    run(start, figure, kinds, rounds=rounds, least=30)


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_a_full_disk_of_the_store(start, figure, fsync):
    """Visitors join, are called and complete before, meanwhile and afterwards. Nothing that was told is lost."""
    run(start, figure, ["disk_full"], fsync, rounds=3, least=30)


class Capacities(threading.Thread):
    """Reads which capacity is in force, again and again."""

    def __init__(self, system: System, queue: str) -> None:
        super().__init__(daemon=True)
        self._system, self._key = system, system.key(queue, "state")
        self.done = threading.Event()
        self.now = 0
        self.seen: set[int] = set()

    def run(self) -> None:
        while not self.done.wait(0.02):
            try:
                store = self._system.redis.connect()
                while not self.done.wait(0.01):
                    self.now = int(store.command("HGET", self._key, "capacity_now") or 2)
                    self.seen.add(self.now)
            except (RedisError, RedisGone):
                continue


@pytest.mark.long(seconds=25)
def test_a_steered_capacity_stays_within_its_bounds(start, figure):
    """The probe is wrong, silent or far too slow, admitters and the store are killed: it is never outside its bounds, and
    visitors are admitted all the time."""
    with Site().serving() as site:
        class Steered(Faults):
            """Faults of the site and of those who steer."""

            def admitter_killed(self) -> None:
                program = self._random.choice(self._system.of("admitter"))
                program.kill()
                time.sleep(self._random.uniform(0, 1))
                program.start()

            def probe_wrong(self) -> None:
                for site.mood in self._random.sample(["hangs", "garbage", "error", "redirect", "huge"], 2):
                    time.sleep(self._random.uniform(0.2, 1.5))
                site.mood = "well"

            def overloaded(self) -> None:
                """Until it is as low as it may be, and for longer than the pause between two cuts."""
                wait_until(lambda: capacities.now >= 4, PATIENCE, "it is raised")
                site.load = self._random.uniform(0.85, 5)
                wait_until(lambda: capacities.now <= 2, PATIENCE, "it is cut as far as it may be")
                time.sleep(patient(2))
                site.load = self._random.uniform(0, 0.5)

        probe = {"url": f"http://127.0.0.1:{site.port}/load", "value": "pool.busy", "full": 200, "every": "200ms",
                 "timeout": "400ms"}
        queue = QUEUE | {"capacity": {"min": 2, "max": 6}, "probe": probe,
                         "adaptive": {"every": "1s", "raise": "20%", "hold": "1s", "fresh": "2s"}}
        system = start({"door": queue}, admitters=2, redis={"appendfsync": "always"},
                       settings={"http": {"join_wait": "1s"}, "redis": {"timeout": "1s"},
                                 "retention": {"events_entries": 1000000}})
        system.expect(r"the probe of the site failed")
        capacities = Capacities(system, "door")
        capacities.start()
        kinds = ["admitter_killed", "probe_wrong", "overloaded", "store_killed", "store_frozen", "connections_cut"]
        try:
            figure(live_through(system, "door", 6, seed(), kinds, rounds=1, least=30, kind_of_faults=Steered))
            site.mood, site.load = "well", 0.1

            def is_raised() -> bool:
                """Only while it is used up, and someone waits."""
                if system.waiting("door") == 0:
                    system.join("door")
                return system.store.hash(system.key("door", "state")).get("capacity_now") == "6"

            wait_until(is_raised, PATIENCE, "it is raised to the end, as before the faults", every=0.05)
        finally:
            capacities.done.set()
            capacities.join()
        assert capacities.seen and min(capacities.seen) >= 2 and max(capacities.seen) <= 6, capacities.seen


@pytest.mark.alone
@pytest.mark.skipif("TELLERLINE_SOAK" not in os.environ, reason="only with tests/run --soak")
def test_all_faults_at_once(start, figure):
    run(start, figure, PROGRAMS + STORE + LOSSES, seconds=float(os.environ["TELLERLINE_SOAK"]))


@pytest.mark.alone
@pytest.mark.skipif("TELLERLINE_SOAK" not in os.environ, reason="only with tests/run --soak")
def test_all_faults_at_once_with_an_archive(start, postgres, figure):
    run(start, figure, PROGRAMS + STORE + LOSSES + POSTGRES, postgres=postgres, seconds=float(os.environ["TELLERLINE_SOAK"]))
