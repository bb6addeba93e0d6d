# SPDX-License-Identifier: Apache-2.0
"""Every valid ticket gets an event stream at once. A browser's EventSource gives up for good on any other answer."""
from __future__ import annotations

import signal
import socket
import time

import pytest

from figures_of import metric
from http_client import Client, Visitor
from sse import Ended, EventStream
from tellerline import CALM, PATIENCE
from waiting import patient, wait_until

pytestmark = pytest.mark.together(seconds=30)

#: Joins whose place is not known soon get a pending ticket.
HASTY = {"http": {"join_wait": "200ms"}}


def opened(client: Client, path: str, ticket: str) -> EventStream:
    stream = EventStream(client.port, f"{path}/events", ticket)
    assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
    return stream


def test_pending_ticket_hears_its_number(share):
    """The stream sends `pending`, then the position with the ticket that replaces the pending one."""
    system = share(settings=HASTY)
    bank = system.queue()
    first = system.join(bank)
    wait_until(first.is_active, PATIENCE, "the first is active")
    dispatcher = system.of("dispatcher")[0]
    dispatcher.send(signal.SIGSTOP)
    pending = first.client.post(f"{first.path}/join")
    assert pending.status == 202
    stream = opened(first.client, first.path, pending.json["ticket"])
    assert stream.event("pending", "position").kind == "pending"
    dispatcher.send(signal.SIGCONT)
    view = stream.event("pending", "position", "admitted", "ended")
    assert view.kind == "position" and view.json["position"] == 1, view
    numbered = first.client.get(f"{first.path}/status", ticket=view.json["ticket"]).json
    assert numbered["status"] == "waiting" and numbered["visitor"] == pending.json["visitor"]
    first.complete()
    assert stream.event("admitted").json["pass"]
    stream.close()


def test_a_pending_ticket_waits_for_room_in_a_full_line(share):
    """The join meets a full line: the stream says so, and the worker asks again as seldom as Retry-After says. When there
    is room, the place comes over the same stream."""
    system = share(settings=HASTY)
    bank = system.queue(capacity=0, max_waiting=1)
    client, path = system.client(), f"/v1/queues/{bank}"
    dispatcher, worker = system.of("dispatcher")[0], system.of("worker")[0]
    dispatcher.send(signal.SIGSTOP)
    first, second = [client.post(f"{path}/join") for _ in range(2)]
    assert (first.status, second.status) == (202, 202)
    stream = opened(client, path, second.json["ticket"])
    stream.event("pending")
    dispatcher.send(signal.SIGCONT)
    told = stream.event("full", "position", "ended")
    assert told.kind == "full" and 15000 <= told.json["poll_after_ms"] <= 30000, told
    client.get(f"{path}/status", ticket=second.json["ticket"]).problem(503)
    first = Visitor(client, bank, first.json["ticket"])
    first.status()
    before, began = metric(worker, "tellerline_worker_commands_total"), time.monotonic()
    first.leave()
    view = stream.event("full", "position", "ended")
    assert view.kind == "position" and view.json["position"] == 1, view
    commands, lasted = metric(worker, "tellerline_worker_commands_total") - before, time.monotonic() - began
    assert commands <= 5 + max(0, lasted - 30) / 10, "LEAVE, a JOIN each 15 to 30 s, now and then a SEEN"
    stream.close()


def test_place_taken_a_moment_ago_on_another_worker(start):
    """The worker that serves the stream has not read the event of the join yet."""
    system = start({"bank": {"capacity": 1} | CALM}, workers=2)
    there = system.of("worker")[1]
    first = system.join("bank")
    wait_until(first.is_active, PATIENCE, "the first is active")
    for place in range(1, 16):
        there.send(signal.SIGSTOP)
        visitor = system.join("bank", worker=0)
        stream = EventStream(there.http_port, f"{visitor.path}/events", visitor.ticket,
                             asked=lambda: there.send(signal.SIGCONT))
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        assert stream.event("position", "ended").json["position"] == place
        stream.close()


def test_no_connection_left_for_a_stream(start):
    """A short stream sends the state once, then the reconnection time, and ends."""
    system = start({"bank": {"capacity": 1} | CALM}, settings={"http": {"max_connections": 16, "streams_per_ticket": 0}})
    visitor = system.join("bank")
    wait_until(visitor.is_active, PATIENCE, "the visitor is active")
    streams = []
    while True:
        stream = opened(visitor.client, visitor.path, visitor.ticket)
        assert stream.next().kind == "retry"
        assert stream.event("admitted").json["pass"]
        try:
            stream.next(patient(0.3))
        except Ended:
            break
        except AssertionError:  # nothing more: it stays open
            streams.append(stream)
        assert len(streams) < 16
    assert streams
    worker = system.of("worker")[0]
    assert metric(worker, "tellerline_worker_streams_short_total") >= 1
    assert metric(worker, "tellerline_worker_connections_max") == 16
    # Visitors without a stream take the last connections, too: the limit is logged.
    idle = [socket.create_connection(("127.0.0.1", worker.http_port)) for _ in range(16)]
    wait_until(lambda: "all 16 connections (http.max_connections) are in use" in worker.text(), PATIENCE, "logged")
    for stream in [*streams, *idle]:
        stream.close()


def test_the_oldest_stream_of_a_ticket_gives_way(start):
    """Its reader is told, and told to come back late: the two would replace each other in turns."""
    system = start({"bank": {"capacity": 1} | CALM}, settings={"http": {"streams_per_ticket": 3}})
    visitor = system.join("bank")
    wait_until(visitor.is_active, PATIENCE, "the visitor is active")
    streams = [opened(visitor.client, visitor.path, visitor.ticket) for _ in range(4)]
    for stream in streams:
        stream.event("admitted")
    rest = streams[0].rest()
    assert [event.kind for event in rest] == ["retry", "replaced"]
    assert 60000 <= int(rest[0].data) <= 120000
    # A long poll replaces nothing: it is answered at once.
    polled = visitor.client.get(f"{visitor.path}/status?wait=50s", ticket=visitor.ticket)
    assert polled.json["status"] == "active"
    visitor.complete()
    for stream in streams[1:]:
        assert stream.event("ended", "replaced").kind == "ended"
        stream.close()
