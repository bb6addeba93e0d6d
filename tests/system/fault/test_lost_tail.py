# SPDX-License-Identifier: Apache-2.0
"""The store comes back without the end of its history: no place has two holders, and no reader believes the lost part."""
from __future__ import annotations

from typing import Protocol

import pytest

import wire
from figures_of import metric
from http_client import Visitor
from redis_server import RedisServer
from sse import Ended, EventStream
from tellerline import CALM, PATIENCE, System, free_port
from test_store_trouble import PROMPT, STORE_TROUBLE, joins_again, redis_ms
from waiting import patient, wait_until

CAPACITY, LOST, ASKING = 3, 10, 3


class Loss(Protocol):
    def mark(self) -> None:
        """All that is done from now on will be lost."""

    def lose(self) -> None:
        """Loses it, and serves again."""


class TruncatedFile:
    """Kill -9, and the append-only file has lost its last entries."""

    def __init__(self, system: System) -> None:
        self._redis = system.redis
        self._history = 0

    def mark(self) -> None:
        self._history = self._redis.history()

    def lose(self) -> None:
        self._redis.kill()
        self._redis.lose_tail(self._history)
        self._redis.start()


class LaggingReplica:
    """The master dies, and a replica that lacks its last entries is promoted."""

    def __init__(self, system: System) -> None:
        self._system, self._master = system, system.redis
        folder = system.directory / "replica"
        folder.mkdir()
        self._replica = RedisServer(folder)
        self._replica.start()
        self._replica.ask("REPLICAOF", "127.0.0.1", self._master.options["port"])
        wait_until(lambda: self._replica.ask("ROLE")[3] == "connected", PATIENCE, "the replica follows")

    def mark(self) -> None:
        offset = self._master.ask("ROLE")[1]
        wait_until(lambda: self._replica.ask("ROLE")[4] >= offset, PATIENCE, "the replica has caught up")
        self._replica.ask("REPLICAOF", "127.0.0.1", "1")  # no server is there

    def lose(self) -> None:
        self._replica.ask("REPLICAOF", "NO", "ONE")
        self._master.kill()
        self._replica.take_over(self._master)
        self._system.redis = self._replica


def test_readers_find_a_stream_whose_ids_went_back(start):
    """The clock of the store was ahead, and the entries of that time are lost: ids begin below those that readers know."""
    # With everysec Redis may hold back what it writes while the disk is busy, and would forget the DEL.
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT, redis={"appendfsync": "always"})
    system.expect(STORE_TROUBLE)
    system.expect(r"cannot decode")
    events, ahead = system.key("bank", "events"), redis_ms(system) + 3600_000

    def all_read(are_ahead: bool, streak: int = 24) -> None:
        """All of so many reads in a row begin there: each role reads twice a second at least."""
        client, seen, reads = system.redis.connect(), 0, 0
        for line in client.monitor():
            if '"XREAD"' in line and events in line:
                position = int(line.rstrip('"').rsplit('"', 1)[1].partition("-")[0])
                seen, reads = (seen + 1 if (position >= ahead) == are_ahead else 0), reads + 1
                assert reads < 20 * streak, "a reader waits for entries that will not come"
                if seen == streak:
                    break
        client.close()

    system.store.command("XADD", events, f"{ahead}-0", "d", "x")
    all_read(True)
    system.store.command("DEL", events)
    system.forget_store()
    system.redis.kill()
    system.redis.start()
    all_read(False)
    system.of("worker")[0].wait_ready()
    visitor = system.join("bank")
    wait_until(visitor.is_active, PATIENCE, "called")


def rebuilt(system: System) -> list[int]:
    """How many lines each reader has loaded."""
    readers = [(program, "worker") for program in system.of("worker")] + [(system.of("expirer")[0], "expirer")]
    return [metric(program, f"tellerline_{role}_snapshots_total") for program, role in readers]


def calls(stream: EventStream) -> list[dict]:
    """The admissions that the stream told until now. The others are dropped."""
    told = []
    try:
        while True:
            event = stream.next(0.5)
            if event.kind == "admitted":
                told.append(event.json)
    except (Ended, AssertionError):
        return told
    finally:
        stream.close()


def held_places(system: System) -> dict[str, int]:
    """visitor -> place, of all who wait or are active."""
    waiting = system.store.command("ZRANGE", system.key("bank", "waiting"), "0", "-1", "WITHSCORES")
    sessions = system.store.hash(system.key("bank", "sessions"))
    return {visitor: int(float(place)) for visitor, place in zip(waiting[::2], waiting[1::2])} \
        | {visitor: int(text.split(":")[0]) for visitor, text in sessions.items()}


def answer_is_own(system: System, visitor: Visitor) -> None:
    """Who is told to be active is active in Redis, by the own name, and has no end behind them."""
    active = system.store.command("ZSCORE", system.key("bank", "active"), wire.read_ticket(visitor.ticket).visitor)
    answer = visitor.client.get(f"{visitor.path}/status", ticket=visitor.ticket)
    said = answer.json["status"] if answer.status == 200 else "none"
    assert (said == "active") == (active is not None), (said, active, visitor.ticket)


@pytest.mark.parametrize("way", [TruncatedFile, LaggingReplica])
def test_a_lost_tail_gives_no_place_to_two(start, way: type):
    """Ten joins and a completion are lost, four of them of visitors who had been there before; ten newcomers come.
    Programs and listeners stay as they are.

    Who has lost the place gets it back, ahead of the newcomers, by listening or by asking. Who has left does not."""
    system = start({"bank": {"capacity": CAPACITY} | CALM}, workers=2, settings=PROMPT,
                   redis={"appendfsync": "always", "port": str(free_port()), "bind": "127.0.0.1"})
    system.expect(STORE_TROUBLE)
    loss: Loss = way(system)  # the first replica begins another incarnation: before there is anything to forget
    old = [system.join("bank", i % 2) for i in range(2 * CAPACITY)]
    wait_until(old[CAPACITY - 1].is_active, PATIENCE, "the first are active")
    for visitor in old[:CAPACITY]:
        visitor.renew()
    again = [system.join("bank", i % 2) for i in range(4)]
    for visitor in again:  # with an end that the store remembers: of another place than the lost one
        visitor.leave()
    back = system.join("bank", 0)
    kept = wire.read_ticket(back.ticket).place
    loss.mark()
    lost = [visitor.join() for visitor in again[:2]] + [system.join("bank", i % 2) for i in range(LOST - 4)] + \
        [visitor.join() for visitor in again[2:]]
    left = system.join("bank", 0)
    left.leave()
    back.leave()
    back.join()
    assert wire.read_ticket(back.ticket).place > kept
    other = system.client(1)
    wait_until(lambda: other.get(f"{left.path}/status", ticket=left.ticket).json["status"] == "left", PATIENCE,
               "both workers know who has left")
    old[0].complete()
    wait_until(old[CAPACITY].is_active, PATIENCE, "the next is called")
    streams = [EventStream(visitor.client.port, f"{visitor.path}/events", visitor.ticket) for visitor in lost[:-ASKING]]
    before = rebuilt(system)
    loss.lose()
    system.forget_store()

    joins_again(system, system.client())
    new = [wait_until(lambda: system.join("bank", i % 2), PATIENCE, "a newcomer joins", again_on=AssertionError)
           for i in range(LOST)]
    places = [wire.read_ticket(visitor.ticket).place for visitor in old + lost + new]
    assert len(set(places)) == len(places), "a place was given to two"
    wait_until(lambda: all(now > then for now, then in zip(rebuilt(system), before)), PATIENCE,
               "workers and expirer have loaded the line again")
    wait_until(old[0].is_active, PATIENCE, "whose completion was lost is active, as Redis says")
    for visitor in old:
        answer_is_own(system, visitor)

    asking = [visitor.client.get(f"{visitor.path}/status", ticket=visitor.ticket) for visitor in lost[-ASKING:]]
    assert [(answer.status, answer.json.get("status")) for answer in asking] == [(200, "waiting")] * ASKING
    tickets = [wire.read_ticket(visitor.ticket) for visitor in lost]
    wait_until(lambda: {ticket.visitor: ticket.place for ticket in tickets}.items() <= held_places(system).items(),
               PATIENCE, "those who listen are back at their places")
    assert max(ticket.place for ticket in tickets) < min(wire.read_ticket(visitor.ticket).place for visitor in new)
    assert left.client.get(f"{left.path}/status", ticket=left.ticket).json["status"] == "left"
    assert back.status()["status"] == "waiting", "the end of the earlier place is lost, too, so it is still held"
    assert wire.read_ticket(back.ticket).place == kept
    audit = system.ctl("audit")
    assert audit.returncode == 0, audit.stdout + audit.stderr

    system.set("bank", "capacity=100")
    for visitor in lost + new:
        wait_until(visitor.is_active, PATIENCE, "all are called")
    for visitor in old + lost + new:
        answer_is_own(system, visitor)
    held = held_places(system)
    assert len(set(held.values())) == len(held), "two visitors hold one place"
    for stream, visitor in zip(streams, lost):
        ticket = wire.read_ticket(visitor.ticket)
        for view in calls(stream):
            claims = wire.read_pass(view["pass"])
            assert claims["sub"] == ticket.visitor and held.get(ticket.visitor) == ticket.place, \
                "told the admission of another"


def deadline_of(system: System, visitor: Visitor) -> int:
    """Of the session in Redis; 0: there is none."""
    return int(system.store.command("ZSCORE", system.key("bank", "active"), wire.read_ticket(visitor.ticket).visitor) or 0)


def mark_what_is_applied(system: System, visitor: Visitor, loss: TruncatedFile) -> int:
    """Returns the deadline of the session as Redis will know it: a command that is still on its way would be applied again
    after the loss, later."""
    wait_until(lambda: system.is_applied("bank"), PATIENCE, "all is applied")
    loss.mark()
    return deadline_of(system, visitor)


def opens_gate(visitor: Visitor) -> bool:
    return visitor.client.get(f"{visitor.path}/check", ticket=visitor.ticket).status == 204


@pytest.mark.parametrize("lost", ["renewals", "claim"])
def test_a_session_lasts_as_long_as_workers_remember(start, lost: str):
    """The claim or the renewals of a session are lost, and its former deadline has passed when Redis is back."""
    ttl = patient(6)
    times = {"claim_ttl": f"{ttl:.0f}s", "session_ttl": "10m"} if lost == "claim" else \
        {"claim_ttl": "10m", "session_ttl": f"{ttl:.0f}s", "session_sliding": True, "session_max": "10m"}
    system = start({"bank": {"capacity": 1} | CALM | times}, workers=2, settings=PROMPT,
                   redis={"appendfsync": "always", "port": str(free_port()), "bind": "127.0.0.1"})
    system.expect(STORE_TROUBLE)
    first, visitor = system.join("bank"), system.join("bank")
    wait_until(first.is_active, PATIENCE, "the first is active")
    first.complete()
    wait_until(lambda: deadline_of(system, visitor), PATIENCE, "the second is called")
    if lost == "renewals":
        wait_until(visitor.is_active, PATIENCE, "the second knows")
        visitor.renew()
    found = mark_what_is_applied(system, visitor, loss := TruncatedFile(system))
    wait_until(visitor.is_active, PATIENCE, "active")

    def is_past() -> bool:
        if lost == "renewals" or deadline_of(system, visitor) == found:
            visitor.renew()
        return redis_ms(system) > found

    wait_until(is_past, 2 * ttl + PATIENCE, "the deadline that Redis will know has passed", every=0.5)
    remembered = deadline_of(system, visitor)
    assert remembered > found
    before = rebuilt(system)
    loss.lose()
    system.forget_store()
    wait_until(lambda: all(now > then for now, then in zip(rebuilt(system), before)), PATIENCE, "the lines are loaded again")
    assert opens_gate(visitor)
    wait_until(lambda: deadline_of(system, visitor) >= remembered, PATIENCE, "Redis knows the later deadline",
               again_on=(OSError, ConnectionError))
    assert opens_gate(visitor)
    assert system.numbers("bank")["expired"] == 0
    audit = system.ctl("audit")
    assert audit.returncode == 0, audit.stdout + audit.stderr


def test_a_pass_lengthens_a_session_that_no_worker_remembers(start):
    """The renewals of a session are lost, and all workers are new. The gate learns of them from the pass."""
    times = {"claim_ttl": "10m", "session_ttl": "10m", "session_sliding": True, "session_max": "1h"}
    system = start({"bank": {"capacity": 1} | CALM | times}, settings=PROMPT, redis={"appendfsync": "always"})
    system.expect(STORE_TROUBLE)
    visitor = system.join("bank")
    wait_until(visitor.is_active, PATIENCE, "active")
    visitor.renew()
    found = mark_what_is_applied(system, visitor, loss := TruncatedFile(system))

    def told() -> int:
        """Until when the newest pass lasts, in whole seconds."""
        visitor.renew()
        return wire.read_pass(visitor.status()["pass"])["exp"] * 1000

    wait_until(lambda: told() > found, PATIENCE, "a pass lasts longer", every=0.3)
    later, newest = wire.read_pass(visitor.view["pass"])["exp"] * 1000, visitor.view["pass"]
    worker, dispatcher = system.of("worker")[0], system.of("dispatcher")[0]
    worker.stop()
    dispatcher.kill()  # a request that shows the pass also renews the session, and would hide what is tested
    loss.lose()
    system.forget_store()
    last = system.last_batch("bank")
    worker.start()
    gate = f"{visitor.path}/check"

    def is_told() -> bool:
        """Each request shows the pass, also once the worker has heard of the new incarnation."""
        assert system.client().get(gate, ticket=newest).status == 204
        return any(command[0] == wire.CALLED for command in system.commands_since("bank", last))

    wait_until(lambda: system.client().get(gate, ticket=newest).status == 204, PATIENCE, "the gate opens",
               again_on=(OSError, ConnectionError))
    wait_until(is_told, PATIENCE, "the store is told")
    assert deadline_of(system, visitor) == found
    dispatcher.start()
    place = wire.read_ticket(visitor.ticket).place
    wait_until(lambda: system.store.command("HGET", system.key("bank", "lost"), str(place)) == str(later), PATIENCE,
               "the store knows")
    system.store.command("ZADD", system.key("bank", "active"), "XX", redis_ms(system), wire.read_ticket(visitor.ticket).visitor)
    wait_until(lambda: deadline_of(system, visitor) == later, PATIENCE, "the session lasts as long as the pass")
    assert system.client().get(gate, ticket=newest).status == 204
    assert system.numbers("bank")["expired"] == 0
