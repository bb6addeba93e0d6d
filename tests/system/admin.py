# SPDX-License-Identifier: Apache-2.0
"""The admin API as tests use it: tokens, sessions of browsers, and the description of its calls."""
from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from http_client import Answer, Client
from tellerline import TOP, Program, System
from waiting import patient

DOCUMENT = TOP / "docs" / "integrators" / "openapi-admin.yaml"
METHODS = ("get", "post", "put", "patch", "delete")
ADMIN_TOKEN = "the-admin-token-of-the-tests"
ROLES = ("viewer", "operator", "admin")
CSRF = "X-Tellerline-CSRF"


def admin_file(system: System) -> None:
    """Before the start: the file with the admin token."""
    file = system.directory / "admin.token"
    file.write_text(ADMIN_TOKEN + "\n")
    file.chmod(0o600)
    system.settings("secrets", {"token_key": str(system.directory / "token.key")})


class Admin(Client):
    """A caller of the admin API of one worker."""

    def __init__(self, worker: Program, token: str | None = ADMIN_TOKEN, source: str = "127.0.0.1") -> None:
        super().__init__(worker.admin_port, timeout=60, source=source)
        self.token = token

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """path: below /v1/admin."""
        data = None if body is None else json.dumps(body).encode()
        return self.request(method, f"/v1/admin/{path}", data, self.token, headers)

    def done(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.call(method, path, body)
        assert 200 <= answer.status < 300, (method, path, answer.status, answer.body[:500])
        return answer.json if answer.body else None

    def make_token(self, name: str, role: str) -> str:
        return self.done("POST", "tokens", {"name": name, "role": role})["token"]


class Browser(Admin):
    """One that signs in, and has a cookie instead of a token."""

    def __init__(self, worker: Program, token: str = ADMIN_TOKEN, host: str | None = None) -> None:
        super().__init__(worker, None)
        self.host = host or f"127.0.0.1:{worker.admin_port}"
        self.cookie, self.csrf = "", ""
        self.signed_in = self.sign_in(token)

    def sign_in(self, token: str, headers: dict[str, str] | None = None) -> Answer:
        answer = self.call("POST", "session", {"token": token}, headers)
        if answer.status == 200:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
            self.csrf = answer.json["csrf"]
        return answer

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """With what a page of ours sends; headers replace or, if empty, remove it."""
        fields = {"Host": self.host, "Origin": f"http://{self.host}", "Sec-Fetch-Site": "same-origin",
                  "Cookie": self.cookie, CSRF: self.csrf} | (headers or {})
        return super().call(method, path, body, {name: value for name, value in fields.items() if value})


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each call in the document."""
    for path, item in yaml.safe_load(DOCUMENT.read_text())["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def target(path: str, queue: str = "bank") -> str:
    """The path with something in the place of each parameter."""
    return re.sub(r"\{\w+\}", "nothing", path.replace("{queue}", queue))


class EventReader:
    """Server-sent events of the admin API: kind and data."""

    def __init__(self, worker: Program, path: str, headers: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", worker.admin_port, timeout=patient(60))
        self._connection.request("GET", f"/v1/admin/{path}", headers=headers)
        self._answer = self._connection.getresponse()
        self.status = self._answer.status

    def next(self) -> tuple[str, Any] | None:
        """The next event; None: the stream has ended."""
        kind, data = "", ""
        while True:
            line = self._answer.readline().decode()
            if not line:
                return None
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data = value
            elif not name and kind:
                return kind, json.loads(data)

    def close(self) -> None:
        self._answer.close()
        self._connection.close()
