# SPDX-License-Identifier: Apache-2.0
"""Faults of every kind, while visitors come and go: chosen by a seed, one after the other or two at once."""
from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterable
from typing import Any

from actors import Actor
from archived import check_archive, wait_opened
from families import descendants
from history import History, Loss, Rate, check
from postgres_server import PostgresServer
from redis_server import RedisError, RedisGone
from tellerline import PATIENCE, System
from waiting import patient, wait_until

#: A worker may be this far behind (seconds) during and after a fault.
STALENESS = 8.0
#: What the operator sets before the faults, and is in force after them. The files say something else.
MARK = "reopen.margin=37%"
#: What programs may say of these faults.
TROUBLE = (r"kind=(connect|timeout|loading|readonly|misconf|oom|nogroup|store|stale|noqueue|protocol|order)\b",
           r"role=worker .*ended by signal 9 \(Killed\)", r"(poison|aside|unreadable)")

#: Nobody is there any more to claim or to end these sessions: they expire now, not after claim_ttl each.
TIME_IS_OVER = """
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
for _, visitor in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], ms, '+inf')) do
    redis.call('ZADD', KEYS[1], 'XX', string.format('%.0f', ms), visitor)
end
"""


class Faults:
    """Does harm to a system. Each fault ends before its function returns, and tells the history what it explains."""

    def __init__(self, system: System, queue: str, history: History, chance: random.Random) -> None:
        self._system, self._queue, self._history, self._random = system, queue, history, chance
        self.done: dict[str, int] = {}
        self.postgres: PostgresServer | None = None  # of the archive

    def work(self, kinds: list[str], rounds: int) -> None:
        """Each kind once in a round, in an order of chance."""
        for _ in range(rounds):
            for kind in self._random.sample(kinds, len(kinds)):
                self._do(kind)

    def soak(self, kinds: list[str], seconds: float) -> None:
        """Kinds by chance until the time is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._do(self._random.choice(kinds))

    def _do(self, kind: str) -> None:
        self.done[kind] = self.done.get(kind, 0) + 1
        getattr(self, kind)()
        time.sleep(self._random.uniform(0, 1))  # at a random moment
        for program in self._system.programs:
            assert program.running, f"{program.name} ended by itself:\n{program.tail()}"

    # ---- programs ----

    def kill(self) -> None:
        programs = self._random.sample(self._system.programs, self._random.choice((1, 1, 2)))
        for program in programs:
            program.kill()
        time.sleep(self._random.uniform(0, 1))
        for program in programs:
            program.start()

    def kill_child(self) -> None:
        children = self._random.choice(self._system.of("worker")).children()
        try:
            os.kill(self._random.choice(children), signal.SIGKILL)
        except (ProcessLookupError, IndexError):
            pass

    def freeze(self) -> None:
        """Longer than a lease lasts."""
        program = self._random.choice(self._system.programs)
        program.send(signal.SIGSTOP)
        time.sleep(self._random.uniform(0.1, 3))
        program.send(signal.SIGCONT)

    # ---- the store, which keeps all it had ----

    def store_killed(self) -> None:
        """With appendfsync always nothing is lost."""
        self._system.redis.kill()
        self._history.restarts += 1
        self._start_store()

    def store_frozen(self) -> None:
        self._system.redis.send(signal.SIGSTOP)
        time.sleep(self._random.uniform(0.1, 2))
        self._system.redis.send(signal.SIGCONT)

    def connections_cut(self) -> None:
        self._command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def store_full(self) -> None:
        self._command("CONFIG", "SET", "maxmemory", "1")
        time.sleep(self._random.uniform(0.1, 1.5))
        self._command("CONFIG", "SET", "maxmemory", "0")

    def disk_full(self) -> None:
        """With appendfsync always Redis ends at the first write that finds no room, also after each start; with everysec it
        refuses what would write, from the second one on."""
        redis = self._system.redis
        redis.fill_disk()
        wait_until(redis.found_no_room, PATIENCE, "Redis finds no room")
        until = time.monotonic() + self._random.uniform(0, 1.5)
        while time.monotonic() < until:
            if not redis.running:
                self._history.restarts += 1
                redis.kill()  # takes its socket away
                self._start_store()
                redis.fill_disk()
            time.sleep(0.05)
        redis.free_disk()
        # A write that found no room a moment ago may still end it.
        wait_until(lambda: not redis.running or redis.takes_writes(), PATIENCE, "Redis has room, or has ended")
        if not redis.running:
            self._history.restarts += 1
            redis.kill()
            self._start_store()

    def store_demoted(self) -> None:
        self._history.restarts += 1
        self._command("REPLICAOF", "127.0.0.1", "1")
        time.sleep(self._random.uniform(0.1, 1.5))
        self._command("REPLICAOF", "NO", "ONE")

    def poison(self) -> None:
        payload = self._random.choice((b"\xc1", b"", b"\x91" * 5000, b"\x96\x01\xa1x\x01\0\0\xdd\xff\xff\xff\xff", bytes(300000)))
        self._history.poisoned += self._command("XADD", self._system.key(self._queue, "ingest"), "*", "d", payload)

    # ---- the store forgets ----

    def tail_lost(self) -> None:
        """The append-only file ends earlier than what was answered."""
        size, since = self._system.redis.history(), time.time()
        time.sleep(self._random.uniform(0.05, 0.8))
        self._system.redis.kill()
        self._system.redis.lose_tail(size)
        self._start_store(Loss(since, 0.0))

    def emptied(self) -> None:
        since = time.time()
        self._system.redis.kill()
        shutil.rmtree(self._system.redis.directory / "appendonlydir")
        self._start_store(Loss(since, 0.0, True))

    def flushed(self) -> None:
        since = time.time()
        self._command("FLUSHALL")
        self._history.losses.append(Loss(since, time.time(), True))

    # ---- PostgreSQL ----

    def postgres_killed(self) -> None:
        assert self.postgres
        self.postgres.kill()
        time.sleep(self._random.uniform(0, 2))
        self.postgres.start()

    def postgres_cut(self) -> None:
        """The connections of all programs."""
        assert self.postgres
        self.postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tellerline%'")

    def postgres_frozen(self) -> None:
        assert self.postgres
        pids = [self.postgres.pid, *descendants(self.postgres.pid)]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if number == signal.SIGSTOP:
                time.sleep(self._random.uniform(0.1, 3))

    # ---- how ----

    def _start_store(self, loss: Loss | None = None) -> None:
        time.sleep(self._random.uniform(0, 1))
        self._system.forget_store()
        if loss is not None:  # known before anyone can notice
            self._history.losses.append(loss._replace(until=float("inf")))
        self._system.redis.start()
        if loss is not None:
            # Until programs have connected again (redis.timeout, and the longest pause between tries).
            self._history.losses[-1] = loss._replace(until=time.time() + STALENESS)

    def _command(self, *args: str | bytes) -> bool:
        try:
            self._system.store.command(*args)
        except (RedisError, RedisGone):
            self._system.forget_store()
            return False
        return True


def end_visits(stop: threading.Event, crowd: Iterable[Any], history: History) -> None:
    """Tells the crowd to stop. Each ends the visit that it is at, behind places whose joins got no answer: they are never
    claimed, and each that was taken keeps a place for claim_ttl."""
    stop.set()
    for one in crowd:
        one.deadline = time.monotonic() + patient(120 + 12 * min(history.joins_without_answer, 20))


def conclude(system: System, queue: str, capacity: int | None, crowd: list[Any], history: History, staleness: float,
             choices: str, rate: Rate | None = None, overbook: int | None = None) -> None:
    """The crowd (threads like Actor) was told to stop: the line drains, and the whole history is checked. A failure names
    the choices that repeat the run. staleness: on a machine that is not slow (seconds)."""
    for program in system.programs:
        program.wait_ready()
    try:
        began = time.monotonic()
        for actor in crowd:
            actor.join()
            assert actor.error is None, actor.error
        print(f"{time.monotonic() - began:.1f} s until all visitors are done")
        history.cut_short = time.time()

        def drained() -> bool:
            # Rates and overbooking have rules for it, and an archive finds what is changed by hand.
            if rate is None and overbook is None and not history.archived:
                system.store.command("EVAL", TIME_IS_OVER, 1, system.key(queue, "active"))
            return system.waiting(queue) == system.active(queue) == 0

        # Places whose client got no answer are never claimed and expire, some at a time.
        patience = 90 + 10 * history.joins_without_answer
        wait_until(drained, patience, "the line drains to empty", every=0.1)
        check(history, system.steps(queue), capacity, system.final(queue), patient(staleness), one_clock=True, rate=rate,
              overbook=overbook)
    except AssertionError as error:
        raise AssertionError(f"{error} ({choices})") from error


def live_through(system: System, queue: str, capacity: int, seed: int, kinds: list[str], rounds: int = 1,
                 seconds: float | None = None, actors: int = 12, kind_of_faults: type[Faults] = Faults, least: int = 10,
                 postgres: PostgresServer | None = None) -> str:
    """Visitors come and go under these faults, each once in a round, or by chance for so long; then the line drains, and the
    whole history is checked, and the archive in this PostgreSQL. At least so many visitors join: fewer prove nothing."""
    for pattern in TROUBLE:
        system.expect(pattern)
    history, stop, chance = History(archived=postgres is not None), threading.Event(), random.Random(seed)
    ports = [program.http_port for program in system.of("worker")]
    crowd = [Actor(i, seed, ports, queue, history, stop, float("inf"), served=(0.0, 0.4))
             for i in range(actors)]
    faults = kind_of_faults(system, queue, history, chance)
    faults.postgres = postgres
    if postgres is not None:
        wait_opened(system, queue)
    began = time.monotonic()
    for actor in crowd:
        actor.start()
    try:
        # A change just before the store forgets may be missed. Joins that were answered later show that workers know it.
        system.set(queue, MARK)
        joined = len(history.stays)
        wait_until(lambda: len(history.stays) >= joined + 4, PATIENCE, "joins are answered after the change")
        if seconds is not None:
            faults.soak(kinds, seconds)
        else:
            faults.work(kinds, rounds)
        # How many come in that time depends on the machine.
        wait_until(lambda: len(history.stays) >= least or not any(actor.is_alive() for actor in crowd), 90,
                   f"{least} visitors have joined")
    finally:
        end_visits(stop, crowd, history)
    print(f"{time.monotonic() - began:.1f} s of faults and visitors")
    conclude(system, queue, capacity, crowd, history, STALENESS, f"seed {seed}, {faults.done}")
    name, value = MARK.removesuffix("%").split("=")
    assert system.store.hash(system.key(queue, "config"))[name] == value, f"not in force any more (seed {seed})"
    archive = check_archive(system, postgres, {queue: history}) if postgres is not None else "no archive"
    return (f"seed {seed}: {faults.done}, {len(history.stays)} acknowledged joins, "
            f"{history.joins_without_answer} without an answer, {archive}")
