# SPDX-License-Identifier: Apache-2.0
"""Thousands of visitors who use a queue as docs/integrators/client-guide.md describes, and record what they saw.

Each joins, keeps the ticket, watches the place (event stream, held request or poll), is admitted, calls `check`, stays
for a moment and completes. Some leave, some close the tab and come back with the ticket, some have a bad network. One
seed determines them all. They run in one process on one thread (asyncio), while the test changes the system.
"""
from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import engine  # noqa: F401 - knows where the system tests' modules are
import wire
from history import History, Stay
from http_client import Answer, AsyncConnection
from waiting import patient

#: The errors of a connection when a program on the path was stopped or killed.
TROUBLE = (OSError, EOFError, ValueError, asyncio.LimitOverrunError, TimeoutError)
#: Answers of a gateway or a worker that mean: retry later.
LATER = (502, 503, 504)
ANSWER_TIMEOUT = patient(15.0)
HOLD = "10s"
#: The guide's growing, random pause of 1 to 30 s, with a lower limit here to keep the tests short.
PAUSE_FROM, PAUSE_TO = 1.0, 5.0
#: How long `check` may refuse an admitted visitor: there are several workers, and one may just have started.
DOOR_PATIENCE = patient(20.0)


@dataclass(frozen=True)
class CrowdOptions:
    port: int
    queue: str
    visitors: int = 2000         # at least this many...
    at_once: int = 800           # ...of whom this many arrive within the first seconds
    per_second: float = 30.0     # the others
    dwell: float = 2.0           # mean seconds inside
    seed: int = 1
    most: int = 1500             # no arrivals while this many are present: a proxy on the path has its limits, too
    seconds: float = 240.0       # it is an error if a visitor is still there after this time (see waiting.patient)


@dataclass(frozen=True)
class Plan:
    """The behaviour of one visitor."""
    way: str                      # stream, hold or poll
    dwell: float
    leaves_after: float | None    # gives up the place after this time in the line
    tries_the_door: bool          # while still waiting
    spells: tuple[float, ...]     # watches for this long, then loses the connection
    reload: bool                  # comes back like a reopened page: joins with the ticket

    @staticmethod
    def draw(chance: random.Random, options: CrowdOptions) -> "Plan":
        way = chance.choices(("stream", "hold", "poll"), (55, 15, 30))[0]
        leaves = chance.uniform(1, 20) if chance.random() < 0.08 else None
        kind = chance.choices(("steady", "bad network", "closes the tab"), (80, 10, 10))[0]
        spells: tuple[float, ...] = ()
        if kind == "bad network":
            spells = tuple(chance.uniform(0.5, 6) for _ in range(6))
        elif kind == "closes the tab":
            spells = tuple(chance.uniform(1, 10) for _ in range(2))
        return Plan(way, chance.uniform(0.5, 1.5) * options.dwell, leaves, chance.random() < 0.1, spells,
                    kind == "closes the tab")


@dataclass
class Tally:
    """What the whole crowd experienced."""
    counts: Counter[str] = field(default_factory=Counter)        # other occurrences
    troubles: Counter[str] = field(default_factory=Counter)      # refusals and broken connections, each retried
    joined_at: Counter[str] = field(default_factory=Counter)     # by worker, if a gateway names it
    streamed_from: Counter[str] = field(default_factory=Counter)  # event streams, likewise
    first_place_after: list[float] = field(default_factory=list)  # seconds from the first attempt to a place
    longest_stall: float = 0.0   # worst delay of this process: its readings are older by up to this much
    slowest_answer: float = 0.0  # of a request served from a worker's memory: the delay of the other programs


def said_by(answer: Answer) -> str:
    """A short name of a refusal: a worker's with its problem type, or the gateway's own."""
    if answer.headers.get("content-type", "").startswith("application/problem+json"):
        return f"{answer.status} {answer.json['type']}"
    return f"{answer.status} of the gateway"


class EventReader:
    """One event stream. If the answer is not an event stream, `stream` is False and `answer` holds it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.answer = Answer(0, {}, b"")
        self.stream = False

    async def open(self, path: str, ticket: str) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                           f"Authorization: Bearer {ticket}\r\n\r\n".encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
        status = int(head[0].split(" ")[1])
        self.stream = headers.get("content-type", "").startswith("text/event-stream")
        body = b"" if self.stream else await self._reader.readexactly(int(headers.get("content-length", "0")))
        self.answer = Answer(status, headers, body)
        self._chunked = "chunked" in headers.get("transfer-encoding", "")

    async def next(self) -> tuple[str, str]:
        """The next (event, data); `retry` counts as an event. EOFError at the end of the stream."""
        kind, data = "", ""
        while True:
            line = (await self._line()).decode()
            name, _, value = line.partition(":")
            if line == "" and kind:
                return kind, data
            if name == "event":
                kind = value.strip()
            elif name == "data":
                data += value.strip()
            elif name == "retry":
                return "retry", value.strip()

    async def _line(self) -> bytes:
        line = await self._reader.readuntil(b"\n")
        return line.rstrip(b"\r\n")

    def cut(self) -> None:
        """Aborts the connection, as if the network failed."""
        with suppress(AttributeError):
            self._writer.transport.abort()


class Visitor:
    """One visitor, from the first attempt to the end."""

    def __init__(self, number: int, crowd: "Crowd") -> None:
        self._random = random.Random(f"{crowd.options.seed}/{number}")
        self._plan = Plan.draw(self._random, crowd.options)
        self._options, self._history, self._tally = crowd.options, crowd.history, crowd.tally
        self._path = f"/v1/queues/{crowd.options.queue}"
        self._connection = AsyncConnection(crowd.options.port)
        self._events: EventReader | None = None
        self._streams = 0
        self._ticket = ""
        self._stay: Stay | None = None

    @property
    def stay(self) -> Stay:
        assert self._stay is not None, "no place yet"
        return self._stay

    async def live(self) -> None:
        try:
            await self._join()
            try:
                async with asyncio.timeout(self._plan.leaves_after):
                    await self._wait_for_turn()
            except TimeoutError:
                self._cut()
                await self._give_back("leave", "left")
                return
            await self._be_inside()
        finally:
            self._cut()

    # ---- joining ----

    async def _join(self) -> None:
        """Joins until there is a place. An unanswered join may have worked: its place has no client, and the visitor
        joins again."""
        came, tries = time.time(), 0
        while True:
            sent = time.time()
            try:
                answer = await self._request("POST", "join", "")
            except TROUBLE:
                self._trouble("broken join")
                answer = None
            if answer is not None and answer.status in (200, 202):
                break
            self._history.unanswered()
            if answer is not None:
                self._trouble(f"join {said_by(answer)}")
            if answer is not None and answer.status not in LATER:
                raise AssertionError(f"join: {answer.status} {answer.body[:200]!r}")
            tries += 1
            await self._back_off(tries, answer)
        self._tally.joined_at[answer.headers.get("x-served-by", "?")] += 1
        self._ticket = answer.json["ticket"]
        if answer.status == 202:
            self._tally.counts["pending"] += 1
            answer = await self._numbered()
        received = time.time()
        self._stay = self._history.acknowledged(self._ticket, sent, received)
        self._tally.first_place_after.append(received - came)
        self._note(answer.json, sent, received)

    async def _numbered(self) -> Answer:
        while True:
            answer = await self._ask("GET", "status")
            if answer.status == 200:
                self._ticket = answer.json.get("ticket", self._ticket)
                return answer
            if answer.status != 202:
                raise AssertionError(f"status of a pending place: {answer.status} {answer.body[:200]!r}")
            await asyncio.sleep(answer.json["poll_after_ms"] / 1000)

    # ---- waiting ----

    async def _wait_for_turn(self) -> None:
        spells = list(self._plan.spells)
        if self._plan.tries_the_door:
            await self._try_the_door()
        while self.stay.first_active is None:
            try:
                async with asyncio.timeout(spells.pop() if spells else None):
                    await self._watch()
            except TimeoutError:
                self._cut()
                self._tally.counts["cut off"] += 1
                await asyncio.sleep(self._random.uniform(0.2, 3))
                if self._plan.reload:
                    await self._join_again()

    async def _join_again(self) -> None:
        """If the visitor gives up meanwhile, the store may get the LEAVE, sent through another worker, before the JOIN: then
        that takes a place of which no client knows."""
        try:
            await self._view("POST", "join")
        except asyncio.CancelledError:
            self._history.unanswered()
            raise

    async def _watch(self) -> None:
        """Waits until active."""
        while self.stay.first_active is None:
            if self._plan.way == "stream":
                await self._listen()
            elif self._plan.way == "hold":
                await self._view("GET", f"status?wait={HOLD}")
            else:
                view = await self._view("GET", "status")
                if view.get("status") == "waiting":
                    await asyncio.sleep(view["poll_after_ms"] / 1000)

    async def _listen(self) -> None:
        """Follows one event stream to its end or until active. Then pauses as the server asked, or by default."""
        tries, retry_ms = 0, None
        self._connection.close()  # one at a time: the engine's proxy uses six descriptors for each
        while self.stay.first_active is None:
            self._events = EventReader(self._options.port)
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT):
                    await self._events.open(f"{self._path}/events", self._ticket)
                if self._events.stream:
                    tries = 0
                    retry_ms = await self._read_events(self._events)
                elif self._events.answer.status == 200:
                    self._note(self._events.answer.json, time.time(), time.time())
                elif self._events.answer.status not in LATER:
                    self._odd("events", self._events.answer)
                else:
                    self._trouble(f"events {said_by(self._events.answer)}")
            except TROUBLE:
                self._trouble("broken events")
            self._events.cut()
            if self.stay.first_active is None:
                if retry_ms is not None:
                    await asyncio.sleep(retry_ms / 1000)
                    retry_ms = None
                else:
                    tries += 1
                    await self._back_off(tries, self._events.answer)

    async def _read_events(self, events: EventReader) -> float | None:
        """Records the events. Returns the pause that the server asked for, at the end of the stream."""
        self._streams += 1
        self._tally.counts["streams"] += 1
        self._tally.streamed_from[events.answer.headers.get("x-served-by", "?")] += 1
        retry_ms = None
        try:
            while self.stay.first_active is None:
                kind, data = await events.next()
                now = time.time()
                if kind == "retry":
                    retry_ms = float(data)
                elif kind in ("position", "admitted", "ended"):
                    self._note(json.loads(data), now, now, self._streams)
        except (OSError, EOFError):
            self._tally.counts["streams ended by the server"] += 1
        return retry_ms

    async def _try_the_door(self) -> None:
        """Calls `check` while waiting. Usually the answer is 401."""
        answer = await self._ask("GET", "check")
        if answer.status == 204:
            self.stay.saw_active(time.time())
        elif answer.status != 401:
            self._odd("check", answer)

    # ---- inside ----

    async def _be_inside(self) -> None:
        until = time.time() + DOOR_PATIENCE
        while (answer := await self._ask("GET", "check")).status != 204:
            if answer.status != 401 or time.time() > until:
                self._odd("check of an active visitor", answer)
                break
            self._tally.counts["check refused an active visitor"] += 1
            await asyncio.sleep(0.1)
        await asyncio.sleep(self._plan.dwell)
        await self._give_back("complete", "completed")

    async def _give_back(self, verb: str, end: str) -> None:
        """Leaves or completes. Repeats the request until it is acknowledged."""
        self.stay.gives_back(time.time())
        answer = await self._ask("POST", verb)
        if answer.status == 200 and answer.json["status"] == end:
            self.stay.end = end
        else:
            self._odd(verb, answer)

    # ---- requests ----

    async def _view(self, method: str, what: str) -> dict[str, Any]:
        sent = time.time()
        answer = await self._ask(method, what)
        if answer.status != 200:
            self._odd(what, answer)
            return {}
        self._note(answer.json, sent, time.time())
        return answer.json

    def _note(self, view: dict[str, Any], sent: float, received: float, stream: int = 0) -> None:
        if "ticket" in view:
            self._ticket = view["ticket"]
            self.stay.tickets.add(wire.read_ticket(self._ticket))
        if view["status"] == "waiting":
            self.stay.saw_position(sent, received, view["position"], stream)
        elif view["status"] == "active":
            self.stay.saw_active(received)
        else:
            raise AssertionError(f"place {self.stay.place} ({self.stay.visitor}) is over by itself: {view}")

    async def _ask(self, method: str, what: str) -> Answer:
        """Repeats a request until the answer is not `later`."""
        tries = 0
        while True:
            answer = None
            try:
                answer = await self._request(method, what, self._ticket)
                if answer.status not in LATER:
                    return answer
                self._trouble(said_by(answer))
            except TROUBLE:
                self._trouble("broken")
            if what == "join":  # as above
                self._history.unanswered()
            tries += 1
            await self._back_off(tries, answer)

    async def _request(self, method: str, what: str, ticket: str) -> Answer:
        try:
            sent = time.monotonic()
            async with asyncio.timeout(ANSWER_TIMEOUT):
                answer = await self._connection.request(method, f"{self._path}/{what}", ticket)
            if what in ("status", "check") and answer.status not in LATER:
                self._tally.slowest_answer = max(self._tally.slowest_answer, time.monotonic() - sent)
            return answer
        except BaseException:
            self._connection.close()
            raise

    async def _back_off(self, tries: int, answer: Answer | None) -> None:
        pause = min(PAUSE_TO, PAUSE_FROM * 2 ** (tries - 1)) * self._random.uniform(0.5, 1.0)
        if answer is not None:
            pause = max(pause, float(answer.headers.get("retry-after", 0)))
        await asyncio.sleep(pause)

    def _cut(self) -> None:
        self._connection.close()
        if self._events is not None:
            self._events.cut()

    def _trouble(self, what: str) -> None:
        self._tally.troubles[what] += 1

    def _odd(self, verb: str, answer: Answer) -> None:
        raise AssertionError(f"{verb} of place {self.stay.place} ({self.stay.visitor}): {answer.status} "
                             f"{answer.body[:300]!r}")


class Crowd:
    """The crowd. Runs on its own thread from start() to finish()."""

    def __init__(self, options: CrowdOptions) -> None:
        self.options = options
        self.history, self.tally = History(), Tally()
        self.incarnation = 1  # of the queue, when the crowd comes
        self.came = self.gone = 0
        self._enough = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="crowd", daemon=True)
        self._began = time.monotonic()

    def start(self) -> "Crowd":
        self._thread.start()
        return self

    def finish(self) -> None:
        """Stops arrivals once the requested number is reached. Returns when all visitors are gone."""
        self._enough.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def waits(self) -> int:
        return self.came - self.gone

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def lateness(self) -> float:
        """By how many seconds the recorded observations may be out of date, because the machine was busy."""
        return self.tally.longest_stall + self.tally.slowest_answer

    def summary(self) -> str:
        met = ", ".join(f"{what} {count}" for what, count in sorted((self.tally.counts + self.tally.troubles).items()))
        places = sorted(self.tally.first_place_after) or [0.0]
        return (f"{self.came} visitors in {self.seconds:.0f} s, {len(self.history.stays)} places acknowledged, "
                f"{self.history.joins_without_answer} joins without answer; "
                f"{sum(len(stay.sightings) for stay in self.history.stays)} "
                f"positions seen; a place after {places[len(places) // 2] * 1000:.0f} ms (median), "
                f"{places[-1]:.1f} s (longest); "
                f"met: {met or 'nothing'}; slowest answer from memory {self.tally.slowest_answer:.2f} s, "
                f"this process stalled "
                f"{self.tally.longest_stall:.2f} s at most")

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: B036 - handed to the test, which fails with it
            self._error = error

    async def _live(self) -> None:
        stalls = asyncio.create_task(self._watch_stalls())
        visitors: set[asyncio.Task[None]] = set()
        try:
            async with asyncio.timeout(patient(self.options.seconds)):
                await self._arrive(visitors)
                await asyncio.gather(*visitors)
        except TimeoutError:
            raise AssertionError(f"after {self.options.seconds:g} s, {self.waits()} of {self.came} visitors "
                                 f"are still there: "
                                 f"{self.summary()}") from None
        finally:
            stalls.cancel()
            for visitor in visitors:
                visitor.cancel()
            await asyncio.gather(*visitors, return_exceptions=True)

    async def _arrive(self, visitors: set[asyncio.Task[None]]) -> None:
        chance = random.Random(self.options.seed)
        due = time.monotonic()
        while self.came < self.options.visitors or not self._enough.is_set():
            visitors.add(asyncio.create_task(self._one(self.came)))
            self.came += 1
            rate = 400.0 if self.came < self.options.at_once else self.options.per_second
            due += chance.expovariate(rate)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            while self.waits() >= self.options.most:
                await asyncio.sleep(0.1)
                due = time.monotonic()

    async def _one(self, number: int) -> None:
        try:
            await Visitor(number, self).live()
        except AssertionError as odd:
            self.history.odd(str(odd))
        self.gone += 1

    async def _watch_stalls(self) -> None:
        while True:
            due = time.monotonic() + 0.05
            await asyncio.sleep(0.05)
            self.tally.longest_stall = max(self.tally.longest_stall, time.monotonic() - due)
