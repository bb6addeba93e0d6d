# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the worker, for the tests of the waiting page's script. It serves the real page, rendered by
page_tool, and answers requests with the state that the test sets, including failures that a real worker cannot
produce on demand.

The page waits for seconds and minutes: to ask again, to go on, to reload. `speed` makes its clock run faster, by a
script that comes before the page's own, so that no test has to wait so long."""
from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import queue
import re
import socket
import subprocess
import threading
import time
from email.utils import formatdate
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from page_clock import script, speed_of
from stand_in_server import QuietHandler
from waiting import patient

TOP = Path(__file__).resolve().parents[2]
#: Renders pages. It is built with the tests, and so with sanitizers.
TOOL = Path(os.environ.get("TELLERLINE_TEST_TOOLS", TOP / "build" / "asan" / "bin")).resolve() / "page_tool"


def run_tool(*args: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([str(TOOL), *args], check=True, capture_output=True, timeout=patient(30))


def page_tool(*args: str) -> bytes:
    return run_tool(*args).stdout


@functools.cache
def asset(path: str) -> bytes:
    return page_tool("asset", path)


@functools.cache
def rendered(language: str, **fields: Any) -> tuple[bytes, str]:
    """A page and its policy."""
    done = run_tool("page", language, *(f"{name}={value}" for name, value in fields.items()))
    return done.stdout, done.stderr.decode()


_SOME_TIME = int(time.time() * 1000)


class StandIn:
    """One queue, "concert", with one visitor. The test may change attributes at any time."""

    def __init__(self) -> None:
        self.view: dict[str, Any] = {}
        self.page: dict[str, Any] = {}  # further input for rendering the page
        self.refuse: int | None = None  # status code that status and events answer
        self.stream = "open"            # open, refused, silent
        self.streams = 0                # number of open streams
        self.streams_begun = 0
        self.statuses = 0
        self.status_times: list[float] = []  # when they were asked for, by the clock of this server
        self.retry_after: int | None = None  # seconds, with a refusal
        self.slow = 0.0                      # seconds that the second half of the page takes
        self.joins = 0
        self.edits: list[tuple[bytes, bytes]] = []  # what a broken script or a meddling proxy changes in the page
        self.allow_edits = False                    # does the policy allow what they made of the scripts?
        self.speed: float | None = None  # how fast the clocks of the page and of this server run
        self._since = time.time()
        self.asked: list[str] = []      # API requests, in order
        self._lock = threading.Lock()
        self._listeners: list[queue.Queue[bytes | None]] = []
        self._server: ThreadingHTTPServer | None = None
        self._port = socket.socket()    # holds the port while the server is stopped: nobody else gets it meanwhile
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._port.bind(("127.0.0.1", 0))
        self.port: int = self._port.getsockname()[1]
        self.waiting(1234)

    def now(self) -> float:
        """What the clock of this server says (seconds since 1970)."""
        return self._since + (time.time() - self._since) * (self.speed or 1)

    def hurry(self, speed: float = 20) -> None:
        """From the next page on, time passes so fast on a machine that is not slow."""
        self.speed = speed_of(speed)

    # ---- the visitor's state ----

    def waiting(self, position: int, **more: Any) -> None:
        self.push("position", {"queue": "concert", "visitor": "v1", "status": "waiting",
                               "position": position, "ahead": position - 1, "waiting": 5000,
                               "poll_after_ms": 1000, "eta_low": position // 4,
                               "eta_high": position // 3 + 20} | more)

    def admitted(self, target: str | None) -> None:
        view = {"queue": "concert", "visitor": "v1", "status": "active", "pass": "secret-pass",
                "expires_at": "2026-12-01T12:00:00Z", "poll_after_ms": 1000}
        self.push("admitted", view | ({"target_url": target} if target else {}))

    def ended(self, status: str, reason: str) -> None:
        self.push("ended", {"queue": "concert", "visitor": "v1", "status": status, "end_reason": reason})

    def push(self, event: str, data: dict[str, Any]) -> None:
        """Sends an event on every open stream. A view also becomes the answer of status."""
        if event != "notice":
            self.view = data
        message = f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()
        with self._lock:
            for listener in self._listeners:
                listener.put(message)

    # ---- serving ----

    @property
    def running(self) -> bool:
        return self._server is not None

    def start(self) -> None:
        stand_in = self

        class Handler(_Handler):
            state = stand_in

        self._server = _Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Closes the port and cuts every stream, as a restarting worker does."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        self.cut()

    def cut(self) -> None:
        """Ends every stream."""
        with self._lock:
            for listener in self._listeners:
                listener.put(None)

    def close(self) -> None:
        """For good."""
        self.stop()
        self._port.close()

    def listen(self) -> queue.Queue[bytes | None]:
        listener: queue.Queue[bytes | None] = queue.Queue()
        with self._lock:
            self._listeners.append(listener)
            self.streams += 1
            self.streams_begun += 1
        return listener

    def unlisten(self, listener: queue.Queue[bytes | None]) -> None:
        with self._lock:
            self._listeners.remove(listener)
            self.streams -= 1

    def render(self, language: str, query: dict[str, str]) -> tuple[bytes, str]:
        """The page and its policy."""
        view = self.view
        state = view["status"]
        if state == "expired" and view.get("end_reason") in ("absent", "unclaimed"):
            state = view["end_reason"]
        fields: dict[str, Any] = {"state": state, "visitor": "v1", "waiting_ttl_ms": 600000,
                                  "poll_after_ms": view.get("poll_after_ms", 1000)}
        for name, member in (("ahead", "ahead"), ("eta_low_s", "eta_low"), ("eta_high_s", "eta_high"),
                             ("target_url", "target_url")):
            if member in view:
                fields[name] = view[member]
        if "from" in query:
            fields["from"] = query["from"]
        fields |= self.page
        now = int(self.now() * 1000)
        if "opens_at_ms" in fields:
            page, policy = rendered(language, now_ms=now, **fields)
        else:  # the same page for all times, which differs in this one number
            page, policy = rendered(language, now_ms=_SOME_TIME, **fields)
            page = page.replace(f'data-now="{_SOME_TIME}"'.encode(), f'data-now="{now}"'.encode())
        for old, new in self.edits:
            assert page.count(old) == 1, old
            page = page.replace(old, new)
        if self.allow_edits:
            policy = re.sub(r"script-src [^;]*", "script-src 'unsafe-inline'", policy)
        return self._sped_up(page, policy) if self.speed else (page, policy)

    def _sped_up(self, page: bytes, policy: str) -> tuple[bytes, str]:
        """With the clock, which the policy allows. What reloads the page without a script knows no less than seconds."""
        clock = script(self.speed, self._since)
        page = page.replace(b"<meta charset", f"<script>{clock}</script><meta charset".encode(), 1)
        page = re.sub(rb'(<meta http-equiv="refresh" content=")\d+', rb"\g<1>1", page)
        if not self.allow_edits:
            digest = base64.b64encode(hashlib.sha256(clock.encode()).digest()).decode()
            policy = policy.replace("script-src ", f"script-src 'sha256-{digest}' ")
        return page, policy


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # beside the one that holds the port
        super().server_bind()



class _Handler(QuietHandler):
    protocol_version = "HTTP/1.1"
    state: StandIn

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate(self.state.now() if timestamp is None else timestamp, usegmt=True)

    def answer(self, status: int, body: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.state.slow and kind.startswith("text/html"):
            self.wfile.write(body[:len(body) // 2])
            time.sleep(self.state.slow)
            body = body[len(body) // 2:]
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_json(self, status: int, data: dict[str, Any], **headers: str) -> None:
        self.answer(status, json.dumps(data).encode(), "application/json", Cache_Control="no-store", **headers)

    def language(self, query: dict[str, str]) -> str:
        if "lang" in query:
            return query["lang"]
        for cookie in (self.headers["Cookie"] or "").split("; "):
            if cookie.startswith("tellerline_lang="):
                return cookie.partition("=")[2]
        return "en"

    def do_GET(self) -> None:
        try:
            if not self.state.running:  # a connection from before the stop
                raise ConnectionResetError
            self.route()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def route(self) -> None:
        address = urlsplit(self.path)
        if address.path.startswith("/v1/"):
            self.state.asked.append(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path == "/q/concert":
            language = self.language(query)
            page, policy = self.state.render(language, query)
            self.answer(200, page, "text/html; charset=utf-8",
                        Content_Security_Policy=policy, Cache_Control="no-store",
                        Set_Cookie=f"tellerline_lang={language}; Path=/; SameSite=Lax")
        elif address.path.startswith("/q/assets/"):
            kinds = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
            self.answer(200, asset(address.path), kinds[address.path.rpartition(".")[2]])
        elif address.path == "/target":
            self.answer(200, b"<!doctype html><title>target</title>in", "text/html")
        elif address.path == "/v1/queues/concert":
            self.answer_json(200, {"queue": "concert"})
        elif address.path == "/v1/queues/concert/status":
            self.status()
        elif address.path == "/v1/queues/concert/events":
            self.events()
        else:
            self.answer_json(404, {"status": 404})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path.startswith("/q/concert/join"):
            self.state.joins += 1
            self.state.waiting(5000)
        elif self.path.startswith("/q/concert/leave"):
            self.state.ended("left", "left")
        self.answer(303, b"", "text/plain", Location="/q/concert")

    def status(self) -> None:
        self.state.status_times.append(self.state.now())
        self.state.statuses += 1
        if self.state.refuse is not None:
            after = {} if self.state.retry_after is None else {"Retry-After": str(self.state.retry_after)}
            self.answer_json(self.state.refuse, {"type": "/problems/planted", "status": self.state.refuse}, **after)
        else:
            self.answer_json(200, self.state.view)

    def events(self) -> None:
        if self.state.refuse is not None or self.state.stream == "refused":
            self.answer_json(self.state.refuse or 503, {"status": 503})
            return
        listener = self.state.listen()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            if self.state.stream == "open":
                view = self.state.view
                kind = {"waiting": "position", "pending": "position", "active": "admitted"}.get(view["status"], "ended")
                self.wfile.write(f"event: {kind}\ndata: {json.dumps(view)}\n\n".encode())
            self.copy(listener)
        finally:
            self.state.unlisten(listener)

    def copy(self, listener: queue.Queue[bytes | None]) -> None:
        while True:
            try:
                message = listener.get(timeout=0.2)
            except queue.Empty:
                message = b": still here\n\n"  # also detects a closed connection
            if message is None:
                return
            if self.state.stream == "open" or message.startswith(b":"):
                self.wfile.write(message)
