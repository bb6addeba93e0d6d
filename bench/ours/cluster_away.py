#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Joins at the nodes of a Redis Cluster (three masters, a replica of each) before and while another master is away, killed
or frozen, by the same visitors in one run."""
from __future__ import annotations

import threading
import time

from stage import CALM, PATIENCE, QUICK, elapsed, emit, percentile, progress, running, wait_until

from redis_cluster import Node, RedisCluster, queues_everywhere
from shopper import Shopper

QUEUES = queues_everywhere(30)
NODE_TIMEOUT_MS = 5000  # as docs/operators/redis.md has it
SHOPPERS = 3  # at each node, each in a queue of its own
BEFORE_S = 5 if QUICK else 20


def back_again(victim: Node, cluster: RedisCluster, how: str) -> None:
    if how == "frozen":
        victim.resume()
        cluster.settle()
    else:
        cluster.back_as_replica(victim)


def measure(cluster: RedisCluster, how: str, port: int) -> None:
    progress(f"a master is {how}")
    stop, victim = threading.Event(), cluster.masters()[0]
    shoppers = {master: [Shopper(port, queue, stop) for queue in queues[:SHOPPERS]]
                for master, queues in cluster.queues_by_master(QUEUES).items()}
    for shopper in (one for several in shoppers.values() for one in several):
        shopper.start()
    others = [one for master, several in shoppers.items() if master is not victim for one in several]
    try:
        time.sleep(1)  # not a wait for anything: the first joins, which open connections, are left out
        began = time.monotonic()
        time.sleep(BEFORE_S)  # the same: the span that is measured
        replica, away = cluster.replica_of(victim), time.monotonic()
        victim.pause() if how == "frozen" else victim.kill()
        # Nobody else is asked: a frozen node would not answer.
        wait_until(lambda: replica.ask("ROLE")[0] == "master", PATIENCE, "the replica is the master")
        promoted = time.monotonic()
        wait_until(lambda: all(one.numbered(promoted) for one in shoppers[victim]), PATIENCE, "its queues go on")
    finally:
        stop.set()
        for shopper in (one for several in shoppers.values() for one in several):
            shopper.join()
    back_again(victim, cluster, how)
    own = [began for one in shoppers[victim] for began, _, status in one.answers if status == 200 and began >= promoted]
    for name, since, until in (("before", began, away), (how, away, promoted)):
        took = [took * 1e3 for one in others for sent, took, status in one.answers
                if status == 200 and since <= sent < until]
        for metric, value in (("p50", percentile(took, 0.5)), ("p99", percentile(took, 0.99)), ("max", max(took))):
            more = {} if name == "before" else {"baseline": f"before it is {how}"}
            emit("cluster-away", f"join at other nodes, {metric}", name if more else f"before it is {how}", value, "ms",
                 "lower", note=f"{len(took)} joins in {until - since:.1f} s", **more)
    refused = [status for one in others for _, _, status in one.answers if status != 200]
    emit("cluster-away", "joins at other nodes not answered with a place", how, len(refused), "joins", "lower")
    emit("cluster-away", "until the replica is promoted", how, promoted - away, "s", "lower")
    emit("cluster-away", "until its queues go on after that", how, min(own) - promoted, "s", "lower")


def main() -> None:
    cluster = RedisCluster(options={"appendonly": "no", "cluster-node-timeout": str(NODE_TIMEOUT_MS)})
    try:
        cluster.start()
        with running({queue: {"capacity": 1000} | CALM for queue in QUEUES}, settings={"http": {"join_wait": "1s"}},
                     prepare=cluster.prepare) as system:
            for how in ("killed", "frozen"):
                measure(cluster, how, system.of("worker")[0].http_port)
    finally:
        cluster.end()


main()
