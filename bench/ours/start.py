#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a worker that is started beside a long line can answer, and what the line costs it in memory."""
from __future__ import annotations

import os
import time

from stage import (CALM, PATIENCE, QUEUE, QUICK, SIZES, System, cpu_s, elapsed, emit, fill, progress, redis_pid, rss,
                   running)


def leave(system: System, n: int) -> None:
    """One in twenty is gone, evenly: then hardly a block of the line is unbroken, and all of it is read out."""
    system.store.command("EVAL", """
        for place = tonumber(ARGV[1]), tonumber(ARGV[1]) + ARGV[2] - 1, 20 do
            redis.call('ZREMRANGEBYSCORE', KEYS[1], place, place)
        end""", 1, system.key(QUEUE, "waiting"), 2 ** 48 + 1, n)


def measure(n: int, some_left: bool = False) -> None:
    with running({QUEUE: {"capacity": 1} | CALM}) as system:
        worker = system.of("worker")[0]
        worker.stop()
        progress(f"{n} join")
        fill(system, n)
        if some_left:
            leave(system, n)
        redis = redis_pid(system)
        used, began = cpu_s([redis]), time.monotonic()
        worker.start()
        while not (worker.running and worker.ready()):
            time.sleep(0.005)
            assert elapsed(began) < PATIENCE
        took = elapsed(began)
        used = cpu_s([redis]) - used
        shown = system.client().get(f"/v1/queues/{QUEUE}").json["waiting"]
        memory = max(rss(pid) for pid in worker.children())
        counted = system.store.command("MEMORY", "USAGE", system.key(QUEUE, "waiting"), "SAMPLES", 1000)
    expected = n - 1 - (n + 19) // 20 if some_left else n - 1
    emit("start", "ready", "worker, one in twenty left" if some_left else "worker", took, "s", "lower", n=n,
         note=f"{used:.2f} s of Redis's processor time", **({"wrong": 1} if shown < expected else {}))
    if some_left:
        return
    emit("start", "memory", "worker process", memory / 1e6, "MB", "lower", n=n)
    emit("start", "memory", "Redis, the waiting Sorted Set", counted / 1e6, "MB", "lower", n=n,
         note=f"{counted / n:.0f} bytes a visitor")


sizes = SIZES if QUICK or os.environ.get("BENCH_SIZES") == "1000" else [*SIZES, 10 * SIZES[-1]]
for size in sizes:
    measure(size)
    measure(size, some_left=True)
