# SPDX-License-Identifier: Apache-2.0
"""One queue is damaged among healthy ones: the others go on as before, nothing spins, and it works again once it is
repaired."""
from __future__ import annotations

import re

import pytest

from http_client import CONNECTION_TROUBLE, Client
from tellerline import PATIENCE, System
from test_store_trouble import redis_ms
from waiting import wait_until

pytestmark = pytest.mark.sanitized

#: Short sessions, so that everything happens during a test: joins, calls, ends.
LIVELY = {"capacity": 1, "session_ttl": "1s", "claim_ttl": "1s", "waiting_ttl": "10m"}
QUEUES = {"bad": LIVELY | {"session_ttl": "10m", "claim_ttl": "10m"}, "good": LIVELY}
#: The programs name the damaged queue, and no other.
DAMAGE = r"queue=bad\b"

ROLES = ("dispatcher", "admitter", "expirer")


def calls(system: System) -> int:
    """Commands that the store has run, without those of this test."""
    total = 0
    for line in system.store.command("INFO", "commandstats").splitlines():
        if line.startswith("cmdstat_") and not line.startswith("cmdstat_info"):
            total += int(line.partition("calls=")[2].partition(",")[0])
    return total


def goes_on(system: System, queue: str = "good") -> None:
    """Visitors of this queue join, are called one after the other, and their sessions end."""
    visitors = [system.join(queue) for _ in range(3)]
    wait_until(lambda: all(visitor.status()["status"] in ("active", "expired") for visitor in visitors), PATIENCE,
               "all were called")
    wait_until(lambda: visitors[0].status()["status"] == "expired", PATIENCE, "the session of the first ended")


def detail(system: System, role: str) -> str:
    client = Client(system.of(role)[0].admin_port)
    try:
        return client.get("/readyz").body.decode()
    finally:
        client.close()


def is_named(system: System, role: str, queue: str = "bad") -> bool:
    """The program is ready for the others, and says which queue it is not ready for."""
    program = system.of(role)[0]
    said = detail(system, role)
    return program.ready() and re.search(rf"\b{queue}: ", said) is not None and "good: " not in said


def join_works(system: System, queue: str) -> bool:
    answer = system.visitor(queue).client.post(f"/v1/queues/{queue}/join")
    assert answer.status in (200, 202, 503), answer.body
    return answer.status == 200


SETTINGS = {"http": {"join_wait": "2s"}, "redis": {"timeout": "5s"}}


def start_with_line(start) -> tuple[System, list]:
    system = start(QUEUES, settings=SETTINGS)
    system.expect(DAMAGE)
    visitors = [system.join("bad") for _ in range(3)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is active")
    return system, visitors


def quiet(system: System, seconds: float = 3.0, most: int = 300) -> None:
    """Nothing spins: a bounded number of commands in this time on the clock of the store."""
    def now() -> float:
        whole, micros = system.store.command("TIME")
        return int(whole) + int(micros) / 1e6

    began, before = now(), calls(system)
    wait_until(lambda: now() - began >= seconds, PATIENCE, "the span that is measured is over", every=0.1)
    spent = (calls(system) - before) / (now() - began)
    assert spent <= most, f"{spent:.0f} commands a second"


def set_wrong_type(system: System, name: str, queue: str = "bad") -> None:
    key = system.key(queue, name)
    if system.store.command("EXISTS", key):
        system.store.command("RENAME", key, key + ":kept")
    system.store.command("SET", key, "x")


def repair_type(system: System, name: str, queue: str = "bad") -> None:
    key = system.key(queue, name)
    system.store.command("DEL", key)
    if system.store.command("EXISTS", key + ":kept"):
        system.store.command("RENAME", key + ":kept", key)


#: Who cannot go on without which key.
NEEDED = {"ingest": ["dispatcher"], "events": ["admitter", "expirer"], "waiting": ["admitter"], "active": ["admitter", "expirer"],
          "state": ["dispatcher", "admitter", "expirer"], "config": ["admitter", "expirer"]}


def test_a_key_of_the_wrong_type(start):
    """In each queue another key. The programs name all of these queues, and each works again when it is repaired."""
    damaged = {name: f"bad-{name}" for name in NEEDED}
    system = start({queue: QUEUES["bad"] for queue in damaged.values()} | {"good": LIVELY}, settings=SETTINGS)
    system.expect(DAMAGE)
    lines = {name: [system.join(queue) for _ in range(3)] for name, queue in damaged.items()}
    for visitors in lines.values():
        wait_until(visitors[0].is_active, PATIENCE, "the first is active")
    joins = []
    for name, queue in damaged.items():
        set_wrong_type(system, name, queue)
        for _ in range(2):
            joins.append(system.client())
            joins[-1].send("POST", f"/v1/queues/{queue}/join")
    for name, queue in damaged.items():
        for role in NEEDED[name]:
            log, key = system.of(role)[0], system.key(queue, name)
            wait_until(lambda p=log, k=key: k in p.text(), PATIENCE, f"the {role} says which key of {queue}")
    for role in ROLES:
        wait_until(lambda r=role: is_named(system, r, r"bad-\w+"), PATIENCE, f"the {role} names a damaged queue")
    for client in joins:
        client.receive()
    goes_on(system)
    quiet(system)
    for name, queue in damaged.items():
        repair_type(system, name, queue)
    for name, queue in damaged.items():
        wait_until(lambda q=queue: join_works(system, q), PATIENCE, f"joins work again in {queue}", every=0.2)
    for role in ROLES:
        wait_until(lambda r=role: detail(system, r) == "ready\n", PATIENCE, f"the {role} is ready for all")
    for name, visitors in lines.items():
        visitors[0].complete()
        wait_until(visitors[1].is_active, PATIENCE, f"the line of {name} goes on")


def test_entries_read_by_a_foreign_consumer(start):
    """They are claimed, at once when later entries follow, and in a quiet queue too."""
    system, _ = start_with_line(start)
    ingest = system.key("bad", "ingest")
    for _ in range(3):
        # The first reader gets the entry; the dispatcher waits for it, too.
        dispatcher = system.of("dispatcher")[0]
        dispatcher.kill()
        answer = system.client().post("/v1/queues/bad/join")
        assert answer.status == 202, answer.body
        stolen = system.store.command("XREADGROUP", "GROUP", "dispatchers", "stranger", "COUNT", 10, "STREAMS", ingest,
                                      ">")
        assert stolen
        dispatcher.start()
        ticket = answer.json["ticket"]
        wait_until(lambda t=ticket: system.client().get("/v1/queues/bad/status", ticket=t).status == 200, PATIENCE,
                   "the join is numbered", every=0.2)
    assert "stranger" in system.of("dispatcher")[0].text()
    goes_on(system)
    quiet(system)


def test_settings_deleted_come_back_from_memory(start):
    """As they were, also what was changed since the file was read."""
    system, visitors = start_with_line(start)
    system.set("bad", "session_ttl=9m", "capacity=2")
    wait_until(visitors[1].is_active, PATIENCE, "the second is active")
    before = system.store.hash(system.key("bad", "config"))
    wait_until(lambda: system.client().get("/v1/queues/bad").json["capacity"] == 2, PATIENCE, "the worker knows them")
    system.store.command("DEL", system.key("bad", "config"))
    wait_until(lambda: system.store.hash(system.key("bad", "config")) == before, PATIENCE, "the settings are back")
    goes_on(system)
    visitors[0].complete()
    wait_until(visitors[2].is_active, PATIENCE, "the line goes on")


def test_settings_no_program_knows_come_from_the_file_and_paused(start):
    system, visitors = start_with_line(start)
    system.set("bad", "capacity=2")
    for program in system.programs:
        program.kill()
    system.store.command("DEL", system.key("bad", "config"))
    for program in system.programs:
        program.start()
    wait_until(lambda: system.store.hash(system.key("bad", "config")).get("mode") == "paused", PATIENCE, "paused")
    assert system.store.hash(system.key("bad", "config"))["capacity"] == "1"
    for program in system.programs:
        program.wait_ready()
    goes_on(system)
    system.set("bad", "mode=open")
    wait_until(lambda: join_works(system, "bad"), PATIENCE, "joins work again", every=0.2)
    for visitor in visitors[:2]:
        visitor.complete()
    wait_until(visitors[2].is_active, PATIENCE, "the line goes on")


def test_a_queue_that_admits_nobody_keeps_its_mode(start):
    """Also when a setting is damaged that no program knows any more: sold out is not undone by mending."""
    system, _ = start_with_line(start)
    config = system.key("bad", "config")
    system.set("bad", "mode=sold_out", "capacity=2")
    for program in system.programs:
        program.kill()
    system.store.command("HSET", config, "capacity", "x")
    for program in system.programs:
        program.start()
    wait_until(lambda: system.store.hash(config)["capacity"] == "1", PATIENCE, "the setting is that of the file")
    assert system.store.hash(config)["mode"] == "sold_out"
    for program in system.programs:
        program.wait_ready()


def test_state_deleted_is_written_again(start):
    """From the last event: nobody loses the place, and no number is used twice."""
    system, visitors = start_with_line(start)
    system.store.command("DEL", system.key("bad", "state"))
    wait_until(lambda: system.store.command("EXISTS", system.key("bad", "state")), PATIENCE, "there is a state again")
    goes_on(system)
    wait_until(lambda: join_works(system, "bad"), PATIENCE, "joins work again", every=0.2)
    visitors[0].complete()
    wait_until(visitors[1].is_active, PATIENCE, "the line goes on")
    wait_until(lambda: visitors[2].status().get("position") == 1, PATIENCE, "the third is the next")


def test_counters_that_cannot_be_read_are_written_again(start):
    """Each in its turn, while visitors come and go: from the line, the events and the other totals."""
    system, visitors = start_with_line(start)
    state = system.key("bad", "state")
    # test_damage.c has the other fields.
    for field, damage in (("generation", "rubbish"), ("fence", "4.5"), ("seq", "nan"), ("admitted", "")):
        system.store.command("HSET", state, field, damage)
        leaver, successor = visitors[0], visitors[1]
        leaver.complete()
        wait_until(successor.is_active, PATIENCE, f"the line goes on without {field}")
        wait_until(lambda f=field: system.store.command("HGET", state, f).isdigit(), PATIENCE, f"there is {field}")
        visitors = [successor, visitors[2], system.join("bad")]
        goes_on(system)
    done = system.ctl("audit")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("key, score", [("waiting", "1.5"), ("active", "inf")])
def test_an_unreadable_score(start, key, score):
    """A worker that starts then serves the other queues."""
    system, visitors = start_with_line(start)
    system.set("bad", "mode=paused")
    name = system.key("bad", key)
    broken = system.store.command("ZRANGE", name, 0, 0)[0]
    sound = system.store.command("ZSCORE", name, broken)
    system.store.command("ZADD", name, score, broken)
    for program in [*system.of("worker"), *system.of("expirer")]:
        program.kill()
        program.start()
        program.wait_ready()
    client = system.client()
    wait_until(lambda: "not served: bad" in client.get("/readyz").body.decode(), PATIENCE, "the worker names the queue")
    assert client.get("/v1/queues/bad/status", ticket=visitors[1].ticket).status == 503
    assert system.key("bad", key) in system.ctl("queue", "list").stdout
    goes_on(system)
    quiet(system)
    system.store.command("ZADD", name, sound, broken)
    system.set("bad", "mode=open")
    wait_until(lambda: client.get("/v1/queues/bad").status == 200, PATIENCE, "the worker serves the queue")
    wait_until(lambda: join_works(system, "bad"), PATIENCE, "joins work again", every=0.2)


def test_sessions_end_while_the_line_cannot_be_read(start):
    """The expirer sets the queue aside. Its sessions end all the same."""
    system, visitors = start_with_line(start)
    system.set("bad", "capacity=3")
    for visitor in visitors:
        wait_until(visitor.is_active, PATIENCE, "called")
    system.set("bad", "mode=paused")
    system.join("bad")
    waiting, active = system.key("bad", "waiting"), system.key("bad", "active")
    (broken,) = system.store.command("ZRANGE", waiting, 0, 0)
    sound = system.store.command("ZSCORE", waiting, broken)
    system.store.command("ZADD", waiting, "1.5", broken)
    expirer = system.of("expirer")[0]
    expirer.kill()
    expirer.start()
    wait_until(lambda: is_named(system, "expirer"), PATIENCE, "the expirer names the queue",
               again_on=CONNECTION_TROUBLE)
    for visitor in visitors:
        system.store.command("ZADD", active, "XX", redis_ms(system), visitor.view["visitor"])
        wait_until(lambda v=visitor: v.status()["status"] == "expired", PATIENCE, "the session ended")
        assert is_named(system, "expirer"), "the queue is still set aside"
    quiet(system)
    system.store.command("ZADD", waiting, sound, broken)
    system.set("bad", "mode=open")
    wait_until(lambda: join_works(system, "bad"), PATIENCE, "joins work again", every=0.2)


def test_queues_lists_the_damaged_one(start):
    system, _ = start_with_line(start)
    set_wrong_type(system, "waiting")
    done = system.ctl("queue", "list")
    assert done.returncode == 0, done.stderr
    assert system.key("bad", "waiting") in done.stdout and "good" in done.stdout, done.stdout
    repair_type(system, "waiting")
    assert system.key("bad", "waiting") not in system.ctl("queue", "list").stdout
