#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An export of the whole line over the admin API: what it takes, and what visitors notice of it meanwhile."""
from __future__ import annotations

import http.client
import re
import threading
import time

from stage import (CALM, PATIENCE, QUEUE, QUICK, SIZES, Crowd, System, elapsed, emit, fill, progress, rss, running,
                   wait_until)

from admin import ADMIN_TOKEN, admin_file  # isort: skip  (stage.py has made the tests' modules known)

TURNS = 500 if QUICK else 3000


class Exports(threading.Thread):
    """Exports one after the other until told to stop, at least one; notes the most memory the admin process used."""

    def __init__(self, system: System) -> None:
        super().__init__(daemon=True)
        worker = system.of("worker")[0]
        found = re.search(r'role=worker\.admin pid=(\d+) msg="admin listener', worker.text())
        assert found is not None, worker.tail()
        self._port, self._pid = worker.admin_port, int(found[1])
        self._ending = threading.Event()
        self.before = rss(self._pid)
        self.most, self.rows, self.bytes, self.took = self.before, 0, 0, []  # took: seconds, of complete ones

    def run(self) -> None:
        while not self.took or not self._ending.is_set():
            began, rows = time.monotonic(), 0
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
            connection.request("GET", f"/v1/admin/queues/{QUEUE}/export?format=csv",
                               headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            self.bytes = 0
            while part := answer.read(1 << 18):
                rows += part.count(b"\n")
                self.bytes += len(part)
                self.most = max(self.most, rss(self._pid))
            connection.close()
            self.rows = rows - 1  # the head
            self.took.append(elapsed(began))

    def end(self) -> None:
        self._ending.set()
        self.join(PATIENCE)
        assert not self.is_alive() and self.took, "an export did not end"


def turns(n: int, beside: bool) -> tuple[int, float, Exports | None]:
    """How many turns went wrong, and the p99 of the others in ms; beside exports if asked."""
    with running({QUEUE: {"capacity": 1} | CALM}, prepare=admin_file) as system:
        crowd = Crowd(system.of("worker")[0].http_port)
        try:
            crowd.do("join", TURNS + 1)
            crowd.do("open", TURNS)
            progress(f"{n} join behind them")
            fill(system, n)
            client = system.client()
            wait_until(lambda: client.get(f"/v1/queues/{QUEUE}").json["waiting"] == n + TURNS, PATIENCE,
                       "the worker knows all of them")
            progress(f"{TURNS} turns with {n} waiting" + (", beside exports" if beside else ""))
            exports = Exports(system) if beside else None
            if exports is not None:
                exports.start()
            lost, _, p99, *_ = crowd.do("turns", TURNS)
            if exports is not None:
                exports.end()
        finally:
            crowd.end()
    return int(lost), p99, exports


def measure(n: int) -> None:
    lost, p99, _ = turns(n, False)
    lost_beside, p99_beside, exports = turns(n, True)
    assert exports is not None
    wrong = {"wrong": 1} if exports.rows < n else {}
    emit("export", "export", "over the admin API", sum(exports.took) / len(exports.took), "s", "lower", n=n,
         note=f"CSV, {exports.rows} rows, {exports.bytes / 1e6:.0f} MB", **wrong)
    emit("export", "memory beyond that before", "admin process", (exports.most - exports.before) / 1e6, "MB", "lower", n=n,
         target=20)
    note = f"{TURNS} turns, one after the other, as in the group turn"
    for name, value, wrong_turns in (("alone", p99, lost), ("beside exports", p99_beside, lost_beside)):
        emit("export", "complete to admitted, p99", name, value, "ms", "lower", n=n, note=note,
             **({"wrong": wrong_turns} if wrong_turns else {}))
    emit("export", "complete to admitted, p99 longer by", "beside exports", max(0.0, p99_beside - p99), "ms", "lower",
         n=n, target=5)


for size in SIZES:
    measure(size)
