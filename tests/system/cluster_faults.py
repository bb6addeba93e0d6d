# SPDX-License-Identifier: Apache-2.0
"""Faults of a Redis Cluster, while visitors come and go in many queues. Each queue has a history of its own: only what
happened to its node explains what its visitors saw."""
from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from actors import Actor
from archived import check_archive, wait_opened
from faults import STALENESS, Faults, conclude, end_visits
from history import History, Loss
from postgres_server import PostgresServer
from redis_cluster import Node, RedisCluster, slot_of
from tellerline import System
from waiting import patient, wait_until

#: What programs may say of these faults.
TROUBLE = (r"kind=(connect|timeout|loading|readonly|misconf|nogroup|store|stale|noqueue|moved|cluster)\b",
           r"role=worker .*ended by signal 9 \(Killed\)")


class ClusterFaults(Faults):
    """Does harm to the cluster of a System, and tells the histories of the queues that it concerns."""

    def __init__(self, system: System, cluster: RedisCluster, histories: dict[str, History], chance: random.Random,
                 replicated: bool) -> None:
        """replicated: visitors are told only what a replica has, so a failover that happens by itself loses nothing of it."""
        super().__init__(system, "", History(), chance)
        self._cluster, self.histories, self._replicated = cluster, histories, replicated

    def master_killed(self) -> None:
        """Its replica takes its place."""
        with self._failing_over(may_lose=not self._replicated) as master:
            replica = self._cluster.replica_of(master)
            master.kill()
            self._cluster.wait_promoted(replica)
            self._cluster.back_as_replica(master)

    def replica_killed(self) -> None:
        replica = self._cluster.replica_of(self._some_master())
        replica.kill()
        time.sleep(self._random.uniform(0, 1))
        replica.start()
        self._cluster.settle()

    def promoted(self) -> None:
        """By hand, and without a loss: the master waits until the replica has all."""
        with self._failing_over(may_lose=False) as master:
            self._cluster.promote(self._cluster.replica_of(master))
            self._cluster.settle()

    def promoted_behind(self) -> None:
        """The replica had missed what was last written."""
        with self._failing_over(may_lose=True) as master:
            replica = self._cluster.replica_of(master)
            replica.cut_off_from_master(master)
            time.sleep(self._random.uniform(0.05, 0.8))
            master.kill()
            replica.find_master_again()
            self._cluster.promote(replica, "TAKEOVER")
            self._cluster.back_as_replica(master)

    def node_frozen(self) -> None:
        """It may be replaced meanwhile, and learns it when it goes on."""
        with self._failing_over(may_lose=not self._replicated) as master:
            master.pause()
            time.sleep(self._random.uniform(0.1, 3))
            master.resume()
            self._cluster.settle()

    def node_emptied(self) -> None:
        """With its replica. What was there comes back from workers, visitors and the archive."""
        master, since = self._some_master(), time.time()
        concerned = self._concerned(master)
        for history in concerned:
            history.losses.append(Loss(since, float("inf"), True))
        master.ask("FLUSHALL")
        for history in concerned:
            history.losses[-1] = Loss(since, time.time(), True)

    def node_cut_off(self) -> None:
        self._some_master().try_ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def slots_moved(self) -> None:
        """Those of some queues, key by key, to another node."""
        for queue in self._random.sample(sorted(self.histories), min(3, len(self.histories))):
            target = self._random.choice(self._cluster.masters())
            self._moved(queue, target)
        self._cluster.settle()

    def node_comes_and_goes(self) -> None:
        """A new master joins, gets some queues, gives them back and is removed."""
        queues = self._random.sample(sorted(self.histories), min(3, len(self.histories)))
        homes = {queue: self._cluster.master_of(f"{{{queue}}}") for queue in queues}
        new = self._cluster.add_master()
        for queue in queues:
            self._moved(queue, new)
        self._cluster.settle()
        time.sleep(self._random.uniform(0.5, 1.5))
        for queue in queues:
            self._moved(queue, homes[queue])
        self._cluster.settle()
        self._cluster.remove(new)

    def _moved(self, queue: str, target: Node) -> None:
        self.histories[queue].restarts += 1
        self._cluster.move_slots([slot_of(f"{{{queue}}}")], target, batch=self._random.choice((1, 10)))

    def _some_master(self) -> Node:
        return self._random.choice(self._cluster.masters())

    def _concerned(self, master: Node) -> list[History]:
        queues = self._cluster.queues_by_master(self.histories).get(master, [])
        return [self.histories[queue] for queue in queues]

    @contextmanager
    def _failing_over(self, may_lose: bool) -> Iterator[Node]:
        """A master, of whose queues the histories learn what happens before anyone can notice it."""
        master, since = self._some_master(), time.time()
        concerned = self._concerned(master)
        for history in concerned:
            history.restarts += 2  # the old one may answer again before it knows that it was replaced
            if may_lose:
                history.losses.append(Loss(since, float("inf")))
        yield master
        for history in concerned if may_lose else []:
            history.losses[-1] = Loss(since, time.time() + STALENESS)


def live_through(system: System, cluster: RedisCluster, queues: list[str], capacity: int, seed: int,
                 harm: Callable[[ClusterFaults], None], replicated: bool, actors: int = 3, least: int = 10,
                 postgres: PostgresServer | None = None) -> str:
    """So many visitors at a time come and go in each queue while harm is done; then each line drains, and each history is
    checked, and the archive in this PostgreSQL. At least so many join each queue: fewer prove nothing."""
    for pattern in TROUBLE:
        system.expect(pattern)
    chance, stop = random.Random(seed), threading.Event()
    histories = {queue: History(archived=postgres is not None) for queue in queues}
    ports = [program.http_port for program in system.of("worker")]
    crowds = {queue: [Actor(i, seed, ports, queue, histories[queue], stop, float("inf"), served=(0.0, 0.4))
                      for i in range(actors)] for queue in queues}
    everyone = [actor for crowd in crowds.values() for actor in crowd]
    faults = ClusterFaults(system, cluster, histories, chance, replicated)
    faults.postgres = postgres

    def joined(queue: str) -> bool:
        return len(histories[queue].stays) >= least or not all(actor.is_alive() for actor in crowds[queue])

    for queue in queues if postgres is not None else []:
        wait_opened(system, queue)
    for actor in everyone:
        actor.start()
    try:
        for queue in queues:
            wait_until(lambda q=queue: histories[q].stays, 40, f"{queue} is served")
        harm(faults)
        for queue in queues:
            wait_until(lambda q=queue: joined(q), 90, f"{least} visitors have joined {queue}")
    finally:
        stop.set()
        for queue, crowd in crowds.items():
            end_visits(stop, crowd, histories[queue])
    for queue, crowd in crowds.items():
        conclude(system, queue, capacity, crowd, histories[queue], STALENESS, f"{queue}, seed {seed}, {faults.done}")
    archive = check_archive(system, postgres, histories) if postgres is not None else "no archive"
    places = sum(len(history.stays) for history in histories.values())
    unknown = sum(history.joins_without_answer for history in histories.values())
    return (f"seed {seed}: {faults.done}, {places} acknowledged joins in {len(queues)} queues, {unknown} without an answer, "
            f"{archive}")
