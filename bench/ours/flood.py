#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a flood of joins from ten addresses leaves to an ordinary visitor, with the default limits."""
from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from stage import CALM, QUEUE, QUICK, elapsed, emit, percentile, progress, running
from http_client import Client

SECONDS = 10 if QUICK else 30
FLOOD = Path(__file__).with_name("flood.lua")
PAUSE = 0.01  # between two joins of ordinary visitors


def ordinary_joins(client: Client, seconds: float, first: int) -> list[float]:
    """Joins one after the other, each from an address of its own. Milliseconds of each."""
    times: list[float] = []
    since = time.monotonic()
    while elapsed(since) < seconds:
        n = first + len(times)
        address = f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}"
        began = time.monotonic()
        answer = client.post(f"/v1/queues/{QUEUE}/join", headers={"X-Forwarded-For": address})
        times.append(elapsed(began) * 1000)
        if answer.status != 200:
            sys.exit(f"an ordinary join was answered {answer.status}: {answer.body!r}")
        time.sleep(PAUSE)
    return times


def measure() -> None:
    settings = {"http": {"trusted_proxies": "127.0.0.1"}}
    with running({QUEUE: {"capacity": 0} | CALM}, settings=settings) as system:
        port = system.of("worker")[0].http_port
        client = Client(port)
        progress("ordinary joins alone")
        calm = ordinary_joins(client, SECONDS / 3, 0)
        progress("ordinary joins beside a flood")
        flood = subprocess.Popen(["wrk", "-t1", "-c50", f"-d{SECONDS + 2}s", "-s", str(FLOOD),
                                  f"http://127.0.0.1:{port}/v1/queues/{QUEUE}/join"], stdout=subprocess.PIPE, text=True)
        try:
            beside = ordinary_joins(client, SECONDS, len(calm))
            done = flood.communicate()[0]
        finally:
            flood.kill()
    rate = re.search(r"Requests/sec:\s*([\d.]+)", done)
    assert rate is not None, done
    note = f"ten addresses send {float(rate[1]):,.0f} joins a second; one worker process, two cores for all"
    emit("flood", "flood", "joins of the flood", float(rate[1]), "requests/s", "higher")
    for name, times, more in ("alone", calm, {}), ("beside the flood", beside, {"note": note}):
        for metric, share, target in (("p50", 0.5, 100), ("p99", 0.99, 1000)):
            emit("flood", f"an ordinary join, {metric}", name, percentile(times, share), "ms", "lower", target=target, **more)


if __name__ == "__main__":
    measure()
