#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one join costs beside many queues: each is answered before the next is sent."""
from __future__ import annotations

import random
import time

from stage import CALM, PATIENCE, QUICK, commands, cpu_s, elapsed, emit, percentile, processes, progress, redis_info, \
    redis_pid, running, wait_until

QUEUES = (1, 100) if QUICK else (1, 30, 100, 800)
JOINS = 100 if QUICK else 400
IDLE_S = 2 if QUICK else 6


def measure(n: int) -> None:
    progress(f"{n} queues")
    names = [f"queue-{i:04d}" for i in range(n)]
    with running({name: {"capacity": 1} | CALM for name in names}) as system:
        leases = [system.key(name, role) for name in names for role in ("dispatcher", "admitter", "expirer")]
        wait_until(lambda: system.store.command("EXISTS", *leases) == len(leases), PATIENCE, "all queues are served")
        redis = [redis_pid(system)]
        every = redis + [pid for program in system.programs for pid in processes(program)]

        def used() -> list[float]:
            return [cpu_s(redis) * 1e3, cpu_s(every) * 1e3, sum(commands(system).values()),
                    int(redis_info(system, "stats")["total_net_input_bytes"])]

        def since(before: list[float]) -> list[float]:
            return [now - then for now, then in zip(used(), before)]

        client, visitors = system.client(), random.Random(1)
        for name in names:  # its one slot is taken from then on
            client.post(f"/v1/queues/{name}/join")
        time.sleep(1)  # not a wait for anything: so that the idle span is one
        before, began = used(), time.monotonic()
        time.sleep(IDLE_S)  # the same: the span that is measured
        idle = [figure / elapsed(began) for figure in since(before)]
        before, began, took = used(), time.monotonic(), []
        for _ in range(JOINS):
            sent = time.monotonic()
            answer = client.post(f"/v1/queues/{visitors.choice(names)}/join")
            took.append(elapsed(sent) * 1e3)
            assert answer.status == 200, answer
        span = elapsed(began)
        cost = [max(figure - span * rate, 0) / JOINS for figure, rate in zip(since(before), idle)]
    for (name, unit), value in zip((("Redis", "ms"), ("Redis and all programs", "ms"),
                                    ("Redis commands", "each, with those inside functions"),
                                    ("sent to Redis", "bytes")), cost):
        emit("lone", "a join", name, value, unit, "lower", n=n)
    emit("lone", "a join", "answered after", percentile(took, 0.5), "ms", "lower", n=n)


for count in QUEUES:
    measure(count)
