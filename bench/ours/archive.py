#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The archive: rows a second beside plain COPY, how far it is behind, what it adds to joins, and how long a lost line takes
to come back."""
from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from edge import JOIN, wrk
from stage import (BIN, CALM, PATIENCE, QUEUE, QUICK, SIZES, TICKS, System, cpu_s, elapsed, emit, fill, percentile, processes, progress,
                   redis_pid, running, wait_until)
from families import descendants
from postgres_server import PostgresServer

N = min(SIZES[-1], 20_000) if QUICK else SIZES[-1]
ROWS = min(N, 200_000)  # the record holds 600,000 at most
LONE = 20 if QUICK else 100
ROUNDS = 1 if QUICK else 3
COPY = "plain COPY"
WAITS_MS = 5000  # restore begins so long after the queue was created again


@contextmanager
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.start()
        subprocess.run([BIN / "tellerline", "db", "migrate"], check=True, stdout=subprocess.DEVNULL,
                       env={"TELLERLINE_ARCHIVE_URL": server.url})
        yield server
    finally:
        server.remove()


def archived(server: PostgresServer, archivers: int = 1):
    """A system whose queue nobody is called in before its capacity is raised."""
    return running({QUEUE: {"capacity": 1, "max_waiting": 2_000_000} | CALM}, archivers=archivers,
                   settings={"archive": {"url": server.url, "restore": "auto", "bytes": "1GiB", "entries": 1_000_000}})


def field(system: System, name: str) -> str:
    return system.store.command("HGET", system.key(QUEUE, "state"), name) or ""


def used(server: PostgresServer) -> float:
    """Seconds of processor time of all its processes, also of those that have ended."""
    ended = Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()[13:15]
    return cpu_s([server.pid, *descendants(server.pid)]) + sum(map(int, ended)) / TICKS


def timed(server: PostgresServer, do: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of PostgreSQL's processor time."""
    before, began = used(server), time.monotonic()
    do()
    return elapsed(began), used(server) - before


def empties(system: System) -> Callable[[], None]:
    """Starts the archiver, and waits until PostgreSQL has all of the record."""
    def do() -> None:
        system.of("archiver")[0].start()
        wait_until(lambda: system.store.command("XLEN", system.key(QUEUE, "record")) == 0, PATIENCE, "all is archived")
    return do


def rows() -> None:
    with postgres() as server, archived(server) as system:
        archiver = system.of("archiver")[0]
        wait_until(lambda: field(system, "archive"), PATIENCE, "the queue is archived")
        archiver.stop()
        fill(system, ROWS)
        progress(f"{ROWS} joins are archived")
        inserts = timed(server, empties(system))
        archiver.stop()
        system.set(QUEUE, f"capacity={ROWS}")
        wait_until(lambda: field(system, "active") == str(ROWS), PATIENCE, "all are called")
        progress(f"{ROWS} admissions are archived")
        updates = timed(server, empties(system))
        assert server.sql("SELECT count(*) FROM queue_entries WHERE status = 'active'") == str(ROWS)
        progress("plain COPY")
        server.sql("COPY (SELECT * FROM queue_entries) TO '/dev/shm/tellerline-bench-archive' (FORMAT binary); "
                   "CREATE TABLE plain (LIKE queue_entries INCLUDING ALL)")
        plain = timed(server, lambda: server.sql("COPY plain FROM '/dev/shm/tellerline-bench-archive' (FORMAT binary)"))
        server.sql("COPY (SELECT 1) TO PROGRAM 'rm /dev/shm/tellerline-bench-archive'")
        for name, (seconds, cpu), more in ((COPY, plain, {}), ("inserts", inserts, {"baseline": COPY, "target": 0.5}),
                                           ("updates", updates, {"baseline": COPY, "target": 0.5})):
            emit("archive", "rows", name, ROWS / seconds, "rows/s", "higher", n=ROWS, **more)
            emit("archive", "rows a core", name, ROWS / cpu, "rows per second of PostgreSQL's processor time", "higher", n=ROWS,
                 **more)


def lag() -> None:
    """From the answer to a join until its row is there."""
    with postgres() as server, archived(server) as system:
        wait_until(lambda: field(system, "archive"), PATIENCE, "the queue is archived")
        times = []
        progress(f"{LONE} joins, one at a time")
        for _ in range(LONE):
            visitor = system.join(QUEUE).view["visitor"]
            began = time.monotonic()
            wait_until(lambda one=visitor: server.sql(f"SELECT count(*) FROM queue_entries WHERE visitor = '{one}'") == "1",
                       PATIENCE, "the row is there")
            times.append(1000 * elapsed(began))
        for share in (0.5, 0.99):
            emit("archive", "from a join to its row", f"p{100 * share:.0f}", percentile(times, share), "ms", "lower",
                 note="entries are gathered for 200 ms")


def requests(system: System) -> dict[str, float]:
    """Processor time of a request, us, at Redis, worker and dispatcher together."""
    pids = [pid for role in ("worker", "dispatcher") for program in system.of(role) for pid in processes(program)]
    pids.append(redis_pid(system))
    port, ticket, cost = system.of("worker")[0].http_port, system.join(QUEUE).ticket, {}
    for name, words in (("join", ("join", "-s", str(JOIN))), ("status", ("status", "-H", f"Authorization: Bearer {ticket}"))):
        before, began = cpu_s(pids), time.monotonic()
        rate, _ = wrk(port, f"/v1/queues/{QUEUE}/{words[0]}", *words[1:])
        cost[name] = 1e6 * (cpu_s(pids) - before) / (rate * elapsed(began))
    return cost


def on_and_off() -> None:
    costs: dict[tuple[str, str], list[float]] = {}
    for turn in range(ROUNDS):
        for how in ("without", "with"):
            progress(f"joins and status {how} the archive, {turn + 1} of {ROUNDS}")
            with postgres() as server, archived(server, 1 if how == "with" else 0) as system:
                if how == "with":
                    wait_until(lambda s=system: field(s, "archive"), PATIENCE, "the queue is archived")
                for name, cost in requests(system).items():
                    costs.setdefault((name, how), []).append(cost)
    for (name, how), found in costs.items():
        emit("archive", f"processor time of {name}", f"{how} the archive", percentile(found, 0.5), "us", "lower",
             note="Redis, worker and dispatcher", **({"baseline": "without the archive"} if how == "with" else {}))


def restore() -> None:
    with postgres() as server, archived(server) as system:
        wait_until(lambda: field(system, "archive"), PATIENCE, "the queue is archived")
        for first in range(0, N, ROWS):  # no more than the record holds
            fill(system, min(ROWS, N - first), first=first)
            wait_until(lambda: system.store.command("XLEN", system.key(QUEUE, "record")) == 0, PATIENCE, "all is archived")
        progress(f"{N} come back")
        generation = field(system, "generation")
        system.store.command("FLUSHALL")
        wait_until(lambda: field(system, "generation") not in ("", generation), PATIENCE, "the queue is created again")
        began = time.monotonic()
        wait_until(lambda: field(system, "restore").startswith("done"), 10 * PATIENCE, "all are back")
        took = elapsed(began)
        assert int(field(system, "waiting")) + int(field(system, "active")) == N, field(system, "waiting")
        emit("archive", "a lost line comes back", "all", took, "s", "lower", n=N,
             note=f"{WAITS_MS / 1000:g} s of it are the wait for what workers remember")


if __name__ == "__main__":
    for part in (rows, lag, on_and_off, restore):
        part()
