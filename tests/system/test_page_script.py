"""The waiting page's script in a real browser, against a stand-in for the worker (page_stand_in.py)."""
from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from page_stand_in import StandIn, page_tool

pytestmark = pytest.mark.together(seconds=100)

# A name that is not localhost: browsers then treat the page as insecure and have no Web Locks.
INSECURE = "waiting.test"


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--lang=en-US", f"--host-resolver-rules=MAP {INSECURE} 127.0.0.1"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.set_page_load_timeout(60)
    driver.set_script_timeout(30)
    yield driver
    driver.quit()


@pytest.fixture
def stand_in(browser: webdriver.Chrome) -> Iterator[StandIn]:
    server = StandIn()
    server.start()
    yield server
    browser.execute_cdp_cmd("Network.clearBrowserCookies", {})
    for extra in browser.window_handles[1:]:
        browser.switch_to.window(extra)
        browser.close()
    browser.switch_to.window(browser.window_handles[0])
    browser.get("about:blank")
    server.stop()
    wrong = [entry["message"] for entry in browser.get_log("browser")
             if "Content Security Policy" in entry["message"] or "Uncaught" in entry["message"]]
    assert not wrong, wrong


def until(condition: Callable[[], Any], what: str, seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def stays(condition: Callable[[], Any], what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition(), f"not for {seconds} s: {what}"
        time.sleep(0.1)


def open_page(browser: webdriver.Chrome, server: StandIn, query: str = "", host: str = "127.0.0.1") -> None:
    browser.get(f"http://{host}:{server.port}/q/concert{query}")


def text(browser: webdriver.Chrome, key: str) -> str:
    """What is written there; "" while one page gives way to the next."""
    try:
        return browser.find_element(By.CSS_SELECTOR, f'[data-tl="{key}"]').text
    except (NoSuchElementException, StaleElementReferenceException):
        return ""


def aloud(browser: webdriver.Chrome) -> str:
    return browser.execute_script("return document.querySelector('[data-tl=aloud]').textContent")


def state(browser: webdriver.Chrome) -> str:
    return browser.execute_script("return document.body.dataset.state")


def heading(browser: webdriver.Chrome) -> str:
    """The one heading of level 1 that can be seen."""
    seen = browser.execute_script("return [...document.querySelectorAll('h1')].filter(h => h.checkVisibility())"
                                  ".map(h => h.textContent)")
    assert len(seen) == 1, seen
    return seen[0]


def test_position_moves_and_progress_never_goes_back(browser, stand_in):
    open_page(browser, stand_in)
    until(lambda: stand_in.streams == 1, "the stream is open")
    stand_in.waiting(617)
    until(lambda: text(browser, "position") == "617", "the new position")
    assert text(browser, "ahead") == "616"
    assert browser.title == "No. 617 in line – concert"
    bar = browser.find_element(By.CSS_SELECTOR, "progress")
    assert bar.get_property("value") == 500
    stand_in.waiting(700)  # somebody of a faster lane came
    until(lambda: text(browser, "position") == "700", "the position, honestly")
    assert bar.get_property("value") == 500
    browser.refresh()  # what was seen before is remembered
    until(lambda: browser.execute_script("return document.querySelector('progress').value") == 432, "progress since the first position")
    assert stand_in.statuses == 0, "a stream needs no polling"


@pytest.mark.long
def test_says_little_aloud(browser, stand_in):
    open_page(browser, stand_in)
    until(lambda: stand_in.streams == 1, "the stream is open")
    for position in range(900, 880, -1):
        stand_in.waiting(position)
    until(lambda: text(browser, "position") == "881", "the last position")
    assert aloud(browser) == ""
    stand_in.push("notice", {"text": "Doors are late"})
    until(lambda: aloud(browser) == "Doors are late", "an important change is said at once", 12)
    assert text(browser, "notice") == "Doors are late"
    until(lambda: "number 881 in line" in aloud(browser), "the position is said in the end", 60)


@pytest.mark.parametrize("host", ["127.0.0.1", INSECURE])
def test_tabs_share_one_stream(browser, stand_in, host):
    open_page(browser, stand_in, host=host)
    assert browser.execute_script("return Boolean(navigator.locks)") == (host != INSECURE)
    first = browser.current_window_handle
    tabs = [first]
    for _ in range(2):
        browser.switch_to.new_window("tab")
        open_page(browser, stand_in, host=host)
        tabs.append(browser.current_window_handle)
    until(lambda: stand_in.streams == 1, "the stream is open")
    stand_in.waiting(55)
    for tab in tabs:
        browser.switch_to.window(tab)
        until(lambda: text(browser, "position") == "55", "every tab knows")
    assert stand_in.streams == 1
    browser.switch_to.window(first)
    begun = stand_in.streams_begun
    browser.close()
    browser.switch_to.window(tabs[1])
    until(lambda: stand_in.streams_begun > begun and stand_in.streams == 1, "another tab leads")
    stand_in.waiting(44)
    for tab in tabs[1:]:
        browser.switch_to.window(tab)
        until(lambda: text(browser, "position") == "44", "every tab left knows")


def test_goes_on_and_says_so_first(browser, stand_in):
    open_page(browser, stand_in)
    until(lambda: stand_in.streams == 1, "the stream is open")
    stand_in.admitted(f"http://127.0.0.1:{stand_in.port}/target")
    # In one look: the page goes on after three seconds, and the next look may come too late.
    look = ("const seen = (e) => e && e.checkVisibility(), go = document.querySelector('[data-tl=go]');"
            "return [document.body.dataset.state,"
            " [...document.querySelectorAll('h1')].filter(seen).map(h => h.textContent),"
            " document.querySelector('[data-tl=aloud]')?.textContent, seen(go) && go.href]")
    admitted = ["active", ["It is your turn"], "It is your turn", f"http://127.0.0.1:{stand_in.port}/target"]
    until(lambda: browser.execute_script(look) == admitted, "admitted, says so, and shows the way")
    until(lambda: browser.title == "target", "it goes on by itself")
    browser.back()
    assert "/q/concert" not in browser.current_url, "going back must not lead into the same detour"


def test_secrets_stay_out_of_the_storage(browser, stand_in):
    open_page(browser, stand_in, host=INSECURE)
    browser.execute_script("window.BroadcastChannel = undefined")
    stand_in.admitted(None)
    until(lambda: state(browser) == "active", "admitted")
    kept = browser.execute_script("return JSON.stringify(localStorage)")
    assert "lease" in kept and "secret-pass" not in kept, kept


def test_a_ticket_in_the_address_is_carried(browser, stand_in):
    open_page(browser, stand_in, "?ticket=abc.def")
    until(lambda: stand_in.streams == 1, "the stream is open")
    assert stand_in.asked[-1] == "/v1/queues/concert/events?ticket=abc.def"


def test_asks_at_once_when_looked_at_again(browser, stand_in):
    open_page(browser, stand_in)
    until(lambda: stand_in.streams == 1, "the stream is open")
    stand_in.stream = "silent"  # as after a sleep: the connection looks alive and says nothing
    stand_in.waiting(321)
    show = "document.dispatchEvent(new Event('visibilitychange'))"
    until(lambda: browser.execute_script(show) or text(browser, "position") == "321", "the new position", 30)


def test_gives_the_stream_up_with_the_page_and_takes_it_again(browser, stand_in):
    open_page(browser, stand_in)
    until(lambda: stand_in.streams == 1, "the stream is open")
    browser.execute_script("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    until(lambda: stand_in.streams == 0, "closed with the page")
    stand_in.waiting(77)
    browser.execute_script("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    until(lambda: stand_in.streams == 1 and text(browser, "position") == "77", "back")


def test_one_tab_goes_on(browser, stand_in):
    for _ in range(3):
        browser.switch_to.new_window("tab")
        open_page(browser, stand_in)
    until(lambda: stand_in.streams == 1, "the stream is open")
    stand_in.admitted(f"http://127.0.0.1:{stand_in.port}/target")
    until(lambda: browser.title == "target", "the tab that is looked at goes on")

    def titles() -> list[str]:
        targets = browser.execute_cdp_cmd("Target.getTargets", {})["targetInfos"]
        return sorted(target["title"] for target in targets if str(stand_in.port) in target["url"])

    everybody = ["It is your turn – concert", "It is your turn – concert", "target"]
    until(lambda: titles() == everybody, "the other tabs know")
    stays(lambda: titles() == everybody, "the tabs in the background wait", 5)


def test_return_address_comes_before_the_target(browser, stand_in):
    stand_in.page["return_url"] = f"http://127.0.0.1:{stand_in.port}/target?seat=4"
    open_page(browser, stand_in)
    stand_in.admitted("http://127.0.0.1:1/elsewhere")
    until(lambda: browser.current_url.endswith("/target?seat=4"), "the return address")


def test_never_goes_to_a_script_address(browser, stand_in):
    open_page(browser, stand_in)
    stand_in.admitted("javascript:document.title='bad'")
    until(lambda: state(browser) == "active", "admitted")
    assert browser.find_element(By.CSS_SELECTOR, '[data-tl="nowhere"]').is_displayed()
    assert not browser.find_element(By.CSS_SELECTOR, '[data-tl="go"]').is_displayed()


@pytest.mark.parametrize("status,reason,head", [
    ("completed", "completed", "All done"), ("left", "left", "You left the line"),
    ("expired", "expired", "Your time is up"), ("expired", "unclaimed", "Your turn has passed"),
    ("expired", "absent", "Your place was given up"), ("expired", "unknown", "Your place has ended")])
def test_endings_offer_to_join_again(browser, stand_in, status, reason, head):
    open_page(browser, stand_in)
    until(lambda: stand_in.streams == 1, "the stream is open")
    stand_in.ended(status, reason)
    until(lambda: heading(browser) == head, head)
    assert browser.title == "Not in line any more – concert"
    until(lambda: stand_in.streams == 0, "nothing is listened to any more")
    browser.find_element(By.CSS_SELECTOR, "form[action*=join] button").click()
    until(lambda: state(browser) == "waiting", "in line again")
    assert stand_in.joins == 1


def test_leaving_needs_two_steps(browser, stand_in):
    open_page(browser, stand_in)
    button = browser.find_element(By.CSS_SELECTOR, "form[action*=leave] button")
    assert not browser.execute_script("return arguments[0].checkVisibility()", button)
    browser.find_element(By.TAG_NAME, "summary").click()
    button.click()
    until(lambda: state(browser) == "left", "left")


@pytest.mark.parametrize("status,expected", [(401, "lost"), (409, "lost"), (404, "closed")])
def test_a_place_that_is_gone(browser, stand_in, status, expected):
    open_page(browser, stand_in)
    until(lambda: stand_in.streams == 1, "the stream is open")
    stand_in.refuse = status
    stand_in.stop()
    stand_in.start()
    until(lambda: state(browser) == expected, expected)
    button = browser.find_element(By.CSS_SELECTOR, "form[action*=join] button")
    assert button.is_displayed() == (expected == "lost")


def test_server_restart_keeps_the_place(browser, stand_in):
    open_page(browser, stand_in)
    until(lambda: stand_in.streams == 1, "the stream is open")
    stand_in.stop()
    until(lambda: "Nobody loses a place" in text(browser, "updated"), "it says so calmly")
    assert state(browser) == "waiting" and text(browser, "position") == "1,234"
    stand_in.waiting(1000)
    stand_in.start()
    until(lambda: text(browser, "position") == "1,000", "it comes back by itself", 90)
    assert "Updated at" in text(browser, "updated")


def test_refused_for_a_while(browser, stand_in):
    stand_in.refuse = 503
    open_page(browser, stand_in)
    until(lambda: "Nobody loses a place" in text(browser, "updated"), "it says so calmly")
    assert state(browser) == "waiting"
    stand_in.refuse = None
    stand_in.waiting(12)
    until(lambda: text(browser, "position") == "12", "it comes back by itself", 90)


@pytest.mark.parametrize("stream", ["refused", pytest.param("silent", marks=pytest.mark.long)])
def test_polls_where_streams_do_not_work(browser, stand_in, stream):
    stand_in.stream = stream
    open_page(browser, stand_in)
    until(lambda: stand_in.statuses >= 2, "it asks", 60)
    stand_in.waiting(9)
    until(lambda: text(browser, "position") == "9", "the new position")
    assert "Updated at" in text(browser, "updated")


def test_offline_and_back(browser, stand_in):
    open_page(browser, stand_in)
    until(lambda: stand_in.streams == 1, "the stream is open")
    browser.set_network_conditions(offline=True, latency=0, throughput=-1)
    try:
        until(lambda: "You are offline" in text(browser, "updated"), "it says so")
        assert "kept until" in text(browser, "updated") and state(browser) == "waiting"
        stand_in.waiting(700)
    finally:
        browser.delete_network_conditions()
    until(lambda: text(browser, "position") == "700", "at once, not after a back-off", 10)


def test_countdown_to_the_opening(browser, stand_in):
    opens = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(seconds=62)
    stand_in.page["opens_at_ms"] = int(opens.timestamp() * 1000)
    stand_in.waiting(5, opens_at=opens.strftime("%Y-%m-%dT%H:%M:%SZ"))
    open_page(browser, stand_in)
    assert heading(browser) == "You are in line"
    seen: list[int] = []

    def counts() -> int:
        match = re.fullmatch(r"(\d+) seconds", text(browser, "countdown"))
        if match:
            seen.append(int(match[1]))
            assert seen[-1] >= (opens - datetime.now(timezone.utc)).total_seconds(), "open too soon"
        return len(set(seen))

    until(lambda: counts() >= 2, "it counts down", 50)
    assert seen[0] < 60 and seen == sorted(seen, reverse=True), seen
    stand_in.waiting(5)
    until(lambda: not browser.find_element(By.CSS_SELECTOR, '[data-tl="before"]').is_displayed(), "open")


def test_pause_comes_and_goes(browser, stand_in):
    open_page(browser, stand_in)
    until(lambda: stand_in.streams == 1, "the stream is open")
    paused = browser.find_element(By.CSS_SELECTOR, '[data-tl="paused"]')
    assert not paused.is_displayed()
    stand_in.waiting(1234, paused=True)
    until(paused.is_displayed, "paused")
    stand_in.waiting(1234)
    until(lambda: not paused.is_displayed(), "going on")


def test_language_switch_is_remembered(browser, stand_in):
    open_page(browser, stand_in)
    assert heading(browser) == "You are in line"
    browser.find_element(By.CSS_SELECTOR, "nav a[lang=ko]").click()
    until(lambda: heading(browser) == "순서를 기다리고 있습니다", "Korean")
    open_page(browser, stand_in)
    until(lambda: heading(browser) == "순서를 기다리고 있습니다", "still Korean")
    stand_in.waiting(3)
    until(lambda: browser.title == "대기 3번째 – concert", "the script speaks Korean too")


@pytest.mark.parametrize("language", ["en", "ko"])
def test_waits_are_written_alike_by_page_and_script(browser, stand_in, language):
    open_page(browser, stand_in, f"?lang={language}")
    until(lambda: stand_in.streams == 1, "the stream is open")
    for low, high in [(0, 30), (0, 60), (60, 60), (240, 400), (590, 660), (1200, 2000), (3000, 5000),
                      (3600, 7200), (7200, 10800), (20000, 40000), (50000, 100000), (0, 172800)]:
        expected = page_tool("range", language, str(low), str(high)).decode().strip()
        stand_in.waiting(1234, eta_low=low, eta_high=high)
        until(lambda: text(browser, "eta") == expected, f"{low} to {high}: {expected}")


def test_fits_a_small_screen(browser, stand_in):
    stand_in.page["notice"] = "Averyveryveryveryveryveryveryveryveryverylongword " * 3
    size = browser.get_window_size()
    try:
        for width in (320, 256):  # 1280 pixels at 400 and 500 %
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": 640, "deviceScaleFactor": 1, "mobile": False})
            open_page(browser, stand_in)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.set_window_size(size["width"], size["height"])


@pytest.mark.long
def test_without_script(browser, stand_in):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        open_page(browser, stand_in)
        stand_in.waiting(800)
        until(lambda: text(browser, "position") == "800", "it refreshes itself", 40)
        assert "from=1234" in browser.current_url
        assert browser.find_element(By.CSS_SELECTOR, "progress").get_attribute("value") == "351"
        stand_in.admitted(f"http://127.0.0.1:{stand_in.port}/target")
        until(lambda: browser.title == "target", "it goes on", 40)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert stand_in.streams_begun == 0
