#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A simulated crowd for a Tellerline queue: people arrive, wait their turn, lose patience, get in, finish or vanish.

Arrivals are a Poisson process whose rate surges now and then, or as many as keep a line of some length (--line); patience
is exponential; sessions are log-normal. Every person is drawn from one seed and their number, so a run can be repeated.
Needs nothing but Python 3.11.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import shutil
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from urllib.parse import urlsplit

SUMMARY_EVERY = 5.0  # seconds between two summary lines...
UPDATE_EVERY = 1.0   # ...or, on a terminal, between two changes of the only one
LOOK_EVERY = 0.2     # seconds between two looks at the length of the line
SWING = 60.0         # in which the line grows and shrinks once
ANSWER_TIMEOUT = 15.0
WAITS_REMEMBERED = 50  # waits that the median in the summary is over


class Unavailable(Exception):
    """The service cannot answer now. Retry later."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"try again in {retry_after:.1f} s")
        self.retry_after = retry_after


class Refused(Exception):
    """The service has answered that the requested resource does not exist."""


@dataclass
class Answer:
    status: int
    body: dict
    retry_after: float


class Connections:
    """A bounded pool of keep-alive HTTP/1.1 connections to one server."""

    def __init__(self, url: str, limit: int) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise SystemExit(f"crowd: {url}: expected http://host:port")
        self.host, self.port = parts.hostname, parts.port or 80
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.slots = asyncio.Semaphore(limit)

    async def call(self, method: str, path: str, ticket: str | None = None, address: str | None = None) -> Answer:
        """One request. Raises Unavailable when there is no answer, or a 5xx."""
        headers = [f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}"]
        if method == "POST":
            headers.append("Content-Length: 0")
        if ticket:
            headers.append(f"Authorization: Bearer {ticket}")
        if address:
            headers.append(f"X-Forwarded-For: {address}")
        request = "\r\n".join(headers).encode() + b"\r\n\r\n"
        async with self.slots:
            try:
                answer = await asyncio.wait_for(self._exchange(request), ANSWER_TIMEOUT)
            except (OSError, EOFError, asyncio.TimeoutError, ValueError) as trouble:
                raise Unavailable(1.0) from trouble
        if answer.status >= 500:
            raise Unavailable(answer.retry_after)
        return answer

    async def _exchange(self, request: bytes) -> Answer:
        while self.idle:
            connection = self.idle.pop()
            try:
                return await self._exchange_on(connection, request)
            except (ConnectionError, EOFError):
                continue  # the server had closed it meanwhile
        return await self._exchange_on(await asyncio.open_connection(self.host, self.port), request)

    async def _exchange_on(self, connection, request: bytes) -> Answer:
        reader, writer = connection
        reusable = False
        try:
            writer.write(request)
            await writer.drain()
            answer, reusable = await self._read_answer(reader)
            return answer
        finally:
            if reusable:
                self.idle.append(connection)
            else:
                writer.close()

    @staticmethod
    async def _read_answer(reader: asyncio.StreamReader) -> tuple[Answer, bool]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ", 2)[1])
        headers = {}
        for line in head[1:]:
            name, colon, value = line.partition(":")
            if colon:
                headers[name.strip().lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        parsed = json.loads(body) if body.startswith(b"{") else {}
        retry_after = float(headers.get("retry-after", "1"))
        return Answer(status, parsed, retry_after), headers.get("connection", "").lower() != "close"


@dataclass
class Tally:
    """Counters of the crowd's events."""

    arrived: int = 0
    waiting: int = 0
    inside: int = 0
    completed: int = 0
    left: int = 0
    vanished: int = 0
    dropped: int = 0
    refused: int = 0
    waits: deque = field(default_factory=lambda: deque(maxlen=WAITS_REMEMBERED))

    def line(self, elapsed: float) -> str:
        wait = f"{sorted(self.waits)[len(self.waits) // 2]:.0f} s" if self.waits else "-"
        return (f"crowd after {elapsed:4.0f} s: {self.waiting} wait, {self.inside} are in, {self.arrived} came, "
                f"{self.completed} finished, {self.left} lost patience, {self.vanished} vanished, "
                f"{self.dropped} dropped, {self.refused} tries refused; median wait lately {wait}")


class Person:
    """One visitor, from arrival to the end."""

    def __init__(self, number: int, options: argparse.Namespace, net: Connections, tally: Tally) -> None:
        self.random = random.Random(f"{options.seed}:{number}")
        self.options, self.net, self.tally = options, net, tally
        self.path = f"/v1/queues/{options.queue}"
        self.ticket: str | None = None
        # Of the network for tests (RFC 2544): people who share one address look like one who takes many places.
        self.address = f"198.{18 + (number >> 16) % 2}.{number >> 8 & 255}.{number & 255}" if options.forwarded else None

    async def live(self) -> None:
        self.tally.arrived += 1
        self.tally.waiting += 1
        counted_in = "waiting"
        try:
            if not await self.wait_in_line():
                return
            self.tally.waiting -= 1
            self.tally.inside += 1
            counted_in = "inside"
            await self.be_inside()
        finally:
            setattr(self.tally, counted_in, getattr(self.tally, counted_in) - 1)

    async def call(self, method: str, what: str) -> Answer:
        """Repeats a request until it is answered, with a growing pause while the service is unavailable."""
        pause = 0.5
        while True:
            try:
                return await self.net.call(method, f"{self.path}/{what}", self.ticket, self.address)
            except Unavailable as trouble:
                self.tally.refused += 1
                await asyncio.sleep(max(trouble.retry_after, pause) * self.random.uniform(0.75, 1.25))
                pause = min(pause * 2, 10.0)

    async def wait_in_line(self) -> bool:
        """Joins and polls. True when let in."""
        came = time.monotonic()
        patience = self.random.expovariate(1 / self.options.patience)
        method, what = "POST", "join"
        while True:
            answer = await self.call(method, what)
            if answer.status == 409:  # the queue was created again, and this place is gone
                self.tally.dropped += 1
                return False
            if answer.status not in (200, 202):
                raise Refused(f"{what}: {answer.status} {answer.body.get('detail') or answer.body.get('title')}")
            self.ticket = answer.body.get("ticket", self.ticket)
            status = answer.body["status"]
            if status == "active":
                self.tally.waits.append(time.monotonic() - came)
                return True
            if status not in ("pending", "waiting"):
                self.tally.dropped += 1
                return False
            if time.monotonic() - came > patience:
                await self.call("POST", "leave")
                self.tally.left += 1
                return False
            method, what = "GET", "status"
            await asyncio.sleep(answer.body.get("poll_after_ms", 1000) / 1000)

    async def be_inside(self) -> None:
        """Claims the session, stays for a while, and completes or vanishes."""
        await self.call("GET", "status")
        mean, spread = self.options.session, 0.6
        await asyncio.sleep(self.random.lognormvariate(0, spread) * mean / 2.718281828 ** (spread ** 2 / 2))
        if self.random.random() < self.options.vanish:
            self.tally.vanished += 1
            return
        answer = await self.call("POST", "complete")
        if answer.body.get("status") == "completed":
            self.tally.completed += 1
        else:
            self.tally.dropped += 1


def rate_at(elapsed: float, options: argparse.Namespace) -> float:
    """Arrivals per second: a surge in the first third of every period, calm in the rest."""
    in_surge = elapsed % options.surge_every < options.surge_every / 3
    return options.rate * (options.surge if in_surge else 1.0)


async def arrive(options: argparse.Namespace, net: Connections, tally: Tally, started: float) -> None:
    """Starts visitors, by thinning of a Poisson process at the highest rate (Lewis and Shedler, 1979)."""
    draw = random.Random(options.seed)
    highest = options.rate * max(options.surge, 1.0)
    due = 0.0
    async with asyncio.TaskGroup() as people:
        while True:
            due += draw.expovariate(highest)
            if draw.random() * highest > rate_at(due, options):
                continue
            # A Poisson process that falls behind catches up. It does not shift.
            await asyncio.sleep(max(0.0, started + due - time.monotonic()))
            people.create_task(Person(tally.arrived, options, net, tally).live())


def line_wanted(elapsed: float, least: int, most: int) -> int:
    """How many should wait: it swings between the two. A fifth from both ends is left for what changes between two looks."""
    middle, swing = (least + most) / 2, (most - least) * 0.3
    return round(middle + swing * math.sin(2 * math.pi * elapsed / SWING))


async def keep_line(options: argparse.Namespace, net: Connections, tally: Tally, started: float) -> None:
    """Starts as many visitors as are missing in the line."""
    async with asyncio.TaskGroup() as people:
        while True:
            missing = line_wanted(time.monotonic() - started, *options.line) - tally.waiting
            for _ in range(missing):
                people.create_task(Person(tally.arrived, options, net, tally).live())
                await asyncio.sleep(0)  # it comes, and counts
            await asyncio.sleep(LOOK_EVERY)


def show(text: str, in_place: bool, end: bool = False) -> None:
    """A line of its own; or on a terminal the last one again, cut at its width."""
    if not in_place:
        print(text, flush=True)
        return
    width = shutil.get_terminal_size().columns
    print(f"\r\x1b[2K{text[:width - 1]}", end="\n" if end else "", flush=True)


async def report(tally: Tally, started: float, in_place: bool) -> None:
    while True:
        await asyncio.sleep(UPDATE_EVERY if in_place else SUMMARY_EVERY)
        show(tally.line(time.monotonic() - started), in_place)


async def run(options: argparse.Namespace) -> None:
    net, tally, started = Connections(options.url, options.connections), Tally(), time.monotonic()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    in_place = sys.stdout.isatty()
    come = keep_line if options.line else arrive
    work = [asyncio.create_task(come(options, net, tally, started)),
            asyncio.create_task(report(tally, started, in_place))]
    end = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait([end, *work], timeout=options.duration or None,
                                 return_when=asyncio.FIRST_COMPLETED)
    show(tally.line(time.monotonic() - started), in_place, end=True)
    for task in (end, *work):
        task.cancel()
    await asyncio.gather(end, *work, return_exceptions=True)
    for task in done:
        if not task.cancelled() and task.exception() is not None:
            raise task.exception()


def positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("must be 0 to 1")
    return value


def lengths(text: str) -> tuple[int, int]:
    least, dash, most = text.partition("-")
    if not (dash and least.isdecimal() and most.isdecimal() and 0 < int(least) < int(most) <= 10000):
        raise argparse.ArgumentTypeError("must be two lengths, as in 20-60")
    return int(least), int(most)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the worker (default: %(default)s)")
    parser.add_argument("--queue", default="demo", help="(default: %(default)s)")
    parser.add_argument("--line", type=lengths, metavar="LEAST-MOST",
                        help="keep so many of them waiting, whatever the rate would be")
    parser.add_argument("--rate", type=positive, default=1.0, help="people per second, in calm (default: %(default)s)")
    parser.add_argument("--surge", type=positive, default=4.0, help="times as many in a surge (default: %(default)s)")
    parser.add_argument("--surge-every", type=positive, default=60.0, metavar="SECONDS",
                        help="a surge comes this often and lasts a third of it (default: %(default)s)")
    parser.add_argument("--patience", type=positive, default=120.0, metavar="SECONDS",
                        help="mean time before a visitor leaves the line (default: %(default)s)")
    parser.add_argument("--session", type=positive, default=10.0, metavar="SECONDS",
                        help="mean time inside (default: %(default)s)")
    parser.add_argument("--vanish", type=share, default=0.1, metavar="SHARE",
                        help="share of those inside who never say that they are done (default: %(default)s)")
    parser.add_argument("--duration", type=positive, metavar="SECONDS", help="end after this time (default: never)")
    parser.add_argument("--connections", type=int, default=64, help="at most (default: %(default)s)")
    parser.add_argument("--forwarded", action="store_true",
                        help="each has an address of their own in X-Forwarded-For; http.trusted_proxies has to name this machine")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    why = None
    try:
        asyncio.run(run(parser.parse_args()))
    except* Refused as refused:
        why = f"crowd: {refused.exceptions[0]}"
    sys.exit(why)


if __name__ == "__main__":
    main()
