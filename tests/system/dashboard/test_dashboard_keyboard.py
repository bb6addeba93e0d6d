# SPDX-License-Identifier: Apache-2.0
"""The dashboard without a mouse: a sale is run with keys alone, and one always sees where the focus is."""
from __future__ import annotations

from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from admin import ADMIN_TOKEN, Admin
from browser import visit
from keyboard import Keyboard, Stop
from tellerline import CALM, PATIENCE, System
from test_dashboard import room  # noqa: F401 (fixture)
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=30)

BACK = Keys.SHIFT + Keys.TAB
#: What one must reach by Tab on a queue's page, by the beginning of its name.
CONTROLS = ("Skip to the content", "Skip to the controls", "Tellerline", "Sign out", "What visitors see", "30 min",
            "Undo set", "Open", "Pause", "Drain", "Close", "Sold out", "Pass through", "Capacity 10 % less", "Capacity",
            "Capacity 10 % more", "Review change", "Notice to everyone", "Preview", "Add a language", "Remove", "Set the opening",
            "CSV", "JSON lines", "Delete queue", "Visitor: id", "Show")
#: The time of the numbers that the page shows.
TIME = "return document.querySelector('.head p:nth-of-type(2)')?.innerText"


def done(system: System, method: str, path: str, body: Any = None) -> Any:
    """A call of another operator. On a connection of its own: an idle one is closed."""
    admin = Admin(system.of("worker")[0])
    try:
        return admin.done(method, path, body)
    finally:
        admin.close()


class KeyDesk:
    """An operator with a keyboard, and what they see."""

    def __init__(self, browser: webdriver.Chrome, system: System) -> None:
        self.browser = browser
        self.keys = Keyboard(browser)
        visit(browser, f"http://127.0.0.1:{system.of('worker')[0].admin_port}/")
        self.keys.until(lambda at: at.id == "token", "the focus is in the only field")
        self.keys.type(ADMIN_TOKEN)
        self.keys.press(Keys.ENTER)
        self.heading("Queues")
        self.sees("live")

    def enter(self, queue: str) -> None:
        """Goes to the page of the queue."""
        self.sees(queue)
        self.keys.to(queue)
        self.keys.press(Keys.ENTER)
        self.heading(queue)

    def sees(self, *texts: str) -> None:
        """Waits until the page shows all of them."""
        missing: list[str] = []

        def shown() -> bool:
            text = self.browser.execute_script("return document.body.innerText")
            missing[:] = [one for one in texts if one not in text]
            return not missing

        try:
            wait_until(shown, PATIENCE, f"the dashboard shows {texts}", 0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}; it does not show {missing}") from error

    def heading(self, name: str) -> None:
        """A new page begins at its heading."""
        self.keys.until(lambda at: at.tag == "h1" and at.name == name, f"the focus is at the heading {name!r}")

    def update(self) -> None:
        """The next numbers come."""
        before = self.browser.execute_script(TIME)
        wait_until(lambda: self.browser.execute_script(TIME) != before, PATIENCE, "new numbers", 0.05)

    def stays(self, updates: int = 1) -> Stop:
        """The focus is where it was, also after the numbers came."""
        before = self.keys.at()
        for _ in range(updates):
            self.update()
        after = self.keys.at()
        assert after.same, (before, after)
        return after

    def asked(self, tag: str = "button") -> Stop:
        """A question has come, and has the focus."""
        return self.keys.until(lambda at: at.dialog and at.tag == tag, "a question with the focus")

    def escape(self, opener: Stop) -> None:
        """Nothing is done, and the focus is where it was before."""
        self.keys.press(Keys.ESCAPE)
        self.back_at(opener)

    def answer(self, label: str, opener: Stop) -> None:
        """Goes to this button of the dialog, and presses it."""
        assert self.keys.to(label).dialog
        self.keys.press(Keys.ENTER)
        self.back_at(opener)

    def back_at(self, opener: Stop) -> None:
        self.keys.until(lambda at: not at.dialog and (at.tag, at.name) == (opener.tag, opener.name),
                        f"the focus is back at {opener.name!r}")


def test_a_sale_with_keys_alone(browser, room):  # noqa: F811
    system = room({"sale": CALM | {"capacity": 1}})
    visitors = [system.join("sale") for _ in range(4)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is in")
    desk = KeyDesk(browser, system)
    keys = desk.keys

    desk.sees("sale")
    keys.to("sale")
    visitors.append(system.join("sale"))
    reference = visitors[4].view["reference"]
    wait_until(lambda: browser.execute_script("return document.querySelector('td.n').innerText") == "4", PATIENCE,
               "the list has new numbers", 0.05)
    assert keys.at().same, "the list took the focus away"
    keys.press(Keys.ENTER)
    desk.heading("sale")

    # The skip links go where they say, and nowhere else.
    address = browser.current_url
    keys.to("Skip to the content", BACK)
    keys.press(Keys.ENTER)
    desk.heading("sale")
    keys.to("Skip to the controls", BACK)
    keys.press(Keys.ENTER)
    keys.until(lambda at: at.name == "Control", "the focus is at the controls")
    assert browser.current_url == address

    # The capacity: another operator changes it while one types, and what is typed stays.
    field = keys.to("Capacity")
    while field.tag != "input":
        field = keys.to("Capacity")
    keys.type("2")
    done(system, "PATCH", "queues/sale", {"capacity": 0})
    desk.sees("0 at once")
    assert desk.stays().value == "2"
    keys.press(Keys.ARROW_UP, Keys.ENTER)
    desk.asked()
    desk.sees("0 → 3 people may be in at once")
    desk.escape(field)
    keys.press(Keys.ENTER)
    desk.asked()
    desk.answer("Change", field)
    desk.sees("3 at once", "capacity: 0 → 3")
    assert desk.stays().value == "3"
    wait_until(visitors[2].is_active, PATIENCE, "two more are in")

    # Pause and resume: the button that has done it is not taken away.
    pause = keys.to("Pause", BACK)
    keys.press(Keys.SPACE)
    desk.asked()
    desk.answer("Pause", pause)
    desk.sees("2 people wait and no one is let in")
    desk.stays()
    keys.press(Keys.ENTER, Keys.SPACE)
    assert keys.at().same, "it is paused: there is nothing to ask"
    resume = keys.to("Open", BACK)
    keys.press(Keys.ENTER)
    desk.asked()
    desk.answer("Resume", resume)
    wait_until(lambda: not visitors[3].status().get("paused"), PATIENCE, "resumed")
    desk.stays()

    # The notice, in one language more, which is left out again.
    keys.to("Notice to everyone")
    keys.type("Row A is sold out.")
    keys.to("Add a language")
    keys.press(Keys.ENTER)
    assert keys.at().name == "Notice in 한국어"
    language = keys.to("Language of notice 2", BACK)
    keys.press(Keys.ARROW_DOWN)
    assert (at := keys.at()).name == language.name and at.value != language.value, at
    keys.to("Leave out")
    keys.press(Keys.SPACE)
    keys.until(lambda at: at.id == "notice", "the focus is at the notice that is left")
    preview = keys.to("Preview")
    keys.press(Keys.SPACE)
    desk.asked()
    desk.sees("Publish this notice?", "Row A is sold out.")
    desk.answer("Publish", preview)
    wait_until(lambda: visitors[4].status().get("notice") == "Row A is sold out.", PATIENCE, "the notice")
    notice = keys.to("Notice to everyone", BACK)
    done(system, "POST", "queues/sale/notice", {"text": "Row B is sold out."})
    keys.until(lambda at: at.value == "Row B is sold out.", "what somebody else has published")
    assert keys.look().name == notice.name

    # A visitor is found, and removed in two steps.
    keys.to("Visitor: id")
    keys.type(reference)
    keys.press(Keys.ENTER)
    desk.sees("Place in line")
    remove = keys.to("Remove")
    keys.press(Keys.ENTER)
    desk.asked("input")
    desk.escape(remove)
    keys.press(Keys.ENTER)
    desk.asked("input")
    keys.type("yes")
    keys.press(Keys.ENTER)
    keys.until(lambda at: at.name == "The visitor found", "the focus is at what became of the visitor")
    wait_until(lambda: visitors[4].status()["status"] == "removed", PATIENCE, "the visitor is out")

    # What was changed is taken back, with its own button; others come above it meanwhile.
    undo = keys.to("Undo notice", BACK)
    keys.press(Keys.ENTER)
    desk.asked()
    desk.escape(undo)
    keys.press(Keys.ENTER)
    desk.asked()
    desk.answer("Undo", undo)
    wait_until(lambda: len(done(system, "GET", "changes?queue=sale")["changes"]) == 9, PATIENCE, "it is taken back")
    rows = "return document.querySelector('#changes-head').parentNode.querySelectorAll('tbody tr').length"
    wait_until(lambda: browser.execute_script(rows) == 9, PATIENCE, "the table has it", 0.05)
    desk.stays()

    # The end: what cannot be undone is typed.
    keys.to("Skip to the controls", BACK)
    keys.press(Keys.ENTER)
    sold_out = keys.to("Sold out")
    keys.press(Keys.ENTER)
    desk.asked("input")
    keys.type("sale")
    keys.press(Keys.ENTER)
    desk.back_at(sold_out)
    desk.sees("mode: open → sold_out")
    desk.stays()
    keys.to("Sign out", BACK)
    keys.press(Keys.ENTER)
    keys.until(lambda at: at.id == "token", "the focus is in the only field")


@pytest.mark.parametrize("width, height", [(1360, 1000), (360, 740)])
def test_every_control_is_a_stop(browser, room, width, height):  # noqa: F811
    """In one order forwards and backwards, without a trap; on a phone, too."""
    system = room({"sale": CALM | {"capacity": 1}})
    done(system, "PATCH", "queues/sale", {"capacity": 2})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
    desk = KeyDesk(browser, system)
    desk.enter("sale")
    browser.refresh()
    desk.sees("live", "capacity: 1 → 2", "Opens: no time is set")
    stops = [stop.name for stop in desk.keys.walk()]
    missing = [name for name in CONTROLS if not any(stop.startswith(name) for stop in stops)]
    assert not missing, (missing, stops)
    assert [stop.name for stop in desk.keys.walk(BACK)] == stops[::-1]

    # A table that is a little too wide scrolls until its button is in view.
    undo = desk.keys.to("Undo set", BACK)
    for narrower in range(0, 80, 10) if width < 600 else ():
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": 400 - narrower, "height": height, "deviceScaleFactor": 1, "mobile": True})
        desk.keys.press(BACK)
        browser.execute_script("document.querySelectorAll('.scroll').forEach((room) => { room.scrollLeft = 0; })")
        desk.keys.press(Keys.TAB)
        assert desk.keys.at().name == undo.name
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})

    # A question keeps the focus, and lets it go.
    opener = desk.keys.to("Set the opening")
    desk.keys.press(Keys.ENTER)
    desk.asked("input")
    for _ in range(12):
        desk.keys.press(Keys.TAB)
        at = desk.keys.look()
        assert not at.tag or desk.keys.shown(at).dialog, at
    desk.escape(opener)


def test_a_question_does_not_outlive_its_page(browser, room):  # noqa: F811
    system = room({"sale": CALM | {"capacity": 1}})
    desk = KeyDesk(browser, system)
    desk.enter("sale")
    desk.sees("1 at once")
    desk.keys.to("Pause")
    desk.keys.press(Keys.ENTER)
    desk.asked()
    browser.back()
    desk.heading("Queues")


def test_a_question_right_after_another(browser, room):  # noqa: F811
    """Who opens the next one at once, before the browser has told that the last one was closed, is asked."""
    system = room({"sale": CALM | {"capacity": 1}})
    desk = KeyDesk(browser, system)
    desk.enter("sale")
    desk.sees("1 at once")
    desk.keys.to("Pause")
    desk.keys.press(Keys.ENTER)
    desk.asked()
    browser.execute_async_script("""document.querySelector('dialog[open]').close();
        document.activeElement.click();
        setTimeout(arguments[0]);""")
    desk.asked()
    assert "Pause" in browser.execute_script("return document.querySelector('dialog[open]').innerText")


def test_a_refused_change_keeps_the_focus(browser, room):  # noqa: F811
    """One reads why, and goes on from the button."""
    system = room({"sale": CALM | {"capacity": 3}})
    desk = KeyDesk(browser, system)
    desk.enter("sale")
    desk.sees("3 at once")
    desk.keys.to("Capacity 10 % less")
    desk.keys.press(Keys.SPACE)
    review = desk.keys.to("Review change")
    desk.keys.press(Keys.ENTER)
    desk.asked()
    done(system, "PATCH", "queues/sale", {"capacity": 5})
    assert desk.keys.to("Change").dialog
    desk.keys.press(Keys.ENTER)
    desk.sees("no longer those that If-Match names")
    assert desk.keys.at().same
    desk.escape(review)
