# SPDX-License-Identifier: Apache-2.0
"""redis.durability: what an acknowledged join survives."""
from __future__ import annotations

import re
import threading

import pytest

from http_client import Client
from replication import PASSWORD, Replication
from tellerline import CALM, PATIENCE, System
from waiting import patient, wait_until

STORE_TROUBLE = r"kind=(connect|timeout|loading|misconf|stale|noqueue|nogroup|store)\b"
#: Joins that are acknowledged take less time, also on a busy machine.
PROMPT = {"http": {"join_wait": f"{min(patient(4), 25):.0f}s"}, "redis": {"timeout": "1s"}}
BEFORE, DURING = 20, 6


@pytest.fixture
def replication():
    made: list[Replication] = []

    def make(replicas: int, sentinels: int) -> Replication:
        made.append(Replication(replicas, sentinels))
        return made[-1]

    yield make
    for one in made:
        one.close()


def join(port: int, acknowledged: list[str], other: list[int]) -> None:
    client = Client(port, timeout=patient(30))
    answer = client.post("/v1/queues/bank/join")
    client.close()
    if answer.status == 200:
        acknowledged.append(answer.json["visitor"])
    else:
        other.append(answer.status)


def joins(system: System, count: int) -> tuple[list[str], list[int]]:
    """At the same time. Returns the visitors who were acknowledged, and the other answers."""
    acknowledged: list[str] = []
    other: list[int] = []
    port = system.of("worker")[0].http_port
    threads = [threading.Thread(target=join, args=(port, acknowledged, other)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return acknowledged, other


def lost(system: System, visitors: list[str]) -> list[str]:
    """Who has no place in the store."""
    return [visitor for visitor in visitors
            if system.store.command("ZSCORE", system.key("bank", "waiting"), visitor) is None
            and system.store.command("ZSCORE", system.key("bank", "active"), visitor) is None]


@pytest.mark.long(seconds=15)
@pytest.mark.parametrize("durability", ["memory", "replicated"])
def test_master_lost_with_a_lagging_replica(start, replication, durability):
    """The replica is cut off, the master goes on and dies, the replica is promoted."""
    store = replication(replicas=1, sentinels=1)
    settings = PROMPT | {"redis": PROMPT["redis"] | {"durability": durability}}
    system = start({"bank": {"capacity": 1} | CALM}, settings=settings, prepare=store.prepare)
    master, replica = store.servers
    worker = system.of("worker")[0]
    early, other = joins(system, BEFORE)
    assert len(early) == BEFORE and not other
    wait_until(lambda: replica.ask("ROLE")[4] == master.ask("ROLE")[1], PATIENCE, "the replica has everything")

    replica.ask("CONFIG", "SET", "masterauth", "wrong")
    master.ask("CLIENT", "KILL", "TYPE", "REPLICA")
    wait_until(lambda: replica.ask("ROLE")[3] != "connected", PATIENCE, "the replica is cut off")
    late, other = joins(system, DURING)
    if durability == "memory":
        assert len(late) == DURING, "the master has them, so they are acknowledged"
    else:
        assert not late and set(other) <= {202, 503}, (late, other)
        wait_until(lambda: not worker.ready(), PATIENCE, "the worker cannot keep its promise")
    master.kill()
    replica.ask("CONFIG", "SET", "masterauth", PASSWORD)
    store.new_master(other_than=master)
    store.fail_over_no_more()
    assert lost(system, early) == []
    assert lost(system, late) == late, "memory: they were on the old master only"

    if durability == "replicated":
        assert not joins(system, 1)[0], "the new master has no replica"
        master.start()
        master.follow(replica)
    wait_until(lambda: joins(system, 1)[0], PATIENCE, "joins are acknowledged again")
    for program in system.programs:
        program.wait_ready()
    assert lost(system, early) == []


def has_waitaof(system: System) -> bool:
    return bool(system.store.command("COMMAND", "INFO", "WAITAOF")[0])


def restart_with(system: System, durability: str) -> None:
    text = re.sub(r"redis:\n(  durability: .*\n)?", f"redis:\n  durability: {durability}\n", system.config.read_text())
    system.config.write_text(text)
    worker = system.of("worker")[0]
    worker.stop()
    worker.start()


def test_fsync_is_refused_by_a_server_that_lacks_it(start):
    """Before Redis 7.2 there is no WAITAOF: the worker says so and takes nothing."""
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT)
    if has_waitaof(system):
        pytest.skip("this redis-server has WAITAOF")
    system.expect(r"redis\.durability")
    worker = system.of("worker")[0]
    restart_with(system, "fsync")
    wait_until(lambda: "needs WAITAOF, which this store lacks" in worker.text(), PATIENCE, "the log names the reason")
    assert not worker.ready()
    restart_with(system, "memory")
    worker.wait_ready()


def test_fsync_is_waited_for(start):
    """Nothing is acknowledged until the store has written it to its disk."""
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT, redis={"appendfsync": "always"})
    if not has_waitaof(system):
        pytest.skip("this redis-server has no WAITAOF: it takes Redis 7.2 or Valkey 8")
    system.expect(STORE_TROUBLE)
    restart_with(system, "fsync")
    system.of("worker")[0].wait_ready()
    acknowledged, other = joins(system, BEFORE)
    assert len(acknowledged) == BEFORE and not other
    system.store.command("CONFIG", "SET", "appendfsync", "no")
    late, other = joins(system, DURING)
    assert not late and set(other) <= {202, 503}, (late, other)
    system.store.command("CONFIG", "SET", "appendfsync", "always")
    wait_until(lambda: joins(system, 1)[0], PATIENCE, "joins are acknowledged again")
    system.redis.kill()
    system.forget_store()
    system.redis.start()
    system.of("worker")[0].wait_ready()
    assert lost(system, acknowledged) == []
