#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How precisely sessions end, and how fast a mass of them that is due at once is drained."""
from __future__ import annotations

import time

from stage import (CALM, PATIENCE, QUEUE, QUICK, SIZES, elapsed, emit, fill, percentile, progress, running,
                   wait_until)

SESSIONS = 2000 if QUICK else 10_000
PLAIN = "plain ZPOPMIN"


def precision() -> None:
    """Sessions begin over two seconds, a few every ten milliseconds, and end by themselves three seconds later."""
    rounds = 200
    with running({QUEUE: CALM | {"capacity": SESSIONS, "session_ttl": "3s", "claim_ttl": "3s"}},
                 settings={"retention": {"events_entries": 100_000}}) as system:
        for i in range(rounds):
            fill(system, SESSIONS // rounds, first=i * 1000)
            time.sleep(0.01)  # not a wait for anything: the pace at which they come
        wait_until(lambda: system.numbers(QUEUE)["expired"] == SESSIONS, PATIENCE, "all sessions have ended")
        deadlines: dict[int, int] = {}
        late = []
        for step in system.steps(QUEUE):
            deadlines |= step.deadlines
            late += [step.time_ms - deadlines[place] for place, _ in step.freed]
    for name, share, target in (("p50", 0.5, None), ("p99", 0.99, 20), ("max", 1.0, None)):
        emit("expiry", "lateness", name, percentile(late, share), "ms", "lower", n=SESSIONS,
             note="after the deadline, by the store's clock; never before" if min(late) >= 0 else "SOME TOO EARLY",
             **({"target": target} if target else {}))


def plain(system, n: int) -> float:
    """What Redis alone takes to empty a Sorted Set of as many, a thousand a command."""
    store = system.store
    for start in range(0, n, 1000):
        store.command("ZADD", "plain", *(word for i in range(start, start + 1000) for word in (i, b"%022d" % i)))
    began = time.monotonic()
    for _ in range(n // 1000):
        store.send("ZPOPMIN", "plain", 1000)
        store.read()
    return n / elapsed(began)


def drain(n: int) -> None:
    """All are due before the expirer is started."""
    with running({QUEUE: CALM | {"capacity": n, "session_ttl": "2s", "claim_ttl": "2s"}}, expirers=1) as system:
        expirer = system.of("expirer")[0]
        expirer.stop()
        fill(system, n)
        wait_until(lambda: system.active(QUEUE) == n, PATIENCE, "all are admitted")
        key = system.key(QUEUE, "active")
        wait_until(lambda: system.store.command("ZCARD", key) == n and due(system, key), PATIENCE, "all are due")
        state = system.key(QUEUE, "state")

        def expired() -> int:
            return int(system.store.command("HGET", state, "expired"))
        expirer.start()
        wait_until(expired, PATIENCE, "the first have ended", every=0.001)
        began, first = time.monotonic(), expired()
        wait_until(lambda: expired() == n, PATIENCE, "all have ended", every=0.005)
        rate = (n - first) / elapsed(began)
        simple = plain(system, n)
        emit("expiry", "drain", PLAIN, simple, "sessions/s", "higher", n=n, ours=False)
        emit("expiry", "drain", "Tellerline", rate, "sessions/s", "higher", n=n, target=300_000,
             note=f"{rate / simple:.2f} of {PLAIN}; each: removed, kept for honest answers, counted, told to all")


def due(system, key: str) -> bool:
    seconds, micros = map(int, system.store.command("TIME"))
    latest = system.store.command("ZREVRANGE", key, 0, 0, "WITHSCORES")[1]
    return seconds * 1000 + micros // 1000 > int(latest)


progress("precision")
precision()
for size in SIZES:
    progress(f"{size} sessions due at once")
    drain(size)
