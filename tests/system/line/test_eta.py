# SPDX-License-Identifier: Apache-2.0
"""The wait estimate of the running programs: it follows the operator at once, names reasons, and is judged."""
from __future__ import annotations

import json
import re
from typing import Any

from figures_of import metrics
from http_client import Visitor
from tellerline import CALM, PATIENCE, System
from test_store_trouble import PROMPT
from waiting import wait_until


def view_with(visitor: Visitor, reason: str, known: bool) -> dict[str, Any]:
    """The view of a waiting visitor, once it names this reason, with or without an estimate."""
    def view() -> dict[str, Any] | None:
        found = visitor.status()
        assert found["status"] == "waiting", found
        return found if found.get("eta_reason") == reason and ("eta_high" in found) == known else None
    return wait_until(view, PATIENCE, f"eta_reason {reason}")


def end_sessions(visitors: list[Visitor]) -> None:
    for visitor in visitors:
        wait_until(visitor.is_active, PATIENCE, "admitted in turn")
        visitor.complete()


def judged(system: System) -> int:
    """How many waits that were told came true, in all worker processes."""
    return sum(int(line.split()[-1]) for program in system.of("worker") for line in metrics(program).splitlines()
               if line.startswith("tellerline_worker_queue_eta_judged_total{") and 'queue="door"' in line)


def test_the_estimate_follows_the_operator(start):
    """Capacity 20 -> 5 -> 20, a pause and no capacity at all, with nothing else happening meanwhile."""
    system = start({"door": {"capacity": 20} | CALM}, settings=PROMPT)
    visitors = [system.join("door") for _ in range(100)]
    last = visitors[-1]
    view_with(last, "not_known", known=False)
    end_sessions(visitors[:40])
    told = wait_until(lambda: view if "eta_high" in (view := last.status()) and view["position"] == 40 else None,
                      PATIENCE, "known, when all who follow are admitted")
    assert told["eta_low"] <= told["eta_seconds"] <= told["eta_high"]

    system.set("door", "capacity=5")
    # Before, 40 sessions of 20 at once had to end. Now 55 have to, of which 40 by fives.
    slower = view_with(last, "capacity_lowered", known=True)
    assert slower["eta_seconds"] >= 2 * told["eta_seconds"], (told, slower)
    # As no session ends, the wait grows; when it is long, the moment that a change takes to arrive does not matter.
    slower = wait_until(lambda: view if (view := last.status())["eta_seconds"] >= 10 else None, PATIENCE, "grown")
    system.set("door", "capacity=20")
    wait_until(lambda: last.status()["eta_seconds"] <= slower["eta_seconds"] / 2 + 1, PATIENCE, "faster again")

    system.set("door", "mode=paused")
    view_with(last, "paused", known=False)
    system.set("door", "mode=open")
    wait_until(lambda: "eta_high" in last.status(), PATIENCE, "known again")
    system.set("door", "capacity=0")
    view_with(last, "no_capacity", known=False)
    system.set("door", "capacity=20")

    wait_until(lambda: "eta_high" in last.status(), PATIENCE, "known again")
    # The worker notes once a second what somebody is told. Visitors come as long as none of these has had the turn.
    ended = 40

    def one_more() -> bool:
        nonlocal ended
        end_sessions([visitors[ended]])
        ended += 1
        visitors.append(system.join("door"))
        return judged(system) > 0

    wait_until(one_more, PATIENCE, "what was told has come true", every=0.1)
    told_by_the_store(system)


def told_by_the_store(system: System) -> None:
    """What all worker processes counted: in the numbers of the queue, and in its history."""
    def stats() -> dict[str, Any]:
        done = system.ctl("queue", "stats", "door", "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["eta"] or {"judged": 0}

    def newest() -> dict[str, str]:
        fields = system.store.command("XREVRANGE", system.key("door", "history"), "+", "-", "COUNT", 1)[0][1]
        return dict(zip(fields[::2], fields[1::2]))

    wait_until(lambda: stats()["judged"] == judged(system), PATIENCE, "the store has all of them", 0.5)
    eta = stats()
    assert abs(eta["inside_percent"] - 100 * (eta["judged"] - eta["early"] - eta["late"]) / eta["judged"]) < 0.1, eta
    wait_until(lambda: int(newest()["eta_judged"]) == eta["judged"], PATIENCE, "the history has them", 0.5)
    assert int(newest()["eta_early"]) == eta["early"] and int(newest()["eta_late"]) == eta["late"], eta
    assert re.search(rf"^  estimates   \d+ % of {eta['judged']} held in the last hour, ", system.ctl("queue", "stats", "door").stdout, re.M)
