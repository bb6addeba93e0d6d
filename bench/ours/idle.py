#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of a thousand idle queues."""
from __future__ import annotations

import time

from stage import CALM, QUICK, commands, cpu_s, elapsed, emit, processes, progress, redis_info, redis_pid, rss, running

QUEUES = (1, 100) if QUICK else (1, 100, 1000)
SECONDS = 3 if QUICK else 10


def measure(n: int) -> None:
    progress(f"{n} idle queues")
    with running({f"queue-{i:04d}": {"capacity": 10} | CALM for i in range(n)}) as system:
        redis = redis_pid(system)
        pids = {program.role: processes(program) for program in system.programs} | {"Redis": [redis]}
        used = {name: cpu_s(found) for name, found in pids.items()}
        calls, began = sum(commands(system).values()), time.monotonic()
        time.sleep(SECONDS)  # not a wait for anything: the span that is measured
        took = elapsed(began)
        rate = (sum(commands(system).values()) - calls) / took
        shares = {name: (cpu_s(found) - used[name]) / took * 100 for name, found in pids.items()}
        memory = int(redis_info(system, "memory")["used_memory"])
        worker = max(rss(pid) for pid in pids["worker"])
    emit("idle", "Redis commands", "all, with those inside functions", rate, "per second", "lower", n=n)
    for name, share in shares.items():
        emit("idle", "processor", name, share, "% of a core", "lower", n=n)
    emit("idle", "memory", "Redis", memory / 1e6, "MB", "lower", n=n)
    emit("idle", "memory", "worker process", worker / 1e6, "MB", "lower", n=n)


for count in QUEUES:
    measure(count)
