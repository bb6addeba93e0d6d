# SPDX-License-Identifier: Apache-2.0
"""How the tests read a page that is replaced by another. Here that happens after every command to the browser."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.command import Command

from browser import look, press, until, visit
from local_pages import LocalPage, LocalPages

pytestmark = pytest.mark.together(seconds=5)

POSITION = '[data-tl="position"]'


class Pages(LocalPages):
    """Each page has the next number, in several places."""

    def __init__(self) -> None:
        super().__init__(NumberedPage)
        self.served = 0


class NumberedPage(LocalPage):
    server: Pages

    def do_GET(self) -> None:
        self.server.served = n = self.server.served + 1
        self.answer(f"<title>{n}</title><link rel=icon href='data:,'><body data-state={n}><h1>{n}</h1>"
                    f"<p data-tl=position>{n}</p><p data-tl=hidden hidden>{n}</p>"
                    "<details><summary>More</summary><form method=post><button>Rest</button></form></details>")

    def do_POST(self) -> None:
        self.answer("<title>rest</title><body data-state=rest><h1>At rest</h1>")


@pytest.fixture
def pages(browser: webdriver.Chrome) -> Iterator[Pages]:
    server = Pages()
    with server.serving():
        visit(browser, server.url)
        yield server
        visit(browser, "about:blank")


def make_restless(browser: webdriver.Chrome, monkeypatch: pytest.MonkeyPatch, commands: int) -> None:
    """After each of the next commands, the next page replaces the current one."""
    execute, left = browser.execute, commands

    def execute_and_replace(*command: object) -> dict:
        nonlocal left
        try:
            return execute(*command)
        finally:
            if left > 0:
                left -= 1
                execute(Command.REFRESH)

    monkeypatch.setattr(browser, "execute", execute_and_replace)


def test_two_commands_are_too_many(browser, pages, monkeypatch):
    make_restless(browser, monkeypatch, 1)
    with pytest.raises(WebDriverException):
        browser.find_element(By.CSS_SELECTOR, POSITION).text.strip()


def test_a_look_is_of_one_page(browser, pages, monkeypatch):
    make_restless(browser, monkeypatch, 10)
    before = pages.served
    for number in range(before, before + 10):
        page = look(browser)
        assert [page.title, page.state, page.heading, page.text("position")] == [str(number)] * 4
        assert not page.shows("hidden")
    assert pages.served == before + 10


def test_a_button_is_pressed_in_the_end(browser, pages, monkeypatch):
    make_restless(browser, monkeypatch, 9)
    page = press(browser, "summary", "form button", then=lambda page: page.state == "rest", what="rest")
    assert page.heading == "At rest" and pages.served > 9


def test_what_never_comes_true_is_told_with_the_page(browser, pages):
    with pytest.raises(AssertionError, match=r"not within [\d.]+ s: a ghost .*; the last page seen: Page\(.*state='\d+'"):
        until(browser, lambda page: page.state == "ghost", "a ghost", 0.1)


def test_what_fails_for_good_is_told(browser):
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.close()
    try:
        with pytest.raises(AssertionError, match=r"a ghost \(last: NoSuchWindowException: Message: no such window"):
            until(browser, lambda page: True, "a ghost", 0.1)
    finally:
        browser.switch_to.window(first)
