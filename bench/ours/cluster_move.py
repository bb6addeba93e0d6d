#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to move the slot of a queue with a long line to another node of a Redis Cluster, as redis-cli --cluster
reshard does it. A tenth of the visitors have a session, the others wait."""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from stage import CALM, PATIENCE, SIZES, batches, elapsed, emit, progress, running, wait_until

from http_client import CONNECTION_TROUBLE, Client
from redis_cluster import RedisCluster, queues_everywhere, slot_of
from redis_server import RedisServer

LONG = queues_everywhere(2, 2)[0]


class Gaps(threading.Thread):
    """Asks again and again, and notes the longest time between two good answers (s)."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._ended, self.longest, self.answers = stop, 0.0, 0

    def _ask(self) -> bool:
        raise NotImplementedError

    def run(self) -> None:
        last = time.monotonic()
        while not self._ended.is_set():
            if self._ask():
                now = time.monotonic()
                self.longest, last = max(self.longest, now - last), now
                self.answers += 1
            time.sleep(0.002)
        self.longest = max(self.longest, elapsed(last))


class Pings(Gaps):
    """Of a node, which answers nobody else either while it does not answer this."""

    def __init__(self, stop: threading.Event, node: RedisServer) -> None:
        super().__init__(stop)
        self._connection = node.connect()

    def _ask(self) -> bool:
        return self._connection.command("PING") == "PONG"


class Joins(Gaps):
    """Of visitors of the queue, each with a place at once."""

    def __init__(self, stop: threading.Event, port: int) -> None:
        super().__init__(stop)
        self._client = Client(port)

    def _ask(self) -> bool:
        try:
            return self._client.post(f"/v1/queues/{LONG}/join").status == 200
        except CONNECTION_TROUBLE:
            return False


@contextmanager
def watched(*gaps: Gaps, stop: threading.Event) -> Iterator[None]:
    for one in gaps:
        one.start()
    time.sleep(1)  # not a wait for anything: what the first joins cost is not part of the move
    for one in gaps:
        one.longest = 0.0
    try:
        yield
    finally:
        stop.set()
        for one in gaps:
            one.join()


def measure(n: int) -> None:
    progress(f"{n} visitors in a queue that moves")
    # A node that answers nobody for longer than its time-out counts as lost, and the move fails.
    cluster = RedisCluster(2, 0, {"appendonly": "no", "cluster-node-timeout": "60000"})
    try:
        cluster.start()
        with running({LONG: {"capacity": n // 10} | CALM}, prepare=cluster.prepare) as system:
            for entry in batches(n):
                system.store.command("XADD", system.key(LONG, "ingest"), "*", "d", entry)
            wait_until(lambda: (system.active(LONG), system.waiting(LONG)) == (n // 10, n - n // 10), PATIENCE,
                       "all are in the line")
            source = cluster.master_of(f"{{{LONG}}}")
            target = next(node for node in cluster.masters() if node is not source)
            line = max(len(source.ask("DUMP", system.key(LONG, name))) for name in ("waiting", "active", "sessions"))
            stop = threading.Event()
            pings, joins = [Pings(stop, node) for node in (source, target)], Joins(stop, system.of("worker")[0].http_port)
            with watched(*pings, joins, stop=stop):
                began = time.monotonic()
                cluster.move_slots([slot_of(f"{{{LONG}}}")], target)
                took, answers = elapsed(began), joins.answers
                wait_until(lambda: joins.answers > answers, PATIENCE, "the queue goes on")
    finally:
        cluster.end()
    for name, value in (("the move of all keys", took), ("visitors of the queue get no place", joins.longest),
                        ("the old node answers nobody", pings[0].longest), ("the new node answers nobody", pings[1].longest)):
        emit("cluster-move", "the longest time that", name, value * 1e3, "ms", "lower", n=n)
    emit("cluster-move", "sent at once", "the largest key", line / 1e6, "MB", "lower", n=n)


for count in SIZES:
    measure(count)
