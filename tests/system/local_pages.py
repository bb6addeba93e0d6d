# SPDX-License-Identifier: Apache-2.0
"""A small web server for the tests' own pages."""
from __future__ import annotations

from stand_in_server import QuietHandler, StandInServer


class LocalPages(StandInServer):
    """Answers with the result of its handler."""

    def __init__(self, handler: type[LocalPage]) -> None:
        super().__init__(handler)
        self.url = f"http://127.0.0.1:{self.port}"


class LocalPage(QuietHandler):
    def answer(self, text: str) -> None:
        """HTML, without its first line."""
        body = f"<!doctype html>{text}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
