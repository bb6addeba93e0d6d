"""kill -9 of any one program at random moments: nothing acknowledged is lost, duplicated or out of order.

TELLERLINE_SEED=N repeats the choices of a run, TELLERLINE_KILLS=N makes it longer.
"""
from __future__ import annotations

import os
import random
import signal
import threading
import time

import pytest

from actors import Actor
from faults import conclude
from history import History
from redis_server import Redis, RedisError, RedisGone
from tellerline import PATIENCE, Program, System
from waiting import patient, wait_until

pytestmark = pytest.mark.sanitized

CAPACITY = 5
ACTORS = 16
#: A worker may be this far behind (seconds) after it, or the dispatcher, was restarted.
STALENESS = 3.0


class Sampler(threading.Thread):
    """Checks continuously that the active visitors never exceed the capacity."""

    def __init__(self, store: Redis, key: str) -> None:
        super().__init__(daemon=True)
        self._store, self._key = store, key
        self.done = threading.Event()
        self.highest = 0
        self.samples = 0
        self.error: str | None = None

    def run(self) -> None:
        try:
            while not self.done.wait(0.005):
                self.highest = max(self.highest, self._store.command("ZCARD", self._key))
                self.samples += 1
        except (RedisError, RedisGone) as error:
            self.error = str(error)
        finally:
            self._store.close()


class Supervisor:
    """Kills one process at a time and restarts it, like an operator's service manager."""

    def __init__(self, system: System, chance: random.Random) -> None:
        self._system, self._random = system, chance
        self.kills: dict[str, int] = {}

    def work(self, kills: int) -> None:
        while sum(self.kills.values()) < kills:
            program = self._random.choice(self._system.programs)
            self._kill(program)
            self._random_pause()
            if not program.running:
                program.start()
            self._random_pause()
            for other in self._system.programs:
                assert other.running, f"{other.name} ended by itself:\n{other.tail()}"

    def _kill(self, program: Program) -> None:
        name = program.role
        children = program.children() if program.role == "worker" else []
        if children and self._random.random() < 0.5:
            # Only a child: its parent starts another.
            try:
                os.kill(self._random.choice(children), signal.SIGKILL)
                name = "worker's child"
            except ProcessLookupError:
                return
        else:
            program.kill()
        self.kills[name] = self.kills.get(name, 0) + 1

    def _random_pause(self) -> None:
        time.sleep(self._random.uniform(0.0, 0.8))  # at a random moment


@pytest.mark.long(seconds=35)
def test_kill_any_program_at_any_moment(start, figure):
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    kills = int(os.environ.get("TELLERLINE_KILLS", 24))
    print(f"TELLERLINE_SEED={seed}")
    queue = {"capacity": CAPACITY, "session_ttl": "60s", "claim_ttl": "20s", "waiting_ttl": "60s"}
    system = start({"door": queue}, workers=2, dispatchers=2, admitters=2, expirers=2,
                   settings={"http": {"join_wait": "1s"}, "worker": {"processes": 2},
                             "streams": {"events_length": 1000000}})
    system.expect(r"role=worker .*ended by signal 9 \(Killed\)")
    history, stop = History(), threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    sampler = Sampler(system.redis.connect(), system.key("door", "active"))
    actors = [Actor(i, seed, ports, "door", history, stop, float("inf")) for i in range(ACTORS)]
    supervisor = Supervisor(system, random.Random(seed))
    sampler.start()
    for actor in actors:
        actor.start()
    try:
        supervisor.work(kills)
        wait_until(lambda: len(history.stays) >= 2 * kills or not any(actor.is_alive() for actor in actors), PATIENCE,
                   "visitors join: fewer prove nothing")
    finally:
        stop.set()
        for actor in actors:
            actor.deadline = time.monotonic() + patient(60)
    conclude(system, "door", CAPACITY, actors, history, STALENESS, f"TELLERLINE_SEED={seed}")
    sampler.done.set()
    sampler.join()
    assert sampler.error is None and sampler.samples > kills, sampler.error
    assert sampler.highest <= CAPACITY
    figure(f"seed {seed}: {sum(supervisor.kills.values())} kills {supervisor.kills}, "
           f"{len(history.stays)} acknowledged joins, {history.joins_without_answer} without an "
           f"answer, at most {sampler.highest} active in {sampler.samples} samples")


def test_the_admin_process_is_killed_before_it_listens(start):
    """It is started again, like any other process of the worker: its address is not in use, it was killed."""
    system = start({"bank": {"capacity": 1}})
    system.expect(r"was ended by signal 9")
    worker = system.of("worker")[0]

    def started() -> list[int]:
        children = worker.children()
        return children if len(children) == 2 else []

    def killed_before_it_listened() -> bool:
        """Whether we were in time depends on the machine; that it comes back does not."""
        worker.stop()
        said = len(worker.text())
        worker.start()
        admin = max(wait_until(started, PATIENCE, "both processes are started", every=0.001))
        os.kill(admin, signal.SIGKILL)
        wait_until(lambda: f"worker.admin (process {admin}) was ended by signal 9" in worker.text(), PATIENCE, "it is missed")
        worker.wait_ready()
        return worker.text()[said:].count("admin listener on") == 1

    wait_until(killed_before_it_listened, PATIENCE, "it is killed before it listens")
