# SPDX-License-Identifier: Apache-2.0
"""A crowd of 1,000 that waits and polls costs Redis nothing per poll. MONITOR shows it."""
from __future__ import annotations

import asyncio
import itertools
import re
import threading
import time
from collections import Counter

import pytest

from http_client import AsyncConnection, share_out
from redis_server import RedisError, RedisGone
from tellerline import CALM, PATIENCE, System
from waiting import patient, wait_until

CROWD = 1_000
#: Presence is written every waiting_ttl / 8, which is eight seconds. A window holds at least one write.
WINDOW = 9.0
#: So many polls. A busy machine needs a longer window for them.
POLLS = 3000
QUEUE = CALM | {"capacity": 1, "waiting_ttl": "64s"}

_LINE = re.compile(r'^(\d+\.\d+) \[\d+ (\S+)\] "([^"]+)"')


class Monitor(threading.Thread):
    """Counts the commands that Redis receives, by name. Commands inside scripts are counted separately."""

    def __init__(self, system: System) -> None:
        super().__init__(daemon=True)
        self._redis = system.redis.connect(timeout=patient(60))
        self._store = system.store
        self._seen: list[tuple[float, str]] = []

    def run(self) -> None:
        try:
            for line in self._redis.monitor():
                match = _LINE.match(line)
                if match:
                    inside = "lua:" if match[2] == "lua" else ""
                    self._seen.append((float(match[1]), inside + match[3].upper()))
        except (RedisGone, RedisError, ValueError, OSError):
            pass  # closed by stop()

    def _marks(self) -> int:
        return sum(name == "ECHO" for _, name in list(self._seen))

    def window(self, began: float, ended: float) -> Counter[str]:
        """The commands of that time. MONITOR reports in order, so all are known once it reports a later mark."""
        before = self._marks()
        self._store.command("ECHO", "mark")
        wait_until(lambda: self._marks() > before, PATIENCE, "MONITOR has reported everything")
        return Counter(name for at, name in list(self._seen) if began <= at < ended)

    def stop(self) -> None:
        self._redis.close()
        self.join(10)


@pytest.mark.long(seconds=25)
def test_polls_cost_redis_nothing(start, figure):
    system = start({"fair": QUEUE})
    port = system.of("worker")[0].http_port
    tickets = asyncio.run(join_crowd(port))
    wait_until(lambda: system.waiting("fair") == CROWD - 1, PATIENCE, "all visitors wait")
    asyncio.run(poll(port, tickets, CROWD))

    monitor = Monitor(system)
    monitor.start()

    def all_of_them() -> None:
        end = time.monotonic() + WINDOW
        asyncio.run(poll(port, tickets, POLLS))
        wait_out(end - time.monotonic())

    busy, seconds = watch(monitor, all_of_them)
    quiet, _ = watch(monitor, lambda: wait_out(seconds))
    monitor.stop()
    assert system.waiting("fair") == CROWD - 1, "a visitor was dropped meanwhile"
    names = sorted({name for name in quiet | busy if not name.startswith("lua:")})
    figure(f"{CROWD} waiting; Redis commands in {seconds:.1f} s without polls and with {POLLS}: "
           + ", ".join(f"{name} {quiet[name]}/{busy[name]}" for name in names))
    for name in names:
        # Periodic work may fall into a window or not, a few commands at a time, and timers drift. That is negligible
        # against one command per poll, or per hundred polls.
        allowed = quiet[name] * 1.5 + 10 + POLLS / 1000
        assert busy[name] <= allowed, f"{name}: {quiet[name]} without, {busy[name]} with {POLLS} polls"
    inside = {True: sum(busy.values()), False: sum(quiet.values())}
    assert inside[True] - inside[False] < POLLS / 10, (quiet, busy)


def watch(monitor: Monitor, act) -> tuple[Counter[str], float]:
    """The commands between the start and the end of `act`, by Redis's time stamps, and the seconds it took."""
    began = time.time()
    act()
    ended = time.time()
    return monitor.window(began, ended), ended - began


def wait_out(seconds: float) -> None:
    """Waits without polls. This time is the baseline of the measurement."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= end, max(seconds, 0) + PATIENCE, "the window is over", every=0.05)


async def join_crowd(port: int) -> list[str]:
    tickets: list[str] = []

    async def join(connection: AsyncConnection, _: int) -> None:
        answer = await connection.request("POST", "/v1/queues/fair/join")
        assert answer.status == 200, answer.body
        tickets.append(answer.json["ticket"])

    await share_out(port, 128, range(CROWD), join)
    return tickets


async def poll(port: int, tickets: list[str], polls: int) -> None:
    """So many polls of visitors, one after the other."""
    async def ask(connection: AsyncConnection, ticket: str) -> None:
        answer = await connection.request("GET", "/v1/queues/fair/status", ticket)
        assert answer.status == 200 and answer.json["status"] in ("waiting", "active"), answer.body

    await share_out(port, 64, itertools.islice(itertools.cycle(tickets), polls), ask)
