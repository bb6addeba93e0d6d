# SPDX-License-Identifier: Apache-2.0
"""The moving picture of README.md: a phone that waits, moves up, is called and stands in the shop of the demo.

`TELLERLINE_PICTURES=1` records it in docs/images/turn.png, which takes four minutes: the pace of the line is that of a
shop. Otherwise the same story is told in seconds, and the picture is checked.
"""
from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator

import pytest
import yaml
from selenium import webdriver

import apng
from admin import Admin, admin_file
from browser import Page, until, visit
from http_client import Client
from tellerline import PATIENCE, TOP, System, free_port
from test_dashboard_pictures import PICTURES, WRITES
from test_previews import EXAMPLE, quoted
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=30)

PICTURE = PICTURES / "turn.png"
MOST = 1_000_000  # bytes
QUEUE, AHEAD, EVERY = ("concert", 95, "60s") if WRITES else ("concert", 6, "4s")
#: How many are let in within that time, and with how many ahead the phone is photographed.
ADMIT, STOPS = (24, (91, 84, 75, 64, 52, 40, 28, 17, 8, 3, 1)) if WRITES else (4, (5, 2))
WIDTH, HEIGHT, SHARP = 390, 720, 1.5
STEP, REST = 0.7, 2.0  # seconds that a frame is shown, and the last ones


@pytest.fixture
def shop() -> Iterator[str]:
    """The address of the demo's shop, which tells no worker of purchases."""
    port = free_port()
    process = subprocess.Popen([str(TOP / "deploy" / "demo" / "shop" / "shop.py"), "--port", str(port), "--queue", QUEUE],
                               stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: Client(port).get("/public/shop.css").status == 200, PATIENCE, "the shop is open",
                   again_on=OSError)
        yield f"http://localhost:{port}/"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def system(start, shop) -> System:
    page = yaml.load(EXAMPLE.read_text(), yaml.BaseLoader)["queues"]["concert-2026"]["page"]
    settings = {"policy": "rate", "rate": {"admit": ADMIT, "every": EVERY}, "claim_ttl": "2m", "session_ttl": "10m",
                "waiting_ttl": "10m", "mode": "paused", "target_url": shop, "page": quoted(page)}
    return start({QUEUE: settings}, prepare=admin_file)


class Recorder:
    """A phone, and the frames that were taken of it."""

    def __init__(self, browser: webdriver.Chrome) -> None:
        self._browser = browser
        self.frames: list[tuple[bytes, float]] = []
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": SHARP, "mobile": True})
        browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})

    def take(self, seconds: float = STEP) -> None:
        shot = self._browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
        self.frames.append((base64.b64decode(shot), seconds))

    def picture(self) -> bytes:
        return apng.animated([(apng.read(png), seconds) for png, seconds in self.frames])


def ahead(page: Page) -> int:
    """How many are ahead; none any more when the page is not one of the line."""
    if page.state != "waiting":
        return 0
    digits = "".join(filter(str.isdigit, page.text("ahead")))
    return int(digits) if digits else 0


def test_from_waiting_to_the_turn(browser, system, shop):
    admin = Admin(system.of("worker")[0])
    admin.done("POST", f"queues/{QUEUE}/joins", {"visitors": [{"visitor": f"customer-{i}"} for i in range(AHEAD)]})
    wait_until(lambda: system.waiting(QUEUE) == AHEAD, PATIENCE, "the line is there")
    phone = Recorder(browser)
    visit(browser, f"http://localhost:{system.of('worker')[0].http_port}/q/{QUEUE}?lang=en")
    until(browser, lambda page: page.state == "waiting", "the phone is in line")
    admin.done("POST", f"queues/{QUEUE}/open")
    for stop in STOPS:
        until(browser, lambda page, stop=stop: ahead(page) <= stop, f"{stop} are ahead", seconds=300)
        phone.take(STEP)
    until(browser, lambda page: page.state == "active" or page.url.startswith(shop), "the phone is called", seconds=60)
    phone.take(REST)
    until(browser, lambda page: page.url.startswith(shop) and page.headings, "the phone is in the shop")
    phone.take(REST)
    picture = phone.picture()
    assert len(picture) < MOST
    if WRITES:
        PICTURE.write_bytes(picture)


def test_the_picture_moves_and_is_small():
    png = PICTURE.read_bytes()
    kinds = [kind for kind, _ in apng.chunks(png)]
    assert kinds.count(b"fcTL") > 10, "TELLERLINE_PICTURES=1 makes it"
    assert len(png) < MOST


def test_an_animation_is_read_as_it_was_written():
    """The first frame by any reader of PNGs; of a further one only what changed is in the file."""
    white, black = b"\xff" * 3, b"\0" * 3
    rows = [bytes(3 * x % 256 for x in range(12)) for _ in range(3)]
    first = apng.Picture(4, 3, rows)
    second = apng.Picture(4, 3, [rows[0], rows[1][:3] + white + black + rows[1][9:], rows[2]])
    assert apng.changed(first, first) is None
    assert apng.changed(first, second) == (1, 1, 2, 1)
    png = apng.animated([(first, 1), (first, 0.5), (second, 1)])
    assert apng.read(png) == first
    frames = [content for kind, content in apng.chunks(png) if kind == b"fcTL"]
    assert [int.from_bytes(frame[20:22], "big") for frame in frames] == [1500, 1000]
