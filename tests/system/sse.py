# SPDX-License-Identifier: Apache-2.0
"""A reader of event streams (text/event-stream) that sees every field, comments included."""
from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from typing import Any, Callable

from waiting import PATIENCE, patient


@dataclass
class Event:
    """One block of a stream. kind: an event's name, "retry" or "comment"."""
    kind: str
    data: str
    seconds: float  # monotonic time of arrival

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.data)


class Ended(Exception):
    """The stream is over."""


class EventStream:
    """One event stream over a connection of its own.

    narrow: small socket buffers, so that the worker soon notices a reader who pauses.
    asked: called when the request is sent, before the answer is read.
    """

    def __init__(self, port: int, path: str, ticket: str | None = None,
                 headers: dict[str, str] | None = None, narrow: bool = False,
                 asked: Callable[[], object] | None = None) -> None:
        self._socket = socket.socket()
        self._socket.settimeout(patient(PATIENCE))
        if narrow:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self._socket.connect(("127.0.0.1", port))
        fields = {"Host": "localhost", "Accept": "text/event-stream"} | (headers or {})
        if ticket is not None:
            fields["Authorization"] = f"Bearer {ticket}"
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._buffer = b""
        self.received = 0  # bytes after the head
        self.began = time.monotonic()
        self._socket.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        if asked is not None:
            asked()
        head = self._until(b"\r\n\r\n", patient(PATIENCE)).decode("latin-1").split("\r\n")
        self.status = int(head[0].split(" ")[1])
        self.headers = {name.lower(): value.strip()
                        for name, _, value in (line.partition(":") for line in head[1:])}

    def next(self, seconds: float | None = None) -> Event:
        """Returns the next block of any kind. Raises Ended at the end of the stream. seconds: for a block that may stay
        away; without it, a limit for this machine."""
        block = self._until(b"\n\n", patient(PATIENCE) if seconds is None else seconds).decode()
        self.received += len(block) + 2
        kind, data = "message", ""
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "":
                kind, data = "comment", value
            elif name == "retry":
                kind, data = "retry", value
            elif name == "event":
                kind = value
            elif name == "data":
                data += value
            else:
                raise AssertionError(f"a field the specification does not know: {line!r}")
        return Event(kind, data, time.monotonic())

    def event(self, *kinds: str, seconds: float | None = None) -> Event:
        """Returns the next event of one of these kinds and skips others."""
        until = time.monotonic() + (patient(PATIENCE) if seconds is None else seconds)
        while True:
            event = self.next(max(0.01, until - time.monotonic()))
            if event.kind in kinds:
                return event

    def rest(self, seconds: float | None = None) -> list[Event]:
        """All blocks up to the end of the stream."""
        events = []
        until = time.monotonic() + (patient(PATIENCE) if seconds is None else seconds)
        try:
            while True:
                events.append(self.next(max(0.01, until - time.monotonic())))
        except Ended:
            return events

    def close(self) -> None:
        self._socket.close()

    def _until(self, end: bytes, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        while end not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f"nothing more within {seconds:.1f} s after {self._buffer!r}")
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                continue
            except ConnectionResetError:
                data = b""
            if not data:
                raise Ended(f"after {self._buffer!r}")
            self._buffer += data
        block, _, self._buffer = self._buffer.partition(end)
        return block
