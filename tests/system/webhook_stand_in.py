# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a site that takes webhooks: it verifies each request, or misbehaves."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stand_in_server import QuietHandler, StandInServer
from waiting import PATIENCE, wait_until


class Receiver(StandInServer):
    """Keeps the events of all genuine requests. `mood` says how it answers: well, hangs, error, redirect."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        super().__init__(_Handler, port)
        self.secret_file = folder / f"webhook-{self.port}.secret"
        self.mood = "well"
        self.asked = 0
        self.requests: list[tuple[dict[str, str], bytes]] = []  # those it took

    def webhook(self, name: str, events: list[str], **more: Any) -> dict[str, Any]:
        """Its settings, as the configuration has them."""
        return {"name": name, "url": f"http://127.0.0.1:{self.port}/webhooks", "secret_file": str(self.secret_file),
                "events": events} | more

    def events(self, *types: str) -> list[dict[str, Any]]:
        """Each event it was told of (of these types), once, in the order of the first time."""
        found: dict[str, dict[str, Any]] = {}
        for _, body in list(self.requests):
            for event in json.loads(body)["events"]:
                if not types or event["type"] in types:
                    found.setdefault(event["id"], event)
        return list(found.values())

    def types(self) -> list[str]:
        return [event["type"] for event in self.events()]

    def wait_for(self, *types: str) -> None:
        """Until it was told exactly of these, in this order."""
        wait_until(lambda: self.types() == list(types), PATIENCE, f"{types} are told, after {self.types()}", every=0.05)

    def admitted(self) -> list[str]:
        return [visitor for event in self.events("admitted") for visitor in event["visitors"]]


class _Handler(QuietHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked += 1
        mood = self.server.mood
        if mood == "hangs":
            self.server.go_on.wait(60)
            mood = self.server.mood
        if mood == "well":
            self.server.requests.append((dict(self.headers), body))
        self.send_response({"error": 500, "redirect": 307}.get(mood, 204))
        if mood == "redirect":
            self.send_header("Location", f"http://127.0.0.1:{self.server.port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()
