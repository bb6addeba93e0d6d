# SPDX-License-Identifier: Apache-2.0
"""A small web server for the tests' own pages."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LocalPages(ThreadingHTTPServer):
    """Answers with the result of its handler."""

    daemon_threads = True

    def __init__(self, handler: type[LocalPage]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    @contextmanager
    def serving(self) -> Iterator[None]:
        thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            thread.join()
            self.server_close()


class LocalPage(BaseHTTPRequestHandler):
    def answer(self, text: str) -> None:
        """HTML, without its first line."""
        body = f"<!doctype html>{text}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Discards the access log, to keep the tests' output clean."""
