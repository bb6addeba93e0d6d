# SPDX-License-Identifier: Apache-2.0
"""HTTP clients: a simple one on http.client, and a fast asynchronous one for crowds."""
from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from waiting import PATIENCE, patient, wait_until


@dataclass
class Answer:
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    def problem(self, status: int) -> dict[str, Any]:
        """Asserts that the answer is a problem (RFC 9457) with this status, and returns it."""
        assert self.status == status, f"expected {status}, got {self.status}: {self.body[:300]!r}"
        assert self.headers["content-type"].startswith("application/problem+json"), self.headers
        problem = self.json
        assert problem["status"] == status and problem["title"] and problem["type"], problem
        return problem


#: A connection idle for this long (seconds) is reopened, before the worker closes it.
IDLE = 10.0


class Client:
    """One keep-alive connection to a worker; one request at a time. timeout: on a machine that is not slow. source: the
    address it comes from."""

    def __init__(self, port: int, timeout: float = 15.0, source: str = "127.0.0.1") -> None:
        self.port = port
        self._used = 0.0
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patient(timeout),
                                                      source_address=(source, 0))

    def close(self) -> None:
        self._connection.close()

    def send(self, method: str, path: str, body: bytes | None = None, ticket: str | None = None,
             headers: dict[str, str] | None = None) -> None:
        """Sends a request without waiting for its answer."""
        fields = dict(headers or {})
        if ticket is not None:
            fields["Authorization"] = f"Bearer {ticket}"
        if body is not None:
            fields.setdefault("Content-Type", "application/json")
        if time.monotonic() - self._used > IDLE:
            self._connection.close()
        try:
            self._connection.request(method, path, body, fields)
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise

    def receive(self) -> Answer:
        try:
            response = self._connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        self._used = time.monotonic()
        names = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, names, data)

    def request(self, method: str, path: str, body: bytes | None = None,
                ticket: str | None = None, headers: dict[str, str] | None = None) -> Answer:
        self.send(method, path, body, ticket, headers)
        return self.receive()

    def get(self, path: str, ticket: str | None = None, **more) -> Answer:
        return self.request("GET", path, ticket=ticket, **more)

    def post(self, path: str, body: bytes | None = None, ticket: str | None = None,
             **more) -> Answer:
        return self.request("POST", path, body, ticket, **more)


def redeem(client: Client, queue: str, code: str, device: str = "") -> Answer:
    """Redeems the code of a hand-over."""
    body = {"code": code} | ({"device": device} if device else {})
    return client.post(f"/v1/queues/{queue}/move", json.dumps(body).encode())


def redeem_by_page(client: Client, action: str, code: str, device: str = "a", headers: dict[str, str] | None = None) -> Answer:
    """The same as the form of the page does. action: where it goes."""
    return client.post(action, urlencode({"code": code, "device": device}).encode(),
                       headers={"Content-Type": "application/x-www-form-urlencoded"} | (headers or {}))


#: The errors that a client of a killed program may see.
CONNECTION_TROUBLE = (OSError, http.client.HTTPException)


class Visitor:
    """A visitor of one queue: a ticket and the last view."""

    def __init__(self, client: Client, queue: str, ticket: str | None = None) -> None:
        self.client = client
        self.path = f"/v1/queues/{queue}"
        self.ticket = ticket
        self.view: dict[str, Any] = {}

    def join(self) -> "Visitor":
        """Joins. If the place is not known at once (202), polls until it is."""
        answer = self.client.post(f"{self.path}/join", ticket=self.ticket)
        if answer.status == 202:
            pending = answer.json["ticket"]
            answer = wait_until(
                lambda: (now := self.client.get(f"{self.path}/status", ticket=pending)).status != 202 and now,
                PATIENCE, "the place is known")
        return self._take(answer)

    def status(self, client: Client | None = None) -> dict[str, Any]:
        self._take((client or self.client).get(f"{self.path}/status", ticket=self.ticket))
        return self.view

    def leave(self) -> dict[str, Any]:
        return self._act("leave")

    def complete(self) -> dict[str, Any]:
        return self._act("complete")

    def renew(self) -> dict[str, Any]:
        return self._act("renew")

    def is_active(self) -> bool:
        return self.status()["status"] == "active"

    def _act(self, verb: str) -> dict[str, Any]:
        """Repeats the request while the outcome is unknown. The request is idempotent."""
        def known() -> Answer | None:
            answer = self.client.post(f"{self.path}/{verb}", ticket=self.ticket)
            unknown = answer.status == 503 and answer.json["type"] == "/problems/unknown-outcome"
            return None if unknown else answer

        return self._take(wait_until(known, PATIENCE, f"the outcome of {verb} is known")).view

    def _take(self, answer: Answer) -> "Visitor":
        assert answer.status == 200, f"{answer.status}: {answer.body[:300]!r}"
        self.view = answer.json
        self.ticket = self.view.get("ticket", self.ticket)
        return self


class AsyncConnection:
    """One keep-alive connection of a crowd: just enough HTTP/1.1 for Tellerline's answers."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def request(self, method: str, path: str, ticket: str | None = None) -> Answer:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        assert self._reader is not None
        bearer = f"Authorization: Bearer {ticket}\r\n" if ticket else ""
        length = "Content-Length: 0\r\n" if method == "POST" else ""
        self._writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{bearer}{length}\r\n".encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {}
        for line in head[1:-2]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(int(head[0].split(" ")[1]), headers, body)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None


async def share_out(port: int, connections: int, items: Iterable[Any],
                    work: Callable[[AsyncConnection, Any], Awaitable[None]]) -> None:
    """Processes `items` over this many connections at once."""
    rest = iter(items)

    async def one() -> None:
        connection = AsyncConnection(port)
        try:
            for item in rest:
                await work(connection, item)
        finally:
            connection.close()

    await asyncio.gather(*(one() for _ in range(connections)))


def ready(port: int) -> bool:
    """Whether a worker at this port is ready."""
    client = Client(port)
    try:
        return client.get("/readyz").status == 200
    except CONNECTION_TROUBLE:
        return False
    finally:
        client.close()
