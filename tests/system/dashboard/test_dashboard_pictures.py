# SPDX-License-Identifier: Apache-2.0
"""The pictures of the dashboard in docs/: a sale of three quarters of an hour, with an invented past and a real present.

`TELLERLINE_PICTURES=1` writes them to docs/images. Otherwise the test checks that they are there, that nothing is wider
than the screen, and that axe-core finds nothing.
"""
from __future__ import annotations

import base64
import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from selenium import webdriver

from admin import Admin
from tellerline import PATIENCE, TOP, System
from browser import check_accessible
from test_dashboard import WIDE, Desk, room  # noqa: F401 (fixture)
from waiting import wait_until

pytestmark = pytest.mark.together

PICTURES = TOP / "docs" / "images"
WRITES = os.environ.get("TELLERLINE_PICTURES") == "1"
QUEUE = "concert-2026"
STEP, LENGTH = 10, 45 * 60
#: width, height, colour scheme, what is shown.
SHOTS = {"overview": (1360, 330, "light", ""), "queue": (1360, 1250, "light", f"#/queues/{QUEUE}"),
         "dark": (1360, 1250, "dark", f"#/queues/{QUEUE}"), "phone": (390, 844, "light", f"#/queues/{QUEUE}")}
#: Is the first graph drawn for the width that it has? (A page without one is.)
DRAWN = """const chart = document.querySelector('figure .chart');
    return !chart || Math.abs(chart.viewBox.baseVal.width - chart.getBoundingClientRect().width) < 2"""


@dataclass
class Point:
    """The numbers of one step of ten seconds."""
    at: float  # seconds since the opening
    capacity: int
    joined: int
    admitted: int
    completed: int
    expired: int
    unclaimed: int
    left: int
    absent: int

    @property
    def active(self) -> int:
        return self.admitted - self.completed - self.expired

    @property
    def waiting(self) -> int:
        return self.joined - self.admitted - self.left - self.absent


def sale() -> list[Point]:
    """Many come at the opening, then fewer; after 27 minutes the capacity is raised."""
    points = []
    joined = admitted = completed = expired = unclaimed = left = absent = 0.0
    for at in range(0, LENGTH, STEP):
        capacity = 200 if at < 27 * 60 else 300
        minute = at / 60
        arrivals = 420 * math.exp(-minute / 3) + 34 + 9 * math.sin(minute / 2.3) + 70 * math.exp(-((minute - 20) / 4) ** 2)
        joined += arrivals * STEP / 60
        active = admitted - completed - expired
        ended = active * STEP / 300
        completed += ended * .91
        expired += ended * .09
        unclaimed += ended * .05
        left += (joined - admitted) * STEP / 60 * .0016
        absent += (joined - admitted) * STEP / 60 * .0024
        admitted += max(0, min(capacity - (active - ended), joined - admitted - left - absent))
        points.append(Point(at, capacity, *(int(n) for n in (joined, admitted, completed, expired, unclaimed, left, absent))))
    return points


def prepare(system: System) -> None:
    """Those who wait and shop now are real; totals, history and record of changes are given a past."""
    admin = Admin(system.of("worker")[0])
    past = sale()
    now = past[-1]
    now.admitted = now.completed + now.expired + now.capacity  # every counter is taken
    people = [{"visitor": f"customer-{i:05}", "lane": "vip" if i % 25 == 0 else "normal"} for i in range(now.active + now.waiting)]
    for start in range(0, len(people), 1000):
        admin.done("POST", f"queues/{QUEUE}/joins", {"visitors": people[start:start + 1000]})
    wait_until(lambda: admin.done("GET", f"queues/{QUEUE}/stats")["active"] == now.active, 60, "all who may are in")
    admin.done("POST", "queues/merchandise/pause")
    for name, n in (("fan-club", 140), ("merchandise", 35)):
        admin.done("POST", f"queues/{name}/joins", {"visitors": [{"visitor": f"v{i}"} for i in range(n)]})
    admin.done("POST", f"queues/{QUEUE}/notice", {"texts": {"en": "Rows A to F are sold out.", "de": "Die Reihen A bis F sind ausverkauft."}})
    store = system.redis.connect()
    for name, n, active in (("fan-club", 140, 80), ("merchandise", 35, 0)):
        wait_until(lambda: admin.done("GET", f"queues/{name}/stats")["active"] == active, 60, "all who may are in")
        write_steady(store, name, n, active)
    state, ended = f"tl:{{{QUEUE}}}:state", now.joined - now.active - now.waiting
    for name, n in (("joined", ended), ("admitted", now.completed + now.expired), ("completed", now.completed),
                    ("expired", now.expired + now.absent), ("unclaimed", now.unclaimed), ("left", now.left),
                    ("absent", now.absent)):
        store.command("HINCRBY", state, name, n)
    store.command("HSET", f"tl:{{{QUEUE}}}:promised", "eta_judged", 640, "eta_early", 58, "eta_late", 45, "eta_error", 7700)
    seq = int(store.command("HGET", state, "seq"))
    started = time.time() - LENGTH - 5
    write_history(store, past, started, seq)
    changes = [(-240, "create", {}, {"capacity": "200", "mode": "paused"}), (0, "mode", {"mode": "paused"}, {"mode": "open"}),
               (27 * 60, "set", {"capacity": "200"}, {"capacity": "300"})]
    write_changes(store, changes, started)
    store.close()


#: Replaces a stream: ARGV is an id, the number of fields and values, and these, again and again.
REPLACE = """redis.call('DEL', KEYS[1])
local i = 1
while i <= #ARGV do
    local n = tonumber(ARGV[i + 1])
    redis.call('XADD', KEYS[1], ARGV[i], unpack(ARGV, i + 2, i + 1 + n))
    i = i + 2 + n
end"""


def replace(store, stream: str, entries: list[tuple[int, dict[str, object]]], queue: str = QUEUE) -> None:
    words: list[str] = []
    for at, fields in entries:
        pairs = [str(word) for pair in fields.items() for word in pair]
        words += [str(at), str(len(pairs)), *pairs]
    store.command("EVAL", REPLACE, 1, f"tl:{{{queue}}}:{stream}", *words)


def write_steady(store, queue: str, joined: int, active: int) -> None:
    """As many came in each minute as in any other; as many as went were let in."""
    state = f"tl:{{{queue}}}:state"
    done = 8 * active
    for name in ("joined", "admitted", "completed"):
        store.command("HINCRBY", state, name, done)
    seq, now = int(store.command("HGET", state, "seq")), time.time() - STEP
    entries = []
    for back in range(LENGTH, -1, -STEP):
        share = 1 - back / LENGTH
        came, went = int((joined + done) * share), int(done * share)
        here = min(active, came - went)
        entries.append((int((now - back) * 1000), {
            "capacity": 80 if active else 50, "mode": "open" if active else "paused", "waiting": came - went - here,
            "active": here, "seq": seq - (joined + done - came), "joined": came, "admitted": went + here, "completed": went,
            "expired": 0, "unclaimed": 0, "left": 0, "absent": 0, "removed": 0}))
    replace(store, "history", entries, queue)


def write_history(store, past: list[Point], started: float, seq: int) -> None:
    last = past[-1]
    entries = [(int((started + one.at) * 1000), {
        "capacity": one.capacity, "mode": "open", "waiting": one.waiting, "active": one.active,
        "seq": seq - (last.joined - one.joined), "joined": one.joined, "admitted": one.admitted, "completed": one.completed,
        "expired": one.expired + one.absent, "unclaimed": one.unclaimed, "left": one.left, "absent": one.absent,
        "removed": 0}) for one in past]
    replace(store, "history", entries)
    replace(store, "history:minutes", entries[::6])


def write_changes(store, changes: list[tuple[float, str, dict[str, str], dict[str, str]]], started: float) -> None:
    entries = []
    for at, what, before, after in changes:
        ms = int((started + at) * 1000)
        entries.append((ms, {"at": ms, "who": "anna", "from": "192.0.2.7", "what": what, "before": json.dumps(before),
                             "after": json.dumps(after)}))
    ms = int((started + LENGTH - 480) * 1000)
    entries.append((ms, {"at": ms, "who": "ben", "from": "192.0.2.9", "what": "notice", "before": '{"notice": ""}',
                         "after": '{"notice": "Rows A to F are sold out."}'}))
    replace(store, "changes", entries)


def show(browser: webdriver.Chrome, width: int, height: int, scheme: str) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})


def take(browser: webdriver.Chrome, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]))


def test_the_pictures_show_what_is(browser, room):  # noqa: F811
    system = room({QUEUE: {"capacity": 300, "lanes": ["vip", "normal"], "default_lane": "normal", "session_ttl": "2h",
                           "claim_ttl": "2h", "session_max": "2h", "waiting_ttl": "2h"},
                   "fan-club": {"capacity": 80, "session_ttl": "2h", "claim_ttl": "2h", "session_max": "2h", "waiting_ttl": "2h"},
                   "merchandise": {"capacity": 50, "waiting_ttl": "2h"}})
    prepare(system)
    desk = Desk(browser, system)
    for name, (width, height, scheme, fragment) in SHOTS.items():
        show(browser, width, height, scheme)
        desk.open(fragment)
        desk.sees(*(["live", "serves", "capacity: 200 → 300", "waits told in the last hour"] if fragment else ["merchandise", "paused"]))
        wait_until(lambda: browser.execute_script(DRAWN), PATIENCE, "the graphs are as wide as their place")
        wide = browser.execute_script(WIDE)
        assert not wide, (name, wide)
        check_accessible(browser, name)
        show(browser, width, height, scheme)
        file = PICTURES / f"dashboard-{name}.png"
        if WRITES:
            browser.execute_script("document.activeElement.blur()")  # no frame around the heading
            take(browser, file)
        assert file.read_bytes().startswith(b"\x89PNG"), f"TELLERLINE_PICTURES=1 makes {file}"
