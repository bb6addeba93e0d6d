"""The release before this one is upgraded and rolled back, one program at a time, under visitors who come and go.

TELLERLINE_UPGRADE_WAITING=100000 makes the line longer.
"""
from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest

import wire
from actors import Actor
from history import History, Stay, check
from http_client import CONNECTION_TROUBLE, Answer, AsyncConnection, Visitor
from previous import previous_programs
from tellerline import BIN, CALM, PATIENCE, Program, System
from test_store_trouble import PROMPT, STORE_TROUBLE
from waiting import wait_until

#: As docs/operators/operations.md says; the other way round to go back.
ORDER = ("dispatcher", "admitter", "expirer", "worker")

WAITING = int(os.environ.get("TELLERLINE_UPGRADE_WAITING", 800))
ACTIVE, SEATS, ACTORS, CONNECTIONS = 300, 5, 10, 8
#: A crowd so large cannot be asked often.
WAITING_TTL = max(10, WAITING // 300)
#: A worker may be this far behind (seconds) after it, or the dispatcher, was restarted.
STALENESS = 3.0

BROKEN = (*CONNECTION_TROUBLE, asyncio.IncompleteReadError, asyncio.LimitOverrunError)


class Crowd(threading.Thread):
    """A long line of visitors who ask for their place again and again. Some of those who are called complete."""

    def __init__(self, ports: list[int], queue: str, deadline: float) -> None:
        super().__init__(name="crowd", daemon=True)
        self._ports, self._path, self._deadline = ports, f"/v1/queues/{queue}", deadline
        self.history = History()
        self.tickets: dict[str, str] = {}  # visitor -> ticket
        self.rounds = 0  # how often all were asked
        self.deserters: set[str] = set()  # visitors who wait, and are not seen again
        self.keeper = ""  # the visitor who keeps the session to the end
        self.every = 0.1  # seconds from one completion to the next; the line outlasts the test
        self._next_completion = 0.0
        self.full = threading.Event()
        self._missing = ACTIVE + WAITING
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: B036 - handed to the test, which fails with it
            self.error = error

    def add(self, visitor: Visitor, sent: float) -> None:
        stay = self.history.acknowledged(visitor.ticket, sent, time.time())
        self.tickets[stay.visitor] = visitor.ticket

    async def _live(self) -> None:
        clients = [[AsyncConnection(port) for port in self._ports] for _ in range(CONNECTIONS)]
        await asyncio.gather(*(self._join_all(client) for client in clients))
        self.keeper = self.history.stays[0].visitor
        self.full.set()
        while stays := [stay for stay in self.history.stays
                        if stay.end is None and stay.visitor not in self.deserters]:
            rest, began = iter(stays), time.monotonic()
            await asyncio.gather(*(self._ask_all(client, rest) for client in clients))
            self.rounds += 1
            await asyncio.sleep(max(0.0, min(1.0, 10 * self.every) - (time.monotonic() - began)))  # their own pace
        for connections in clients:
            for connection in connections:
                connection.close()

    async def _join_all(self, client: list[AsyncConnection]) -> None:
        while self._missing > 0:
            self._missing -= 1
            sent = time.time()
            answer = await self._request(client, "POST", "join", None)
            while answer.status == 202:
                answer = await self._request(client, "GET", "status", answer.json["ticket"])
            ticket = answer.json["ticket"]
            stay = self.history.acknowledged(ticket, sent, time.time())
            self.tickets[stay.visitor] = ticket

    async def _ask_all(self, client: list[AsyncConnection], rest) -> None:
        for stay in rest:
            await self._ask(client, stay)

    async def _ask(self, client: list[AsyncConnection], stay: Stay) -> None:
        ticket, sent = self.tickets[stay.visitor], time.time()
        answer = await self._request(client, "GET", "status", ticket)
        view = answer.json
        if answer.status == 200 and view["status"] == "waiting":
            stay.last_waiting = max(stay.last_waiting, sent)
            if stay.place % 8 == 0:  # some are enough
                stay.saw_position(sent, time.time(), view["position"])
        elif answer.status == 200 and view["status"] == "active":
            stay.saw_active(time.time(), view)
            if time.monotonic() >= self._next_completion and stay.visitor != self.keeper:
                self._next_completion = time.monotonic() + self.every
                await self._complete(client, stay, ticket)
        else:
            self._odd(stay, answer)
        if "ticket" in view:
            self.tickets[stay.visitor] = view["ticket"]
            stay.saw_ticket(view["ticket"])

    async def _complete(self, client: list[AsyncConnection], stay: Stay, ticket: str) -> None:
        stay.gives_back(time.time())
        answer = await self._request(client, "POST", "complete", ticket)
        if answer.status == 200 and answer.json["status"] == "completed":
            stay.end, stay.ended_at = "completed", time.time()
        else:
            self._odd(stay, answer)

    def _odd(self, stay: Stay, answer: Answer) -> None:
        self.history.odd(f"place {stay.place} ({stay.visitor}): {answer.status} {answer.body[:300]!r}")
        stay.end, stay.ended_at = "odd", time.time()

    async def _request(self, client: list[AsyncConnection], method: str, verb: str, ticket: str | None) -> Answer:
        """Asks one worker after the other until one answers."""
        attempt = hash(ticket)
        while True:
            assert time.monotonic() < self._deadline, f"no answer to {verb} before the end of the test"
            attempt += 1
            connection = client[attempt % len(client)]
            try:
                answer = await connection.request(method, f"{self._path}/{verb}", ticket)
                if answer.status not in (502, 503):
                    return answer
            except BROKEN:
                connection.close()
            if ticket is None:
                self.history.unanswered()
            await asyncio.sleep(0.05)


class Proofs:
    """Tickets and passes that programs of either release gave. All workers must take them all."""

    def __init__(self, system: System, crowd: Crowd) -> None:
        self._system, self._crowd = system, crowd
        self._tickets: list[str] = []
        self._passes: list[str] = []

    def collect(self) -> None:
        """From each worker: the ticket of a newcomer, and a pass."""
        for i in range(len(self._system.of("worker"))):
            sent = time.time()
            newcomer = self._system.join("sale", i)
            self._crowd.add(newcomer, sent)
            self._tickets.append(newcomer.ticket)
            active = Visitor(self._system.client(i), "sale", self._crowd.tickets[self._crowd.keeper])
            self._passes.append(wait_until(lambda: active.status().get("pass"), PATIENCE, "a pass"))

    def kinds(self) -> set[bool]:
        """Whether passes carry a generation, which those of the release before do not."""
        return {"gen" in wire.read_pass(text) for text in self._passes}

    def check(self) -> None:
        for i in range(len(self._system.of("worker"))):
            client = self._system.client(i)
            for ticket in self._tickets:
                visitor = Visitor(client, "sale", ticket)
                wait_until(lambda: visitor.status()["status"] == "waiting", PATIENCE, "the ticket is taken",
                           again_on=AssertionError)
            for text in self._passes:
                assert client.get("/v1/queues/sale/check", ticket=text).status == 204, wire.read_pass(text)


class Site:
    """Two queues: `sale` with a long line, `door` with a short one where visitors come and go fast."""

    def __init__(self, system: System) -> None:
        self.system = system
        ports = [program.http_port for program in system.of("worker")]
        deadline = time.monotonic() + 240 + WAITING / 50
        self.crowd = Crowd(ports, "sale", deadline)
        self.history, self.stop = History(), threading.Event()
        self.actors = [Actor(i, 1, ports, "door", self.history, self.stop, deadline) for i in range(ACTORS)]
        self.proofs = Proofs(system, self.crowd)
        self._steps: dict[str, dict[int, wire.Step]] = {"sale": {}, "door": {}}

    def open(self) -> None:
        self.crowd.start()
        for actor in self.actors:
            actor.start()
        wait_until(lambda: self.crowd.full.is_set() or not self.crowd.is_alive(), 60 + WAITING / 50, "the line is long")
        wait_until(lambda: self.system.active("sale") == ACTIVE, PATIENCE, "the sale is full")
        self.goes_on()

    def steps(self, queue: str) -> list[wire.Step]:
        """The events stream from its beginning, which `set` trims."""
        self._steps[queue] |= {step.number: step for step in self.system.steps(queue)}
        return list(self._steps[queue].values())

    def set(self, queue: str, setting: str) -> None:
        self.steps(queue)
        self.system.set(queue, setting)

    def goes_on(self) -> None:
        """Until visitors have joined, were called and have completed in both queues."""
        def totals() -> dict[str, int]:
            door, sale = self.system.numbers("door"), self.system.numbers("sale")
            return {name: door[name] for name in ("joined", "admitted", "completed")} | {"sale": sale["admitted"]}

        before = totals()
        wait_until(lambda: all(now >= before[name] + 2 for name, now in totals().items()), PATIENCE + WAITING_TTL,
                   "visitors come and go in both queues")
        for thread in (self.crowd, *self.actors):
            assert thread.error is None, thread.error

    def replace(self, program: Program, folder: Path) -> None:
        program.replace(folder)
        self.goes_on()
        if program.role == "worker":
            self.proofs.check()

    def move(self, folder: Path, order: tuple[str, ...]) -> None:
        """To the programs of this folder, one after the other."""
        for role in order:
            for program in self.system.of(role):
                self.replace(program, folder)

    def one_deserts(self) -> None:
        """Absence is judged: a visitor who is not seen again is dropped, and nobody else."""
        sent = time.time()
        deserter = self.system.join("sale")
        stay = self.crowd.history.acknowledged(deserter.ticket, sent, time.time())
        self.crowd.deserters.add(stay.visitor)
        wait_until(lambda: self.system.store.command("ZSCORE", self.system.key("sale", "ended"), stay.visitor),
                   PATIENCE + 4 * WAITING_TTL, "who is not seen loses the place", every=0.1)
        stay.end, stay.ended_at = "absent", time.time()
        self.all_is_well()

    def all_is_well(self) -> None:
        audit = self.system.ctl("audit")
        assert audit.returncode == 0, audit.stdout + audit.stderr
        absent = {queue: self.system.numbers(queue)["absent"] for queue in ("sale", "door")}
        assert absent == {"sale": len(self.crowd.deserters), "door": 0}, "visitors were dropped as absent"
        self.set("door", f"capacity={SEATS}")  # each command line may set what the other one wrote
        self.proofs.collect()
        self.proofs.check()

    def close(self) -> None:
        """All are served, and the histories are checked."""
        assert max(step.active for step in self.steps("sale")) <= ACTIVE, "more active than the capacity"
        self.stop.set()
        everyone = ACTIVE + WAITING + len(self.proofs._tickets)
        self.set("sale", f"capacity={everyone}")
        self.crowd.keeper, self.crowd.every = "", 0.0
        for thread in (*self.actors, self.crowd):
            thread.join()
            assert thread.error is None, thread.error
        for queue in ("sale", "door"):
            # Places whose client got no answer are never claimed and expire.
            wait_until(lambda: self.system.waiting(queue) == self.system.active(queue) == 0, 60 + WAITING_TTL,
                       f"{queue} drains to empty")
        check(self.history, self.steps("door"), SEATS, self.system.final("door"), STALENESS, one_clock=True)
        check(self.crowd.history, self.steps("sale"), everyone, self.system.final("sale"), STALENESS,
              one_clock=True)


@pytest.mark.long(seconds=75)
def test_upgrade_roll_back_and_upgrade_again(start, figure):
    """Mixed programs serve; what one release wrote, the other one reads."""
    previous = previous_programs()
    calm = {"session_ttl": "30m", "claim_ttl": f"{max(10, WAITING // 150)}s", "waiting_ttl": f"{WAITING_TTL}s"}

    def prepare(system: System) -> None:
        system.folder = previous
        for program in system.programs:
            program.folder = previous

    system = start({"sale": calm | {"capacity": ACTIVE}, "door": calm | {"capacity": SEATS}}, workers=2, dispatchers=2,
                   prepare=prepare, settings={"http": {"join_wait": "2s"}, "streams": {"events_length": 10000000}})
    site = Site(system)
    site.open()
    site.all_is_well()
    assert "store" not in system.store.hash(system.key("sale", "state")), "created by the release before"
    seq = system.numbers("sale")["seq"]

    site.move(BIN, ORDER[:-1])
    site.one_deserts()  # the workers are those of the release before
    site.move(BIN, ORDER[-1:])
    system.folder = BIN
    site.all_is_well()

    system.folder = previous
    site.move(previous, ORDER[:0:-1])
    site.all_is_well()
    site.move(previous, ORDER[:1])
    site.all_is_well()

    site.move(BIN, ORDER)
    system.folder = BIN
    site.one_deserts()
    assert site.proofs.kinds() == {False, True}, "passes of both releases"
    assert seq < system.numbers("sale")["seq"] < 2**32, "numbers go on as they were, without a jump"
    rounds = site.crowd.rounds
    site.close()
    figure(f"{WAITING} waiting and {ACTIVE} active, each asking {rounds} times or more; "
           f"{len(site.history.stays)} visitors came and went beside them")


def test_redis_restarts_in_the_middle_of_an_upgrade(start):
    """Workers of the release before cannot load the line then. All have their places once the workers are replaced."""
    previous = previous_programs()

    def prepare(system: System) -> None:
        for program in system.programs:
            program.folder = previous

    system = start({"bank": {"capacity": 2} | CALM}, prepare=prepare, settings=PROMPT, redis={"appendfsync": "always"})
    system.expect(STORE_TROUBLE)
    visitors = [system.join("bank") for _ in range(10)]
    wait_until(visitors[1].is_active, PATIENCE, "the first are active")
    places = [wire.read_ticket(visitor.ticket) for visitor in visitors]
    for role in ORDER[:-1]:
        system.of(role)[0].replace(BIN)
    system.redis.kill()
    system.redis.start()
    system.forget_store()
    wait_until(lambda: system.numbers("bank")["seq"] >= 2**32, PATIENCE, "an incarnation begins")
    worker, newcomer = system.of("worker")[0], system.visitor("bank")

    def joins() -> bool:
        answer = newcomer.client.post(f"{newcomer.path}/join", ticket=newcomer.ticket)
        newcomer.ticket = answer.json.get("ticket", newcomer.ticket)
        return newcomer.ticket is not None

    wait_until(joins, PATIENCE, "a newcomer has a ticket", again_on=CONNECTION_TROUBLE)
    wait_until(lambda: "no memory for" in worker.text(), PATIENCE, "the number is too large for the old worker")

    worker.replace(BIN)
    for visitor, place in zip(visitors, places):
        wait_until(lambda: visitor.status()["status"] in ("waiting", "active"), PATIENCE, "the ticket is valid",
                   again_on=(AssertionError, *CONNECTION_TROUBLE))
        assert wire.read_ticket(visitor.ticket).place == place.place
    wait_until(newcomer.join, PATIENCE, "the newcomer has a place", again_on=(AssertionError, *CONNECTION_TROUBLE))
    system.set("bank", "capacity=100")
    for visitor in visitors + [newcomer]:
        wait_until(visitor.is_active, PATIENCE, "all are called")
    admitted = [place for step in system.steps("bank") for place in step.admitted]
    assert admitted == [place.place for place in places] + [wire.read_ticket(newcomer.ticket).place]


def test_a_rate_while_releases_are_mixed(start):
    """New admitters keep a rate beside workers, dispatchers and expirers of the release before. An admitter of that one
    admits nobody by a policy that it does not know, and goes on by the counter; no lump is granted on the way back."""
    previous, every = previous_programs(), 1500

    def prepare(system: System) -> None:
        for program in system.programs:
            program.folder = previous

    system = start({"bank": {"capacity": 2} | CALM}, admitters=2, prepare=prepare, settings=PROMPT)
    system.expect(r"POLICY|policy")
    visitors = [system.join("bank") for _ in range(14)]
    wait_until(visitors[1].is_active, PATIENCE, "the first are active")
    first, second = system.of("admitter")
    for admitter in (first, second):
        admitter.replace(BIN)
    rate = ("policy=rate", "rate.admit=3", f"rate.every={every}ms", "rate.shape=lumps")
    system.set("bank", *rate)
    wait_until(visitors[7].is_active, PATIENCE, "two lumps are admitted; the worker of the release before tells")

    first.replace(previous)
    second.stop()
    wait_until(lambda: "POLICY" in first.text() or "policy" in first.text(), PATIENCE, "it refuses a policy it does not know")
    admitted = system.numbers("bank")["admitted"]
    system.set("bank", "policy=counter", f"capacity={admitted + 1}")
    wait_until(visitors[admitted].is_active, PATIENCE, "by the counter the admitter of the release before goes on")
    assert system.numbers("bank")["admitted"] == admitted + 1

    for program in (program for role in ORDER for program in system.of(role) if program is not second):
        program.replace(BIN)
    second.start()
    system.set("bank", *rate)
    wait_until(lambda: system.numbers("bank")["admitted"] > admitted + 1, PATIENCE, "the rate goes on", again_on=CONNECTION_TROUBLE)
    lumps = [(step.deadlines[step.admitted[0]], len(step.admitted)) for step in system.steps("bank") if step.admitted]
    assert sum(n for _, n in lumps) == system.numbers("bank")["admitted"]
    by_rate = [at for at, n in lumps if n == 3]
    assert len(by_rate) >= 2 and all(after - before >= every for before, after in zip(by_rate, by_rate[1:])), lumps
    places = [place for step in system.steps("bank") for place in step.admitted]
    assert places == sorted(places)
