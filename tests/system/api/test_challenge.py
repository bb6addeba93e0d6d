# SPDX-License-Identifier: Apache-2.0
"""Queues with `challenge: work`: a new place needs the solution of a puzzle, once."""
from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator

import jwt
import pytest
from selenium import webdriver

from browser import chromium, look, make_new, scripts, until, visit
from http_client import Visitor
from puzzles import asked, join, signed_wait, solve
from shared_stack import Stack
from tellerline import CALM, PATIENCE, System
from test_pass import API_KEY, SECRET, key_file
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=40)

QUEUE = CALM | {"capacity": 1, "challenge": "work"}


@pytest.fixture(scope="module")
def one_browser() -> Iterator[webdriver.Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture
def browser(one_browser: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    yield one_browser
    make_new(one_browser)


#: Notes in the storage of the tab that a web worker found the solution.
SPY = """
window.Worker = class extends Worker {
  constructor(address) {
    super(address);
    this.addEventListener('message', (event) => { if (event.data.solution) sessionStorage.setItem('solver', 'worker'); });
  }
};
"""


def failed(answer, why: str) -> None:
    problem = answer.problem(403)
    assert problem["type"] == "/problems/challenge-failed" and why in problem["detail"], problem
    assert problem["puzzle"] and problem["parts"] == 16 and problem["bits"] >= 12, problem


def test_a_solution_gives_one_place(share: Callable[..., Stack]) -> None:
    """At two workers: without, with a wrong, with a right one, and the same again."""
    system = share(workers=2)
    bank, other = system.queue(challenge="work"), system.queue(challenge="work")
    one, two = system.client(0), system.client(1)
    problem = asked(one, bank)
    assert problem["parts"] == 16 and problem["bits"] == 12, problem
    solution = solve(problem)
    wrong = solution[:47] + "A" * 40 + solution[87:]
    failed(join(one, bank, wrong), "wrong")
    failed(join(one, bank, "x" + solution[1:]), "no solution")
    failed(join(two, other, solution), "no solution")  # of another queue
    assert system.numbers(bank)["joined"] == 0

    first = join(one, bank, solution).json
    assert first["ticket"] and first["status"] in ("waiting", "active"), first
    for client in (one, two):  # repeated, as after a broken connection: the same place, and no other
        again = join(client, bank, solution).json
        assert again["visitor"] == first["visitor"], again
    assert system.numbers(bank)["joined"] == 1

    place = Visitor(two, bank, first["ticket"])
    place.leave()
    for client in (one, two):  # the place has ended: the solution was spent
        failed(join(client, bank, solution), "already")
        failed(join(client, bank, solution, ticket=first["ticket"]), "already")
    assert client.post(f"/v1/queues/{bank}/join", ticket=first["ticket"]).status == 403
    more = join(two, bank, solve(asked(two, bank)), ticket=first["ticket"]).json
    assert more["visitor"] == first["visitor"], "a ticket keeps its visitor"
    assert system.numbers(bank)["joined"] == 2
    # With a ticket that holds a place no solution is needed, also at the worker that has not heard of the place yet.
    again = wait_until(lambda: (now := one.post(f"/v1/queues/{bank}/join", ticket=more["ticket"])).status in (200, 403) and now,
                       PATIENCE, "an answer of the other worker")
    assert again.json.get("visitor") == first["visitor"], again


def test_a_pending_ticket_gives_one_place(start: Callable[..., System]) -> None:
    """The join takes long, so that its ticket is pending. Sent again and again, it finds the place, and takes no other
    when that has ended."""
    system = start({"bank": QUEUE}, settings={"http": {"join_wait": "100ms"}})
    client, dispatcher = system.client(), system.of("dispatcher")[0]
    solution = solve(asked(client, "bank"))
    dispatcher.send(signal.SIGSTOP)
    try:
        pending = join(client, "bank", solution)
        assert pending.status == 202, pending
    finally:
        dispatcher.send(signal.SIGCONT)
    ticket = pending.json["ticket"]
    first = wait_until(lambda: (now := client.post("/v1/queues/bank/join", ticket=ticket)).status == 200 and now, PATIENCE,
                       "the place is there")
    Visitor(client, "bank", first.json["ticket"]).leave()
    for _ in range(20):
        again = client.post("/v1/queues/bank/join", ticket=ticket)
        assert again.status in (202, 403), again  # 202: the dispatcher took longer than join_wait to refuse it
    wait_until(lambda: client.post("/v1/queues/bank/join", ticket=ticket).status == 403, PATIENCE, "it is refused")
    assert system.numbers("bank")["joined"] == 1


def test_a_solution_is_not_spent_on_a_full_line(share: Callable[..., Stack]) -> None:
    system = share(workers=2)
    bank = system.queue(challenge="work", capacity=0, max_waiting=1, reopen={"after": "1s"})
    first, second = system.client(), system.client()
    solution = solve(asked(second, bank))
    place = Visitor(first, bank, join(first, bank, solve(asked(first, bank))).json["ticket"])
    assert join(second, bank, solution).problem(503)["type"] == "/problems/full"
    place.leave()
    wait_until(lambda: join(second, bank, solution).status == 200, PATIENCE, "the same solution is taken")


def test_invites_and_trusted_callers_need_none(start: Callable[..., System], tmp_path) -> None:
    invites = key_file(tmp_path / "invite.keys", f"shop-1 HS256 {SECRET}\n")
    api = key_file(tmp_path / "api.keys", f"shop {API_KEY}\n")
    system = start({"bank": QUEUE}, settings={"secrets": {"invite_keys": invites, "api_keys": api}})
    client = system.client()
    trusted = client.post("/v1/queues/bank/join", b'{"visitor": "user-1"}', ticket=API_KEY)
    assert trusted.json["visitor"] == "user-1"
    invite = jwt.encode({"aud": "bank", "sub": "user-2", "jti": "1", "exp": int(time.time()) + 600}, bytes.fromhex(SECRET),
                        headers={"kid": "shop-1"})
    assert client.post("/v1/queues/bank/join", json.dumps({"invite": invite}).encode()).json["visitor"] == "user-2"
    asked(client, "bank")
    # Switched off, and on again, while it runs.
    system.set("bank", "challenge=none")
    wait_until(lambda: client.post("/v1/queues/bank/join").status == 200, PATIENCE, "nothing is asked any more")
    system.set("bank", "challenge=work")
    wait_until(lambda: client.post("/v1/queues/bank/join").status == 403, PATIENCE, "a solution is asked again")
    refused = system.ctl("queue", "set", "bank", "challenge=maybe")
    assert refused.returncode != 0 and "challenge" in refused.stderr


def open_page(browser: webdriver.Chrome, system: System, queue: str) -> None:
    visit(browser, f"http://127.0.0.1:{system.of('worker')[0].http_port}/q/{queue}")


def test_a_browser_joins_by_itself(share: Callable[..., Stack], browser: webdriver.Chrome) -> None:
    """In a web worker; and in the page, where there are none."""
    system = share(workers=2)
    bank = system.queue(challenge="work")
    ticket = join(system.client(), bank, solve(asked(system.client(), bank))).json["ticket"]
    wait_until(Visitor(system.client(), bank, ticket).is_active, PATIENCE, "one is inside")
    for place, worker, solver in (("1", SPY, "worker"), ("2", "window.Worker = undefined", None)):
        made = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": worker})
        open_page(browser, system, bank)
        page = until(browser, lambda page: page.state == "waiting", "joined")
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", made)
        assert page.text("ahead") == str(int(place) - 1) and page.url.endswith(f"/q/{bank}"), page
        assert browser.execute_script("return sessionStorage.getItem('solver')") == solver
        browser.execute_script("sessionStorage.clear()")
        browser.delete_all_cookies()
    assert system.numbers(bank)["joined"] == 3


def test_a_browser_without_scripts_waits(share: Callable[..., Stack], browser: webdriver.Chrome) -> None:
    """The page goes on by itself after a signed wait. The wait counts at another address no more than at another time:
    unit tests; here it is refused before its time."""
    system = share(workers=2)
    bank = system.queue(challenge="work", capacity=0)
    client = system.client()
    early = client.post(signed_wait(client.get(f"/q/{bank}")))
    assert early.status == 200 and b'data-state="challenge"' in early.body
    scripts(browser, False)
    open_page(browser, system, bank)
    assert look(browser).state == "challenge"
    page = until(browser, lambda page: page.state == "waiting", "joined after the wait")
    assert page.text("ahead") == "0"
    assert system.numbers(bank)["joined"] == 1
