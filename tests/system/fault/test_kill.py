# SPDX-License-Identifier: Apache-2.0
"""kill -9 of any one program at random moments: nothing acknowledged is lost, duplicated or out of order.

TELLERLINE_SEED=N repeats the choices of a run, TELLERLINE_KILLS=N makes it longer.
"""
from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable

import pytest

from actors import Actor, Visits
from admin import Admin, admin_file
from faults import conclude, end_visits
from history import History, Stay
from http_client import CONNECTION_TROUBLE, Answer
from redis_server import Redis, RedisError, RedisGone
from stories import enter
from tellerline import CALM, PATIENCE, Program, System
from waiting import patient, wait_until
from wire import LANE

pytestmark = pytest.mark.sanitized

CAPACITY = 5
ACTORS = 16
#: Of a bulk join, and how many each caller makes at most.
IN_LIST, LISTS = 50, 5
LANES = ("vip", "normal")
#: A worker may be this far behind (seconds) after it, or the dispatcher, was restarted.
STALENESS = 3.0


class Sampler(threading.Thread):
    """Checks continuously that the active visitors never exceed the capacity."""

    def __init__(self, store: Redis, key: str) -> None:
        super().__init__(daemon=True)
        self._store, self._key = store, key
        self.done = threading.Event()
        self.highest = 0
        self.samples = 0
        self.error: str | None = None

    def run(self) -> None:
        try:
            while not self.done.wait(0.005):
                self.highest = max(self.highest, self._store.command("ZCARD", self._key))
                self.samples += 1
        except (RedisError, RedisGone) as error:
            self.error = str(error)
        finally:
            self._store.close()


class Supervisor:
    """Kills one process at a time and restarts it, like an operator's service manager. roles: of which; None: of any."""

    def __init__(self, system: System, chance: random.Random, roles: tuple[str, ...] | None = None) -> None:
        self._system, self._random = system, chance
        self._programs = [program for program in system.programs if roles is None or program.role in roles]
        self.kills: dict[str, int] = {}

    def work(self, kills: int) -> None:
        """Until it has killed so many in all."""
        while sum(self.kills.values()) < kills:
            program = self._random.choice(self._programs)
            self._kill(program)
            self._random_pause()
            if not program.running:
                program.start()
            self._random_pause()
            for other in self._system.programs:
                assert other.running, f"{other.name} ended by itself:\n{other.tail()}"

    def _kill(self, program: Program) -> None:
        name = program.role
        children = program.children() if program.role == "worker" else []
        if children and self._random.random() < 0.5:
            # Only a child: its parent starts another.
            try:
                os.kill(self._random.choice(children), signal.SIGKILL)
                name = "worker's child"
            except ProcessLookupError:
                return
        else:
            program.kill()
        self.kills[name] = self.kills.get(name, 0) + 1

    def _random_pause(self) -> None:
        time.sleep(self._random.uniform(0.0, 0.8))  # at a random moment


@pytest.mark.long(seconds=35)
def test_kill_any_program_at_any_moment(start, figure):
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    kills = int(os.environ.get("TELLERLINE_KILLS", 24))
    print(f"TELLERLINE_SEED={seed}")
    queue = {"capacity": CAPACITY, "session_ttl": "60s", "claim_ttl": "20s", "waiting_ttl": "60s"}
    system = start({"door": queue}, workers=2, dispatchers=2, admitters=2, expirers=2,
                   settings={"http": {"join_wait": "1s"}, "worker": {"processes": 2},
                             "retention": {"events_entries": 1000000}})
    system.expect(r"role=worker .*ended by signal 9 \(Killed\)")
    history, stop = History(), threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    sampler = Sampler(system.redis.connect(), system.key("door", "active"))
    actors = [Actor(i, seed, ports, "door", history, stop, float("inf")) for i in range(ACTORS)]
    supervisor = Supervisor(system, random.Random(seed))
    sampler.start()
    for actor in actors:
        actor.start()
    try:
        supervisor.work(kills)
        wait_until(lambda: len(history.stays) >= 2 * kills or not any(actor.is_alive() for actor in actors), PATIENCE,
                   "visitors join: fewer prove nothing")
    finally:
        end_visits(stop, actors, history)
    conclude(system, "door", CAPACITY, actors, history, STALENESS, f"TELLERLINE_SEED={seed}")
    sampler.done.set()
    sampler.join()
    assert sampler.error is None and sampler.samples > kills, sampler.error
    assert sampler.highest <= CAPACITY
    figure(f"seed {seed}: {sum(supervisor.kills.values())} kills {supervisor.kills}, "
           f"{len(history.stays)} acknowledged joins, {history.joins_without_answer} without an "
           f"answer, at most {sampler.highest} active in {sampler.samples} samples")


class BulkJoiner(threading.Thread):
    """Joins lists of visitors, one after the other, by the admin API. Repeats each until the places are known."""

    def __init__(self, system: System, number: int, seed: int, history: History, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._random = random.Random(f"{seed}/bulk/{number}")
        self._admins = [Admin(program) for program in system.of("worker")]
        self._number, self._history, self._stop_asked = number, history, stop
        self._generation = int(system.store.hash(system.key("door", "state"))["generation"])
        self.deadline = float("inf")
        self.lists, self.repeats = 0, 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set() and self.lists < LISTS:
                self._join_list([f"bulk-{self._number}-{self.lists}-{i}" for i in range(IN_LIST)])
                self.lists += 1
        except BaseException as error:  # noqa: B036 - handed to the test, which fails with it
            self.error = error
        finally:
            for admin in self._admins:
                admin.close()

    def _join_list(self, names: list[str]) -> None:
        sent = time.time()
        places = self._places(names)
        for name, place in zip(names, places):
            self._history.stays.append(Stay(name, place, self._generation, sent, time.time(), end="unclaimed"))
        again = self._places(names)
        assert again == places, f"asked again, they have other places: {places}, {again}"

    def _places(self, names: list[str]) -> list[int]:
        body = {"visitors": [{"visitor": name, "lane": LANES[i % 2]} for i, name in enumerate(names)]}
        while time.monotonic() < self.deadline:
            try:
                answer = self._random.choice(self._admins).call("POST", "queues/door/joins", body)
            except CONNECTION_TROUBLE:
                answer = None
            if answer is not None and answer.status == 200:
                told = answer.json["visitors"]
                assert [one["visitor"] for one in told] == names, told
                assert [one["seq"] for one in told] == sorted({one["seq"] for one in told}), f"not in the order of the list: {told}"
                return [LANES.index(one["lane"]) * LANE + one["seq"] for one in told]
            assert answer is None or answer.status in (202, 503), f"{answer.status}: {answer.body[:300]!r}"
            self.repeats += 1
            time.sleep(self._random.uniform(0.05, 0.2))  # a caller's own pace
        raise AssertionError("no places before the end of the test")


@pytest.mark.long(seconds=20)
def test_bulk_joins_while_dispatchers_and_workers_are_killed(start, figure):
    """Each visitor of a list has one place, in the order of the list, however often the list is sent."""
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={seed}")
    capacity = 4 * IN_LIST
    system = start({"door": {"capacity": capacity} | CALM}, workers=2, dispatchers=2, prepare=admin_file,
                   settings={"worker": {"processes": 2}, "retention": {"events_entries": 1000000}})
    system.expect(r"role=worker .*ended by signal 9 \(Killed\)")
    wait_until(lambda: "generation" in system.store.hash(system.key("door", "state")), PATIENCE, "there is a queue")
    history, stop = History(), threading.Event()
    joiners = [BulkJoiner(system, i, seed, history, stop) for i in range(2)]
    supervisor = Supervisor(system, random.Random(seed), ("worker", "dispatcher"))
    for joiner in joiners:
        joiner.start()
    try:
        supervisor.work(8)
        wait_until(lambda: all(joiner.lists >= 2 or not joiner.is_alive() for joiner in joiners), PATIENCE, "lists are joined")
    finally:
        end_visits(stop, joiners, history)
    conclude(system, "door", capacity, joiners, history, STALENESS, f"TELLERLINE_SEED={seed}")
    assert system.numbers("door")["joined"] == len(history.stays) == IN_LIST * sum(joiner.lists for joiner in joiners)
    figure(f"seed {seed}: {supervisor.kills}, {len(history.stays)} places, {sum(joiner.repeats for joiner in joiners)} repeats")


class Newcomer(Actor):
    """May find that the line takes no one else."""
    refused = 0

    def _enter(self) -> Answer:
        answer = super()._enter()
        if answer.status == 403:
            self.refused += 1
            self._pause(0.05, 0.2)
        return answer


class Slow(Visits):
    """Visitors who ask for more time to claim, once they are called. Half of them then claim."""

    def __init__(self, system: System, history: History, stop: threading.Event) -> None:
        super().__init__(stop)
        self._system, self._history = system, history
        self.deadline = float("inf")  # of its own: it waits for one answer at most
        self.extended = 0

    def _visit(self) -> None:
        try:
            visitor, stay = enter(self._system, self._history)
        except AssertionError as error:
            assert str(error).startswith(("403", "503")), error
            self._stop_asked.wait(0.1)
            return

        def asked() -> str | None:
            answer = visitor.client.post(f"{visitor.path}/extend", ticket=visitor.ticket)
            assert answer.status in (200, 409, 503), f"extend: {answer.status} {answer.body[:300]!r}"
            view = answer.json if answer.status == 200 else {"status": "waiting"}
            return view.get("end_reason", view["status"]) if view["status"] != "waiting" else None

        status = wait_until(asked, PATIENCE, "is called", every=0.05)
        if status != "active":
            stay.end = status
            return
        self.extended += 1
        if self.extended % 2:
            stay.end = "unclaimed"
            return
        visitor.renew()
        stay.end, stay.ended_at = visitor.complete()["status"], time.time()


@pytest.mark.long(seconds=25)
def test_a_line_drains_and_sessions_are_extended_while_programs_are_killed(start, figure):
    """No one joins after `drain` has answered, all who wait are served, and the line goes on after `open`."""
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={seed}")
    claim = f"{patient(5):.0f}s"
    queue = {"capacity": CAPACITY, "session_ttl": "60s", "claim_ttl": claim, "waiting_ttl": "5m"}
    system = start({"door": queue}, dispatchers=2, admitters=2, expirers=2,
                   settings={"http": {"join_wait": "1s"}, "retention": {"events_entries": 1000000}})
    history, stop = History(), threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    newcomers = [Newcomer(i, seed, ports, "door", history, stop, float("inf")) for i in range(ACTORS)]
    slow = [Slow(system, history, stop) for _ in range(2)]
    supervisor = Supervisor(system, random.Random(seed), ("dispatcher", "admitter", "expirer"))

    def mode(command: str) -> float:
        done = system.ctl("queue", command, "door")
        assert done.returncode == 0, done.stdout + done.stderr
        return time.time()

    def killed_until(condition: Callable[[], bool], what: str) -> None:
        wait_until(lambda: supervisor.work(sum(supervisor.kills.values()) + 1) or condition(), PATIENCE, what)

    for thread in (*newcomers, *slow):
        thread.start()
    try:
        killed_until(lambda: len(history.stays) > 2 * ACTORS and any(one.extended for one in slow), "visitors come and go")
        for dispatcher in system.of("dispatcher"):
            dispatcher.kill()
        on_its_way = system.client().post("/v1/queues/door/join")
        assert on_its_way.status == 202, on_its_way.body
        history.unanswered()
        shut = mode("drain")
        for dispatcher in system.of("dispatcher"):
            dispatcher.start()
        killed_until(lambda: system.waiting("door") == 0 and sum(one.refused for one in newcomers) > ACTORS, "it is drained")
        reopened = time.time()
        mode("open")
        there = len(history.stays)
        killed_until(lambda: len(history.stays) > there + ACTORS, "visitors join again")
    finally:
        end_visits(stop, (*newcomers, *slow), history)
    told = [text for text in history.oddities if text.startswith("join: 403") and "draining" in text]
    for newcomer in newcomers:
        newcomer.join()
    history.oddities = [text for text in history.oddities if not (text.startswith("join: 403") and "draining" in text)]
    conclude(system, "door", CAPACITY, [*newcomers, *slow], history, STALENESS, f"TELLERLINE_SEED={seed}")
    late = [place for step in system.steps("door") if shut < step.time_ms / 1000 < reopened for place in step.joined]
    assert told and not late, f"joined a line that drains: {late}"
    figure(f"seed {seed}: {supervisor.kills}, {len(history.stays)} acknowledged joins, {len(told)} refused, "
           f"{sum(one.extended for one in slow)} extended")


def test_the_admin_process_is_killed_before_it_listens(start):
    """It is started again, like any other process of the worker: its address is not in use, it was killed."""
    system = start({"bank": {"capacity": 1}})
    system.expect(r"was ended by signal 9")
    worker = system.of("worker")[0]

    def started() -> list[int]:
        children = worker.children()
        return children if len(children) == 2 else []

    def killed_before_it_listened() -> bool:
        """Whether we were in time depends on the machine; that it comes back does not."""
        worker.stop()
        said = len(worker.text())
        worker.start()
        admin = max(wait_until(started, PATIENCE, "both processes are started", every=0.001))
        os.kill(admin, signal.SIGKILL)
        wait_until(lambda: f"worker.admin (process {admin}) was ended by signal 9" in worker.text(), PATIENCE, "it is missed")
        worker.wait_ready()
        return worker.text()[said:].count("admin listener on") == 1

    wait_until(killed_before_it_listened, PATIENCE, "it is killed before it listens")
