# SPDX-License-Identifier: Apache-2.0
"""A worker misses the outcome of what it sent: every accepted join gets its place all the same, once, in bounded time."""
from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from http_client import Answer, Client
from sse import EventStream
from tellerline import CALM, PATIENCE, Program, System
from test_store_trouble import PROMPT, STORE_TROUBLE
from waiting import patient, wait_until

#: Much longer than a worker needs to notice, and short enough for a failing test.
BOUNDED = 20.0

JOIN, STATUS = "/v1/queues/bank/join", "/v1/queues/bank/status"


@contextmanager
def asleep(worker: Program) -> Iterator[None]:
    for pid in worker.children():
        os.kill(pid, signal.SIGSTOP)
    yield
    for pid in worker.children():
        os.kill(pid, signal.SIGCONT)


def joins_in_the_air(system: System, count: int) -> list[Client]:
    """Sends joins to the first worker while no dispatcher runs, and waits until the store has them."""
    dispatcher = system.of("dispatcher")[0]
    last = system.last_batch("bank")
    dispatcher.kill()
    clients = [system.client() for _ in range(count)]
    for client in clients:
        client.send("POST", JOIN)
    wait_until(lambda: len(system.commands_since("bank", last)) == count, PATIENCE, "the joins are in the store")
    return clients


def ticket_of(client: Client) -> str:
    answer = client.receive()
    assert answer.status in (200, 202), answer.body
    return answer.json["ticket"]


def gets_its_place(client: Client, ticket: str) -> str:
    """The status of a visitor, as soon as there is one. Returns the visitor."""
    answer = wait_until(lambda: (a := client.get(STATUS, ticket=ticket)).status == 200 and a, BOUNDED,
                        "the place is known", every=0.05)
    assert answer.json["status"] == "waiting"
    return answer.json["visitor"]


def test_worker_asleep_past_the_trimming(start):
    """The events with the outcomes of its joins are trimmed before the worker reads them."""
    system = start({"bank": {"capacity": 0} | CALM}, workers=2, settings=PROMPT | {"retention": {"events_entries": 10}})
    system.expect(STORE_TROUBLE)
    system.join("bank")
    worker = system.of("worker")[0]
    clients = joins_in_the_air(system, 3)
    tickets = [ticket_of(client) for client in clients]
    stream = EventStream(worker.http_port, "/v1/queues/bank/events", tickets[0])
    stream.event("pending")
    with asleep(worker):
        system.of("dispatcher")[0].start()
        wait_until(lambda: system.waiting("bank") == 4, PATIENCE, "all are in the line")
        first = system.store.command("XRANGE", system.key("bank", "events"), "-", "+", "COUNT", 1)[0][0]
        others = 0
        while system.store.command("XRANGE", system.key("bank", "events"), first, first):
            system.join("bank", 1)
            others += 1
        for _ in range(10):  # the last ones leave no trace, either
            system.join("bank", 1)
    stream.event("position", seconds=patient(BOUNDED))
    assert len({gets_its_place(client, ticket) for client, ticket in zip(clients, tickets)}) == 3
    assert system.waiting("bank") == 4 + others + 10


def test_data_lost_with_joins_in_the_air(start):
    """FLUSHALL while the joins wait for the dispatcher. They are taken, so they end in the new line."""
    system = start({"bank": {"capacity": 0} | CALM}, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    system.join("bank")
    clients = joins_in_the_air(system, 3)
    system.store.command("FLUSHALL")
    system.of("dispatcher")[0].start()
    tickets = [ticket_of(client) for client in clients]
    assert len({gets_its_place(client, ticket) for client, ticket in zip(clients, tickets)}) == 3
    assert system.waiting("bank") == 3
    assert system.numbers("bank")["joined"] == 3


#: How the store refuses the repeat, and how it recovers.
REFUSALS = {"oom": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
            "readonly": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"))}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_repeat_of_a_join_is_refused(start, refusal):
    """The reply to XADD is lost, and the store refuses the repeat. That is no "not taken": the worker goes on trying."""
    system = start({"bank": {"capacity": 0} | CALM}, settings={"redis": {"timeout": "1s"}, "http": {"join_wait": "3s"}})
    system.expect(STORE_TROUBLE)
    system.join("bank")
    refuse, recover = REFUSALS[refusal]
    client, operator = system.client(), system.store
    system.of("dispatcher")[0].kill()

    def join_while_the_reply_is_lost() -> Answer | None:
        """None if another batch was in the air when the store stopped: then the join was not sent, and is refused."""
        lost = system.of("worker")[0].text().count("cannot send batches")
        system.redis.send(signal.SIGSTOP)
        client.send("POST", JOIN)
        wait_until(lambda: system.of("worker")[0].text().count("cannot send batches") > lost, PATIENCE,
                   "the reply is lost")
        operator.send(*refuse)
        system.redis.send(signal.SIGCONT)
        operator.read()
        answer = client.receive()
        if answer.status != 503:
            return answer
        operator.command(*recover)
        wait_until(lambda: client.get("/readyz").status == 200, PATIENCE, "the worker takes joins again")
        return None

    answer = wait_until(join_while_the_reply_is_lost, PATIENCE, "a join was in the air")
    assert answer.status == 202 and answer.json["status"] == "pending", answer.body
    operator.command(*recover)
    system.of("dispatcher")[0].start()
    gets_its_place(client, answer.json["ticket"])
    assert system.waiting("bank") == 2
    assert system.numbers("bank")["joined"] == 2
