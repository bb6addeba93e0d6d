# SPDX-License-Identifier: Apache-2.0
"""A cache or balancer in front of a gateway, configured as little as that takes: nginx and HAProxy as caches, Caddy."""
from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateways import Browser, Shops, find_program
from http_client import CONNECTION_TROUBLE, Client
from tellerline import CALM, System, free_port
from test_gateways import Stream
from waiting import PATIENCE, patient, wait_until

pytestmark = pytest.mark.together(seconds=20)


def nginx(folder: Path, port: int, gateway: int) -> list[str]:
    """Stores what it may: what says nothing about caches, for ten minutes."""
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(f"""{user}daemon off;
pid {folder}/nginx.pid;
events {{}}
http {{
access_log off;
{temporary}proxy_cache_path {folder}/cache keys_zone=front:1m;
gzip on;
gzip_proxied any;
server {{
    listen 127.0.0.1:{port};
    location / {{
        proxy_pass http://127.0.0.1:{gateway};
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_cache front;
        proxy_cache_valid 10m;
    }}
}}
}}
""")
    return ["-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def haproxy(folder: Path, port: int, gateway: int) -> list[str]:
    (folder / "haproxy.cfg").write_text(f"""defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
cache front
    total-max-size 4
    max-age 600
frontend visitors
    bind 127.0.0.1:{port}
    option forwardfor
    http-request set-header X-Forwarded-Proto http
    http-request cache-use front
    http-response cache-store front
    default_backend gateway
backend gateway
    server gateway 127.0.0.1:{gateway}
""")
    return ["-db", "-f", str(folder / "haproxy.cfg")]


def caddy(folder: Path, port: int, gateway: int) -> list[str]:
    (folder / "Caddyfile").write_text(f"{{\n\tadmin off\n}}\nhttp://localhost:{port} {{\n\tbind 127.0.0.1\n"
                                      f"\treverse_proxy 127.0.0.1:{gateway}\n}}\n")
    return ["run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


FRONTS = {"nginx": nginx, "haproxy": haproxy, "caddy": caddy}

#: What the gateway is told about the front: the last address that it names is the visitor's.
BEHIND = {"upstream tellerline {": "set_real_ip_from 127.0.0.1;\nreal_ip_header X-Forwarded-For;\nupstream tellerline {"}


@dataclass
class Chain:
    system: System
    port: int  # of the front


@pytest.fixture(params=list(FRONTS))
def chain(request: pytest.FixtureRequest, start: Callable[..., System], tmp_path: Path) -> Iterator[Chain]:
    """A front, the gateway of deploy/gateways/nginx, Tellerline and a site."""
    program, port, gateway = find_program(request.param), free_port(), free_port()
    with ExitStack() as stack:
        shops = Shops("nginx", start)
        stack.callback(shops.close)
        address = f"http://localhost:{port}"
        system = start({"shop": CALM | {"capacity": 1, "target_url": f"{address}/"}},
                       settings={"http": {"public_url": address, "trusted_proxies": "127.0.0.1"}})
        shops.gateway(system, shops.site_port, gateway, BEHIND)
        process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", program, *FRONTS[request.param](tmp_path, port, gateway)],
                                   cwd=tmp_path, stdin=subprocess.DEVNULL,
                                   env=os.environ | {name: str(tmp_path) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")})
        stack.callback(process.wait, patient(10))
        stack.callback(process.terminate)

        def serves() -> bool:
            try:
                return Browser(port).get("/public/ready").status == 200
            except CONNECTION_TROUBLE:
                return False

        wait_until(serves, PATIENCE, f"{request.param} serves")
        yield Chain(system, port)


def test_behind_a_cache_or_balancer(chain):
    """Events come as they happen, nobody gets the answer of another, and the visitor's address arrives."""
    first, second = Browser(chain.port), Browser(chain.port)
    assert first.join() in ("active", "waiting")
    wait_until(lambda: first.status() == "active", PATIENCE, "the first is in")
    assert second.join() == "waiting"
    stream = Stream(second)
    assert stream.response.getheader("Content-Encoding") is None
    assert stream.next("position")["position"] == 1
    began = time.monotonic()
    first.act("complete")
    assert stream.next("admitted")["status"] == "active"
    assert time.monotonic() - began < patient(10), "it took a heartbeat to push it out"
    stream.close()

    # Each address twice, by visitors with and without a place.
    third = Browser(chain.port)
    assert third.join() == "waiting"
    for _ in range(2):
        assert (second.status(), third.status()) == ("active", "waiting")
        assert second.is_inside() and not third.is_inside()
        pages = [browser.get("/q/shop") for browser in (third, Browser(chain.port))]
        assert pages[0].status == 200 and third.cookies["tellerline_shop"] not in pages[1].body.decode()
        assert all(page.headers["cache-control"] == "no-store" for page in pages)
    for browser in (first, second, third):
        browser.client.close()


def test_the_visitors_address_arrives(chain):
    """Whatever the visitor says it is."""
    done = chain.system.ctl("block", "add", "127.0.0.5/32", "--for", "1h")
    assert done.returncode == 0, done.stderr

    def come(source: str, **headers: str) -> int:
        client = Client(chain.port, source=source)
        try:
            return client.post("/v1/queues/shop/join", headers={"Host": f"localhost:{chain.port}"} | headers).status
        finally:
            client.close()

    wait_until(lambda: come("127.0.0.5") == 403, PATIENCE, "it is blocked")
    assert come("127.0.0.5", **{"X-Forwarded-For": "127.0.0.6"}) == 403
    assert come("127.0.0.6") == 200 and come("127.0.0.6", **{"X-Forwarded-For": "127.0.0.5"}) == 200
