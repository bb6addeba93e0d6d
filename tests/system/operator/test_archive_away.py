# SPDX-License-Identifier: Apache-2.0
"""While Redis is away, workers that started since tell the last known places from the archive."""
from __future__ import annotations

import datetime
import re

import pytest

from admin import Admin, admin_file
from browser import scripts, until, visit
from http_client import Client
from tellerline import CALM, PATIENCE
from test_archive import agree, agree_open, join_many, value
from test_draw import drawn, open_now, time_in
from test_store_trouble import PROMPT, STORE_TROUBLE
from waiting import wait_until

WAITING = 3000
QUEUE = CALM | {"capacity": 2, "session_ttl": "1h", "claim_ttl": "1h", "waiting_ttl": "1h", "lanes": "vip,normal",
                "default_lane": "normal"}
AWAY = "the archive could not be read"


def begin(start, postgres, settings=None, **archive):
    system = start({"sale": QUEUE | (settings or {})}, archivers=1, prepare=admin_file, redis={"appendfsync": "always"},
                   settings=PROMPT | {"archive": {"url": postgres.url} | archive})
    system.expect(STORE_TROUBLE)
    system.expect(AWAY)
    return system


def lose_sight(system, postgres):
    """Redis is killed, and the worker is another one. Returns when that was, by the clock of Redis."""
    agree_open(system, postgres)
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_changes") != "0", PATIENCE, "the archive knows the settings")
    gone = int(system.store.command("TIME")[0])
    system.redis.kill()
    system.forget_store()
    worker = system.of("worker")[0]
    worker.kill()
    # It only reads, as docs/operators/archive.md says.
    postgres.sql("CREATE ROLE worker LOGIN; GRANT USAGE ON SCHEMA tellerline TO worker; "
                 "GRANT SELECT ON ALL TABLES IN SCHEMA tellerline TO worker")
    worker.env["TELLERLINE_ARCHIVE_URL"] = postgres.url.replace("//archive@", "//worker@")
    worker.start()
    return gone


def come_back(system, visitor):
    system.redis.start()
    for program in system.programs:
        program.wait_ready()
    assert "as_of" not in visitor.status()


def last_known(visitor):
    """The view, once the worker answers."""
    def ask():
        try:
            answer = visitor.client.get(f"{visitor.path}/status", visitor.ticket)
        except OSError:
            return None
        return answer.json if answer.status == 200 else None
    return wait_until(ask, PATIENCE, "the place is told")


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.mark.sanitized
@pytest.mark.parametrize("pseudonyms", [False, True])
def test_a_fresh_worker_tells_the_last_known_place(start, postgres, pseudonyms):
    system = begin(start, postgres, pseudonyms=pseudonyms)
    come = [system.join("sale") for _ in range(2)]
    wait_until(lambda: all(visitor.is_active() for visitor in come), PATIENCE, "two are active")
    desk = Admin(system.of("worker")[0])
    early = [system.join("sale") for _ in range(3)]
    join_many(system, WAITING, "v")
    late = system.join("sale")
    desk.done("POST", "queues/sale/visitors/v300/lane", {"lane": "vip"})
    desk.done("POST", f"queues/sale/visitors/{early[2].view['visitor']}/lane", {"lane": "vip"})
    desk.close()
    early[0].leave()
    # Also where many have gone since: the stretches of the line are not full.
    store = {visitor: visitor.status() for visitor in (*early[1:], late)}
    assert store[late]["position"] == WAITING + 3
    gone = lose_sight(system, postgres)
    for visitor, before in store.items():
        view = last_known(visitor)
        assert (view["status"], view["position"], view["ahead"]) == ("waiting", before["position"], before["ahead"])
        assert gone - 600 < seconds(view["as_of"]) <= gone + 1
        assert view["poll_after_ms"] >= 20000
        assert not view.keys() & {"pass", "eta_seconds", "waiting", "active", "ticket"}
    view = last_known(come[0])
    assert view["status"] == "active" and "pass" not in view and "as_of" in view and "expires_at" in view
    view = last_known(early[0])
    assert (view["status"], view["end_reason"]) == ("left", "left") and "as_of" in view
    page = late.client.get("/q/sale", late.ticket, headers={"Accept-Language": "ko"})
    assert page.status == 200 and re.search(r"\d\d:\d\d:\d\d( UTC)? 기준이며 순서는 그대로 유지됩니다", page.body.decode())
    page = late.client.get("/q/sale", late.ticket, headers={"Accept-Language": "en"}).body.decode()
    assert "Last updated" in page and f'data-position="{WAITING + 3}"' in page
    # The archive is for the places now.
    trail = late.client.get("/v1/queues/sale/trail/checkpoint")
    assert trail.problem(503)["type"] == "/problems/archive-unavailable"
    # A ticket must be genuine, and joins are refused as ever.
    assert late.client.get("/v1/queues/sale/status", late.ticket[:-2] + "xx").status == 503
    assert late.client.post("/v1/queues/sale/join").problem(503)
    metrics = Client(system.of("worker")[0].admin_port)
    assert value(metrics, "tellerline_worker_archive_reads_total") >= 6
    metrics.close()
    postgres.stop()
    wait_until(lambda: late.client.get(f"{late.path}/status", late.ticket).status == 503, PATIENCE, "both are away")
    answer = late.client.get(f"{late.path}/status", late.ticket)
    assert answer.problem(503)["type"] == "/problems/store-unavailable" and int(answer.headers["retry-after"]) >= 1
    postgres.start()
    assert last_known(late)["position"] == WAITING + 3
    come_back(system, late)


@pytest.mark.parametrize("with_scripts", [True, False])
def test_the_page_shows_the_last_known_place(start, browser, postgres, with_scripts):
    system = begin(start, postgres)
    address = f"http://127.0.0.1:{system.of('worker')[0].http_port}/q/sale?lang=en"
    join_many(system, 50, "v")
    visit(browser, address)
    until(browser, lambda page: page.text("ahead") == "48", "the position")
    visitor = system.join("sale")
    lose_sight(system, postgres)
    last_known(visitor)
    scripts(browser, with_scripts)
    try:
        visit(browser, address)
        if with_scripts:
            metrics = Client(system.of("worker")[0].admin_port)
            wait_until(lambda: value(metrics, "tellerline_worker_streams_failed_total") > 0, PATIENCE, "the stream says nothing")
            metrics.close()
        text = browser.find_element("tag name", "main").text
        assert "48" in text and "Last updated" in text and "drawn" not in text and "About" not in text, text
    finally:
        scripts(browser, True)
    come_back(system, visitor)


def test_the_place_of_another_generation_is_not_told(start, postgres):
    """The same seq in a later generation is somebody else's, unless the place came back in it."""
    system = begin(start, postgres)
    come = [system.join("sale") for _ in range(4)]
    wait_until(lambda: come[1].is_active(), PATIENCE, "two are active")
    lose_sight(system, postgres)
    visitor = come[3]
    assert last_known(visitor)["position"] == 2
    postgres.sql("SELECT open_generation('sale', max(generation) + 1) FROM queue_generations")
    postgres.sql("UPDATE queue_generations SET last_at = now() WHERE last_at IS NULL")
    postgres.sql("INSERT INTO queue_entries (generation_id, seq, lane, status, event, visitor) SELECT "
                 "(SELECT max(generation_id) FROM queue_generations), seq, lane, 'waiting', event, 'a-stranger' "
                 f"FROM queue_entries WHERE visitor = '{visitor.view['visitor']}'")
    answer = visitor.client.get(f"{visitor.path}/status", visitor.ticket)
    assert answer.problem(503)["type"] == "/problems/store-unavailable"
    postgres.sql("UPDATE queue_entries SET restored_at = now() WHERE visitor = 'a-stranger'")
    assert last_known(visitor)["position"] == 1
    come_back(system, visitor)


@pytest.mark.parametrize("draws", [1, 2])
def test_a_ticket_from_before_the_draw(start, postgres, draws):
    """It finds the place that the draw gave, and the proof of it. When Redis lost that draw, those of the next."""
    system = begin(start, postgres, {"order": "draw", "opens_at": time_in(600)})
    come = [system.join("sale") for _ in range(8)]
    tickets = [visitor.ticket for visitor in come]
    agree(system, postgres)
    history = system.redis.history()
    for n in range(draws):
        if n > 0:
            system.redis.kill()
            system.redis.lose_tail(history)
            system.forget_store()
            system.redis.start()
            wait_until(lambda: not drawn(system), PATIENCE, "the draw is lost", again_on=Exception)
        open_now(system)
        wait_until(lambda: drawn(system) and system.numbers("sale")["active"] == 2, PATIENCE, "the line is drawn, and two are in")
        agree_open(system, postgres)
    for visitor, ticket in zip(come, tickets):
        proof = visitor.client.get("/v1/queues/sale/trail/proof", ticket)
        seq = postgres.sql(f"SELECT seq FROM queue_entries WHERE visitor = '{visitor.view['visitor']}' AND status <> 'unknown'")
        assert proof.status == 200 and proof.json["leaf"].split(" ")[6].split(":")[1] == seq
    views = [visitor.status() for visitor in come]
    lose_sight(system, postgres)
    for visitor, ticket, view in zip(come, tickets, views):
        visitor.ticket = ticket
        told = last_known(visitor)
        assert [told.get(name) for name in ("status", "number", "position", "ahead")] \
            == [view.get(name) for name in ("status", "number", "position", "ahead")]
    come_back(system, come[0])


def test_what_is_not_known_is_not_told(start, postgres):
    """With weights the position depends on whose turn it is, which the archive does not know."""
    system = begin(start, postgres, {"lane_weights": "3,1"})
    come = [system.join("sale") for _ in range(4)]
    wait_until(lambda: come[1].is_active(), PATIENCE, "two are active")
    gone = lose_sight(system, postgres)
    view = last_known(come[3])
    assert view["status"] == "waiting" and "position" not in view and seconds(view["as_of"]) <= gone + 1
    page = come[3].client.get("/q/sale", come[3].ticket, headers={"Accept-Language": "en"}).body.decode()
    assert "it is kept" in page and 'data-state="down"' in page
    come_back(system, come[3])


def test_settings_that_did_not_come_in_time(start, postgres):
    """Whose turn it is, is not known either while the archive has none of the settings."""
    system = begin(start, postgres)
    come = [system.join("sale") for _ in range(4)]
    wait_until(lambda: come[1].is_active(), PATIENCE, "two are active")
    lose_sight(system, postgres)
    postgres.sql("DELETE FROM queue_changes")
    view = last_known(come[3])
    assert view["status"] == "waiting" and "position" not in view and "as_of" in view
    come_back(system, come[3])


def test_a_worker_that_knows_the_line_asks_nothing(start, postgres):
    system = begin(start, postgres)
    come = [system.join("sale") for _ in range(4)]
    wait_until(lambda: come[1].is_active(), PATIENCE, "two are active")
    agree(system, postgres)
    system.redis.kill()
    system.forget_store()
    wait_until(lambda: "as_of" in come[3].status(), PATIENCE, "the worker notices")
    assert come[3].status()["position"] == 2 and "waiting" in come[3].status()
    metrics = Client(system.of("worker")[0].admin_port)
    assert value(metrics, "tellerline_worker_archive_reads_total") == 0
    metrics.close()
    assert postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tellerline-worker'") == "0"
    come_back(system, come[3])
