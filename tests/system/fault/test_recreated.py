# SPDX-License-Identifier: Apache-2.0
"""The store loses a queue under visitors who listen: each is told of the own place only, or that it is void."""
from __future__ import annotations

import pytest

from http_client import Visitor
from sse import EventStream
from tellerline import CALM, PATIENCE, System
from test_store_trouble import PROMPT, STORE_TROUBLE
from waiting import patient, wait_until

LISTENERS = 15
HELD_POLLS = 5


def forget_all(system: System) -> None:
    system.store.command("FLUSHALL")


DELETE_QUEUE = """
for _, key in ipairs(redis.call('KEYS', 'tl:{bank}:*')) do redis.call('DEL', key) end
redis.call('SREM', 'tl:queues', 'bank')
"""


def delete_queue(system: System) -> None:
    """The queue alone is deleted, in one step: a set that was empty may appear at any time. The programs create it again."""
    system.store.command("EVAL", DELETE_QUEUE, "0")


def joins_at_last(system: System) -> Visitor:
    """A newcomer, who asks until the queue is there again."""
    visitor = system.visitor("bank")

    def joined() -> bool:
        answer = visitor.client.post(f"{visitor.path}/join", ticket=visitor.ticket)
        visitor.ticket = answer.json.get("ticket", visitor.ticket)
        return answer.status == 200

    wait_until(joined, PATIENCE, "joins work again", every=0.05)
    return visitor


@pytest.mark.parametrize("lose", [forget_all, delete_queue])
def test_listeners_of_a_lost_queue_hear_nothing_of_strangers(start, lose):
    """Streams and long polls from before the loss end. They are not sent the admission of a newcomer at their place."""
    system = start({"bank": {"capacity": 1, "recovery_window": "0s"} | CALM}, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    old = [system.join("bank") for _ in range(LISTENERS)]
    wait_until(old[0].is_active, PATIENCE, "the first is active")
    port = system.of("worker")[0].http_port
    streams = [EventStream(port, f"{visitor.path}/events", visitor.ticket) for visitor in old]
    for stream in streams:
        stream.event("position", "admitted")
    polls = [system.client() for _ in range(HELD_POLLS)]
    for poll, visitor in zip(polls, old[1:]):
        poll.send("GET", f"{visitor.path}/status?wait=30s", ticket=visitor.ticket)

    lose(system)
    new = [joins_at_last(system)] + [system.join("bank") for _ in range(LISTENERS)]
    for visitor in new[:-1]:
        wait_until(visitor.is_active, PATIENCE, "the newcomers are called in turn")
        visitor.complete()

    told = [event for stream in streams for event in stream.rest(patient(10))]
    assert {event.kind for event in told} <= {"comment", "retry"}, told
    for poll in polls:
        assert poll.receive().problem(409)["type"] == "/problems/queue-recreated"
    for visitor in old:
        assert visitor.client.get(f"{visitor.path}/check", ticket=visitor.ticket).status == 401


def test_what_operators_set_is_in_force_again(start):
    """Redis loses everything. A queue that no file has, too, comes back to its visitors; none is open that was not."""
    system = start({name: {"capacity": 5} | CALM for name in ("bank", "paused", "sold")}, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    made = system.ctl("queue", "create", "made", "capacity=1", *(f"{name}={value}" for name, value in CALM.items()))
    assert made.returncode == 0, made.stdout + made.stderr
    wait_until(lambda: system.client().get("/v1/queues/made").status == 200, PATIENCE, "it is served")
    line = [system.join("made") for _ in range(3)]
    wait_until(line[0].is_active, PATIENCE, "the first is active")
    system.set("bank", "capacity=2")
    for words in (("queue", "pause", "paused"), ("queue", "sell-out", "sold")):
        assert system.ctl(*words).returncode == 0, words
    old = system.join("paused")
    assert old.status()["status"] == "waiting"
    wait_until(lambda: system.client().get("/v1/queues/sold").json["mode"] == "sold_out", PATIENCE, "the worker knows")
    streams = [EventStream(system.of("worker")[0].http_port, f"{visitor.path}/events", visitor.ticket)
               for visitor in line]
    for stream in streams:
        stream.event("position", "admitted")
    before = {name: system.store.hash(system.key(name, "config")) for name in ("bank", "paused", "sold", "made")}
    generation = system.numbers("made")["generation"]

    forget_all(system)
    wait_until(lambda: before == {name: system.store.hash(system.key(name, "config")) for name in before}, PATIENCE,
               "the settings in force are back")
    wait_until(lambda: system.numbers("made")["generation"] != generation, PATIENCE, "it is made again")
    wait_until(lambda: [visitor.status()["status"] for visitor in line] == ["active", "waiting", "waiting"], PATIENCE,
               "they have their places again", again_on=AssertionError)
    wait_until(lambda: old.status()["status"] == "waiting", PATIENCE, "the place is back", again_on=AssertionError)
    assert system.visitor("sold").client.post("/v1/queues/sold/join").status != 200
    wait_until(line[0].complete, PATIENCE, "the first has completed", again_on=AssertionError)  # while it is being restored
    wait_until(line[1].is_active, PATIENCE, "the next is called")
    streams[1].event("admitted")
