# SPDX-License-Identifier: Apache-2.0
"""The sentinels say which server is the master: after a failover everything goes on there."""
from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable

import pytest

from actors import Actor, Visits
from faults import conclude, end_visits
from hand_overs import HandOver
from history import History
from http_client import CONNECTION_TROUBLE, Answer, Client, Visitor, redeem
from many_queues import QUEUES, queues, sent_for_a_visit, wait_served
from redis_server import RedisError
from replication import PASSWORD, Replication
from stories import ask_as_before
from tellerline import BIN, CALM, PATIENCE, System, run
from waiting import patient, wait_until
from wire import read_ticket

PROMPT = {"http": {"join_wait": "1s"}, "redis": {"timeout": "1s"}}


@pytest.fixture
def replication():
    made: list[Replication] = []

    def make(replicas: int, sentinels: int = 3) -> Replication:
        made.append(Replication(replicas, sentinels))
        return made[-1]

    yield make
    for one in made:
        one.close()


class Joiner(threading.Thread):
    """Joins again and again, and counts the answers."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._client = Client(port)
        self._done = threading.Event()
        self.answers: dict[int, int] = {}
        self.unexpected: list[str] = []

    def run(self) -> None:
        while not self._done.wait(0.02):
            try:
                answer = self._client.post("/v1/queues/bank/join")
            except CONNECTION_TROUBLE as error:
                self.unexpected.append(repr(error))
                continue
            self.answers[answer.status] = self.answers.get(answer.status, 0) + 1
            if answer.status not in (200, 202, 503):
                self.unexpected.append(f"{answer.status} {answer.body[:200]!r}")

    def count(self, status: int) -> int:
        return self.answers.get(status, 0)

    def finish(self) -> None:
        self._done.set()
        self.join(PATIENCE)
        self._client.close()
        assert not self.unexpected, self.unexpected


def goes_on(system: System, joiner: Joiner) -> None:
    before = joiner.count(200)
    wait_until(lambda: joiner.count(200) >= before + 3, PATIENCE, "joins are numbered again")
    for program in system.programs:
        program.wait_ready()


@pytest.mark.long(seconds=25)
def test_failover_under_joins(start, replication):
    """The master is killed; then the next one is demoted by hand and stays alive, with the connections to it open."""
    store = replication(replicas=2)
    system = start({"bank": {"capacity": 1} | CALM}, workers=2, settings=PROMPT, prepare=store.prepare)
    first = system.join("bank")
    wait_until(first.is_active, PATIENCE, "the first is active")
    joiner = Joiner(system.of("worker")[1].http_port)
    joiner.start()
    try:
        goes_on(system, joiner)
        store.servers[0].kill()
        second = store.new_master(other_than=store.servers[0])
        store.fail_over_no_more()
        goes_on(system, joiner)
        wait_until(lambda: first.status()["status"] == "active", PATIENCE, "the first is still active")

        store.servers[0].start()
        for sentinel in store.sentinels:
            wait_until(lambda s=sentinel: s.master()["port"] == str(second.port), PATIENCE, "sentinels agree")
        wait_until(lambda: store.servers[0].role() == "slave", PATIENCE, "the old master is a replica")
        wait_until(lambda: store.servers[0].ask("ROLE")[3] == "connected", PATIENCE, "and has caught up")
        wait_until(lambda: store.sentinels[0].ask("SENTINEL", "FAILOVER", "line"), PATIENCE,
                   "the sentinel knows a replica to promote", again_on=RedisError)
        store.new_master(other_than=second)
        goes_on(system, joiner)
        wait_until(lambda: second.programs() == 0, PATIENCE, "all programs have left the demoted master")
    finally:
        joiner.finish()
    wait_until(lambda: first.complete()["status"] == "completed", PATIENCE, "the first is completed",
               again_on=AssertionError)  # a worker may still be on its way to the new master: 503
    wait_until(lambda: system.active("bank") == 1, PATIENCE, "the next is admitted")
    # Sentinels may die, as long as one that knows the master is left.
    for sentinel in store.sentinels[:2]:
        sentinel.stop()
    worker = system.of("worker")[0]
    worker.stop()
    worker.start()
    worker.wait_ready()
    assert system.join("bank").view["status"] == "waiting"


@pytest.mark.long(seconds=15)
def test_old_master_that_still_answers_is_left(start, replication):
    """As after a partition: it is a master in its own eyes, connections to it are open, the sentinels name another."""
    store = replication(replicas=1)
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT, prepare=store.prepare)
    first = system.join("bank")
    wait_until(first.is_active, PATIENCE, "the first is active")
    old, new = store.servers
    new.ask("REPLICAOF", "NO", "ONE")
    for sentinel in store.sentinels:
        sentinel.watch_instead(new, 2)
    store.adopt(new)
    wait_until(lambda: old.programs() == 0, PATIENCE, "all programs have left the old master")
    assert old.role() == "master"
    for program in system.programs:
        program.wait_ready()
    wait_until(lambda: system.client().post("/v1/queues/bank/join").status == 200, PATIENCE, "joins are numbered")
    assert first.complete()["status"] == "completed"
    wait_until(lambda: system.active("bank") == 1, PATIENCE, "the next is admitted")

    hosts = store.url().rpartition("/")[0]
    unknown = run(BIN / "tellerline", "queue", "list", "--redis", f"{hosts}/nobody")
    assert unknown.returncode != 0 and "knows no master named nobody" in unknown.stderr, unknown.stderr
    for sentinel in store.sentinels:
        sentinel.stop()
    silent = run(BIN / "tellerline", "queue", "list", "--redis", store.url())
    assert silent.returncode != 0 and "none of 3 sentinels names a master" in silent.stderr, silent.stderr
    assert PASSWORD not in unknown.stderr + silent.stderr
    # Open connections are kept without any sentinel.
    assert system.client().post("/v1/queues/bank/join").status == 200
    store.sentinels[2].start()  # for the audit


@pytest.mark.long(seconds=20)
def test_the_new_master_wakes_programs_beside_many_queues(start, figure, replication):
    """A visit at either worker costs it no more than it cost the master before: each program hears what was written."""
    store = replication(replicas=1, sentinels=1)
    system = start(queues(QUEUES), workers=2, settings=PROMPT, prepare=store.prepare)
    wait_served(system.store, QUEUES)
    before = sent_for_a_visit(system.store, system.client())
    store.servers[0].kill()
    store.new_master(other_than=store.servers[0])
    store.fail_over_no_more()
    for program in system.programs:
        program.wait_ready()
    wait_served(system.store, QUEUES)
    wait_until(lambda: system.client().post("/v1/queues/q1/join").status == 200, PATIENCE, "joins are numbered")
    after = [sent_for_a_visit(system.store, system.client(worker)) for worker in range(2)]
    figure(f"bytes sent to the store for a visit: {before} before the failover, {after} after")
    assert 0 < max(after) <= 2 * before, (before, after)


class Mover(Visits):
    """Visitors who wait and hand their places to another device, and from there to a third. Of two devices with a code for
    the same, one gets it."""

    def __init__(self, system: System, number: int, history: History, stop: threading.Event) -> None:
        super().__init__(stop)
        self._client = Client(system.of("worker")[number % 2].http_port, timeout=patient(5))
        self._clients, self._history = [self._client], history
        self.deadline = float("inf")  # of its own: it waits for one answer at most
        self.moved = 0

    def _visit(self) -> None:
        visitor, sent = Visitor(self._client, "bank"), time.time()
        try:
            visitor.join()
        except (AssertionError, *CONNECTION_TROUBLE):
            self._history.unanswered()
            self._stop_asked.wait(0.2)
            return
        assert visitor.ticket is not None
        stay = self._history.acknowledged(visitor.ticket, sent, time.time())
        for _ in range(2):
            before = visitor.ticket
            codes = [self._answer(lambda: self._client.post(f"{visitor.path}/transfer", ticket=visitor.ticket)) for _ in "ab"]
            for device, code in zip("ab", codes):
                if code.status != 200:
                    continue  # it was called meanwhile
                sent = time.time()
                answer = self._answer(lambda c=code, d=device: redeem(self._client, "bank", c.json["code"], d))
                if answer.status == 200:
                    visitor.ticket = answer.json["ticket"]
                    stay.saw_ticket(visitor.ticket)
                    self._history.hand_overs.append(
                        HandOver(stay.place, read_ticket(visitor.ticket).serial, device, sent, time.time()))
                    self.moved += 1
            if visitor.ticket != before:
                try:
                    ask_as_before(self._client, visitor.path, stay.place, before, self._history)
                except CONNECTION_TROUBLE:
                    pass
        stay.gives_back(time.time())
        verb = "leave" if self._answer(lambda: self._client.get(f"{visitor.path}/status", ticket=visitor.ticket)
                                       ).json["status"] == "waiting" else "complete"
        answer = self._answer(lambda: self._client.post(f"{visitor.path}/{verb}", ticket=visitor.ticket))
        stay.end, stay.ended_at = answer.json["status"], time.time()

    @staticmethod
    def _answer(ask: Callable[[], Answer]) -> Answer:
        """Asks until the outcome is known. A code may be redeemed again by the same device."""
        def known() -> Answer | None:
            answer = ask()
            assert answer.status in (200, 202, 409, 410, 502, 503), f"{answer.status} {answer.body[:300]!r}"
            return answer if answer.status in (200, 409, 410) else None
        return wait_until(known, PATIENCE, "an answer", every=0.05, again_on=CONNECTION_TROUBLE)


@pytest.mark.sanitized
@pytest.mark.long(seconds=25)
def test_promotion_while_places_go_to_other_devices(start, figure, replication):
    """The master is killed, twice, while visitors come and go and hand over their places. What a visitor was told had
    reached the replica, so nothing is excused."""
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={seed}")
    store = replication(replicas=1, sentinels=1)
    settings = PROMPT | {"redis": PROMPT["redis"] | {"durability": "replicated"}, "retention": {"events_entries": 1000000}}
    queue = {"capacity": 3} | CALM | {"claim_ttl": f"{patient(12):.0f}s"}  # a place whose join got no answer is never claimed
    system = start({"bank": queue}, workers=2, settings=settings, prepare=store.prepare)
    history, stop = History(), threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    movers = [Mover(system, i, history, stop) for i in range(4)]
    crowd = [*movers, *(Actor(i, seed, ports, "bank", history, stop, float("inf")) for i in range(8))]

    def goes_on_for(moves: int) -> None:
        before = sum(mover.moved for mover in movers)
        wait_until(lambda: sum(mover.moved for mover in movers) >= before + moves
                   or not all(one.is_alive() for one in crowd), PATIENCE, "places go to other devices")

    for one in crowd:
        one.start()
    try:
        for old, new in (store.servers, store.servers[::-1]):
            goes_on_for(6)
            old.kill()
            history.restarts += 1
            store.new_master(other_than=old)
            old.start()
            old.follow(new)
            wait_until(lambda n=new: store.sentinels[0].master()["port"] == str(n.port)
                       and store.sentinels[0].master()["num-slaves"] == "1", PATIENCE, "the sentinel knows both")
        goes_on_for(6)
    finally:
        end_visits(stop, crowd, history)
    store.fail_over_no_more()
    conclude(system, "bank", 3, crowd, history, 20.0, f"TELLERLINE_SEED={seed}")
    figure(f"seed {seed}: {len(history.stays)} acknowledged joins, {history.joins_without_answer} without an answer, "
           f"{sum(mover.moved for mover in movers)} hand-overs")
