# SPDX-License-Identifier: Apache-2.0
"""A worker process never stops accepting connections for good."""
from __future__ import annotations

import os
import re
import resource
import signal
import socket

import pytest

from figures_of import metric
from sse import EventStream
from tellerline import CALM, PATIENCE, Program, System
from waiting import wait_until

LIMIT = 16


@pytest.fixture
def small(start) -> System:
    """A worker that takes few connections."""
    return start({"bank": {"capacity": 1} | CALM}, settings={"http": {"max_connections": LIMIT}})


def fill(worker: Program) -> list[socket.socket]:
    """Idle connections that fill the worker, and more."""
    idle = [socket.create_connection(("127.0.0.1", worker.http_port)) for _ in range(LIMIT + 8)]
    wait_until(lambda: f"all {LIMIT} connections" in worker.text(), PATIENCE, "it is full")
    return idle


def signal_children(worker: Program, number: signal.Signals) -> None:
    for child in worker.children():
        os.kill(child, number)


def test_all_connections_close_while_the_loop_pauses(small):
    """libmicrohttpd stops listening at its limit; when its last connections close in one run, it does not ask to be
    run again."""
    worker = small.of("worker")[0]
    idle = fill(worker)
    signal_children(worker, signal.SIGSTOP)
    for one in idle:
        one.close()
    signal_children(worker, signal.SIGCONT)
    assert small.join("bank").ticket


def test_streams_end_before_idle_connections(small):
    """The streams of one ticket and idle connections fill a worker together."""
    worker = small.of("worker")[0]
    visitor = small.join("bank")
    wait_until(visitor.is_active, PATIENCE, "the visitor is active")
    visitor.client.close()
    streams = [EventStream(worker.http_port, f"{visitor.path}/events", visitor.ticket) for _ in range(LIMIT)]
    idle = fill(worker)
    for one in [*streams, *idle]:
        one.close()
    assert small.join("bank").ticket


def test_a_deaf_process_is_replaced(small):
    """A process that accepts nothing more, while its loop turns: the parent sees connections wait at its socket."""
    small.expect("is deaf|was ended by signal 9")
    worker = small.of("worker")[0]
    first = small.join("bank")
    deaf = int(re.findall(r"role=worker\.1 pid=(\d+)", worker.text())[-1])
    fewest = len(os.listdir(f"/proc/{deaf}/fd"))
    resource.prlimit(deaf, resource.RLIMIT_NOFILE, (fewest, fewest))  # from now on accept fails
    waiting = [socket.create_connection(("127.0.0.1", worker.http_port)) for _ in range(3)]
    wait_until(lambda: f"(process {deaf}) is deaf" in worker.text(), PATIENCE, "the parent notices")
    late = wait_until(lambda: small.join("bank"), PATIENCE, "the next process serves", again_on=OSError)
    assert late.ticket != first.ticket
    assert metric(worker, "tellerline_worker_deaf_total") == 1
    for one in waiting:
        one.close()
