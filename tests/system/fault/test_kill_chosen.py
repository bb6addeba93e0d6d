# SPDX-License-Identifier: Apache-2.0
"""kill -9 at chosen instructions: right before or after the n-th write to Redis, or right after the n-th read of an answer.

TELLERLINE_SEED=N repeats the choices of a run, TELLERLINE_KILLS=N makes it longer.
"""
from __future__ import annotations

import os
import random
import threading
import time
from typing import NamedTuple

import pytest

from actors import Actor
from faults import STALENESS, TROUBLE, conclude, end_visits
from history import History
from preload import KILLING, Preload
from stories import enter
from tellerline import PATIENCE, System
from waiting import patient, wait_until

pytestmark = pytest.mark.sanitized

CAPACITY = 6
ACTORS = 10
WRITE, READ = 1, 2


class Moment(NamedTuple):
    name: str
    kind: int
    after: bool


#: Before the command is sent; when Redis has it, and the answer is not read; when it is read, and not used.
MOMENTS = [Moment("before a write", WRITE, False), Moment("after a write", WRITE, True), Moment("after a read", READ, True)]
#: At most so many calls pass before the one at which the program ends.
FURTHEST = 40


class Deserters(threading.Thread):
    """Visitors who are called, claim their sessions, and are not seen again, so that the expirer has work."""

    def __init__(self, system: System, history: History, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._system, self._history, self._stop_asked = system, history, stop
        self.deadline = 0.0  # of its own: it waits for one call at most
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set():
                visitor, stay = enter(self._system, self._history)
                wait_until(visitor.is_active, PATIENCE, "is called")
                stay.saw_active(time.time(), visitor.view)
                stay.end = "expired"
        except BaseException as error:  # noqa: B036 - handed to the test, which fails with it
            self.error = error


def restart(system: System, role: str, preload: Preload) -> None:
    """Like an operator's service manager. A worker's child is started by its parent."""
    program = system.of(role)[0]
    if role != "worker":
        wait_until(lambda: not program.running, PATIENCE, f"the {role} has ended")
        program.kill()
        program.start()
    preload.set(0, 0, 0, 0)


@pytest.mark.long(seconds=25)
@pytest.mark.parametrize("role", ["worker", "dispatcher", "admitter", "expirer"])
def test_killed_at_chosen_instructions(start, figure, tmp_path, role):
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    kills = int(os.environ.get("TELLERLINE_KILLS", 6))
    print(f"TELLERLINE_SEED={seed}")
    chance = random.Random(f"{seed}/{role}")
    # Each moment as often as the others, at the first calls and at later ones.
    chosen = [(MOMENTS[i % len(MOMENTS)], chance.randint(1, FURTHEST)) for i in range(kills)]
    chance.shuffle(chosen)
    preload = Preload(tmp_path, KILLING)

    def prepare(system: System) -> None:
        system.of(role)[0].prefix = preload.prefix

    ttl = f"{patient(6):.0f}s" if role == "expirer" else "60s"
    system = start({"door": {"capacity": CAPACITY, "session_ttl": ttl, "claim_ttl": ttl, "waiting_ttl": "60s"}},
                   settings={"http": {"join_wait": "1s"}, "worker": {"processes": 2},
                             "retention": {"events_entries": 1000000}}, prepare=prepare)
    for pattern in TROUBLE:
        system.expect(pattern)
    history, stop = History(), threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    actors: list[Actor | Deserters] = [Actor(i, seed, ports, "door", history, stop, float("inf"))
                                         for i in range(ACTORS)]
    if role == "expirer":
        actors.append(Deserters(system, history, stop))
    for actor in actors:
        actor.start()
    try:
        for moment, n in chosen:
            preload.set(n, moment.kind, moment.after, 0)
            wait_until(lambda: preload.get(3) == 1, PATIENCE, f"the {role} ends {moment.name}, the {n}th from now")
            restart(system, role, preload)
    finally:
        preload.set(0, 0, 0, 0)
        end_visits(stop, actors, history)
    done = ", ".join(f"{moment.name} {n}" for moment, n in chosen)
    conclude(system, "door", CAPACITY, actors, history, STALENESS, f"seed {seed}: {done}")
    assert len(history.stays) >= kills, f"{len(history.stays)} visitors: too few to prove anything"
    figure(f"{role}, seed {seed}: killed {done}; {len(history.stays)} acknowledged joins, "
           f"{history.joins_without_answer} without an answer")
