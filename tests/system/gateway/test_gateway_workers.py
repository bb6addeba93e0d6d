# SPDX-License-Identifier: Apache-2.0
"""Several workers behind a gateway: one that dies, and one that hangs, is not noticed by those who are inside."""
from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack

from gateways import Browser, Place, Shops, open_shop  # noqa: F401 - a fixture
from waiting import PATIENCE, wait_until


class Shopper(threading.Thread):
    """Asks for guarded pages and posts to them, with a place, one request after the other."""

    def __init__(self, place: Place, cookies: dict[str, str]) -> None:
        super().__init__()
        self.answers: list[int] = []
        self._browser = Browser(place.port, dict(cookies))
        self._over = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.is_set():
            method, body = ("POST", b"seat=1") if len(self.answers) % 3 == 2 else ("GET", None)
            try:
                self.answers.append(self._browser.request(method, f"/checkout?{len(self.answers)}", body=body).status)
            except Exception as error:  # noqa: BLE001 - reported by the test
                self.answers.append(0)
                print(f"no answer: {error!r}")

    def close(self) -> None:
        self._over.set()
        self.join()
        self._browser.client.close()


def test_a_worker_dies_and_another_hangs(open_shop: Shops):  # noqa: F811
    place = open_shop(workers=3)
    inside = place.inside()
    dies, hangs, _ = place.system.of("worker")
    with ExitStack() as running:
        shoppers = [Shopper(place, inside.cookies) for _ in range(4)]
        for shopper in shoppers:
            running.callback(shopper.close)

        def each_has(more: int) -> None:
            """That many answers each, from now on; of all there ever were, each is good."""
            wanted = [len(shopper.answers) + more for shopper in shoppers]
            wait_until(lambda: all(len(shopper.answers) >= n for shopper, n in zip(shoppers, wanted)), PATIENCE,
                       "they go on")
            bad = [status for shopper in shoppers for status in shopper.answers if status != 200]
            assert not bad, bad

        each_has(25)
        dies.kill()
        each_has(50)
        for pid in hangs.children():
            os.kill(pid, signal.SIGSTOP)
        try:
            each_has(25)
        finally:
            for pid in hangs.children():
                os.kill(pid, signal.SIGCONT)
