# SPDX-License-Identifier: Apache-2.0
"""Redis is replaced by an old backup under running programs. docs/operators/redis.md says what is true afterwards."""
from __future__ import annotations

import shutil
from typing import Protocol

import pytest

import wire
from http_client import Visitor
from sse import EventStream
from tellerline import CALM, PATIENCE, System
from test_lost_tail import answer_is_own, calls, held_places, rebuilt
from test_store_trouble import PROMPT, STORE_TROUBLE, joins_again, redis_ms
from waiting import patient, wait_until

CAPACITY, IN_BACKUP, LATER = 3, 12, 10


class Backup(Protocol):
    def take(self) -> None:
        """Copies what Redis has now."""

    def restore(self) -> None:
        """Starts Redis with the copy."""


class CopyOfAppendOnlyFiles:
    def __init__(self, system: System) -> None:
        self._redis = system.redis
        self._files = system.redis.directory / "appendonlydir"
        self._copy = system.redis.directory / "backup"

    def take(self) -> None:
        shutil.copytree(self._files, self._copy)

    def restore(self) -> None:
        shutil.rmtree(self._files)
        shutil.copytree(self._copy, self._files)
        self._redis.start()


class Snapshot:
    """An RDB file. Redis reads it only while it starts without append-only files."""

    def __init__(self, system: System) -> None:
        self._redis = system.redis
        self._file = system.redis.directory / "dump.rdb"
        self._copy = system.redis.directory / "backup.rdb"

    def take(self) -> None:
        self._redis.ask("SAVE")
        shutil.copy(self._file, self._copy)

    def restore(self) -> None:
        shutil.rmtree(self._redis.directory / "appendonlydir")
        shutil.copy(self._copy, self._file)
        self._redis.start({"appendonly": "no"})
        self._redis.ask("CONFIG", "SET", "appendonly", "yes")


def status_of(visitor: Visitor) -> str:
    answer = visitor.client.get(f"{visitor.path}/status", ticket=visitor.ticket)
    return answer.json["status"] if answer.status == 200 else f"{answer.status} {answer.json['type']}"


@pytest.mark.parametrize("way", [CopyOfAppendOnlyFiles, Snapshot])
def test_an_old_backup_is_restored(start, way: type):
    """After the backup ten visitors joined, one completed, one was called and one left. Listeners stay as they are."""
    system = start({"bank": {"capacity": CAPACITY} | CALM}, workers=2, settings=PROMPT, redis={"appendfsync": "always"})
    system.expect(STORE_TROUBLE)
    old = [system.join("bank", i % 2) for i in range(IN_BACKUP)]
    wait_until(old[CAPACITY - 1].is_active, PATIENCE, "the first are active")
    for visitor in old[:CAPACITY]:
        visitor.renew()
    backup: Backup = way(system)
    before = held_places(system)
    backup.take()

    later = [system.join("bank", i % 2) for i in range(LATER)]
    done, called, left = old[0], old[CAPACITY], old[-1]
    done.complete()
    wait_until(called.is_active, PATIENCE, "the next is called")
    left.leave()
    system.set("bank", "claim_ttl=9m")
    wait_until(lambda: "settings changed" in system.of("worker")[0].text(), PATIENCE, "a worker knows them")
    streams = [EventStream(visitor.client.port, f"{visitor.path}/events", visitor.ticket) for visitor in old[4:] + later]
    snapshots, seq = rebuilt(system), system.numbers("bank")["seq"]
    system.redis.kill()
    backup.restore()
    system.forget_store()

    joins_again(system, system.client())
    new = [wait_until(lambda: system.join("bank", i % 2), PATIENCE, "a newcomer joins", again_on=AssertionError)
           for i in range(LATER)]
    wait_until(lambda: all(now > then for now, then in zip(rebuilt(system), snapshots)), PATIENCE,
               "workers and expirer have loaded the line again")
    # Who was in the backup stands as then, also who has completed, left, or was called since.
    assert before.items() <= held_places(system).items()
    wait_until(done.is_active, PATIENCE, "the session of the backup goes on")
    wait_until(lambda: (status_of(called), status_of(left)) == ("waiting", "waiting"), PATIENCE, "they wait again")
    # Newcomers stand behind every place that was ever given out.
    places = [wire.read_ticket(visitor.ticket).place for visitor in old + later + new]
    assert len(set(places)) == len(places), "a place was given to two"
    assert min(place % wire.LANE for place in places[-LATER:]) > seq
    wait_until(lambda: system.store.hash(system.key("bank", "config"))["claim_ttl"] == "540000", PATIENCE,
               "settings are those in force before")
    audit = system.ctl("audit")
    assert audit.returncode == 0, audit.stdout + audit.stderr

    # All are served, in order, and nobody hears of another's place.
    done.complete()
    system.set("bank", "capacity=100")
    for visitor in old[1:] + later + new:
        wait_until(visitor.is_active, PATIENCE, "all are called")
    for visitor in old + later + new:
        answer_is_own(system, visitor)
    held = held_places(system)
    assert len(set(held.values())) == len(held), "two visitors hold one place"
    for stream, visitor in zip(streams, old[4:] + later):
        ticket = wire.read_ticket(visitor.ticket)
        for view in calls(stream):
            assert wire.read_pass(view["pass"])["sub"] == ticket.visitor, "told the admission of another"
            assert held.get(ticket.visitor) == ticket.place, "told an admission that is not so"


@pytest.mark.parametrize("workers_restart", [False, True], ids=["workers-live", "workers-restart"])
def test_a_snapshot_older_than_any_sign_of_life(start, workers_restart):
    """Who was there all the time is in no record of presence of the snapshot's age, and is not taken for absent. Who is
    called was there, too."""
    ttl = min(patient(3), 10)
    system = start({"bank": {"capacity": CAPACITY, "session_ttl": "10m", "claim_ttl": "10m", "waiting_ttl": f"{ttl:.0f}s"}},
                   workers=2, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    visitors = [system.join("bank", i % 2) for i in range(IN_BACKUP)]
    wait_until(visitors[CAPACITY - 1].is_active, PATIENCE, "the first are active")
    for visitor in visitors[:CAPACITY]:
        visitor.renew()
    backup, waiting = Snapshot(system), visitors[CAPACITY:]

    def listen() -> list[EventStream]:
        return [EventStream(visitor.client.port, f"{visitor.path}/events", visitor.ticket) for visitor in waiting]

    def all_wait() -> None:
        for visitor in waiting:
            view = visitor.status()
            assert view["status"] == "waiting", view

    def time_passes(many_ttl: float) -> None:
        since = redis_ms(system)
        wait_until(lambda: redis_ms(system) > since + 1000 * many_ttl * ttl, 4 * PATIENCE, "time passes", every=0.1)

    streams, before = listen(), held_places(system)
    backup.take()
    time_passes(1.5)
    all_wait()
    if workers_restart:
        for worker in system.of("worker"):
            worker.kill()
    system.redis.kill()
    backup.restore()
    system.forget_store()
    if workers_restart:
        for worker in system.of("worker"):
            worker.start()
        for worker in system.of("worker"):
            worker.wait_ready()
        for visitor, stream in zip(waiting, streams):
            stream.close()
        for visitor, client in zip(visitors, [system.client(i % 2) for i in range(IN_BACKUP)]):
            visitor.client = client
        streams = listen()
    joins_again(system, system.client())
    time_passes(2.5)
    all_wait()
    assert before.items() <= held_places(system).items()
    visitors[0].complete()
    wait_until(waiting[0].is_active, PATIENCE, "the next is called")
    for visitor in visitors[1:]:
        answer_is_own(system, visitor)
    for stream in streams:
        stream.close()
