"""The sentinels say which server is the master: after a failover everything goes on there."""
from __future__ import annotations

import threading

import pytest

from http_client import CONNECTION_TROUBLE, Client
from redis_server import RedisError
from replication import PASSWORD, Replication
from tellerline import BIN, CALM, PATIENCE, System, run
from waiting import wait_until

PROMPT = {"http": {"join_wait": "1s"}, "redis": {"timeout": "1s"}}


@pytest.fixture
def replication():
    made: list[Replication] = []

    def make(replicas: int, sentinels: int = 3) -> Replication:
        made.append(Replication(replicas, sentinels))
        return made[-1]

    yield make
    for one in made:
        one.close()


class Joiner(threading.Thread):
    """Joins again and again, and counts the answers."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._client = Client(port)
        self._done = threading.Event()
        self.answers: dict[int, int] = {}
        self.unexpected: list[str] = []

    def run(self) -> None:
        while not self._done.wait(0.02):
            try:
                answer = self._client.post("/v1/queues/bank/join")
            except CONNECTION_TROUBLE as error:
                self.unexpected.append(repr(error))
                continue
            self.answers[answer.status] = self.answers.get(answer.status, 0) + 1
            if answer.status not in (200, 202, 503):
                self.unexpected.append(f"{answer.status} {answer.body[:200]!r}")

    def count(self, status: int) -> int:
        return self.answers.get(status, 0)

    def finish(self) -> None:
        self._done.set()
        self.join(PATIENCE)
        self._client.close()
        assert not self.unexpected, self.unexpected


def goes_on(system: System, joiner: Joiner) -> None:
    before = joiner.count(200)
    wait_until(lambda: joiner.count(200) >= before + 3, PATIENCE, "joins are numbered again")
    for program in system.programs:
        program.wait_ready()


@pytest.mark.long(seconds=25)
def test_failover_under_joins(start, replication):
    """The master is killed; then the next one is demoted by hand and stays alive, with the connections to it open."""
    store = replication(replicas=2)
    system = start({"bank": {"capacity": 1} | CALM}, workers=2, settings=PROMPT, prepare=store.prepare)
    first = system.join("bank")
    wait_until(first.is_active, PATIENCE, "the first is active")
    joiner = Joiner(system.of("worker")[1].http_port)
    joiner.start()
    try:
        goes_on(system, joiner)
        store.servers[0].kill()
        second = store.new_master(other_than=store.servers[0])
        goes_on(system, joiner)
        wait_until(lambda: first.status()["status"] == "active", PATIENCE, "the first is still active")

        store.servers[0].start()
        for sentinel in store.sentinels:
            wait_until(lambda s=sentinel: s.master()["port"] == str(second.port), PATIENCE, "sentinels agree")
        wait_until(lambda: store.servers[0].role() == "slave", PATIENCE, "the old master is a replica")
        wait_until(lambda: store.servers[0].ask("ROLE")[3] == "connected", PATIENCE, "and has caught up")
        wait_until(lambda: store.sentinels[0].ask("SENTINEL", "FAILOVER", "line"), PATIENCE,
                   "the sentinel knows a replica to promote", again_on=RedisError)
        store.new_master(other_than=second)
        goes_on(system, joiner)
        wait_until(lambda: second.programs() == 0, PATIENCE, "all programs have left the demoted master")
    finally:
        joiner.finish()
    wait_until(lambda: first.complete()["status"] == "completed", PATIENCE, "the first is completed")
    wait_until(lambda: system.active("bank") == 1, PATIENCE, "the next is admitted")
    # Sentinels may die, as long as one that knows the master is left.
    for sentinel in store.sentinels[:2]:
        sentinel.stop()
    worker = system.of("worker")[0]
    worker.stop()
    worker.start()
    worker.wait_ready()
    assert system.join("bank").view["status"] == "waiting"


@pytest.mark.long(seconds=15)
def test_old_master_that_still_answers_is_left(start, replication):
    """As after a partition: it is a master in its own eyes, connections to it are open, the sentinels name another."""
    store = replication(replicas=1)
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT, prepare=store.prepare)
    first = system.join("bank")
    wait_until(first.is_active, PATIENCE, "the first is active")
    old, new = store.servers
    new.ask("REPLICAOF", "NO", "ONE")
    for sentinel in store.sentinels:
        sentinel.watch_instead(new, 2)
    store.adopt(new)
    wait_until(lambda: old.programs() == 0, PATIENCE, "all programs have left the old master")
    assert old.role() == "master"
    for program in system.programs:
        program.wait_ready()
    wait_until(lambda: system.client().post("/v1/queues/bank/join").status == 200, PATIENCE, "joins are numbered")
    assert first.complete()["status"] == "completed"
    wait_until(lambda: system.active("bank") == 1, PATIENCE, "the next is admitted")

    hosts = store.url().rpartition("/")[0]
    unknown = run(BIN / "tellerline", "queues", "--redis", f"{hosts}/nobody")
    assert unknown.returncode != 0 and "knows no master named nobody" in unknown.stderr, unknown.stderr
    for sentinel in store.sentinels:
        sentinel.stop()
    silent = run(BIN / "tellerline", "queues", "--redis", store.url())
    assert silent.returncode != 0 and "none of 3 sentinels names a master" in silent.stderr, silent.stderr
    assert PASSWORD not in unknown.stderr + silent.stderr
    # Open connections are kept without any sentinel.
    assert system.client().post("/v1/queues/bank/join").status == 200
    store.sentinels[2].start()  # for the audit
