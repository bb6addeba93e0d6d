# SPDX-License-Identifier: Apache-2.0
"""A complete Tellerline for a measurement: the release build of the real programs on a private Redis."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("BENCH_BIN", TOP / "build" / "bench" / "bin"))
QUICK = os.environ.get("BENCH_QUICK") == "1"
SIZES = [int(n) for n in os.environ.get("BENCH_SIZES", "10000,100000,1000000").split(",")]
QUEUE = "bench"
BATCH = 1000  # joins in one ingest entry
TICKS = os.sysconf("SC_CLK_TCK")

os.environ["TELLERLINE_TEST_BIN"] = str(BIN)
sys.path.insert(0, str(TOP / "tests" / "system"))
from redis_cluster import RedisCluster  # noqa: E402
from redis_server import RedisServer  # noqa: E402
from tellerline import CALM, Program, System, free_port  # noqa: E402,F401  (finds the programs by the environment)
from waiting import wait_until  # noqa: E402,F401

PATIENCE = 120.0


def emit(group: str, metric: str, name: str, value: float, unit: str, better: str, n: int = 0, **more: Any) -> None:
    """One figure, as bench/run reads it."""
    print(json.dumps({"group": group, "metric": metric, "name": name, "n": n, "value": value, "unit": unit,
                      "better": better, "ours": True} | more), flush=True)


def skip(group: str, metric: str, name: str, why: str, n: int = 0) -> None:
    print(json.dumps({"group": group, "metric": metric, "name": name, "n": n, "skip": why}), flush=True)


def progress(text: str) -> None:
    print(json.dumps({"progress": text}), flush=True)


@contextmanager
def running(queues: dict[str, dict[str, Any]], workers: int = 1, dispatchers: int = 1, admitters: int = 1,
            expirers: int = 1, archivers: int = 0, settings: dict[str, Any] | None = None,
            prepare: Callable[[System], None] | None = None) -> Iterator[System]:
    """Without persistence: what is measured is the programs, not the disk."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    counts = {"worker": workers, "dispatcher": dispatchers, "admitter": admitters, "expirer": expirers,
              "archiver": archivers}
    system = System(queues, counts, settings or {}, {"appendonly": "no", "save": '""'})
    if prepare is not None:
        prepare(system)
    try:
        system.start()
        yield system
    finally:
        system.close(keep=False)


@contextmanager
def running_on(n: int, queues: dict[str, dict[str, Any]]) -> Iterator[tuple[System, list[RedisServer]]]:
    """The same on n masters of a cluster, 0: on a Redis without one. Yields also the servers."""
    if n == 0:
        with running(queues) as system:
            yield system, [system.redis]
        return
    cluster = RedisCluster(n, 0, {"appendonly": "no"})
    try:
        cluster.start()
        with running(queues, prepare=cluster.prepare) as system:
            yield system, cluster.masters()
    finally:
        cluster.end()


# ---- filling the line ----

def batches(n: int, first: int = 0) -> Iterator[bytes]:
    """Ingest entries of n joins by visitors numbered from `first`, as a worker named `fill` packs them. They stand in
    the second lane, which is the default one."""
    for number, start in enumerate(range(first, first + n, BATCH), start=first // BATCH + 1):
        count = min(BATCH, first + n - start)
        joins = b"".join(b"\x93\x01\xb6%022d\x01" % i for i in range(start, start + count))
        yield (b"\x96\x01\xa4fill\xcf" + number.to_bytes(8, "big") + b"\0\0\xdc" + count.to_bytes(2, "big") + joins)


def fill(system: System, n: int, queue: str = QUEUE, first: int = 0) -> None:
    """n joins through the ingest stream and the real dispatcher; returns when all are in the line."""
    key, state = system.key(queue, "ingest"), system.key(queue, "state")
    before = int(system.store.command("HGET", state, "joined"))
    sent = 0
    for entry in batches(n, first):
        system.store.send("XADD", key, "*", "d", entry)
        sent += 1
        if sent == 50:
            for _ in range(sent):
                system.store.read()
            sent = 0
    for _ in range(sent):
        system.store.read()
    wait_until(lambda: int(system.store.command("HGET", state, "joined")) - before >= n, PATIENCE,
               f"{n} joins are applied")


# ---- what it costs ----

def processes(program: Program) -> list[int]:
    return [program.pid, *program.children()]


def cpu_s(pids: list[int]) -> float:
    """Seconds of processor time that these processes used so far."""
    total = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def rss(pid: int) -> int:
    """Bytes of memory in use by a process."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) * 1024


def pin(pids: list[int], core: int) -> None:
    """Keeps all threads of these processes on one core; does nothing where there is only one."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(task.name), {cores[core % len(cores)]})


def redis_pid(system: System) -> int:
    info = system.store.command("INFO", "server")
    return int(info.split("process_id:")[1].split()[0])


def redis_info(system: System, section: str) -> dict[str, str]:
    lines = system.store.command("INFO", section).splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def commands(system: System) -> dict[str, int]:
    """How often each command was called, from clients and from functions."""
    found = redis_info(system, "commandstats")
    return {name.removeprefix("cmdstat_"): int(text.split(",")[0].removeprefix("calls="))
            for name, text in found.items() if not name.endswith("info")}


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


# ---- the crowd ----

class Crowd:
    """sse_bench and its commands, which bench/sse_bench.c lists."""

    def __init__(self, port: int) -> None:
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", str(BIN / "sse_bench"), str(port), QUEUE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, *words: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def hear(self) -> list[float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the crowd is gone")
        return [float(word) for word in line.split() if word != "closed"]

    def do(self, *words: object) -> list[float]:
        self.say(*words)
        return self.hear()

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def all_at_once(crowds: list[Crowd], *words: object) -> list[list[float]]:
    """Sends the same command to every crowd at the same time. Returns all answers."""
    answers: list[list[float]] = [[] for _ in crowds]

    def ask(i: int) -> None:
        answers[i] = crowds[i].do(*words)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(crowds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def elapsed(since: float) -> float:
    return time.monotonic() - since
