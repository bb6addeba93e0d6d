# SPDX-License-Identifier: Apache-2.0
"""Webhooks: what happens to queues is told to the webhooks of the configuration, signed, at least once."""
from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from admin import Admin, admin_file
from webhook_stand_in import Receiver
from http_client import Client
from preload import FAILING, Preload
from tellerline import BIN, CALM, PATIENCE, TOP, System, run
from test_users import denied_but_creating, guarded
from waiting import wait_until

MODES = ["opened", "paused", "resumed", "draining", "drained", "closed", "sold_out", "passthrough"]


def metric(system: System, name: str, role: str = "notifier") -> int:
    """Added up over the notifiers, or programs of another role, that run."""
    total = 0
    for program in system.of(role):
        if program.running:
            client = Client(program.admin_port)
            found = re.search(rf"^{name}{{[^}}]*}} (\d+)", client.get("/metrics").body.decode(), re.M)
            total += int(found.group(1)) if found else 0
            client.close()
    return total


def watched(system: System, queue: str = "shop") -> None:
    """The notifier has begun to keep the journal."""
    wait_until(lambda: system.store.hash(system.key(queue, "webhooks")).get("wanted"), PATIENCE, "the queue is watched")


def journal_length(system: System, queue: str = "shop") -> int:
    return system.store.command("XLEN", system.key(queue, "journal"))


def ctl(system: System, *words: str) -> str:
    done = system.ctl(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def verify_example() -> dict:
    """What the documentation tells a site to write."""
    text = (TOP / "docs/integrators/webhooks.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.S)
    assert code is not None
    names: dict = {}
    exec(code.group(1), names)  # noqa: S102: the example of our own documentation
    return names


@pytest.mark.sanitized
def test_modes_are_told_in_order_signed_as_the_documentation_verifies(start, tmp_path):
    receiver = Receiver(tmp_path)
    with receiver.serving():
        system = start({"shop": {"capacity": 0} | CALM, "other": {}}, notifiers=1,
                       settings={"webhooks": [receiver.webhook("site", MODES, queues="sh*p")]})
        watched(system)
        ctl(system, "queue", "pause", "other")
        for command in ("pause", "open", "drain", "close", "sell-out", "close", "open", "passthrough"):
            ctl(system, "queue", command, "shop")
            if command == "drain":
                wait_until(lambda: "drained" in receiver.types(), PATIENCE, "the empty line is told as drained")
        receiver.wait_for("paused", "resumed", "draining", "drained", "closed", "sold_out", "closed", "opened",
                          "passthrough")
        verify = verify_example()["verify"]
        secret = receiver.secret_file.read_text().strip()
        assert receiver.secret_file.stat().st_mode & 0o777 == 0o600
        now = time.time()
        for headers, body in receiver.requests:
            signature = headers["Tellerline-Signature"]
            assert verify(secret, signature, body, now)
            assert not verify(secret, signature, body + b" ", now)
            assert not verify(secret + "x", signature, body, now)
            assert not verify(secret, signature, body, now + 3600)  # an old request that is sent again
            assert headers["Tellerline-Id"] == json.loads(body)["id"] and json.loads(body)["webhook"] == "site"
        assert {event["queue"] for event in receiver.events()} == {"shop"}
        wait_until(lambda: journal_length(system) == 0, PATIENCE, "what was told is not kept")
        assert system.store.command("EXISTS", system.key("other", "journal"), system.key("other", "webhooks")) == 0  # not watched


def test_admissions_are_gathered_and_a_kill_loses_none(start, tmp_path):
    """Everyone who is admitted is told, while notifiers are killed and replaced; again, where it is not known. With the
    users of Redis that each program has."""
    receiver = Receiver(tmp_path)
    with receiver.serving():
        system = start({"shop": {"capacity": 1000} | CALM}, notifiers=2, prepare=guarded,
                       settings={"webhooks": [receiver.webhook("site", ["admitted"])]})
        watched(system)
        joined = []
        for i in range(60):
            joined.append(system.join("shop").ticket)
            if i in (20, 40):
                holder = system.store.command("GET", system.key("shop", "notifier"))
                program = next(program for program in system.of("notifier") if f"id {holder}" in program.text())
                program.kill()
                program.start()
                wait_until(lambda: system.store.command("GET", system.key("shop", "notifier")) not in (None, holder),
                           PATIENCE, "another one takes over")
        wait_until(lambda: system.active("shop") == 60, PATIENCE, "all are admitted")
        active = system.store.command("ZRANGE", system.key("shop", "active"), 0, -1)
        wait_until(lambda: sorted(receiver.admitted()) == sorted(active), PATIENCE, "all are told", every=0.1)
        assert len(receiver.requests) < 60  # in batches
        wait_until(lambda: journal_length(system) == 0, PATIENCE, "visitors' ids are not kept")
        assert "204" in ctl(system, "webhook", "test", "site") and not denied_but_creating(system)


def test_webhooks_that_fail_are_tried_again_and_hold_up_no_other(start, tmp_path):
    """One says that it cannot, one sends elsewhere, and one does not answer; beside them is one that is well."""
    moods = {"error": Receiver(tmp_path), "redirect": Receiver(tmp_path), "hangs": Receiver(tmp_path)}
    good = Receiver(tmp_path)
    for mood, bad in moods.items():
        bad.mood = mood
    with ExitStack() as serving:
        for receiver in (*moods.values(), good):
            serving.enter_context(receiver.serving())
        webhooks = [bad.webhook(mood, MODES, timeout="1s") for mood, bad in moods.items()] + [good.webhook("good", MODES)]
        system = start({"shop": CALM}, notifiers=1, settings={"webhooks": webhooks})
        watched(system)
        ctl(system, "queue", "pause", "shop")
        good.wait_for("paused")
        for mood, bad in moods.items():
            wait_until(lambda bad=bad: bad.asked >= 2, PATIENCE, f"{mood} is tried again")
        ctl(system, "queue", "open", "shop")
        good.wait_for("paused", "resumed")
        assert all(bad.requests == [] for bad in moods.values())
        wait_until(lambda: metric(system, "tellerline_webhooks_failing") == 3, PATIENCE, "it shows")
        wait_until(lambda: metric(system, "tellerline_webhook_failing_seconds") >= 1, PATIENCE, "and for how long")
        wait_until(lambda: metric(system, "tellerline_worker_webhooks", "worker") == 4, PATIENCE, "workers know of them")

        def rows() -> dict[str, Any]:
            return {row["name"]: row for row in json.loads(ctl(system, "webhook", "list", "-o", "json"))["webhooks"]}

        wait_until(lambda: rows()["good"]["told"] == 2, PATIENCE, "its answer to the second is noted", every=0.1)
        for mood in moods:
            row = rows()[mood]
            assert row["failing_since"] and row["problem"] and row["state"] == "failing", row
            assert row["pending"] == 2 and row["oldest_pending_ms"] > 0 and row["told"] == 0, row
        row = rows()["good"]
        assert row["failing_since"] is None and row["problem"] is None and row["state"] == "answers", row
        assert row["oldest_pending_ms"] is None and row["told"] == 2 and row["status"] == 204, row
        listed, stats = ctl(system, "webhook", "list"), ctl(system, "queue", "stats", "shop")
        assert "failing" in listed and all(f"webhook {mood}" in stats for mood in moods), stats
        for bad in moods.values():
            bad.mood = "well"
            bad.go_on.set()
        for bad in moods.values():
            bad.wait_for("paused", "resumed")
        wait_until(lambda: metric(system, "tellerline_webhooks_failing") == 0, PATIENCE, "they are well again")
        wait_until(lambda: journal_length(system) == 0, PATIENCE, "nothing is kept")


def test_a_dead_webhook_loses_events_past_the_bound_and_is_told_how_many(start, tmp_path):
    receiver = Receiver(tmp_path)
    receiver.mood = "error"
    with receiver.serving():
        system = start({"shop": CALM}, notifiers=1,
                       settings={"webhooks": [receiver.webhook("site", MODES)], "retention": {"webhooks_entries": 100}})
        watched(system)
        ctl(system, "queue", "pause", "shop")
        keys = [system.key("shop", "webhooks"), system.key("shop", "journal")]
        wait_until(lambda: receiver.asked > 0, PATIENCE, "it is tried")
        for _ in range(400):  # as many changes, without as many programs
            event = system.store.command("HINCRBY", keys[0], "journaled", 1)
            last = system.store.command("XREVRANGE", keys[1], "+", "-", "COUNT", 1)[0][0]
            system.store.command("XADD", keys[1], "NOMKSTREAM", "MAXLEN", "~", 100,
                                 f"{last.partition('-')[0]}-{int(last.partition('-')[2]) + 1}", "n", event, "at",
                                 int(time.time() * 1000), "what", "paused", "data", "")
        assert journal_length(system) <= 200
        row = json.loads(ctl(system, "webhook", "list", "-o", "json"))["webhooks"][0]
        assert row["state"] == "dead" and row["lost"] + row["pending"] == 401 and row["lost"] > 200
        receiver.mood = "well"
        wait_until(lambda: receiver.events("lost"), PATIENCE, "it is told how many it lost", every=0.1)
        wait_until(lambda: receiver.events("lost")[0]["count"] + len(receiver.events("paused")) == 401, PATIENCE,
                   "none is lost without a word", every=0.1)
        assert metric(system, "tellerline_webhooks_lost_total") == receiver.events("lost")[0]["count"]
        assert re.search(r"^site +shop +\d+ +0 +- +[1-9]\d* +answers$", ctl(system, "webhook", "list"), re.M)


def test_times_thresholds_and_the_loss_of_the_store(start, tmp_path):
    """What no command causes: an opening, a threshold, the end, a store that is away, and one that lost its data."""
    receiver = Receiver(tmp_path)
    events = ["opened", "threshold", "closed", "drained", "store_lost", "store_back"]
    with receiver.serving():
        system = start({"shop": {"capacity": 1, "opens_at": "2999-01-01T00:00:00Z", "recovery_window": "1s"} | CALM},
                       notifiers=1, settings={"webhooks": [receiver.webhook("site", events, threshold=4)]})
        watched(system)
        visitors = [system.join("shop") for _ in range(6)]
        receiver.wait_for("threshold")
        opens = datetime.now(timezone.utc) + timedelta(seconds=1)
        system.set("shop", f"opens_at={opens.isoformat(timespec='milliseconds')}")
        receiver.wait_for("threshold", "opened")
        assert receiver.events()[0] | {"id": "", "at": "", "waiting": 0} == {
            "id": "", "queue": "shop", "type": "threshold", "at": "", "threshold": 4, "waiting": 0, "side": "above"}
        for visitor in visitors[:4]:
            wait_until(visitor.is_active, PATIENCE, "one after the other")
            visitor.complete()
        receiver.wait_for("threshold", "opened", "threshold")
        assert receiver.events()[-1]["side"] == "below"
        for visitor in visitors[4:]:
            wait_until(visitor.is_active, PATIENCE, "to the end")
            visitor.complete()
        system.set("shop", f"closes_at={(datetime.now(timezone.utc) + timedelta(seconds=1)).isoformat()}")
        receiver.wait_for("threshold", "opened", "threshold", "closed", "drained")
        system.redis.stop()
        system.forget_store()
        wait_until(lambda: receiver.types()[-1] == "store_lost", PATIENCE, "the store is lost")
        assert receiver.events()[-1]["reason"] == "unreachable" and receiver.events()[-1]["queue"] is None
        system.redis.start()
        wait_until(lambda: receiver.types()[-1] == "store_back", PATIENCE, "and back", every=0.05)
        told = len(receiver.events())
        watched(system)
        system.store.command("FLUSHALL")
        wait_until(lambda: receiver.types()[told:] == ["store_lost", "store_back"], PATIENCE, "its data is lost",
                   every=0.05)
        assert {event["reason"] for event in receiver.events()[told:]} == {"data"}


def test_a_test_event_goes_the_whole_way(start, tmp_path):
    receiver = Receiver(tmp_path)
    with receiver.serving():
        system = start({"shop": {}}, notifiers=1, settings={"webhooks": [receiver.webhook("site", ["drawn"])]})
        watched(system)
        assert "204" in ctl(system, "webhook", "test", "site")
        receiver.wait_for("test")
        receiver.mood = "error"
        done = system.ctl("webhook", "test", "site")
        assert done.returncode == 1 and "500" in done.stdout
        done = system.ctl("webhook", "test", "nobody")
        assert done.returncode == 1 and "there is no webhook" in done.stderr


def test_no_proxy_leads_to_this_machine(start, tmp_path):
    """The environment names one that answers nobody: for the webhook, and for the command line with its token."""
    receiver = Receiver(tmp_path)
    nowhere = {"http_proxy": "http://127.0.0.1:1"}

    def prepare(system: System) -> None:
        admin_file(system)
        for program in system.of("notifier"):
            program.env |= nowhere

    with receiver.serving():
        system = start({"shop": {}}, notifiers=1, settings={"webhooks": [receiver.webhook("site", ["drawn"])]}, prepare=prepare)
        watched(system)
        assert "204" in ctl(system, "webhook", "test", "site")
        done = run(BIN / "tellerline", "webhook", "list", "--server", f"http://127.0.0.1:{system.of('worker')[0].admin_port}",
                   "--token-file", str(system.directory / "admin.token"), env=nowhere)
        assert done.returncode == 0 and "site" in done.stdout, done


def test_webhooks_through_the_admin_api(start, tmp_path):
    """The command line at another machine: with --server and a token; and a notifier that is away."""
    receiver = Receiver(tmp_path)

    def prepare(system: System) -> None:
        guarded(system)
        admin_file(system)

    with receiver.serving():
        system = start({"shop": {}, "other": {}}, notifiers=1, prepare=prepare,
                       settings={"webhooks": [receiver.webhook("site", ["drawn"], queues="shop")]})
        watched(system)
        admin = Admin(system.of("worker")[0])
        token = tmp_path / "operator.token"
        token.write_text(admin.make_token("olga", "operator"))
        token.chmod(0o600)
        server = ["--server", f"http://127.0.0.1:{admin.port}", "--token-file", str(token)]
        assert "204" in ctl(system, "webhook", "test", "site", *server)
        receiver.wait_for("test")
        assert re.search(r"^site +shop +1 +0 +- +0 +answers$", ctl(system, "webhook", "list", *server), re.M)
        assert admin.done("GET", "queues/other/webhooks") == {"queue": "other", "webhooks": [], "has_more": False}
        [row] = admin.done("GET", "queues/shop/stats")["webhooks"]
        named = {"id": "shop/site", "queue": "shop"}
        assert row | named == admin.done("GET", "queues/shop/webhooks")["webhooks"][0] == named | {
            "name": "site", "state": "answers", "pending": 0, "oldest_pending_ms": None, "told": 1, "lost": 0,
            "status": 204, "problem": None, "failing_since": None} | {name: row[name] for name in ("asked_at", "event")}
        receiver.mood = "error"
        done = system.ctl("webhook", "test", "site", *server)
        assert done.returncode == 1 and "500" in done.stdout
        system.of("notifier")[0].stop()
        wait_until(lambda: admin.done("GET", "webhooks")["webhooks"][0]["state"] == "unwatched", PATIENCE, "it is away")
        assert "no notifier" in ctl(system, "webhook", "list", *server)
        admin.call("POST", "queues/other/webhooks/site/test").problem(409)
        admin.call("POST", "queues/shop/webhooks/none/test").problem(409)
        admin.call("POST", "queues/none/webhooks/site/test").problem(404)
        admin.call("GET", "queues/none/webhooks").problem(404)
        admin.call("POST", "queues/shop/webhooks/site/test", {"more": 1}).problem(400)
        admin.close()
        assert not denied_but_creating(system)


def test_without_webhooks_there_is_no_journal(start):
    system = start({"shop": CALM}, notifiers=1)
    visitor = system.join("shop")
    wait_until(visitor.is_active, PATIENCE, "admitted")
    ctl(system, "queue", "pause", "shop")
    assert "no webhooks" in system.of("notifier")[0].text()
    assert system.store.command("EXISTS", system.key("shop", "journal"), system.key("shop", "webhooks")) == 0
    assert "no webhook watches a queue" in ctl(system, "webhook", "list")


@pytest.mark.sanitized
def test_a_notifier_whose_allocations_fail(start, tmp_path):
    """It says so and tries again, or ends and is started again: everyone who was admitted is told."""
    receiver, failing = Receiver(tmp_path), Preload(tmp_path, FAILING)

    def prepare(system: System) -> None:
        system.of("notifier")[0].prefix = failing.prefix

    with receiver.serving():
        system = start({"shop": {"capacity": 1000} | CALM}, notifiers=1, prepare=prepare,
                       settings={"webhooks": [receiver.webhook("site", ["admitted", "threshold"], threshold=1)]})
        system.expect("role=notifier|no memory|out of memory")
        watched(system)
        program = system.of("notifier")[0]
        for one_in in (200, 50, 20):
            failing.set(one_in)
            over = time.monotonic() + 2
            while time.monotonic() < over:
                if program.status() is not None:  # it cannot start while so many fail
                    failing.set(0)
                    program.kill()
                    program.start()
                    program.wait_ready()
                    failing.set(one_in)
                system.join("shop")
                time.sleep(0.1)
        failing.set(0)
        if not program.running:
            program.kill()
            program.start()
        active = system.store.command("ZRANGE", system.key("shop", "active"), 0, -1)
        wait_until(lambda: set(receiver.admitted()) >= set(active), PATIENCE, "all are told", every=0.1)
        assert not re.search(r"ERROR: AddressSanitizer|runtime error", program.text())
