#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How a phone's app keeps a place in a Tellerline queue: one moment of the app's life per call.

    native_client.py --server http://localhost:8080 --queue demo --state place.json MOMENT

The moments are foreground (the app is looked at: it joins, or returns to its place, and waits until its turn), refresh
(the system lets the app run for some seconds in the background), push (the app's own push message says that it is the
visitor's turn), bought and left. Only the file with the ticket lives on between two calls, as an app's storage does when
the system ends the app. It prints a line of JSON for each view. Exit status: 0 fine, 1 the place is gone, 2 no answer in time.
"""
from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

HELD = 25               # seconds that a question in the foreground waits for news
PAUSE_MIN, PAUSE_MAX = 1.0, 30.0
ENDS = ("completed", "left", "expired", "removed", "moved")


class Gone(Exception):
    """The place is no longer known, or may not be had: offer to join again."""


class Place:
    def __init__(self, server: str, queue: str, state: Path) -> None:
        self.server, self.path, self.state = urlsplit(server), f"/v1/queues/{queue}", state
        self.ticket = json.loads(state.read_text())["ticket"] if state.exists() else ""

    def keep(self, ticket: str) -> None:
        """Replaces the file in one step: the system may end the app at any time."""
        self.ticket = ticket
        part = self.state.with_suffix(".new")
        part.touch(mode=0o600)
        part.write_text(json.dumps({"ticket": ticket}))
        os.replace(part, self.state)

    def forget(self) -> None:
        self.ticket = ""
        self.state.unlink(missing_ok=True)

    def ask(self, method: str, call: str, deadline: float, held: int = 0) -> dict:
        """One call, repeated until there is an answer. The waits grow, are as long as the server asks for, and are spread."""
        pause = PAUSE_MIN
        while True:
            status, answer, retry_after = self._try(method, call, held)
            if status in (200, 202):
                if "ticket" in answer:
                    self.keep(answer["ticket"])
                return answer
            passing = not str(answer.get("type", "")).startswith("/problems/") or status == 429 or status >= 500
            if not passing:
                raise Gone(answer.get("detail") or answer["title"])
            wait = max(random.uniform(0.3, 1) * pause, retry_after * random.uniform(1, 1.5))
            if time.monotonic() + wait > deadline:
                raise TimeoutError(f"no answer in time; the last status was {status}")
            time.sleep(wait)
            pause = min(PAUSE_MAX, 2 * pause)

    def _try(self, method: str, call: str, held: int) -> tuple[int, dict, float]:
        """The status (0: no answer), the answer and Retry-After."""
        connect = http.client.HTTPSConnection if self.server.scheme == "https" else http.client.HTTPConnection
        connection = connect(self.server.netloc, timeout=held + 10)
        headers = {"Accept": "application/json"}
        if self.ticket:
            headers["Authorization"] = f"Bearer {self.ticket}"
        try:
            connection.request(method, self.path + call + (f"?wait={held}s" if held else ""), headers=headers)
            reply = connection.getresponse()
            body = reply.read()
            later = reply.headers.get("Retry-After", "")
            return reply.status, json.loads(body), float(later) if later.isdigit() else 0.0
        except (OSError, http.client.HTTPException, ValueError):
            return 0, {}, 0.0
        finally:
            connection.close()


def foreground(place: Place, deadline: float) -> dict:
    """The app is looked at. Sockets may be dead after a sleep, so it asks first, and then holds a question."""
    view = place.ask("GET", "/status", deadline) if place.ticket else place.ask("POST", "/join", deadline)
    show(view)
    while view["status"] not in ("active", "passthrough", *ENDS):
        if time.monotonic() > deadline:
            raise TimeoutError("still waiting; the app goes into the background")
        begun = time.monotonic()
        view = place.ask("GET", "/status", deadline, held=max(1, min(HELD, int(deadline - begun))))
        show(view)
        if time.monotonic() < begun + 1:    # as_of, or a status that does not hold a question
            time.sleep(random.uniform(0.5, 1) * view.get("poll_after_ms", 5000) / 1000)
    return claim(place, deadline) if view["status"] == "active" else view


def refresh(place: Place, deadline: float) -> dict:
    """Some seconds in the background, which the app asks the system for well within waiting_ttl: the question counts as
    presence. If the view says `active`, the session is claimed, too: the app shows a notification."""
    return show(place.ask("GET", "/status", deadline))


def claim(place: Place, deadline: float) -> dict:
    return show(place.ask("POST", "/renew", deadline))


def show(view: dict) -> dict:
    print(json.dumps({name: value for name, value in view.items() if name != "ticket"}), flush=True)
    return view


def main() -> int:
    moments = {"foreground": foreground, "refresh": refresh, "push": claim,
               "bought": lambda place, deadline: show(place.ask("POST", "/complete", deadline)),
               "left": lambda place, deadline: show(place.ask("POST", "/leave", deadline))}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="http://localhost:8080", help="(default: %(default)s)")
    parser.add_argument("--queue", default="demo", help="(default: %(default)s)")
    parser.add_argument("--state", type=Path, default=Path("place.json"), help="the app's storage (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=600, help="how long the app may run (default: %(default)s)")
    parser.add_argument("moment", choices=moments)
    options = parser.parse_args()
    place = Place(options.server, options.queue, options.state)
    if options.moment != "foreground" and not place.ticket:
        print("there is no place", file=sys.stderr)
        return 1
    try:
        view = moments[options.moment](place, time.monotonic() + options.seconds)
    except Gone as reason:
        place.forget()
        print(reason, file=sys.stderr)
        return 1
    except TimeoutError as reason:
        print(reason, file=sys.stderr)
        return 2
    if view["status"] in ENDS:
        place.forget()
    return 0


if __name__ == "__main__":
    sys.exit(main())
