#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What thirty queues cost each node of a Redis Cluster of one, two and three masters, beside a plain Redis."""
from __future__ import annotations

import time

from stage import CALM, PATIENCE, QUICK, System, batches, cpu_s, elapsed, emit, processes, progress, running_on, wait_until

from redis_cluster import queues_everywhere
from redis_server import RedisServer

#: As many at each node, however many there are.
QUEUES = queues_everywhere(30)
NODES = (1, 3) if QUICK else (1, 2, 3)
#: Joins of a queue, in ingest entries as a busy worker writes them; and how many of visitors who come alone.
JOINS = 2_000 if QUICK else 50_000
ALONE = 60 if QUICK else 600
IDLE_S = 2 if QUICK else 10


class Costs:
    """What each node was asked for and took since it was made: commands from clients and functions, and processor time."""

    def __init__(self, nodes: list[RedisServer], programs: list[int]) -> None:
        self._nodes, self._programs = nodes, programs
        self._pids = [int(node.ask("INFO", "server").split("process_id:")[1].split()[0]) for node in nodes]
        self._before, self._began = self._now(), time.monotonic()

    def _now(self) -> list[list[float]]:
        found = [[self._commands(node), cpu_s([pid])] for node, pid in zip(self._nodes, self._pids)]
        return [*found, [0.0, cpu_s(self._programs)]]

    @staticmethod
    def _commands(node: RedisServer) -> float:
        lines = node.ask("INFO", "commandstats").splitlines()
        return sum(int(line.split("calls=")[1].split(",")[0]) for line in lines if "calls=" in line and "|" not in line)

    def since(self) -> tuple[list[list[float]], float]:
        """For each node, then for all programs together: commands and seconds; and how long it has been."""
        found = [[now - then for now, then in zip(*pair)] for pair in zip(self._now(), self._before)]
        return found, elapsed(self._began)


def join_many(system: System) -> None:
    """Whole batches into every queue, one queue after the other, until all are numbered."""
    for queue in QUEUES:
        for entry in batches(JOINS):
            system.store.command("XADD", system.key(queue, "ingest"), "*", "d", entry)
    for queue in QUEUES:
        wait_until(lambda q=queue: int(system.store.command("HGET", system.key(q, "state"), "joined")) >= JOINS, PATIENCE,
                   "all joins are applied")


def join_alone(system: System) -> None:
    client = system.client()
    for i in range(ALONE):
        answer = client.post(f"/v1/queues/{QUEUES[i % len(QUEUES)]}/join")
        assert answer.status == 200, answer


def report(name: str, n: int, costs: tuple[list[list[float]], float], joins: int = 0) -> None:
    """By node: the one that worked most, and the mean. Per join, or per second without any."""
    (*nodes, (_, programs)), took = costs
    unit, parts = ("per join", joins) if joins else ("per second", took)
    for figure, scale, what in ((0, 1.0, "commands"), (1, 1e6, "us")):
        values = [node[figure] * scale / parts for node in nodes]
        emit("cluster", f"{what} {unit}", f"{name}: busiest node", max(values), what, "lower", n=n)
        emit("cluster", f"{what} {unit}", f"{name}: all nodes", sum(values), what, "lower", n=n)
    emit("cluster", f"us {unit}", f"{name}: all programs", programs * 1e6 / parts, "us", "lower", n=n)


def measure(n: int) -> None:
    """n: masters; 0: a Redis without a cluster."""
    progress(f"{n} nodes" if n else "a plain Redis")
    with running_on(n, {name: {"capacity": 1} | CALM for name in QUEUES}) as (system, nodes):
        programs = [pid for program in system.programs for pid in processes(program)]
        for queue in QUEUES:  # its one slot is taken from then on
            assert system.client().post(f"/v1/queues/{queue}/join").status == 200
        time.sleep(1)  # not a wait for anything: so that the idle span is one
        costs = Costs(nodes, programs)
        time.sleep(IDLE_S)  # the same: the span that is measured
        report("idle", n, costs.since())
        costs = Costs(nodes, programs)
        join_alone(system)
        report("alone", n, costs.since(), ALONE)
        costs = Costs(nodes, programs)
        join_many(system)
        report("in batches", n, costs.since(), JOINS * len(QUEUES))


for count in (0, *NODES):
    measure(count)
