# SPDX-License-Identifier: Apache-2.0
"""Attacks by connections: too many, too slow, or with requests that end in two ways."""
from __future__ import annotations

import socket

import pytest

from figures_of import metric
from sse import EventStream
from tellerline import CALM, PATIENCE, Program
from waiting import patient, wait_until

QUEUES = {"bank": {"capacity": 1} | CALM}


def slow(worker: Program, n: int, source: str = "127.0.0.1") -> list[socket.socket]:
    """Connections that begin a request and never end it."""
    sockets = []
    for _ in range(n):
        one = socket.create_connection(("127.0.0.1", worker.http_port), source_address=(source, 0))
        try:
            one.sendall(b"GET / HTTP/1.1\r\nHos")
        except ConnectionError:
            pass  # closed already
        sockets.append(one)
    return sockets


def is_open(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def test_slow_sockets_shut_nobody_out(start):
    system = start(QUEUES, settings={"http": {"max_connections": 50}})
    worker = system.of("worker")[0]
    sockets = slow(worker, 200)
    for place in range(5):
        assert system.join("bank").ticket, place
    assert metric(worker, "tellerline_worker_connections_crowded_out_total") > 100
    for one in sockets:
        one.close()


def has_news(one: socket.socket) -> bool:
    """An answer has begun to come, or the connection is closed."""
    one.setblocking(False)
    try:
        one.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def test_readers_of_nothing_shut_nobody_out(start):
    """They ask for a page again and again, and take none: each answer waits for its client."""
    system = start(QUEUES, settings={"http": {"max_connections": 50, "idle_timeout": "1h"}})
    worker = system.of("worker")[0]
    sockets = []
    for _ in range(6):
        some = []
        for _ in range(64):
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(("127.0.0.1", worker.http_port))
            try:
                one.sendall(b"GET /q/bank HTTP/1.1\r\nHost: a\r\n\r\n" * 70)
            except ConnectionError:
                pass  # closed already
            some.append(one)
        wait_until(lambda some=some: all(map(has_news, some)), PATIENCE, "each has an answer, or was closed")
        sockets += some

    def are_few() -> bool:
        """At most 32 beyond the limit are spared because they are new (SPARE in worker/http/server.c). Room is made when
        a connection comes; those whose requests were in work when the last one came stay until then."""
        socket.create_connection(("127.0.0.1", worker.http_port)).close()
        return metric(worker, "tellerline_worker_connections") <= 50 + 32

    wait_until(are_few, PATIENCE, "those whose answer waits were closed for others", again_on=OSError)
    # For a moment all may be in work: such pages join.
    assert wait_until(lambda: system.join("bank"), PATIENCE, "one gets in", again_on=OSError).ticket
    for place in range(5):
        assert system.join("bank").ticket, place
    assert metric(worker, "tellerline_worker_connections_crowded_out_total") > 0
    for one in sockets:
        one.close()


def test_idle_connections_leave_streams_their_places(start):
    system = start(QUEUES, settings={"http": {"max_connections": 50}})
    worker = system.of("worker")[0]
    visitor = system.join("bank")
    wait_until(visitor.is_active, PATIENCE, "the visitor is active")
    idle = slow(worker, 60)
    wait_until(lambda: "all 50 connections" in worker.text(), PATIENCE, "it is full")
    stream = EventStream(worker.http_port, f"{visitor.path}/events", visitor.ticket)
    stream.event("admitted")
    visitor.complete()
    assert stream.event("ended").json["status"] == "completed"
    for one in [stream, *idle]:
        one.close()


def test_an_address_holds_no_more_than_its_share(start):
    system = start(QUEUES, settings={"http": {"connections_per_address": 8}})
    worker = system.of("worker")[0]
    sockets = slow(worker, 30, "127.0.0.2")
    wait_until(lambda: sum(map(is_open, sockets)) == 8, PATIENCE, "8 are left")
    assert system.join("bank").ticket
    assert metric(worker, "tellerline_worker_connections_refused_address_total") == 22
    assert "connections from 127.0.0.2 are refused" in worker.text()
    for one in sockets:
        one.close()


def test_an_address_has_its_share_of_streams_behind_a_proxy(start):
    """The visitor's address counts, not the proxy's, whose own connections are not limited."""
    system = start(QUEUES, settings={"http": {"trusted_proxies": "127.0.0.1", "connections_per_address": 1,
                                              "streams_per_address": 2, "streams_per_ticket": 0}})
    visitor = system.join("bank")
    wait_until(visitor.is_active, PATIENCE, "the visitor is active")

    def stream(address: str) -> EventStream:
        return EventStream(visitor.client.port, f"{visitor.path}/events", visitor.ticket, {"X-Forwarded-For": address})

    streams = [stream("192.0.2.1"), stream("192.0.2.1"), stream("192.0.2.2")]
    third = stream("192.0.2.1")
    assert [event.kind for event in third.rest()] == ["retry", "admitted"]
    visitor.complete()
    for one in streams:
        assert one.event("ended").json["status"] == "completed"
        one.close()
    # What was given back is there again.
    wait_until(lambda: metric(system.of("worker")[0], "tellerline_worker_event_streams") == 0, PATIENCE, "all closed")
    again = stream("192.0.2.1")
    again.event("ended")
    with pytest.raises(AssertionError, match="nothing more"):
        again.next(patient(0.3))  # it stays open
    again.close()


AMBIGUOUS = [
    b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"X: y\nContent-Length: 0\r\n\r\n",
    b"Content-Length: 0\r\n\n",
]


def test_a_request_that_a_proxy_may_read_otherwise_is_refused(start):
    system = start(QUEUES)
    for rest in AMBIGUOUS:
        port = system.of("worker")[0].http_port
        with socket.create_connection(("127.0.0.1", port), timeout=patient(PATIENCE)) as one:
            one.sendall(b"POST /v1/queues/bank/join HTTP/1.1\r\nHost: a\r\n" + rest +
                        b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            answer = b""
            try:
                while data := one.recv(65536):
                    answer += data
            except ConnectionError:
                pass  # it was closed with the second request unread
        assert answer.startswith(b"HTTP/1.1 400 ") and b"/problems/bad-request" in answer, (rest, answer)
        assert answer.count(b"HTTP/1.1 ") == 1, ("the second request is answered, too", rest)
    assert system.numbers("bank").get("joined", 0) == 0
