# SPDX-License-Identifier: Apache-2.0
"""Many queues in one store: what wakes a program tells which queue it is about, and nothing else is read for it."""
from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable

from http_client import Client, Visitor
from redis_server import Redis, RedisServer
from tellerline import CALM
from waiting import PATIENCE, patient, wait_until

QUEUES = 100
#: A worker that is ready finds the queues of another one within a second (seconds).
SETTLED = 2.5


def queues(n: int) -> dict[str, dict]:
    return {f"q{i}": {"capacity": 1} | CALM for i in range(n)}


def wait_served(store: Redis, n: int) -> None:
    """Also until all programs have loaded them: each scans the sessions of a queue then, and later never. A worker answers
    before, as soon as one of its processes is ready, and loading a queue costs more than some visits."""
    leases = [f"tl:{{q{i}}}:{role}" for i in range(n) for role in ("dispatcher", "admitter", "expirer")]
    wait_until(lambda: store.command("EXISTS", *leases) == len(leases), PATIENCE, "all queues are served")
    loads, since = 0, time.monotonic()

    def settled() -> bool:
        nonlocal loads, since
        found = re.search(r"cmdstat_zscan:calls=(\d+)", store.command("INFO", "commandstats"))
        before, loads = loads, int(found[1]) if found else 0
        if loads != before:
            since = time.monotonic()
        return time.monotonic() - since >= patient(SETTLED)

    wait_until(settled, PATIENCE, "all programs have loaded all queues", every=0.1)


def calls(nodes: Iterable[RedisServer]) -> Counter[str]:
    """How often each command was called, from clients and from functions, without the INFO of these questions."""
    found: Counter[str] = Counter()
    for node in nodes:
        for name, number in re.findall(r"cmdstat_([^:]+):calls=(\d+)", node.ask("INFO", "commandstats")):
            if name != "info":
                found[name] += int(number)
    return found


def connections(node: RedisServer) -> int:
    """Those of the programs: without replicas, other nodes and this one's."""
    lines = [line for kind in ("NORMAL", "PUBSUB") for line in node.ask("CLIENT", "LIST", "TYPE", kind).splitlines()]
    return sum("cmd=client" not in line for line in lines)


def sent_for_a_visit(store: Redis, client: Client) -> int:
    """Bytes that the store receives for a visit, by the visits for which it got few: the programs also do what is due,
    and read all queues once a second. A program that nothing wakes finds a visit only then."""
    def received() -> int:
        return int(store.command("INFO", "stats").partition("total_net_input_bytes:")[2].partition("\r")[0])

    figures, before = [], received()
    for _ in range(16):
        visitor = Visitor(client, "q0").join()
        wait_until(visitor.is_active, PATIENCE, "the visitor is called", every=0.002)
        assert visitor.complete()["status"] == "completed"
        before, last = received(), before
        figures.append(before - last)
    return sorted(figures)[4]
