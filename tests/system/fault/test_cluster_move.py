# SPDX-License-Identifier: Apache-2.0
"""A queue moves to another node of a Redis Cluster: a long line, while visitors join it and are served in it; and one whose
master dies half way."""
from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable

import pytest

import wire
from actors import TRY_AGAIN, Visits
from cluster_faults import TROUBLE
from history import check_order
from http_client import CONNECTION_TROUBLE, Answer, Client, Visitor
from redis_cluster import RedisCluster, queues_everywhere, slot_of
from tellerline import CALM, PATIENCE, System
from waiting import patient, wait_until

pytestmark = [pytest.mark.together(seconds=40)]

#: Inside, of whom none comes back; and who waits. A thousand in an entry of the ingest stream.
INSIDE, WAITING, BATCH = 20_000, 200_000, 1000
AT_ONCE = 4
#: How long the queue may rest for a move, of which the worker waits at most 1 s before it reads so long a line (seconds).
RESTS = 10.0


def fill(system: System, queue: str, first: int, count: int) -> None:
    """Visitors of another worker, numbered from `first`. Returns when all have a place."""
    before = system.numbers(queue)["joined"]
    for number in range(first, first + count, BATCH):
        joins = [[wire.JOIN, f"{visitor:022d}", 1] for visitor in range(number, number + BATCH)]
        system.store.command("XADD", system.key(queue, "ingest"), "*", "d", wire.pack([1, "fill", number + 1, 0, 0, joins]))
    wait_until(lambda: system.numbers(queue)["joined"] == before + count, PATIENCE, f"{count} visitors have a place")


class Known(Visits):
    """Visitors at the head of the line, who are served one after the other."""

    def __init__(self, stop: threading.Event, visitors: list[Visitor]) -> None:
        super().__init__(stop, "known")
        self._left, self.served = list(visitors), 0

    def _visit(self) -> None:
        visitor = self._left[0]
        answer = self._ask(visitor, "GET", "status")
        if answer is not None and answer.json["status"] == "active":
            answer = self._ask(visitor, "POST", "complete")
        if answer is not None and answer.json["status"] == "completed":
            self._left.pop(0)
            self.served += 1
        self._stop_asked.wait(0.02)

    @staticmethod
    def _ask(visitor: Visitor, method: str, verb: str) -> Answer | None:
        try:
            answer = visitor.client.request(method, f"{visitor.path}/{verb}", ticket=visitor.ticket)
        except CONNECTION_TROUBLE:
            return None
        assert answer.status == 200 or answer.status in TRY_AGAIN, answer
        return answer if answer.status == 200 else None


class Newcomers(Visits):
    """Join one after the other. Notes when each was told a place."""

    def __init__(self, stop: threading.Event, client: Client, queue: str) -> None:
        super().__init__(stop, "newcomers")
        self._client, self._queue = client, queue
        self.told: list[tuple[float, Visitor]] = []
        self.unknown = 0

    def _visit(self) -> None:
        visitor = Visitor(self._client, self._queue)
        answer = self._client.post(f"{visitor.path}/join")
        while answer.status == 202:
            visitor.ticket = answer.json["ticket"]
            self._stop_asked.wait(0.02)
            answer = self._client.get(f"{visitor.path}/status", ticket=visitor.ticket)
            if answer.status in TRY_AGAIN:
                answer = Answer(202, {}, b'{"ticket": "%b"}' % visitor.ticket.encode())
        if answer.status in TRY_AGAIN:
            self.unknown += 1
            return
        assert answer.status == 200, answer
        visitor.ticket = answer.json["ticket"]
        self.told.append((time.monotonic(), visitor))

    def rest(self, since: float) -> float:
        """The longest time in which nobody was told a place."""
        times = [since, *(when for when, _ in self.told if when >= since)]
        return max(later - earlier for earlier, later in zip(times, times[1:]))


@pytest.mark.long(seconds=40)
def test_a_long_line_moves(start, figure):
    """To the other node and back. It rests for seconds, loses nobody, and all keep their order."""
    # A node answers nobody while it sends or takes a key: for longer than its time-out, and it would count as lost.
    cluster = RedisCluster(2, 0, {"appendfsync": "everysec", "cluster-node-timeout": f"{patient(20000):.0f}"})
    try:
        cluster.start()
        (queue, _) = queues_everywhere(2, 2)
        system = start({queue: CALM | {"capacity": INSIDE + AT_ONCE}}, prepare=cluster.prepare,
                       settings={"http": {"join_wait": "1s"}, "retention": {"events_entries": 1000000}})
        for pattern in TROUBLE:
            system.expect(pattern)
        fill(system, queue, 0, INSIDE)
        wait_until(lambda: system.active(queue) == INSIDE, PATIENCE, "they are inside")
        known = [system.join(queue) for _ in range(300)]
        fill(system, queue, INSIDE, WAITING)
        stop = threading.Event()
        served, came = Known(stop, known), Newcomers(stop, system.client(), queue)
        move_forth_and_back(system, cluster, queue, (served, came), stop, figure)
        compare(system, queue, known, served, came)
        system.finish()
    finally:
        cluster.end()


def move_forth_and_back(system: System, cluster: RedisCluster, queue: str, visits: tuple[Known, Newcomers],
                        stop: threading.Event, figure: Callable[[str], None]) -> None:
    served, came = visits
    slot = slot_of(f"{{{queue}}}")
    home = cluster.master_of(f"{{{queue}}}")
    (other,) = [node for node in cluster.masters() if node is not home]
    for one in visits:
        one.start()
    try:
        for target in (other, home):
            before = served.served, len(came.told)
            wait_until(lambda b=before: served.served > b[0] + 5 and len(came.told) > b[1] + 20, PATIENCE, "visitors pass on")
            began = time.monotonic()
            keys = cluster.move_slots([slot], target)
            moved, before = time.monotonic(), (served.served, len(came.told))
            wait_until(lambda b=before: served.served > b[0] + 5 and len(came.told) > b[1] + 20, PATIENCE, "they go on there")
            figure(f"{system.waiting(queue)} waiting and {system.active(queue)} inside: {keys} keys moved in "
                   f"{moved - began:.1f} s, and nobody was told a place for {came.rest(began):.1f} s")
            assert came.rest(began) < patient(RESTS)
    finally:
        stop.set()
        for one in visits:
            one.join()
    assert served.error is None and came.error is None, (served.error, came.error)


def compare(system: System, queue: str, known: list[Visitor], served: Known, came: Newcomers) -> None:
    """Everybody has the place that they were told, in the order of their coming, and nobody was lost."""
    numbers = system.numbers(queue)
    sure = INSIDE + WAITING + len(known) + len(came.told)
    assert sure <= numbers["joined"] <= sure + came.unknown, (sure, came.unknown, numbers)
    assert numbers["completed"] == served.served, (served.served, numbers)
    assert system.active(queue) == INSIDE + AT_ONCE
    assert system.waiting(queue) == numbers["joined"] - numbers["completed"] - INSIDE - AT_ONCE
    places = [wire.read_ticket(visitor.ticket).place for _, visitor in came.told]
    assert places == sorted(set(places)), "newcomers stand in the order in which they came"
    steps = list(system.steps(queue))
    check_order(steps)
    joined = [place for step in steps for place in step.joined]
    assert len(joined) == len(set(joined)) == numbers["joined"], "each place was given once"
    ahead = INSIDE + len(known) + WAITING - numbers["completed"] - INSIDE - AT_ONCE
    for at in (0, len(places) // 2, len(places) - 1):
        wait_until(lambda visitor=came.told[at][1], least=ahead + at:
                   least < visitor.status()["position"] <= least + came.unknown + 1, PATIENCE, "a position is right")


#: What has moved when the master dies, as the ends of the names of keys.
PARTS = {"the line": ["waiting"], "sessions": ["active", "sessions"], "most": ["state", "waiting", "active"],
         "settings": ["config"], "what was sent": ["ingest"], "the state": ["state"]}


def trouble(system: System, queue: str) -> str:
    """What the list of queues says of it."""
    listed = system.ctl("queue", "list", "-o", "json")
    return next(row.get("trouble") or "" for row in json.loads(listed.stdout)["queues"] if row["queue"] == queue)


@pytest.mark.long(seconds=30)
@pytest.mark.parametrize("part", PARTS)
def test_a_master_dies_half_way(start, cluster, part):
    """Its replica has a part of the queue, and does not know of the move. Nobody goes on with it: the queue rests, and goes on
    when its parts are together."""
    queues = queues_everywhere(6)
    by_master = list(cluster.queues_by_master(queues).items())
    (master, (queue, other)), (target, _) = by_master[:2]
    system = start({name: {"capacity": 1} | CALM for name in (queue, other)}, prepare=cluster.prepare,
                   settings={"http": {"join_wait": "1s"}, "redis": {"timeout": "1s"}})
    for pattern in (*TROUBLE, r"kind=\w+ .*only a part of the queue", r"is missing but the line exists"):
        system.expect(pattern)
    inside, *line = [system.join(queue) for _ in range(4)]
    wait_until(inside.is_active, PATIENCE, "one is inside")
    before = system.numbers(queue)
    replica, client = cluster.replica_of(master), system.client()
    slot = slot_of(f"{{{queue}}}")
    cluster.begin_move(slot, target, [system.key(queue, name) for name in PARTS[part]])
    wait_until(lambda: all(system.key(queue, name) not in replica.ask("KEYS", "*") for name in PARTS[part]), PATIENCE,
               "the replica does not have them any more")
    master.kill()
    cluster.wait_promoted(replica)
    wait_until(lambda: client.post(f"/v1/queues/{other}/join").status == 200, PATIENCE, "another queue of this node goes on")
    assert client.post(f"/v1/queues/{queue}/join").status in (202, 503)
    target.ask("CLUSTER", "SETSLOT", slot, "STABLE")  # else it goes on to name the dead node
    assert client.post(f"/v1/queues/{queue}/join").status in (202, 503)
    wait_until(lambda: re.search("only a part|the line exists", trouble(system, queue)), PATIENCE, "the operator is told")
    assert client.post(f"/v1/queues/{queue}/join").status in (202, 503)
    cluster.back_as_replica(master)
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", replica.id)
    cluster.fix()
    wait_until(lambda: client.post(f"/v1/queues/{queue}/join").status == 200, PATIENCE, "it goes on")
    after = system.numbers(queue)
    assert after["generation"] == before["generation"], (before, after)
    inside.complete()
    for visitor in line:
        wait_until(visitor.is_active, PATIENCE, "they are called in their order")
        visitor.complete()
    system.finish()


def test_a_queue_goes_on_without_its_state_when_the_operator_says_so(start, cluster):
    """It may be at another node, so no program writes it again."""
    queue = queues_everywhere(6)[0]
    system = start({queue: {"capacity": 1} | CALM}, prepare=cluster.prepare, settings={"http": {"join_wait": "1s"}})
    for pattern in (*TROUBLE, r"kind=\w+ .*only a part of the queue"):
        system.expect(pattern)
    inside, *line = [system.join(queue) for _ in range(3)]
    wait_until(inside.is_active, PATIENCE, "one is inside")
    system.store.command("DEL", system.key(queue, "state"))
    wait_until(lambda: "without state" in trouble(system, queue), PATIENCE, "the operator is told")
    assert system.client().post(f"/v1/queues/{queue}/join").status in (202, 503)
    for how in (["--wait", "5m"], ["--now"]):
        done = system.ctl("queue", "recover", queue, *how)
        assert done.returncode == 0, done.stdout + done.stderr
    inside.complete()
    for visitor in line:
        wait_until(visitor.is_active, PATIENCE, "they are called in their order")
        visitor.complete()
