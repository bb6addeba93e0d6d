# SPDX-License-Identifier: Apache-2.0
"""The sale that one test runs from the dashboard and another from the command line. Both leave the same record."""
from __future__ import annotations

import re
from typing import Any

from tellerline import System

NOTICE = {"en": "Row A is sold out.", "ko": "A열은 매진되었습니다."}
CREATED = {"capacity": "1", "lanes": "vip,normal", "default_lane": "normal", "mode": "paused"}

Change = tuple[str, dict[str, Any], dict[str, Any]]


def mode(before: str, after: str) -> Change:
    return "mode", {"mode": before}, {"mode": after}


def story(important: str, revoked: str) -> list[Change]:
    """What the record says after the creation, oldest first: what was done, all that changed, before and after."""
    return [mode("paused", "open"),
            ("notice", {"notice": ""}, {"notice": NOTICE}),
            ("set", {"capacity": "1"}, {"capacity": "2"}), mode("open", "paused"), mode("paused", "open"),
            ("move", {"visitor": important, "lane": "normal"}, {"visitor": important, "lane": "vip"}),
            ("remove", {"visitor": revoked, "state": "active"}, {"visitor": revoked, "state": "removed"}),
            mode("open", "draining"), mode("draining", "sold_out")]


def check_record(system: System, entries: list[dict[str, Any]], changes: list[Change], who: str, where: str) -> None:
    """entries: all of the record, oldest first. where: how the place of the caller begins."""
    created, *others = entries
    assert [(entry["what"], entry["before"], entry["after"]) for entry in others] == changes
    for entry in entries:
        assert entry["who"] == who and entry["from"].startswith(where) and entry["queue"] == "sale", entry
    # The creation has every setting; those that nobody set or changed are what they are now. Times, shares and texts
    # by language are as people read them.
    config = system.store.hash(system.key("sale", "config"))
    later = {"capacity", "mode", "about", "changed"}
    assert created["what"] == "create" and created["before"] == {}, created
    assert {name: created["after"][name] for name in CREATED} == CREATED, created
    later |= {name for name, value in created["after"].items()
              if not isinstance(value, str) or re.fullmatch(r"\d+(ms|s|m|h|d|%)|", value)}
    assert created["after"].keys() - later == config.keys() - later and created["after"]["session_ttl"] == "10m"
    assert {name: value for name, value in created["after"].items() if name not in later} == {
        name: value for name, value in config.items() if name not in later}
