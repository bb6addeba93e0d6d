# SPDX-License-Identifier: Apache-2.0
"""The waiting page's script in a real browser, against a stand-in for the worker (page_stand_in.py)."""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone

import pytest
from selenium import webdriver

from browser import INSECURE, Page, forget_errors, look, press, scripts, until, visit
from es5 import check_es5
from page_stand_in import StandIn, page_tool
from tellerline import PATIENCE, TOP
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=120)

JOIN, LEAVE = "form[action*=join] button", "form[action*=leave] button"
#: What shows LEAVE. The fold above it, about another device, is deeper in the page.
LEAVING = ".help > details:not([open]) > summary"
# What a visitor cannot read whole. The card hides what overflows it, so the page's width does not show it.
CUT_OFF = """return [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() &&
    !e.classList.contains('aloud') && (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline' ||
    e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)).map((e) => e.outerHTML.slice(0, 120))"""
#: Unimportant changes are announced to screen readers at most this often (seconds): SAY_EVERY in page.js.
SAY_EVERY = 60
#: The longest wait between two tries (milliseconds): BACK_WITHIN in page.js.
RETRY_MAX = 8000
#: When a tab in the background goes on, unless another has gone (milliseconds): 2 * GO_ON_AFTER in page.js.
GO_ON_HIDDEN = 6000


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    server = StandIn()
    server.start()
    yield server
    server.close()


def open_page(browser: webdriver.Chrome, server: StandIn, query: str = "", host: str = "127.0.0.1") -> None:
    visit(browser, f"http://{host}:{server.port}/q/concert{query}")


def stream_is_open(server: StandIn) -> None:
    wait_until(lambda: server.streams == 1, PATIENCE, "the stream is open", 0.05)


def stands_at(position: str) -> Callable[[Page], bool]:
    """The page shows how many are ahead."""
    ahead = f"{int(position.replace(',', '')) - 1:,}"
    return lambda page: page.text("ahead").rstrip("명") == ahead


def test_position_moves_and_progress_never_goes_back(browser, stand_in):
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    stand_in.waiting(617)
    page = until(browser, stands_at("617"), "the new position")
    assert page.title == "No. 617 in line – concert"
    assert page.progress == 500
    assert browser.execute_script("return document.querySelector('progress').getAttribute('aria-valuetext')") == \
        "50 percent of the way"
    stand_in.waiting(700)  # a visitor of a faster lane joined
    assert until(browser, stands_at("700"), "the position, honestly").progress == 500
    browser.refresh()  # the first position seen is stored
    until(browser, lambda page: page.progress == 432, "progress since the first position")
    assert stand_in.statuses == 0, "a stream needs no polling"


def test_says_little_aloud(browser, stand_in):
    stand_in.hurry()
    opened = stand_in.now()
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    for position in range(900, 880, -1):
        stand_in.waiting(position)
    page = until(browser, stands_at("881"), "the last position")
    assert page.text("aloud") == "" or stand_in.now() - opened >= SAY_EVERY
    stand_in.push("notice", {"text": "Doors are late"})
    page = until(browser, lambda page: page.text("notice") == "Doors are late", "the notice")
    assert page.text("aloud") == "Doors are late", "an important change is said at once"
    browser.execute_script("document.querySelector('[data-tl=aloud]').textContent = ''")
    stand_in.push("notice", {"text": "Doors are late"})
    stand_in.waiting(440, notice="Doors are late")
    page = until(browser, lambda page: "number 440 in line" in page.text("aloud"), "half of those ahead are gone")
    assert page.text("notice") == "Doors are late", "and a notice that stayed is not said again"
    assert stand_in.now() - opened >= SAY_EVERY


def test_goes_on_and_says_so_first(browser, stand_in):
    stand_in.hurry()
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    # The page redirects after three seconds, and a read may come too late. So the page records what it shows.
    browser.execute_script(
        "const seen = (e) => e && e.checkVisibility(), go = document.querySelector('[data-tl=go]');"
        "new MutationObserver(() => { sessionStorage.shown = JSON.stringify([document.body.dataset.state,"
        " [...document.querySelectorAll('h1')].filter(seen).map(h => h.textContent),"
        " document.querySelector('[data-tl=aloud]')?.textContent, seen(go) && go.href]); })"
        ".observe(document.body, {attributes: true})")
    target = f"http://127.0.0.1:{stand_in.port}/target"
    stand_in.admitted(target)
    until(browser, lambda page: page.title == "target", "it goes on by itself")
    shown = json.loads(browser.execute_script("return sessionStorage.shown"))
    assert shown == ["active", ["It is your turn"], "It is your turn", target], "it said so, and showed the way"
    browser.back()
    assert "/q/concert" not in browser.current_url, "going back must not lead into the same detour"


def test_secrets_stay_out_of_the_storage(browser, stand_in):
    open_page(browser, stand_in, host=INSECURE)
    browser.execute_script("window.BroadcastChannel = undefined")
    stand_in.admitted(None)
    until(browser, lambda page: page.state == "active", "admitted")
    kept = browser.execute_script("return JSON.stringify(localStorage)")
    assert "lease" in kept and "secret-pass" not in kept, kept


def test_number_of_a_pending_place_renews_the_cookie(browser, stand_in):
    """The cookie holds the pending ticket until a question is answered with the one that replaces it."""
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    stand_in.push("pending", {"queue": "concert", "visitor": "v1", "status": "pending", "waiting": 1, "active": 0})
    stand_in.waiting(300)
    until(browser, stands_at("300"), "the position")
    assert stand_in.statuses == 0, "a stream needs no polling"
    stand_in.waiting(299, ticket="numbered")
    until(browser, stands_at("299"), "the position with its ticket")
    wait_until(lambda: stand_in.statuses == 1, PATIENCE, "the question that renews the cookie")


def test_no_place_is_promised_before_it_has_a_number(browser, stand_in):
    stand_in.hurry()
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    stand_in.push("pending", {"queue": "concert", "visitor": "v1", "status": "pending", "waiting": 1, "active": 0})
    page = until(browser, lambda page: page.state == "pending", "the join is pending")
    assert page.text("updated") == "", "nothing is saved yet"
    stand_in.stop()
    page = until(browser, lambda page: page.text("updated"), "the connection is broken")
    assert page.state == "pending" and page.text("updated") == "Reconnecting… This page tries again automatically."
    stand_in.waiting(300)
    stand_in.start()
    page = until(browser, stands_at("300"), "the place")
    assert "Your place is saved" in page.text("updated")


def test_a_full_line_is_said_until_there_is_a_place(browser, stand_in):
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    stand_in.push("full", {"poll_after_ms": 20000})
    stand_in.waiting(301)
    until(browser, stands_at("301"), "who has a place is not told of a full line")
    stand_in.push("pending", {"queue": "concert", "visitor": "v1", "status": "pending", "waiting": 1, "active": 0})
    stand_in.push("full", {"poll_after_ms": 20000})
    until(browser, lambda page: page.state == "full" and page.headings == ["The line is full"], "the line is full")
    assert browser.title.startswith("The line is full") and not look(browser).shows("updated"), "no place is saved"
    stand_in.waiting(300)
    until(browser, stands_at("300"), "the place")
    assert stand_in.statuses == 0, "the stream stays"


def test_a_blocked_visitor_is_told_and_asks_no_more(browser, stand_in):
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    stand_in.refuse = 403
    stand_in.push("blocked", {})
    until(browser, lambda page: page.state == "blocked", "blocked")
    asked = len(stand_in.asked)
    wait_until(lambda: stand_in.streams == 0, PATIENCE, "the stream is closed")
    assert len(stand_in.asked) == asked


def test_a_ticket_in_the_address_is_carried(browser, stand_in):
    open_page(browser, stand_in, "?ticket=abc.def")
    stream_is_open(stand_in)
    assert stand_in.asked[-1] == "/v1/queues/concert/events?ticket=abc.def"


def test_asks_at_once_when_looked_at_again(browser, stand_in):
    stand_in.hurry()
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    stand_in.stream = "silent"  # as after sleep mode: the connection looks alive but is silent
    stand_in.waiting(321)
    show = "document.dispatchEvent(new Event('visibilitychange'))"
    until(browser, lambda page: stands_at("321")(page) or browser.execute_script(show), "the new position")


def test_gives_the_stream_up_with_the_page_and_takes_it_again(browser, stand_in):
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    browser.execute_script("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    wait_until(lambda: stand_in.streams == 0, PATIENCE, "closed with the page", 0.05)
    stand_in.waiting(77)
    browser.execute_script("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    until(browser, lambda page: stand_in.streams == 1 and page.text("ahead") == "76", "back")


def test_one_tab_goes_on(browser, stand_in):
    """The others keep still in the background, when their time to go on has come, too."""
    stand_in.hurry(3)
    for _ in range(3):
        browser.switch_to.new_window("tab")
        open_page(browser, stand_in)
        browser.execute_script(  # a tab that has gone on says nothing any more
            "const [time] = arguments, push = fired.push; fired.push = function (ms) {"
            " if (ms === time) setTimeout(() => { localStorage['over' + Math.random()] = ms; }, 1000);"
            " return push.call(fired, ms); }", GO_ON_HIDDEN)
    stream_is_open(stand_in)
    stand_in.admitted(f"http://127.0.0.1:{stand_in.port}/target")
    until(browser, lambda page: page.title == "target", "the tab that is looked at goes on")
    over = "return Object.keys(localStorage).filter((name) => name.startsWith('over')).length"
    wait_until(lambda: browser.execute_script(over) == 2, PATIENCE, "the other tabs are still there", 0.05)
    targets = browser.execute_cdp_cmd("Target.getTargets", {})["targetInfos"]
    assert sorted(target["title"] for target in targets if str(stand_in.port) in target["url"]) == \
        ["It is your turn – concert", "It is your turn – concert", "target"]


def test_return_address_comes_before_the_target(browser, stand_in):
    stand_in.hurry()
    stand_in.page["return_url"] = f"http://127.0.0.1:{stand_in.port}/target?seat=4"
    open_page(browser, stand_in)
    stand_in.admitted("http://127.0.0.1:1/elsewhere")
    until(browser, lambda page: page.url.endswith("/target?seat=4"), "the return address")


def test_never_goes_to_a_script_address(browser, stand_in):
    open_page(browser, stand_in)
    stand_in.admitted("javascript:document.title='bad'")
    page = until(browser, lambda page: page.state == "active", "admitted")
    assert page.shows("nowhere") and not page.shows("go")


def test_a_turn_from_the_archive_leads_nowhere(browser, stand_in):
    """It comes without a pass, and the site would send the visitor back. A place without a position changes nothing."""
    stand_in.page["return_url"] = f"http://127.0.0.1:{stand_in.port}/target"
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    stand_in.waiting(40)
    until(browser, stands_at("40"), "the position")
    known = {"queue": "concert", "visitor": stand_in.view["visitor"], "as_of": datetime.now(timezone.utc).isoformat(), "poll_after_ms": 20000}
    stand_in.push("position", known | {"status": "waiting"})
    until(browser, lambda page: "Last updated" in page.text("updated"), "it is the last known place")
    assert stands_at("40")(look(browser)) and not look(browser).shows("drawing")
    stand_in.push("admitted", known | {"status": "active", "expires_at": known["as_of"]})
    page = until(browser, lambda page: page.state == "down", "it waits for the store")
    assert page.url.partition("?")[0].endswith("/q/concert")
    stand_in.admitted(f"http://127.0.0.1:{stand_in.port}/target")
    until(browser, lambda page: page.url.endswith("/target"), "with a pass it goes on")


def test_endings_offer_to_join_again(browser, stand_in):
    open_page(browser, stand_in)
    for status, reason, head in [
            ("completed", "completed", "All done"), ("left", "left", "You left the line"),
            ("expired", "expired", "Your time is up"), ("expired", "unclaimed", "Your turn has passed"),
            ("expired", "absent", "Your place was given up"), ("expired", "unknown", "Your place has ended")]:
        stream_is_open(stand_in)
        joins = stand_in.joins
        stand_in.ended(status, reason)
        page = until(browser, lambda page: page.headings == [head], head)
        assert page.title == "No longer in line – concert"
        wait_until(lambda: stand_in.streams == 0, PATIENCE, "nothing is listened to any more", 0.05)
        press(browser, JOIN, then=lambda page: page.state == "waiting", what="in line again")
        assert stand_in.joins > joins


def test_a_removed_visitor_is_told_and_cannot_join_again(browser, stand_in):
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    stand_in.ended("removed", "removed")
    page = until(browser, lambda page: page.state == "removed", "removed")
    assert page.headings == ["Your place was removed"] and JOIN not in page.offered
    wait_until(lambda: stand_in.streams == 0, PATIENCE, "nothing is listened to any more", 0.05)


def test_leaving_needs_two_steps(browser, stand_in):
    open_page(browser, stand_in)
    assert look(browser, LEAVING, LEAVE).offered == [LEAVING]
    press(browser, LEAVING, then=lambda page: not page.offered, what="the second step")
    press(browser, LEAVE, then=lambda page: page.state == "left", what="left")


def test_a_place_that_is_gone(browser, stand_in):
    for status, expected in [(401, "lost"), (409, "lost"), (404, "closed")]:
        stand_in.hurry()
        stand_in.refuse = None
        open_page(browser, stand_in)
        stream_is_open(stand_in)
        stand_in.refuse = status
        stand_in.stop()
        stand_in.start()
        page = until(browser, lambda page: page.state == expected, f"{status}: {expected}", offers=(JOIN,))
        assert (JOIN in page.offered) == (expected == "lost")


def calm(page: Page) -> bool:
    return "Your place is kept" in page.text("updated")


def test_server_restart_keeps_the_place(browser, stand_in):
    stand_in.hurry()
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    stand_in.stop()
    page = until(browser, calm, "it says so calmly")
    assert page.state == "waiting" and page.text("ahead") == "1,233"
    stand_in.waiting(1000)
    stand_in.start()
    page = until(browser, stands_at("1,000"), "it comes back by itself")
    assert "Live." in page.text("updated")


def test_refused_for_a_while(browser, stand_in):
    stand_in.hurry()
    stand_in.refuse = 503
    open_page(browser, stand_in)
    assert until(browser, calm, "it says so calmly").state == "waiting"
    stand_in.refuse = None
    stand_in.waiting(12)
    until(browser, stands_at("12"), "it comes back by itself")


def test_no_promise_of_a_place_after_it_was_kept_so_long(browser, stand_in):
    stand_in.hurry()
    stand_in.page["waiting_ttl_ms"] = 3000
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    stand_in.stop()
    page = until(browser, lambda page: "may be gone" in page.text("updated"), "it says so")
    assert not page.shows("eta"), "no wait of a place that may be gone"
    stand_in.waiting(33)
    stand_in.start()
    page = until(browser, stands_at("33"), "it comes back, and has the place")
    assert "Live." in page.text("updated") and page.shows("eta")


def test_back_within_seconds_of_the_end_of_the_trouble(browser, stand_in):
    """However long the trouble was: no wait between two tries is longer than the longest."""
    stand_in.hurry()
    open_page(browser, stand_in)
    stream_is_open(stand_in)

    def tries() -> list[float]:
        waits = browser.execute_script("return waits")
        return [ms for step, ms in waits if step in ("listen", "poll")]

    assert not tries()
    stand_in.stop()
    waits = wait_until(lambda: (found := tries()) and len(found) >= 8 and found, PATIENCE, "many tries", 0.1)
    assert max(waits) <= RETRY_MAX and waits[0] < max(waits), waits
    stand_in.waiting(700)
    stand_in.start()
    until(browser, stands_at("700"), "it comes back")


def test_asks_no_sooner_than_it_was_told_to(browser, stand_in):
    stand_in.hurry()
    stand_in.stream = "refused"
    stand_in.refuse = 503
    stand_in.retry_after = 15
    open_page(browser, stand_in)
    wait_until(lambda: stand_in.statuses >= 2, PATIENCE, "it is refused, and asks again")
    first, second = stand_in.status_times[:2]
    assert second - first > 14.9, "it waits as long as it was told to"
    stand_in.refuse = None
    stand_in.waiting(12)
    until(browser, stands_at("12"), "it asks again")


def test_a_status_of_a_later_release_reloads_the_page(browser, stand_in):
    stand_in.hurry()
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    browser.execute_script("window.same = true")
    stand_in.push("position", stand_in.view | {"status": "of-a-later-release"})
    stand_in.waiting(55)
    until(browser, lambda page: stands_at("55")(page) and not browser.execute_script("return window.same"),
          "a new page")


def opening(server: StandIn, seconds: int) -> datetime:
    """The queue opens after so many seconds. Returns when."""
    opens = datetime.fromtimestamp(server.now(), timezone.utc).replace(microsecond=0) + timedelta(seconds=seconds)
    server.page["opens_at_ms"] = int(opens.timestamp() * 1000)
    server.waiting(5, opens_at=opens.strftime("%Y-%m-%dT%H:%M:%SZ"))
    return opens


def test_countdown_is_not_late_by_the_time_the_page_took(browser, stand_in):
    stand_in.hurry(3)
    stand_in.slow = 2
    opens = opening(stand_in, 120)
    stand_in.stream = "silent"
    open_page(browser, stand_in)
    browser.execute_script("window.stopped = true")  # it asks nothing whose answer would tell it the time

    def is_right() -> bool:
        """The countdown was written within the last second or so: a slow machine writes it a little late."""
        shown, now = browser.execute_script(
            "return [document.querySelector('[data-tl=countdown]').textContent, Date.now()]")
        match = re.fullmatch(r"(\d) minutes?(?: (\d+) seconds?)?|(\d+) seconds?", shown)
        assert match, shown
        left = 60 * int(match[1] or 0) + int(match[2] or match[3] or 0)
        return abs(left - (opens.timestamp() - now / 1000)) < 3

    wait_until(is_right, 15, "the countdown is right")


@pytest.mark.parametrize("stream", ["refused", "silent"])
def test_polls_where_streams_do_not_work(browser, stand_in, stream):
    stand_in.hurry()
    stand_in.stream = stream
    open_page(browser, stand_in)
    wait_until(lambda: stand_in.statuses >= 2, PATIENCE, "it asks", 0.05)
    stand_in.waiting(9)
    page = until(browser, stands_at("9"), "the new position")
    assert "Live." in page.text("updated")


def test_offline_and_back(browser, stand_in):
    """At once, not after a wait of the page: it sets no more timers off."""
    stand_in.hurry(1)
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    browser.set_network_conditions(offline=True, latency=0, throughput=-1)
    try:
        page = until(browser, lambda page: "You are offline" in page.text("updated"), "it says so")
        assert "kept until" in page.text("updated") and page.state == "waiting"
        browser.execute_script("window.stopped = true")
        stand_in.cut()
        wait_until(lambda: stand_in.streams == 0, PATIENCE, "the stream is cut", 0.05)
        stand_in.waiting(700)
    finally:
        browser.delete_network_conditions()
    until(browser, stands_at("700"), "it comes back")


def test_offline_is_told_although_news_came_after_it(browser, stand_in):
    """Data that was in flight when the network failed arrives after the event `offline`."""
    stand_in.hurry()
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    stand_in.waiting(617)
    until(browser, stands_at("617"), "the stream brings a change")
    browser.execute_script("Object.defineProperty(navigator, 'onLine', {get: () => false});"
                           "dispatchEvent(new Event('offline'))")
    stand_in.waiting(600)
    until(browser, stands_at("600"), "the change that was in flight")
    until(browser, lambda page: "You are offline" in page.text("updated"), "it says so")


def test_countdown_to_the_opening(browser, stand_in):
    stand_in.hurry(5)
    opens = opening(stand_in, 62)
    open_page(browser, stand_in)
    page = look(browser)
    assert page.heading == "You are in line"
    assert re.search(r"(UTC|GMT[+-]?\d*|[A-Z]{3,4})$", page.text("opens")), f"the time zone is named: {page.text('opens')}"
    seen: list[int] = []

    def counts(page: Page) -> bool:
        match = re.fullmatch(r"(\d+) seconds", page.text("countdown"))
        if match:
            seen.append(int(match[1]))
            assert seen[-1] >= opens.timestamp() - stand_in.now(), "open too soon"
        return len(set(seen)) >= 2

    until(browser, counts, "it counts down")
    assert seen[0] < 60 and seen == sorted(seen, reverse=True), seen
    stand_in.waiting(5)
    until(browser, lambda page: page.state == "waiting" and not page.shows("before"), "open")


def test_pause_comes_and_goes(browser, stand_in):
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    assert not look(browser).shows("paused")
    stand_in.waiting(1234, paused=True)
    until(browser, lambda page: page.shows("paused"), "paused")
    stand_in.waiting(1234)
    until(browser, lambda page: page.state == "waiting" and not page.shows("paused"), "going on")


def test_modes_come_and_go(browser, stand_in):
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    notes = {"paused": "paused", "draining": "mode-draining", "closed": "mode-closed", "sold_out": "mode-sold_out"}
    for mode, note in notes.items():
        stand_in.waiting(1234, mode=mode, paused=True, capacity=0)
        until(browser, lambda page: page.shows(note), mode)
        others = [other for other in notes.values() if other != note and look(browser).shows(other)]
        assert not others, (mode, others)
    stand_in.waiting(1234, phase="over")
    until(browser, lambda page: page.shows("mode-draining"), "the time is over, the line is served")
    stand_in.waiting(1234, phase="over", paused=True)
    until(browser, lambda page: page.shows("mode-closed") and not page.shows("mode-draining"), "no one is admitted")
    stand_in.waiting(1234, capacity=0)
    until(browser, lambda page: page.shows("no-capacity") and not page.shows("mode-sold_out"), "nobody is let in")
    stand_in.waiting(1234, capacity=1)
    until(browser, lambda page: not page.shows("no-capacity"), "going on")
    place = {"queue": "concert", "visitor": "v1", "status": "waiting", "position": 1, "ahead": 0, "waiting": 9}
    stand_in.push("position", place)
    until(browser, lambda page: page.text("eta") == "Calculating…", "nothing else says why there is no estimate")
    stand_in.push("position", place | {"called": True})
    until(browser, lambda page: page.shows("called") and not page.shows("eta"), "the note says it")


def test_passthrough_takes_those_who_wait_in(browser, stand_in):
    stand_in.hurry()
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    browser.execute_script(  # the page leaves soon: it records what it shows
        "const note = document.querySelector('[data-tl=passthrough]'); new MutationObserver(() => {"
        " if (note.checkVisibility()) sessionStorage.noted = note.innerText; }).observe(note, {attributes: true})")
    stand_in.waiting(1234, mode="passthrough", target_url=f"http://127.0.0.1:{stand_in.port}/target")
    until(browser, lambda page: page.title == "target", "it goes on by itself")
    noted = browser.execute_script("return sessionStorage.noted")
    assert noted.split() == "No waiting Opening the shop…".split(), "it said so first"


def test_language_switch_is_remembered(browser, stand_in):
    open_page(browser, stand_in)
    assert look(browser).heading == "You are in line"
    press(browser, "nav summary", "nav a[lang=ko]", then=lambda page: page.headings == ["순서를 기다리고 있습니다"], what="Korean")
    open_page(browser, stand_in)
    assert look(browser).heading == "순서를 기다리고 있습니다"
    stand_in.waiting(3)
    until(browser, lambda page: page.title == "대기 3번째 – concert", "the script speaks Korean too")


@pytest.mark.parametrize("language", ["en", "ko", "fr", "pl", "ar", "th"])
def test_waits_are_written_alike_by_page_and_script(browser, stand_in, language):
    open_page(browser, stand_in, f"?lang={language}")
    stream_is_open(stand_in)
    for low, high in [(0, 30), (0, 60), (60, 60), (240, 400), (590, 660), (1200, 2000), (3000, 5000),
                      (3600, 7200), (7200, 10800), (20000, 40000), (50000, 100000), (0, 172800)]:
        expected = page_tool("range", language, str(low), str(high)).decode().strip()
        stand_in.waiting(1234, eta_low=low, eta_high=high)
        until(browser, lambda page: page.text("eta") == expected, f"{low} to {high}: {expected}")


@pytest.mark.parametrize("language, words", [("en", "others have places ahead"), ("ko", "앞 순서에 들어온 분이")])
def test_the_reason_of_a_longer_wait_is_said(browser, stand_in, language, words):
    open_page(browser, stand_in, f"?lang={language}")
    stream_is_open(stand_in)
    stand_in.waiting(1234, eta_low=60, eta_high=120, eta_reason="more_ahead")
    until(browser, lambda page: words in page.text("eta-why"), "the script says why")
    stand_in.waiting(1233, eta_low=60, eta_high=120, eta_reason="of_a_later_version")
    until(browser, lambda page: page.text("eta-why") == "", "no word for a reason that is not known")


def test_fits_a_small_screen(browser, stand_in):
    stand_in.page["notice"] = "Averyveryveryveryveryveryveryveryveryverylongword " * 3
    for width in (320, 256):  # 1280 pixels at 400 and 500 %
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": width, "height": 640, "deviceScaleFactor": 1, "mobile": False})
        open_page(browser, stand_in)
        assert look(browser).width <= width


@pytest.mark.parametrize("script", [True, False], ids=["script", "plain"])
def test_a_large_number_fits_with_large_letters(browser, stand_in, tmp_path, script):
    """Ten digits ahead, 320 pixels wide, letters twice as large."""
    stand_in.waiting(9876543210, admitted_last_minute=1234567890)
    style = tmp_path / "large.css"
    style.write_text("html { font-size: 200% }")
    stand_in.page["brand-style"] = style
    scripts(browser, enabled=script)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": False})
    open_page(browser, stand_in)
    until(browser, lambda page: "9,876,543,209" in page.text("ahead"), "ten digits")
    scripts(browser, enabled=True)
    assert not browser.execute_script(CUT_OFF)


def test_without_script(browser, stand_in):
    stand_in.hurry()
    scripts(browser, enabled=False)
    open_page(browser, stand_in)
    stand_in.waiting(800)
    page = until(browser, stands_at("800"), "it refreshes itself")
    assert "from=1234" in page.url and page.progress == 351
    stand_in.admitted(f"http://127.0.0.1:{stand_in.port}/target")
    until(browser, lambda page: page.title == "target", "it goes on")
    assert stand_in.streams_begun == 0


@pytest.mark.parametrize("broken, allowed", [
    pytest.param([(b"\nvar page = ", b"\nthrow new Error('planted'); var page = ")], True, id="throws"),
    pytest.param([(b"\nvar page = ", b"\nvar page := ")], True, id="does-not-parse"),
    pytest.param([(b"\nvar page = ", b"\nvar  page = ")], False, id="blocked"),
    pytest.param([(b"\nvar page = ", b"\nvar  page = "), (b"(html) {", b"(html)  {")], False, id="all-blocked"),
    pytest.param([(b"!window.fetch", b"window.fetch ")], True, id="old-browser")])
def test_a_page_whose_script_fails_reloads_itself(browser, stand_in, broken, allowed):
    """The script throws, or something on the way changed a script, which the policy then blocks. The page stays the
    same visitor's. Where refresh.js is blocked, too, <meta> reloads it."""
    stand_in.hurry(10)
    stand_in.edits = broken
    stand_in.allow_edits = allowed
    open_page(browser, stand_in)
    assert stand_in.streams_begun == 0
    stand_in.waiting(800)
    page = until(browser, stands_at("800"), "it reloads itself")
    assert "from=1234" in page.url and page.visitor == "v1" and page.progress == 351
    stand_in.edits = []
    stand_in.waiting(700)
    until(browser, stands_at("700"), "it reloads itself again, and the script is well")
    stream_is_open(stand_in)
    forget_errors(browser)  # those that were planted


@pytest.mark.parametrize("script", ["page.js", "line.js", "puzzle.js", "refresh.js", "challenge.js"])
def test_scripts_are_es5(script):
    check_es5((TOP / "worker" / "web" / script).read_bytes())


def test_a_page_whose_script_runs_does_not_reload(browser, stand_in):
    stand_in.hurry()
    open_page(browser, stand_in)
    stream_is_open(stand_in)
    browser.execute_script("window.same = true")
    seconds, = re.findall(r"^(\d+);", browser.execute_script("return document.documentElement.dataset.refresh"))
    wait_until(lambda: 1000 * int(seconds) in browser.execute_script("return fired"), PATIENCE, "the time of a reload has come")
    assert browser.execute_script("return window.same && document.querySelector('meta[http-equiv]') === null")
