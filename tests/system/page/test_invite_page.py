# SPDX-License-Identifier: Apache-2.0
"""A personal invite link, opened in a browser that still has a ticket of the queue."""
from __future__ import annotations

import html
import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest

from http_client import Answer, Client
from tellerline import CALM, PATIENCE, System
from test_pass import Shop, join_by, shop  # noqa: F401 (fixture)
from test_recreated import delete_queue
from test_store_trouble import PROMPT, STORE_TROUBLE
from waiting import wait_until

INVITED = {"capacity": 0, "join": "invited", "target_url": "https://shop.example/", "recovery_window": "0s"} | CALM


class Browser:
    """One that keeps cookies, and presses the button of a page."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.cookies: dict[str, str] = {}

    def _keep(self, answer: Answer) -> Answer:
        if "set-cookie" in answer.headers:
            name, value = answer.headers["set-cookie"].split(";")[0].split("=", 1)
            self.cookies[name] = value
        return answer

    def _headers(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}

    def open(self, path: str) -> Answer:
        return self._keep(self.client.get(path, headers=self._headers()))

    def join_again(self, page: Answer) -> Answer:
        action = re.search(r'action="(/q/bank/join[^"]*)"', page.body.decode())
        assert action, page.body
        return self._keep(self.client.post(html.unescape(action[1]), headers=self._headers()))

    def status(self) -> dict:
        return self.client.get("/v1/queues/bank/status", ticket=self.cookies["tellerline_bank"]).json


@pytest.fixture
def begin(start, shop: Shop) -> Callable[..., tuple[System, Browser]]:  # noqa: F811
    """A system, and a browser whose visitor waits by an invite."""
    def make(**queue: str) -> tuple[System, Browser]:
        system = start({"bank": INVITED | queue}, settings=shop.settings | PROMPT)
        browser = Browser(system.client())
        page = browser.open(f"/q/bank?invite={shop.invite('user-1', jti='first')}")
        assert page.status == 200 and browser.status()["status"] == "waiting"
        return system, browser

    return make


def state(page: Answer) -> str:
    found = re.search(r'<section data-state="(\w+)">', page.body.decode())
    assert found, page.body
    return found[1]


def test_after_the_queue_was_created_again(begin, shop):  # noqa: F811
    system, browser = begin()
    system.expect(STORE_TROUBLE)
    old = browser.status()
    delete_queue(system)
    wait_until(lambda: join_by(system.client(), shop.invite("user-9")).status == 200, PATIENCE, "the queue is there again")
    page = browser.open(f"/q/bank?invite={shop.invite('user-1')}")
    assert page.status == 409 and state(page) == "lost", page.body
    assert browser.join_again(page).status == 303
    view = browser.status()
    assert view["status"] == "waiting" and view["visitor"] == old["visitor"] and system.waiting("bank") == 2


@pytest.mark.sanitized
def test_after_the_end_of_the_place(begin, shop):  # noqa: F811
    system, browser = begin()
    browser.client.post("/v1/queues/bank/leave", ticket=browser.cookies["tellerline_bank"])
    link = f"/q/bank?invite={shop.invite('user-2')}"
    page = browser.open(link)
    assert page.status == 200 and state(page) == "left"
    assert browser.join_again(browser.open("/q/bank")).status == 403, "without the invite it is by invitation"
    assert browser.join_again(page).status == 303
    assert browser.status()["status"] == "waiting" and browser.status()["visitor"] == "user-2"
    again = browser.open(link)  # and now the address need not hold it
    assert again.status == 303 and again.headers["location"] == "/q/bank"
    assert system.waiting("bank") == 1


@pytest.mark.parametrize("join", ["open", "invited"])
def test_a_spent_invite_after_the_end_of_the_place(begin, shop, join):  # noqa: F811
    """Where a newcomer needs none, it is no obstacle."""
    system, browser = begin(join=join)
    browser.client.post("/v1/queues/bank/leave", ticket=browser.cookies["tellerline_bank"])
    page = browser.open(f"/q/bank?invite={shop.invite('user-1', jti='first')}")
    assert state(page) == "left"
    answer = browser.join_again(page)
    if join == "invited":
        assert answer.status == 403 and state(answer) == "invited"
        return
    assert answer.status == 303 and answer.headers["location"] == "/q/bank"
    page = browser.open("/q/bank")
    assert state(page) == "left" and browser.join_again(page).status == 303
    assert browser.status()["status"] == "waiting" and system.waiting("bank") == 1


def test_past_the_line_while_waiting(begin, shop):  # noqa: F811
    """A bypass counts, and the place stays. Any other invite is no use to somebody who waits."""
    system, browser = begin()
    for invite in (shop.invite("user-2"), "x.y.z"):
        answer = browser.open(f"/q/bank?invite={invite}")
        assert answer.status == 303 and answer.headers["location"] == "/q/bank"
    answer = browser.open(f"/q/bank?invite={shop.invite('anna', bypass=True)}&return=https://shop.example/staff")
    assert answer.status == 303 and answer.headers["location"] == "https://shop.example/staff"
    check = browser.client.get("/v1/queues/bank/check", headers=browser._headers())
    assert check.status == 204 and check.headers["x-tellerline-bypass"] == "invite"
    assert browser.status()["status"] == "waiting" and system.waiting("bank") == 1
