#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Event streams on several worker processes: the cost of each, and how soon all of them get a new position."""
from __future__ import annotations

import resource
from pathlib import Path

from stage import (CALM, PATIENCE, QUEUE, QUICK, Crowd, all_at_once, commands, cpu_s, emit, progress, rss, running,
                   skip, wait_until)

STREAMS = 10_000 if QUICK else 100_000
EACH = 5_000 if QUICK else 16_667  # a process may have 20,000 files open
ROUNDS = 2 if QUICK else 5
CALM_S = 5  # between two changes: those far back are told at most every 4 s


def slab() -> int:
    return int(Path("/proc/meminfo").read_text().split("Slab:")[1].split()[0]) * 1024


def buffers() -> int:
    tcp = next(line for line in Path("/proc/net/sockstat").read_text().splitlines() if line.startswith("TCP:"))
    return int(tcp.split("mem ")[1]) * resource.getpagesize()


def measure() -> None:
    workers = -(-STREAMS // EACH)
    n = workers * EACH
    with running({QUEUE: {"capacity": 1} | CALM}, workers=workers,
                 settings={"http": {"max_connections": EACH + 500, "connections_per_address": 0, "streams_per_address": 0}}) as system:
        programs = system.of("worker")
        crowds = [Crowd(program.http_port) for program in programs]
        try:
            pids = [wait_until(program.children, 10, "the worker has its process")[0] for program in programs]
            progress(f"{n} join")
            for crowd in crowds:  # the first of the first crowd is admitted; all others wait
                crowd.do("join", EACH + 1)
            # All visitors get an event only when the front of the line moves: the others follow the first crowd.
            user, objects, sockets = sum(map(rss, pids)), slab(), buffers()
            progress(f"{n} streams are opened")
            opened = sum(answer[0] for answer in all_at_once(crowds, "open", EACH))
            user, objects, sockets = sum(map(rss, pids)) - user, slab() - objects, buffers() - sockets
            emit("crowd", "memory", "worker, user space", user / n, "bytes a stream", "lower", n=n)
            emit("crowd", "memory", "kernel", (objects / 2 + sockets) / n, "bytes a stream", "lower", n=n,
                 note="objects of both ends / 2, and socket buffers")
            emit("crowd", "memory", "in all", (user + objects / 2 + sockets) / n, "bytes a stream", "lower", n=n,
                 target=8192, **({"wrong": int(n - opened)} if opened < n else {}))
            all_at_once(crowds, "quiet", CALM_S)
            before = sum(commands(system).values())
            all_at_once(crowds, "quiet", CALM_S)
            rate = (sum(commands(system).values()) - before) / CALM_S
            emit("crowd", "Redis commands while they listen", "per waiting visitor", rate / n, "per second", "lower",
                 n=n, note=f"{rate:.0f} a second in total, for any number of streams")
            for turn in range(ROUNDS):
                progress(f"round {turn + 1} of {ROUNDS}")
                used = cpu_s(pids)
                for crowd in crowds[1:]:
                    crowd.say("watch")
                first = crowds[0].do("leave")
                answers = [first] + [crowd.hear() for crowd in crowds[1:]]
                used = cpu_s(pids) - used
                lost = int(sum(answer[0] for answer in answers))
                emit("crowd", "all hear the new place", "the last", max(answer[-1] for answer in answers), "ms",
                     "lower", n=n, target=1000, **({"wrong": lost} if lost else {}))
                emit("crowd", "all hear the new place", "half of them",
                     sorted(answer[1] for answer in answers)[len(answers) // 2], "ms", "lower", n=n)
                emit("crowd", "processor time of a step", "workers", used / n * 1e6, "us a stream", "lower", n=n)
                all_at_once(crowds, "quiet", CALM_S)
        finally:
            for crowd in crowds:
                crowd.end()


limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
if limit < EACH + 600:
    skip("crowd", "memory", "in all", f"one process may have only {limit} files open here (ulimit -Hn)", STREAMS)
else:
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    measure()
