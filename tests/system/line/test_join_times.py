# SPDX-License-Identifier: Apache-2.0
"""When visitors joined, as operators read it: from the history that the real expirer writes."""
from __future__ import annotations

import csv
import io
import json
import re
import time
from datetime import datetime

from tellerline import CALM, PATIENCE, System
from waiting import wait_until

STEP = 10  # of the history, s


def ctl(system: System, *words: str) -> str:
    done = system.ctl(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_everybody_has_the_time_of_the_join(start):
    system = start({"sale": {"capacity": 1} | CALM})
    points = system.key("sale", "history")
    wait_until(lambda: system.store.command("XLEN", points), PATIENCE, "the history has begun", 0.2)
    begun = time.time()
    inside, waiting = (system.join("sale").status()["visitor"] for _ in range(2))
    wait_until(lambda: system.active("sale") == 1 and system.waiting("sale") == 1, PATIENCE, "one is admitted")
    seq = json.loads(ctl(system, "visitor", "show", "sale", waiting, "-o", "json"))["seq"]

    def is_noted() -> bool:
        newest = system.store.command("XREVRANGE", points, "+", "-", "COUNT", 1)[0][1]
        return int(newest[newest.index("seq") + 1]) >= seq

    wait_until(is_noted, PATIENCE, "the history has them", 0.5)
    for visitor in (inside, waiting):
        shown = json.loads(ctl(system, "visitor", "show", "sale", visitor, "-o", "json"))
        assert begun - STEP < seconds(shown["joined_at"]) <= time.time() + 1, shown
        assert "joined_at" in ctl(system, "visitor", "show", "sale", visitor)
    [row] = json.loads(ctl(system, "queue", "line", "sale", "-o", "json"))["visitors"]
    assert row["joined_at"] == shown["joined_at"]
    local = datetime.fromtimestamp(seconds(row["joined_at"])).strftime("%Y-%m-%dT%H:%M:%S")
    assert local in ctl(system, "queue", "line", "sale")
    stats = json.loads(ctl(system, "queue", "stats", "sale", "-o", "json"))
    assert sum(stats["waits"]["waiting"]) == 1 and stats["waits"]["not_known"] == 0
    assert sum(stats["waits"]["admitted"]) == stats["waited"]["sample"] == 1
    assert re.search(r"^  waits now +1 under (60 s|1 min|5 min)$", ctl(system, "queue", "stats", "sale"), re.M)
    # A spreadsheet would compute an id that begins with a hyphen: a quote stands before it.
    exported = csv.DictReader(io.StringIO(ctl(system, "queue", "export", "sale")))
    rows = {row["visitor"].removeprefix("'"): row for row in exported}
    assert rows[waiting]["joined_at"] == row["joined_at"] and rows[inside]["joined_at"] <= row["joined_at"]
    lines = [json.loads(line) for line in ctl(system, "queue", "export", "sale", "--format", "jsonl").splitlines()]
    assert {line["joined_at"] for line in lines} == {rows[inside]["joined_at"], row["joined_at"]}
