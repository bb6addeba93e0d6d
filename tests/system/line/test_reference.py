# SPDX-License-Identifier: Apache-2.0
"""The reference code, which a visitor tells the support: the same from the join to the end, and always on the page."""
from __future__ import annotations

import json
import re

import pytest

from http_client import Visitor
from tellerline import CALM, PATIENCE, System
from test_draw import begin, drawn, open_now, time_in
from waiting import wait_until


def on_page(system: System, visitor: Visitor, state: str) -> str | None:
    """The code on the page of this visitor, which is in this state; None: it shows none."""
    queue = visitor.path.rpartition("/")[2]

    def page() -> str:
        return system.client().get(f"/q/{queue}", headers={"Cookie": f"tellerline_{queue}={visitor.ticket}"}).body.decode()

    body = wait_until(lambda: (now := page()) and f'<section data-state="{state}">' in now and now, PATIENCE, f"it is {state}")
    found = re.search(r'<p class="reference" data-tl="has-reference"( hidden)?>[^<]*<code data-tl="reference">([^<]*)<', body)
    assert found is not None
    return None if found.group(1) else found.group(2)


def found(system: System, queue: str, code: str) -> dict[str, str]:
    said = system.ctl("visitor", "show", queue, "--reference", code, "-o", "json")
    assert said.returncode == 0, said
    return json.loads(said.stdout)


@pytest.mark.sanitized
def test_a_draw_does_not_change_the_code(start):
    system = begin(start, time_in(600), queue={"capacity": 0})
    visitors = [system.join("sale") for _ in range(12)]
    codes = [visitor.view["reference"] for visitor in visitors]
    assert len(set(codes)) == 12
    before = {visitor.view["visitor"]: visitor.ticket for visitor in visitors}
    open_now(system)
    wait_until(lambda: drawn(system), PATIENCE, "the draw is done")
    for visitor, code in zip(visitors, codes):
        wait_until(lambda v=visitor: "position" in v.status(), PATIENCE, "the place is drawn")
        assert on_page(system, visitor, "waiting") == code
        assert visitor.view.get("reference", code) == code
        assert found(system, "sale", code)["visitor"] == visitor.view["visitor"]
    assert any(visitor.ticket != before[visitor.view["visitor"]] for visitor in visitors), "they have new tickets"


def test_the_code_is_there_when_the_place_is_not(start):
    """Who has a question has it then."""
    system = start({"sale": {"capacity": 0} | CALM, "gone": {"capacity": 0} | CALM, "short": {"capacity": 0, "waiting_ttl": "1s"}})
    left, removed, absent, lost = system.join("sale"), system.join("sale"), system.join("short"), system.join("gone")
    codes = {visitor: visitor.view["reference"] for visitor in (left, removed, absent, lost)}
    for visitor, code in codes.items():
        assert on_page(system, visitor, "waiting") == code
    assert left.leave()["reference"] == codes[left]
    assert system.ctl("visitor", "remove", "sale", removed.ticket, "--yes").returncode == 0
    assert on_page(system, left, "left") == codes[left]
    assert on_page(system, removed, "removed") == codes[removed]
    wait_until(lambda: system.waiting("short") == 0, PATIENCE, "who is not seen loses the place")
    assert on_page(system, absent, "absent") == codes[absent]
    assert found(system, "sale", codes[left])["status"] == "left"
    assert found(system, "sale", codes[removed])["end_reason"] == "removed"
    assert found(system, "short", codes[absent])["end_reason"] == "absent"
    assert system.ctl("queue", "delete", "gone", "--yes").returncode == 0
    assert system.ctl("queue", "create", "gone", "capacity=0").returncode == 0
    assert on_page(system, lost, "lost") == codes[lost]
