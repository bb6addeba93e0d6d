# SPDX-License-Identifier: Apache-2.0
"""An open event stream claims the session, even if the store refuses the claim at first."""
from __future__ import annotations

import os
import signal

import wire
from http_client import Visitor
from sse import EventStream
from tellerline import CALM, PATIENCE, System
from waiting import patient, wait_until


def test_an_open_stream_claims_when_the_store_takes_it_again(start):
    system = start({"door": CALM | {"capacity": 1, "claim_ttl": f"{patient(30):.0f}s"}})
    worker = system.of("worker")[0]
    first = system.join("door")
    second = system.join("door")
    stream = EventStream(worker.http_port, "/v1/queues/door/events", second.ticket)
    stream.event("position")

    # The worker reads the admission while the store already refuses its writes: the claim is lost.
    children = worker.children()
    send(signal.SIGSTOP, children)
    complete(system, first)
    wait_until(lambda: system.numbers("door")["admitted"] == 2, PATIENCE, "the second is admitted")
    system.store.command("ACL", "SETUSER", "default", "-xadd")
    send(signal.SIGCONT, children)
    stream.event("admitted")
    wait_until(lambda: "did not take a batch" in worker.text(), PATIENCE, "the claim was refused")
    system.store.command("ACL", "SETUSER", "default", "+xadd")

    sessions, visitor = system.key("door", "sessions"), second.view["visitor"]
    wait_until(lambda: system.store.hash(sessions).get(visitor, "").endswith(":1"), 25,
               "the session is claimed: the stream is open")
    stream.close()


def send(number: signal.Signals, processes: list[int]) -> None:
    for process in processes:
        os.kill(process, number)


def complete(system: System, visitor: Visitor) -> None:
    """Frees the counter without the worker, with a batch of another sender."""
    ticket = wire.read_ticket(visitor.ticket)
    batch = wire.pack([1, "another", 1, 0, 0, [[wire.COMPLETE, ticket.visitor, ticket.place]]])
    system.store.command("XADD", system.key("door", "ingest"), "*", "d", batch)
