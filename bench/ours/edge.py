#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Requests a second of one worker process on one core, beside the bare HTTP library answering a constant."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from stage import (BIN, CALM, QUEUE, QUICK, Crowd, cpu_s, emit, fill, free_port, pin, processes, progress, redis_pid,
                   running, wait_until)
from http_client import CONNECTION_TROUBLE, Client

SECONDS = 2 if QUICK else 5
WAITING = 10_000 if QUICK else 100_000
BARE = "bare HTTP library"
OPEN = "open"  # a queue with room
JOIN = Path(__file__).with_name("join.lua")


def wrk(port: int, path: str, *more: str) -> tuple[float, float]:
    """Requests a second and the 99th percentile of the latency in ms; 64 connections, one thread."""
    done = subprocess.run(["taskset", "--cpu-list", "1", "wrk", "-t1", "-c64", f"-d{SECONDS}s", "--latency", *more,
                           f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True)
    if "Non-2xx" in done.stdout:
        sys.exit(done.stdout)
    rate = re.search(r"Requests/sec:\s*([\d.]+)", done.stdout)
    p99 = re.search(r"99%\s*([\d.]+)(us|ms|s)", done.stdout)
    assert rate is not None and p99 is not None, done.stdout
    return float(rate[1]), float(p99[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[p99[2]]


def measure(pids: list[int], port: int, path: str, *more: str) -> tuple[float, float, float]:
    """As wrk, and between them: requests that these processes answer in a second of processor time."""
    before = cpu_s(pids)
    rate, p99 = wrk(port, path, *more)
    return rate, rate * SECONDS / (cpu_s(pids) - before), p99


def bare() -> tuple[float, float]:
    port = free_port()
    server = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "taskset", "--cpu-list", "0",
                               str(BIN / "bare_http"), str(port)])
    try:
        def answers() -> bool:
            try:
                return Client(port).get("/").status == 200
            except CONNECTION_TROUBLE:
                return False
        wait_until(answers, 20, "the bare library answers")
        return measure([server.pid], port, "/")[:2]
    finally:
        server.kill()
        server.wait()


def one_core() -> None:
    with running({QUEUE: {"capacity": 1} | CALM, OPEN: {"capacity": 1} | CALM}) as system:
        worker = system.of("worker")[0]
        fill(system, WAITING)
        crowd = Crowd(worker.http_port)
        crowd.end()
        visitor, active = system.join(QUEUE), system.join(OPEN)
        wait_until(active.is_active, 20, "a visitor is active")
        pin(processes(worker), 0)
        others = [program.pid for program in system.programs if program.role != "worker"]
        pin([*others, redis_pid(system)], 1)
        progress("bare library")
        emit_both(BARE, *bare(), ours=False)
        progress("status")
        rate, of_core, p99 = measure(processes(worker), worker.http_port, f"/v1/queues/{QUEUE}/status", "-H",
                                     f"Authorization: Bearer {visitor.ticket}")
        emit_both("status", rate, of_core, baseline=BARE, target=0.7,
                  note=f"p99 {p99:.1f} ms with 64 connections, {WAITING} waiting")
        for proof, token in ("ticket", active.ticket), ("pass", active.status()["pass"]):
            progress(f"check by {proof}")
            rate, of_core, p99 = measure(processes(worker), worker.http_port, f"/v1/queues/{OPEN}/check", "-H",
                                         f"Authorization: Bearer {token}")
            emit_both(f"check by {proof}", rate, of_core, baseline=BARE, note=f"p99 {p99:.1f} ms with 64 connections")
        progress("join")
        rate, of_core, p99 = measure(processes(worker), worker.http_port, f"/v1/queues/{QUEUE}/join", "-s", str(JOIN))
        emit_both("join", rate, of_core, baseline=BARE, target=0.4,
                  note=f"p99 {p99:.1f} ms; each answered when it is numbered; Redis and dispatcher share the other "
                       f"core with the load generator")


def emit_both(name: str, rate: float, of_core: float, **more: Any) -> None:
    """Where the worker waits for others (join), what it answers in a second says less of it than what that takes."""
    wall = {key: value for key, value in more.items() if key != "target"}
    emit("edge", "requests", name, rate, "requests/s", "higher", **wall)
    emit("edge", "requests a core", name, of_core, "requests per second of processor time", "higher", **more)


def many_workers() -> None:
    for workers in (1, 2, 4):
        progress(f"joins with {workers} workers")
        with running({QUEUE: {"capacity": 1} | CALM}, workers=workers) as system:
            loads = [subprocess.Popen(["wrk", "-t1", "-c32", f"-d{SECONDS}s", "-s", str(JOIN),
                                       f"http://127.0.0.1:{program.http_port}/v1/queues/{QUEUE}/join"],
                                      stdout=subprocess.PIPE, text=True) for program in system.of("worker")]
            total = 0.0
            for load in loads:
                found = re.search(r"Requests/sec:\s*([\d.]+)", load.communicate()[0])
                total += float(found[1]) if found else 0.0
            emit("edge", "joins, many workers", f"{workers} workers", total, "joins/s", "higher", n=0,
                 note="workers, Redis, dispatcher and load generators share the cores of this machine")


if __name__ == "__main__":
    one_core()
    many_workers()
