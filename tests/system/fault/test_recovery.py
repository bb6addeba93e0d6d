# SPDX-License-Identifier: Apache-2.0
"""The store loses everything under visitors who listen: they come back in the same order, and nobody else does."""
from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
from typing import Any

import pytest
from http_client import Visitor
from sse import EventStream
from tellerline import CALM, PATIENCE, System
from test_store_trouble import PROMPT, STORE_TROUBLE
from waiting import patient, wait_until

pytestmark = pytest.mark.sanitized

CROWD = 100
CAPACITY = 3
QUEUE = {"capacity": CAPACITY, "session_ttl": "10m"} | CALM


def state(system: System, field: str) -> int:
    return int(system.store.command("HGET", system.key("bank", "state"), field) or 0)


def begin(start, workers: int = 1, window: str = "5m") -> System:
    system = start({"bank": QUEUE | {"recovery_window": window}}, workers=workers, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    return system


def lose(system: System) -> None:
    """The store loses everything. Returns when the queue is there again, in recovery."""
    before = state(system, "generation")
    system.store.command("FLUSHALL")
    wait_until(lambda: state(system, "generation") not in (0, before), PATIENCE, "the queue is created again")
    assert state(system, "recover_until") > 0


def end(system: System) -> None:
    """The operator ends the recovery."""
    done = system.ctl("queue", "recover", "bank", "--now")
    assert done.returncode == 0, done.stdout + done.stderr
    wait_until(lambda: state(system, "recover_until") == 0, PATIENCE, "the recovery ends")


class Crowd:
    """Visitors in the order in which they joined: `active` ones in front of those who wait. Beside them attackers, whose
    tickets are genuine: of an older generation, used up, and of a visitor who left."""

    def __init__(self, system: System, workers: int, size: int = CROWD) -> None:
        self.system = system
        self.attackers: dict[str, Visitor] = {"of an older generation": system.join("bank")}
        lose(system)
        end(system)
        first = [system.join("bank", i % workers) for i in range(CAPACITY + 1)]
        wait_until(first[0].is_active, PATIENCE, "the first is called")
        self.passes = [first[0].status()["pass"]]
        first[0].complete()
        wait_until(first[-1].is_active, PATIENCE, "the next is called")
        self.attackers["completed"] = first[0]
        self.active = first[1:]
        for visitor in self.active:
            wait_until(visitor.is_active, PATIENCE, "they are called")
            visitor.client.post(f"{visitor.path}/renew", ticket=visitor.ticket)  # claims the session
        self.waiting = [system.join("bank", i % workers) for i in range(size)]
        self.attackers["left"] = self.waiting.pop(size // 2)
        self.attackers["left"].leave()
        self.expires = {visitor.view["visitor"]: visitor.status()["expires_at"] for visitor in self.active}

    def replay(self) -> None:
        """What attackers send gets them nothing."""
        for what, visitor in self.attackers.items():
            for path in ("status", "events"):
                answer = visitor.client.get(f"{visitor.path}/{path}", ticket=visitor.ticket)
                assert answer.status == 409, (what, answer.status, answer.body)
            answer = visitor.client.get(f"{visitor.path}/check", ticket=visitor.ticket)
            assert answer.status == 401, (what, answer.status)

    def names(self) -> set[str]:
        return {visitor.view["visitor"] for visitor in self.waiting + self.active}

    def intruders(self) -> set[str]:
        store, key = self.system.store, self.system.key
        found = set(store.command("ZRANGE", key("bank", "waiting"), "0", "-1"))
        found |= set(store.command("ZRANGE", key("bank", "active"), "0", "-1"))
        return {visitor.view["visitor"] for visitor in self.attackers.values()} & found

    def check_line(self, waiting: list[Visitor], newcomers: list[Visitor]) -> None:
        """The line in the store: those who wait in the old order, then newcomers; each once."""
        line = self.system.store.command("ZRANGE", self.system.key("bank", "waiting"), "0", "-1")
        assert line == [visitor.view["visitor"] for visitor in waiting + newcomers]
        assert not self.intruders()

    def check_sessions(self) -> None:
        """The sessions are back with the time that was left."""
        for visitor in self.active:
            view = visitor.status()
            assert view["status"] == "active", view
            assert view["expires_at"] == self.expires[view["visitor"]]
            assert visitor.client.get(f"{visitor.path}/check", ticket=visitor.ticket).status == 204

    def drain(self, waiting: list[Visitor]) -> None:
        """Admission goes on in the old order."""
        for ended, called in zip(self.active, waiting):
            ended.complete()
            wait_until(called.is_active, PATIENCE, "the next in the old order is called")


def joins_at_last(system: System) -> Visitor:
    visitor = system.visitor("bank")

    def joined() -> bool:
        answer = visitor.client.post(f"{visitor.path}/join", ticket=visitor.ticket)
        visitor.ticket = answer.json.get("ticket", visitor.ticket)
        visitor.view = answer.json
        return answer.status == 200

    wait_until(joined, PATIENCE, "joins work again", every=0.05)
    return visitor


def test_listeners_come_back_by_themselves(start):
    """Workers alive: streams and long polls get their place back without a request, and admission goes on when all are."""
    system = begin(start, workers=2)
    crowd = Crowd(system, workers=2)
    ports = [program.http_port for program in system.of("worker")]
    everyone = crowd.active + crowd.waiting
    streams = [EventStream(ports[i % 2], f"{visitor.path}/events", visitor.ticket)
               for i, visitor in enumerate(everyone)]
    for stream in streams:
        stream.event("position", "admitted")
    poll = system.client()
    poll.send("GET", f"{crowd.waiting[-1].path}/status?wait=30s", ticket=crowd.waiting[-1].ticket)

    lose(system)
    newcomers = [joins_at_last(system)]
    crowd.replay()
    wait_until(lambda: state(system, "restored") == len(everyone), PATIENCE, "all are back")
    crowd.check_line(crowd.waiting, newcomers)
    crowd.check_sessions()
    for visitor, stream in zip(everyone, streams):
        told: dict[str, Any] = {}
        while "ticket" not in told:  # a slow machine told more positions before the loss
            told = stream.event("position", "admitted").json
            assert told["visitor"] == visitor.view["visitor"], "nobody is told what is another's"
    wait_until(lambda: state(system, "recover_until") == 0, PATIENCE, "it ends when all are back")
    crowd.replay()
    for position, visitor in enumerate(crowd.waiting, 1):
        assert visitor.status()["position"] == position
    crowd.drain(crowd.waiting[:2])
    for stream in streams:
        stream.close()


@pytest.mark.parametrize("window", ["5m", "10s"])
def test_visitors_come_back_to_workers_that_know_nothing(start, window):
    """All workers are killed, too. Tickets tell which generation is lost and what was called of it. The window begins to
    pass when a worker is there, however long that took."""
    system = begin(start, window=window)
    crowd = Crowd(system, workers=1, size=30)
    worker = system.of("worker")[0]
    children = worker.children()
    worker.kill()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    lose(system)
    if window == "10s":
        wait_until(lambda: int(system.store.command("TIME")[0]) > state(system, "recover_until") // 1000, PATIENCE,
                   "nobody was there in the window")
    worker.start()
    worker.wait_ready()
    for visitor in crowd.waiting + list(crowd.attackers.values()):
        visitor.client = system.client()
    newcomers = [joins_at_last(system)]
    for visitor in reversed(crowd.waiting):
        view = visitor.status()
        assert view["status"] == "waiting" and view["recovering"] is True, view
    for what in ("of an older generation", "completed"):
        visitor = crowd.attackers[what]
        assert visitor.client.get(f"{visitor.path}/status", ticket=visitor.ticket).status == 409, what
    line = system.store.command("ZRANGE", system.key("bank", "waiting"), "0", "-1")
    assert line == [visitor.view["visitor"] for visitor in crowd.waiting + newcomers]
    end(system)
    assert not crowd.intruders()


def test_a_queue_without_visitors_recovers_too(start):
    """Nobody comes back, and the worker remembers nothing: that there is one is enough for the time to pass."""
    system = begin(start, window="1s")
    worker = system.of("worker")[0]
    worker.stop()
    lose(system)
    worker.start()
    wait_until(lambda: state(system, "recover_until") == 0, PATIENCE, "the recovery ends")


def test_half_of_the_visitors_come_back(start):
    """Those who return in time stand in the old order. Who comes later gets no place back."""
    system = begin(start)
    crowd = Crowd(system, workers=1, size=40)
    here, late = crowd.waiting[::2], crowd.waiting[1::2]
    lose(system)
    newcomers = [joins_at_last(system)]
    for visitor in crowd.active + here[::-1]:
        assert visitor.status()["status"] in ("active", "waiting")
    crowd.replay()
    crowd.check_line(here, newcomers)
    crowd.check_sessions()
    shown = system.ctl("queue", "list").stdout
    assert "recovers" in shown and f"{len(here) + CAPACITY} of {len(crowd.waiting) + CAPACITY}" in shown, shown
    end(system)
    for visitor in late:
        answer = visitor.client.get(f"{visitor.path}/status", ticket=visitor.ticket)
        assert answer.problem(409)["type"] == "/problems/queue-recreated"
    crowd.check_line(here, newcomers)
    crowd.drain(here[:2])


def test_an_admission_of_the_lost_generation_keeps_its_pass_id(start):
    """A site that lets each pass in once lets each admission in once, also across a loss."""
    system = begin(start)
    crowd = Crowd(system, workers=1, size=2)
    visitor = crowd.active[0]
    before = visitor.status()["pass"]
    lose(system)

    def is_back() -> bool:
        assert visitor.client.get(f"{visitor.path}/check", ticket=before).status == 204, "a pass opens the gate"
        return state(system, "restored") == 1

    wait_until(is_back, PATIENCE, "the pass has brought its session back")
    assert visitor.status()["expires_at"] == crowd.expires[visitor.view["visitor"]]
    after = visitor.status()["pass"]
    assert claims(after)["jti"] == claims(before)["jti"]
    completed = crowd.attackers["completed"]
    assert completed.client.get(f"{completed.path}/check", ticket=crowd.passes[0]).status == 401
    end(system)


def claims(token: str) -> dict:
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_who_was_dropped_gets_nothing(start):
    """Absent for waiting_ttl, then the store is lost: the place had ended, and the worker remembers it."""
    system = start({"bank": {"capacity": 1, "recovery_window": "5m", "session_ttl": "10m", "claim_ttl": "10m",
                             "waiting_ttl": f"{patient(2):.0f}s"}}, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    wait_until(system.join("bank").is_active, PATIENCE, "the first is called")
    here, gone = system.join("bank"), system.join("bank")
    stream = EventStream(system.of("worker")[0].http_port, f"{here.path}/events", here.ticket)
    stream.event("position")
    line = lambda: system.store.command("ZRANGE", system.key("bank", "waiting"), "0", "-1")
    wait_until(lambda: line() == [here.view["visitor"]], PATIENCE, "the other is dropped")
    wait_until(lambda: gone.status()["status"] == "expired", PATIENCE, "the worker knows")
    lose(system)
    for _ in range(20):
        answer = gone.client.get(f"{gone.path}/status", ticket=gone.ticket)
        assert answer.json.get("status") not in ("pending", "waiting", "active"), answer.body
    wait_until(lambda: line() == [here.view["visitor"]], PATIENCE, "the listener is back")
    answer = gone.client.get(f"{gone.path}/status", ticket=gone.ticket)
    assert answer.status == 409, answer.body
    assert line() == [here.view["visitor"]]
    stream.close()


def test_a_command_on_its_way_is_done_after_the_loss(start):
    """A leave that the store lost before it was applied is done when the place has come back."""
    system = begin(start)
    for visitor in [system.join("bank") for _ in range(CAPACITY)]:
        wait_until(visitor.is_active, PATIENCE, "all capacity is taken")
    goes, last = system.join("bank"), system.join("bank")
    dispatcher = system.of("dispatcher")[0]
    dispatcher.send(signal.SIGSTOP)
    ingest = system.key("bank", "ingest")
    before = system.store.command("XLEN", ingest)
    goes.client.send("POST", f"{goes.path}/leave", ticket=goes.ticket)
    wait_until(lambda: system.store.command("XLEN", ingest) != before, PATIENCE, "the command is in the stream")
    system.store.command("FLUSHALL")
    dispatcher.send(signal.SIGCONT)
    answer = goes.client.receive()
    while answer.status == 503:  # what it says: try again
        answer = goes.client.post(f"{goes.path}/leave", ticket=goes.ticket)
    assert answer.status == 200 and answer.json["status"] == "left", (answer.status, answer.body)
    assert last.status()["status"] == "waiting"
