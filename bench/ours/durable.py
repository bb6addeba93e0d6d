#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What durability costs: joins, and the way from `complete` to the next visitor's `admitted`, on a Redis and a
PostgreSQL that keep what they were told, over a unix socket and over TCP."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from stage import BIN, CALM, PATIENCE, QUEUE, QUICK, SIZES, TOP, Crowd, emit, fill, progress, running, skip, wait_until

sys.path.insert(0, str(TOP / "bench"))
from redis_server import RedisServer  # noqa: E402
from servers import Postgres, Redis, Unavailable, pinned  # noqa: E402

TURNS = 200 if QUICK else 1000
N = SIZES[-1]
FOLDER = Path(os.environ["BENCH_TMP"])
CORES = sorted(os.sched_getaffinity(0))
SERVER, OTHERS = ([CORES[0]], CORES[1:]) if len(CORES) > 1 else (None, None)


class Given(RedisServer):
    """A server that runs, and that a System leaves alone."""

    def __init__(self, server: Redis) -> None:
        super().__init__(server.folder)
        self.socket, self._process = server.socket, None

    running = True

    def kill(self) -> None:
        """The one who started it does that."""


def lines(server: Redis | Postgres, *command: str | Path) -> list[dict[str, Any]]:
    """What a program prints as figures, about this server, beside it."""
    done = subprocess.run([*pinned(OTHERS), *map(str, command)], stdout=subprocess.PIPE, text=True, check=True,
                          env=os.environ | server.environment() | {"BENCH_SIZES": str(N)})
    return [found for found in map(json.loads, done.stdout.splitlines()) if "value" in found or "skip" in found]


def tell(line: dict[str, Any], name: str, baseline: str | None, **more: str) -> None:
    """A figure of another program, under a name that says how durable it was."""
    print(json.dumps(line | {"name": name, "baseline": baseline} | more), flush=True)


def joins(server: Redis, how: str) -> None:
    for line in lines(server, BIN / "apply_bench", "--bin", BIN, "--rounds", "1", "--batch", "1000", "--active", "300"):
        if line["name"] in ("plain ZADD", "path"):
            ours = line["name"] == "path"
            tell(line, f"{'Tellerline' if ours else 'plain ZADD'}, {how}", f"plain ZADD, {how}" if ours else None,
                 metric="joins through the dispatcher", note="batches of 1,000, 300 active")
    for line in lines(server, BIN / "ways_bench", "--join", "plain Redis", "Tellerline"):
        if line["metric"] == "join":
            tell(line, f"{line['name']}, {how}", f"plain Redis, {how}" if "baseline" in line else None)


def turns(server: Redis, how: str) -> None:
    kept = {"none": "memory", "everysec": "memory"}.get(server.durability, server.durability)
    if kept == "fsync" and not server.has("WAITAOF"):
        skip("durable", "complete to admitted", f"p50, {how}", "this redis-server has no WAITAOF: it takes 7.2", N)
        return
    server.empty()

    def prepare(system) -> None:
        system.redis = Given(server)
    with running({QUEUE: {"capacity": 1} | CALM}, settings={"redis": {"url": server.url, "durability": kept}},
                 prepare=prepare) as system:
        crowd = Crowd(system.of("worker")[0].http_port)
        try:
            crowd.do("join", TURNS + 1)
            crowd.do("open", TURNS)
            fill(system, N)
            client = system.client()
            wait_until(lambda: client.get(f"/v1/queues/{QUEUE}").json["waiting"] == N + TURNS, PATIENCE,
                       "the worker knows all of them")
            lost, p50, p99, _, most = crowd.do("turns", TURNS)
        finally:
            crowd.end()
    for name, value in (("p50", p50), ("p99", p99), ("max", most)):
        emit("durable", "complete to admitted", f"{name}, {how}", value, "ms", "lower", n=N,
             note=f"{TURNS} turns, redis.durability {kept}", **({"wrong": int(lost)} if lost else {}))


def postgres(synchronous: str, plain: str) -> None:
    try:
        server = Postgres(FOLDER / f"postgres-{synchronous}", SERVER, {"synchronous_commit": synchronous})
    except Unavailable as reason:
        skip("durable", "join", f"PostgreSQL, synchronous_commit {synchronous}", str(reason), N)
        return
    try:
        for line in lines(server, BIN / "ways_bench", "--join", "PostgreSQL"):
            if line["metric"] == "join":
                tell(line, f"PostgreSQL, synchronous_commit {synchronous}", f"plain Redis, {plain}")
    finally:
        server.stop()


for transport in ("unix socket", "TCP"):
    for durability in ("none", "everysec", "fsync", "replicated"):
        how = f"{durability}, {transport}"
        progress(how)
        redis = Redis(FOLDER / how.replace(" ", "-"), SERVER, durability, tcp=transport == "TCP", others=OTHERS)
        try:
            joins(redis, how)
            turns(redis, how)
        finally:
            redis.stop()
# Of each kind of Redis the one that may lose as much.
for setting, plain in (("on", "fsync, unix socket"), ("off", "everysec, unix socket")):
    progress(f"PostgreSQL, synchronous_commit {setting}")
    postgres(setting, plain)
