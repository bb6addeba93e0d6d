# SPDX-License-Identifier: Apache-2.0
"""The groups of measurements that bench/run knows. How a group plugs in: bench/README.md."""
from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Verdict:
    """Whether `ours` beats every other name of a group, at the largest n, by metric; and why it may not."""
    ours: str
    why: dict[str, str]  # metric -> what explains it where ours is behind
    limits: tuple[str, ...] = ()  # names that are no rivals but bounds


@dataclass(frozen=True)
class Group:
    """One executable that prints JSON lines. {bin} and {top} in its command are filled in."""
    name: str
    title: str
    what: str  # for the report: what is measured, and what is not
    command: list[str]
    needs: tuple[str, ...] = ()  # of: redis, postgres, wrk, perf; or a file below {bin} as "bin:NAME"
    wants: tuple[str, ...] = ()  # the same, but the group can do without and says so itself
    pin: bool = True  # keep its process off the servers' core
    quick: bool = True  # part of a quick run
    verdict: Verdict | None = None
    quick_arguments: list[str] = field(default_factory=list)


GROUPS = [
    Group(
        name="ways", title="Ways to build a waiting line", command=["{bin}/ways_bench"],
        needs=("redis", "bin:ways_bench", "bin:tellerline-dispatcher"), wants=("postgres",),
        what="The designs people use for a waiting line, each built as well as it allows, with the same client and the "
             "same pipelining (1,000 visitors in a command or a pipeline, 16 such under way). Sessions last 0.4 s here "
             "and 1,400 may be active, so that admission and expiry of 1,400 can be timed in one go. Schedulers run "
             "the moment there is something to do: a fixed period would add half of it on average. Positions are "
             "looked up for visitors chosen at random; each answer is compared with the true one, and so is every "
             "count. Two rows show what goes wrong: two admitters at the same moment (a design that runs one scheduler "
             "under a lock avoids that, and waits for the lock when it dies), and a restart in the middle of an expiry "
             "wave.",
        verdict=Verdict(
            ours="Tellerline", limits=("plain Redis", "plain XADD"),
            why={
                "join": "this way only adds to a Sorted Set (1,000 visitors in one command, which no web server that "
                        "handles requests one by one does; see ZADD and ZRANK per join). A crash can lose or repeat a "
                        "join, and no one is told the place or any change. Tellerline reads a "
                        "stream, applies each batch exactly once and in order, answers with the places and tells all "
                        "workers, in one atomic step",
                "position, p50": "",
                "positions": "",
                "admission of 1,400": "this way moves the visitors with plain commands, one after the other, which a "
                                      "crash or a second admitter can interrupt (see the two rows on what goes wrong). "
                                      "Tellerline counts, moves, writes each session and tells all workers in one "
                                      "atomic step of at most 1,000",
            })),
    Group(
        name="apply", title="Joins through the dispatcher",
        command=["{bin}/apply_bench", "--bin", "{bin}", "--rounds", "1"],
        quick_arguments=["--batch", "1000", "--active", "300"],
        needs=("redis", "bin:apply_bench", "bin:tellerline-dispatcher"),
        what="Batches of joins from the ingest stream into a line of a million, by the real dispatcher, beside plain "
             "variadic ZADD of the same visitors at the same pipelining, in turn on one Redis; and how long Redis "
             "spent inside the function. The design wants half of the plain rate."),
    Group(
        name="apply-10m", title="Joins until ten million wait", quick=False,
        command=["{bin}/apply_bench", "--bin", "{bin}", "--rounds", "1", "--million", "10", "--batch", "1000",
                 "--active", "0,300"],
        needs=("redis", "bin:apply_bench", "bin:tellerline-dispatcher"),
        what="The same until ten million wait: a Sorted Set costs more the longer it is, and both pay for it."),
    Group(
        name="order", title="Order index", command=["{bin}/order_bench", "--json"],
        needs=("bin:order_bench",),
        what="The worker's index of who waits, in memory, beside a sorted array and a plain bitmap doing the same "
             "operations. One core, no server."),
]

# Tellerline as a whole: the real programs, started by the group itself on a Redis without persistence.
_OURS = ["/usr/bin/python3", "{top}/bench/ours/NAME.py"]


def _ours(name: str, title: str, what: str, needs: tuple[str, ...] = (), quick: bool = True) -> Group:
    return Group(name=name, title=title, what=what, command=[word.replace("NAME", name.replace("-", "_")) for word in _OURS],
                 needs=("bin:tellerline-worker", *needs), pin=False, quick=quick)


GROUPS += [
    _ours("edge", "Worker: requests a second", "One worker process on one core, 64 connections of wrk on the other, "
          "beside the bare HTTP library answering a constant of the same length. Then joins through 1, 2 and 4 workers "
          "with nothing pinned: on two cores that shows what sharing costs, not how workers scale.",
          ("wrk", "bin:bare_http")),
    _ours("turn", "From complete to the next one's admitted", "One counter, so that each turn takes the whole way: "
          "HTTP, ingest stream, dispatcher, events, admitter, events, worker, event stream. One turn after the other.",
          ("bin:sse_bench",)),
    _ours("durable", "What durability costs", "Joins, and the way from complete to the next one's admitted, on a Redis "
          "without persistence (none), with appendonly and appendfsync everysec, with appendfsync always (fsync), and "
          "with everysec and a replica that has acknowledged (replicated; it runs on the cores of what measures), each "
          "over a unix socket and over TCP. A time of joins ends when all of them are that durable. PostgreSQL is "
          "compared with the Redis that may lose as much: synchronous_commit on with fsync, off with everysec.",
          ("bin:apply_bench", "bin:ways_bench", "bin:sse_bench", "bin:tellerline-dispatcher"), quick=False),
    _ours("expiry", "Sessions that end by themselves", "How long after their deadline sessions end, when they end a "
          "few at a time; and how fast a mass of them, all overdue when the expirer starts, is drained."),
    _ours("start", "Worker start beside a long line", "From starting the program to the answer that it is ready, with "
          "so many waiting, and what the line costs in memory."),
    _ours("memory", "Memory of a visitor", "What Redis (used_memory) and a worker process's line take more than before, over "
          "the number of visitors: all wait, then all are active, then all have ended (of whom Redis keeps 500,000). Ids "
          "have 22 characters."),
    _ours("visitor", "What one visitor costs", "From join to end: Redis commands and bytes, and the processor time of "
          "every program, over the number of visitors. The worker's part is mostly HTTP."),
    _ours("idle", "Idle queues", "Queues in which nothing happens: leases are renewed, workers look after settings."),
    _ours("lone", "A lone join beside many queues", "Each join is answered before the next is sent, to queues at "
          "random. What the programs do without joins is taken off."),
    _ours("cluster", "Thirty queues on one, two and three nodes", "A Redis Cluster without replicas, and a plain Redis (n = 0): "
          "commands, from clients and functions, and processor time of each node and of all programs together. Idle; then "
          "joins of visitors who come one after the other; then joins in batches, 50,000 to each queue."),
    _ours("cluster-idle", "A hundred idle queues on three nodes", "A Redis Cluster of three masters beside a plain Redis "
          "(n = 0): commands, from clients and functions, processor time, and the connections of all programs to one node."),
    _ours("cluster-away", "Other nodes while a master is away", "Joins at two of three masters, each with a replica, before "
          "the third is killed or frozen and until its replica has taken its place, by the same visitors in one run. The "
          "master counts as lost after five seconds."),
    _ours("cluster-move", "A long line moves to another node", "The slot of a queue moves as redis-cli --cluster reshard does "
          "it, while visitors join one after the other. A tenth are inside, the others wait. A node answers nobody while it "
          "sends or takes a key."),
    _ours("export", "Export of a whole line", "All visitors as CSV over the admin API, in a process of its own: how long "
          "it takes, how much memory that process uses beyond what it had before, and what it adds to a turn "
          "(complete to admitted) of visitors meanwhile.", ("bin:sse_bench",)),
    _ours("archive", "The archive", "What an archiver writes of a record that was filled before it started, beside plain COPY of "
          "the same rows into a table with the same indexes, by time and by PostgreSQL's processor time; joins one at a "
          "time, until PostgreSQL has them; joins and status with the archive and without it, by processor time of Redis, "
          "worker and dispatcher; and how long Redis takes to get a line back that it has lost.",
          ("wrk", "bin:tellerline-archiver")),
    _ours("flood", "A flood of joins beside ordinary visitors", "Ten addresses join as fast as the machine lets them, "
          "through a trusted proxy, and are refused beyond their share (default limits). Ordinary visitors join one "
          "after the other, each from another address.", ("wrk",)),
    _ours("crowd", "Event streams", "Visitors who all listen, over several worker processes, and are all told when the "
          "front of the line moves. The readers run on the same cores and need about as much as the workers.",
          ("bin:sse_bench",)),
]
