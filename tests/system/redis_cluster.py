# SPDX-License-Identifier: Apache-2.0
"""A real Redis Cluster for tests: three masters, a replica of each, and what operators and failures do to them."""
from __future__ import annotations

import binascii
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from network import Namespace
from redis_server import Argument, Redis, RedisError, RedisGone, RedisServer
from tellerline import System, free_port
from waiting import PATIENCE, patient, wait_until

SLOTS = 16384

#: An answer that a moment later is another one: the map is old, or the slot is moving.
_ELSEWHERE = ("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "READONLY", "LOADING", "MASTERDOWN")

Ranges = "list[tuple[int, int]]"


def slot_of(key: str) -> int:
    """Of a key, or of a queue's name: CRC16 of what stands in the first braces, if anything does."""
    _, brace, rest = key.partition("{")
    tag, end, _ = rest.partition("}")
    return binascii.crc_hqx((tag if brace and end and tag else key).encode(), 0) % SLOTS


def queues_everywhere(count: int, parts: int = 6) -> list[str]:
    """Names of queues, as many in each of the equal parts of the slots: so as many at each of one, two, three or six nodes."""
    assert count % parts == 0, f"{count} queues are not as many in each of {parts} parts"
    found: list[list[str]] = [[] for _ in range(parts)]
    number = 0
    while sum(map(len, found)) < count:
        name = f"q{number}"
        part = found[slot_of(f"{{{name}}}") * parts // SLOTS]
        if len(part) < -(-count // parts):
            part.append(name)
        number += 1
    return [name for names in zip(*found) for name in names]


class Node(RedisServer):
    """One server of the cluster. `address` is where programs and other nodes find it."""

    def __init__(self, directory: Path, address: str, options: dict[str, str]) -> None:
        super().__init__(directory, {
            "port": str(free_port()), "bind": address, "protected-mode": "no", "cluster-enabled": "yes",
            "cluster-port": str(free_port()), "cluster-config-file": "nodes.conf", "cluster-announce-ip": address,
            "cluster-node-timeout": f"{patient(1500):.0f}", "cluster-require-full-coverage": "no",
            "cluster-allow-replica-migration": "no", "repl-diskless-sync-delay": "0", "repl-ping-replica-period": "1",
            "appendfsync": "always"} | options)
        if "tls-cluster" in options:
            self.options |= {"tls-port": self.options["port"], "port": "0"}
        directory.mkdir()
        self.address, self.id = address, ""

    @property
    def port(self) -> int:
        return int(self.options.get("tls-port", self.options["port"]))

    def begin(self) -> None:
        self.start()
        self.id = self.ask("CLUSTER", "MYID")

    def try_ask(self, *command: Argument):
        """None when it cannot answer."""
        try:
            return self.ask(*command)
        except (RedisError, RedisGone):
            return None

    def meet(self, other: Node) -> None:
        self.ask("CLUSTER", "MEET", other.address, other.port, other.options["cluster-port"])

    def replicate(self, master: Node) -> None:
        wait_until(lambda: self.ask("CLUSTER", "REPLICATE", master.id), PATIENCE, "it knows its master", again_on=RedisError)

    def about(self, section: str) -> dict[str, str]:
        lines = (self.try_ask("INFO", section) or "").splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def has_caught_up(self) -> bool:
        """A replica that has all that its master wrote until a moment ago."""
        about = self.about("replication")
        return about.get("role") == "slave" and about.get("master_link_status") == "up" \
            and about.get("master_sync_in_progress") == "0"

    def cut_off_from_master(self, master: Node) -> None:
        """Nothing that the master writes from now on reaches it."""
        self.ask("CONFIG", "SET", "masteruser", "nobody", "masterauth", "nothing")
        master.ask("CLIENT", "KILL", "TYPE", "replica", "LADDR", f"{master.address}:{master.port}")
        wait_until(lambda: self.about("replication").get("master_link_status") == "down", PATIENCE, "it is cut off")

    def find_master_again(self) -> None:
        self.ask("CONFIG", "SET", "masteruser", "", "masterauth", "")


class RoutedClient:
    """Sends each command to the node that has its key, and asks again while the slot moves or its node is replaced."""

    def __init__(self, cluster: RedisCluster, timeout: float) -> None:
        self._cluster, self._timeout = cluster, timeout
        self._connections: dict[Node, Redis] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def command(self, *args: Argument):
        key = next((arg for arg in args if isinstance(arg, str) and arg.startswith("tl:")), None)
        assert key is not None, f"of which node? {args}"
        end = time.monotonic() + patient(self._timeout)
        while True:
            try:
                return self._connection(self._cluster.master_of(key)).command(*args)
            except (RedisError, RedisGone) as error:
                if isinstance(error, RedisGone):
                    self.close()
                elif not str(error).startswith(_ELSEWHERE):
                    raise
                if time.monotonic() > end:
                    raise
                self._cluster.read_map()
            time.sleep(0.02)

    def hash(self, key: str) -> dict[str, str]:
        flat = self.command("HGETALL", key)
        return dict(zip(flat[::2], flat[1::2]))

    def _connection(self, node: Node) -> Redis:
        if node not in self._connections:
            self._connections[node] = node.connect(self._timeout)
        return self._connections[node]


class RedisCluster:
    """Give `prepare` to start(): then it is the store of that System. It outlives the System: call end()."""

    def __init__(self, masters: int = 3, replicas: int = 1, options: dict[str, str] | None = None,
                 places: list[Namespace] | None = None) -> None:
        """places: the networks of the nodes, masters first; else all are on the loopback."""
        # A short path: a socket's name must fit into 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="tellerline-"))
        self._options, self._places = options or {}, places or []
        self._map: list[tuple[int, int, Node]] = []
        self.nodes: list[Node] = []
        self._masters, self._replicas, self._made = masters, replicas, 0

    # ---- as the Redis of a System ----

    def prepare(self, system: System) -> None:
        system.redis = self
        system.settings("redis", {"url": self.url})

    @property
    def url(self) -> str:
        scheme = "rediss" if "tls-cluster" in self._options else "redis"
        return f"{scheme}+cluster://" + ",".join(f"{node.address}:{node.port}" for node in self.nodes if node.running)

    @property
    def running(self) -> bool:
        return any(node.running for node in self.nodes)

    def connect(self, timeout: float = 30.0) -> RoutedClient:
        return RoutedClient(self, timeout)

    def stop(self) -> None:
        """Another test goes on with it."""

    kill = stop

    # ---- start and end ----

    def start(self) -> None:
        count = self._masters * (1 + self._replicas)
        nodes = [self.new_node() for _ in range(count)]
        masters = nodes[:self._masters]
        for i, node in enumerate(nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            if node is not nodes[0]:
                nodes[0].meet(node)
        for i, master in enumerate(masters):
            master.ask("CLUSTER", "ADDSLOTSRANGE", SLOTS * i // len(masters), SLOTS * (i + 1) // len(masters) - 1)
        for i, replica in enumerate(nodes[self._masters:]):
            replica.replicate(masters[i % len(masters)])
        self.settle()

    def new_node(self) -> Node:
        """Runs, and belongs to no cluster yet."""
        place = self._places[self._made] if self._made < len(self._places) else None
        node = Node(self.directory / f"n{self._made}", place.theirs if place else "127.0.0.1", self._options)
        node.prefix = place.prefix if place else []
        self._made += 1
        self.nodes.append(node)
        node.begin()
        return node

    def empty(self) -> None:
        """As after the start: whole, without data, functions and figures."""
        for node in self.nodes:
            if not node.running:
                node.start()
        self.settle()
        for master in self.masters():
            for command in (("FLUSHALL",), ("FUNCTION", "FLUSH"), ("CONFIG", "RESETSTAT")):
                master.ask(*command)
        self.settle()

    def end(self) -> None:
        for node in self.nodes:
            node.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    # ---- who is who ----

    def settle(self) -> None:
        """Waits until all running nodes agree on a whole map, and the replicas have caught up."""
        wait_until(self._is_settled, PATIENCE, "the nodes of the cluster agree", every=0.05)
        self.read_map()

    def _is_settled(self) -> bool:
        running = [node for node in self.nodes if node.running]
        maps = set()
        for node in running:
            lines = (node.try_ask("CLUSTER", "NODES") or "").splitlines()
            if "cluster_state:ok" not in (node.try_ask("CLUSTER", "INFO") or ""):
                return False
            fields = [line.split() for line in lines]
            if any(flag in field[2].split(",") for field in fields for flag in ("handshake", "noaddr", "fail?")):
                return False
            known = sorted((field[0], "master" in field[2], *field[8:]) for field in fields
                           if "fail" not in field[2].split(",") and "[" not in field[-1])
            maps.add(str(known))
            if {field[0] for field in known} != {one.id for one in running}:
                return False
            if node.about("replication").get("role") == "slave" and not node.has_caught_up():
                return False
        return len(maps) == 1 and sum(last - first + 1 for first, last, _ in self._asked_map()) == SLOTS

    def _asked_map(self) -> list[tuple[int, int, Node]]:
        """As the newest of the nodes see it that answer."""
        by_id = {node.id: node for node in self.nodes}
        best: tuple[int, list] = (-1, [])
        for node in self.nodes:
            if not node.running:
                continue
            about = node.try_ask("CLUSTER", "INFO")
            if about is None:
                continue
            epoch = int(about.partition("cluster_current_epoch:")[2].split()[0])
            if epoch > best[0]:
                best = epoch, node.try_ask("CLUSTER", "SLOTS") or []
        return [(first, last, by_id[master[2]]) for first, last, master, *_ in best[1] if master[2] in by_id]

    def read_map(self) -> None:
        self._map = self._asked_map()

    def master_of(self, key: str) -> Node:
        """Of a key, or of a queue in braces. RedisGone while nobody has its slot."""
        slot = slot_of(key)
        for _ in range(2):
            for first, last, node in self._map:
                if first <= slot <= last and node.running:
                    return node
            self.read_map()
        raise RedisGone(f"no running node has slot {slot}")

    def masters(self) -> list[Node]:
        """Those that have slots, in the order of their slots."""
        self.read_map()
        return list(dict.fromkeys(node for _, _, node in sorted(self._map, key=lambda entry: entry[0])))

    def replica_of(self, master: Node) -> Node:
        return next(node for node in self.nodes if node.running
                    and f"slave {master.id}" in (node.try_ask("CLUSTER", "NODES") or "").replace("myself,", "")
                    and self._follows(node, master))

    @staticmethod
    def _follows(node: Node, master: Node) -> bool:
        return (node.try_ask("ROLE") or [""])[0] == "slave" and node.ask("ROLE")[2] == master.port

    def queues_by_master(self, queues: Iterable[str]) -> dict[Node, list[str]]:
        self.read_map()
        found: dict[Node, list[str]] = {}
        for queue in queues:
            found.setdefault(self.master_of(f"{{{queue}}}"), []).append(queue)
        return found

    # ---- what happens to it ----

    def wait_promoted(self, replica: Node) -> None:
        wait_until(lambda: (replica.try_ask("ROLE") or [""])[0] == "master", PATIENCE, "the replica is the master")
        self.read_map()

    def back_as_replica(self, old: Node) -> None:
        """Starts a master that was killed, and whose replica has been promoted."""
        old.start()
        self.settle()

    def promote(self, replica: Node, how: str = "") -> None:
        """By hand: with its master's help, or FORCE, or TAKEOVER."""
        replica.ask("CLUSTER", "FAILOVER", *([how] if how else []))
        self.wait_promoted(replica)

    def _owner(self, slot: int) -> Node:
        """The one node that says so of itself: others may learn a moment later that a slot has moved."""
        def claimed() -> Node | None:
            found = [node for node in self.nodes if node.running
                     and any(first <= slot <= last and master[2] == node.id
                             for first, last, master, *_ in node.try_ask("CLUSTER", "SLOTS") or [])]
            return found[0] if len(found) == 1 else None
        return wait_until(claimed, PATIENCE, f"one node has slot {slot}")

    def begin_move(self, slot: int, target: Node, keys: Iterable[str] | None = None) -> None:
        """Moves these keys of the slot, or all but one, and stops half way: move_slots and fix go on."""
        source = self._owner(slot)
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        moved = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 1000)[1:] if keys is None else keys
        source.ask("MIGRATE", target.address, target.port, "", 0, f"{patient(10000):.0f}", "KEYS", *moved)

    def fix(self) -> None:
        """As an operator does it: what is left on other nodes of the keys of a slot goes to the node that has it."""
        node = self.masters()[0]
        done = subprocess.run(["redis-cli", "--cluster", "fix", f"{node.address}:{node.port}"], check=False, capture_output=True,
                              text=True, timeout=patient(60))
        assert done.returncode == 0, done.stdout + done.stderr
        self.settle()

    def move_slots(self, slots: Iterable[int], target: Node, batch: int = 10) -> int:
        """As `redis-cli --cluster reshard` does it. Returns how many keys were moved."""
        moved = 0
        for slot in slots:
            source = self._owner(slot)
            if source is target:
                continue
            target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
            source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
            while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, batch):
                source.ask("MIGRATE", target.address, target.port, "", 0, f"{patient(10000):.0f}", "KEYS", *keys)
                moved += len(keys)
            for node in [target, source, *(one for one in self.masters() if one not in (target, source))]:
                node.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)
        self.read_map()
        return moved

    def add_master(self) -> Node:
        """A new node without slots and without a replica."""
        node, known = self.new_node(), next(node for node in self.nodes if node.running)
        known.meet(node)
        self.settle()
        return node

    def remove(self, node: Node) -> None:
        """Its slots must have been moved."""
        for other in self.nodes:
            if other is not node and other.running:
                other.ask("CLUSTER", "FORGET", node.id)
        node.kill()
        self.nodes.remove(node)
        self.settle()


@contextmanager
def three_and_three() -> Iterator[RedisCluster]:
    """Three masters, each with its replica, for the tests of a file."""
    cluster = RedisCluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
