"""Visitors for tests that cause failures. They join, wait, are served and leave, and record what they saw."""
from __future__ import annotations

import random
import threading
import time

from history import History, Stay
from http_client import CONNECTION_TROUBLE, Answer, Client

#: Answers that ask the client to retry later. Any other unexpected answer is recorded as an oddity.
TRY_AGAIN = (502, 503)


class Actor(threading.Thread):
    """One client that plays one visitor after another. Once told to stop, it finishes the current visitor."""

    def __init__(self, number: int, seed: int, ports: list[int], queue: str, history: History,
                 stop: threading.Event, deadline: float) -> None:
        super().__init__(name=f"actor-{number}", daemon=True)
        self._random = random.Random(f"{seed}/{number}")
        self._clients = [Client(port, timeout=5) for port in ports]
        self._path = f"/v1/queues/{queue}"
        self._history, self._stop_asked, self._deadline = history, stop, deadline
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set():
                self._visit()
        except BaseException as error:  # noqa: B036 - handed to the test, which fails with it
            self.error = error
        finally:
            for client in self._clients:
                client.close()

    # ---- one visitor ----

    def _visit(self) -> None:
        joined = self._join()
        if joined is None:
            return
        stay, ticket = joined
        if self._random.random() < 0.2:
            ticket = self._join_again(stay, ticket)
        leaves_after = self._random.uniform(0, 1) if self._random.random() < 0.15 else None
        began = time.monotonic()
        while True:
            sent = time.monotonic()
            answer = self._ask("GET", "status", ticket)
            status = answer.json["status"] if answer.status == 200 else None
            if status == "waiting":
                stay.last_waiting = sent
                if leaves_after is not None and sent - began > leaves_after:
                    self._end(stay, ticket, "leave")
                    return
            elif status == "active":
                stay.first_active = time.monotonic()
                self._pause(0.0, 0.15)
                self._end(stay, ticket, "complete")
                return
            else:
                self._odd(stay, "status", answer)
                return
            self._pause(0.02, 0.1)

    def _join(self) -> tuple[Stay, str] | None:
        """Joins as a new visitor. None when the outcome is unknown."""
        ticket = None
        while True:
            try:
                answer = (self._some_client().post(f"{self._path}/join") if ticket is None
                          else self._some_client().get(f"{self._path}/status", ticket))
            except CONNECTION_TROUBLE:
                if ticket is None:
                    self._history.unanswered()
                    self._pause(0.05, 0.2)
                    return None
                self._pause(0.05, 0.2)
                continue
            if answer.status == 200:
                ticket = answer.json.get("ticket", ticket)
                return self._history.acknowledged(ticket), ticket
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

    def _join_again(self, stay: Stay, ticket: str) -> str:
        """Joins again with the ticket. The answer must be the place already held."""
        answer = self._ask("POST", "join", ticket)
        if answer.status == 202:
            return ticket
        if answer.status != 200 or answer.json["status"] not in ("waiting", "active"):
            self._odd(stay, "join again", answer)
        return ticket

    def _end(self, stay: Stay, ticket: str, verb: str) -> None:
        """Leaves or completes. Repeats the request until it is acknowledged."""
        answer = self._ask("POST", verb, ticket)
        if answer.status == 409 and verb == "complete":
            self._odd(stay, verb, answer)
            return
        # A visitor who leaves may have been admitted, and may have completed, at the same moment.
        ends = {"leave": ("left",), "complete": ("completed",)}[verb]
        if answer.status == 200 and answer.json["status"] in ends:
            stay.end = answer.json["status"]
        else:
            self._odd(stay, verb, answer)

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
        if time.monotonic() > self._deadline:
            raise AssertionError(f"{self.name}: no answer to {verb} before the end of the test")

    def _odd(self, stay: Stay, verb: str, answer: Answer) -> None:
        self._history.odd(f"{verb} of place {stay.place} ({stay.visitor}): {answer.status} "
                          f"{answer.body[:300]!r}")
