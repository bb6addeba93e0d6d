# SPDX-License-Identifier: Apache-2.0
"""The page of an event: what stands in its head, that it is readable, and what happens to a mistake in the file."""
from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import zlib
from pathlib import Path

import pytest

from admin import Admin
from browser import SCREENSHOTS, axe_at_hand, check_accessible, visit
from http_client import Client
from tellerline import CALM, PATIENCE, System
from test_dashboard import Desk, admin_file
from test_dashboard_pictures import show
from test_key_files import reload_until
from test_previews import BEYOND
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=60)

QUEUE = "concert"
EVENT = {"title": {"en": "Autumn Tour <2026>", "ko": "'2026 가을 투어'"}, "place": {"en": "Olympic Hall", "ko": "올림픽홀"},
         "date": "2026-12-12T19:00:00+09:00", "gradient": ["'#3b1a78'", "'#6d28d9'", "'#9a3fb8'"], "accent": "'#6d28d9'",
         "help": "https://help.example/concert",
         "texts": {"before": "Doors open soon.", "waiting": {"en": "At most four tickets each.", "ko": "한 분당 네 장까지입니다."},
                   "turn": "Choose your seats.", "after": "Resale opens on Monday."}}
#: What of the head's text does not fit into it, or into the screen.
CUT = """const head = document.querySelector('.event').getBoundingClientRect();
    return [...document.querySelectorAll('.event p')].filter((e) => {
        const box = e.getBoundingClientRect();
        return e.scrollWidth > e.clientWidth + 1 || box.top < head.top || box.bottom > head.bottom + 1 || box.right > innerWidth;
    }).map((e) => e.innerText)"""


def picture(path: Path, size: int = 64) -> None:
    """A white PNG: the brightest that text can stand on."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\xff\xff\xff" * size for _ in range(size))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def prepare(system: System) -> None:
    admin_file(system)
    picture(system.directory / "hall.png")
    picture(system.directory / "dark.png", 32)


@pytest.fixture
def system(start) -> System:
    pictured = {name: value for name, value in EVENT.items() if name != "gradient"}
    pictured |= {"image": "hall.png", "logo": {"light": "hall.png", "dark": "dark.png"}}
    return start({QUEUE: {"capacity": 0, "page": EVENT} | CALM, "pictured": {"capacity": 0, "page": pictured} | CALM,
                  "plain": {"capacity": 0} | CALM}, prepare=prepare)


def page(client: Client, queue: str, language: str = "en") -> str:
    answer = client.get(f"/q/{queue}?lang={language}")
    assert answer.status == 200, answer.body
    return answer.body.decode()


def preview(system: System) -> str:
    admin = Admin(system.of("worker")[0])
    return admin.request("GET", f"/preview/{QUEUE}?state=waiting", None, admin.token, None).body.decode()


def test_the_event_instead_of_the_queue(system):
    client = system.client()
    html = page(client, QUEUE)
    assert " – Autumn Tour &lt;2026&gt;</title>" in html
    assert ">Olympic Hall</p>" in html and 'datetime="2026-12-12T10:00:00Z"' in html
    assert 'href="https://help.example/concert" target="_blank" rel="noopener">Help</a>' in html
    assert "At most four tickets each." in html
    korean = page(client, QUEUE, "ko")
    assert "2026 가을 투어</p>" in korean and "한 분당 네 장까지입니다." in korean
    plain = page(client, "plain")
    assert " – plain</title>" in plain and 'class="event' not in plain


def test_pictures_are_served_by_their_content(system):
    client = system.client()
    html = page(client, "pictured")
    answer = client.get("/q/pictured", headers={"Accept-Encoding": "gzip"})
    assert len(answer.body) < 24 * 1024
    assert "img-src 'self';" in answer.headers["content-security-policy"]
    paths = {part.split('"')[0] for part in html.split('="') if part.startswith(("/q/assets/image-", "/q/assets/logo-"))}
    assert len(paths) == 3, paths
    for path in paths:
        picture_sent = client.get(path)
        assert picture_sent.status == 200 and picture_sent.headers["content-type"] == "image/png"
        assert "immutable" in picture_sent.headers["cache-control"]
    assert client.get("/q/assets/image-000000000000.png").status == 404


def test_the_head_is_readable(browser, system):
    desk = Desk(browser, system)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with axe_at_hand(browser):
        for queue, language in ((queue, language) for queue in (QUEUE, "pictured") for language in ("en", "ko", "ar")):
            show(browser, 320, 640, "light")
            desk.open(f"preview/{queue}?state=waiting&lang={language}")
            for text, letters in (("100%", "22.4px"), ("200%", "40px")):
                browser.execute_script("document.documentElement.style.fontSize = arguments[0]", text)
                assert browser.execute_script("return getComputedStyle(document.querySelector('.event .name')).fontSize") == \
                    letters
                assert not browser.execute_script(CUT), (queue, language, text)
                assert not browser.execute_script(BEYOND), (queue, language, text)
            assert browser.save_screenshot(str(SCREENSHOTS / f"event-{queue}-{language}.png"))
            check_accessible(browser, f"{queue} {language}")


def test_forced_colours(browser, system):
    """The visitor's colours, without a picture behind the text."""
    desk = Desk(browser, system)
    desk.open("preview/pictured?state=waiting&lang=en")
    shown = "return document.querySelector('.event img').checkVisibility()"
    assert browser.execute_script(shown)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "forced-colors", "value": "active"}]})
    assert not browser.execute_script(shown)
    for selector in (".event", ".event .over"):
        assert browser.execute_script("return getComputedStyle(document.querySelector(arguments[0])).backgroundImage",
                                      selector) == "none"


def test_the_date_is_the_visitors(browser, system):
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Seoul"})
    visit(browser, f"http://127.0.0.1:{system.of('worker')[0].http_port}/q/{QUEUE}?lang=en")
    read = "return document.querySelector('.event time').innerText"
    wait_until(lambda: "7:00" in browser.execute_script(read), PATIENCE, "the date in the visitor's zone", 0.1)
    assert "Saturday, December 12, 2026" in browser.execute_script(read)
    assert "Autumn Tour <2026>" in browser.title


def test_texts_of_the_moments(browser, system):
    desk = Desk(browser, system)
    every = EVENT["texts"] | {"waiting": EVENT["texts"]["waiting"]["en"]}
    for state, moment in (("before", "before"), ("waiting", "waiting"), ("turn", "turn"), ("sold_out", "after"),
                          ("closed", "after")):
        desk.open(f"preview/{QUEUE}?state={state}&lang=en")
        wait_until(lambda: every[moment] in desk.text(), PATIENCE, f"{state} says so: {desk.text()}", 0.1)
        others = [text for name, text in every.items() if name != moment and text in desk.text()]
        assert not others, (state, others)


@pytest.mark.sanitized
def test_a_mistake_stays_outside(system):
    """A reload takes a change; a mistake is refused with its place, also by `tellerline check`, and the old page stays."""
    client = system.client()
    good = system.config.read_text()
    system.config.write_text(good.replace("Olympic Hall", "Jamsil Arena"))
    reload_until(system, "configuration read again")
    assert ">Jamsil Arena</p>" in page(client, QUEUE) and system.ctl("check").returncode == 0
    wait_until(lambda: ">Jamsil Arena</p>" in preview(system), PATIENCE, "the preview is new, too")
    line = good[:good.index("hall.png")].count("\n") + 1
    (system.directory / "fake.png").write_text("<html>")
    for wrong, says in (("hall.png", ""), ("away.png", "cannot open"), ("fake.png", "its content is not image/png")):
        system.config.write_text(good.replace("image: hall.png", f"image: {wrong}"))
        checked = system.ctl("check")
        assert checked.returncode == (1 if says else 0), checked.stderr
        if not says:
            continue
        assert f"tellerline.yaml:{line}:14: queues.pictured.page: image: " in checked.stderr and says in checked.stderr
        system.expect("reload refused")
        reload_until(system, "reload refused")
        assert ">Jamsil Arena</p>" in page(client, QUEUE)
    system.config.write_text(good.replace("'#6d28d9'\n", "'#ffee00'\n"))
    assert "needs 4.5 to 1" in system.ctl("check").stderr
    system.config.write_text(good)
    reload_until(system, "configuration read again")
    assert ">Olympic Hall</p>" in page(client, QUEUE)


def restart_processes(system: System) -> Client:
    """Kills the children of the worker, also that of the admin listener. Returns a client when new ones serve."""
    system.expect(r"role=worker .*ended by signal 9 \(Killed\)")
    worker = system.of("worker")[0]
    for pid in (before := worker.children()):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(set(worker.children()) - set(before)) == len(before), PATIENCE, "all processes are new")
    worker.wait_ready()
    wait_until(lambda: preview(system), PATIENCE, "so is that of the previews", again_on=OSError)
    return wait_until(system.client, PATIENCE, "it serves", again_on=OSError)


def test_a_restarted_process_shows_what_was_read_last(system):
    """As the other processes of its worker: neither what was read at the start, nor what is in the file meanwhile."""
    good = system.config.read_text()
    system.config.write_text(good.replace("Olympic Hall", "Jamsil Arena") + "  emergency: {mode: passthrough}\n")
    reload_until(system, "configuration read again")
    wait_until(lambda: ">Jamsil Arena</p>" in preview(system), PATIENCE, "the preview is new, too")
    for changed in (good.replace("Olympic Hall", "Elsewhere"), good.replace("hall.png", "away.png")):
        system.config.write_text(changed)
        if "away.png" in changed:
            system.expect("reload refused")
            reload_until(system, "reload refused")
        client = restart_processes(system)
        assert ">Jamsil Arena</p>" in page(client, QUEUE)
        assert client.post("/v1/queues/emergency/join").json["status"] == "passthrough"
        wait_until(lambda: ">Jamsil Arena</p>" in preview(system), PATIENCE, "so does the preview", again_on=OSError)


def test_a_restarted_process_needs_no_file_of_the_start(system):
    """Only what was read last: the operator may tidy up after a reload."""
    moved = {"hall.png": "new.png", "ticket.keys": "moved.keys"}
    text = system.config.read_text()
    for name, new in moved.items():
        shutil.copy(system.directory / name, system.directory / new)
        text = text.replace(name, new)
    system.config.write_text(text)
    reload_until(system, "configuration read again")
    visitor = system.join("plain")
    for name in moved:
        (system.directory / name).unlink()
    client = restart_processes(system)
    assert "/q/assets/image-" in page(client, "pictured")
    assert client.get("/v1/queues/plain/status", ticket=visitor.ticket).json["visitor"] == visitor.view["visitor"]


def test_a_restarted_process_keeps_a_picture_that_is_gone(system):
    """What its worker read last counts until it reads again, which is refused."""
    hall = system.directory / "hall.png"
    good = hall.read_bytes()
    for gone in (False, True):
        if gone:
            hall.unlink()
        else:
            hall.write_text("<html>")
        client = restart_processes(system)
        html = page(client, "pictured")
        path = re.search('/q/assets/image-[^"]*', html)
        assert path and 'class="event' in html and ">Olympic Hall</p>" in page(client, QUEUE)
        assert client.get(path[0]).body == good
        assert ">Olympic Hall</p>" in preview(system)
    system.expect("reload refused")
    reload_until(system, "reload refused")
    hall.write_bytes(good)
    reload_until(system, "configuration read again")
    assert "/q/assets/image-" in page(system.client(), "pictured")


def test_a_restarted_process_keeps_a_logo_that_is_gone(start, tmp_path):
    """The one of all pages, which is read at the start only."""
    logo = tmp_path / "logo.png"
    picture(logo)
    system = start({QUEUE: {"capacity": 0, "page": EVENT} | CALM}, settings={"brand": {"logo": str(logo)}}, prepare=prepare)
    path = re.search('/q/assets/logo-[^"]*', page(system.client(), QUEUE))
    assert path
    good = logo.read_bytes()
    logo.unlink()
    client = restart_processes(system)
    assert path[0] in page(client, QUEUE) and client.get(path[0]).body == good


def test_times_in_the_zone_of_the_site(start):
    """In what browsers without JavaScript read: of every process, and in the preview."""
    system = start({QUEUE: {"capacity": 0, "page": EVENT, "opens_at": "2040-07-01T09:00:00+02:00"} | CALM},
                   settings={"brand": {"timezone": "Europe/Berlin"}}, prepare=prepare)
    for html in (page(system.client(), QUEUE), preview(system), page(restart_processes(system), QUEUE)):
        assert ">12 Dec 2026, 11:00 CET</" in html, re.findall(".{60}(?:CET|UTC)", html)
        assert " UTC" not in html, re.findall(".{60} UTC", html)
    assert ">1 Jul 2040, 09:00 CEST</" in html
    reload_until(system, "configuration read again")
    assert ">2026년 12월 12일 11:00 CET</" in page(system.client(), QUEUE, "ko")


def test_the_preview_shows_it(system):
    assert ">Olympic Hall</p>" in preview(system)
