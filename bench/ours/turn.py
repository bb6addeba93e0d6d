#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""From `complete` to the next visitor's `admitted` event, with many waiting behind."""
from __future__ import annotations

from stage import CALM, PATIENCE, QUEUE, QUICK, SIZES, Crowd, emit, fill, progress, running, wait_until

TURNS = 500 if QUICK else 5000


def measure(n: int) -> None:
    with running({QUEUE: {"capacity": 1} | CALM}) as system:
        worker = system.of("worker")[0]
        crowd = Crowd(worker.http_port)
        try:
            crowd.do("join", TURNS + 1)
            crowd.do("open", TURNS)
            progress(f"{n} join behind them")
            fill(system, n)
            client = system.client()
            wait_until(lambda: client.get(f"/v1/queues/{QUEUE}").json["waiting"] == n + TURNS, PATIENCE,
                       "the worker knows all of them")
            progress(f"{TURNS} turns with {n} waiting")
            lost, p50, p99, p999, most = crowd.do("turns", TURNS)
        finally:
            crowd.end()
    for name, value, target in (("p50", p50, None), ("p99", p99, 10), ("p99.9", p999, None), ("max", most, None)):
        more = {"target": target} if target else {}
        if lost:
            more["wrong"] = int(lost)
        emit("turn", "complete to admitted", name, value, "ms", "lower", n=n,
             note=f"{TURNS} turns, one after the other, over HTTP and an event stream", **more)


for size in SIZES:
    measure(size)
