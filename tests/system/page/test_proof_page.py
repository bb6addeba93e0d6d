# SPDX-License-Identifier: Apache-2.0
"""The page that proves a place: in the browser, in Korean and English, and what it says without scripts."""
from __future__ import annotations

import json

from selenium.webdriver.common.by import By

from admin import admin_file
from browser import check_accessible, scripts, visit
from tellerline import CALM, PATIENCE
from test_archive import agree, join_many
from test_draw import drawn, open_now, time_in
from test_trail import prepared
from waiting import wait_until


def said(browser):
    """What the page found: of the place, and of the key."""
    box = browser.find_element(By.ID, "proof")
    shown = [one.get_attribute("data-says") for one in browser.find_elements(By.CSS_SELECTOR, "[data-says]")
             if one.is_displayed() and one.get_attribute("data-says") != "asks"]
    return box.get_attribute("data-good"), box.get_attribute("data-signed"), shown


def check_again(browser, **changes):
    """Has the page's script look at another proof."""
    browser.execute_script("""
        var box = document.getElementById('proof'), proof = JSON.parse(box.dataset.proof);
        box.removeAttribute('data-good');
        for (var name in arguments[0]) proof[name] = arguments[0][name];
        box.dataset.proof = JSON.stringify(proof);
        var script = document.createElement('script');
        script.src = document.querySelector('script[src]').src;
        document.head.appendChild(script);""", changes)
    wait_until(lambda: said(browser)[0], PATIENCE, "the page has checked it")
    return said(browser)[0]


def test_a_place_is_proved_in_the_browser(start, browser, postgres):
    system = start({"sale": CALM | {"capacity": 2}}, archivers=1, prepare=admin_file, settings={"archive": {"url": postgres.url}})
    address = f"http://localhost:{system.of('worker')[0].http_port}/q/sale"
    join_many(system, 400, "early")
    wait_until(lambda: system.numbers("sale")["active"] == 2, PATIENCE, "two are inside")
    visit(browser, address)
    link = wait_until(lambda: browser.find_elements(By.CSS_SELECTOR, "a[href*='/proof']"), PATIENCE, "the page links the proof")
    join_many(system, 100, "late")
    agree(system, postgres)
    assert link[0].text in ("Verify your place in the record", "기록에 남은 내 순서 확인"), link[0].text
    visit(browser, link[0].get_attribute("href"))
    wait_until(lambda: said(browser)[0], PATIENCE, "the page has checked it")
    assert said(browser) == ("good", None, ["good"])
    check_accessible(browser)
    # The key that the operator publishes; not every browser knows Ed25519.
    key = browser.find_element(By.ID, "key")
    key.send_keys(system.ctl("trail", "key").stdout.strip() + "\n")
    wait_until(lambda: said(browser)[1], PATIENCE, "the page has looked at the key")
    assert said(browser)[1] in ("signed", "unable_key")
    proof = json.loads(browser.find_element(By.ID, "proof").get_attribute("data-proof"))
    assert len(proof["hashes"]) >= 9
    assert check_again(browser, visitor="early5") == "bad"
    assert check_again(browser, visitor=proof["visitor"]) == "good"
    assert check_again(browser, index=proof["index"] + 1) == "bad"
    assert check_again(browser, index=proof["index"], hashes=proof["hashes"][:-1]) == "bad"
    assert check_again(browser, hashes=proof["hashes"], checkpoint=proof["checkpoint"].replace(str(proof["size"]), "7")) == "bad"
    visit(browser, "about:blank")
    scripts(browser, False)
    try:
        visit(browser, link_address := f"{address}/proof")
        text = browser.find_element(By.TAG_NAME, "main").text
        assert "tellerline verify place" in text and proof["leaf"].split(" ")[4] in text, (link_address, text)
    finally:
        scripts(browser, True)


def test_a_drawn_place_is_proved_in_the_browser(start, browser, postgres):
    system = start({"sale": CALM | {"capacity": 1, "order": "draw", "opens_at": time_in(600)}}, archivers=1, prepare=prepared,
                   settings={"archive": {"url": postgres.url}})
    address = f"http://localhost:{system.of('worker')[0].http_port}/q/sale"
    join_many(system, 20, "early")
    visit(browser, address)
    wait_until(lambda: system.numbers("sale")["waiting"] == 21, PATIENCE, "the page has joined")
    open_now(system)
    wait_until(lambda: drawn(system), PATIENCE, "the draw is done")
    agree(system, postgres)
    visit(browser, address)
    visit(browser, f"{address}/proof")
    wait_until(lambda: said(browser)[0], PATIENCE, "the page has checked it")
    assert said(browser) == ("good", None, ["good"])
    proof = json.loads(browser.find_element(By.ID, "proof").get_attribute("data-proof"))
    assert " drawn " in proof["leaf"] and check_again(browser, visitor="early5") == "bad"


def test_the_page_speaks_korean_and_says_what_is_missing(start, postgres):
    system = start({"sale": CALM | {"capacity": 1}}, archivers=1, prepare=admin_file, settings={"archive": {"url": postgres.url}})
    first, visitor = (system.join("sale") for _ in range(2))
    wait_until(first.is_active, PATIENCE, "the first is in")
    agree(system, postgres)
    client = system.client()

    def page(language, ticket=visitor.ticket):
        return client.get("/q/sale/proof", ticket, headers={"Accept-Language": language})

    answer = page("ko")
    assert answer.status == 200 and "내 순서가 여기 표시된 그대로 기록에 있습니다" in answer.body.decode()
    assert "script-src 'self'; style-src 'sha256-" in answer.headers["content-security-policy"]
    assert '<html lang="ko">' in answer.body.decode() and '<html lang="en">' in page("de").body.decode()
    assert "Please open this page in the browser in which you joined" in page("en", ticket=None).body.decode()
    assert page("en", ticket=None).status == 401
    system.expect("the archive could not be read")
    postgres.stop()
    wait_until(lambda: page("en").status == 503, PATIENCE, "PostgreSQL is away")
    assert "Your place is kept" in page("en").body.decode()
    postgres.start()
    without = start({"sale": CALM | {"capacity": 1}})
    other = without.join("sale")
    body = other.client.get("/q/sale", other.ticket, headers={"Accept-Language": "en"}).body.decode()
    assert "/proof" not in body
    answer = other.client.get("/q/sale/proof", other.ticket, headers={"Accept-Language": "en"})
    assert answer.status == 404 and "no public record of this line" in answer.body.decode()
