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
        assert poll.receive().problem(409)["type"] == "/problems/made-anew"
    for visitor in old:
        assert visitor.client.get(f"{visitor.path}/check", ticket=visitor.ticket).status == 401
