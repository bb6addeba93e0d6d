# SPDX-License-Identifier: Apache-2.0
"""What the gateways keep from Tellerline and the site: floods from one address, slow clients, and their own rights."""
from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
import textwrap
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from gateways import GATEWAYS, Shops, StandIn, open_shop, stand_in  # noqa: F401 - fixtures
from network import can_make_namespaces
from waiting import PATIENCE, patient, wait_until


def connect(port: int, address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=patient(15), source_address=(address, 0))


def status(port: int, address: str) -> int:
    """The status of a request from this address; 0 if the connection is refused."""
    try:
        with connect(port, address) as connection:
            connection.sendall(b"GET /public/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return int(connection.makefile("rb").readline().split()[1])
    except (OSError, IndexError):
        return 0


#: Counted over so long a time that no machine is too slow to send more.
FEW_REQUESTS = {"nginx": {"rate=1000r/s": "rate=1r/m", "burst=5000": "burst=20"},
                "haproxy": {"gt 10000": "gt 20", "http_req_rate(10s)": "http_req_rate(10m)"}}
FEW_CONNECTIONS = {"nginx": {"tellerline_connections 5000": "tellerline_connections 3"}, "haproxy": {"gt 5000": "gt 3"}}


@pytest.mark.parametrize("open_shop", ["nginx", "haproxy"], indirect=True)
def test_one_address_cannot_flood(open_shop: Shops, stand_in: StandIn):  # noqa: F811
    """It is refused in the visitor's language, for whatever it asks."""
    place = open_shop.alone(stand_in.port, FEW_REQUESTS[open_shop.kind])
    answers = [status(place.port, "127.0.0.2") for _ in range(40)]
    assert answers[:15] == [200] * 15 and answers[-10:] == [429] * 10, answers
    assert status(place.port, "127.0.0.3") == 200, "another address"
    for language, text in (("ko-KR,ko;q=0.9,en;q=0.8", "요청이 너무 많습니다."), ("en-US", "Too many requests."),
                           ("", "Too many requests.")):
        for path in ("/", "/checkout.html", "/public/style.css", "/q/shop", "/v1/queues/shop/status"):
            with connect(place.port, "127.0.0.2") as connection:
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Language: {language}\r\n"
                                   "Connection: close\r\n\r\n".encode())
                head, body = connection.makefile("rb").read().decode().split("\r\n\r\n", 1)
                assert " 429 " in head.splitlines()[0] and text in body, (path, head, body)
                assert "retry-after: 10\r\n" in f"{head.lower()}\r\n" and "content-type: text/plain" in head.lower(), head


@pytest.mark.parametrize("open_shop", ["nginx", "haproxy"], indirect=True)
def test_one_address_cannot_hold_all_connections(open_shop: Shops, stand_in: StandIn):  # noqa: F811
    place = open_shop.alone(stand_in.port, FEW_CONNECTIONS[open_shop.kind])
    with ExitStack() as held:
        for _ in range(6):  # three of them are refused; which, is decided by the threads of the gateway
            with suppress(ConnectionError):
                connection = held.enter_context(connect(place.port, "127.0.0.2"))
                connection.sendall(b"POST /public/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
        wait_until(lambda: status(place.port, "127.0.0.2") in (0, 429), PATIENCE, "one more is refused")
        assert status(place.port, "127.0.0.3") == 200, "another address"
    wait_until(lambda: status(place.port, "127.0.0.2") == 200, PATIENCE, "served again")


@pytest.mark.parametrize("open_shop", ["caddy"], indirect=True)
def test_slow_and_long_headers_end(open_shop: Shops, stand_in: StandIn):  # noqa: F811
    place = open_shop.alone(stand_in.port, {"read_header 10s": "read_header 2s"})
    with connect(place.port, "127.0.0.2") as long:
        long.sendall(b"GET /public/x HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000 + b"\r\n\r\n")
        assert b" 431 " in long.recv(100)
    with connect(place.port, "127.0.0.2") as slow:
        slow.sendall(b"GET /public/x HTTP/1.1\r\nHost: local")
        assert slow.recv(100) == b""


@pytest.mark.parametrize("open_shop", ["haproxy"], indirect=True)
def test_haproxy_gives_up_its_rights(open_shop: Shops, stand_in: StandIn):  # noqa: F811
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    place = open_shop.alone(stand_in.port)
    process = Path(f"/proc/{place.pid}")
    assert process.stat().st_uid == pwd.getpwnam("haproxy").pw_uid
    assert (process / "root").readlink() == Path("/var/lib/haproxy")


INSIDE = textwrap.dedent("""
    import socket, sys
    def connects(address):
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        s.bind((address, 0))
        held.append(s)
        try:
            s.connect(("2001:db8::1" if ":" in address else "127.0.0.1", 80))
            return "1"
        except ConnectionRefusedError:
            return "0"
    held = []
    server = socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True, backlog=100)
    for address in sys.argv[1:]:
        print(address, connects(address))
""")


def test_limits_before_caddy(tmp_path):
    """limits.nft in a network of its own: three connections for each address, of IPv6 for each /56."""
    near, far = ["2001:db8::5", "2001:db8:0:ff::5"], ["2001:db8:0:100::5"]
    rules = tmp_path / "limits.nft"
    rules.write_text((GATEWAYS / "caddy" / "limits.nft").read_text().replace("over 5000 }", "over 3 }"))
    wanted = [*["127.0.0.2"] * 4, "127.0.0.3", *near, *near, *far]
    probe = "nft add table inet t; nft add chain inet t c; nft add rule inet t c ct count over 1 accept"
    if not can_make_namespaces() or subprocess.run(["unshare", "--net", "sh", "-ec", probe], capture_output=True,
                                                   check=False).returncode != 0:
        pytest.skip("no network of its own here, or none whose connections nftables can count")
    setup = ["ip link set lo up", *(f"ip addr add {each}/128 dev lo nodad" for each in ["2001:db8::1", *near, *far]),
             f"nft -f {rules}", f'exec {sys.executable} -c "$0" "$@"']
    done = subprocess.run(["unshare", "--net", "sh", "-ec", "; ".join(setup), INSIDE, *wanted],
                          capture_output=True, text=True, timeout=patient(PATIENCE), check=False)
    assert done.stdout.split() == [
        *("127.0.0.2 1 127.0.0.2 1 127.0.0.2 1 127.0.0.2 0 127.0.0.3 1").split(),
        near[0], "1", near[1], "1", near[0], "1", near[1], "0", far[0], "1"], done.stderr
