# SPDX-License-Identifier: Apache-2.0
"""What the stand-ins for other people's services have in common: a server of HTTP that a test starts and ends."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class StandInServer(ThreadingHTTPServer):
    """Serves on loopback, each connection in a thread. `go_on` is what answers that hang wait for."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.port = self.server_address[1]
        self.go_on = threading.Event()

    @contextmanager
    def serving(self) -> Iterator[Self]:
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
        """A client that ends a connection is not a failure of the test."""


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that keeps its log out of the test's output."""

    def log_message(self, *_: object) -> None:
        """Silent."""
