# SPDX-License-Identifier: Apache-2.0
"""The gateway configurations of deploy/gateways, each in its real gateway, between a browser and a site."""
from __future__ import annotations

import html
import http.client
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest

from gateways import GATEWAYS, Browser, Place, open_shop, place, standing  # noqa: F401 - fixtures
from http_client import Answer
from tellerline import CALM, TOP, System, free_port
from test_store_trouble import STORE_TROUBLE
from waiting import PATIENCE, one_of, patient, wait_until

pytestmark = pytest.mark.together(seconds=30)

#: What visitors see while no worker answers.
AWAY = GATEWAYS / "tellerline-away.html"

#: A page deep inside the site, with the parts of an address that redirects often lose.
DEEP_LINK = "/concert/7%2F8?seat=A%2012&lang=ko&return=%2Fq%2Fother&name=%EA%B9%80"


def other_tickets(place: Place) -> Iterator[dict[str, str]]:
    """Credentials that must not admit: none, an invented one, a damaged one, and that of a visitor who still waits."""
    yield {}
    yield {"Cookie": "tellerline_shop=AAAA"}
    yield {"Authorization": "Bearer AAAA"}
    waiting = place.browser()
    assert waiting.join() == "waiting"
    ticket = waiting.cookies["tellerline_shop"]
    yield {"Cookie": f"tellerline_shop={ticket}"}
    yield {"Authorization": f"Bearer {ticket}"}
    yield {"Cookie": f"tellerline_shop={ticket[:-6]}{'A' * 6}"}
    yield {"Cookie": f"tellerline_other={ticket}"}
    yield {"X-Tellerline-Visitor": "boss", "X-Original-Method": "OPTIONS"}


def test_no_way_in_without_a_place(place):
    place.inside()
    for headers in other_tickets(place):
        for method, path in (("GET", "/"), ("GET", "/concert/7?seat=1"), ("HEAD", "/"),
                             ("POST", "/checkout"), ("DELETE", "/x"), ("OPTIONS", "/")):
            stranger = Browser(place.port)
            answer = stranger.request(method, path, headers, b"{}" if method == "POST" else None)
            assert answer.status == 303, (method, path, headers, answer)
            assert answer.headers["location"].startswith(f"http://localhost:{place.port}/q/shop"), answer
            stranger.client.close()
    assert place.site.requests == []


def test_a_call_by_a_script_is_refused_and_not_redirected(place):
    stranger = place.browser()
    for mode, status in (("cors", 401), ("no-cors", 401), ("navigate", 303)):
        assert stranger.get("/api/seats", {"Sec-Fetch-Mode": mode}).status == status
    assert place.site.requests == []


def test_what_is_public_needs_no_place(place):
    answer = place.browser().get("/public/style.css?v=2", {"X-Tellerline-Visitor": "boss"})
    assert answer.status == 200
    assert place.site.requests == [("GET", "/public/style.css?v=2", None)]


def test_no_shared_cache_keeps_a_guarded_page(place):
    """Unless the site says so itself."""
    inside = place.inside()

    def said(path: str) -> str | None:
        answer = inside.get(path)
        assert answer.status == 200, answer
        return answer.headers.get("cache-control")

    assert said("/") == said("/concert/7?seat=1") == "private"
    assert said("/concert?cache=max-age=60") == "max-age=60"
    assert said("/public/style.css") is None and said("/public/style.css?cache=max-age=60") == "max-age=60"


def test_the_site_learns_who_it_is(place):
    browser = place.inside()
    visitor = browser.get("/v1/queues/shop/status").json["visitor"]
    assert browser.get("/account", {"X-Tellerline-Visitor": "boss"}).status == 200
    assert browser.request("POST", "/checkout?x=1", body=b"a" * 100_000).status == 200
    assert place.site.requests == [("GET", "/account", visitor), ("POST", "/checkout?x=1", visitor)]


def way_on(page: Answer) -> str:
    """The address to which the waiting page sends an admitted visitor."""
    link = re.search(r'<a\b[^>]*\bdata-tl="go"[^>]*>', page.body.decode())
    assert link, page.body.decode()
    address = re.search(r'\bhref="([^"]*)"', link.group())
    assert address, link.group()
    return html.unescape(address.group(1))


def test_a_deep_link_survives_the_detour(place):
    first = place.inside()
    browser = place.browser()
    detour = browser.get(DEEP_LINK)
    assert detour.status == 303 and "no-store" in detour.headers["cache-control"], detour
    here = f"http://localhost:{place.port}{DEEP_LINK}"
    assert parse_qs(urlsplit(detour.headers["location"]).query)["return"] == [here]

    page_path = browser.path_of(detour.headers["location"])
    page = browser.get(page_path)
    assert page.status == 200 and page.headers["content-type"].startswith("text/html"), page
    assert browser.status() == "waiting" and not browser.is_inside()

    first.act("complete")
    wait_until(lambda: browser.status() == "active", PATIENCE, "the next one's turn")
    page = browser.get(page_path)
    assert way_on(page) == here
    answer = browser.get(browser.path_of(way_on(page)))
    assert answer.status == 200 and answer.body == f"the site: {DEEP_LINK}".encode(), answer


def test_a_foreign_return_address_is_not_followed(place):
    """The waiting page sends visitors to this site only, whatever Host a request has."""
    place.inside()
    browser = place.browser()
    for headers in ({"X-Original-URL": "https://evil.example/"}, {"X-Forwarded-Host": "evil.example"}):
        detour = browser.get("/concert/7", headers)
        assert detour.status == 303, detour
        page = browser.get(browser.path_of(detour.headers["location"]))
        assert page.status == 200 and b"evil.example" not in page.body, page.body.decode()


@pytest.mark.parametrize("verb", ["complete", "leave"])
def test_out_at_the_next_request(place, verb):
    browser = place.inside()
    assert browser.is_inside() and browser.is_inside("/concert/7")
    browser.act(verb)
    assert not browser.is_inside() and not browser.is_inside("/concert/7")
    assert browser.request("POST", "/checkout").status == 303


def test_out_when_the_session_is_over(place):
    def overstayed() -> float:
        browser = place.inside()
        began = time.monotonic()
        inside = browser.is_inside()
        wait_until(lambda: not browser.is_inside(), PATIENCE, "the session's end")
        assert inside or time.monotonic() - began > 2, "in as long as the session lasts"
        return time.monotonic() - began - 2

    with place.settings({"session_ttl": "2s", "claim_ttl": "2s"}, CALM):
        one_of(6, overstayed, patient(1), "seconds from the deadline, seen from here, until out")


def test_after_a_purchase_everybody_waits_again(place):
    """The waiting page offers a new place, at the back of the line like any other."""
    browser = place.inside()
    browser.act("complete")
    place.inside()
    page = browser.get(browser.path_of(browser.get("/again").headers["location"]))
    assert page.status == 200 and not browser.is_inside()
    again = browser.request("POST", "/q/shop/join", {"Content-Type": "application/x-www-form-urlencoded"}, b"")
    assert again.status == 303, again
    assert browser.status() == "waiting" and not browser.is_inside()


class Stream:
    """An event stream through the gateway, read as it comes."""

    def __init__(self, browser: Browser) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=patient(PATIENCE))
        self._connection.request("GET", "/v1/queues/shop/events", headers={
            "Host": f"localhost:{browser.port}", "Accept": "text/event-stream",
            "Accept-Encoding": "gzip, br", **browser.cookie_header()})
        self.response = self._connection.getresponse()

    def next(self, name: str) -> dict:
        """The data of the next event with this name."""
        event, data = "", ""
        while line := self.response.readline().decode():
            kind, _, value = line.rstrip("\n").partition(": ")
            if kind == "event":
                event = value
            elif kind == "data":
                data = value
            elif kind == "" and event == name:  # an event ends with an empty line
                return json.loads(data)
        raise AssertionError(f"the stream ended before {name}")

    def close(self) -> None:
        self.response.close()
        self._connection.close()


def test_event_streams_pass_unbuffered(place, figure):
    first, browser = place.inside(), place.browser()
    assert browser.join() == "waiting"
    stream = Stream(browser)
    try:
        assert stream.response.status == 200
        assert stream.response.getheader("Content-Type", "").startswith("text/event-stream")
        assert stream.response.getheader("Content-Encoding") is None
        assert stream.next("position")["position"] == 1  # while the stream stays open
        began = time.monotonic()
        first.act("complete")
        view = stream.next("admitted")
        took = time.monotonic() - began
        assert view["status"] == "active"
        assert took < 10, f"admitted {took:.1f} s after a place came free: it took a heartbeat to push it out"
        figure(f"{took * 1000:.0f} ms from `complete` to `admitted`, both through the gateway")
    finally:
        stream.close()


def test_closed_while_tellerline_is_away(place):
    browser = place.inside()
    assert browser.is_inside()
    worker = place.system.of("worker")[0]
    place.site.requests.clear()
    worker.stop()
    for other, path in ((browser, "/"), (place.browser(), "/q/shop")):
        answer = other.get(path)
        assert answer.status == 503 and answer.headers["retry-after"] == "5", answer
        assert "no-store" in answer.headers["cache-control"] and answer.body == AWAY.read_bytes(), answer
    assert place.site.requests == []
    assert browser.get("/public/style.css").status == 200

    worker.start()
    worker.wait_ready()
    wait_until(lambda: browser.get("/").status == 200, PATIENCE, "in again, with the same place")


def test_closed_while_tellerline_hangs(place):
    """A missing answer of the worker times out and admits no visitor."""
    browser = place.inside()
    worker = place.system.of("worker")[0]
    family = worker.children()
    assert family, "the worker has a child that serves"
    for pid in family:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert browser.get("/").status in (502, 503, 504)
    finally:
        for pid in family:
            os.kill(pid, signal.SIGCONT)
    assert place.site.requests == []
    wait_until(lambda: browser.get("/").status == 200, PATIENCE, "in again, with the same place")


def test_open_while_the_store_is_away(place):
    """on_store_error: open lets unknown visitors through, but not under a name of their own choice."""
    with place.settings({"on_store_error": "open"}, {"on_store_error": "closed"}):
        known = place.inside()
        visitor = known.get("/v1/queues/shop/status").json["visitor"]
        place.system.expect(STORE_TROUBLE)
        place.system.redis.stop()
        place.system.forget_store()
        stranger = place.browser()
        wait_until(stranger.is_inside, PATIENCE, "let through")
        place.site.requests.clear()
        forged = {"X-Tellerline-Visitor": "boss"}
        assert stranger.get("/x", forged).status == 200 and known.get("/y", forged).status == 200
        assert place.site.requests in ([("GET", "/x", nobody), ("GET", "/y", visitor)] for nobody in (None, ""))
        place.system.redis.start()
        for program in place.system.programs:
            program.wait_ready()


@pytest.mark.parametrize("open_shop", ["nginx"], indirect=True)
def test_the_demo_shop(open_shop):
    """A visitor enters, opens the seat of a shared link and buys a ticket. Then the next visitor enters, and the first
    must wait to come back."""
    shops: list[subprocess.Popen[bytes]] = []

    def start_site(system: System) -> int:
        port = free_port()
        worker = system.of("worker")[0].http_port
        shops.append(subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", str(TOP / "deploy" / "demo" / "shop" / "shop.py"), "--port", str(port),
             "--tellerline", f"http://127.0.0.1:{worker}", "--queue", "shop"], stdin=subprocess.DEVNULL))
        return port

    try:
        place = open_shop(start_site)
        buyer, other = place.browser(), place.browser()
        page = buyer.get(buyer.path_of(buyer.get("/concert/2?seat=B3&lang=ko").headers["location"]))
        seat = buyer.get(buyer.path_of(way_on(page)))
        assert seat.status == 200 and 'value="B3" checked' in seat.body.decode() and "밤 기차" in seat.body.decode()
        assert other.join() == "waiting"

        done = buyer.request("POST", "/checkout?lang=ko", {"Content-Type": "application/x-www-form-urlencoded"},
                             b"concert=2&seat=B3")
        assert done.status == 303, done
        receipt = buyer.get(done.headers["location"])
        assert receipt.status == 200 and "감사합니다" in receipt.body.decode(), receipt
        wait_until(lambda: other.status() == "active", PATIENCE, "the next one is called")
        assert buyer.status() == "completed" and buyer.get("/").status == 303
        assert other.get("/?lang=en").status == 200
    finally:
        for shop in shops:
            shop.terminate()
            assert shop.wait(patient(10)) == 0


def test_a_page_that_keeps_trying_while_only_the_store_is_away(place):
    """A new visitor who asks for the site is shown a page that says so and asks again, never a bare error; one in line
    keeps seeing the place."""
    place.inside()
    waits = place.browser()
    assert waits.join() == "waiting"
    place.system.expect(STORE_TROUBLE)
    place.system.redis.stop()
    place.system.forget_store()
    page = {"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}

    def is_shown() -> bool:
        new = place.browser()
        answer = new.get("/", page)
        while answer.status == 303:
            address = urljoin(f"http://localhost:{new.port}", answer.headers["location"])
            answer = new.get(new.path_of(address), page)
        if answer.status != 503:
            return False  # not noticed yet
        assert answer.headers["content-type"].startswith("text/html") and int(answer.headers["retry-after"]) >= 1, answer
        assert answer.headers["cache-control"] == "no-store", answer
        text = answer.body.decode()
        assert 'http-equiv="refresh"' in text and "<h1" in text and "<script" in text, text
        return True

    wait_until(is_shown, PATIENCE, "the page is shown", every=0.2)
    assert b'data-state="waiting"' in waits.get("/q/shop", page).body
    place.system.redis.start()
    for program in place.system.programs:
        program.wait_ready()
