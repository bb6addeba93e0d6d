# SPDX-License-Identifier: Apache-2.0
"""Giving a place up at one worker and joining again at once at another gives a new place, not the old one; a join that is
sent again gives the old one."""
from __future__ import annotations

import os
import signal

from tellerline import CALM, PATIENCE
from waiting import wait_until

VISITORS = 10


def test_joining_again_at_another_worker(start):
    """The second worker is stopped while the place is given up, so the join comes to it together with that event."""
    system = start({"bank": {"capacity": VISITORS // 2} | CALM}, workers=2)
    visitors = [system.join("bank") for _ in range(VISITORS)]
    active, waiting = visitors[:VISITORS // 2], visitors[VISITORS // 2:]
    for visitor in active:
        wait_until(visitor.is_active, PATIENCE, "half are active")
    for visitor, position in zip(waiting, range(1, VISITORS)):
        wait_until(lambda v=visitor, p=position: v.status()["position"] == p, PATIENCE, "half wait")
    system.set("bank", "capacity=0")
    other = system.client(1)
    wait_until(lambda: other.get("/v1/queues/bank").json["capacity"] == 0, PATIENCE, "nobody else is admitted")
    second = system.of("worker")[1].children()
    for visitor in visitors:
        for pid in second:
            os.kill(pid, signal.SIGSTOP)
        gave_up = visitor.complete() if visitor in active else visitor.leave()
        other.send("POST", f"{visitor.path}/join", ticket=visitor.ticket)
        for pid in second:
            os.kill(pid, signal.SIGCONT)
        view = other.receive().json
        assert gave_up["status"] in ("completed", "left")
        assert (view["status"], view.get("position")) == ("waiting", system.waiting("bank")), view
        assert view["ticket"] != visitor.ticket
        assert "pass" not in view
    # Who holds a place keeps it, at any worker.
    assert other.get("/v1/queues/bank").json["waiting"] == VISITORS
    first = system.visitor("bank", 1)
    first.ticket = view["ticket"]
    assert first.join().view["position"] == VISITORS
    assert system.numbers("bank")["joined"] == 2 * VISITORS


def test_a_join_whose_answer_got_lost(start):
    """It is sent again with its key and no ticket, to another worker. Once the line is full, a key opens it to nobody."""
    system = start({"bank": {"capacity": 0, "max_waiting": 2} | CALM}, workers=2)
    key, another = ({"Idempotency-Key": f"0d53a1c2-4b9e-4f4e-{n}"} for n in "ab")
    path = "/v1/queues/bank/join"
    first = system.client(0).post(path, headers=key).json
    for worker in (0, 1):
        again = system.client(worker).post(path, headers=key).json
        assert (again["visitor"], again["position"]) == (first["visitor"], 1)
    system.join("bank")
    for worker in (0, 1):
        wait_until(lambda w=worker: system.client(w).get("/v1/queues/bank").json["phase"] == "full", PATIENCE, "the line is full")
        for headers in (key, another):
            assert system.client(worker).post(path, headers=headers).problem(503)["type"] == "/problems/full"
    assert system.numbers("bank")["joined"] == 2
    place = system.visitor("bank")
    place.ticket = again["ticket"]
    place.leave()
    system.set("bank", "max_waiting=3")
    wait_until(lambda: system.client(1).get("/v1/queues/bank").json["phase"] == "open", PATIENCE, "there is room")
    taken = system.client(1).post(path, headers=key).json
    assert (taken["visitor"], taken["position"]) == (first["visitor"], 2), "a new place, as the old one has ended"
