"""A crowd of 10,000 that waits and polls costs Redis nothing per poll: MONITOR is the witness."""
from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter

import pytest

from http_client import AsyncConnection, share_out
from redis_server import RedisError, RedisGone
from tellerline import CALM, PATIENCE, System
from waiting import wait_until

CROWD = 10_000
#: Presence is written every waiting_ttl / 8: four seconds; a window holds one at least.
WINDOW = 6.0
QUEUE = CALM | {"capacity": 1, "waiting_ttl": "32s"}

_LINE = re.compile(r'^(\d+\.\d+) \[\d+ (\S+)\] "([^"]+)"')


class Monitor(threading.Thread):
    """Counts what Redis is asked to do, by command; what scripts do inside is counted apart."""

    def __init__(self, system: System) -> None:
        super().__init__(daemon=True)
        self._redis = system.redis.connect(timeout=60)
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

    def window(self, began: float, ended: float) -> Counter[str]:
        return Counter(name for at, name in list(self._seen) if began <= at < ended)

    def stop(self) -> None:
        self._redis.close()
        self.join(10)


@pytest.mark.alone
@pytest.mark.long(seconds=15)
def test_polls_cost_redis_nothing(start, figure):
    system = start({"fair": QUEUE})
    port = system.of("worker")[0].http_port
    tickets = asyncio.run(join_crowd(port))
    wait_until(lambda: system.waiting("fair") == CROWD - 1, PATIENCE, "everybody waits")
    asyncio.run(poll(port, tickets, 0))

    monitor = Monitor(system)
    monitor.start()
    quiet = watch(monitor, lambda: wait_out(WINDOW))
    polls = 0

    def slowly() -> None:
        nonlocal polls
        polls = asyncio.run(poll(port, tickets, WINDOW))

    busy = watch(monitor, slowly)
    monitor.stop()
    assert system.waiting("fair") == CROWD - 1, "somebody was dropped meanwhile"
    assert polls >= 3000, f"only {polls} polls"

    names = sorted({name for name in quiet | busy if not name.startswith("lua:")})
    figure(f"{CROWD} waiting; Redis commands in {WINDOW:g} s without polls and with {polls}: "
           + ", ".join(f"{name} {quiet[name]}/{busy[name]}" for name in names))
    for name in names:
        # What is done by the clock may fall into a window or not, some commands in a row, and timers drift. Against
        # a command per poll, or per a hundred polls, that is nothing.
        allowed = quiet[name] * 1.5 + 10 + polls / 1000
        assert busy[name] <= allowed, f"{name}: {quiet[name]} without, {busy[name]} with {polls} polls"
    inside = {True: sum(busy.values()), False: sum(quiet.values())}
    assert inside[True] - inside[False] < polls / 10, (quiet, busy)


def watch(monitor: Monitor, act) -> Counter[str]:
    """The commands between the start and the end of `act`, by Redis's own time stamps."""
    began = time.time()
    act()
    return monitor.window(began, began + WINDOW)


def wait_out(seconds: float) -> None:
    """Nothing is to happen for a while; that while is the measurement."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= end, seconds + 1, "the window is over", every=0.05)


async def join_crowd(port: int) -> list[str]:
    tickets: list[str] = []

    async def join(connection: AsyncConnection, _: int) -> None:
        answer = await connection.request("POST", "/v1/queues/fair/join")
        assert answer.status == 200, answer.body
        tickets.append(answer.json["ticket"])

    await share_out(port, 128, range(CROWD), join)
    return tickets


async def poll(port: int, tickets: list[str], seconds: float) -> int:
    """Everybody asks once, and again and again until the time is over; how often in that time."""
    end = time.monotonic() + seconds
    count = 0

    def rounds():
        yield from tickets
        while time.monotonic() < end:
            for ticket in tickets:
                if time.monotonic() >= end:
                    return
                yield ticket

    async def ask(connection: AsyncConnection, ticket: str) -> None:
        nonlocal count
        answer = await connection.request("GET", "/v1/queues/fair/status", ticket)
        assert answer.status == 200 and answer.json["status"] in ("waiting", "active"), answer.body
        if time.monotonic() < end:
            count += 1

    await share_out(port, 64, rounds(), ask)
    return count
