# SPDX-License-Identifier: Apache-2.0
"""The dashboard in a real browser: a sale is run from it alone, and what it shows is true."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException

from admin import ADMIN_TOKEN, Admin, admin_file
from browser import SCREENSHOTS, axe_at_hand, check_accessible, visit
from postgres_server import PostgresServer
from webhook_stand_in import Receiver
from sale_story import NOTICE, check_record, story
from tellerline import BIN, CALM, PATIENCE, System, run
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=30)

#: What reaches beyond the screen, and is not in something that scrolls.
WIDE = """return [...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1
    && !e.closest('.scroll')).map((e) => e.outerHTML.slice(0, 120))"""
#: What the page says of a visitor under this name, or null.
FACT = """([...document.querySelectorAll('.facts dt')].find((e) => e.innerText === name) || {}).nextElementSibling?.innerText ?? null"""
HOSTILE = "<img src=x onerror=document.title='stolen'>"


@pytest.fixture
def room(start) -> Callable[..., System]:
    return lambda queues=None: start(queues or {}, prepare=admin_file)


class Desk:
    """An operator at the dashboard."""

    def __init__(self, browser: webdriver.Chrome, system: System, token: str = ADMIN_TOKEN, address: str = "") -> None:
        """address: one that signs in by itself."""
        self.browser = browser
        self.worker = system.of("worker")[0]
        if address:
            visit(browser, address)
        else:
            self.open("")
            self.fill("#token", token)
            self.press("Sign in")
        self.sees("live")

    def open(self, fragment: str) -> None:
        visit(self.browser, f"http://127.0.0.1:{self.worker.admin_port}/{fragment}")

    def text(self) -> str:
        return self.browser.execute_script("return document.body.innerText")

    def sees(self, *texts: str) -> str:
        """Waits until the page shows all of them."""
        last = ""

        def shown() -> bool:
            nonlocal last
            last = self.text()
            return all(text in last for text in texts)

        try:
            wait_until(shown, PATIENCE, f"the dashboard shows {texts}", 0.2)
        except AssertionError as error:
            said = [entry["message"] for entry in self.browser.get_log("browser")]
            raise AssertionError(f"{error}; it shows: {last}; the browser said: {said}") from error
        return last

    def press(self, label: str) -> None:
        """A button with this text; in the dialog, if one is open."""
        script = """const open = document.querySelector('dialog[open]') || document;
            const found = [...open.querySelectorAll('button')].find(
                (b) => b.innerText.trim() === arguments[0] && b.checkVisibility() && !b.disabled
                    && b.ariaDisabled !== 'true');
            if (found) found.click();
            return Boolean(found);"""
        wait_until(lambda: self.browser.execute_script(script, label), PATIENCE, f"a button {label!r}; {self.text()}", 0.1)

    def fill(self, selector: str, text: str) -> None:
        script = """const found = document.querySelector(arguments[0]);
            if (!found || !found.checkVisibility() || found.disabled) return false;
            found.value = arguments[1];
            found.dispatchEvent(new Event('input', { bubbles: true }));
            return true;"""
        wait_until(lambda: self.browser.execute_script(script, selector, text), PATIENCE, f"the field {selector}", 0.1)

    def confirm(self, label: str, *says: str, typed: str = "") -> None:
        """The dialog says this; answers yes, and waits until it is done."""
        dialog = wait_until(lambda: self.browser.execute_script(
            "const d = document.querySelector('dialog[open]'); return d && d.innerText"), PATIENCE, "a question", 0.1)
        for text in says:
            assert text in dialog, dialog
        if typed:
            self.fill("#typed", typed)
        self.press(label)
        wait_until(lambda: not self.browser.execute_script("return document.querySelector('dialog[open]')"), PATIENCE,
                   f"the question is settled: {self.text()}", 0.1)

    def fetch(self, path: str) -> str:
        return self.browser.execute_async_script(
            "const done = arguments[1]; fetch(arguments[0]).then((a) => a.text()).then(done, String)", path)


@pytest.mark.sanitized
def test_a_sale_from_the_dashboard_alone(browser, room):
    system = room()
    desk = Desk(browser, system)
    desk.sees("There is no queue yet")
    desk.press("Create a queue")
    desk.fill("#new-name", "sale")
    desk.fill("#new-capacity", "1")
    desk.fill("#new-lanes", "vip, normal")
    desk.confirm("Create")
    desk.sees("sale", "paused", "1 at once")
    visitors = [wait_until(lambda: system.join("sale"), PATIENCE, "the worker serves the queue", again_on=AssertionError)]
    visitors += [system.join("sale") for _ in range(4)]
    desk.sees("Paused: 5 people wait and no one is let in")
    desk.press("Open")
    desk.confirm("Resume", "5 people in line now")
    wait_until(visitors[0].is_active, PATIENCE, "the first is in")
    desk.sees("1 / 1")
    desk.fill("#notice", NOTICE["en"])
    desk.press("Add a language")
    desk.fill("#notice-1", NOTICE["ko"])
    desk.press("Preview")
    desk.confirm("Publish", "4 people read it at once", "all others read English", *NOTICE.values())
    wait_until(lambda: visitors[1].status().get("notice") == NOTICE["en"], PATIENCE, "the notice")
    desk.fill("#capacity", "2")
    desk.press("Review change")
    desk.confirm("Change", "1 → 2 people may be in at once", "At once: up to 1 more are let in")
    wait_until(visitors[1].is_active, PATIENCE, "one more is in")
    desk.sees("2 / 2")
    desk.press("Pause")
    desk.confirm("Pause", "No one is let in until you resume", "3 people keep their places")
    wait_until(lambda: visitors[2].status().get("paused"), PATIENCE, "paused")
    desk.press("Open")
    desk.confirm("Resume")
    desk.fill("#visitor", visitors[4].view["reference"].lower().replace("-", " "))
    desk.press("Show")
    desk.sees("waiting")
    desk.press("Move")
    desk.confirm("Move")
    wait_until(lambda: visitors[4].status()["position"] == 1, PATIENCE, "the VIP is first")
    desk.fill("#visitor", visitors[1].status()["visitor"])
    desk.press("Show")
    desk.press("Revoke")
    desk.confirm("Revoke", typed="yes")
    wait_until(visitors[4].is_active, PATIENCE, "the place of the revoked one is the VIP's")
    assert visitors[1].status()["status"] == "removed"
    desk.press("Drain")
    desk.confirm("Drain", "No one new can join")
    wait_until(lambda: system.client().post("/v1/queues/sale/join").status == 403, PATIENCE, "no one can join")
    desk.sees("draining")
    rows = [json.loads(line) for line in desk.fetch("/v1/admin/queues/sale/export?format=jsonl").splitlines()]
    assert {row["visitor"] for row in rows} >= {visitor.status()["visitor"] for visitor in visitors[2:4]}
    desk.press("Sold out")
    desk.confirm("Sold out", typed="sale")
    desk.sees("sold out")
    admin = Admin(system.of("worker")[0])
    expected = story(important=visitors[4].view["visitor"], revoked=visitors[1].view["visitor"])
    check_record(system, admin.done("GET", "changes?queue=sale")["changes"][::-1], expected, "admin", "127.0.0.1")
    desk.sees("What was changed", "capacity: 1 → 2")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    assert browser.save_screenshot(str(SCREENSHOTS / "dashboard.png"))
    admin.close()


def test_the_address_that_the_command_line_writes_signs_in(browser, start):
    """Once, and it does not stay in the address. Then the page says what to do."""
    def at_its_port(system: System) -> None:
        admin_file(system)
        system.settings("admin", {"worker": f"127.0.0.1:{system.of('worker')[0].admin_port}"})

    system = start({"sale": CALM}, prepare=at_its_port)
    done = system.ctl("dashboard")
    assert done.returncode == 0, done.stderr
    (address,) = done.stdout.split()
    port = system.of("worker")[0].admin_port
    assert address.startswith(f"http://127.0.0.1:{port}/#/sign-in/") and ADMIN_TOKEN not in address, address
    desk = Desk(browser, system, address=address)
    desk.sees("admin (admin)", "sale")
    assert browser.current_url == f"http://127.0.0.1:{port}/#/"
    desk.press("Sign out")
    visit(browser, "about:blank")
    visit(browser, address)
    desk.sees("This link was used", "Sign in")
    again = system.ctl("dashboard", "--server", f"http://127.0.0.1:{port}")
    assert again.returncode == 2 and "--server needs a token" in again.stderr, "no other server gets the token of the file"


@contextmanager
def blocked(browser: webdriver.Chrome, *patterns: str) -> Iterator[None]:
    """The browser fetches no address of these."""
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": list(patterns)})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        browser.execute_cdp_cmd("Network.disable", {})


def test_what_the_browser_dropped_is_fetched_again(browser, room):
    """A browser drops what it is about to fetch when a network of its machine comes or goes, be it that of a container.
    One script that is missing keeps the others from running; and a link that was not used still signs in."""
    system = room({"sale": CALM})
    worker = system.of("worker")[0]
    link = Admin(worker).done("POST", "session/link")["url"]
    loses_one = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": """const real = window.fetch;
        window.fetch = () => { window.fetch = real; return Promise.reject(new TypeError('dropped')); };"""})
    try:
        with blocked(browser, "*/assets/waits.js"):
            visit(browser, f"http://127.0.0.1:{worker.admin_port}{link}")
            wait_until(lambda: "did not come" in browser.execute_script("return document.body.innerText"), PATIENCE,
                       "the page says what is missing", again_on=WebDriverException)
        wait_until(lambda: "live" in browser.execute_script("return document.body.innerText"), PATIENCE,
                   "the page has fetched it, and signed in", again_on=WebDriverException)
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", loses_one)


def test_a_visitor_has_the_time_of_the_join(browser, room):
    """And the page says what came true of the waits told."""
    system = room({"sale": CALM | {"capacity": 0}})
    history, shown = system.key("sale", "history"), "const [name] = arguments; return " + FACT
    wait_until(lambda: system.store.command("XLEN", history), PATIENCE, "the history has begun", 0.2)
    visitor = system.join("sale").status()["visitor"]
    seq = int(system.store.command("HGET", system.key("sale", "state"), "seq"))
    wait_until(lambda: dict(zip(*[iter(system.store.command("XREVRANGE", history, "+", "-", "COUNT", 1)[0][1])] * 2))["seq"]
               == str(seq), PATIENCE, "the history knows the place", 0.2)
    admin = Admin(system.of("worker")[0])
    joined = admin.done("GET", f"queues/sale/visitors/{visitor}")["joined_at"]
    desk = Desk(browser, system)
    desk.open("#/queues/sale")
    desk.fill("#visitor", visitor)
    desk.press("Show")
    text = wait_until(lambda: browser.execute_script(shown, "Joined"), PATIENCE, "when the visitor joined", 0.1)
    when = datetime.fromisoformat(joined.replace("Z", "+00:00")).astimezone()
    assert f"{when:%Y}" in text and f"{when:%b} {when.day}" in text and f"{when:%H:%M:%S}" in text, (text, joined)
    system.store.command("HSET", system.key("sale", "promised"), "eta_judged", 200, "eta_early", 20, "eta_late", 10,
                         "eta_error", 2500)
    desk.sees("Of 200 waits told in the last hour, 85 % held, 10 % came in sooner, 5 % later. Off by 12.5 % on average.")
    admin.close()


def test_a_late_answer_does_not_replace_the_visitor(browser, room):
    """Who was asked for last is shown, also if the answer about the one before comes later."""
    system = room({"sale": CALM | {"capacity": 0}})
    first, second = (system.join("sale").status()["visitor"] for _ in range(2))
    desk = Desk(browser, system)
    desk.open("#/queues/sale")
    desk.sees("0 at once")
    browser.execute_script("""const real = window.fetch;
        window.fetch = async (path, options) => {
            const answer = await real(path, options);
            if (String(path).endsWith(arguments[0])) {
                window.held = true;
                await new Promise((go) => { window.letGo = go; });
                const text = await answer.text();
                answer.text = async () => {
                    setTimeout(() => { window.told = true; });
                    return text;
                };
            }
            return answer;
        };""", first)
    desk.fill("#visitor", first)
    desk.press("Show")
    wait_until(lambda: browser.execute_script("return window.held"), PATIENCE, "the first answer is held back")
    desk.fill("#visitor", second)
    desk.press("Show")
    desk.sees("Place in line", second)
    browser.execute_script("window.letGo()")
    wait_until(lambda: browser.execute_script("return window.told"), PATIENCE, "the first answer is read")
    assert browser.execute_script("const [name] = arguments; return " + FACT, "Visitor") == second


def test_the_visitor_shown_is_as_of_now(browser, room):
    """The place moves on, and the session ends, while the operator looks at it; nothing else has to be pressed."""
    system = room({"sale": CALM | {"capacity": 0}})
    first, second = (system.join("sale") for _ in range(2))
    desk = Desk(browser, system)
    desk.open("#/queues/sale")
    desk.fill("#visitor", second.view["visitor"])
    desk.press("Show")
    shows = "const [name] = arguments; return " + FACT
    wait_until(lambda: browser.execute_script(shows, "Place in line") == "2", PATIENCE, "the second is shown", 0.1)
    before = browser.execute_script(shows, "As of")
    first.leave()
    wait_until(lambda: browser.execute_script(shows, "Place in line") == "1", PATIENCE, "the place moved on", 0.1)
    assert browser.execute_script(shows, "As of") != before
    second.leave()
    wait_until(lambda: browser.execute_script(shows, "Status") == "left", PATIENCE, "it has ended", 0.1)


def test_the_record_stays_on_the_screen(browser, room):
    """A draw records its hash, and settings have long addresses: words without an end."""
    system = room({"sale": CALM | {"capacity": 0}})
    system.set("sale", f"target_url=https://shop.example/{'x' * 300}")
    desk = Desk(browser, system)
    desk.open("#/queues/sale")
    desk.sees("What was changed", "target_url")
    for width in (1280, 800):
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        wide = browser.execute_script("""return [...document.querySelectorAll('.scroll')]
            .map((e) => e.scrollWidth - e.clientWidth).filter((more) => more > 0)""")
        assert wide == [], (width, wide)


def test_the_opening_is_set_in_the_time_of_the_operator(browser, room):
    """By lot, half a year away, too, where summer time is another; and once more as it is."""
    system = room({"sale": CALM | {"capacity": 1}})
    admin = Admin(system.of("worker")[0])
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Europe/Berlin"})
    desk = Desk(browser, system)
    desk.open("#/queues/sale")
    desk.sees("no time is set, first come first served")
    for day, shown, expected in (("2999-01-15", "Jan 15, 2999", "2999-01-15T19:00:00"),
                                 ("2999-07-15", "Jul 15, 2999", "2999-07-15T18:00:00")):
        desk.press("Set the opening")
        desk.fill("#opens-at", f"{day}T20:00")
        desk.fill("#order", "draw")
        desk.confirm("Set", "Until then visitors join and wait")
        desk.sees(shown, "20:00:00", "by a draw")
        desk.press("Set the opening")
        desk.confirm("Set")
        stats = admin.done("GET", "queues/sale/stats")
        assert stats["order"] == "draw" and stats["opens_at"].startswith(expected), stats
    assert len(admin.done("GET", "changes?queue=sale")["changes"]) == 3, "created, and opened at two times"
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})
    admin.close()


def test_undo_and_what_somebody_else_changed(browser, room):
    system = room({"sale": CALM | {"capacity": 3}})
    admin = Admin(system.of("worker")[0])
    desk = Desk(browser, system)
    desk.open("#/queues/sale")
    desk.sees("3 at once")
    desk.fill("#capacity", "7")
    desk.press("Review change")
    desk.sees("3 → 7")
    before = admin.done("PATCH", "queues/sale", {"capacity": 5, "session_ttl": "9m"})["changed"]["before"]
    desk.press("Change")
    desk.sees("no longer those that If-Match names")
    desk.press("Cancel")
    desk.sees("5 at once", "capacity: 3 → 5", f"session_ttl: {before['session_ttl']} → 9m")
    desk.press("Undo")
    desk.confirm("Undo", "5 → 3")
    desk.sees("3 at once")
    assert admin.done("GET", "queues/sale")["settings"]["session_ttl"] == before["session_ttl"]
    admin.close()


def test_a_viewer_looks_and_changes_nothing(browser, room):
    system = room({"sale": CALM | {"capacity": 3}})
    admin = Admin(system.of("worker")[0])
    desk = Desk(browser, system, admin.make_token("eve", "viewer"))
    desk.open("#/queues/sale")
    desk.sees("Your token may look, not change", "eve (viewer)")
    enabled = browser.execute_script(
        "return [...document.querySelectorAll('main button')].filter((b) => !b.disabled && b.checkVisibility()).map((b) => b.innerText)")
    assert sorted(set(enabled) - {"30 min", "2 h", "24 h", "7 d", "Show"}) == [], enabled
    looks = browser.execute_script("""return [...document.querySelectorAll('main button:disabled:not([aria-pressed=true])')].map((b) => {
        const style = getComputedStyle(b);
        return [b.className, style.color, style.backgroundColor, style.borderColor].join(' ');
    })""")
    assert any(look.startswith("main ") for look in looks) and any(look.startswith("danger ") for look in looks), looks
    assert len({look[look.index("rgb"):] for look in looks}) == 1, "one that does nothing looks like it, whatever its colour was"
    admin.close()


def test_nothing_from_outside_becomes_markup(browser, room):
    """Notice, visitor id, name of a token, texts of the settings."""
    system = room({"sale": CALM | {"capacity": 0}})
    admin = Admin(system.of("worker")[0])
    admin.done("POST", "queues/sale/notice", {"text": HOSTILE})
    admin.done("PATCH", "queues/sale", {"sold_out_text": {"en": HOSTILE}})
    desk = Desk(browser, system)
    desk.open("#/queues/sale")
    desk.sees(HOSTILE)
    desk.fill("#visitor", HOSTILE)
    desk.press("Show")
    desk.open("#/queues/" + "%3Cimg%20src%3Dx%20onerror%3Ddocument.title%3D1%3E")
    desk.sees("<img")
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    assert browser.title != "stolen"
    admin.close()


def test_numbers_of_before_are_said_to_be_old(browser, room):
    """And are right again when the worker is back. The session of the token in the file ends with the worker."""
    system = room({"sale": CALM | {"capacity": 3}})
    worker = system.of("worker")[0]
    admin = Admin(worker)
    token = admin.make_token("jane", "operator")
    admin.close()
    desk = Desk(browser, system, token)
    desk.open("#/queues/sale")
    desk.sees("live")
    worker.kill()
    desk.sees("Numbers are of")
    worker.start()
    desk.sees("live")
    desk.press("Sign out")
    desk = Desk(browser, system)
    worker.kill()
    worker.start()
    desk.sees("You were signed out")


def test_webhooks_that_fail_are_shown_and_tested(browser, start, tmp_path):
    receiver = Receiver(tmp_path)
    with receiver.serving():
        system = start({"sale": CALM}, notifiers=1, prepare=admin_file,
                       settings={"webhooks": [receiver.webhook("site", ["paused"], queues="sale")]})
        wait_until(lambda: system.store.hash(system.key("sale", "webhooks")).get("wanted"), PATIENCE, "it is watched")
        desk = Desk(browser, system)
        desk.open("#/queues/sale")
        desk.sees("Webhooks", "nothing told yet")
        desk.press("Test")
        desk.sees("site was told of the test: it answers 204.", "answers")
        receiver.mood = "error"
        assert system.ctl("queue", "pause", "sale").returncode == 0
        desk.sees("The webhook site fails since", "1 wait, the oldest for", "500")
        check_accessible(browser)
        receiver.mood = "well"
        wait_until(lambda: "The webhook site fails" not in desk.text(), PATIENCE, "it is well again", 0.1)
        system.of("notifier")[0].stop()
        desk.sees("No notifier tells the webhook site.", "no notifier")
        viewer = Admin(desk.worker).make_token("looks", "viewer")
        desk.press("Sign out")
        desk = Desk(browser, system, viewer)
        desk.open("#/queues/sale")
        desk.sees("Webhooks")
        assert "Test" not in browser.execute_script(
            "return [...document.querySelectorAll('button')].map((b) => b.innerText.trim())")


def test_axe_finds_nothing(browser, room):
    system = room({"sale": CALM | {"capacity": 1, "lanes": ["vip", "normal"], "default_lane": "normal"}})
    visitors = [system.join("sale") for _ in range(3)]
    assert system.ctl("queue", "notice", "sale", "Doors open late").returncode == 0
    with axe_at_hand(browser):
        desk = Desk(browser, system)
        desk.sees("sale", "open")
        check_accessible(browser)
        desk.open("#/queues/sale")
        desk.sees("Waiting times", "In the line now", "under 1 min", "Doors open late")
        desk.fill("#visitor", visitors[2].status()["visitor"])
        desk.press("Show")
        desk.sees("Remove")
        check_accessible(browser)
        desk.press("Sold out")
        desk.sees("This cannot be undone")
        check_accessible(browser)
        desk.press("Cancel")
        desk.press("Sign out")
        desk.sees("Token")
        check_accessible(browser)


def test_fits_a_phone(browser, room):
    system = room({"sale": CALM | {"capacity": 1}})
    system.join("sale")
    desk = Desk(browser, system)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True})
    for fragment in "", "#/queues/sale":
        desk.open(fragment)
        desk.sees("sale")
        wide = wait_until(lambda: (found := browser.execute_script(WIDE)) is not None and [found], PATIENCE, "a look")[0]
        assert not wide, (fragment, wide)


SALES = """
    SELECT open_generation('sale', 1764586800000000), open_generation('sale', 1767178800000000);
    UPDATE queue_generations SET last_at = to_timestamp(generation / 1000000.0) + interval '40 min',
        deleted_at = CASE generation_id WHEN 1 THEN '2025-12-02T00:00:00Z'::timestamptz END;
    INSERT INTO queue_entries (generation_id, seq, lane, status, joined_at, admitted_at, ended_at, event)
        SELECT generation_id, i, (i % 5 > 0)::int, CASE WHEN i % 17 = 0 THEN 'unclaimed' ELSE 'completed' END::entry_status,
            at + interval '1 s' * (i * 3.0 / generation_id), at + interval '4 min' + interval '1 s' * (i * 2 + 400 * (i % 5 > 0)::int),
            at + interval '9 min' + interval '1 s' * (i * 2 + 400 * (i % 5 > 0)::int), i
        FROM queue_generations, to_timestamp(generation / 1000000.0) AS at, generate_series(1, 400 * generation_id) AS i;
    INSERT INTO queue_changes SELECT queue_id, to_timestamp(1767178800) + interval '7 min', 1, 0, 'kim', 'cli', 'set',
        '{"capacity": "100"}', '{"capacity": "150"}' FROM queues;
    INSERT INTO queue_stats SELECT queue_id, to_timestamp(1767178800) + interval '1 min' * m, 'open', greatest(0, 500 - 20 * m), least(150, 20 * m),
        CASE WHEN m < 7 THEN 100 ELSE 150 END, jsonb_build_object('eta_judged', 20 * m, 'eta_late', m, 'eta_error', 130 * m)
        FROM queues, generate_series(0, 35) AS m"""


def test_past_sales(browser, start):
    """They come from the archive when someone looks, with the report of each, alone and beside the one before."""
    server = PostgresServer()
    server.start()
    try:
        assert run(BIN / "tellerline", "db", "migrate", env={"TELLERLINE_ARCHIVE_URL": server.url}).returncode == 0
        server.sql(SALES)
        desk = Desk(browser, start({"sale": CALM}, prepare=admin_file, settings={"archive": {"url": server.url}}))
        desk.open("#/queues/sale")
        desk.sees("Past sales")
        assert "Compare" not in desk.text()
        browser.execute_script("document.querySelector('#sales-head').click()")
        rows = desk.sees("Visitors", "Compare").splitlines()
        assert any("800\t800\t17 min\t5.9 %\tCompare" in row for row in rows) and any("400\t400" in row for row in rows), rows
        assert not browser.execute_script(WIDE) and "false" not in rows, rows
        check_accessible(browser)
        browser.execute_script("document.querySelector('#sales-head').scrollIntoView()")
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        assert browser.save_screenshot(str(SCREENSHOTS / "dashboard-sales.png"))
        one, both = (browser.execute_script("return document.querySelector(`section[aria-labelledby=sales-head] ${arguments[0]} a`).href", cell)
                     for cell in ("th", "td"))
        for address, words, name in ((one, ("Arrived 800", "capacity 100 -> 150", "Waits that were told"), "report"),
                                     (both, ("Estimates off by, on average", "sale 2025-12-01"), "report-both")):
            visit(browser, address)
            for text in words:
                assert text in desk.text(), desk.text()[:2000]
            check_accessible(browser)
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 1000, "height": 1400, "deviceScaleFactor": 1, "mobile": False})
            assert browser.save_screenshot(str(SCREENSHOTS / f"{name}.png"))
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    finally:
        server.remove()
