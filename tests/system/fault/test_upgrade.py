# SPDX-License-Identifier: Apache-2.0
"""All programs are replaced one at a time, forth and back, under visitors who come and go: by those of the release before
this one, or, while there is none, by another build of this tree, as in a rolling restart.

TELLERLINE_UPGRADE_WAITING=100000 makes the line longer.
"""
from __future__ import annotations

import asyncio
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import wire
from actors import Actor
from history import History, Stay, check
from http_client import CONNECTION_TROUBLE, Answer, AsyncConnection, Visitor
from postgres_server import PostgresServer
from previous import previous_programs, release_before
from tellerline import BIN, PATIENCE, TOP, Program, System, run
from waiting import patient, wait_until
from webhook_stand_in import Receiver

#: As docs/operators/upgrading.md says; the other way round to go back.
ORDER = ("dispatcher", "admitter", "expirer", "notifier", "archiver", "worker")

WAITING = int(os.environ.get("TELLERLINE_UPGRADE_WAITING", 120))
ACTIVE, SEATS, ACTORS, CONNECTIONS = 40, 5, 6, 4
#: A crowd so large cannot be asked often.
WAITING_TTL = max(12, WAITING // 300)
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
        self.completions = 0.0  # how many may complete: the line outlasts the test, however long that takes
        self.pause = 0.5  # seconds from one round to the next at least
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
            await asyncio.sleep(max(0.0, self.pause - (time.monotonic() - began)))  # their own pace
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
            if self.completions >= 1 and stay.visitor != self.keeper:
                self.completions -= 1
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
        deadline = time.monotonic() + patient(240 + WAITING / 50)
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
        self.crowd.completions = 2
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

    def one_deserts(self) -> Stay:
        """A visitor joins and is not seen again."""
        sent = time.time()
        deserter = self.system.join("sale")
        stay = self.crowd.history.acknowledged(deserter.ticket, sent, time.time())
        self.crowd.deserters.add(stay.visitor)
        return stay

    def is_dropped(self, stay: Stay) -> None:
        """Absence is judged: who is not seen again is dropped, and nobody else."""
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
        self.crowd.keeper, self.crowd.completions, self.crowd.pause = "", float("inf"), 0.0
        for thread in (*self.actors, self.crowd):
            thread.join()
            assert thread.error is None, thread.error
        for queue in ("sale", "door"):
            # Places whose client got no answer are never claimed and expire.
            wait_until(lambda: self.system.waiting(queue) == self.system.active(queue) == 0, 60 + WAITING_TTL,
                       f"{queue} drains to empty")
        staleness = patient(STALENESS)
        check(self.history, self.steps("door"), SEATS, self.system.final("door"), staleness, one_clock=True)
        check(self.crowd.history, self.steps("sale"), everyone, self.system.final("sale"), staleness, one_clock=True)


class Record:
    """What is told elsewhere: to an archive in PostgreSQL, and to a webhook of those who are admitted."""

    def __init__(self, postgres: PostgresServer, receiver: Receiver) -> None:
        self._postgres, self._receiver = postgres, receiver
        self.settings = {"archive": {"url": postgres.url}, "webhooks": [receiver.webhook("site", ["admitted"])]}

    def migrate(self, folder: Path) -> None:
        """The tables of the release in this folder."""
        done = run(folder / "tellerline", "db", "migrate", env={"TELLERLINE_ARCHIVE_URL": self._postgres.url})
        assert done.returncode == 0, done.stderr

    def _archived(self) -> dict[str, tuple[int, ...]]:
        rows = self._postgres.rows(
            "SELECT name, count(*), count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'absent') "
            "FROM queue_entries JOIN queue_generations USING (generation_id) JOIN queues USING (queue_id) GROUP BY 1")
        return {row[0]: tuple(map(int, row[1:])) for row in rows}

    def is_whole(self, system: System) -> None:
        """Each place is in the archive once, as it ended, and each admission was told."""
        numbers = {queue: system.numbers(queue) for queue in ("sale", "door")}
        counted = {queue: tuple(of[name] for name in ("joined", "completed", "absent")) for queue, of in numbers.items()}
        wait_until(lambda: self._archived() == counted, PATIENCE, f"the archive has {counted}")
        assert self._postgres.sql("SELECT DISTINCT reason FROM queue_gaps") == "opened"
        admitted = sum(of["admitted"] for of in numbers.values())
        wait_until(lambda: len(set(self._receiver.admitted())) == admitted, PATIENCE, f"the webhook is told of {admitted}")


@pytest.fixture(name="record")
def a_record(tmp_path: Path) -> Iterator[Record]:
    postgres = PostgresServer()
    try:
        postgres.start()
        with Receiver(tmp_path).serving() as receiver:
            yield Record(postgres, receiver)
    finally:
        postgres.remove()


def version(folder: Path) -> str:
    return run(folder / "tellerline-worker", "--version").stdout


@pytest.mark.long(seconds=100)
def test_upgrade_roll_back_and_upgrade_again(record, start, figure):
    """Mixed programs serve; what one release wrote, the other one reads."""
    previous = previous_programs()
    assert version(previous) != version(BIN)
    record.migrate(previous)
    calm = {"session_ttl": "30m", "claim_ttl": f"{max(20, WAITING // 150)}s", "waiting_ttl": f"{WAITING_TTL}s"}

    def prepare(system: System) -> None:
        system.folder = previous
        for program in system.programs:
            program.folder = previous

    system = start({"sale": calm | {"capacity": ACTIVE}, "door": calm | {"capacity": SEATS}}, workers=2, dispatchers=2,
                   notifiers=1, archivers=1, prepare=prepare,
                   settings=record.settings | {"http": {"join_wait": "2s"}, "retention": {"events_entries": 10000000}})
    site = Site(system)
    site.open()
    site.all_is_well()
    before = system.numbers("sale")

    deserter = site.one_deserts()
    record.migrate(BIN)
    site.move(BIN, ORDER[:-1])
    site.is_dropped(deserter)  # the workers are those of the release before
    site.move(BIN, ORDER[-1:])
    system.folder = BIN
    site.all_is_well()

    system.folder = previous
    site.move(previous, ORDER[:0:-1])
    site.all_is_well()
    site.move(previous, ORDER[:1])
    site.all_is_well()

    deserter = site.one_deserts()
    site.move(BIN, ORDER)
    system.folder = BIN
    site.is_dropped(deserter)
    now = system.numbers("sale")
    assert now["seq"] - before["seq"] == now["joined"] - before["joined"] > 0, "numbers go on as they were, without a jump"
    rounds = site.crowd.rounds
    site.close()
    record.is_whole(system)
    figure(f"{WAITING} waiting and {ACTIVE} active, each asking {rounds} times or more; "
           f"{len(site.history.stays)} visitors came and went beside them")


def programs_in(text: str) -> list[str]:
    """Those that it names, in its order."""
    return re.findall(rf"\b({'|'.join(ORDER)})", text)


def test_the_order_is_that_of_the_documentation():
    forth, back = re.search(r"\*\*Always (.*?)\*\*.*\n## Going back\n\nUse the reverse order: (.*?)\. ",
                            (TOP / "docs/operators/upgrading.md").read_text(), re.DOTALL).groups()
    assert programs_in(forth) == list(ORDER) and programs_in(back) == list(ORDER[::-1])
    restarted = re.search(r"\nTELLERLINE_FIRST=(.*)\nTELLERLINE_UNITS", (TOP / "deploy/debian/postinst").read_text(), re.DOTALL)
    assert programs_in(restarted[1]) == list(ORDER), "the package restarts them so"


def test_the_release_before_is_the_newest_tag_behind_this_one(tmp_path):
    def git(*command: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.org", *command],
                       check=True, capture_output=True)

    def commit() -> None:
        git("commit", "--allow-empty", "-m", "a change")

    git("init")
    commit()
    assert release_before(tmp_path) is None
    commit()
    git("tag", "v0.1.0")
    assert release_before(tmp_path) is None, "it is this release itself"
    commit()
    git("tag", "later")
    assert release_before(tmp_path) == "v0.1.0"
    git("tag", "v0.2.0")
    assert release_before(tmp_path) == "v0.1.0"
    commit()
    assert release_before(tmp_path) == "v0.2.0"
