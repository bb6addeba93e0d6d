# SPDX-License-Identifier: Apache-2.0
"""A shop of the tests' own, whose pages use tellerline.js. Tellerline is under the same origin: the shop passes on what
goes to it, and may answer in its place."""
from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from local_pages import LocalPage, LocalPages
from page_clock import script, speed_of
from tellerline import TOP
from waiting import patient

EXAMPLES = TOP / "docs" / "integrators" / "examples"
SCRIPT = "/q/assets/tellerline.js"

EVENTS = ("view", "admitted", "ended", "notice", "trouble", "live", "full", "solving", "challenge", "refused")

#: A page that records what it is told.
RECORDER = """<title>recorder</title><link rel=icon href="data:,">%(policy)s%(clock)s<script src="%(server)s%(script)s"></script>
<script>
var told = [];
var line = Tellerline.line({queue: 'shop', server: '%(server)s'});
%(events)s.forEach(function (name) {
  line.on(name, function (value) { told.push([name, value === undefined ? null : value, line.now()]); });
});
</script>"""


@dataclass
class Reply:
    """What the shop answers instead of Tellerline."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


#: The connection ends without an answer.
CUT = Reply(0)


class EmbeddingSite(LocalPages):
    def __init__(self) -> None:
        super().__init__(_Page)
        self.worker = 0                     # the port of Tellerline
        self.queue = "shop"
        self.asked: list[tuple[float, str]] = []  # when, and method and address, of what goes to Tellerline
        self.streams = 0                    # open now
        self.answers: Callable[[str, str], Reply | None] = lambda method, path: None
        self.no_cookies = False
        self.speed: float | None = None     # how fast the clock of the recorder runs
        self._since = time.time()

    def hurry(self, speed: float = 20) -> None:
        """From the next recorder on, time passes so fast in it on a machine that is not slow. Not for Tellerline."""
        self.speed = speed_of(speed)

    def seconds(self, seconds: float) -> float:
        """How long so many seconds of the recorder take."""
        return seconds / (self.speed or 1)

    def times(self, part: str) -> list[float]:
        """When such requests came (seconds)."""
        return [when for when, what in self.asked if part in what]

    def page(self, path: str) -> str:
        """/NAME: that example, /recorder; behind it "?" for Tellerline at this address, and "!" for no web workers."""
        server = f"http://127.0.0.1:{self.worker}" if path.endswith("?") else ""
        policy = ('<meta http-equiv="Content-Security-Policy" content="worker-src \'none\'">' if path.endswith("!")
                  else "")
        name = path.strip("/?!")
        if name == "recorder":
            clock = f"<script>{script(self.speed, self._since)}</script>" if self.speed else ""
            return RECORDER % {"clock": clock, "policy": policy, "server": server, "script": SCRIPT,
                               "events": list(EVENTS)}
        text = (EXAMPLES / f"{name}.html").read_text()
        for old, new in [(f'src="{SCRIPT}"', f'src="{server}{SCRIPT}"'), ("SERVER = ''", f"SERVER = '{server}'"),
                         ("queue: 'demo'", f"queue: '{self.queue}'"), ("<!doctype html>\n", "")]:
            assert text.count(old) == 1, f"{name}.html has no {old!r}"
            text = text.replace(old, new)
        return text


class _Page(LocalPage):
    server: EmbeddingSite
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.startswith(("/v1/", "/q/")):
            self._pass_on()
        elif self.path == "/favicon.ico":
            self._send(404, [], b"")
        else:
            self.answer(self.server.page(self.path))

    def do_POST(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.asked.append((time.monotonic(), f"{self.command} {self.path}"))
        reply = self.server.answers(self.command, self.path)
        if reply == CUT:
            self.close_connection = True
            return
        if reply is not None:
            self._send(reply.status, list(reply.headers.items()), reply.body)
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("connection", "host")}
        headers["Host"] = self.headers["Host"]
        connection = http.client.HTTPConnection("127.0.0.1", self.server.worker, timeout=patient(120))
        try:
            connection.request(self.command, self.path, body or None, headers)
            upstream = connection.sock
            answer = connection.getresponse()
            given = [(name, value) for name, value in answer.getheaders()
                     if name.lower() not in ("connection", "transfer-encoding", "content-length")
                     and not (self.server.no_cookies and name.lower() == "set-cookie")]
            if answer.getheader("Content-Type", "").startswith("text/event-stream"):
                threading.Thread(target=self._end_with_browser, args=(upstream,), daemon=True).start()
                self._stream(answer, given)
            else:
                self._send(answer.status, given, answer.read())
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            connection.close()

    def _end_with_browser(self, upstream: socket.socket) -> None:
        """Ends the stream from the worker when the browser has closed its own; else only the next event would tell."""
        try:
            self.connection.recv(1, socket.MSG_PEEK)
            upstream.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # both have ended

    def _send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, answer: http.client.HTTPResponse, headers: list[tuple[str, str]]) -> None:
        self.close_connection = True
        self.send_response_only(answer.status)
        for name, value in [*headers, ("Connection", "close")]:
            self.send_header(name, value)
        self.end_headers()
        self.server.streams += 1
        try:
            while piece := answer.read1(65536):
                self.wfile.write(piece)
                self.wfile.flush()
        finally:
            self.server.streams -= 1
