"""The waiting page in a real browser against the real programs, up to the shop behind it."""
from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from http_client import Visitor
from tellerline import CALM, PATIENCE, TOP, System
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=60)

SCREENSHOTS = TOP / "build" / "test-logs" / "screenshots"
AXE = TOP.parent / "shared" / "vendor" / "axe-core" / "axe.min.js"
SIZES = {"phone": (390, 844), "desktop": (1280, 800)}
HEADINGS = {"en": {"waiting": "You are in line", "active": "It is your turn", "completed": "All done"},
            "ko": {"waiting": "순서를 기다리고 있습니다", "active": "입장할 차례입니다",
                   "completed": "이용이 끝났습니다"}}
NOTICES = {"en": "Doors open ten minutes late", "ko": "문을 10분 늦게 엽니다"}


class Shop(ThreadingHTTPServer):
    """What the queue guards: remembers which addresses were asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ShopPage)
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class ShopPage(BaseHTTPRequestHandler):
    server: Shop

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = b"<!doctype html><title>Shop</title><h1>Shop</h1>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written beside the tests' own output."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--lang=en-US"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.set_page_load_timeout(60)
    driver.set_script_timeout(30)
    yield driver
    driver.quit()


@pytest.fixture
def shop() -> Iterator[Shop]:
    server = Shop()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def browser(chromium: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """A browser that has never been here; afterwards its console must be free of errors of the page."""
    yield chromium
    for extra in chromium.window_handles[1:]:
        chromium.switch_to.window(extra)
        chromium.close()
    chromium.switch_to.window(chromium.window_handles[0])
    for command, parameters in [("Network.clearBrowserCookies", {}),
                                ("Emulation.setScriptExecutionDisabled", {"value": False}),
                                ("Emulation.setEmulatedMedia", {"features": []}),
                                ("Emulation.clearDeviceMetricsOverride", {})]:
        chromium.execute_cdp_cmd(command, parameters)
    chromium.get("about:blank")
    wrong = [entry["message"] for entry in chromium.get_log("browser")
             if "Content Security Policy" in entry["message"] or "Uncaught" in entry["message"]]
    assert not wrong, wrong


@pytest.fixture
def line(start: Callable[..., System], shop: Shop) -> tuple[System, list[Visitor]]:
    """One visitor is in the shop and two wait; whoever comes next is the third in line."""
    system = start({"shop": CALM | {"capacity": 1, "target_url": shop.url + "/"}},
                   settings={"worker": {"processes": 2}})
    others = [system.join("shop") for _ in range(3)]
    wait_until(others[0].is_active, PATIENCE, "the first is in")
    return system, others


# ---- what the browser shows ----

def open_page(browser: webdriver.Chrome, system: System, query: str = "") -> None:
    browser.get(f"http://127.0.0.1:{system.of('worker')[0].http_port}/q/shop{query}")


def text(browser: webdriver.Chrome, key: str) -> str:
    """What is written there; "" while one page gives way to the next."""
    try:
        return browser.find_element(By.CSS_SELECTOR, f'[data-tl="{key}"]').text
    except (NoSuchElementException, StaleElementReferenceException):
        return ""


def state(browser: webdriver.Chrome) -> str:
    """The state; "shop" after the page has gone on, "" while one page gives way to the next."""
    if browser.title == "Shop":
        return "shop"
    try:
        return browser.find_element(By.TAG_NAME, "body").get_dom_attribute("data-state") or ""
    except (NoSuchElementException, StaleElementReferenceException):
        return ""


def at(browser: webdriver.Chrome, place: int) -> None:
    wait_until(lambda: state(browser) == "waiting" and text(browser, "position") == str(place),
               PATIENCE, f"place {place}", 0.05)


def lands(browser: webdriver.Chrome, address: str) -> None:
    wait_until(lambda: browser.current_url == address and browser.title == "Shop", PATIENCE,
               f"the browser is at {address}", 0.05)


def heading(browser: webdriver.Chrome) -> str:
    seen = browser.execute_script("return [...document.querySelectorAll('h1')].filter(h => h.checkVisibility())"
                                  ".map(h => h.textContent)")
    assert len(seen) <= 1, seen
    return seen[0] if seen else ""


def photograph(browser: webdriver.Chrome, name: str) -> None:
    """One picture per width; nothing may stick out sideways."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for size, (width, height) in SIZES.items():
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": width, "height": height, "deviceScaleFactor": 1,
                                 "mobile": False})
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.save_screenshot(str(SCREENSHOTS / f"{name}-{size}.png"))
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def look_at_admission(browser: webdriver.Chrome, system: System, language: str) -> None:
    """The page of somebody admitted. It goes on after three seconds: a slow machine needs more than one look."""
    def seen() -> bool:
        if state(browser) == "shop":
            open_page(browser, system, f"?lang={language}")
        try:
            if state(browser) != "active" or heading(browser) != HEADINGS[language]["active"]:
                return False
            photograph(browser, f"admitted-{language}")
            return state(browser) == "active"
        except (NoSuchElementException, StaleElementReferenceException):
            return False

    wait_until(seen, PATIENCE, f"the page says {HEADINGS[language]['active']!r}", 0.02)


def check_accessible(browser: webdriver.Chrome, source: str) -> None:
    """axe-core finds nothing, in the light and in the dark."""
    browser.execute_script(source)
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        query = "return matchMedia('(prefers-color-scheme: ' + arguments[0] + ')').matches"
        assert browser.execute_script(query, scheme), f"the page is not {scheme}"
        found = browser.execute_async_script(
            "const done = arguments[0];"
            "axe.run(document).then(r => done({passes: r.passes.length, violations: r.violations"
            ".map(v => [v.id, v.nodes.map(n => n.html)])}), e => done({failed: String(e)}))")
        assert "failed" not in found and found["passes"] > 10, found
        assert not found["violations"], (scheme, found["violations"])
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def ticket_of(browser: webdriver.Chrome, system: System) -> Visitor:
    """The visitor in the browser, as the shop's back end that was handed the ticket."""
    cookie = browser.get_cookie("tellerline_shop")
    assert cookie is not None and cookie["httpOnly"], cookie
    return Visitor(system.client(), "shop", cookie["value"])


# ---- the tests ----

@pytest.mark.parametrize("language", ["en", "ko"])
def test_from_the_line_into_the_shop_and_again(browser, line, shop, language):
    system, others = line
    open_page(browser, system, f"?lang={language}")
    at(browser, 3)
    assert heading(browser) == HEADINGS[language]["waiting"]
    assert text(browser, "ahead") == {"en": "2", "ko": "2명"}[language]
    others[2].leave()
    at(browser, 2)
    assert system.ctl("notice", "shop", NOTICES[language]).returncode == 0
    wait_until(lambda: text(browser, "notice") == NOTICES[language], PATIENCE, "the notice", 0.05)
    photograph(browser, f"waiting-{language}")
    assert system.ctl("notice", "shop", "").returncode == 0
    notice = browser.find_element(By.CSS_SELECTOR, '[data-tl="notice-box"]')
    wait_until(lambda: not notice.is_displayed(), PATIENCE, "the notice is taken back", 0.05)
    others[1].leave()
    at(browser, 1)
    assert shop.asked == [], "nobody is let in early"

    others[0].complete()
    wait_until(lambda: state(browser) in ("active", "shop"), PATIENCE, "admitted", 0.02)
    look_at_admission(browser, system, language)
    lands(browser, shop.url + "/")

    next_in = system.join("shop")
    visitor = ticket_of(browser, system)
    open_page(browser, system)
    wait_until(lambda: state(browser) == "active", PATIENCE, "still in")
    visitor.complete()
    wait_until(lambda: state(browser) == "completed", PATIENCE, "the page hears of the end", 0.02)
    assert heading(browser) == HEADINGS[language]["completed"]
    photograph(browser, f"ended-{language}")
    browser.refresh()
    assert state(browser) == "completed", "a look at an ended place does not join again"
    wait_until(next_in.is_active, PATIENCE, "the next one is in")
    browser.find_element(By.CSS_SELECTOR, "form[action*=join] button").click()
    at(browser, 1)
    next_in.complete()
    lands(browser, shop.url + "/")


@pytest.mark.skipif(not AXE.exists(), reason="there is no axe-core beside the repository")
@pytest.mark.parametrize("language", ["en", "ko"])
def test_axe_finds_nothing(browser, line, language):
    source = AXE.read_text(encoding="utf-8")
    system, _ = line
    assert system.ctl("notice", "shop", NOTICES[language]).returncode == 0
    open_page(browser, system, f"?lang={language}")
    at(browser, 3)
    wait_until(lambda: text(browser, "notice") == NOTICES[language], PATIENCE, "the notice", 0.05)
    browser.find_element(By.TAG_NAME, "summary").click()
    check_accessible(browser, source)
    browser.find_element(By.CSS_SELECTOR, "form[action*=leave] button").click()
    wait_until(lambda: state(browser) == "left", PATIENCE, "left", 0.05)
    check_accessible(browser, source)


def test_without_javascript(browser, line, shop):
    system, others = line
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    open_page(browser, system)
    at(browser, 3)
    assert heading(browser) == HEADINGS["en"]["waiting"]
    others[2].leave()
    at(browser, 2)
    assert "from=3" in browser.current_url, "the page refreshed itself"
    others[1].leave()
    others[0].complete()
    wait_until(lambda: state(browser) in ("active", "shop"), PATIENCE, "admitted", 0.02)
    lands(browser, shop.url + "/")
    assert system.numbers("shop")["joined"] == 4, "every refresh was the same visitor"


def test_tab_in_the_background_goes_on(browser, line, shop):
    """Into the shop: the return address, which is of a foreign site, is not followed."""
    system, others = line
    open_page(browser, system, f"?return={quote('http://elsewhere.invalid/', safe='')}")
    at(browser, 3)
    browser.switch_to.new_window("tab")
    for visitor in others[1:]:
        visitor.leave()
    others[0].complete()

    def titles() -> list[str]:
        targets = browser.execute_cdp_cmd("Target.getTargets", {})["targetInfos"]
        return [target["title"] for target in targets if target["url"] == shop.url + "/"]

    wait_until(lambda: titles() == ["Shop"], PATIENCE, "the tab behind is in the shop", 0.05)


def test_frozen_tab_catches_up(browser, line, shop):
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
    """The worker's processes that hold a connection, once the test's own are closed."""
    worker = system.of("worker")[0]
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    port = f":{worker.http_port:04X}"
    open_here = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(port) and row[3] == "01"}
    found = []
    for pid in worker.children():
        links = set()
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                links.add(os.readlink(descriptor))
            except FileNotFoundError:
                continue  # closed meanwhile
        if links & open_here:
            found.append(pid)
    return found


def test_place_survives_the_worker_that_served_it(browser, line, shop):
    system, others = line
    system.expect(r"role=worker .*ended by signal 9 \(Killed\)")
    for visitor in others:
        visitor.client.close()
    open_page(browser, system)
    at(browser, 3)
    visitor = browser.find_element(By.TAG_NAME, "body").get_dom_attribute("data-visitor")
    before = system.of("worker")[0].children()
    killed = wait_until(lambda: serving(system), PATIENCE, "the page is served by somebody")
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(set(system.of("worker")[0].children()) - set(killed)) == len(before),
               PATIENCE, "every killed process is replaced")
    system.of("worker")[0].wait_ready()
    Visitor(system.client(), "shop", others[2].ticket).leave()
    at(browser, 2)
    browser.refresh()
    at(browser, 2)
    again = browser.find_element(By.TAG_NAME, "body").get_dom_attribute("data-visitor")
    assert again == visitor and system.numbers("shop")["joined"] == 4
    Visitor(system.client(), "shop", others[1].ticket).leave()
    Visitor(system.client(), "shop", others[0].ticket).complete()
    lands(browser, shop.url + "/")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_return_address_survives(browser, line, shop, script):
    system, others = line
    for visitor in others[1:]:
        visitor.leave()
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
    deep = f"{shop.url}/concert/seats?row=4&seat=7%208&name=%EA%B0%80"
    open_page(browser, system, f"?return={quote(deep, safe='')}")
    at(browser, 1)
    browser.find_element(By.CSS_SELECTOR, "nav a[lang=ko]").click()
    wait_until(lambda: text(browser, "ahead") == "0명", PATIENCE, "in Korean", 0.05)
    browser.find_element(By.TAG_NAME, "summary").click()
    browser.find_element(By.CSS_SELECTOR, "form[action*=leave] button").click()
    wait_until(lambda: state(browser) == "left", PATIENCE, "left", 0.05)
    browser.find_element(By.CSS_SELECTOR, "form[action*=join] button").click()
    at(browser, 1)
    others[0].complete()
    lands(browser, deep)
