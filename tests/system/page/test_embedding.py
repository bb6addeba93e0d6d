# SPDX-License-Identifier: Apache-2.0
"""tellerline.js in a shop's own pages, in a real browser against the real programs; and the examples that use it."""
from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By

from browser import visit
from embedding_site import CUT, EXAMPLES, SCRIPT, EmbeddingSite, Reply
from es5 import check_es5
from http_client import Client, Visitor
from tellerline import CALM, PATIENCE, TOP, System
from waiting import patient, wait_until

pytestmark = pytest.mark.together(seconds=90)

TYPES = TOP / "docs" / "integrators" / "tellerline.d.ts"
SIZE_MAX = 6000
ORIGINS = pytest.mark.parametrize("where", ["", "?"], ids=["same-origin", "other-origin"])


@pytest.fixture
def site() -> Iterator[EmbeddingSite]:
    server = EmbeddingSite()
    with server.serving():
        yield server


@pytest.fixture
def opened(start: Callable[..., System], site: EmbeddingSite) -> Callable[..., tuple[System, list[Visitor]]]:
    """A system with one visitor in the shop and two who wait, whose pages may be of the site's origin."""
    def open_one(**queue: Any) -> tuple[System, list[Visitor]]:
        system = start({"shop": CALM | {"capacity": 1} | queue},
                       settings={"http": {"allowed_origins": site.url}})
        site.worker = system.of("worker")[0].http_port
        others = [system.join("shop") for _ in range(0 if "challenge" in queue else 3)]
        if others:
            wait_until(others[0].is_active, PATIENCE, "the first is in")
        return system, others
    return open_one


@pytest.fixture
def line(opened) -> tuple[System, list[Visitor]]:
    return opened()


# ---- what the page shows ----

def text(browser: webdriver.Chrome, selector: str = "body") -> str:
    return browser.execute_script("const e = document.querySelector(arguments[0]); return e ? e.innerText : ''", selector)


def says(browser: webdriver.Chrome, part: str, selector: str = "body", seconds: float = PATIENCE) -> None:
    wait_until(lambda: part in text(browser, selector), seconds, f"{selector} says {part!r}", 0.05)


def click(browser: webdriver.Chrome, selector: str) -> None:
    """A page may replace its buttons, which hides them for a moment, or fails a click."""
    wait_until(lambda: browser.find_element(By.CSS_SELECTOR, selector).click() or True, PATIENCE, f"a click on {selector}",
               0.05, again_on=WebDriverException)


def told(browser: webdriver.Chrome, name: str) -> list[Any]:
    """What the recorder was told by this name, in order."""
    return [value for what, value, _ in browser.execute_script("return told") if what == name]


def position(browser: webdriver.Chrome) -> int | None:
    view = browser.execute_script("return line.view()")
    return view.get("position") if view else None


def stands(browser: webdriver.Chrome, place: int, seconds: float = PATIENCE) -> None:
    wait_until(lambda: position(browser) == place, seconds, f"place {place}", 0.05)


def record(browser: webdriver.Chrome, site: EmbeddingSite, where: str = "") -> None:
    visit(browser, f"{site.url}/recorder{where}")
    browser.execute_script("line.join()")


# ---- the examples ----

@ORIGINS
def test_plain_page_from_the_line_to_the_turn(browser, line, site, where):
    system, others = line
    visit(browser, f"{site.url}/page{where}")
    click(browser, "#join")
    says(browser, "You are number 3 in line.")
    browser.refresh()
    says(browser, "You are number 3 in line.")
    assert system.numbers("shop")["joined"] == 4, "after a reload it is the same place"
    others[2].leave()
    says(browser, "You are number 2 in line.")
    assert system.ctl("queue", "notice", "shop", "Doors open late").returncode == 0
    says(browser, "Doors open late", "#notice")
    assert system.ctl("queue", "pause", "shop").returncode == 0
    says(browser, "The sale is paused")
    assert system.ctl("queue", "resume", "shop").returncode == 0
    others[1].leave()
    others[0].complete()
    says(browser, "It is your turn, for ")
    next_in = system.join("shop")
    click(browser, "#buy")
    says(browser, "Thank you.")
    wait_until(next_in.is_active, PATIENCE, "the next one is in")
    next_in.complete()
    click(browser, "#join")
    says(browser, "It is your turn")


@ORIGINS
def test_app_keeps_the_place_on_all_its_pages(browser, line, site, where):
    _, others = line
    visit(browser, f"{site.url}/app{where}")
    click(browser, 'a[href="#/tickets"]')
    click(browser, "[data-do=join]")
    says(browser, "In line: number 3", "#bar")
    browser.execute_script("location.hash = '#/'")
    says(browser, "A concert.")
    others[1].leave()
    says(browser, "In line: number 2", "#bar")
    others[2].leave()
    others[0].complete()
    click(browser, "[data-do=buy]")
    says(browser, "sold with a pass of ")
    says(browser, "Thank you")


class App:
    """The native client, a program for each moment of its life."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port, self.state = port, folder / "place.json"

    def moment(self, name: str, seconds: float = PATIENCE) -> tuple[int, list[dict[str, Any]]]:
        done = subprocess.run(
            [sys.executable, EXAMPLES / "native_client.py", "--server", f"http://127.0.0.1:{self.port}", "--queue", "shop",
             "--state", self.state, "--seconds", str(seconds), name],
            text=True, capture_output=True, timeout=patient(2 * PATIENCE), check=False)
        assert done.returncode == 0 or done.stderr.count("\n") == 1, done.stderr
        return done.returncode, [json.loads(row) for row in done.stdout.splitlines()]


def test_native_client_lives_as_a_phone_lets_it(line, tmp_path):
    """In the background between questions, ended by the system, awakened by a push message."""
    system, others = line
    app = App(system.of("worker")[0].http_port, tmp_path)
    assert app.moment("refresh") == (1, []), "no place yet"
    status, views = app.moment("foreground", 3)
    assert status == 2 and views[0]["position"] == 3, "still in line when the visitor looks away"
    assert app.state.stat().st_mode & 0o777 == 0o600
    others[2].leave()
    status, (view,) = app.moment("refresh")
    assert (status, view["status"], view["position"]) == (0, "waiting", 2)
    others[1].leave()
    others[0].complete()
    wait_until(lambda: system.numbers("shop")["admitted"] == 2, PATIENCE, "admitted in the background")
    status, (view,) = app.moment("push")
    assert (status, view["status"]) == (0, "active") and view["pass"]
    status, views = app.moment("foreground")
    assert status == 0 and views[-1]["status"] == "active" and system.numbers("shop")["joined"] == 4
    status, (view,) = app.moment("bought")
    assert (status, view["status"]) == (0, "completed") and not app.state.exists()


def test_native_client_outlives_its_worker(line, tmp_path):
    system, others = line
    worker = system.of("worker")[0]
    app = App(worker.http_port, tmp_path)
    app.moment("foreground", 2)
    worker.stop()
    assert app.moment("refresh", 3) == (2, []), "no answer, and the place is kept"
    worker.start()
    worker.wait_ready()
    status, (view,) = app.moment("refresh")
    assert (status, view["position"]) == (0, 3)
    app.state.write_text('{"ticket": "forged"}')
    assert app.moment("refresh") == (1, []) and not app.state.exists()
    assert app.moment("foreground", 2)[1][0]["position"] == 4


def test_native_client_forgets_a_place_that_was_removed(line, tmp_path):
    system, _ = line
    app = App(system.of("worker")[0].http_port, tmp_path)
    app.moment("foreground", 2)
    done = system.ctl("visitor", "remove", "shop", json.loads(app.state.read_text())["ticket"], "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    status, views = app.moment("foreground")
    assert (status, views[-1]["status"]) == (0, "removed") and not app.state.exists()


def test_examples_know_every_end():
    """Each status of a view after which nothing more comes."""
    variants = yaml.safe_load((TOP / "docs" / "integrators" / "openapi.yaml").read_text())["components"]["schemas"]["View"]["oneOf"]
    statuses = [variant["properties"]["status"] for variant in variants]
    ends = {end for status in statuses for end in status.get("enum", [])} | {"moved"}
    (native,) = re.findall(r"^ENDS = \((.*)\)$", (EXAMPLES / "native_client.py").read_text(), re.MULTILINE)
    (page,) = re.findall(r"^var ENDS = \{(.*?)\};", (EXAMPLES / "page.html").read_text(), re.MULTILINE | re.DOTALL)
    assert {"completed", "removed"} <= ends
    assert set(re.findall(r'"(\w+)"', native)) == ends
    assert set(re.findall(r"(\w+): '", page)) == ends


# ---- what the script survives ----

@ORIGINS
def test_network_cut_and_back(browser, line, site, where):
    _, others = line
    record(browser, site, where)
    stands(browser, 3)
    browser.set_network_conditions(offline=True, latency=0, throughput=-1)
    try:
        wait_until(lambda: told(browser, "trouble"), PATIENCE, "the trouble is told", 0.05)
        assert told(browser, "trouble")[0]["kind"] == "offline"
        others[2].leave()
    finally:
        browser.set_network_conditions(offline=False, latency=0, throughput=-1)
        browser.delete_network_conditions()
    stands(browser, 2)
    assert told(browser, "live") == [None] and not told(browser, "refused")


@ORIGINS
def test_frozen_tab_catches_up(browser, line, site, where):
    system, others = line
    record(browser, site, where)
    stands(browser, 3)
    browser.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "frozen"})
    for visitor in others[1:]:
        visitor.leave()
    others[0].complete()
    wait_until(lambda: system.numbers("shop")["admitted"] == 2, PATIENCE, "admitted asleep")
    browser.execute_cdp_cmd("Page.setWebLifecycleState", {"state": "active"})
    wait_until(lambda: len(told(browser, "admitted")) == 1, PATIENCE, "told of the turn, once", 0.05)


def test_place_survives_the_worker(browser, line, site):
    system, others = line
    system.expect(r"role=worker .*ended by signal 9 \(Killed\)")
    record(browser, site)
    stands(browser, 3)
    worker = system.of("worker")[0]
    wait_until(lambda: len(told(browser, "view")) == 2, PATIENCE, "the stream says it, too", 0.05)
    killed = worker.children()
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: set(worker.children()).isdisjoint(killed) and len(worker.children()) == len(killed), PATIENCE,
               "every killed process is replaced")
    worker.wait_ready()
    Visitor(system.client(), "shop", others[2].ticket).leave()
    stands(browser, 2)
    assert "server" in [trouble["kind"] for trouble in told(browser, "trouble")]
    assert system.numbers("shop")["joined"] == 4


def test_waits_as_long_as_the_server_asks_for(browser, line, site):
    """A join, then a status that is refused for now; and pages of a proxy, which refuse nothing."""
    busy = Reply(503, b'{"type": "/problems/busy", "title": "Busy", "status": 503}',
                 {"Content-Type": "application/problem+json", "Retry-After": "3"})
    site.hurry()
    site.answers = lambda method, path: busy if "/join" in path and len(site.times("/join")) <= 2 else None
    record(browser, site)
    stands(browser, 3)
    first, second, third = site.times("/join")
    assert second - first > site.seconds(2.9) and third - second > site.seconds(2.9)
    html = Reply(404, b"<h1>Not found</h1>", {"Content-Type": "text/html"})
    site.answers = lambda method, path: html if "/status" in path or "/events" in path else None
    browser.refresh()
    browser.execute_script("line.resume()")
    wait_until(lambda: told(browser, "trouble"), PATIENCE, "the trouble is told", 0.05)
    site.answers = lambda method, path: None
    stands(browser, 3)
    assert not told(browser, "refused")


def test_without_streams_it_holds_questions_and_without_these_it_asks_in_turns(browser, line, site):
    _, others = line
    healed = threading.Event()

    def hinder(method: str, path: str) -> Reply | None:
        if "wait=" in path and len(site.times("wait=")) > 1:
            healed.wait(site.seconds(6))  # longer than a refusal takes
            return CUT
        return Reply(403, b"no streams here") if "/events" in path else None

    site.hurry()
    site.answers = hinder
    record(browser, site)
    wait_until(lambda: site.times("wait=20s"), PATIENCE, "a held question")
    others[2].leave()
    stands(browser, 2)
    wait_until(lambda: [what for _, what in site.asked if what.endswith("/status")], PATIENCE, "a question in turns")
    others[1].leave()
    stands(browser, 1)
    healed.set()
    assert not told(browser, "refused")


def test_a_status_of_a_later_release_is_shown_and_asked_again(browser, line, site):
    _, others = line
    hovering = Reply(200, b'{"queue": "shop", "status": "hovering", "poll_after_ms": 200}',
                     {"Content-Type": "application/json"})
    site.hurry()
    site.answers = lambda method, path: hovering if "/status" in path else \
        Reply(503) if "/events" in path else None
    record(browser, site)
    wait_until(lambda: "hovering" in [view["status"] for view in told(browser, "view")], PATIENCE, "hovering", 0.05)
    site.answers = lambda method, path: Reply(503) if "/events" in path else None
    asked = len(site.times("/status"))
    wait_until(lambda: len(site.times("/status")) > asked, PATIENCE, "it asks again")
    others[2].leave()  # ends a question that is held until there is news
    wait_until(lambda: told(browser, "view")[-1]["status"] == "waiting", PATIENCE, "known again", 0.05)
    assert not told(browser, "refused") and not told(browser, "ended")


def test_deadlines_are_on_the_clock_of_the_server(browser, line, site):
    browser.execute_cdp_cmd("Page.enable", {})
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": """
        const real = Date.prototype.getTime;
        Date.prototype.getTime = function () { return real.call(this) + 7200000; };"""})
    try:
        record(browser, site)
        stands(browser, 3)
        off = browser.execute_script("return [line.now() - Date.now(), new Date().getTime() - Date.now()]")
        assert abs(off[0]) < 3600000 < off[1]
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_browser_that_keeps_no_cookie(browser, line, site):
    system, others = line
    site.no_cookies = True
    record(browser, site)
    wait_until(lambda: site.times("events?ticket="), PATIENCE, "it noticed, and the ticket goes along", 0.05)
    others[2].leave()
    stands(browser, 2)
    record(browser, site)
    stands(browser, 2)
    others[1].leave()
    stands(browser, 1)
    assert not told(browser, "refused") and system.numbers("shop")["joined"] == 4


# ---- tabs ----

def test_tabs_share_one_stream(browser, line, site):
    _, others = line
    record(browser, site)
    stands(browser, 3)
    tabs = [browser.current_window_handle]
    for _ in range(2):
        browser.switch_to.new_window("tab")
        record(browser, site)
        stands(browser, 3)
        tabs.append(browser.current_window_handle)
    wait_until(lambda: site.streams == 1, PATIENCE, "one stream", 0.05)
    others[2].leave()
    for tab in tabs:
        browser.switch_to.window(tab)
        stands(browser, 2)
    assert site.streams == 1 and len(site.times("/events")) == 1
    browser.switch_to.window(tabs[0])
    browser.close()
    browser.switch_to.window(tabs[1])
    wait_until(lambda: len(site.times("/events")) == 2 and site.streams == 1, PATIENCE, "another tab leads", 0.05)
    others[1].leave()
    for tab in tabs[1:]:
        browser.switch_to.window(tab)
        stands(browser, 1)
    browser.execute_script("line.leave()")
    for tab in tabs[1:]:
        browser.switch_to.window(tab)
        wait_until(lambda: [view["status"] for view in told(browser, "ended")] == ["left"], PATIENCE, "left", 0.05)
    wait_until(lambda: site.streams == 0, PATIENCE, "no stream", 0.05)


# ---- joins with a challenge, and refused ones ----

@pytest.mark.parametrize("where", ["", "!", "?"], ids=["worker", "no-workers", "other-origin"])
def test_puzzle_is_solved(browser, opened, site, where):
    opened(challenge="work")
    record(browser, site, where)
    wait_until(lambda: told(browser, "admitted"), 2 * PATIENCE, "in", 0.05)
    assert told(browser, "solving")[0]["puzzle"] and not told(browser, "refused")
    refused = [entry["message"] for entry in browser.get_log("browser") if "worker-src" in entry["message"]]
    assert bool(refused) == (where == "!")


def test_challenge_service_is_the_pages_to_show(browser, line, site):
    asks = Reply(403, b'{"type": "/problems/challenge-required", "title": "t", "status": 403, "provider": "turnstile",'
                      b' "site_key": "0xkey"}', {"Content-Type": "application/problem+json"})
    site.answers = lambda method, path: asks if "/join" in path and len(site.times("/join")) == 1 else None
    record(browser, site)
    wait_until(lambda: told(browser, "challenge"), PATIENCE, "the page is asked", 0.05)
    assert told(browser, "challenge")[0]["site_key"] == "0xkey"
    browser.execute_script("line.join({token: 'of-the-widget'})")
    stands(browser, 3)


def test_full_line_is_joined_when_there_is_room(browser, opened, site):
    site.hurry()
    _, others = opened(max_waiting=2, reopen={"after": "1s"})
    record(browser, site)
    wait_until(lambda: told(browser, "full"), PATIENCE, "full", 0.05)
    others[2].leave()
    stands(browser, 2, 2 * PATIENCE)


def test_refusals_are_told_once_and_end_it(browser, line, site):
    system, _ = line
    system.set("shop", "join=invited")
    wait_until(lambda: system.client().post("/v1/queues/shop/join").status == 403, PATIENCE, "the worker knows it")
    visit(browser, f"{site.url}/recorder")
    browser.execute_script("line.resume()")
    wait_until(lambda: told(browser, "refused"), PATIENCE, "no place yet", 0.05)
    browser.execute_script("line.join()")
    wait_until(lambda: len(told(browser, "refused")) == 2, PATIENCE, "by invitation only", 0.05)
    assert [problem["type"] for problem in told(browser, "refused")] == \
        ["/problems/bad-ticket", "/problems/by-invitation"]
    assert site.streams == 0 and len(site.asked) == 3  # with the script


@pytest.mark.sanitized
def test_commands_of_a_page_are_repeated_until_there_is_an_answer(browser, line, site):
    _, others = line
    for visitor in others[1:]:
        visitor.leave()
    others[0].complete()
    site.answers = lambda method, path: Reply(502) if "/renew" in path and len(site.times("/renew")) == 1 else None
    record(browser, site)
    wait_until(lambda: told(browser, "admitted"), PATIENCE, "in", 0.05)
    found = browser.execute_async_script(
        "const done = arguments[0]; line.claim((problem, view) => done([problem, view.status, !!view.pass]))")
    assert found == [None, "active", True] and len(site.times("/renew")) == 2
    found = browser.execute_async_script(
        "const done = arguments[0]; line.complete((problem, view) => done([problem, view.status]))")
    assert found == [None, "completed"]
    site.answers = lambda method, path: Reply(404, b'{"type": "/problems/no-such-queue", "title": "t", "status": 404}')
    assert browser.execute_async_script(
        "const done = arguments[0]; line.renew((problem, view) => done([problem.type, view]))") == \
        ["/problems/no-such-queue", None]


# ---- the file itself ----

def test_script_is_small_and_cached_briefly_and_es5(line):
    system, _ = line
    client: Client = system.client()
    answer = client.get(SCRIPT, headers={"Accept-Encoding": "gzip"})
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert answer.headers["access-control-allow-origin"] == "*" and "set-cookie" not in answer.headers
    assert len(answer.body) <= SIZE_MAX, "what it weighs on the way to the visitor"
    assert gzip.decompress(answer.body) == client.get(SCRIPT).body
    assert client.get(SCRIPT, headers={"If-None-Match": answer.headers["etag"]}).status == 304
    check_es5(client.get(SCRIPT).body)


def test_types_know_every_member_of_a_view():
    view = yaml.safe_load((TOP / "docs" / "integrators" / "openapi.yaml").read_text())["components"]["schemas"]["View"]
    (declared,) = re.findall(r"^export interface View \{\n(.*?)^\}", TYPES.read_text(), re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"^  (\w+)\??:", declared, re.MULTILINE)) == set(view["properties"])


def test_types_fit_the_script_and_a_page(browser, line, site, tmp_path):
    """The compiler accepts a page that uses everything, and refuses what does not exist. A line has what is declared."""
    (declared,) = re.findall(r"^export interface Line \{\n(.*?)^\}", TYPES.read_text(), re.MULTILINE | re.DOTALL)
    visit(browser, f"{site.url}/recorder")
    assert set(re.findall(r"^  (\w+)[(<]", declared, re.MULTILINE)) == set(browser.execute_script("return Object.keys(line)"))
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("there is no compiler of TypeScript (node-typescript)")
    shutil.copy(TYPES, tmp_path)
    (tmp_path / "page.ts").write_text("""
import {line, View} from './tellerline';
const place = line({queue: 'shop', storage: null})
  .on('view', (view: View) => { const n: number | undefined = view.position; })
  .on('trouble', trouble => { const left: number = Date.now() - trouble.heard; })
  .on('challenge', problem => console.log(problem.site_key));
place.join({token: 'of-the-widget'});
place.claim((problem, view) => { if (!problem) console.log(view?.pass); });
// @ts-expect-error
place.on('nothing', () => {});
// @ts-expect-error
line({});
""")
    command = [compiler, "--noEmit", "--strict", "--target", "es2020", "--lib", "es2020,dom", tmp_path / "page.ts"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
