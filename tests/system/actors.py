# SPDX-License-Identifier: Apache-2.0
"""Visitors for tests that cause failures. They join, wait, are served and leave, and record what they saw.

Some poll, some listen to an event stream. Times are those of the machine's clock, which is Redis's as well.
"""
from __future__ import annotations

import random
import threading
import time
from typing import Any

from history import FORGOTTEN, History, Stay
from http_client import CONNECTION_TROUBLE, Answer, Client
from sse import Ended, EventStream
from waiting import patient

#: Answers that ask the client to retry later. Any other unexpected answer is recorded as an oddity.
TRY_AGAIN = (502, 503)


def _newest(stay: Stay, view: dict[str, Any], ticket: str) -> str:
    """The ticket that the view carries, or the one of before."""
    if "ticket" not in view:
        return ticket
    stay.saw_ticket(view["ticket"])
    return view["ticket"]


class Visits(threading.Thread):
    """One visit after another, until told to stop. An error is handed to the test, which fails with it."""

    def __init__(self, stop: threading.Event, name: str | None = None) -> None:
        super().__init__(name=name, daemon=True)
        self._stop_asked = stop
        self._clients: list[Client] = []  # closed at the end
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set():
                self._visit()
        except BaseException as error:  # noqa: B036 - handed to the test
            self.error = error
        finally:
            for client in self._clients:
                client.close()

    def _visit(self) -> None:
        raise NotImplementedError


class Actor(Visits):
    """One client that plays one visitor after another. Once told to stop, it finishes the current visitor."""

    def __init__(self, number: int, seed: int, ports: list[int], queue: str, history: History,
                 stop: threading.Event, deadline: float, listens: bool = True,
                 served: tuple[float, float] = (0.0, 0.15), leavers: float = 0.15, noshows: float = 0.0) -> None:
        super().__init__(stop, f"actor-{number}")
        self._random = random.Random(f"{seed}/{number}")
        self._clients = [Client(port, timeout=patient(5)) for port in ports]
        self._path = f"/v1/queues/{queue}"
        self._history, self.deadline = history, deadline
        self._ports, self._listens, self._streams = ports, listens, 0
        self._served, self._leavers = served, leavers
        self._noshows = noshows  # of an overbooked queue: these never come; the others ask the gate

    # ---- one visitor ----

    def _visit(self) -> None:
        joined = self._join()
        if joined is None:
            return
        stay, ticket = joined
        if self._random.random() < self._noshows:
            stay.end = "unclaimed"
            self._pause(0.05, 0.3)
            return
        if self._random.random() < 0.2:
            ticket = self._join_again(stay, ticket)
        leaves_at = time.time() + self._random.uniform(0, 1) if self._random.random() < self._leavers else None
        listens = self._listens and leaves_at is None and self._random.random() < 0.4
        while stay.end is None:
            if listens and stay.first_active is None:
                ticket = self._listen(stay, ticket)
            sent = time.time()
            answer = self._ask("GET", "status", ticket)
            received = time.time()
            if answer.status == 200:
                ticket = _newest(stay, answer.json, ticket)
            if answer.status == 200 and answer.json.get("called"):
                stay.turns.append(received)
            elif answer.status == 200 and answer.json["status"] == "waiting":
                stay.saw_position(sent, received, answer.json["position"])
                if leaves_at is not None and sent > leaves_at:
                    self._end(stay, ticket, "leave")
            elif answer.status == 200 and answer.json["status"] == "active":
                stay.saw_active(received, answer.json)
                if self._is_let_in(stay, ticket):
                    self._pause(*self._served)
                    self._end(stay, ticket, "complete")
            elif answer.status != 202 or not self._history.losses:
                self._other_end(stay, "status", answer)
            self._pause(0.02, 0.1)
            self._check_time("status")

    def _is_let_in(self, stay: Stay, ticket: str) -> bool:
        """Where more are called than fit, only the gate knows who may come in."""
        if self._noshows == 0:
            return True
        answer = self._ask("GET", "check", ticket)
        if answer.status == 204:
            stay.saw_gate_open(time.time())
        return answer.status == 204

    def _listen(self, stay: Stay, ticket: str) -> str:
        """Listens to an event stream until it ends or tells of the admission. Returns the newest ticket."""
        self._streams += 1
        try:
            stream = EventStream(self._random.choice(self._ports), f"{self._path}/events", ticket)
        except (*CONNECTION_TROUBLE, Ended, ValueError):
            return ticket
        try:
            while stream.status == 200:
                event = stream.next(5)
                view = event.json if event.kind in ("position", "admitted", "ended") else {}
                status, now = view.get("status"), time.time()
                if view.get("visitor", stay.visitor) != stay.visitor:
                    self._history.odd(f"{stay.visitor} at {stay.place} was told on a stream: {event.data[:300]}")
                ticket = _newest(stay, view, ticket)
                if view.get("called"):
                    stay.turns.append(now)
                elif event.kind == "position" and status == "waiting":
                    stay.saw_position(now, now, view["position"], self._streams)
                elif status == "active":
                    stay.saw_active(now, view)
                    break
                elif event.kind == "ended":
                    break  # the status says the same, and is judged
                self._check_time("events")
        except (Ended, AssertionError, OSError):
            pass  # the program that served the stream is gone, or silent
        finally:
            stream.close()
        return ticket

    def _join(self) -> tuple[Stay, str] | None:
        """Joins as a new visitor. None when the outcome is unknown."""
        ticket, asked = None, time.time()
        while True:
            try:
                answer = (self._enter() if ticket is None
                          else self._some_client().get(f"{self._path}/status", ticket))
            except CONNECTION_TROUBLE:
                if ticket is None:
                    self._history.unanswered()
                    self._pause(0.05, 0.2)
                    return None
                self._pause(0.05, 0.2)
                continue
            if answer.status == 200:
                if "ticket" in answer.json:
                    ticket = answer.json["ticket"]
                    return self._history.acknowledged(ticket, asked, time.time()), ticket
                if answer.json.get("end_reason") in ("unclaimed", "absent"):
                    self._history.unanswered()  # its turn came and went before it could be told of its place
                else:
                    self._history.odd(f"join: no ticket: {answer.body[:200]!r}")
                return None
            if answer.status == 202:  # accepted, not yet numbered: poll with the pending ticket
                ticket = answer.json["ticket"]
            elif answer.status in TRY_AGAIN:
                if ticket is None:
                    self._history.unanswered()  # the worker may have sent the command before it answered 503
                    self._pause(0.05, 0.2)
                    return None
            else:
                self._history.odd(f"join: {answer.status} {answer.body[:200]!r}")
                return None
            self._check_time("join")
            self._pause(0.05, 0.2)

    def _enter(self) -> Answer:
        return self._some_client().post(f"{self._path}/join")

    def _join_again(self, stay: Stay, ticket: str) -> str:
        """Joins again with the ticket. The answer must be the place already held."""
        answer = self._ask("POST", "join", ticket)
        if answer.status == 202:
            return ticket
        if answer.status != 200 or answer.json["status"] not in ("waiting", "active"):
            self._other_end(stay, "join again", answer)
            return ticket
        ticket = _newest(stay, answer.json, ticket)
        stay.saw_pass(answer.json)
        return ticket

    def _end(self, stay: Stay, ticket: str, verb: str) -> None:
        """Leaves or completes. Repeats the request until it is acknowledged."""
        stay.gives_back(time.time())
        answer = self._ask("POST", verb, ticket)
        # A visitor who leaves may have been admitted, and may have completed, at the same moment.
        ends = {"leave": ("left",), "complete": ("completed",)}[verb]
        if answer.status == 200 and answer.json["status"] in ends:
            stay.end, stay.ended_at = answer.json["status"], time.time()
        else:
            self._other_end(stay, verb, answer)

    def _other_end(self, stay: Stay, verb: str, answer: Answer) -> None:
        """An answer that only a line gives that has lost something."""
        if self._history.lost(stay) is None:
            inside = f", inside for {time.time() - stay.first_active:.1f} s" if stay.first_active is not None else ""
            self._history.odd(f"{verb} of place {stay.place} ({stay.visitor}{inside}): {answer.status} {answer.body[:300]!r}")
            stay.end, stay.ended_at = "odd", time.time()
        elif answer.status == 409 and verb == "complete":
            return  # admitted, and waiting again
        elif answer.status in (404, 409) or answer.status == 200 and answer.json["status"] not in (
                "waiting", "active", "pending"):
            stay.end, stay.ended_at = FORGOTTEN, time.time()
            stay.refusal = f"{verb}: {answer.status} {answer.body[:300]!r}"

    # ---- asking ----

    def _ask(self, method: str, verb: str, ticket: str) -> Answer:
        """Asks a random worker until one gives an answer that is not `later`."""
        while True:
            self._check_time(verb)
            try:
                answer = self._some_client().request(method, f"{self._path}/{verb}", ticket=ticket)
            except CONNECTION_TROUBLE:
                self._pause(0.05, 0.2)
                continue
            if answer.status not in TRY_AGAIN:
                return answer
            self._pause(0.05, 0.2)

    def _some_client(self) -> Client:
        return self._random.choice(self._clients)

    def _pause(self, least: float, most: float) -> None:
        time.sleep(self._random.uniform(least, most))  # a visitor's own pace, not a wait for anything

    def _check_time(self, verb: str) -> None:
        if time.monotonic() > self.deadline:
            raise AssertionError(f"{self.name}: no answer to {verb} before the end of the test")
