# SPDX-License-Identifier: Apache-2.0
"""Several tabs of one browser, and the cookie that they share, against a stand-in for the worker."""
from __future__ import annotations

import json
from typing import Any

import pytest

from browser import INSECURE, until
from tellerline import PATIENCE
from test_page_script import open_page, stand_in, stands_at, stream_is_open  # noqa: F401
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=30)


@pytest.mark.parametrize("host", ["127.0.0.1", INSECURE])
def test_tabs_share_one_stream(browser, stand_in, host):  # noqa: F811
    open_page(browser, stand_in, host=host)
    assert browser.execute_script("return Boolean(navigator.locks)") == (host != INSECURE)
    first = browser.current_window_handle
    tabs = [first]
    for _ in range(2):
        browser.switch_to.new_window("tab")
        open_page(browser, stand_in, host=host)
        tabs.append(browser.current_window_handle)
    stream_is_open(stand_in)
    stand_in.waiting(55)
    for tab in tabs:
        browser.switch_to.window(tab)
        until(browser, stands_at("55"), "every tab knows")
    stream_is_open(stand_in)
    browser.switch_to.window(first)
    begun = stand_in.streams_begun
    browser.close()
    browser.switch_to.window(tabs[1])
    wait_until(lambda: stand_in.streams_begun > begun and stand_in.streams == 1, PATIENCE, "another tab leads", 0.05)
    assert stand_in.streams_begun == begun + 1, "one other tab only"
    stand_in.waiting(44)
    for tab in tabs[1:]:
        browser.switch_to.window(tab)
        until(browser, stands_at("44"), "every tab left knows")


def test_listens_only_to_tabs_with_the_same_place(browser, stand_in):  # noqa: F811
    """Others have a place of their own, or this browser has another one by now: then the page loads again."""
    def shows(visitor: str) -> None:
        browser.execute_script("const [key, newValue] = arguments; dispatchEvent(new StorageEvent('storage', {key, newValue}))",
                               "tellerline:concert:said", json.dumps({"what": "here", "of": visitor}))

    def say(visitor: str, message: dict[str, Any]) -> None:
        browser.execute_script("new BroadcastChannel(arguments[0]).postMessage(arguments[1])",
                               f"tellerline:/v1/queues/concert:{visitor}", message)

    open_page(browser, stand_in)
    stream_is_open(stand_in)
    until(browser, stands_at("1,234"), "the place")
    loaded = browser.execute_script("return performance.timeOrigin")
    shows("v2")
    say("v2", {"view": {"queue": "concert", "visitor": "v2", "status": "left", "end_reason": "left"}})
    say("v2", {"refused": {"type": "/problems/bad-ticket", "status": 401}})
    wait_until(lambda: stand_in.statuses == 1, PATIENCE, "it asks whose place the cookie is of")
    stream_is_open(stand_in)
    shows("v2")
    shows("v1")
    say("v2", {"notice": "of another"})
    say("v1", {"notice": "of this"})
    page = until(browser, lambda page: page.text("notice") == "of this", "the notice of a tab with this place")
    assert page.state == "waiting" and stand_in.statuses == 1
    assert browser.execute_script("return performance.timeOrigin") == loaded
    stand_in.page = {"visitor": "v3"}
    stand_in.waiting(30, visitor="v3")
    page = until(browser, lambda page: page.visitor == "v3" and stands_at("30")(page), "the place of its own answer")
    assert browser.execute_script("return performance.timeOrigin") > loaded, "as a page of its own"


def test_keeps_its_cookie_where_questions_are_held(browser, stand_in):  # noqa: F811
    """The answer to a held question renews no cookie, so a page that lives by them asks without holding now and then."""
    stand_in.stream = "refused"
    stand_in.edits = [(b"RENEW_EVERY = 600000", b"RENEW_EVERY = 4000")]
    stand_in.allow_edits = True
    open_page(browser, stand_in)
    status = "/v1/queues/concert/status"
    held = f"{status}?wait=20s"
    wait_until(lambda: held in stand_in.asked and status in stand_in.asked[stand_in.asked.index(held):], PATIENCE, "both questions")
