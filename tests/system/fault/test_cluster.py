# SPDX-License-Identifier: Apache-2.0
"""Queues on the nodes of a Redis Cluster: what happens to one node is the trouble of its own queues."""
from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from certificates import signed_for, skip_without_tls
from cluster_faults import TROUBLE
from http_client import Client, Visitor
from many_queues import calls, connections
from redis_cluster import Node, RedisCluster, queues_everywhere, slot_of
from shopper import Shopper, p99, shopping
from tellerline import BIN, CALM, PATIENCE, TOP, run
from waiting import patient, wait_until

pytestmark = [pytest.mark.together(seconds=120)]

QUEUES = queues_everywhere(30)
SETTINGS = {"http": {"join_wait": "1s"}, "redis": {"timeout": "1s"}}


def test_thirty_queues_are_on_three_nodes(start, cluster, figure):
    """Each is served by its node alone, and the library is on every master. To each node a role has two connections, a
    worker process three; nobody keeps one to ask for the map of the slots."""
    system = start({queue: {"capacity": 1} | CALM for queue in QUEUES}, workers=2, settings=SETTINGS,
                   prepare=cluster.prepare)
    for queue in QUEUES:
        visitor = system.join(queue)
        wait_until(visitor.is_active, PATIENCE, f"{queue} calls its visitor")
        assert visitor.complete()["status"] == "completed"
    by_master = cluster.queues_by_master(QUEUES)
    assert len(by_master) == 3
    for master, queues in by_master.items():
        keys = master.ask("KEYS", "tl:{*}:state")
        assert sorted(keys) == sorted(f"tl:{{{queue}}}:state" for queue in queues)
        (library,) = master.ask("FUNCTION", "LIST", "LIBRARYNAME", "tellerline_*")
        assert library[1].startswith("tellerline_")
    wait_until(lambda: all(connections(master) <= 3 * 2 + 2 * 3 for master in by_master), PATIENCE,
               "no program has more connections than it needs", every=0.2)
    figure(f"connections of 2 workers and 3 roles to each node: {[connections(master) for master in by_master]}")
    listed = system.ctl("queue", "list", "-o", "json")
    assert listed.returncode == 0, listed.stderr
    nodes = {row["queue"]: row["node"] for row in json.loads(listed.stdout)["queues"]}
    assert nodes == {queue: f"{master.address}:{master.port}" for master, queues in by_master.items() for queue in queues}
    top = system.ctl("top", "--count", "1").stdout
    assert all(f"{master.address}:{master.port}: 10 queues" in top for master in by_master), top


@pytest.mark.long(seconds=40)
def test_idle_queues_cost_a_cluster_what_they_cost_one_redis(start, cluster, figure):
    """A hundred of them. In a cluster each stream is read by a command of its own, so seldom without a reason; and each program
    has two connections to each node, as to a Redis with so many queues."""
    queues = queues_everywhere(102)
    systems = [start({queue: {"capacity": 1} | CALM for queue in queues}, prepare=prepare) for prepare in (None, cluster.prepare)]
    stores = [[systems[0].redis], cluster.masters()]
    for system, queue in itertools.product(systems, queues):
        wait_until(lambda s=system, q=queue: all(s.store.command("EXISTS", s.key(q, role)) == 1
                                                 for role in ("dispatcher", "admitter", "expirer")), PATIENCE, f"{queue} is served")
    time.sleep(5)  # not a wait for anything: what follows the start is over
    before, began = [calls(nodes) for nodes in stores], time.monotonic()
    time.sleep(10)  # the same: the span that is measured
    took = time.monotonic() - began
    cost = [(calls(nodes) - then).total() / took for nodes, then in zip(stores, before)]
    held = [max(map(connections, nodes)) for nodes in stores]
    figure(f"{len(queues)} idle queues: {cost[0]:.0f} commands per second of one Redis, {cost[1]:.0f} of three nodes together; "
           f"{held[0]} connections to one Redis, at most {held[1]} to a node")
    assert cost[1] <= 1.1 * cost[0], cost
    wait_until(lambda: all(connections(node) <= held[0] for node in stores[1]), PATIENCE, "no more to a node than to one Redis", every=0.2)


@pytest.mark.long(seconds=25)
def test_a_killed_master_stops_its_own_queues_alone(start, cluster, figure):
    """Others answer as fast as before, the worker stays ready, and the replica goes on where the master was."""
    system = start({queue: {"capacity": 1000, "on_store_error": "open"} | CALM for queue in QUEUES}, settings=SETTINGS, prepare=cluster.prepare)
    for pattern in TROUBLE:
        system.expect(pattern)
    port = system.of("worker")[0].http_port
    queue_of = {master: queues[0] for master, queues in cluster.queues_by_master(QUEUES).items()}

    def gate(queue: str) -> int:
        return Client(port).get(f"/v1/queues/{queue}/check").status

    victim = cluster.master_of("tl:queues")  # the one whose loss would hurt most
    with shopping(port, queue_of) as shoppers:
        others = [shopper for master, shopper in shoppers.items() if master is not victim]
        wait_until(lambda: all(len(one.numbered()) >= 150 for one in shoppers.values()), PATIENCE, "joins are numbered")
        before = [p99(one.numbered()) for one in others]
        replica, killed = cluster.replica_of(victim), time.monotonic()
        victim.kill()
        wait_until(lambda: gate(queue_of[victim]) == 204, PATIENCE, "the gate opens where the store is away")
        assert all(gate(queue) == 401 for master, queue in queue_of.items() if master is not victim)
        wait_until(lambda: all(len(one.numbered(killed)) >= 150 for one in others), PATIENCE, "others are served meanwhile")
        assert all(program.ready() for program in system.programs), "it serves the others"
        during = [p99(one.numbered(killed)) for one in others]
        cluster.wait_promoted(replica)
        promoted = time.monotonic()
        wait_until(lambda: shoppers[victim].numbered(promoted), PATIENCE, "its queues go on at the replica")
        back = min(began for began, _, status in shoppers[victim].answers if status == 200 and began >= promoted)
        wait_until(lambda: gate(queue_of[victim]) == 401, PATIENCE, "the gate closes again")
        figure(f"p99 of joins at other nodes: {[round(1000 * t, 1) for t in before]} ms before, "
               f"{[round(1000 * t, 1) for t in during]} ms while a node is away; its replica was promoted after "
               f"{promoted - killed:.1f} s, and its queues go on {back - promoted:.1f} s later")
    assert all(one.error is None for one in shoppers.values()), [one.error for one in shoppers.values()]
    assert {status for one in others for _, _, status in one.answers} == {200}
    assert {status for _, _, status in shoppers[victim].answers} <= {200, 202, 503}
    cluster.back_as_replica(victim)
    assert max(during) <= 3 * max(before) + patient(0.02), (before, during)


@contextmanager
def without_promotions(cluster: RedisCluster) -> Iterator[None]:
    """Nobody takes the place of a master that does not answer."""
    for node in cluster.nodes:
        node.ask("CONFIG", "SET", "cluster-node-timeout", f"{patient(60000):.0f}")
    try:
        yield
    finally:
        for node in cluster.nodes:
            node.ask("CONFIG", "SET", "cluster-node-timeout", node.options["cluster-node-timeout"])


@contextmanager
def paused(node: Node) -> Iterator[None]:
    node.pause()
    try:
        yield
    finally:
        node.resume()


@pytest.mark.long(seconds=40)
def test_a_frozen_master_holds_up_no_other(start, cluster, figure):
    """Its connections stay open without an answer. Nobody waits for redis.timeout before the queues of others go on, be it
    with joins or with admissions: visitors pass as before and afterwards."""
    timeout = min(patient(30), 60)
    system = start({queue: {"capacity": 1000} | CALM for queue in QUEUES}, prepare=cluster.prepare,
                   settings={"http": {"join_wait": f"{timeout / 3:.0f}s"}, "redis": {"timeout": f"{timeout:.0f}s"}})
    for pattern in TROUBLE:
        system.expect(pattern)
    queue_of = {master: queues[0] for master, queues in cluster.queues_by_master(QUEUES).items()}
    victim = cluster.master_of("tl:queues")  # the one whose loss would hurt most
    with shopping(system.of("worker")[0].http_port, queue_of, timeout=90) as shoppers:
        others = [shopper for master, shopper in shoppers.items() if master is not victim]
        spans: list[tuple[float, float]] = []

        def measure(seconds: float) -> None:
            began = time.monotonic()
            time.sleep(seconds)  # not a wait for anything: the span that is measured
            spans.append((began, time.monotonic()))

        wait_until(lambda: all(one.admitted() for one in shoppers.values()), PATIENCE, "all are served")
        measure(6)  # longer than a connection is new
        with without_promotions(cluster), paused(victim):
            measure(8)
        settled = time.monotonic()
        wait_until(lambda: all(one.admitted(settled) for one in shoppers.values()), PATIENCE, "all are served again")
        measure(6)
        replica = cluster.replica_of(victim)
        with paused(victim):
            frozen = time.monotonic()
            cluster.wait_promoted(replica)
            wait_until(lambda: shoppers[victim].admitted(frozen + 0.5), PATIENCE, "its queues go on at the replica")
    cluster.settle()
    assert all(one.error is None for one in others), [one.error for one in others]
    assert {status for one in others for _, _, status in one.answers} == {200}
    for what, times in (("joins", Shopper.numbered), ("admissions", Shopper.admitted)):
        rates = [[len(times(one, *span)) / (span[1] - span[0]) for span in spans] for one in others]
        slowest = max(times(one, spans[0][0])[-1] for one in others)
        figure(f"{what} at other nodes: before, while a node is frozen, and afterwards "
               f"{[[round(rate) for rate in each] for each in rates]} per second, the slowest after {1000 * slowest:.0f} ms")
        assert slowest < timeout / 3, what
        assert all(during >= min(before, after) / 3 for before, during, after in rates), (what, rates)


def test_what_happens_to_one_node_concerns_its_own_queues(start, cluster):
    """A new connection to a node: the leases of its queues are asked for by function again, and no others."""
    start({queue: {"capacity": 1} | CALM for queue in QUEUES}, prepare=cluster.prepare, settings=SETTINGS)

    def taken(master: Node) -> int:
        return sum("_lease" in str(entry[3][1]) for entry in master.ask("SLOWLOG", "GET", -1) if entry[3][0] == "FCALL")

    (broken, queues), *others = cluster.queues_by_master(QUEUES).items()
    for node in cluster.masters():
        node.ask("CONFIG", "SET", "slowlog-log-slower-than", 0, "slowlog-max-len", 100000)
    try:
        for node in cluster.masters():
            node.ask("SLOWLOG", "RESET")
        broken.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        wait_until(lambda: taken(broken) >= 3 * len(queues), PATIENCE, "three roles ask for the leases of its queues")
        assert [taken(node) for node, _ in others] == [0] * len(others), "nobody asks for others"
    finally:
        for node in cluster.masters():
            node.ask("CONFIG", "SET", "slowlog-log-slower-than", 10000, "slowlog-max-len", 128)
            node.ask("SLOWLOG", "RESET")


@pytest.mark.parametrize("how", ["taken over", "moved"])
def test_an_idle_queue_is_served_at_once_at_its_new_node(start, cluster, figure, how):
    """By its replica without the master's help, or by a node that serves others already. What a stream has is looked for
    without a reason only once a minute; nobody waits for that."""
    system = start({name: {"capacity": 1} | CALM for name in QUEUES[:6]}, settings=SETTINGS, prepare=cluster.prepare)
    for pattern in TROUBLE:
        system.expect(pattern)
    queue = QUEUES[0]
    for name in QUEUES[:6]:
        system.join(name).complete()
    master = cluster.master_of(f"{{{queue}}}")
    if how == "moved":
        cluster.move_slots([slot_of(f"{{{queue}}}")], next(node for node in cluster.masters() if node is not master))
    else:
        cluster.promote(cluster.replica_of(master), "TAKEOVER")
    cluster.settle()
    assert cluster.master_of(f"{{{queue}}}") is not master
    time.sleep(2)  # not a wait for anything: the programs know it, and nobody has joined
    began, visitor = time.monotonic(), system.join(queue)
    wait_until(visitor.is_active, PATIENCE, "the first visitor is inside")
    took = time.monotonic() - began
    figure(f"{how}: the first visitor is inside after {took:.2f} s")
    assert took < 30, "half of the time between two looks"


def test_a_queue_that_moves_does_not_open_its_gate(start, cluster):
    """It rests for a moment, and nobody was promised anything else. Only when it stays half way, as with a store that is away,
    on_store_error decides."""
    (_, queues), (target, _) = list(cluster.queues_by_master(QUEUES[:6]).items())[:2]
    queue = queues[0]
    system = start({name: {"capacity": 1, "on_store_error": "open"} | CALM for name in QUEUES[:6]}, settings=SETTINGS,
                   prepare=cluster.prepare)
    for pattern in TROUBLE:
        system.expect(pattern)
    assert system.join(queue).ticket
    client, seen = Client(system.of("worker")[0].http_port), []

    def rests() -> bool:
        seen.append((client.get(f"/v1/queues/{queue}/check").status, client.get("/readyz").body.decode()))
        return bool(re.search(rf"not served:.*\b{queue}\b", seen[-1][1]))

    cluster.begin_move(slot_of(f"{{{queue}}}"), target)
    wait_until(rests, PATIENCE, "the worker says that it does not serve the queue")
    until = time.monotonic() + 2
    while time.monotonic() < until:
        rests()
    assert {status for status, _ in seen} == {401}, "the gate stays closed"
    wait_until(lambda: client.get(f"/v1/queues/{queue}/check").status == 204, PATIENCE, "it stays half way: the gate opens")
    cluster.move_slots([slot_of(f"{{{queue}}}")], target)
    wait_until(lambda: client.get(f"/v1/queues/{queue}/check").status == 401, PATIENCE, "the gate closes again")
    assert system.join(queue).ticket


@pytest.mark.parametrize("on_store_error, elsewhere", [("open", 401), ("closed", 204)])
def test_a_node_that_stalls_leaves_the_gates_as_they_are(start, cluster, on_store_error, elsewhere):
    """For less than redis.timeout, which the only store would have, too: a visitor inside stays inside, and one who is not does
    not come in."""
    queue = QUEUES[0]
    system = start({name: {"capacity": 1, "on_store_error": on_store_error} | CALM for name in QUEUES[:6]}, prepare=cluster.prepare,
                   settings={"redis": {"timeout": f"{patient(3):.0f}s"}})
    for pattern in TROUBLE:
        system.expect(pattern)
    inside, master = system.join(queue), cluster.master_of(f"{{{queue}}}")
    wait_until(inside.is_active, PATIENCE, "the visitor is inside")
    client, seen, ticket = Client(system.of("worker")[0].http_port), [], inside.ticket if on_store_error == "closed" else None

    def asked() -> bool:
        """Does the worker say that it serves the queue?"""
        seen.append(client.get(f"/v1/queues/{queue}/check", ticket=ticket).status)
        return queue not in client.get("/readyz").body.decode()

    with without_promotions(cluster):
        for _ in range(2):
            with paused(master):
                wait_until(lambda: not asked(), PATIENCE, "the queue rests", every=0.02)
            wait_until(asked, PATIENCE, "it is served again", every=0.02)
        assert set(seen) == {elsewhere}, "the gate stays as it was"


def test_a_closed_connection_keeps_no_worker_awake(start, cluster, figure):
    """That to one node, while another does not answer: the worker sleeps until it does."""
    system = start({name: {"capacity": 1} | CALM for name in QUEUES[:6]}, prepare=cluster.prepare,
                   settings={"http": {"join_wait": "100ms"}, "redis": {"timeout": f"{patient(20):.0f}s"}})
    for pattern in TROUBLE:
        system.expect(pattern)
    (frozen, queues), (closed, others) = list(cluster.queues_by_master(QUEUES[:6]).items())[:2]
    client, (worker,) = system.client(), system.of("worker")
    for queue in (queues[0], others[0]):
        assert client.post(f"/v1/queues/{queue}/join").status == 200
    processes = [worker.pid, *map(int, Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split())]

    def spent() -> float:
        """Processor time in seconds."""
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in processes]
        return sum(int(field[11]) + int(field[12]) for field in fields) / os.sysconf("SC_CLK_TCK")

    with without_promotions(cluster), paused(frozen):
        assert client.post(f"/v1/queues/{queues[0]}/join").status in (202, 503)
        closed.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        before, began = spent(), time.monotonic()
        time.sleep(3)  # not a wait for anything: the span that is measured
        took, used = time.monotonic() - began, spent() - before
    figure(f"a worker used {100 * used / took:.0f} % of a processor")
    assert used < took / 8


@pytest.mark.long(seconds=15)
def test_programs_talk_to_all_nodes_by_tls(start, tmp_path):
    """Also to a replica that takes the place of its master. The certificate of each node must name the address that it
    announces, and be of an authority that is trusted."""
    skip_without_tls()
    options = signed_for(tmp_path, "IP:127.0.0.1") | {"tls-cluster": "yes", "tls-replication": "yes"}
    cluster = RedisCluster(options=options)

    def prepare(system):
        cluster.prepare(system)
        system.settings("redis", {"url": cluster.url, "ca_file": str(tmp_path / "ca.pem")})

    try:
        cluster.start()
        assert cluster.url.startswith("rediss+cluster://")
        system = start({queue: {"capacity": 1} | CALM for queue in QUEUES[:6]}, settings=SETTINGS, prepare=prepare)
        for pattern in TROUBLE:
            system.expect(pattern)
        for queue in QUEUES[:6]:
            visitor = system.join(queue)
            wait_until(visitor.is_active, PATIENCE, f"{queue} calls its visitor")
            assert visitor.complete()["status"] == "completed"
        victim = cluster.masters()[0]
        replica, queues = cluster.replica_of(victim), cluster.queues_by_master(QUEUES[:6])[victim]
        victim.kill()
        cluster.wait_promoted(replica)
        client = Client(system.of("worker")[0].http_port)
        for queue in queues:
            wait_until(lambda q=queue: client.post(f"/v1/queues/{q}/join").status == 200, PATIENCE, f"{queue} goes on")
        done = run(system.folder / "tellerline", "queue", "list", "--config", str(system.config),
                   env={"TELLERLINE_REDIS_CA_FILE": str(tmp_path / "other.pem")})
        assert done.returncode != 0 and "certificate of the store at 127.0.0.1 is refused" in done.stderr, done.stderr
        system.finish()
    finally:
        cluster.end()


@pytest.mark.long(seconds=15)
def test_a_lost_replica_stops_the_queues_of_its_master_alone(start, cluster, figure):
    """Where visitors are told only what a replica has. What was taken meanwhile is told when one is there again."""
    system = start({queue: {"capacity": 1000} | CALM for queue in QUEUES[:6]}, prepare=cluster.prepare,
                   settings=SETTINGS | {"redis": SETTINGS["redis"] | {"durability": "replicated"}})
    for pattern in TROUBLE:
        system.expect(pattern)
    (master, queues), (_, others) = list(cluster.queues_by_master(QUEUES[:6]).items())[:2]
    replica = cluster.replica_of(master)
    assert system.join(queues[0]).ticket
    replica.kill()
    client = system.client()
    path = f"/v1/queues/{queues[0]}/join"
    first = client.post(path)
    assert first.status in (202, 503), "nobody is told a place that no replica has"
    wait_until(lambda: re.search(rf"not served:.*\b{queues[0]}\b", client.get("/readyz").body.decode()), PATIENCE,
               "the worker says which it does not serve")
    stop = threading.Event()
    shopper = Shopper(system.of("worker")[0].http_port, others[0], stop)
    shopper.start()
    began = time.monotonic()
    try:  # longer than the pause between two looks at the node
        wait_until(lambda: time.monotonic() - began > 5 and len(shopper.numbered()) > 100, PATIENCE, "others are served")
    finally:
        stop.set()
        shopper.join()
    slowest = max(took for _, took, _ in shopper.answers)
    figure(f"the slowest of {len(shopper.answers)} joins at another node took {1000 * slowest:.0f} ms")
    assert shopper.error is None and {status for _, _, status in shopper.answers} == {200}
    assert slowest < patient(0.5), "nobody else waits for that replica"
    assert client.get("/readyz").status == 200, "it serves the others"
    replica.start()
    wait_until(lambda: client.post(path).status == 200, PATIENCE, "places are told again")
    if first.status == 202:
        status = client.get(f"/v1/queues/{queues[0]}/status", ticket=first.json["ticket"])
        assert status.json["status"] in ("waiting", "active"), status.json


def test_check_says_what_each_master_is(cluster):
    """The address, version, role and replicas of each; and which ones are unfit."""
    def check() -> tuple[int, str]:
        done = subprocess.run([str(BIN / "tellerline"), "check", "--connect", "--redis", cluster.url], check=False,
                              capture_output=True, text=True, timeout=patient(30), cwd=cluster.masters()[0].directory)
        return done.returncode, done.stdout + done.stderr

    status, said = check()
    assert status == 0 and "the store: ok; a cluster of 3 masters" in said, said
    for master in cluster.masters():
        assert re.search(rf"^{re.escape(master.address)}:{master.port}: \w+ [0-9.]+, master with 1 replica$", said, re.M), said
        assert master.ask("FUNCTION", "LIST", "LIBRARYNAME", "tellerline_*"), "it has the functions"
    unfit = cluster.masters()[1:]
    for node in unfit:
        node.ask("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
    try:
        status, said = check()
    finally:
        for node in unfit:
            node.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert status != 0 and said.count("set it to noeviction") == 2, said
    assert all(f"the node at {node.address}:{node.port}: " in said for node in unfit), said


def test_the_users_of_deploy_are_enough(start, cluster, tmp_path):
    """Each program logs in as its own user at every node, and visitors pass on all of them."""
    made = subprocess.run([str(TOP / "deploy" / "redis" / "make-users"), str(tmp_path / "users")], check=False,
                          capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    users = [line.split() for line in (tmp_path / "users" / "users.acl").read_text().splitlines() if line.startswith("user tellerline-")]
    nodes = cluster.masters()

    def prepare(system):
        cluster.prepare(system)
        for program in system.programs:
            for variable, name in (("REDIS_URL", program.role), ("ADMIN_REDIS_URL", "control")):
                password = (tmp_path / "users" / f"{name}.password").read_text().strip()
                program.env[f"TELLERLINE_{variable}"] = cluster.url.replace("://", f"://tellerline-{name}:{password}@")

    for node in nodes:
        for user in users:
            node.ask("ACL", "SETUSER", *user[1:])
    try:
        system = start({queue: {"capacity": 1} | CALM for queue in QUEUES[:12]}, settings=SETTINGS, prepare=prepare)
        client = Client(system.of("worker")[0].http_port)
        # The slots that another test has moved may be on their way yet: a worker is ready while it waits for one.
        wait_until(lambda: client.get("/readyz").body == b"ok\n", PATIENCE, "all queues are served")
        for queue in QUEUES[:12]:
            first, second = Visitor(client, queue), Visitor(client, queue)
            first.join()
            second.join()
            wait_until(lambda visitor=first: visitor.status()["status"] == "active", PATIENCE, f"{queue} admits")
            first.complete()
            wait_until(lambda visitor=second: visitor.status()["status"] == "active", PATIENCE, f"{queue} admits the next")
    finally:
        for node in nodes:
            node.ask("ACL", "DELUSER", *(user[1] for user in users))
