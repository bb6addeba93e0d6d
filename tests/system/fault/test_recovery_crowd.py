# SPDX-License-Identifier: Apache-2.0
"""The store loses everything under thousands of visitors who listen: how soon they stand in the old order.

In three forms: the workers live on; they are all killed, too; and half of the visitors return. The first form has 10,000
visitors, the others only with tests/run --soak. And without a loss, when all reconnect at once: 1,000, or 50,000 with
tests/run --soak.
"""
from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import resource
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import pytest

from figures_of import metric
from http_client import AsyncConnection, share_out
from tellerline import CALM, PATIENCE, System, alive
from test_store_trouble import PROMPT, STORE_TROUBLE
from waiting import patient, wait_until

pytestmark = pytest.mark.sanitized

CROWD = 10_000
CROWD_SHORT = CROWD if "TELLERLINE_SOAK" in os.environ else 1_000
SECONDS = 120  # generous: the time is printed, not demanded
LEAVERS = 20
#: 50,000 reconnect, from processes of which each can hold so many. A process has so many files open beside.
EACH_MOST, CROWDS, BESIDE = 12_500, 4, 1_000


class Form(NamedTuple):
    size: int
    kills: bool = False  # all workers with the store
    half: bool = False   # every other visitor does not return


class Listener(asyncio.Protocol):
    """One event stream. Notes when a view with a new ticket came, and whom it is for."""

    def __init__(self, visitor: str, ticket: str) -> None:
        self.visitor, self._ticket, self._rest = visitor, ticket, b""
        self.renewed: list[str] = []  # visitors of the views that brought a ticket
        self.strangers = self.views = 0
        self.at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(f"GET /v1/queues/bank/events HTTP/1.1\r\nHost: localhost\r\n"
                        f"Authorization: Bearer {self._ticket}\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        for block in blocks:
            at = block.find(b"\ndata: {")
            if at < 0:
                continue
            view = json.loads(block[at + 7:].split(b"\n")[0])
            self.views += 1
            self.strangers += view.get("visitor", self.visitor) != self.visitor
            if "ticket" in view:
                self.renewed.append(view["visitor"])
                self.at = time.monotonic()


async def join_all(ports: list[int], size: int) -> list[tuple[str, str]]:
    joined: list[tuple[str, str]] = []

    async def join(connection: AsyncConnection, _: int) -> None:
        answer = await connection.request("POST", "/v1/queues/bank/join")
        deadline = time.monotonic() + patient(SECONDS)
        while answer.status == 202:  # on a slow machine numbering takes longer than join_wait
            assert time.monotonic() < deadline, answer.body
            answer = await connection.request("GET", "/v1/queues/bank/status", answer.json["ticket"])
        assert answer.status == 200, answer.body
        joined.append((answer.json["visitor"], answer.json["ticket"]))

    for port in ports:
        await share_out(port, 64, range(size // len(ports)), join)
    return joined


async def leave(port: int, tickets: list[str]) -> None:
    async def one(connection: AsyncConnection, ticket: str) -> None:
        answer = await connection.request("POST", "/v1/queues/bank/leave", ticket)
        deadline = time.monotonic() + patient(SECONDS)
        while answer.status == 503:  # the outcome is not known yet
            assert time.monotonic() < deadline, answer.body
            answer = await connection.request("POST", "/v1/queues/bank/leave", ticket)
        assert answer.status == 200, answer.body

    await share_out(port, 4, tickets, one)


async def attack(ports: list[int], tickets: list[str], stop: asyncio.Event) -> int:
    """Replays tickets of visitors who had left, until it is told to stop. Returns how often; none gets a place."""
    answers = 0

    async def one(connection: AsyncConnection, ticket: str) -> None:
        nonlocal answers
        answer = await connection.request("GET", "/v1/queues/bank/status", ticket)
        assert answer.json.get("status") not in ("pending", "waiting", "active"), answer.body
        answers += 1

    while not stop.is_set():
        for port in ports:
            await share_out(port, 4, tickets, one)
        await asyncio.sleep(0.05)
    return answers


def line(system: System) -> list[str]:
    store, key = system.redis.connect(), system.key
    try:
        return (store.command("ZRANGE", key("bank", "active"), "0", "-1")
                + store.command("ZRANGE", key("bank", "waiting"), "0", "-1"))
    finally:
        store.close()


async def until(condition, what: str, seconds: float = SECONDS) -> float:
    deadline = time.monotonic() + patient(seconds)
    while not condition():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.05)
    return time.monotonic()


async def listen(ports: list[int], joined: list[tuple[str, str]], source: str = "127.0.0.1") -> list[Listener]:
    listeners = []
    loop = asyncio.get_running_loop()
    for i, (visitor, ticket) in enumerate(joined):
        _, listener = await loop.create_connection(lambda v=visitor, t=ticket: Listener(v, t), "127.0.0.1",
                                                   ports[i % len(ports)], local_addr=(source, 0))
        listeners.append(listener)
    return listeners


def kill_workers(system: System) -> None:
    children = [child for worker in system.of("worker") for child in worker.children()]
    for worker in system.of("worker"):
        worker.kill()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    # With thousands of connections the end takes a while, and until then the port is taken.
    wait_until(lambda: not any(alive(child) for child in children), PATIENCE, "the processes are gone")


def start_workers(system: System) -> None:
    for worker in system.of("worker"):
        worker.start()
    for worker in system.of("worker"):
        worker.wait_ready()


def lose(system: System, form: Form) -> None:
    if form.kills:
        kill_workers(system)
    system.redis.ask("FLUSHALL")
    if form.kills:
        start_workers(system)


async def lose_and_wait(system: System, ports: list[int], form: Form) -> tuple[float, float, int]:
    """Returns the seconds until the line stands in the old order, and until the last visitor has learned of it; and how
    often tickets were replayed meanwhile."""
    joined = await join_all(ports, form.size)
    left = [joined.pop() for _ in range(LEAVERS)]
    await leave(ports[0], [ticket for _, ticket in left])
    listeners = await listen(ports, joined)
    await until(lambda: all(one.views for one in listeners), "every stream tells its position")
    before = line(system)
    assert len(before) == len(joined)
    if form.half:
        for one in listeners[1::2]:
            one.transport.close()
        listeners, joined = listeners[::2], joined[::2]
        # A worker restores those whose streams it holds, also when their clients have just gone.
        await until(lambda: sum(metric(worker, "tellerline_worker_event_streams") for worker in system.of("worker"))
                    == len(listeners), "the workers know who is gone")
    if form.kills:  # the first was called: tickets of the others may tell so before this one returns
        joined = [(visitor, ticket) for visitor, ticket in joined if visitor != before[0]]
    here = {visitor for visitor, _ in joined}
    store = system.redis.connect()
    restored = lambda: int(store.command("HGET", system.key("bank", "state"), "restored") or 0)
    began = time.monotonic()
    lose(system, form)
    # Workers that know nothing cannot know who had left (docs/operators/recovery.md).
    stop, replays = asyncio.Event(), 0
    attacker = asyncio.create_task(attack(ports, [ticket for _, ticket in left if not form.kills], stop))
    if form.kills:
        listeners = await listen(ports, joined)
    back = await until(lambda: restored() >= len(joined), "all are back")
    after = line(system)
    assert after == [visitor for visitor in before if visitor in here], "the old order, nobody twice"
    await until(lambda: all(one.renewed for one in listeners), "everyone is told")
    told = max(one.at for one in listeners)
    stop.set()
    replays = await attacker
    assert line(system) == after and (replays > 0 or form.kills), "who had left gets nothing"
    store.close()
    for one in listeners:
        assert one.strangers == 0 and set(one.renewed) == {one.visitor}, "nobody is told what is another's"
        one.transport.close()
    return back - began, told - began, replays


@pytest.mark.alone
@pytest.mark.parametrize("form", [
    pytest.param(Form(CROWD), id="workers-alive", marks=pytest.mark.long(seconds=60)),
    pytest.param(Form(CROWD_SHORT, kills=True), id="workers-killed"),
    pytest.param(Form(CROWD_SHORT, half=True), id="half-returns"),
])
def test_listeners_are_back_in_order(start, figure, form):
    queue = CALM | {"capacity": 1, "recovery_window": "5m"}
    system = start({"bank": queue}, workers=2, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    ports = [program.http_port for program in system.of("worker")]
    back, told, replays = asyncio.run(lose_and_wait(system, ports, form))
    figure(f"{form.size} listening visitors after FLUSHALL{', all workers killed' * form.kills}"
           f"{', half of them return' * form.half}: in the old order after {back:.1f} s, all told after {told:.1f} s; "
           f"{replays} replayed tickets got nothing")
    done = system.ctl("queue", "recover", "bank", "--now")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: system.store.command("HGET", system.key("bank", "state"), "recover_until") == "0", PATIENCE,
               "the recovery ends")


def descriptors(each: int) -> str:
    """Why this machine cannot hold so many connections in a process, and as many from one address; '' if it can."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if limit < each + BESIDE:
        return f"needs {each + BESIDE} open files in a process (RLIMIT_NOFILE), and {limit} are allowed"
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    first, last = (int(text) for text in Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if last - first < 2 * each:  # those of the streams before may not be free yet
        return f"needs {2 * each} outgoing ports (ip_local_port_range), and there are {last - first}"
    return ""


def hold(ports: list[int], joined: list[tuple[str, str]], source: str, pipe: Connection) -> None:
    """A part of the crowd, in a process and at an address of its own: listens, and once more when told to. Sends when
    everyone has been told the place."""
    async def run() -> None:
        listeners = await listen(ports, joined, source)
        await until(lambda: all(one.views for one in listeners), "every stream tells its position", 5 * SECONDS)
        pipe.send(None)
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        listeners = await listen(ports, joined, source)
        told = await until(lambda: all(one.views for one in listeners), "every stream tells its position again", 5 * SECONDS)
        pipe.send((told, sum(one.strangers for one in listeners)))

    try:
        asyncio.run(run())
    except BaseException as error:  # noqa: B036 - the test fails with it
        pipe.send(error)


def reconnect(system: System, ports: list[int], size: int) -> float:
    """Returns the seconds until everyone was told the place again."""
    joined = asyncio.run(join_all(ports, size))
    fork = multiprocessing.get_context("fork")
    pipes, crowds = [], []
    for at in range(0, size, EACH_MOST):
        ours, theirs = fork.Pipe()
        pipes.append(ours)
        source = f"127.0.0.{10 + len(crowds)}"
        crowds.append(fork.Process(target=hold, args=(ports, joined[at:at + EACH_MOST], source, theirs), daemon=True))
        crowds[-1].start()

    def answers() -> list:
        found = [pipe.recv() for pipe in pipes]
        for answer in found:
            if isinstance(answer, BaseException):
                raise answer
        return found

    try:
        answers()
        before = line(system)
        assert len(before) == size
        kill_workers(system)
        start_workers(system)
        began = time.monotonic()
        for pipe in pipes:
            pipe.send(None)
        told = answers()
        assert line(system) == before
        assert sum(strangers for _, strangers in told) == 0, "nobody is told what is another's"
        return max(at for at, _ in told) - began
    finally:
        for crowd in crowds:
            crowd.kill()
            crowd.join()


@pytest.mark.alone
@pytest.mark.parametrize("size", [1_000, pytest.param(EACH_MOST * CROWDS, marks=pytest.mark.skipif(
    "TELLERLINE_SOAK" not in os.environ, reason="only with tests/run --soak"))])
def test_everybody_reconnects_at_once(start, figure, size):
    """Without the pause that `retry:` asks for."""
    missing = descriptors(min(size, EACH_MOST))
    if missing:
        pytest.skip(missing)
    settings = {"http": PROMPT["http"] | {"streams_per_address": 0, "connections_per_address": 0},
                "worker": {"processes": 2}}
    system = start({"bank": CALM | {"capacity": 1}}, workers=2, settings=PROMPT | settings)
    ports = [program.http_port for program in system.of("worker")]
    told = reconnect(system, ports, size)
    figure(f"{size} streams at once to two workers of two processes that were just started: all told after {told:.1f} s")
