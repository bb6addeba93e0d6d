#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What some hundred idle queues cost a Redis Cluster of three masters, beside a plain Redis: commands, processor, connections."""
from __future__ import annotations

import time

from stage import CALM, PATIENCE, QUICK, cpu_s, elapsed, emit, processes, progress, running_on, wait_until

from many_queues import calls, connections
from redis_cluster import queues_everywhere
from redis_server import RedisServer

QUEUES = queues_everywhere(102)
NODES = 3
#: The functions admit and expire run every five seconds.
SECONDS = 5 if QUICK else 20


def measure(n: int) -> None:
    """n: masters; 0: a Redis without a cluster."""
    progress(f"{len(QUEUES)} idle queues on {n} nodes" if n else f"{len(QUEUES)} idle queues on a plain Redis")
    with running_on(n, {name: {"capacity": 1} | CALM for name in QUEUES}) as (system, nodes):
        for queue in QUEUES:
            wait_until(lambda q=queue: all(system.store.command("EXISTS", system.key(q, role)) == 1
                                           for role in ("dispatcher", "admitter", "expirer")), PATIENCE, "all are served")
        time.sleep(5)  # not a wait for anything: so that the span is idle
        report(n, nodes, [pid for program in system.programs for pid in processes(program)])


def report(n: int, nodes: list[RedisServer], programs: list[int]) -> None:
    pids = [int(node.ask("INFO", "server").split("process_id:")[1].split()[0]) for node in nodes]
    before, used, began = calls(nodes), (cpu_s(pids), cpu_s(programs)), time.monotonic()
    time.sleep(SECONDS)  # not a wait for anything: the span that is measured
    took = elapsed(began)
    more = calls(nodes) - before
    emit("cluster-idle", "commands", "all nodes", more.total() / took, "per second", "lower", n=n)
    for name, number in more.most_common(12):
        emit("cluster-idle", "each command", name, number / took, "per second", "lower", n=n)
    for name, share in zip(("all nodes", "all programs"), (cpu_s(pids) - used[0], cpu_s(programs) - used[1])):
        emit("cluster-idle", "processor", name, share / took * 100, "% of a core", "lower", n=n)
    emit("cluster-idle", "connections", "busiest node", max(map(connections, nodes)), "connections", "lower", n=n)


for count in (0, NODES):
    measure(count)
