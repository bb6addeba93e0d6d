# SPDX-License-Identifier: Apache-2.0
"""The five busiest of fifteen real days at a bank's counter, replayed with one, two and three counters at once.

Each day and capacity has its own queue. Customers join at their (accelerated) time, whatever the line does, and
complete after their real service time. Two things must hold for each queue:

- the order of admission is first come, first served;
- each wait agrees with an independent simulation of the same G/G/c line (bank.simulate).

The simulation uses the real send times: the moment of each join, and the time from each admission to its complete. So
delays of the test's own timers do not count. What remains is the time the system takes from an arrival, or a freed
counter, to the admission: between 0 and some delay. Start times in a G/G/c line only grow with arrival and service
times, so each start must lie between the simulation without delay and the simulation with that delay added to every
arrival and every service. The delay that is needed stays far below the periods of the programs' timers (seconds), by
which a freed counter would be found in the end: so each admission follows its cause. All fifteen days are simulated by
`tellerline plan` (test_plan.py).
"""
from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass

import pytest

import bank
import wire
from http_client import AsyncConnection
from metronome import Metronome
from redis_server import Redis, RedisGone
from tellerline import CALM, System
from waiting import patient

REPLAY_SECONDS = 15.0
#: Seconds from cause to admission that are allowed on a machine that is not slow; some ms are usual. The wake-up delay
#: that the machine had meanwhile (metronome.py) comes on top, for each program on the path.
DELAY = 0.5
#: The largest delay to search for.
LONGEST = 20.0
#: Processes that wake one after the other: worker, Redis, dispatcher, Redis, admitter, Redis.
WAKES = 6
#: Redis records admissions in whole milliseconds, and two clock readings are compared.
ROUNDING = 0.003
CAPACITIES = (1, 2, 3)


@dataclass
class Turn:
    """What happened to one customer. Times in seconds of the machine's clock."""
    sent: float
    place: int = 0
    answered: float = 0.0
    admitted: float = 0.0
    done: float = 0.0


class Admissions(threading.Thread):
    """Follows the events of all queues and reports the time of each admission."""

    def __init__(self, system: System, queues: list[str], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(daemon=True)
        self._redis: Redis = system.redis.connect(timeout=60)
        self._last = {system.key(queue, "events"): "0-0" for queue in queues}
        self._queue_of = {system.key(queue, "events"): queue for queue in queues}
        self._loop = loop
        self._told: dict[tuple[str, int], asyncio.Future[float]] = {}
        self.order: dict[str, list[int]] = {queue: [] for queue in queues}

    def of(self, queue: str, place: int) -> asyncio.Future[float]:
        """The time this place was admitted. Used on the loop's thread only."""
        return self._told.setdefault((queue, place), self._loop.create_future())

    def run(self) -> None:
        try:
            while True:
                found = self._redis.command("XREAD", "BLOCK", 200, "STREAMS", *self._last,
                                            *self._last.values())
                for stream, entries in found or []:
                    self._last[stream] = entries[-1][0]
                    for entry_id, fields in entries:
                        step = wire.step_of(entry_id, fields[1])
                        self._loop.call_soon_threadsafe(self._tell, self._queue_of[stream], step)
        except (RedisGone, ValueError, OSError, RuntimeError):
            pass  # closed by stop(), or the loop is over

    def _tell(self, queue: str, step: wire.Step) -> None:
        for place in step.admitted:
            self.order[queue].append(place)
            self.of(queue, place).set_result(step.time_ms / 1000)

    def stop(self) -> None:
        self._redis.close()
        self.join(10)


class Replay:
    """One system with one queue per day and capacity, all at once."""

    def __init__(self, system: System, days: dict[str, list[bank.Customer]], speed: float) -> None:
        self._days, self._speed = days, speed
        self._port = system.of("worker")[0].http_port
        self._system = system
        self._idle: list[AsyncConnection] = []
        self.turns: dict[str, list[Turn]] = {}
        self.order: dict[str, list[int]] = {}

    async def run(self) -> None:
        queues = [name(day, capacity) for day in self._days for capacity in CAPACITIES]
        self._admissions = Admissions(self._system, queues, asyncio.get_running_loop())
        self._admissions.start()
        customers = []
        for i, queue in enumerate(queues):
            day = self._days[queue.split(".")[0]]
            # Days begin at slightly different times, so that the first customers do not all come at once.
            zero = time.time() + 0.5 + 0.02 * i
            self.turns[queue] = []
            for customer in day:
                at = zero + (customer.arrival - day[0].arrival) / self._speed
                customers.append(self._visit(queue, at, customer.service / self._speed))
        try:
            await asyncio.gather(*customers)
        finally:
            self._admissions.stop()
            for connection in self._idle:
                connection.close()
        self.order = self._admissions.order

    async def _visit(self, queue: str, at: float, service: float) -> None:
        await asyncio.sleep(max(0.0, at - time.time()))
        turn = Turn(sent=time.time())
        self.turns[queue].append(turn)
        answer = await self._post(queue, "join", None)
        assert answer.status == 200, answer.body
        turn.answered = time.time()
        ticket = answer.json["ticket"]
        turn.place = wire.read_ticket(ticket).place
        turn.admitted = await asyncio.wait_for(self._admissions.of(queue, turn.place),
                                               patient(REPLAY_SECONDS * 3))
        await asyncio.sleep(max(0.0, turn.admitted + service - time.time()))
        turn.done = time.time()
        answer = await self._post(queue, "complete", ticket)
        assert answer.status == 200 and answer.json["status"] == "completed", answer.body

    async def _post(self, queue: str, verb: str, ticket: str | None):
        connection = self._idle.pop() if self._idle else AsyncConnection(self._port)
        answer = await connection.request("POST", f"/v1/queues/{queue}/{verb}", ticket)
        self._idle.append(connection)
        return answer


def name(day: str, capacity: int) -> str:
    return f"{day}.c{capacity}"


def check_order(queue: str, turns: list[Turn], order: list[int]) -> None:
    """First come, first served: by place, and by the times that the customers observed."""
    assert order == sorted(turn.place for turn in turns), f"{queue}: not in the order of the places"
    by_place = sorted(turns, key=lambda turn: turn.place)
    for earlier, later in zip(by_place, by_place[1:]):
        assert earlier.admitted <= later.admitted, f"{queue}: {later} before {earlier}"
    # A customer who was told their place before another one asked is in front of that one.
    latest_sent = 0.0
    for turn in by_place:
        assert turn.answered >= latest_sent, f"{queue}: {turn} is behind a customer who came later"
        latest_sent = max(latest_sent, turn.sent)


def within(turns: list[Turn], capacity: int, delay: float) -> bool:
    """Whether all waits agree with the simulation when each step may take up to `delay`."""
    arrivals = [turn.sent for turn in turns]
    services = [turn.done - turn.admitted for turn in turns]
    soonest = bank.simulate(arrivals, services, capacity)
    latest = bank.simulate([at + delay for at in arrivals],
                           [service + delay for service in services], capacity)
    slack = ROUNDING * len(turns)  # may add up over a day without a pause
    return all(low - slack <= turn.admitted <= high + ROUNDING
               for low, turn, high in zip(soonest, turns, latest))


def delay_needed(turns: list[Turn], capacity: int) -> float:
    """The smallest delay per step, in seconds, with which the simulation agrees."""
    low, high = 0.0, LONGEST
    while high - low > 0.0005:
        middle = (low + high) / 2
        low, high = (low, middle) if within(turns, capacity, middle) else (middle, high)
    return high


def waited(turns: list[Turn]) -> float:
    return sum(turn.admitted - turn.sent for turn in turns)


def test_simulation_itself():
    """Computed by hand: three arrive at once with one counter, then with two, then after an idle time."""
    assert bank.simulate([0, 0, 0], [2, 2, 2], 1) == [0, 2, 4]
    assert bank.simulate([0, 0, 0], [2, 3, 2], 2) == [0, 0, 2]
    assert bank.simulate([0, 10, 11], [2, 5, 1], 1) == [0, 10, 15]
    turns = [Turn(0.0, 1, 0, 0.0, 2.0), Turn(0.0, 2, 0, 3.0, 3.5)]
    assert within(turns, 1, 0.6) and not within(turns, 1, 0.4)
    turns[1].admitted, turns[1].done = 1.5, 2.0
    assert not within(turns, 1, 1.0), "started before the counter was free"


@pytest.mark.long(seconds=20)
def test_bank_days(start, figure):
    days = dict(sorted(bank.days().items(), key=lambda day: len(day[1]))[-5:])
    assert len(days) == 5 and sum(map(len, days.values())) > 200
    speed = max(day[-1].arrival - day[0].arrival for day in days.values()) / REPLAY_SECONDS
    queues = {name(day, capacity): {"capacity": capacity} | CALM for day in days for capacity in CAPACITIES}
    # Without persistence: the test does not measure the disk.
    system = start(queues, settings={"retention": {"events_entries": 100000}}, redis={"appendonly": "no"})
    replay = Replay(system, days, speed)
    metronome = Metronome()
    try:
        asyncio.run(replay.run())
    finally:
        late = metronome.stop()
    figure(f"the machine woke a sleeper up to {late * 1000:.1f} ms late")
    for queue, turns in replay.turns.items():
        turns.sort(key=lambda turn: turn.place)
        check_order(queue, turns, replay.order[queue])
    for capacity in CAPACITIES:
        turns_of = {day: replay.turns[name(day, capacity)] for day in days}
        needed = {day: delay_needed(turns, capacity) for day, turns in turns_of.items()}
        slowest = max(needed, key=lambda day: needed[day])
        total = sum(waited(turns) for turns in turns_of.values())
        figure(f"{len(days)} days at {speed:.0f} times, capacity {capacity}: {total:.1f} s waited in "
               f"all; agrees with the simulation within {needed[slowest] * 1000:.0f} ms per step (day {slowest})")
        assert needed[slowest] <= patient(DELAY) + WAKES * late, (capacity, needed, late)
