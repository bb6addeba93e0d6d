# SPDX-License-Identifier: Apache-2.0
"""The gateways of deploy/gateways as tests start them: the real programs, with the shipped configurations."""
from __future__ import annotations

import base64
import hashlib
import os
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from http_client import CONNECTION_TROUBLE, Answer, Client
from shared_stack import SharedSystem
from tellerline import CALM, PATIENCE, TOP, System, free_port
from waiting import patient, wait_until

GATEWAYS = TOP / "deploy" / "gateways"


# ---- the guarded site ----

class Server:
    """An HTTP server in threads of its own, until it is closed."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Site(Server):
    """Echoes and records every request. Only admitted requests may reach it, and open ones."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str | None]] = []  # method, path, visitor as named by the gateway
        self.headers: list[list[tuple[str, str]]] = []  # of the same requests
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                visitor = self.headers.get("X-Tellerline-Visitor")
                site.requests.append((self.command, self.path, visitor))
                site.headers.append(self.headers.items())
                body = f"the site: {self.path}".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                if "?cache=" in self.path:
                    self.send_header("Cache-Control", self.path.partition("?cache=")[2])
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer  # noqa: N815

            def log_message(self, format: str, *args) -> None:  # noqa: A002
                pass

        super().__init__(Handler)


class TunnelSite:
    """A site that switches to another protocol, or opens a tunnel, at each request that asks for it; `unasked`: at every
    one. It records requests, and what it gets through tunnels."""

    def __init__(self) -> None:
        self.unasked = False
        self.requests: list[list[str]] = []  # the lines of each head
        self.tunnelled: list[bytes] = []
        site = self

        class Handler(socketserver.StreamRequestHandler):
            def head(self) -> list[str]:
                lines = []
                while line := self.rfile.readline().decode("latin-1").strip():
                    lines.append(line)
                return lines

            def handle(self) -> None:
                with suppress(ConnectionError):
                    self.serve()

            def serve(self) -> None:
                while lines := self.head():
                    site.requests.append(lines)
                    names = [line.partition(":")[0].lower() for line in lines[1:]]
                    asked = [line.partition(":")[2].strip() for line in lines[1:] if line.lower().startswith("upgrade:")]
                    if lines[0].startswith("CONNECT "):
                        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                    elif asked or site.unasked:
                        key = "".join(line.partition(": ")[2] for line in lines if line.lower().startswith("sec-websocket-key:"))
                        accept = base64.b64encode(hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest())
                        self.wfile.write(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                         f"Upgrade: {(asked or ['h2c'])[0]}\r\n"
                                         f"Sec-WebSocket-Accept: {accept.decode()}\r\n\r\n".encode())
                    else:
                        assert "transfer-encoding" not in names
                        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nthe site")
                        continue
                    while got := self.request.recv(65536):
                        site.tunnelled.append(got)
                        self.wfile.write(b"through the tunnel: " + got)
                    return

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class StandIn(Server):
    """Answers as a worker that admits everybody, and records what it gets."""

    def __init__(self, port: int = 0) -> None:
        self.headers: list[dict[str, str]] = []
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802
                if not self.path.startswith("/readyz"):
                    stand_in.headers.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(204)
                self.send_header("X-Tellerline-Visitor", "somebody")
                self.end_headers()

            def log_message(self, format: str, *args) -> None:  # noqa: A002
                pass

        super().__init__(Handler, port)


# ---- the gateways ----

def adapt(text: str, changes: dict[str, str]) -> str:
    """The configuration with the addresses of this test. Every text to replace must be present."""
    for old, new in changes.items():
        assert old in text, f"{old!r} is not in the configuration any more"
        text = text.replace(old, new)
    return text


@dataclass
class Addresses:
    gateway: int
    workers: list[int]
    site: int

    def lines(self, line: str) -> str:
        """The line of a configuration for each worker; {i}: its number, {port}: its port."""
        return "\n".join(line.format(i=i, port=port) for i, port in enumerate(self.workers))


def nginx(directory: Path, ports: Addresses, changes: dict[str, str]) -> list[str]:
    text = adapt((GATEWAYS / "nginx" / "tellerline.conf").read_text(), {
        "listen 80;": f"listen 127.0.0.1:{ports.gateway};",
        "    server 127.0.0.1:8080;": ports.lines("    server 127.0.0.1:{port};"),
        "127.0.0.1:3000": f"127.0.0.1:{ports.site}",
        "root /etc/nginx;": f"root {GATEWAYS};",
        "/var/log/nginx/tellerline.log": f"{directory}/access.log",
        "/var/log/nginx/error.log": f"{directory}/error.log",
    } | changes)
    (directory / "tellerline.conf").write_text(text)
    folders = "".join(f"{kind}_temp_path {directory}/{kind};\n"
                      for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;\n" if os.geteuid() == 0 else ""
    (directory / "nginx.conf").write_text(
        f"{user}daemon off;\nworker_processes 2;\npid {directory}/nginx.pid;\nerror_log stderr;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{folders}include {directory}/tellerline.conf;\n}}\n")
    return ["nginx", "-e", "stderr", "-p", str(directory), "-c", str(directory / "nginx.conf")]


def haproxy(directory: Path, ports: Addresses, changes: dict[str, str]) -> list[str]:
    checks = f"abns@tellerline-checks-{ports.gateway}"
    lua = adapt((GATEWAYS / "haproxy" / "tellerline.lua").read_text(), {"abns@tellerline-checks": checks})
    (directory / "tellerline.lua").write_text(lua)
    text = adapt((GATEWAYS / "haproxy" / "haproxy.cfg").read_text(), {
        "/etc/haproxy/tellerline.lua": str(directory / "tellerline.lua"),
        "/etc/haproxy/tellerline-away.html": str(GATEWAYS / "tellerline-away.html"),
        "bind :80\n": f"bind 127.0.0.1:{ports.gateway}\n",
        "abns@tellerline-checks": checks,
        "    server worker1 127.0.0.1:8080": ports.lines("    server worker{i} 127.0.0.1:{port}"),
        "127.0.0.1:3000": f"127.0.0.1:{ports.site}",
        **({} if os.geteuid() == 0 else  # only root can become another user
           {"    user haproxy\n": "", "    group haproxy\n": "", "    chroot /var/lib/haproxy\n": ""}),
    } | changes)
    (directory / "haproxy.cfg").write_text(text)
    return ["haproxy", "-db", "-f", str(directory / "haproxy.cfg")]


def caddy(directory: Path, ports: Addresses, changes: dict[str, str]) -> list[str]:
    text = adapt((GATEWAYS / "caddy" / "Caddyfile").read_text(), {
        "{\n\t# The log has paths": "{\n\tadmin off\n\t# The log has paths",
        "http://shop.example {": f"http://localhost:{ports.gateway} {{\n\tbind 127.0.0.1",
        "to 127.0.0.1:8080": "to " + " ".join(f"127.0.0.1:{port}" for port in ports.workers),
        "127.0.0.1:3000": f"127.0.0.1:{ports.site}",
        "root /etc/caddy": f"root {GATEWAYS}",
    } | changes)
    (directory / "Caddyfile").write_text(text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(directory / "Caddyfile")]


COMMANDS = {"nginx": nginx, "haproxy": haproxy, "caddy": caddy}


def find_program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip(f"the package {name} is not installed")
    return found


@dataclass
class Browser:
    """A visitor's browser: cookies, and the address of the current page."""

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.client = Client(self.port)

    def request(self, method: str, path: str, headers: dict[str, str] | None = None,
                body: bytes | None = None) -> Answer:
        fields = {"Host": f"localhost:{self.port}", **self.cookie_header(), **(headers or {})}
        answer = self.client.request(method, path, body, headers=fields)
        cookie = answer.headers.get("set-cookie")
        if cookie:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    def cookie_header(self) -> dict[str, str]:
        pairs = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {"Cookie": pairs} if pairs else {}

    def get(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        return self.request("GET", path, headers)

    def send_raw(self, path: str, headers: list[tuple[str, str]]) -> int:
        """GET with these headers, also repeated ones, on a connection of its own. Returns the status."""
        lines = [("Host", f"localhost:{self.port}"), *self.cookie_header().items(), *headers]
        if "Connection" not in dict(headers):
            lines.append(("Connection", "close"))
        text = f"GET {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines) + "\r\n"
        with socket.create_connection(("127.0.0.1", self.port), timeout=patient(15)) as connection:
            connection.sendall(text.encode())
            return int(connection.makefile("rb").readline().split()[1])

    def path_of(self, address: str) -> str:
        """The request target of an address, which must be on this server."""
        parts = urlsplit(address)
        assert (parts.scheme, parts.netloc) == ("http", f"localhost:{self.port}"), address
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def act(self, verb: str) -> dict:
        answer = self.request("POST", f"/v1/queues/shop/{verb}")
        assert answer.status == 200, answer
        return answer.json

    def join(self) -> str:
        """Returns the status."""
        return self.act("join")["status"]

    def status(self) -> str:
        return self.get("/v1/queues/shop/status").json["status"]

    def is_inside(self, path: str = "/") -> bool:
        """Whether the visitor is let in. Any answer other than in or out fails."""
        answer = self.get(path)
        if answer.status == 200 and answer.body.startswith(b"the site: "):
            return True
        assert answer.status == 303, answer
        return False


@dataclass
class Place:
    """A gateway, Tellerline, and the site behind them."""

    system: System | None  # None: a stand-in for the worker
    site: Site
    port: int
    pid: int  # of the gateway
    log: Path
    browsers: list[Browser] = field(default_factory=list)

    def browser(self) -> Browser:
        self.browsers.append(Browser(self.port))
        return self.browsers[-1]

    def inside(self) -> Browser:
        browser = self.browser()
        browser.join()
        wait_until(lambda: browser.status() == "active", PATIENCE, "active")
        return browser

    def empty(self) -> None:
        """All browsers of a test give their places back, and what the site has recorded is forgotten."""
        for browser in self.browsers:
            if "tellerline_shop" in browser.cookies:
                browser.request("POST", "/v1/queues/shop/leave")
            browser.client.close()
        self.browsers.clear()
        wait_until(lambda: self.system.waiting("shop") + self.system.active("shop") == 0, PATIENCE, "nobody is left")
        self.site.requests.clear()
        self.site.headers.clear()

    @contextmanager
    def settings(self, now: dict[str, str], then: dict[str, str]) -> Iterator[None]:
        """Other settings of the queue for a while."""
        self.system.set("shop", *(f"{name}={value}" for name, value in now.items()))
        yield
        self.system.set("shop", *(f"{name}={value}" for name, value in then.items()))


class Shops:
    """Starts Tellerline, a site and one kind of gateway, and stops what it started."""

    def __init__(self, kind: str, start: Callable[..., System]) -> None:
        self._program = find_program(kind)
        self.kind, self._start = kind, start
        self.folder = Path(tempfile.mkdtemp(prefix=f"tellerline-{kind}-"))
        self._site = Site()
        self._places: list[Place] = []
        self._processes: list[subprocess.Popen[bytes]] = []

    def __call__(self, start_site: Callable[[System], int] | None = None, workers: int = 1,
                 changes: dict[str, str] | None = None, **settings) -> Place:
        """The queue "shop" behind the gateway. start_site(system): starts another site than Site and returns its port.
        changes: texts of the gateway's configuration, and what stands there instead."""
        port = free_port()
        address = f"http://localhost:{port}"
        queue = CALM | {"capacity": 1, "target_url": f"{address}/"} | settings
        more = {} if workers == 1 else {"workers": workers}
        system = self._start({"shop": queue}, settings={"http": {"public_url": address}}, **more)
        return self.gateway(system, start_site(system) if start_site else self._site.port, port, changes)

    @property
    def site_port(self) -> int:
        return self._site.port

    def alone(self, worker: int, changes: dict[str, str] | None = None, site_port: int | None = None) -> Place:
        """The gateway without Tellerline, between a stand-in for the worker and the site."""
        return self._run(None, Addresses(free_port(), [worker], site_port or self._site.port), changes or {})

    def gateway(self, system: System, site_port: int, port: int, changes: dict[str, str] | None = None) -> Place:
        """One more gateway, from this port to the site."""
        workers = [worker.http_port for worker in system.of("worker")]
        return self._run(system, Addresses(port, workers, site_port), changes or {})

    def _run(self, system: System | None, ports: Addresses, changes: dict[str, str]) -> Place:
        port = ports.gateway
        directory = self.folder / str(port)
        directory.mkdir()
        log = directory / "gateway.log"
        command = COMMANDS[self.kind](directory, ports, changes)
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", self._program, *command[1:]], cwd=directory,
                env=os.environ | {"HOME": str(directory), "XDG_DATA_HOME": str(directory),
                                  "XDG_CONFIG_HOME": str(directory)},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self._processes.append(process)

        def serves() -> bool:
            assert process.poll() is None, log.read_text(errors="replace")
            try:
                return Browser(port).get("/public/ready").status in (200, 404)
            except CONNECTION_TROUBLE:
                return False

        wait_until(serves, PATIENCE, f"{self.kind} serves")
        self._site.requests.clear()
        self._site.headers.clear()
        self._places.append(Place(system, self._site, port, process.pid, log))
        return self._places[-1]

    def close(self) -> None:
        for place in self._places:
            for browser in place.browsers:
                browser.client.close()
        for process in self._processes:
            process.terminate()
            try:
                process.wait(patient(10))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._site.close()
        for place in self._places:
            print(f"---- {self.kind}\n{place.log.read_text(errors='replace')[-4000:]}")
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(params=list(COMMANDS))
def open_shop(request: pytest.FixtureRequest, start: Callable[..., System]) -> Iterator[Shops]:
    """open_shop(capacity=..., ...): the queue "shop" behind a gateway; once for each kind of gateway."""
    shops = Shops(request.param, start)
    yield shops
    shops.close()


class Standing:
    """One kind of gateway before a stack of programs, for several tests; another one after a test that failed."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._shops: Shops | None = None
        self._stack: SharedSystem | None = None
        self._place: Place | None = None

    def place(self) -> Place:
        if self._place is None:
            self._shops = Shops(self.kind, self._start)
            self._place = self._shops()
        return self._place

    def _start(self, queues: dict[str, dict], settings: dict[str, dict]) -> SharedSystem:
        self._stack = SharedSystem(queues, {"worker": 1, "dispatcher": 1, "admitter": 1, "expirer": 1}, settings, {})
        self._stack.start()
        return self._stack

    def check(self) -> None:
        assert self._place is not None and self._stack is not None
        self._place.empty()
        self._stack.check_test(["shop"])

    def close(self, fine: bool) -> None:
        shops, stack, self._shops, self._stack, self._place = self._shops, self._stack, None, None, None
        try:
            if shops is not None:
                shops.close()
            if stack is not None and fine:
                fine = False
                stack.finish()
                fine = True
        finally:
            if stack is not None:
                stack.close(keep=not fine)


@pytest.fixture(scope="module", params=list(COMMANDS))
def standing(request: pytest.FixtureRequest) -> Iterator[Standing]:
    one = Standing(request.param)
    yield one
    one.close(fine=True)


@pytest.fixture
def place(standing: Standing, request: pytest.FixtureRequest) -> Iterator[Place]:  # noqa: F811
    """The queue "shop", of one place, behind a gateway that the tests of a file share; once for each kind of gateway.
    At the end of a test its browsers leave."""
    assert request.node.get_closest_marker("together"), "a file with a shared stack has the mark `together`"
    failed = request.session.testsfailed
    yield standing.place()
    fine = False
    try:
        if request.session.testsfailed == failed:
            standing.check()
            fine = True
    finally:
        if not fine:
            standing.close(fine=False)


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    worker = StandIn()
    yield worker
    worker.close()
