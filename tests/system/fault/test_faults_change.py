# SPDX-License-Identifier: Apache-2.0
"""Changes while visitors come and go: the capacity, a reload, a queue that is deleted. The history checker decides."""
from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator

import pytest

import wire
from actors import Actor
from faults import end_visits
from history import History, check
from tellerline import CALM, System
from test_recreated import delete_queue
from test_store_trouble import PROMPT, STORE_TROUBLE
from waiting import PATIENCE, patient, wait_until

pytestmark = pytest.mark.sanitized

HIGH, LOW = 6, 2
ACTORS = 10
STALENESS = 3.0
RELOADED = "configuration read again"
QUEUE = {"capacity": HIGH} | CALM | {"claim_ttl": "20s"}  # a place whose join got no answer is never claimed


@contextlib.contextmanager
def visitors(system: System, queue: str) -> Iterator[History]:
    """Visitors come and go during the block. Then the line drains, and the history is checked."""
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={seed}")
    history, stop = History(), threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    actors = [Actor(i, seed, ports, queue, history, stop, float("inf")) for i in range(ACTORS)]
    for actor in actors:
        actor.start()
    try:
        wait_until(lambda: len(history.stays) > ACTORS, PATIENCE, "visitors come and go")
        yield history
        come_and_go(history)
    finally:
        end_visits(stop, actors, history)
    for actor in actors:
        actor.join()
        assert actor.error is None, actor.error
    wait_until(lambda: system.waiting(queue) == 0 and system.active(queue) == 0, PATIENCE, "the line drains")
    check(history, system.steps(queue), HIGH, system.final(queue), patient(STALENESS), one_clock=True)


def come_and_go(history: History) -> None:
    """Waits until as many more visitors have joined as there are actors."""
    enough = len(history.stays) + ACTORS
    wait_until(lambda: len(history.stays) >= enough, PATIENCE, "more visitors come")


def test_capacity_lowered_and_raised_under_load(start):
    """Nobody is put out when it is lowered; once enough have left, no more are active than it allows."""
    system = start({"bank": QUEUE})
    lowered = []
    with visitors(system, "bank") as history:
        for _ in range(2):
            system.set("bank", f"capacity={LOW}")
            wait_until(lambda: system.active("bank") <= LOW, PATIENCE, "the surplus leaves")
            since = time.time() * 1000
            come_and_go(history)
            lowered.append((since, time.time() * 1000))
            system.set("bank", f"capacity={HIGH}")
            wait_until(lambda: system.active("bank") > LOW, PATIENCE, "more are admitted again")
    for since, until in lowered:
        steps = [step for step in system.steps("bank") if since < step.time_ms < until]
        assert any(step.admitted for step in steps)
        assert max(step.active for step in steps) <= LOW


def test_reload_of_all_programs_during_a_surge(start):
    system = start({"bank": QUEUE}, workers=2, settings={"worker": {"processes": 2}})
    with visitors(system, "bank") as history:
        for times in range(1, 5):
            for program in system.programs:
                program.send(signal.SIGHUP)
            for program in system.programs:
                wait_until(lambda p=program, t=times: p.text().count(RELOADED) >= t, PATIENCE,
                           f"{program.name} reloads")
            come_and_go(history)


def test_queue_deleted_under_load(start):
    """Another queue sees nothing of it, and the deleted one takes joins again."""
    system = start({"bank": QUEUE | {"recovery_window": "0s"}, "post": QUEUE}, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    stop, answers, generations = threading.Event(), [], set()

    def joins() -> None:
        client = system.client()
        while not stop.is_set():
            answer = client.post("/v1/queues/bank/join")
            answers.append(answer.status)
            if answer.status == 200:
                generations.add(wire.read_ticket(answer.json["ticket"]).generation)

    newcomers = [threading.Thread(target=joins, daemon=True) for _ in range(4)]
    with visitors(system, "post") as history:
        for newcomer in newcomers:
            newcomer.start()
        try:
            wait_until(lambda: generations, PATIENCE, "joins go on")
            for _ in range(2):
                known = len(generations)
                delete_queue(system)
                wait_until(lambda: len(generations) > known, PATIENCE, "the queue that was created again takes joins")
                come_and_go(history)
        finally:
            stop.set()
        for newcomer in newcomers:
            newcomer.join()
    assert set(answers) <= {200, 202, 503}, sorted(set(answers))
