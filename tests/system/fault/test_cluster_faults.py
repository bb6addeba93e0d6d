# SPDX-License-Identifier: Apache-2.0
"""Random faults of a Redis Cluster while visitors come and go in several queues; the history checker decides.

TELLERLINE_SEED=N repeats the choices of a run. `tests/run --soak SECONDS` runs all faults of nodes at once for so long.
"""
from __future__ import annotations

import os
import random
import time
from contextlib import closing

import pytest

from cluster_faults import ClusterFaults, live_through
from network import Link, Namespace, can_make_namespaces
from postgres_server import PostgresServer
from redis_cluster import RedisCluster, queues_everywhere, slot_of
from tellerline import PATIENCE, System
from waiting import patient, wait_until

pytestmark = [pytest.mark.together(seconds=85), pytest.mark.sanitized]

CAPACITY = 4
#: A place whose client got no answer is called and never claimed. A visitor who is there claims as soon as a worker says so,
#: which may have to wait for a node or two.
QUEUE = {"capacity": CAPACITY, "session_ttl": "60s", "claim_ttl": f"{patient(20):.0f}s", "waiting_ttl": "60s",
         "recovery_window": "5s"}
SETTINGS = {"http": {"join_wait": "1s"}, "worker": {"processes": 2}, "retention": {"events_entries": 1000000}}
MEMORY, REPLICATED = "memory", "replicated"  # redis.durability

#: Nothing that was told is lost by these, if a replica has it.
KEPT = ["master_killed", "replica_killed", "promoted", "node_frozen", "node_cut_off", "slots_moved", "node_comes_and_goes"]
PROGRAMS = ["kill", "kill_child", "freeze"]
POSTGRES = ["postgres_killed", "postgres_cut", "postgres_frozen"]


def visited(start, cluster: RedisCluster, queues: list[str], durability: str, postgres: PostgresServer | None = None) -> System:
    archive = {"archive": {"url": postgres.url, "restore": "auto", "reconcile": "5s"}} if postgres else {}
    return start({name: QUEUE for name in queues}, workers=2, dispatchers=2, admitters=2, expirers=2,
                 archivers=2 if postgres else 0, prepare=cluster.prepare,
                 settings=SETTINGS | {"redis": {"timeout": "1s", "durability": durability}} | archive)


def seed() -> int:
    chosen = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={chosen}")
    return chosen


@pytest.mark.long(seconds=40)
def test_nothing_is_lost_that_a_replica_has(start, cluster, figure):
    """Each fault once, in an order of chance."""
    queues = queues_everywhere(6)
    system = visited(start, cluster, queues, REPLICATED)
    figure(live_through(system, cluster, queues, CAPACITY, seed(), lambda faults: faults.work(KEPT, 1), replicated=True))


@pytest.mark.long(seconds=20)
def test_a_replica_that_is_behind_is_promoted(start, cluster, figure):
    """What it lacks is lost, of the queues of that node alone, and no place is given twice."""
    queues = queues_everywhere(6)
    system = visited(start, cluster, queues, MEMORY)
    figure(live_through(system, cluster, queues, CAPACITY, seed(), lambda faults: faults.work(["promoted_behind"], 2),
                        replicated=False))


@pytest.mark.long(seconds=20)
@pytest.mark.parametrize("durability", [MEMORY, REPLICATED])
def test_slots_move_under_visitors(start, cluster, figure, durability):
    """Key by key, forth and back. Each queue pauses for its move, and loses nothing."""
    queues, moved = queues_everywhere(6)[:2], 0

    def reshard(faults: ClusterFaults) -> None:
        nonlocal moved
        for queue in queues:
            for target in cluster.masters():
                faults.histories[queue].restarts += 1
                moved += cluster.move_slots([slot_of(f"{{{queue}}}")], target, batch=1)
        cluster.settle()

    system = visited(start, cluster, queues, durability)
    figure(live_through(system, cluster, queues, CAPACITY, seed(), reshard, replicated=durability == REPLICATED, least=20))
    assert moved > 4 * 6, f"{moved} keys were moved"


@pytest.mark.long(seconds=25)
@pytest.mark.skipif(not can_make_namespaces(), reason="needs root and network namespaces")
def test_a_master_is_cut_off_from_the_others_and_not_from_the_programs(start, figure):
    """It is a master in its own eyes and accepts what will be lost. Visitors are told nothing of that, and go on with the
    replica that took its place."""
    with closing(Namespace()) as one, closing(Namespace()) as other:
        link, cluster = Link(one, other), RedisCluster(places=[one, *5 * [other]])
        try:
            cluster.start()
            queues = queues_everywhere(6)
            system = visited(start, cluster, queues, REPLICATED)

            def part(faults: ClusterFaults) -> None:
                cut_off = cluster.masters()[0]
                replica = cluster.replica_of(cut_off)
                for queue in cluster.queues_by_master(queues)[cut_off]:
                    faults.histories[queue].restarts += 2
                link.cut()
                cluster.wait_promoted(replica)
                wait_until(lambda: cut_off.ask("CLUSTER", "INFO").startswith("cluster_state:fail"), PATIENCE, "it knows")
                time.sleep(random.uniform(0, 1))
                link.heal()
                cluster.settle()

            figure(live_through(system, cluster, queues, CAPACITY, seed(), part, replicated=True))
            system.finish()
        finally:
            cluster.end()


@pytest.mark.long(seconds=60)
def test_an_archive_of_queues_at_each_node(start, cluster, postgres, figure):
    """It has all that happened there, and brings back the queues of a node that was emptied."""
    queues = queues_everywhere(6)
    system = visited(start, cluster, queues, REPLICATED, postgres)
    kinds = ["master_killed", "promoted", "node_frozen", "slots_moved", "kill", "postgres_killed", "node_emptied"]
    figure(live_through(system, cluster, queues, CAPACITY, seed(), lambda faults: faults.work(kinds, 1), replicated=True,
                        postgres=postgres))


@pytest.mark.alone
@pytest.mark.skipif("TELLERLINE_SOAK" not in os.environ, reason="only with tests/run --soak")
@pytest.mark.parametrize("durability, more", [(REPLICATED, []), (MEMORY, ["promoted_behind"])], ids=[REPLICATED, MEMORY])
def test_all_cluster_faults_at_once(start, cluster, figure, durability, more):
    """Thirty queues, 120 visitors at a time."""
    soak(start, cluster, figure, durability, KEPT + PROGRAMS + more)


@pytest.mark.alone
@pytest.mark.skipif("TELLERLINE_SOAK" not in os.environ, reason="only with tests/run --soak")
def test_all_cluster_faults_at_once_with_an_archive(start, cluster, postgres, figure):
    soak(start, cluster, figure, MEMORY, KEPT + PROGRAMS + POSTGRES + ["promoted_behind", "node_emptied"], postgres)


def soak(start, cluster: RedisCluster, figure, durability: str, kinds: list[str], postgres: PostgresServer | None = None) -> None:
    queues = queues_everywhere(30)
    system = visited(start, cluster, queues, durability, postgres)
    figure(live_through(system, cluster, queues, CAPACITY, seed(),
                        lambda faults: faults.soak(kinds, float(os.environ["TELLERLINE_SOAK"])),
                        replicated=durability == REPLICATED, actors=4, postgres=postgres))
