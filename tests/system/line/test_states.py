# SPDX-License-Identifier: Apache-2.0
"""The modes and phases of a queue, end to end: the page, the API, the check, the command line."""
from __future__ import annotations

import datetime
import json
import signal

import pytest

from figures_of import metric
from http_client import Client
from sse import EventStream
from tellerline import CALM, PATIENCE, System, yaml
from test_store_trouble import STORE_TROUBLE
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=50)

PATH = "/v1/queues/bank"
TARGET = "https://shop.example/in"


def told(queue: str, client: Client, name: str) -> str:
    return client.get(f"/v1/queues/{queue}").json[name]


def change(system: System, command: str, mode: str, queue: str = "bank") -> None:
    """Every worker knows the mode."""
    done = system.ctl("queue", command, queue)
    assert done.returncode == 0 and done.stdout.startswith(f"{queue}: {mode}: "), done.stdout + done.stderr
    for worker in range(len(system.of("worker"))):
        client = system.client(worker)
        wait_until(lambda: told(queue, client, "mode") == mode, PATIENCE, f"worker {worker} knows that it is {mode}")


def row(system: System, queue: str) -> dict:
    """What `tellerline queue list` says of it."""
    return next(each for each in json.loads(system.ctl("queue", "list", "-o", "json").stdout)["queues"] if each["queue"] == queue)


def shown(system: System, queue: str, *words: str) -> str:
    """The line about it."""
    text = system.ctl(*words).stdout
    assert "PHASE" in text, text
    return next(line for line in text.splitlines() if queue in line.split())


#: command, mode, status of a newcomer, do the joined get in, what a newcomer reads in English and in Korean, and what
#: those who wait do.
MODES = [
    ("open", "open", 200, True, "You are in line", "순서를 기다리고 있습니다", 'data-tl="mode-closed" hidden>'),
    ("pause", "paused", 200, False, "The line is paused", "입장이 잠시 멈췄습니다", 'data-tl="paused">'),
    ("drain", "draining", 403, True, "Come back tomorrow.", "Come back tomorrow.", 'data-tl="mode-draining">'),
    ("close", "closed", 403, False, "Come back tomorrow.", "Come back tomorrow.", 'data-tl="mode-closed">'),
    ("sell-out", "sold_out", 410, False, "다 팔렸습니다.", "다 팔렸습니다.", 'data-tl="mode-sold_out">'),
]


@pytest.mark.parametrize("command, mode, status, admits, english, korean, badge", MODES, ids=[row[1] for row in MODES])
def test_a_mode_is_told_everywhere(share, command, mode, status, admits, english, korean, badge):
    system = share(workers=2)
    bank = system.queue(closed_text={"en": "Come back tomorrow."}, sold_out_text={"ko": "다 팔렸습니다."})
    first, second, third = (system.join(bank, worker=i % 2) for i in range(3))
    wait_until(first.is_active, PATIENCE, "one is in")
    assert not second.is_active()
    change(system, command, mode, bank)

    newcomers = [system.client(worker).post(f"/v1/queues/{bank}/join") for worker in (0, 1)]
    assert {answer.status for answer in newcomers} == {status}
    if status != 200:
        assert newcomers[0].json["type"] == "/problems/" + mode.replace("_", "-"), newcomers[0].body
    for language, text in (("en", english), ("ko", korean)):
        page = system.client().get(f"/q/{bank}", headers={"Accept-Language": language})
        assert page.status == status and text in page.body.decode(), page.body.decode()
    waits = system.client().get(f"/q/{bank}", ticket=third.ticket).body.decode()
    assert badge in waits and '<section data-state="waiting">' in waits
    view = third.status()
    assert view.get("mode", "open") == mode
    checked = system.client().get(f"/v1/queues/{bank}/check", ticket=third.ticket)
    assert checked.status == 401
    assert checked.headers.get("x-tellerline-mode", "open") == mode
    assert system.client().get(f"/v1/queues/{bank}/check", ticket=first.ticket).status == 204, "who is in stays in"
    assert row(system, bank)["mode"] == mode
    for words in (["queue", "list"], ["top", "--count", "1"]):
        assert f" {mode} " in shown(system, bank, *words)

    first.complete()
    if admits:
        wait_until(second.is_active, PATIENCE, "the next is called")
    else:
        # Another admitter would have called the next by the time that a change went all the way round.
        change(system, "pause" if mode == "paused" else "close", "paused" if mode == "paused" else "closed", bank)
        system.set(bank, "capacity=2")
        wait_until(lambda: system.client().get(f"/v1/queues/{bank}").json["capacity"] == 2, PATIENCE, "known")
        assert not second.is_active() and system.active(bank) == 0
        change(system, "open", "open", bank)
        wait_until(second.is_active, PATIENCE, "the next is called")


def test_sold_out_takes_two_steps_back(share):
    system = share(workers=2)
    bank = system.queue()
    change(system, "sell-out", "sold_out", bank)
    for wrong in (["open", bank], ["pause", bank], ["drain", bank], ["set", bank, "mode=open"]):
        done = system.ctl("queue", *wrong)
        assert done.returncode == 1 and "sold_out" in done.stderr, done.stderr
    change(system, "close", "closed", bank)
    change(system, "open", "open", bank)
    assert system.ctl("queue", "open", "nowhere").returncode == 1


def test_no_one_is_admitted_at_capacity_0(share):
    system = share(workers=2)
    bank = system.queue(capacity=0)
    visitor = system.join(bank)
    assert visitor.view["capacity"] == 0
    for language, text in (("en", "No one is admitted at the moment"), ("ko", "지금은 입장하지 않습니다")):
        page = system.client().get(f"/q/{bank}", ticket=visitor.ticket, headers={"Accept-Language": language})
        assert 'data-tl="no-capacity">' in page.body.decode() and text in page.body.decode()
    for words in (["queue", "list"], ["top", "--count", "1"]):
        assert " 0: no one " in shown(system, bank, *words)


def test_a_mode_written_by_hand_counts(share):
    system = share(workers=2)
    bank = system.queue(capacity=5)
    system.store.command("HSET", system.key(bank, "config"), "mode", "paused")
    wait_until(lambda: told(bank, system.client(), "mode") == "paused", PATIENCE, "the worker knows")
    visitor = system.join(bank)
    assert visitor.view["status"] == "waiting" and row(system, bank)["mode"] == "paused"
    system.set(bank, "mode=open")
    wait_until(visitor.is_active, PATIENCE, "it goes on")


# ---- passthrough ----

def everyone_gets_in(client: Client, queue: str = "bank") -> None:
    path = f"/v1/queues/{queue}"
    checked = client.get(f"{path}/check")
    assert checked.status == 204 and checked.headers["x-tellerline-mode"] == "passthrough"
    assert client.post(f"{path}/join").json == {"queue": queue, "status": "passthrough", "target_url": TARGET}
    page = client.get(f"/q/{queue}?return=https://shop.example/seat")
    assert page.status == 303 and page.headers["location"] == "https://shop.example/seat"


def test_passthrough_lets_everyone_in_and_counts_them(share):
    system = share(workers=2)
    bank = system.queue(capacity=0, target_url=TARGET)
    visitor = system.join(bank)
    stream = EventStream(system.of("worker")[0].http_port, f"/v1/queues/{bank}/events", visitor.ticket)
    before = metric(system.of("worker")[0], "tellerline_worker_passed_through_total")
    change(system, "passthrough", "passthrough", bank)
    everyone_gets_in(system.client(), bank)
    wait_until(lambda: (event := stream.next()).kind == "position" and event.json.get("mode") == "passthrough"
               and event.json["target_url"] == TARGET, PATIENCE, "those who wait are told")
    wait_until(lambda: metric(system.of("worker")[0], "tellerline_worker_passed_through_total") == before + 3, PATIENCE,
               "counted")
    change(system, "open", "open", bank)
    assert system.client().get(f"/v1/queues/{bank}/check").status == 401
    assert visitor.status()["status"] == "waiting", "the line is as it was"
    stream.close()


def test_passthrough_by_the_file_while_redis_is_away(start):
    system = start({"bank": {"capacity": 0, "target_url": TARGET} | CALM}, workers=2,
                   settings={"redis": {"timeout": "500ms"}})
    system.expect(STORE_TROUBLE)
    workers = system.of("worker")
    visitor = system.join("bank")
    stream = EventStream(workers[0].http_port, f"{PATH}/events", visitor.ticket)
    system.redis.stop()
    system.forget_store()
    text = system.config.read_text()
    assert system.client().get(f"{PATH}/check").status == 401

    def reload(queues: dict) -> None:
        system.config.write_text(text[:text.index("queues:")] + yaml({"queues": queues}))
        for worker in workers:
            worker.send(signal.SIGHUP)

    reload({"bank": {"mode": "passthrough"}})
    for i in range(len(workers)):
        client = system.client(i)
        wait_until(lambda: client.get(f"{PATH}/check").status == 204, PATIENCE, "the file is read")
        everyone_gets_in(client)
    wait_until(lambda: (event := stream.next()).kind == "position" and event.json.get("mode") == "passthrough", PATIENCE,
               "those who wait are told")
    reload({"bank": {}})
    for i in range(len(workers)):
        client = system.client(i)
        wait_until(lambda: client.get(f"{PATH}/check").status == 401, PATIENCE, "it is over")
    system.redis.start()
    wait_until(lambda: told("bank", system.client(), "mode") == "open" and visitor.status()["status"] == "waiting",
               PATIENCE, "the line is as it was")
    stream.close()


# ---- full, closing, bypass ----

def test_a_full_queue_does_not_flap(share):
    system = share(workers=2)
    bank = system.queue(capacity=0, max_waiting=10, reopen={"margin": "20%", "after": "1s"})
    visitors = [system.join(bank, worker=i % 2) for i in range(10)]
    for worker in (0, 1):
        client = system.client(worker)
        wait_until(lambda: told(bank, client, "phase") == "full", PATIENCE, "full")
        assert client.get(f"/v1/queues/{bank}").json["joins"] is False
        assert client.post(f"/v1/queues/{bank}/join").problem(503)["type"] == "/problems/full"
    assert row(system, bank)["phase"] == "full"
    since = int(system.store.command("HGET", system.key(bank, "state"), "full_since"))
    visitors[0].leave()
    assert system.client().post(f"/v1/queues/{bank}/join").status == 503, "one free place is within the margin"
    visitors[1].leave()
    wait_until(lambda: system.client(1).post(f"/v1/queues/{bank}/join").status == 200, PATIENCE,
               "the queue takes joins again")
    seconds, micros = system.store.command("TIME")
    assert int(seconds) * 1000 + int(micros) // 1000 >= since + 1000
    for worker in (0, 1):
        client = system.client(worker)
        wait_until(lambda: told(bank, client, "phase") == "open", PATIENCE, "open again")
    assert system.client().post(f"/v1/queues/{bank}/join").status == 200
    assert system.waiting(bank) == 10


@pytest.mark.parametrize("after_close, admits", [("drain", True), ("stop", False)])
def test_after_closes_at_no_one_joins(share, after_close, admits):
    system = share(workers=2)
    bank = system.queue(after_close=after_close)
    first, second = system.join(bank), system.join(bank)
    wait_until(first.is_active, PATIENCE, "one is in")
    seconds = int(system.store.command("TIME")[0]) + 2
    closes_at = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()
    system.set(bank, f"closes_at={closes_at}")
    wait_until(lambda: told(bank, system.client(), "phase") == "over", PATIENCE, "the time is over")
    assert system.client().post(f"/v1/queues/{bank}/join").problem(410)["type"] == "/problems/join-closed"
    for language, text in (("en", "The line is closed"), ("ko", "대기열이 닫혔습니다")):
        page = system.client().get(f"/q/{bank}", headers={"Accept-Language": language})
        assert page.status == 410 and text in page.body.decode()
    assert second.status()["phase"] == "over"
    assert row(system, bank)["phase"] == "over"
    first.complete()
    if admits:
        wait_until(second.is_active, PATIENCE, "the line is served")
        return
    system.set(bank, "capacity=2")
    wait_until(lambda: system.client().get(f"/v1/queues/{bank}").json["capacity"] == 2, PATIENCE, "known")
    assert not second.is_active()


def test_staff_get_past_the_line(start):
    system = start({"bank": {"capacity": 0} | CALM},
                   settings={"bypass": {"networks": "127.0.0.2", "header": "X-Staff"},
                             "http": {"trusted_proxies": "127.0.0.3"}})
    change(system, "close", "closed")
    worker = system.of("worker")[0]
    for source, headers, by in (("127.0.0.2", {}, "network"), ("127.0.0.3", {"X-Staff": "anna"}, "header"),
                                ("127.0.0.3", {"X-Forwarded-For": "127.0.0.2"}, "network"),
                                ("127.0.0.1", {"X-Staff": "anna"}, None), ("127.0.0.4", {}, None)):
        client = Client(worker.http_port, source=source)
        answer = client.get(f"{PATH}/check", headers=headers)
        assert answer.status == (401 if by is None else 204)
        assert answer.headers.get("x-tellerline-bypass") == by
        client.close()
    assert system.waiting("bank") == system.active("bank") == 0, "without a place"
    wait_until(lambda: metric(worker, "tellerline_worker_bypassed_total") == 3, PATIENCE, "counted")
    assert worker.text().count("got in past the line by") == 1, "recorded, once in ten seconds"
    assert "127.0.0.2 got in past the line by network" in worker.text()
