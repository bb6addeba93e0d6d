"""A stand-in for a protected site: it says how loaded it is, or misbehaves."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site(ThreadingHTTPServer):
    """Answers GET /load with its load as JSON and /metrics as Prometheus text. `mood` says how: well, hangs, garbage,
    error, redirect, huge."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.port = self.server_address[1]
        self.load, self.mood = 0.1, "well"
        self.asked = 0
        self.go_on = threading.Event()  # what `hangs` waits for

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

    @contextmanager
    def serving(self) -> Iterator[Site]:
        thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self.go_on.set()
            self.shutdown()
            thread.join()
            self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """An admitter that ends a connection is not a failure of the test."""


class _Handler(BaseHTTPRequestHandler):
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

    def log_message(self, *_: object) -> None:
        """Silent."""
