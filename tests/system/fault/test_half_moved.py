# SPDX-License-Identifier: Apache-2.0
"""A slot that is half way to another node, under every function that the programs call: a call fails before its first
write, or it does the whole step.

What a live system calls is recorded, and then called again one by one on what it began with, each with the slot half way in
many ways."""
from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from cluster_faults import TROUBLE
from library_names import library
from redis_cluster import Node, RedisCluster, slot_of
from redis_server import Redis, RedisError, RedisGone
from tellerline import CALM, PATIENCE, System
from waiting import wait_until

pytestmark = [pytest.mark.together(seconds=60), pytest.mark.long(seconds=60)]

QUEUE = "q"
TAG, INGEST = f"{{{QUEUE}}}", f"tl:{{{QUEUE}}}:ingest"
#: What visitors and operators do here is done by these, at least: without them the test proves little.
WRITERS = {"admit", "apply", "configure", "forget", "move", "recover", "remove"}
#: Called besides, with such arguments.
BESIDES = {
    "expire": ["100", "1000", "3600000"], "history": [], "prune": ["1", "1"], "append": ["batch"],
    "promised": ["1", "1", "1", "1"], "claim": ["100", "dispatcher"], "poison": ["FENCE", "ENTRY", "test", "batch"],
    "lease": ["dispatcher", "tester", "1500", "1", "10000"], "idempotent": ["claim", "aa", "bb"],
    "joins": ["batch", "1", "WHO"], "group": [], "delete": ["1000", "1", "0", "WHO"]}
#: One of them no longer looks whether the stream that it writes last is there.
PLANTED = library().variant("planted", "call('XLEN', c.key.poison) --", "--")
#: How often each is tried where it writes.
TRIES = 2
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(x[0-9a-f]{2}|.)")


def words_of(line: str) -> list[bytes]:
    """Of a line of MONITOR."""
    def plain(found: re.Match[str]) -> str:
        what = found.group(1)
        return chr(int(what[1:], 16)) if len(what) == 3 else {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b"}.get(what, what)
    return [_ESCAPED.sub(plain, word).encode("latin-1") for word in _WORD.findall(line)]


def function_of(call: list[bytes]) -> str:
    return call[1].decode().split("_", 2)[2]


class Recorder(threading.Thread):
    """Keeps the calls of functions on the queue, and what is added to its ingest stream, from now on."""

    def __init__(self, node: Node) -> None:
        super().__init__(daemon=True)
        self._connection = node.connect()
        self._lines = self._connection.monitor()
        self.calls: list[list[bytes]] = []

    def run(self) -> None:
        try:
            for line in self._lines:
                words = words_of(line) if " lua]" not in line[:60] else []
                if words and words[0] in (b"FCALL", b"FCALL_RO") and TAG.encode() in words[3] or \
                        words and words[0] == b"XADD" and words[1] == INGEST.encode():
                    self.calls.append(words)
        except (RedisGone, ValueError, OSError):
            pass

    def stop(self) -> None:
        self._connection.close()


@dataclass
class Bench:
    """Two nodes: the slot is at the source, and may be on its way to the target. Nothing else is there."""
    source: Redis
    target: Redis
    from_: Node
    to: Node
    kept: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def keys(self, node: Redis) -> list[str]:
        return sorted(node.command("CLUSTER", "GETKEYSINSLOT", slot_of(TAG), 10000))

    def keep(self) -> None:
        """Nothing expires meanwhile: what has a time to live gets an hour."""
        ask = self.source.command
        self.kept = {key: (3600000 if ask("PTTL", key) > 0 else 0, ask("DUMP", key).encode("utf-8", "surrogateescape"))
                     for key in self.keys(self.source)}

    def restore(self) -> None:
        for node in (self.source, self.target):
            node.command("CLUSTER", "SETSLOT", slot_of(TAG), "STABLE")
            node.command("FLUSHALL")
        for key, (ttl, dump) in self.kept.items():
            self.source.command("RESTORE", key, ttl, dump)

    def move(self, keys: list[str]) -> None:
        self.target.command("CLUSTER", "SETSLOT", slot_of(TAG), "IMPORTING", self.from_.id)
        self.source.command("CLUSTER", "SETSLOT", slot_of(TAG), "MIGRATING", self.to.id)
        self.source.command("MIGRATE", self.to.address, self.to.port, "", 0, 10000, "KEYS", *keys)

    def content(self) -> dict[str, str]:
        """Of both nodes."""
        found = {}
        for node in (self.source, self.target):
            keys = self.keys(node)
            digests = node.command("DEBUG", "DIGEST-VALUE", *keys) if keys else []
            found |= {key: digest + self._groups(node, key) for key, digest in zip(keys, digests)}
        return found


    @staticmethod
    def _groups(node: Redis, key: str) -> str:
        """Those of a stream, which its digest leaves out."""
        def ask(*command: str):
            node.command("ASKING")
            return node.command(*command)

        if ask("TYPE", key) != "stream":
            return ""
        return str([(group[1], group[7], ask("XPENDING", key, group[1])) for group in ask("XINFO", "GROUPS", key)])


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {key for key in before | after if before.get(key) != after.get(key)}


def refusal(bench: Bench, call: list[bytes]) -> str:
    try:
        bench.source.command(*call)
    except RedisError as error:
        return str(error)
    return ""


def half_moves(bench: Bench) -> Iterator[list[str]]:
    """Each key alone is at the target; and all but one are."""
    keys = list(bench.kept)
    yield from ([key] for key in keys)
    yield from ([key for key in keys if not key.endswith(stays)] for stays in (":state", ":config", ":events"))


def judge(bench: Bench, call: list[bytes]) -> tuple[bool, list[str]]:
    """Did it write, with the slot in place? And what is wrong with it, with the slot half way."""
    before = bench.content()
    refused = refusal(bench, call)
    written = changed(before, bench.content())
    wrong = []
    for moved in half_moves(bench) if written and not refused else []:
        bench.restore()
        bench.move(moved)
        before = bench.content()
        said = refusal(bench, call)
        now = changed(before, bench.content())
        if now != (set() if said else written):
            wrong.append(f"{function_of(call)} with {moved[0] if len(moved) == 1 else 'most'} moved: {said or 'done'}; wrote "
                         f"{sorted(now)} of {sorted(written)}")
    bench.restore()
    return bool(written), wrong


def besides(bench: Bench, calls: dict[str, list[bytes]], name: str, args: list[str]) -> list[bytes]:
    """A call, and what it needs to write."""
    if name == "expire":
        first = bench.source.command("ZRANGE", f"tl:{TAG}:active", 0, 0)
        bench.source.command("ZADD", f"tl:{TAG}:active", 1, *first)  # its deadline has passed
    elif name == "claim":
        bench.source.command("XADD", INGEST, "*", "d", "batch")
        bench.source.command("XREADGROUP", "GROUP", "dispatchers", "other", "STREAMS", INGEST, ">")
    elif name == "poison":
        entry = bench.source.command("XADD", INGEST, "*", "d", "batch")
        bench.source.command("XREADGROUP", "GROUP", "dispatchers", "dispatcher", "STREAMS", INGEST, ">")
        args = [bench.source.command("HGET", f"tl:{TAG}:state", "fence"), entry, *args[2:]]
    elif name == "history":
        bench.source.command("DEL", f"tl:{TAG}:history")
    elif name == "group":
        bench.source.command("XGROUP", "DESTROY", INGEST, "dispatchers")
    bench.keep()
    prefix, who = calls["apply"][1].decode().removesuffix("apply"), calls["configure"][-3:]
    flat = [word for arg in args for word in (who if arg == "WHO" else [arg.encode()])]
    return [b"FCALL", f"{prefix}{name}".encode(), b"1", f"tl:{TAG}:state".encode(), *flat]


def live(system: System) -> None:
    """Visitors and operators do what leads to calls."""
    def ctl(*args: str) -> None:
        done = system.ctl(*args)
        assert done.returncode == 0, (args, done.stdout, done.stderr)

    visitors = [system.join(QUEUE) for _ in range(6)]
    wait_until(lambda: sum(visitor.is_active() for visitor in visitors) == 2, PATIENCE, "two are admitted")
    active = [visitor for visitor in visitors if visitor.view["status"] == "active"]
    waiting = [visitor for visitor in visitors if visitor not in active]
    active[0].complete()
    wait_until(lambda: sum(visitor.is_active() for visitor in waiting) == 1, PATIENCE, "the next is admitted")
    waiting = [visitor for visitor in waiting if visitor.view["status"] == "waiting"]
    ctl("visitor", "move", QUEUE, waiting[2].ticket, "vip")
    ctl("visitor", "remove", "--yes", QUEUE, waiting[1].ticket)
    ctl("visitor", "forget", "--yes", QUEUE, waiting[2].ticket)
    waiting[0].leave()
    system.set(QUEUE, "capacity=3")
    ctl("queue", "recover", QUEUE, "--wait", "30s")
    ctl("queue", "recover", QUEUE, "--now")
    ctl("queue", "notice", QUEUE, "soon")
    ctl("audit")
    system.set(QUEUE, "session_ttl=1s")
    last = system.join(QUEUE)
    wait_until(lambda: last.status()["status"] == "expired", PATIENCE, "a session ends")


def test_a_call_on_half_a_slot_writes_nothing_or_all(start, cluster: RedisCluster, figure):
    system = start({QUEUE: {"capacity": 2, "lanes": ["vip", "normal"], "lane_weights": [3, 1]} | CALM}, prepare=cluster.prepare,
                   settings={"redis": {"timeout": "1s"}})
    for pattern in TROUBLE:
        system.expect(pattern)
    source = cluster.master_of(TAG)
    target = next(node for node in cluster.masters() if node is not source)
    bench = Bench(source.connect(), target.connect(), source, target)
    bench.keep()
    recorder = Recorder(source)
    recorder.start()
    live(system)
    recorder.stop()
    system.finish()
    system.sound = False  # what follows is no longer what it left
    bench.restore()
    added, wrong, tried = [], [], {}
    for call in recorder.calls:
        if call[0] == b"XADD":
            added.append(call[-1])
            continue
        name = function_of(call)
        if name == "apply":
            for entry in [one for one in call if re.fullmatch(rb"\d{10,}-\d+", one)]:
                bench.source.command("XADD", INGEST, entry, "d", added.pop(0))
            bench.source.command("XREADGROUP", "GROUP", "dispatchers", "dispatcher", "STREAMS", INGEST, ">")
            bench.keep()
        if tried.get(name, 0) < TRIES:
            did_write, complaints = judge(bench, call)
            tried[name] = tried.get(name, 0) + did_write
            wrong += complaints
        refusal(bench, call)
        bench.keep()
    calls = {function_of(call): call for call in recorder.calls if call[0] != b"XADD"}
    for name, args in BESIDES.items():
        call = besides(bench, calls, name, args)
        did_write, complaints = judge(bench, call)
        tried[name] = tried.get(name, 0) + did_write
        wrong += complaints
        if name == "poison":
            bench.source.command("FUNCTION", "LOAD", PLANTED.text)
            planted = [call[0], PLANTED.name(name).encode(), *call[2:]]
            assert judge(bench, planted)[1], "a function that does not look first is found"
    writers = {name for name, times in tried.items() if times}
    figure(f"{len(tried)} functions called, of which wrote: {', '.join(sorted(writers))}")
    assert not wrong, "\n".join(wrong)
    assert writers >= WRITERS | set(BESIDES), (WRITERS | set(BESIDES)) - writers
