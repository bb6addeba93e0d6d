#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of a visitor who waits, is active, or ended within the last hour: of Redis, and of a worker process."""
from __future__ import annotations

from stage import CALM, PATIENCE, QUEUE, SIZES, System, emit, fill, progress, redis_info, rss, running, wait_until
from figures_of import metric

SESSION = {"session_ttl": "2s", "claim_ttl": "2s"}
LINES = "tellerline_worker_line_bytes"


def used(system: System) -> int:
    return int(redis_info(system, "memory")["used_memory"])


def keys(system: System, n: int) -> str:
    """What of it is which key's, the largest first, from 1 byte a visitor on."""
    names = {name: int(system.store.command("MEMORY", "USAGE", name, "SAMPLES", 1000))
             for name in system.store.command("KEYS", system.key(QUEUE, "*"))}
    return ", ".join(f"{name.rpartition('}:')[2]} {size / n:.0f}" for name, size in
                     sorted(names.items(), key=lambda item: -item[1]) if size >= n)


def measure(n: int) -> None:
    """All of them wait, then all are active, then all have ended: each time compared with before the first came."""
    with running({QUEUE: CALM | SESSION | {"capacity": 1}}) as system:
        worker, expirer = system.of("worker")[0], system.of("expirer")[0]
        expirer.stop()
        store, lines = used(system), metric(worker, LINES)
        process = max(map(rss, worker.children()))
        client = system.client()

        def shown(what: str) -> int:
            return client.get(f"/v1/queues/{QUEUE}").json[what]

        def tell(state: str, count: int) -> None:
            emit("memory", "Redis", state, (used(system) - store) / count, "bytes a visitor", "lower", n=n,
                 note=keys(system, count))
            emit("memory", "a worker's line", state, (metric(worker, LINES) - lines) / count, "bytes a visitor", "lower",
                 n=n)

        progress(f"{n} wait")
        fill(system, n)
        wait_until(lambda: shown("waiting") == n - 1, PATIENCE, "the worker knows all of them")
        tell("waiting", n)
        emit("memory", "a worker process", "beside those who wait", max(map(rss, worker.children())) / 1e6, "MB",
             "lower", n=n, note=f"{process / 1e6:.1f} MB beside none")
        progress(f"{n} are active")
        system.set(QUEUE, f"capacity={n}")
        wait_until(lambda: shown("active") == n, PATIENCE, "all are admitted")
        tell("active", n)
        progress(f"{n} end")
        expirer.start()
        wait_until(lambda: shown("active") == 0, PATIENCE, "all have ended")
        tell("ended", system.store.command("ZCARD", system.key(QUEUE, "ended")))


for size in SIZES:
    measure(size)
