# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a challenge service (Turnstile, hCaptcha, reCAPTCHA): it verifies tokens, and serves a widget."""
from __future__ import annotations

import json
import ssl
import threading
from urllib.parse import parse_qs

from stand_in_server import QuietHandler, StandInServer

#: What the service knows of its customer.
SECRET = "the-secret-of-the-site"
SITE_KEY = "site-key-1"
HOST = "shop.example"

#: A script as the providers have it: it fills the element with a frame and gives a token by itself.
WIDGET = """
window.turnstile = {
  render: function (place, options) {
    var frame = document.createElement('iframe');
    frame.src = document.querySelector('script[src*="/widget.js"]').src.replace('/widget.js', '/frame');
    frame.title = 'check';
    place.appendChild(frame);
    this.options = options;
    this.give();
    return 1;
  },
  reset: function (id) { this.give(); },
  give: function () {
    var options = this.options;
    var given = Number(sessionStorage.getItem('given') || 0) + 1;
    sessionStorage.setItem('given', given);
    sessionStorage.setItem('site key', options.sitekey);
    setTimeout(function () { options.callback((given === 1 ? 'bad-' : 'good-') + 'browser-' + Math.random()); }, 0);
  }
};
tellerlineReady();
"""

#: The same of reCAPTCHA 3, which shows nothing.
SCORE = """
window.grecaptcha = {
  ready: function (go) { setTimeout(go, 0); },
  execute: function (key, options) {
    var given = Number(sessionStorage.getItem('given') || 0) + 1;
    sessionStorage.setItem('given', given);
    return Promise.resolve((given === 1 ? 'low-' : 'good-') + options.action + '-' + key + '-' + Math.random());
  }
};
"""


class ChallengeService(StandInServer):
    """Says what a token says of itself: `good-1` is good once, `bad-1` is not; see `judge`."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(_Handler, port)
        self.secret = SECRET
        self.forms: list[dict[str, str]] = []  # received
        self.peers: set[tuple[str, int]] = set()  # of the connections
        self.under_way = self.most = 0  # questions that have no answer yet; the most at one time
        self.lock = threading.Lock()
        self._used: set[str] = set()

    def forget(self) -> None:
        """Everything is as at the start."""
        self.secret = SECRET
        self.forms.clear()
        self.peers.clear()
        self.forget_tokens()
        self.most = self.under_way
        self.go_on.clear()

    def forget_tokens(self) -> None:
        self._used.clear()

    def judge(self, form: dict[str, str]) -> tuple[int, bytes]:
        token, kind = form["response"], form["response"].partition("-")[0]
        with self.lock:
            again = token in self._used
            self._used.add(token)
        answer: dict = {"success": True, "hostname": HOST, "challenge_ts": "2026-11-22T12:00:00Z", "error-codes": [],
                        "score": 0.4 if kind == "low" else 0.5}
        if kind in ("slow", "stuck"):
            self.go_on.wait(60)
        if kind == "error":
            return 500, b"<h1>Sorry</h1>"
        if kind == "garbage":
            return 200, b"{\"success\": tru\xff"
        if kind == "huge":
            return 200, json.dumps(answer | {"more": "x" * 20000}).encode()
        if kind == "elsewhere":
            answer["hostname"] = "other.example"
        if form["secret"] != self.secret:
            answer = {"success": False, "error-codes": ["invalid-input-secret"]}
        elif kind == "bad":
            answer = {"success": False, "error-codes": ["invalid-input-response"]}
        elif again:
            answer = {"success": False, "error-codes": ["timeout-or-duplicate"]}
        return 200, json.dumps(answer).encode()

    def with_tls(self, certificate: str, key: str) -> ChallengeService:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        return self


class _Handler(QuietHandler):
    protocol_version = "HTTP/1.1"
    server: ChallengeService

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body, strict_parsing=True).items()}
        service = self.server
        with service.lock:
            service.forms.append(form)
            service.peers.add(self.client_address)
            service.under_way += 1
            service.most = max(service.most, service.under_way)
        try:
            status, answer = service.judge(form)
        finally:
            with service.lock:
                service.under_way -= 1
        self._send(status, "application/json", answer)

    def do_GET(self) -> None:
        if self.path.startswith("/widget.js"):
            self._send(200, "text/javascript", WIDGET.encode())
        elif self.path == f"/score.js?hl=en&render={SITE_KEY}":
            self._send(200, "text/javascript", SCORE.encode())
        else:
            self._send(200, "text/html", b"<!doctype html><title>check</title>")

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
