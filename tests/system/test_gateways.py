"""The gateway configurations of deploy/gateways, each in its real gateway, between a browser and a site."""
from __future__ import annotations

import html
import http.client
import json
import os
import posixpath
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from http_client import CONNECTION_TROUBLE, Answer, Client
from tellerline import CALM, PATIENCE, TOP, System, free_port
from test_store_trouble import STORE_TROUBLE
from waiting import one_of, wait_until

GATEWAYS = TOP / "deploy" / "gateways"

#: A page deep inside the site, with the parts of an address that redirects often lose.
DEEP_LINK = "/concert/7%2F8?seat=A%2012&lang=ko&return=%2Fq%2Fother&name=%EA%B9%80"


# ---- the guarded site ----

class Site:
    """Echoes and records every request. Only admitted requests may reach it."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str | None]] = []  # method, path, visitor as named by the gateway
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                visitor = self.headers.get("X-Tellerline-Visitor")
                site.requests.append((self.command, self.path, visitor))
                body = f"the site: {self.path}".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer  # noqa: N815

            def log_message(self, format: str, *args) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


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
    worker: int
    site: int


def nginx(directory: Path, ports: Addresses) -> list[str]:
    text = adapt((GATEWAYS / "nginx" / "tellerline.conf").read_text(), {
        "listen 80;": f"listen 127.0.0.1:{ports.gateway};",
        "127.0.0.1:8080": f"127.0.0.1:{ports.worker}",
        "127.0.0.1:3000": f"127.0.0.1:{ports.site}",
    })
    (directory / "tellerline.conf").write_text(text)
    folders = "".join(f"{kind}_temp_path {directory}/{kind};\n"
                      for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;\n" if os.geteuid() == 0 else ""
    (directory / "nginx.conf").write_text(
        f"{user}daemon off;\nworker_processes 2;\npid {directory}/nginx.pid;\nerror_log stderr;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{folders}include {directory}/tellerline.conf;\n}}\n")
    return ["nginx", "-e", "stderr", "-p", str(directory), "-c", str(directory / "nginx.conf")]


def haproxy(directory: Path, ports: Addresses) -> list[str]:
    text = adapt((GATEWAYS / "haproxy" / "haproxy.cfg").read_text(), {
        "/etc/haproxy/tellerline.lua": str(GATEWAYS / "haproxy" / "tellerline.lua"),
        "bind :80\n": f"bind 127.0.0.1:{ports.gateway}\n",
        "127.0.0.1:8080": f"127.0.0.1:{ports.worker}",
        "127.0.0.1:3000": f"127.0.0.1:{ports.site}",
    })
    (directory / "haproxy.cfg").write_text(text)
    return ["haproxy", "-db", "-f", str(directory / "haproxy.cfg")]


def caddy(directory: Path, ports: Addresses) -> list[str]:
    text = adapt((GATEWAYS / "caddy" / "Caddyfile").read_text(), {
        "http://shop.example {": f"http://localhost:{ports.gateway} {{\n\tbind 127.0.0.1",
        "127.0.0.1:8080": f"127.0.0.1:{ports.worker}",
        "127.0.0.1:3000": f"127.0.0.1:{ports.site}",
    })
    (directory / "Caddyfile").write_text("{\n\tadmin off\n}\n" + text)
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

    system: System
    site: Site
    port: int
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


@pytest.fixture(params=list(COMMANDS))
def open_shop(request: pytest.FixtureRequest, start: Callable[..., System]
              ) -> Iterator[Callable[..., Place]]:
    """open_shop(capacity=..., ...): the queue "shop" behind a gateway.

    start_site(system): starts another site than Site and returns its port."""
    program = find_program(request.param)
    directory = Path(tempfile.mkdtemp(prefix=f"tellerline-{request.param}-"))
    log = directory / "gateway.log"
    site = Site()
    places: list[Place] = []
    processes: list[subprocess.Popen[bytes]] = []

    def open_one(start_site: Callable[[System], int] | None = None, **settings) -> Place:
        port = free_port()
        address = f"http://localhost:{port}"
        queue = CALM | {"capacity": 1, "target_url": f"{address}/"} | settings
        system = start({"shop": queue}, settings={"http": {"public_url": address}})
        worker = system.of("worker")[0].http_port
        site_port = start_site(system) if start_site else site.port
        command = COMMANDS[request.param](directory, Addresses(port, worker, site_port))
        with log.open("wb") as out:
            processes.append(subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", program, *command[1:]], cwd=directory,
                env=os.environ | {"HOME": str(directory), "XDG_DATA_HOME": str(directory),
                                  "XDG_CONFIG_HOME": str(directory)},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out))
        places.append(Place(system, site, port, log))

        def serves() -> bool:
            assert processes[-1].poll() is None, log.read_text(errors="replace")
            try:
                return Browser(port).get("/public/ready").status in (200, 404)
            except CONNECTION_TROUBLE:
                return False

        wait_until(serves, PATIENCE, f"{request.param} serves")
        site.requests.clear()
        return places[-1]

    yield open_one
    for place in places:
        for browser in place.browsers:
            browser.client.close()
    for process in processes:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    site.close()
    if log.exists():
        print(f"---- {request.param}\n{log.read_text(errors='replace')[-4000:]}")
    shutil.rmtree(directory, ignore_errors=True)


# ---- what must hold ----

def other_tickets(place: Place) -> Iterator[dict[str, str]]:
    """Credentials that must not admit: none, an invented one, a damaged one, and that of a visitor who still waits."""
    yield {}
    yield {"Cookie": "tellerline_shop=AAAA"}
    yield {"Authorization": "Bearer AAAA"}
    waiting = place.browser()
    assert waiting.join() == "waiting"
    ticket = waiting.cookies["tellerline_shop"]
    yield {"Cookie": f"tellerline_shop={ticket}"}
    yield {"Authorization": f"Bearer {ticket}"}
    yield {"Cookie": f"tellerline_shop={ticket[:-6]}{'A' * 6}"}
    yield {"Cookie": f"tellerline_other={ticket}"}
    yield {"X-Tellerline-Visitor": "boss", "X-Original-Method": "OPTIONS"}


def test_no_way_in_without_a_place(open_shop):
    place = open_shop()
    place.inside()
    for headers in other_tickets(place):
        for method, path in (("GET", "/"), ("GET", "/concert/7?seat=1"), ("HEAD", "/"),
                             ("POST", "/checkout"), ("DELETE", "/x"), ("OPTIONS", "/")):
            stranger = Browser(place.port)
            answer = stranger.request(method, path, headers, b"{}" if method == "POST" else None)
            assert answer.status == 303, (method, path, headers, answer)
            assert answer.headers["location"].startswith(f"http://localhost:{place.port}/q/shop"), answer
            stranger.client.close()
    assert place.site.requests == []


SNEAKY_PATHS = [
    "/public/../secret", "/public/..%2fsecret", "/public/%2e%2e/secret", "/public/%2e%2e%2fsecret",
    "/public/x/../../secret", "/public/..", "/q/../secret", "/q/..%2f..%2fsecret", "/v1/queues/../../secret",
    "/v1/queues/shop/../../../secret", "//public/secret", "/./secret", "/PUBLIC/secret", "/publicsecret",
    "/.well-known/jwks.json/../../secret", "/.well-known/jwks.jsonx", "/tellerline-check", "/q", "/v1/queues",
]


def test_no_way_around(open_shop):
    """Paths that a gateway and a site might read differently. What reaches the site must be public in every reading."""
    place = open_shop()
    place.inside()
    for path in SNEAKY_PATHS:
        stranger = Browser(place.port)
        stranger.get(path)
        stranger.client.close()
    for _, path, _ in place.site.requests:
        assert posixpath.normpath(unquote(unquote(path))).startswith("/public/"), path


def test_a_call_by_a_script_is_refused_and_not_redirected(open_shop):
    place = open_shop()
    stranger = place.browser()
    for mode, status in (("cors", 401), ("no-cors", 401), ("navigate", 303)):
        assert stranger.get("/api/seats", {"Sec-Fetch-Mode": mode}).status == status
    assert place.site.requests == []


def test_what_is_public_needs_no_place(open_shop):
    place = open_shop()
    answer = place.browser().get("/public/style.css?v=2", {"X-Tellerline-Visitor": "boss"})
    assert answer.status == 200
    assert place.site.requests == [("GET", "/public/style.css?v=2", None)]


def test_the_site_learns_who_it_is(open_shop):
    place = open_shop()
    browser = place.inside()
    visitor = browser.get("/v1/queues/shop/status").json["visitor"]
    assert browser.get("/account", {"X-Tellerline-Visitor": "boss"}).status == 200
    assert browser.request("POST", "/checkout?x=1", body=b"a" * 100_000).status == 200
    assert place.site.requests == [("GET", "/account", visitor), ("POST", "/checkout?x=1", visitor)]


def way_on(page: Answer) -> str:
    """The address to which the waiting page sends an admitted visitor."""
    link = re.search(r'<a\b[^>]*\bdata-tl="go"[^>]*>', page.body.decode())
    assert link, page.body.decode()
    address = re.search(r'\bhref="([^"]*)"', link.group())
    assert address, link.group()
    return html.unescape(address.group(1))


def test_a_deep_link_survives_the_detour(open_shop):
    place = open_shop()
    first = place.inside()
    browser = place.browser()
    detour = browser.get(DEEP_LINK)
    assert detour.status == 303 and "no-store" in detour.headers["cache-control"], detour
    here = f"http://localhost:{place.port}{DEEP_LINK}"
    assert parse_qs(urlsplit(detour.headers["location"]).query)["return"] == [here]

    page_path = browser.path_of(detour.headers["location"])
    page = browser.get(page_path)
    assert page.status == 200 and page.headers["content-type"].startswith("text/html"), page
    assert browser.status() == "waiting" and not browser.is_inside()

    first.act("complete")
    wait_until(lambda: browser.status() == "active", PATIENCE, "the next one's turn")
    page = browser.get(page_path)
    assert way_on(page) == here
    answer = browser.get(browser.path_of(way_on(page)))
    assert answer.status == 200 and answer.body == f"the site: {DEEP_LINK}".encode(), answer


def test_a_foreign_return_address_is_not_followed(open_shop):
    """The waiting page sends visitors to this site only, whatever Host a request has."""
    place = open_shop()
    place.inside()
    browser = place.browser()
    for headers in ({"X-Original-URL": "https://evil.example/"}, {"X-Forwarded-Host": "evil.example"}):
        detour = browser.get("/concert/7", headers)
        assert detour.status == 303, detour
        page = browser.get(browser.path_of(detour.headers["location"]))
        assert page.status == 200 and b"evil.example" not in page.body, page.body.decode()


@pytest.mark.parametrize("verb", ["complete", "leave"])
def test_out_at_the_next_request(open_shop, verb):
    place = open_shop()
    browser = place.inside()
    assert browser.is_inside() and browser.is_inside("/concert/7")
    browser.act(verb)
    assert not browser.is_inside() and not browser.is_inside("/concert/7")
    assert browser.request("POST", "/checkout").status == 303


def test_out_when_the_session_is_over(open_shop):
    place = open_shop(session_ttl="2s", claim_ttl="2s")

    def overstayed() -> float:
        browser = place.inside()
        began = time.monotonic()
        inside = browser.is_inside()
        wait_until(lambda: not browser.is_inside(), PATIENCE, "the session's end")
        assert inside or time.monotonic() - began > 2, "in as long as the session lasts"
        return time.monotonic() - began - 2

    one_of(6, overstayed, 1, "seconds from the deadline, seen from here, until out")


def test_after_a_purchase_everybody_waits_again(open_shop):
    """The waiting page offers a new place, at the back of the line like any other."""
    place = open_shop()
    browser = place.inside()
    browser.act("complete")
    place.inside()
    page = browser.get(browser.path_of(browser.get("/again").headers["location"]))
    assert page.status == 200 and not browser.is_inside()
    again = browser.request("POST", "/q/shop/join", {"Content-Type": "application/x-www-form-urlencoded"}, b"")
    assert again.status == 303, again
    assert browser.status() == "waiting" and not browser.is_inside()


class Stream:
    """An event stream through the gateway, read as it comes."""

    def __init__(self, browser: Browser) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=PATIENCE)
        self._connection.request("GET", "/v1/queues/shop/events", headers={
            "Host": f"localhost:{browser.port}", "Accept": "text/event-stream",
            "Accept-Encoding": "gzip, br", **browser.cookie_header()})
        self.response = self._connection.getresponse()

    def next(self, name: str) -> dict:
        """The data of the next event with this name."""
        event, data = "", ""
        while line := self.response.readline().decode():
            kind, _, value = line.rstrip("\n").partition(": ")
            if kind == "event":
                event = value
            elif kind == "data":
                data = value
            elif kind == "" and event == name:  # an event ends with an empty line
                return json.loads(data)
        raise AssertionError(f"the stream ended before {name}")

    def close(self) -> None:
        self.response.close()
        self._connection.close()


def test_event_streams_pass_unbuffered(open_shop, figure):
    place = open_shop()
    first, browser = place.inside(), place.browser()
    assert browser.join() == "waiting"
    stream = Stream(browser)
    try:
        assert stream.response.status == 200
        assert stream.response.getheader("Content-Type", "").startswith("text/event-stream")
        assert stream.response.getheader("Content-Encoding") is None
        assert stream.next("position")["position"] == 1  # while the stream stays open
        began = time.monotonic()
        first.act("complete")
        view = stream.next("admitted")
        took = time.monotonic() - began
        assert view["status"] == "active"
        assert took < 10, f"admitted {took:.1f} s after a place came free: it took a heartbeat to push it out"
        figure(f"{took * 1000:.0f} ms from `complete` to `admitted`, both through the gateway")
    finally:
        stream.close()


def test_closed_while_tellerline_is_away(open_shop):
    place = open_shop()
    browser = place.inside()
    assert browser.is_inside()
    worker = place.system.of("worker")[0]
    place.site.requests.clear()
    worker.stop()
    for other in (browser, place.browser()):
        assert other.get("/").status in (502, 503)
    assert place.site.requests == []
    assert browser.get("/public/style.css").status == 200

    worker.start()
    worker.wait_ready()
    wait_until(lambda: browser.get("/").status == 200, PATIENCE, "in again, with the same place")


def test_closed_while_tellerline_hangs(open_shop):
    """A missing answer of the worker times out and admits no visitor."""
    place = open_shop()
    browser = place.inside()
    worker = place.system.of("worker")[0]
    family = worker.children()
    assert family, "the worker has a child that serves"
    for pid in family:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert browser.get("/").status in (502, 503, 504)  # the client's timeout is 15 s
    finally:
        for pid in family:
            os.kill(pid, signal.SIGCONT)
    assert place.site.requests == []
    wait_until(lambda: browser.get("/").status == 200, PATIENCE, "in again, with the same place")


def test_open_while_the_store_is_away(open_shop):
    """on_store_error: open lets unknown visitors through, but not under a name of their own choice."""
    place = open_shop(on_store_error="open")
    known = place.inside()
    visitor = known.get("/v1/queues/shop/status").json["visitor"]
    place.system.expect(STORE_TROUBLE)
    place.system.redis.stop()
    stranger = place.browser()
    wait_until(stranger.is_inside, PATIENCE, "let through")
    place.site.requests.clear()
    forged = {"X-Tellerline-Visitor": "boss"}
    assert stranger.get("/x", forged).status == 200 and known.get("/y", forged).status == 200
    assert place.site.requests in ([("GET", "/x", nobody), ("GET", "/y", visitor)] for nobody in (None, ""))
    place.system.redis.start()
    for program in place.system.programs:
        program.wait_ready()


@pytest.mark.parametrize("open_shop", ["nginx"], indirect=True)
def test_the_demo_shop(open_shop):
    """A visitor enters, opens the seat of a shared link and buys a ticket. Then the next visitor enters, and the first
    must wait to come back."""
    shops: list[subprocess.Popen[bytes]] = []

    def start_site(system: System) -> int:
        port = free_port()
        worker = system.of("worker")[0].http_port
        shops.append(subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", str(TOP / "deploy" / "demo" / "shop" / "shop.py"), "--port", str(port),
             "--tellerline", f"http://127.0.0.1:{worker}", "--queue", "shop"], stdin=subprocess.DEVNULL))
        return port

    try:
        place = open_shop(start_site)
        buyer, other = place.browser(), place.browser()
        page = buyer.get(buyer.path_of(buyer.get("/concert/2?seat=B3&lang=ko").headers["location"]))
        seat = buyer.get(buyer.path_of(way_on(page)))
        assert seat.status == 200 and 'value="B3" checked' in seat.body.decode() and "밤 기차" in seat.body.decode()
        assert other.join() == "waiting"

        done = buyer.request("POST", "/checkout?lang=ko", {"Content-Type": "application/x-www-form-urlencoded"},
                             b"concert=2&seat=B3")
        assert done.status == 303, done
        receipt = buyer.get(done.headers["location"])
        assert receipt.status == 200 and "감사합니다" in receipt.body.decode(), receipt
        wait_until(lambda: other.status() == "active", PATIENCE, "the next one is called")
        assert buyer.status() == "completed" and buyer.get("/").status == 303
        assert other.get("/?lang=en").status == 200
    finally:
        for shop in shops:
            shop.terminate()
            assert shop.wait(10) == 0
