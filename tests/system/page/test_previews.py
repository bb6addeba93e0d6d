# SPDX-License-Identifier: Apache-2.0
"""The waiting page in every state, as the operator sees it at the admin listener: nothing is too wide, axe-core finds
nothing, and nothing is asked for.

`TELLERLINE_PICTURES=1` writes a picture of each state to docs/images/pages. Otherwise the test checks that they are there.
"""
from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from admin import Admin
from browser import OF_A_SCHEME, SCREENSHOTS, WITHOUT_COLOURS, axe, axe_at_hand
from tellerline import PATIENCE, TOP
from test_dashboard import Desk, room  # noqa: F401 (fixture)
from test_dashboard_pictures import WRITES, show, take
from test_page_script import CUT_OFF
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=120)

PICTURES = TOP / "docs" / "images" / "pages"
QUEUE, MARKUP = "concert", "markup"
PHONE, DESKTOP, NARROW = (390, 844), (1360, 1000), (320, 640)
#: Further pictures: name, state, language, size, colour scheme.
MORE = [("waiting-desktop", "waiting", "en", DESKTOP, "light"), ("waiting-dark", "waiting", "en", PHONE, "dark"),
        ("waiting-ko", "waiting", "ko", PHONE, "light"), ("waiting-ar", "waiting", "ar", PHONE, "light"),
        ("waiting-320", "waiting", "de", NARROW, "light"), ("turn-dark", "turn", "ko", PHONE, "dark")]
#: The same of a queue whose page has an event: that of the example.
EVENT, EXAMPLE = "autumn-tour", TOP / "conf" / "examples" / "ticket-shop.yaml"
OF_EVENT = [("event", "waiting", "en", PHONE, "light"), ("event-dark", "waiting", "en", PHONE, "dark"),
            ("event-before", "before", "en", PHONE, "light"), ("event-320", "turn", "en", NARROW, "light")]
BEYOND = """return [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() &&
    !e.classList.contains('aloud') && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 120))"""


def states(admin: Admin) -> list[str]:
    page = admin.request("GET", f"/preview/{QUEUE}", None, admin.token, None)
    assert page.status == 200, page.body
    return re.findall(rf'href="/preview/{QUEUE}\?state=(\w+)"', page.body.decode())


def quoted(value: Any) -> Any:
    """With each text in quotes, as the configuration of a test is written without."""
    if isinstance(value, dict):
        return {name: quoted(item) for name, item in value.items()}
    return [quoted(item) for item in value] if isinstance(value, list) else json.dumps(value, ensure_ascii=False)


@pytest.fixture
def system(room):  # noqa: F811
    page = yaml.load(EXAMPLE.read_text(), yaml.BaseLoader)["queues"]["concert-2026"]["page"]
    settings = {"capacity": 10, "claim_ttl": "2m", "session_ttl": "10m", "waiting_ttl": "10m"}
    return room({QUEUE: settings, MARKUP: settings | {"closed_text": {"en": "The <b>sale</b> is over."}},
                 EVENT: settings | {"page": quoted(page)}})


@pytest.mark.sanitized
def test_who_may_look(system):
    worker = system.of("worker")[0]
    admin = Admin(worker)
    viewer = Admin(worker, admin.make_token("eye", "viewer"))
    path = f"/preview/{QUEUE}?state=waiting"
    assert Admin(worker, None).request("GET", path, None, None, None).status == 401
    assert Admin(worker, None).request("GET", path, None, "wrong", None).status == 401
    page = viewer.request("GET", path, None, viewer.token, None)
    assert page.status == 200 and b"1,284" in page.body
    policy = page.headers["content-security-policy"]
    assert "connect-src 'none'" in policy and "frame-ancestors 'none'" in policy
    closed = viewer.request("GET", f"/preview/{MARKUP}?state=closed", None, viewer.token, None).body.decode()
    assert "The &lt;b&gt;sale" in closed and "<b>sale" not in closed
    for wrong, status in ((f"/preview/{QUEUE}?state=nowhere", 404), ("/preview/none?state=waiting", 404),
                          ("/preview/", 404), ("/preview/a%20b?state=waiting", 422), ("/preview/a/b", 404)):
        assert viewer.request("GET", wrong, None, viewer.token, None).status == status, wrong
    assert viewer.request("POST", path, b"", viewer.token, None).status == 405


def check_screens(browser, state: str) -> None:
    """axe-core finds nothing, light and dark. A picture on a phone in the light and on a desktop in the dark; nothing is
    too wide on them, and nothing is cut off on the narrowest screen with letters twice as large."""
    axe(browser, f"{state} light")
    for name, size, scheme in (("phone", PHONE, "light"), ("desktop", DESKTOP, "dark")):
        show(browser, *size, scheme)
        assert not browser.execute_script(BEYOND), (state, name)
        take(browser, SCREENSHOTS / f"state-{state}-{name}-{scheme}.png")
    axe(browser, f"{state} dark", **OF_A_SCHEME)
    show(browser, *NARROW, "light")
    browser.execute_script("document.documentElement.style.fontSize = '200%'")
    assert not browser.execute_script(BEYOND) and not browser.execute_script(CUT_OFF), state


def test_every_state(browser, system):
    """A look at each in two languages; in one of them on all screens."""
    desk = Desk(browser, system)
    every = states(Admin(system.of("worker")[0]))
    assert len(every) > 30
    asked = system.numbers(QUEUE)
    show(browser, *NARROW, "light")
    with axe_at_hand(browser):
        for language, state in ((language, state) for language in ("en", "ko") for state in every):
            desk.open(f"preview/{QUEUE}?state={state}&lang={language}")
            assert browser.execute_script("return document.documentElement.lang") == language
            assert not browser.execute_script(BEYOND), state
            heading = browser.execute_script(
                "return [...document.querySelectorAll('h1')].filter((e) => e.checkVisibility()).map((e) => e.innerText)")
            assert len(heading) == 1 and heading[0], (state, heading)
            if language == "en":
                check_screens(browser, state)
            else:
                axe(browser, f"{state} {language}", **WITHOUT_COLOURS)
    assert system.numbers(QUEUE) == asked, "a look changes nothing"


def test_what_the_script_adds(browser, system):
    desk = Desk(browser, system)
    for state, text in (("waiting", "around "), ("offline", "You are offline"), ("gone", "may be gone"),
                        ("before", "Opens in"), ("turn", "Come in within"), ("session", "Time left in the shop")):
        desk.open(f"preview/{QUEUE}?state={state}&lang=en")
        wait_until(lambda: text in desk.text(), PATIENCE, f"{state} shows {text!r}: {desk.text()}", 0.1)


def test_the_pictures_are_there(browser, system):
    desk = Desk(browser, system)
    every = states(Admin(system.of("worker")[0]))
    shots = [(state, state, "en", PHONE, "light", QUEUE) for state in every]
    shots += [shot + (QUEUE,) for shot in MORE] + [shot + (EVENT,) for shot in OF_EVENT]
    if not WRITES:
        missing = [name for name, *_ in shots if not (PICTURES / f"{name}.png").exists()]
        assert not missing, f"TELLERLINE_PICTURES=1 makes them: {missing}"
        shots = [shot for shot in shots if shot[0] in ("waiting", "turn", "waiting-ar", "event")]
    for name, state, language, (width, height), scheme, queue in shots:
        show(browser, width, height, scheme)
        desk.open(f"preview/{queue}?state={state}&lang={language}")
        take(browser, (PICTURES if WRITES else SCREENSHOTS) / f"{name}.png")
