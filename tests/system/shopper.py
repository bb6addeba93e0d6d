# SPDX-License-Identifier: Apache-2.0
"""How long a queue takes to answer joins."""
from __future__ import annotations

import threading
import time

from actors import Visits
from http_client import CONNECTION_TROUBLE, Client, Visitor
from waiting import patient


class Shopper(Visits):
    """Joins a queue and completes again and again, and notes how long each answer took."""

    def __init__(self, port: int, queue: str, stop: threading.Event) -> None:
        super().__init__(stop, f"shopper-{queue}")
        self._client = Client(port, timeout=patient(5))
        self._clients, self._queue = [self._client], queue
        self.answers: list[tuple[float, float, int]] = []  # when, how long it took (s), status

    def _visit(self) -> None:
        visitor, began = Visitor(self._client, self._queue), time.monotonic()
        try:
            answer = self._client.post(f"{visitor.path}/join")
            self.answers.append((began, time.monotonic() - began, answer.status))
            if answer.status in (200, 202):
                self._client.post(f"{visitor.path}/leave", ticket=answer.json["ticket"])
        except CONNECTION_TROUBLE:
            return
        self._stop_asked.wait(0.01)

    def numbered(self, since: float = 0.0) -> list[float]:
        return sorted(took for began, took, status in self.answers if status == 200 and began >= since)


def p99(times: list[float]) -> float:
    return times[int(len(times) * 0.99)]
