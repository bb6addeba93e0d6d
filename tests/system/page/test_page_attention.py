# SPDX-License-Identifier: Apache-2.0
"""Waiting without staring at the page: sound, vibration, notification and the screen that stays on, in real browsers
against a stand-in for the worker. What the page does is observed in the browser's own objects."""
from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from selenium import webdriver

from browser import INSECURE, Page, axe_at_hand, check_accessible, look, press, until, visit
from es5 import check_es5
from page_stand_in import StandIn
from tellerline import PATIENCE, TOP
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=60)

SCREEN, SOUND = "[data-tl=screen]", "[data-tl=sound]"
SAMPLE, CHIMES = 2, 6  # notes at the click and at the turn

_WATCH = """
window.seen = {contexts: 0, notes: 0, vibrations: 0, notifications: [], locks: []};
(() => {
    const after = (owner, name, note) => {
        if (!owner || !owner[name]) return;
        const real = owner[name];
        owner[name] = function (...values) {
            const result = real.apply(this, values);
            note(result);
            return result;
        };
    };
    const made = (name, note) => {
        if (window[name]) window[name] = new Proxy(window[name], {construct(target, values) {
            note(values);
            return Reflect.construct(target, values);
        }});
    };
    after(AudioScheduledSourceNode.prototype, 'start', () => seen.notes++);
    after(Navigator.prototype, 'vibrate', () => seen.vibrations++);
    after(window.WakeLock && WakeLock.prototype, 'request', (asked) => asked.then((lock) => seen.locks.push(lock)));
    made('AudioContext', () => seen.contexts++);
    made('Notification', (values) => seen.notifications.push([values[0], values[1].body]));
})();
"""
_SEEN = """
const seen = (window.wrappedJSObject || window).seen;
return JSON.stringify(Object.assign({}, seen, {locks: Array.from(seen.locks, (lock) => !lock.released)}));
"""
# Firefox never starts a sound on a machine without an output; Chromium does.
_OUTPUT = """
AudioContext.prototype.resume = () => Promise.resolve();
Object.defineProperty(BaseAudioContext.prototype, 'state', {get: () => 'running'});
"""
SILENT = {"contexts": 0, "notes": 0, "vibrations": 0, "notifications": [], "locks": []}


@pytest.fixture
def stand_in(browser: webdriver.Remote) -> Iterator[StandIn]:
    """A page whose use of the browser is watched. Firefox has no scripts that run before the page's: there the page
    itself has it, and a policy that lets it."""
    server = StandIn()
    if not hasattr(browser, "execute_cdp_cmd"):
        server.edits = [(b"<meta charset", f"<script>{_WATCH}{_OUTPUT}</script><meta charset".encode())]
        server.allow_edits = True
    server.start()
    yield server
    server.close()


@pytest.fixture
def watched(browser: webdriver.Chrome) -> Iterator[Callable[[str], None]]:
    """Runs scripts before those of the pages, in each new tab, too."""
    added: list[tuple[str, str]] = []

    def watch(more: str = "") -> None:
        script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH + more})
        added.append((browser.current_window_handle, script["identifier"]))

    yield watch
    for window, identifier in added:
        if window in browser.window_handles:
            browser.switch_to.window(window)
            browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": identifier})


def open_page(browser: webdriver.Remote, server: StandIn, host: str = "127.0.0.1") -> None:
    visit(browser, f"http://{host}:{server.port}/q/concert")
    until(browser, lambda page: page.state == "waiting", "in line")


def allow_notifications(browser: webdriver.Chrome, server: StandIn, setting: str) -> None:
    browser.execute_cdp_cmd("Browser.setPermission", {"permission": {"name": "notifications"}, "setting": setting,
                                                      "origin": f"http://127.0.0.1:{server.port}"})


def seen(browser: webdriver.Remote) -> dict[str, Any]:
    return json.loads(browser.execute_script(_SEEN))


def becomes(browser: webdriver.Remote, condition: Callable[[dict[str, Any]], object], what: str) -> dict[str, Any]:
    last: dict[str, Any] = {}

    def look_again() -> object:
        last.update(seen(browser))
        return condition(last)

    try:
        wait_until(look_again, PATIENCE, what, 0.05)
    except AssertionError as error:
        raise AssertionError(f"{error}; the last: {last}") from error
    return last


def stays(browser: webdriver.Remote, expected: dict[str, Any], seconds: float = 1.5) -> None:
    """Longer than the page takes to sound."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert seen(browser) == expected
        time.sleep(0.1)


def pressed(browser: webdriver.Remote, selector: str) -> bool:
    return browser.execute_script("return document.querySelector(arguments[0]).getAttribute('aria-pressed')",
                                  selector) == "true"


def turn_on(browser: webdriver.Remote, selector: str, says: str) -> Page:
    key = "sound-says" if selector == SOUND else "screen-says"
    page = press(browser, selector, then=lambda page: says in page.text(key), what=says)
    assert pressed(browser, selector)
    return page


def comes_in(browser: webdriver.Remote, server: StandIn) -> None:
    server.admitted(None)
    page = until(browser, lambda page: page.state == "active", "it is the turn", offers=(SCREEN, SOUND))
    assert not page.offered


def test_nothing_without_being_asked(browser, stand_in, watched):
    watched()
    allow_notifications(browser, stand_in, "granted")
    open_page(browser, stand_in)
    page = look(browser, SCREEN, SOUND)
    assert page.offered == [SCREEN, SOUND]
    assert not pressed(browser, SCREEN) and not pressed(browser, SOUND)
    comes_in(browser, stand_in)
    stays(browser, SILENT)


def test_a_sound_a_vibration_and_a_notification(browser, stand_in, watched):
    watched()
    allow_notifications(browser, stand_in, "granted")
    open_page(browser, stand_in)
    page = turn_on(browser, SOUND, "You hear this sound when it is your turn.")
    assert page.text("sound-says").endswith("You also get a notification.")
    heard = becomes(browser, lambda now: now["notes"], "a sample")
    assert heard == SILENT | {"contexts": 1, "notes": SAMPLE}
    comes_in(browser, stand_in)
    rung = {"contexts": 1, "notes": SAMPLE + CHIMES, "vibrations": 1, "locks": [],
            "notifications": [["It is your turn", "concert"]]}
    becomes(browser, lambda now: now == rung, "it rings")
    stays(browser, rung)


def test_denied_notifications_are_said(browser, stand_in, watched):
    watched()
    allow_notifications(browser, stand_in, "denied")
    open_page(browser, stand_in)
    turn_on(browser, SOUND, "Your browser blocks notifications from this site.")
    comes_in(browser, stand_in)
    rung = becomes(browser, lambda now: now["vibrations"] == 1 and now["notes"] == SAMPLE + CHIMES, "it rings")
    assert rung["notifications"] == []


def test_what_is_turned_off_again_does_nothing(browser, stand_in, watched):
    watched()
    open_page(browser, stand_in)
    turn_on(browser, SOUND, "You hear this sound")
    turn_on(browser, SCREEN, "The screen stays on")
    for selector in (SOUND, SCREEN):
        browser.find_element("css selector", selector).click()
        wait_until(lambda: not pressed(browser, selector), PATIENCE, f"{selector} is off")
    becomes(browser, lambda now: now["locks"] == [False], "the screen is free")
    assert not look(browser).text("sound-says") and not look(browser).text("screen-says")
    comes_in(browser, stand_in)
    stays(browser, SILENT | {"contexts": 1, "notes": SAMPLE, "locks": [False]})


def test_the_screen_stays_on_until_the_turn(browser, stand_in, watched):
    watched()
    open_page(browser, stand_in)
    turn_on(browser, SCREEN, "The screen stays on until it is your turn.")
    first = browser.current_window_handle
    assert seen(browser)["locks"] == [True]
    browser.switch_to.new_window("tab")
    browser.close()
    browser.switch_to.window(first)
    becomes(browser, lambda now: now["locks"] == [False, True], "the page is looked at again, and takes the lock again")
    assert pressed(browser, SCREEN)
    comes_in(browser, stand_in)
    becomes(browser, lambda now: now["locks"] == [False, False], "the screen is free")


def test_a_refused_lock_is_said(browser, stand_in, watched):
    watched("WakeLock.prototype.request = () => Promise.reject(new DOMException('no', 'NotAllowedError'));")
    open_page(browser, stand_in)
    press(browser, SCREEN, then=lambda page: "does not let this page keep the screen on" in page.text("screen-says"),
          what="it is said")
    assert not pressed(browser, SCREEN)


def test_a_browser_that_stays_silent_is_told(browser, stand_in, watched):
    watched("AudioContext.prototype.resume = () => new Promise(() => {});"
            "Object.defineProperty(BaseAudioContext.prototype, 'state', {get: () => 'suspended'});")
    open_page(browser, stand_in)
    press(browser, SOUND, then=lambda page: page.text("sound-says") == "Your browser does not play the sound.",
          what="it is said")
    assert not pressed(browser, SOUND)


def test_choices_are_those_of_this_page(browser, stand_in, watched):
    """They survive a reload, which may cost the sound: then the page says so instead of promising it. A new tab and
    a new place have none."""
    watched()
    open_page(browser, stand_in)
    turn_on(browser, SOUND, "You hear this sound")
    turn_on(browser, SCREEN, "The screen stays on")
    browser.refresh()
    becomes(browser, lambda now: now["locks"] == [True], "the screen stays on")
    page = until(browser, lambda page: page.text("sound-says"), "the sound is on or not")
    state = browser.execute_script("return document.querySelector('[data-tl=sound]').getAttribute('aria-pressed')")
    assert ("You hear this sound" in page.text("sound-says")) == (state == "true"), (page, state)
    assert ("Please turn the sound on once more" in page.text("sound-says")) == (state == "false"), (page, state)
    browser.execute_script("for (const name of ['screen', 'sound']) sessionStorage['tellerline:concert:' + name] = '\"v0\"'")
    browser.refresh()
    until(browser, lambda page: page.state == "waiting", "in line")
    stays(browser, SILENT)
    assert not pressed(browser, SCREEN) and not pressed(browser, SOUND)


def test_one_of_several_tabs_sounds(browser, stand_in, watched):
    tabs = []
    for first in (True, False):
        if not first:
            browser.switch_to.new_window("tab")
        watched()
        open_page(browser, stand_in)
        turn_on(browser, SOUND, "You hear this sound")
        tabs.append(browser.current_window_handle)
    stand_in.admitted(None)

    def notes() -> list[int]:
        found = []
        for tab in tabs:
            browser.switch_to.window(tab)
            if look(browser).state == "active":
                found.append(seen(browser)["notes"])
        return sorted(found)

    def one_sounds() -> bool:
        assert notes() == [SAMPLE, SAMPLE + CHIMES]
        return True

    wait_until(one_sounds, PATIENCE, "one of them sounds", again_on=AssertionError)
    stays(browser, seen(browser))
    one_sounds()


def test_buttons_without_a_use_are_hidden(browser, stand_in, watched):
    open_page(browser, stand_in, INSECURE)
    assert look(browser, SCREEN, SOUND).offered == [SOUND], "no screen is kept on for a page without TLS"
    watched("delete window.AudioContext; delete window.webkitAudioContext;")
    open_page(browser, stand_in)
    assert look(browser, SCREEN, SOUND).offered == [SCREEN]


def test_axe_finds_nothing(browser, stand_in):
    with axe_at_hand(browser):
        open_page(browser, stand_in)
        turn_on(browser, SOUND, "You hear this sound")
        turn_on(browser, SCREEN, "The screen stays on")
        check_accessible(browser)
    roles = browser.execute_script("return ['screen-says', 'sound-says'].map((name) => document.querySelector("
                                   "`[data-tl=${name}]`).getAttribute('role'))")
    assert roles == ["status", "status"]


def test_the_script_is_es5():
    check_es5((TOP / "worker" / "web" / "attention.js").read_bytes())
