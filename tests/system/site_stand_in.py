# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a protected site: it says how loaded it is, or misbehaves."""
from __future__ import annotations

from stand_in_server import QuietHandler, StandInServer


class Site(StandInServer):
    """Answers GET /load with its load as JSON and /metrics as Prometheus text. `mood` says how: well, hangs, garbage,
    error, redirect, huge."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(_Handler, port)
        self.load, self.mood = 0.1, "well"
        self.asked = 0

    def answer(self, path: str) -> tuple[int, bytes]:
        if self.mood == "hangs":
            self.go_on.wait(60)
        if self.mood == "garbage":
            return 200, b"{\"load\": tru\xff"
        if self.mood == "huge":
            return 200, b"#" + b"x" * (2 << 20)
        if self.mood == "error":
            return 500, b'{"pool": {"busy": 0}}'
        if self.mood == "redirect":
            return 302, b""
        if path == "/metrics":
            return 200, f'# TYPE busy gauge\nbusy{{p="a"}} {self.load * 100}\nbusy{{p="b"}} {self.load * 100}\n'.encode()
        return 200, f'{{"pool": {{"busy": {self.load * 200}}}}}'.encode()


class _Handler(QuietHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked += 1
        status, body = self.server.answer(self.path)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.port}/load")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
