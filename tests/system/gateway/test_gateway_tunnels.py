# SPDX-License-Identifier: Apache-2.0
"""No request opens a tunnel through a gateway: what goes through one would pass the gate unseen, in any visitor's name."""
from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from gateways import Shops, StandIn, TunnelSite, open_shop, stand_in  # noqa: F401 - fixtures
from waiting import patient

#: What a client sends when it may use a tunnel: a request of a visitor of its own choice.
THROUGH = b"GET /checkout HTTP/1.1\r\nHost: localhost\r\nX-Tellerline-Visitor: boss\r\nConnection: close\r\n\r\n"

WEBSOCKET = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
UPGRADES = [
    ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"],
    ["Connection: upgrade", "Upgrade: H2C"], ["Connection: Upgrade", "Upgrade: h2c, websocket"],
    ["Connection: Upgrade", "Upgrade: h2c", "Upgrade: websocket"], ["Connection: Upgrade", "Upgrade: websocket", "Upgrade: h2c"],
    ["Upgrade: h2c"], ["Connection: Upgrade", "Upgrade: TLS/1.0"], WEBSOCKET,
]


@pytest.fixture
def site() -> Iterator[TunnelSite]:
    one = TunnelSite()
    yield one
    one.close()


def answer_to(port: int, *lines: str) -> bytes:
    """All that comes back to this request, and to one more that is sent after its answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=patient(15)) as connection:
        connection.sendall("\r\n".join((*lines, "", "")).encode())
        parts = [connection.recv(65536)]
        try:
            connection.sendall(THROUGH)
            while b"through the tunnel" not in parts[-1] and (part := connection.recv(65536)):
                parts.append(part)
        except OSError:
            pass  # closed after the first answer
    return b"".join(parts)


def nothing_passed(site: TunnelSite, what: object) -> None:
    assert site.tunnelled == [], what
    for lines in site.requests:
        assert not any(line.lower().startswith(("upgrade:", "http2-settings:")) for line in lines), (what, lines)
        assert "boss" not in "".join(lines), (what, lines)
    site.requests.clear()


def test_no_upgrade_passes(open_shop: Shops, stand_in: StandIn, site: TunnelSite):  # noqa: F811
    """Whatever is asked for, with a place or where none is needed; the request itself is served."""
    place = open_shop.alone(stand_in.port, site_port=site.port)
    for path in ("/public/x", "/account"):
        for headers in UPGRADES:
            got = answer_to(place.port, f"GET {path} HTTP/1.1", "Host: localhost", *headers)
            refused = open_shop.kind == "haproxy" and "websocket" in str(headers) and headers != WEBSOCKET  # without its key
            assert got.startswith(b"HTTP/1.1 200 ") or refused and got.startswith(b"HTTP/1.1 400 "), (path, headers, got)
            nothing_passed(site, (path, headers))


def test_a_site_that_switches_unasked(open_shop: Shops, stand_in: StandIn, site: TunnelSite):  # noqa: F811
    """No site should. nginx opens a tunnel then if the client's request has an `Upgrade`, also an empty one, although it
    passes none on; no setting of nginx refuses a 101, or tells an empty `Upgrade` from none."""
    is_nginx = open_shop.kind == "nginx"
    ends = {"proxy_http_version 1.1;": "proxy_http_version 1.1; proxy_read_timeout 1s;"}
    place = open_shop.alone(stand_in.port, ends if is_nginx else None, site.port)
    site.unasked = True
    for path in ("/public/x", "/account"):
        for headers in ([], ["Connection: Upgrade"], *([] if is_nginx else [["Upgrade:"], *UPGRADES])):
            answer_to(place.port, f"GET {path} HTTP/1.1", "Host: localhost", *headers)
            nothing_passed(site, (path, headers))


def test_no_connect_passes(open_shop: Shops, stand_in: StandIn, site: TunnelSite):  # noqa: F811
    place = open_shop.alone(stand_in.port, site_port=site.port)
    for target in ("localhost:80", f"127.0.0.1:{site.port}", "/public/x", "/account", "localhost:80/public/x"):
        got = answer_to(place.port, f"CONNECT {target} HTTP/1.1", "Host: localhost:80")
        assert not any(lines[0].startswith("CONNECT") for lines in site.requests), (target, got)
        nothing_passed(site, target)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def block(fields: dict[str, str]) -> bytes:
    """Headers of HTTP/2, each literal."""
    return b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
                    for name, value in fields.items())


@pytest.mark.parametrize("open_shop", ["haproxy"], indirect=True)
def test_no_extended_connect_passes(open_shop: Shops, stand_in: StandIn, site: TunnelSite):  # noqa: F811
    """RFC 8441: HAProxy takes HTTP/2 on any port, and makes an Upgrade of it."""
    place = open_shop.alone(stand_in.port, site_port=site.port)
    for path in ("/public/x", "/account"):
        for protocol in ("websocket", "h2c"):
            fields = {":method": "CONNECT", ":protocol": protocol, ":scheme": "http", ":path": path, ":authority": "localhost"}
            with socket.create_connection(("127.0.0.1", place.port), timeout=patient(15)) as connection:
                connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, block(fields)))
                answer = connection.makefile("rb")
                while head := answer.read(9):
                    payload = answer.read(int.from_bytes(head[:3], "big"))
                    if head[3] in (1, 3, 7):  # HEADERS, RST_STREAM, GOAWAY
                        break
                connection.sendall(frame(0, 1, 1, THROUGH))
            assert head and head[3] == 1 and payload, (path, protocol, head)
            nothing_passed(site, (path, protocol))


def test_a_websocket_of_the_site(open_shop: Shops, stand_in: StandIn, site: TunnelSite):  # noqa: F811
    """With the lines for it in the configuration: to guarded pages only, and nothing but a WebSocket."""
    place = open_shop.alone(stand_in.port, {"#websocket ": ""}, site.port)
    for headers in UPGRADES[:-1]:
        answer_to(place.port, "GET /public/x HTTP/1.1", "Host: localhost", *headers)
        nothing_passed(site, headers)
    for headers in UPGRADES:
        answer_to(place.port, "GET /account HTTP/1.1", "Host: localhost", *headers)
        asked = [line for lines in site.requests for line in lines if line.lower().startswith("upgrade:")]
        assert {line.lower() for line in asked} <= {"upgrade: websocket"} and len(asked) <= 1, (headers, asked)
        site.requests.clear()
        site.tunnelled.clear()
    got = answer_to(place.port, "GET /account HTTP/1.1", "Host: localhost", "X-Tellerline-Visitor: boss", *WEBSOCKET)
    assert got.startswith(b"HTTP/1.1 101 ") and b"through the tunnel: GET /checkout" in got, got
    assert any("somebody" in line for line in site.requests[0]) and "boss" not in "".join(site.requests[0])
    site.requests.clear()
    stand_in.close()
    site.tunnelled.clear()
    answer_to(place.port, "GET /account HTTP/1.1", "Host: localhost", *WEBSOCKET)
    nothing_passed(site, "without an answer of the gate")
