# SPDX-License-Identifier: Apache-2.0
"""The waiting page in a real browser against the real programs, up to the shop behind it."""
from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium import webdriver

from browser import SCREENSHOTS, Page, axe_at_hand, check_accessible, look, press, scripts, until, visit
from figures_of import metric
from http_client import Visitor
from local_pages import LocalPage, LocalPages
from page_clock import script, speed_of
from sse import EventStream
from tellerline import CALM, PATIENCE, System
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=60)

JOIN, LEAVE = "form[action*=join] button", "form[action*=leave] button"
#: What shows LEAVE. The fold above it, about another device, is deeper in the page.
LEAVING = ".help > details:not([open]) > summary"
SIZES = {"phone": (390, 844), "desktop": (1280, 800)}
HEADINGS = {"en": {"waiting": "You are in line", "active": "It is your turn", "completed": "All done"},
            "ko": {"waiting": "순서를 기다리고 있습니다", "active": "입장할 차례입니다",
                   "completed": "이용이 끝났습니다"}}
NOTICES = {"en": "Doors open ten minutes late", "ko": "문을 10분 늦게 엽니다"}


class Shop(LocalPages):
    """The guarded shop. Records the requested addresses."""

    def __init__(self) -> None:
        super().__init__(ShopPage)
        self.asked: list[str] = []


class ShopPage(LocalPage):
    server: Shop

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.answer("<title>Shop</title><h1>Shop</h1>")


@pytest.fixture
def shop() -> Iterator[Shop]:
    server = Shop()
    with server.serving():
        yield server


@pytest.fixture
def hurried(browser: webdriver.Remote) -> Iterator[None]:
    """Time passes faster in the pages of the first tab: what a page does after some seconds is tested, not the seconds.
    Not in Firefox, where no script comes before the page's."""
    if not hasattr(browser, "execute_cdp_cmd"):
        yield
        return
    window = browser.current_window_handle
    clock = script(speed_of(5), time.time())
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": clock})
    yield
    browser.switch_to.window(window)
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


@pytest.fixture
def line(start: Callable[..., System], shop: Shop) -> tuple[System, list[Visitor]]:
    """One visitor is in the shop and two wait. The next visitor is the third in line."""
    system = start({"shop": CALM | {"capacity": 1, "target_url": shop.url + "/"}},
                   settings={"worker": {"processes": 2}})
    others = [system.join("shop") for _ in range(3)]
    wait_until(others[0].is_active, PATIENCE, "the first is in")
    return system, others


# ---- what the browser shows ----

def open_page(browser: webdriver.Chrome, system: System, query: str = "") -> None:
    visit(browser, f"http://127.0.0.1:{system.of('worker')[0].http_port}/q/shop{query}")


def stands_at(place: int) -> Callable[[Page], bool]:
    return lambda page: page.state == "waiting" and page.text("ahead").rstrip("명") == str(place - 1)


def at(browser: webdriver.Chrome, place: int) -> Page:
    return until(browser, stands_at(place), f"place {place}")


def is_shop(page: Page) -> bool:
    return page.title == "Shop"


def lands(browser: webdriver.Chrome, address: str) -> None:
    until(browser, lambda page: page.url == address and is_shop(page), f"the browser is at {address}")


def gets_in(browser: webdriver.Chrome) -> None:
    until(browser, lambda page: page.state == "active" or is_shop(page), "let in")


def photograph(browser: webdriver.Chrome, name: str) -> None:
    """One screenshot per width. Nothing may overflow horizontally. In Chromium only."""
    if not hasattr(browser, "execute_cdp_cmd"):
        return
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for size, (width, height) in SIZES.items():
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": width, "height": height, "deviceScaleFactor": 1,
                                 "mobile": False})
        until(browser, lambda page: page.width <= width, f"nothing is wider than {width} pixels")
        assert browser.save_screenshot(str(SCREENSHOTS / f"{name}-{size}.png"))
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def look_at_admission(browser: webdriver.Chrome, system: System, language: str) -> None:
    """The page of an admitted visitor. It redirects after three seconds, so a slow machine may need several tries."""
    def seen(page: Page) -> bool:
        if is_shop(page):
            open_page(browser, system, f"?lang={language}")
        if page.state != "active" or page.headings != [HEADINGS[language]["active"]]:
            return False
        photograph(browser, f"admitted-{language}")
        return look(browser).state == "active"

    until(browser, seen, f"the page says {HEADINGS[language]['active']!r}")


def leave(browser: webdriver.Chrome) -> None:
    press(browser, LEAVING, LEAVE, then=lambda page: page.state == "left", what="left")


def ticket_of(browser: webdriver.Chrome, system: System) -> Visitor:
    """The visitor in the browser, as seen by the shop's back end, which was given the ticket."""
    cookie = browser.get_cookie("tellerline_shop")
    assert cookie is not None and cookie["httpOnly"], cookie
    return Visitor(system.client(), "shop", cookie["value"])


# ---- the tests ----

@pytest.mark.parametrize("language", ["en", pytest.param("ko", marks=pytest.mark.sanitized)])
def test_from_the_line_into_the_shop_and_again(browser, line, shop, language):
    system, others = line
    open_page(browser, system, f"?lang={language}")
    page = at(browser, 3)
    assert page.heading == HEADINGS[language]["waiting"]
    assert page.text("ahead") == {"en": "2", "ko": "2명"}[language]
    others[2].leave()
    at(browser, 2)
    assert system.ctl("queue", "notice", "shop", NOTICES[language]).returncode == 0
    until(browser, lambda page: page.text("notice") == NOTICES[language], "the notice")
    photograph(browser, f"waiting-{language}")
    assert system.ctl("queue", "notice", "shop", "").returncode == 0
    until(browser, lambda page: page.state == "waiting" and not page.shows("notice-box"), "the notice is taken back")
    others[1].leave()
    at(browser, 1)
    assert shop.asked == [], "no visitor is let in early"

    others[0].complete()
    gets_in(browser)
    look_at_admission(browser, system, language)
    lands(browser, shop.url + "/")

    next_in = system.join("shop")
    visitor = ticket_of(browser, system)
    open_page(browser, system)
    until(browser, lambda page: page.state == "active", "still in")
    visitor.complete()
    page = until(browser, lambda page: page.state == "completed", "the page hears of the end")
    assert page.heading == HEADINGS[language]["completed"]
    photograph(browser, f"ended-{language}")
    browser.refresh()
    page = until(browser, lambda page: page.state != "active", "the other process of the worker hears of it, too")
    assert page.state == "completed", "opening the page of an ended place does not join again"
    wait_until(next_in.is_active, PATIENCE, "the next one is in")
    press(browser, JOIN, then=stands_at(1), what="in line again")
    next_in.complete()
    lands(browser, shop.url + "/")


@pytest.mark.parametrize("language", ["en", "ko"])
def test_axe_finds_nothing(browser, line, language):
    system, _ = line
    assert system.ctl("queue", "notice", "shop", NOTICES[language]).returncode == 0
    with axe_at_hand(browser):
        open_page(browser, system, f"?lang={language}")
        at(browser, 3)
        until(browser, lambda page: page.text("notice") == NOTICES[language], "the notice")
        for fold in (LEAVING, "[data-tl=move]:not([open]) > summary"):
            press(browser, fold, then=lambda page: not page.offered, what=f"open: {fold}")
        check_accessible(browser, "waiting")
        leave(browser)
        check_accessible(browser, "left")


def test_without_javascript(browser, line, shop):
    system, others = line
    scripts(browser, enabled=False)
    open_page(browser, system)
    assert at(browser, 3).heading == HEADINGS["en"]["waiting"]
    addresses = re.sub(r"<script>.*?</script>", "", browser.page_source, flags=re.DOTALL)
    assert "/q/shop" in addresses and "ticket=" not in addresses, "the browser keeps cookies, so no address needs the ticket"
    others[2].leave()
    assert "from=3" in at(browser, 2).url, "the page refreshed itself"
    others[1].leave()
    others[0].complete()
    gets_in(browser)
    lands(browser, shop.url + "/")
    assert system.numbers("shop")["joined"] == 4, "every refresh was the same visitor"


def test_tab_in_the_background_goes_on(browser, hurried, line, shop):
    """The visitor enters the shop. A return address on a foreign site is not followed."""
    system, others = line
    open_page(browser, system, f"?return={quote('http://elsewhere.example/', safe='')}")
    at(browser, 3)
    browser.switch_to.new_window("tab")
    for visitor in others[1:]:
        visitor.leave()
    others[0].complete()

    def titles() -> list[str]:
        targets = browser.execute_cdp_cmd("Target.getTargets", {})["targetInfos"]
        return [target["title"] for target in targets if target["url"] == shop.url + "/"]

    wait_until(lambda: titles() == ["Shop"], PATIENCE, "the tab behind is in the shop", 0.05)


def test_frozen_tab_catches_up(browser, hurried, line, shop):
    system, others = line
    open_page(browser, system)
    at(browser, 3)
    browser.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "frozen"})
    for visitor in others[1:]:
        visitor.leave()
    others[0].complete()
    wait_until(lambda: system.numbers("shop")["admitted"] == 2, PATIENCE, "admitted asleep")
    assert shop.asked == []
    browser.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "active"})
    lands(browser, shop.url + "/")


def serving(system: System) -> list[int]:
    """The worker's processes that hold a connection, after the test's own connections are closed."""
    worker = system.of("worker")[0]
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    port = f":{worker.http_port:04X}"
    open_here = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(port) and row[3] == "01"}
    found = []
    for pid in worker.children():
        links = set()
        for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                links.add(os.readlink(descriptor))
            except OSError:
                continue  # closed meanwhile
        if links & open_here:
            found.append(pid)
    return found


def test_a_page_whose_stream_gives_way_asks_instead(browser, start, shop):
    system = start({"shop": CALM | {"capacity": 1, "target_url": shop.url + "/"}},
                   settings={"http": {"streams_per_ticket": 1}})
    others = [system.join("shop") for _ in range(3)]
    open_page(browser, system)
    at(browser, 3)
    ticket = browser.get_cookie("tellerline_shop")["value"]
    newer = EventStream(system.of("worker")[0].http_port, "/v1/queues/shop/events", ticket)
    newer.event("position")
    wait_until(lambda: metric(system.of("worker")[0], "tellerline_worker_streams_replaced_total") == 1, PATIENCE,
               "the page's stream gave way")
    others[2].leave()
    at(browser, 2)
    assert metric(system.of("worker")[0], "tellerline_worker_streams_replaced_total") == 1, "the newer one stays"
    newer.close()


def test_place_survives_the_worker_that_served_it(browser, hurried, line, shop):
    system, others = line
    system.expect(r"role=worker .*ended by signal 9 \(Killed\)")
    for visitor in others:
        visitor.client.close()
    open_page(browser, system)
    visitor = at(browser, 3).visitor
    before = system.of("worker")[0].children()
    killed = wait_until(lambda: serving(system), PATIENCE, "a process serves the page")
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(set(system.of("worker")[0].children()) - set(killed)) == len(before),
               PATIENCE, "every killed process is replaced")
    system.of("worker")[0].wait_ready()
    Visitor(system.client(), "shop", others[2].ticket).leave()
    at(browser, 2)
    browser.refresh()
    assert at(browser, 2).visitor == visitor and system.numbers("shop")["joined"] == 4
    Visitor(system.client(), "shop", others[1].ticket).leave()
    Visitor(system.client(), "shop", others[0].ticket).complete()
    lands(browser, shop.url + "/")


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
def test_return_address_survives(browser, hurried, line, shop, scripted):
    system, others = line
    for visitor in others[1:]:
        visitor.leave()
    scripts(browser, enabled=scripted)
    deep = f"{shop.url}/concert/seats?row=4&seat=7%208&name=%EA%B0%80"
    open_page(browser, system, f"?return={quote(deep, safe='')}")
    at(browser, 1)
    press(browser, "nav summary", "nav a[lang=ko]", then=lambda page: page.text("ahead") == "0명", what="in Korean")
    leave(browser)
    press(browser, JOIN, then=stands_at(1), what="in line again")
    others[0].complete()
    lands(browser, deep)
