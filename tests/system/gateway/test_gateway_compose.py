# SPDX-License-Identifier: Apache-2.0
"""The gateway of deploy/compose, as a program of this machine: its page while no worker answers, and its limits."""
from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from gateways import GATEWAYS, Browser, Site, TunnelSite, adapt, find_program
from http_client import CONNECTION_TROUBLE, Answer, Client
from tellerline import TOP, free_port
from test_gateway_limits import connect, status
from test_gateway_logs import REQUESTS, SECRET
from test_gateway_tunnels import UPGRADES, answer_to, nothing_passed
from waiting import PATIENCE, wait_until

#: The address of a trusted proxy in front.
FRONT = "127.0.0.9"

Open = Callable[[dict[str, str]], int]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Open]:
    """Starts it before a shop, with no worker, and with these changes; returns its port."""
    with ExitStack() as running:
        def start(changes: dict[str, str]) -> int:
            port, site = free_port(), Site()
            running.callback(site.close)
            text = adapt((TOP / "deploy" / "compose" / "haproxy.cfg").read_text(), {
                "bind :8080": f"bind 127.0.0.1:{port}", "bind :8404": f"bind 127.0.0.1:{free_port()}",
                "worker:8080": f"127.0.0.1:{free_port()}", "shop:8000": f"127.0.0.1:{site.port}",
                "/etc/gateways": str(GATEWAYS)} | changes)
            (tmp_path / "haproxy.cfg").write_text(text)
            with (tmp_path / "log").open("wb") as log:
                process = subprocess.Popen([find_program("haproxy"), "-db", "-f", str(tmp_path / "haproxy.cfg")],
                                           stdout=log, env=os.environ | {"FRONT_PROXIES": FRONT})
            running.callback(process.wait)
            running.callback(process.kill)
            wait_until(lambda: serves(port), PATIENCE, "the gateway serves the shop")
            return port

        yield start


def serves(port: int) -> bool:
    with suppress(*CONNECTION_TROUBLE):
        return status(port, "127.0.0.99") == 200
    return False


def test_visitors_are_told_while_no_worker_answers(gateway: Open):
    port = gateway({})
    for path in ("/q/demo", "/v1/queues/demo"):
        answer: Answer = Client(port).get(path)
        assert answer.status == 503 and answer.headers["retry-after"] == "5"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.body == (GATEWAYS / "tellerline-away.html").read_bytes()


def test_its_log_has_no_tickets(gateway: Open, tmp_path: Path):
    """Of an address it tells the path only, whether it answers or nobody does."""
    port = gateway({"option dontlog-normal": ""})
    for target, headers in REQUESTS:
        Browser(port).send_raw(target, headers)
    log = tmp_path / "log"
    Browser(port).send_raw("/public/last", [])
    wait_until(lambda: "/public/last" in log.read_text(), PATIENCE, "the last request is logged")
    text = log.read_text()
    assert "/q/shop" in text and "/v1/queues/shop/status" in text and "/checkout" in text, text
    assert SECRET not in text, text


def test_no_tunnel_to_the_shop(gateway: Open):
    site = TunnelSite()
    try:
        port = gateway({"shop:8000": f"127.0.0.1:{site.port}"})
        for headers in UPGRADES:
            answer_to(port, "GET /public/x HTTP/1.1", "Host: localhost", *headers)
            nothing_passed(site, headers)
        answer_to(port, "CONNECT localhost:80 HTTP/1.1", "Host: localhost:80")
        assert not any(lines[0].startswith("CONNECT") for lines in site.requests)
    finally:
        site.close()


def from_front(port: int, visitor: str) -> int:
    """The status of a request that the proxy in front sends for this visitor."""
    with connect(port, FRONT) as connection:
        connection.sendall(f"GET /public/x HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {visitor}\r\n"
                           "Connection: close\r\n\r\n".encode())
        return int(connection.makefile("rb").readline().split()[1])


def test_one_address_cannot_flood(gateway: Open):
    """By the address of the connection, or as a trusted proxy in front says."""
    port = gateway({"gt 10000": "gt 20", "http_req_rate(10s)": "http_req_rate(10m)"})
    answers = [status(port, "127.0.0.2") for _ in range(40)]
    assert answers[:15] == [200] * 15 and answers[-10:] == [429] * 10, answers
    assert status(port, "127.0.0.3") == 200, "another address"
    answers = [from_front(port, "192.0.2.1") for _ in range(40)]
    assert answers[:15] == [200] * 15 and answers[-10:] == [429] * 10, answers
    assert from_front(port, "192.0.2.2") == 200, "another visitor of the proxy"
    assert from_front(port, "2001:db8::1") == 200


def test_one_address_cannot_hold_all_connections(gateway: Open):
    port = gateway({"gt 5000": "gt 3"})
    with ExitStack() as held:
        for address in ["127.0.0.2"] * 6 + [FRONT] * 6:
            with suppress(ConnectionError):
                connection = held.enter_context(connect(port, address))
                connection.sendall(b"POST /public/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
        wait_until(lambda: status(port, "127.0.0.2") == 0, PATIENCE, "one more is refused")
        assert status(port, "127.0.0.3") == 200, "another address"
        assert from_front(port, "192.0.2.2") == 200, "the proxy in front is not limited"
    wait_until(lambda: status(port, "127.0.0.2") == 200, PATIENCE, "served again")
