# SPDX-License-Identifier: Apache-2.0
"""How long a queue takes to answer joins, and to admit."""
from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager

from actors import Visits
from http_client import CONNECTION_TROUBLE, Client, Visitor
from waiting import patient


class Shopper(Visits):
    """Joins a queue and leaves again and again, and notes how long each answer took, and each admission."""

    def __init__(self, port: int, queue: str, stop: threading.Event, timeout: float = 5.0) -> None:
        super().__init__(stop, f"shopper-{queue}")
        self._client = Client(port, timeout=patient(timeout))
        self._clients, self._queue = [self._client], queue
        self.answers: list[tuple[float, float, int]] = []  # when, how long it took (s), status
        self.admissions: list[tuple[float, float]] = []  # when it joined, how long it took until it was active (s)

    def _visit(self) -> None:
        visitor, began = Visitor(self._client, self._queue), time.monotonic()
        try:
            answer = self._client.post(f"{visitor.path}/join")
        except CONNECTION_TROUBLE:
            return
        self.answers.append((began, time.monotonic() - began, answer.status))
        if answer.status in (200, 202):
            visitor.ticket = answer.json["ticket"]
            while answer.status == 200 and not self._stop_asked.wait(0.005):
                answer = self._client.get(f"{visitor.path}/status", ticket=visitor.ticket)
                if answer.json.get("status") == "active":
                    self.admissions.append((began, time.monotonic() - began))
                    break
            self._client.post(f"{visitor.path}/leave", ticket=visitor.ticket)
        self._stop_asked.wait(0.01)

    def admitted(self, since: float = 0.0, until: float = float("inf")) -> list[float]:
        return sorted(took for began, took in self.admissions if since <= began < until)

    def numbered(self, since: float = 0.0, until: float = float("inf")) -> list[float]:
        return sorted(took for began, took, status in self.answers if status == 200 and since <= began < until)


def p99(times: list[float]) -> float:
    return times[int(len(times) * 0.99)]


@contextmanager
def shopping(port: int, queues: Mapping[Hashable, str], timeout: float = 5.0) -> Iterator[dict]:
    """A shopper for each of these queues at one worker, until the end."""
    stop = threading.Event()
    shoppers = {key: Shopper(port, queue, stop, timeout) for key, queue in queues.items()}
    for shopper in shoppers.values():
        shopper.start()
    try:
        yield shoppers
    finally:
        stop.set()
        for shopper in shoppers.values():
            shopper.join()
