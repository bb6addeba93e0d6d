# SPDX-License-Identifier: Apache-2.0
"""A place goes from one browser to another, by the code that the waiting page shows."""
from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from browser import Page, check_accessible, chromium, look, press, scripts, until, visit
from http_client import Client, Visitor, redeem_by_page
from tellerline import CALM, PATIENCE, System
from waiting import patient, wait_until

pytestmark = pytest.mark.together(seconds=30)

SHOW, MOVE = "form[action*=transfer] button", "form[action*=move] button"
LEAVING, LEAVE = ".help > details:not([open]) > summary", "form[action*=leave] button"


@pytest.fixture
def other_browser(start) -> Iterator[webdriver.Chrome]:  # pylint: disable=unused-argument
    """With cookies of its own. Leaves its page before the programs of `start` stop."""
    with chromium() as driver:
        yield driver


@pytest.fixture
def line(start) -> tuple[System, str]:
    """A queue with one visitor inside and one who waits, and the address of its page."""
    system = start({"shop": CALM | {"capacity": 1}}, settings={"worker": {"processes": 2},
                                                               "http": {"return_urls": "https://shop.example"}})
    first, second = (system.join("shop") for _ in range(2))
    wait_until(first.is_active, PATIENCE, "the first is in")
    assert second.view["status"] == "waiting"
    return system, f"http://127.0.0.1:{first.client.port}/q/shop"


def here(address: str, page: str) -> str:
    """The address of a code as the other device reaches this worker."""
    return page.split("/q/")[0] + "/q/" + address.split("/q/")[1]


def open_code(browser: webdriver.Chrome) -> str:
    """Has the page show a code. Returns its address."""
    browser.execute_script("document.querySelector('details[data-tl=move]').open = true")
    page = press(browser, SHOW, then=lambda page: page.shows("move-code"), what="the code is shown")
    assert "seconds" in page.text("move-left") or "minute" in page.text("move-left"), page.texts
    return browser.execute_script("return document.querySelector('[data-tl=move-link]').href")


def scan(browser: webdriver.Chrome, selector: str, path: Path) -> str:
    """What the camera of another device reads from the screen."""
    code = browser.find_element(By.CSS_SELECTOR, selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", code)
    assert browser.save_screenshot(str(path))
    done = subprocess.run(["zbarimg", "--quiet", "--raw", "--nodbus", str(path)], capture_output=True, text=True,
                          timeout=patient(60))
    assert done.returncode == 0, f"no code in {path}: {done.stderr}"
    return done.stdout.strip()


def test_from_one_browser_to_another(browser, other_browser, line, tmp_path):
    system, address = line
    old, new = browser, other_browser
    seats = "return=https://shop.example/seats"
    visit(old, f"{address}?{seats}")
    until(old, lambda page: page.state == "waiting" and page.text("ahead") == "1", "it is in line")
    shown = open_code(old)
    assert f"/q/shop/move?{seats}#" in shown, shown
    for scheme in ("dark", "light"):
        old.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        assert scan(old, "[data-tl=qr] svg", tmp_path / f"{scheme}.png") == shown
    code = here(scan(old, "[data-tl=qr] svg", tmp_path / "code.png"), address)
    old.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                        {"width": 320, "height": 800, "deviceScaleFactor": 1, "mobile": False})
    assert look(old).width <= 320
    check_accessible(old)
    colour = old.execute_script("return getComputedStyle(document.querySelector('.qr')).backgroundColor")
    assert colour == "rgb(255, 255, 255)"
    visit(new, code)
    page = until(new, lambda page: page.state == "move_here", "it asks first")
    check_accessible(new)
    assert look(old).state == "waiting"  # to open the address moves nothing
    page = press(new, MOVE, then=lambda page: page.state == "waiting", what="the place is here")
    assert page.text("ahead") == "1" and "#" not in page.url and seats in unquote(page.url)
    until(old, lambda page: page.state == "moved", "the old device is told")
    check_accessible(old)
    visit(old, address)
    assert until(old, lambda page: page.state, "a reload").state == "moved"  # and does not join again
    assert system.waiting("shop") == 2
    visit(old, code)  # the code is used up
    press(old, MOVE, then=lambda page: page.state == "code_over", what="the code is over")
    check_accessible(old)
    assert look(new).state == "waiting"


def test_the_code_without_scripts(browser, line, tmp_path):
    """The page that shows it is read like the other one."""
    _, address = line
    old = browser
    scripts(old, enabled=False)
    visit(old, address)
    until(old, lambda page: page.state == "waiting" and page.text("ahead") == "1", "it is in line")
    press(old, "[data-tl=move]:not([open]) > summary", SHOW, then=lambda page: page.state == "transfer", what="the code")
    shown = old.execute_script("return document.querySelector('section[data-state=transfer] a[href*=move]').href")
    assert "/q/shop/move#" in shown and scan(old, "section[data-state=transfer] svg", tmp_path / "code.png") == shown


@pytest.fixture
def own_place(browser, start) -> tuple[webdriver.Chrome, list[Visitor], str]:
    """A browser that waits with a place of its own, and those before it: one inside, one who waits."""
    system = start({"shop": CALM | {"capacity": 1}})
    visitors = [system.join("shop") for _ in range(2)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is in")
    address = f"http://127.0.0.1:{visitors[0].client.port}/q/shop"
    visit(browser, address)
    until(browser, lambda page: page.state == "waiting" and page.text("ahead") == "1", "it is in line")
    return browser, visitors, address


@pytest.mark.parametrize("channel", [True, False], ids=["channel", "storage"])
def test_other_tabs_of_the_new_browser(own_place, channel):
    """All tabs of the browser show the place that was moved here, and hear of its turn."""
    browser, (inside, moving), address = own_place
    added: dict[str, dict[str, str]] = {}

    def tab(where: str) -> str:
        if not channel:
            added[browser.current_window_handle] = browser.execute_cdp_cmd(
                "Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.BroadcastChannel"})
        visit(browser, where)
        return browser.current_window_handle

    def is_here(page: Page) -> bool:
        return page.state == "waiting" and page.visitor == moving.view["visitor"]

    old = tab(address)
    own = until(browser, lambda page: page.state == "waiting" and page.text("ahead") == "1", "its own place").visitor
    assert own != moving.view["visitor"]
    code = moving.client.post("/v1/queues/shop/transfer", ticket=moving.ticket).json["address"]
    browser.switch_to.new_window("tab")
    new = tab(here(code, address))
    press(browser, MOVE, then=is_here, what="the place is here")
    browser.switch_to.window(old)
    page = until(browser, is_here, "the other tab shows the place that leaving gives up")
    assert page.text("ahead") == "0"
    browser.switch_to.window(new)
    assert is_here(look(browser)), "and the cookie is still of this place"
    inside.complete()
    for window in (new, old):
        browser.switch_to.window(window)
        until(browser, lambda page: page.state == "active" and page.visitor == moving.view["visitor"], "its turn")
        assert browser.execute_script("return 'BroadcastChannel' in window") == channel
    for window, script in added.items():
        browser.switch_to.window(window)
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_a_tab_leaves_only_the_place_that_it_shows(own_place):
    """Another place is in the cookie, and no tab said so, as of a browser without scripts or of another release."""
    browser, (_, moving), _ = own_place
    browser.execute_cdp_cmd("Network.setCookie", {"name": "tellerline_shop", "value": moving.ticket, "httpOnly": True,
                                                  "url": look(browser).url})
    press(browser, LEAVING, LEAVE, then=lambda page: page.visitor == moving.view["visitor"], what="the place of the cookie")
    assert look(browser).state == "waiting" and moving.status()["status"] == "waiting"
    press(browser, LEAVING, LEAVE, then=lambda page: page.state == "left", what="this one, as it is shown")
    assert moving.status()["status"] == "left"


def test_a_tab_hands_over_only_the_place_that_it_shows(own_place):
    browser, (_, moving), _ = own_place
    browser.execute_cdp_cmd("Network.setCookie", {"name": "tellerline_shop", "value": moving.ticket, "httpOnly": True,
                                                  "url": look(browser).url})
    browser.execute_script("document.querySelector('details[data-tl=move]').open = true")
    page = press(browser, SHOW, then=lambda page: page.visitor == moving.view["visitor"], what="the place of the cookie")
    assert page.state == "waiting" and not page.shows("move-code")
    open_code(browser)


def test_a_tab_leaves_the_next_place_of_its_visitor(own_place):
    """It follows a visitor who left and joined again in another tab, without loading the page again."""
    browser, _, address = own_place
    browser.execute_script("window.same = true")
    old, visitor = browser.current_window_handle, look(browser).visitor
    browser.switch_to.new_window("tab")
    visit(browser, address)
    until(browser, lambda page: page.state == "waiting", "the other tab")
    press(browser, LEAVING, LEAVE, then=lambda page: page.state == "left", what="left")
    press(browser, "form[action*=join] button", then=lambda page: page.state == "waiting", what="joined again")
    assert look(browser).visitor == visitor
    browser.switch_to.window(old)
    until(browser, lambda page: page.state == "waiting", "it follows")
    assert browser.execute_script("return window.same")
    browser.execute_script("document.querySelector(arguments[0]).click()", LEAVE)  # once
    until(browser, lambda page: page.state == "left", "the place of now")


@pytest.mark.sanitized
def test_without_scripts(start):
    """The same by plain pages, as a browser without scripts and cookies sends them."""
    system = start({"shop": CALM | {"capacity": 1}})
    first, second = (system.join("shop") for _ in range(2))
    wait_until(first.is_active, PATIENCE, "the first is in")
    client = second.client
    answer = client.post(f"/q/shop/transfer?ticket={second.ticket}")
    html = answer.body.decode()
    assert answer.status == 200 and '<section data-state="transfer">' in html and "<svg viewBox=" in html
    code = html.split('/q/shop/move#')[1].split('"')[0]
    for _ in range(3):  # as many programs open it as want to
        page = client.get("/q/shop/move")
        assert page.status == 200 and '<section data-state="move_here">' in page.body.decode()
    assert second.status()["status"] == "waiting"
    device = page.body.decode().split('name="device" value="')[1].split('"')[0]
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert redeem_by_page(client, "/q/shop/move", code, device, foreign).status == 403
    for given in (code, f"http://shop.example/q/shop/move#{code} "):  # repeated, as when the first answer was lost
        answer = redeem_by_page(client, "/q/shop/move", given, device)
        assert answer.status == 303, answer.body
    ticket = answer.headers["set-cookie"].split("=", 1)[1].split(";")[0]
    moved = Visitor(client, "shop", ticket)
    assert moved.status()["status"] == "waiting" and moved.view["visitor"] == second.view["visitor"]
    page = client.get(f"/q/shop?ticket={second.ticket}")
    assert '<section data-state="moved">' in page.body.decode()
    assert urlsplit(answer.headers["location"]).path == "/q/shop"
    answer = redeem_by_page(client, "/q/shop/move", "forged")
    assert answer.status == 403 and '<section data-state="code_over">' in answer.body.decode()


def action_of(client: Client, cookie: dict[str, str], form: str) -> str:
    """Where this form of the page goes that a browser with this cookie shows."""
    html = client.get(f"/q/shop?from=9&return={quote('https://shop.example/a?b=1', safe='')}", headers=cookie).body.decode()
    found = re.search(f'action="(/q/shop/{form}[^"]*)"', html)
    assert found, html
    return found[1].replace("&amp;", "&")


def cookie_of(visitor: Visitor) -> dict[str, str]:
    return {"Cookie": f"tellerline_shop={visitor.ticket}"}


def test_an_old_page_without_scripts_does_nothing_to_another_place(start):
    """Its forms act on the place of the cookie: only if that is the one it shows."""
    system = start({"shop": CALM | {"capacity": 1}}, settings={"http": {"return_urls": "https://shop.example"}})
    inside, old, new = (system.join("shop") for _ in range(3))
    wait_until(inside.is_active, PATIENCE, "the first is in")
    client = system.client()
    leave, transfer, join = (action_of(client, cookie_of(old), form) for form in ("leave", "transfer", "join"))
    for action in (leave, transfer):
        answer = client.post(action, headers=cookie_of(new))
        assert answer.status == 303 and system.waiting("shop") == 2 and new.status()["status"] == "waiting"
        assert answer.headers["location"] == "/q/shop?return=https%3A%2F%2Fshop.example%2Fa%3Fb%3D1"
    assert client.post(transfer, headers=cookie_of(old)).status == 200
    assert client.post(leave, headers=cookie_of(old)).status == 303
    assert old.status()["status"] == "left" and new.status()["status"] == "waiting"
    again = system.visitor("shop")  # the same visitor, in another tab
    again.ticket = old.ticket
    again.join()
    assert again.view["status"] == "waiting" and again.view["visitor"] == old.view["visitor"]
    for place in (new, again):
        assert client.post(leave, headers=cookie_of(place)).status == 303
        assert client.post(join, headers=cookie_of(place)).status == 303
        assert place.status()["status"] == "waiting"
    before = re.sub("place=[^&]*&?", "", leave)  # a page of an older release
    assert before != leave and client.post(before, headers=cookie_of(again)).status == 303
    assert again.status()["status"] == "left"
