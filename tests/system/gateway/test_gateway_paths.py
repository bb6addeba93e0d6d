# SPDX-License-Identifier: Apache-2.0
"""Paths that a gateway and a site could read differently, through the real gateways to real sites.

A gateway lets some paths through without a place. What it lets through must be open in the eyes of the site too."""
from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from gateways import Place, Shops, open_shop  # noqa: F401 - a fixture
from path_sites import GUARDED, OPEN, Tomcat, WsgiSite
from tellerline import free_port
from waiting import patient

pytestmark = pytest.mark.together(seconds=30)

#: Spellings of "..", of "/" and of "/../" for sites that decode, or cut parameters, before they resolve a path.
UP = ["..", "%2e%2e", ".%2e", "%2E.", "..;", "..;a=b", "%2e%2e;", "..%3b", "..%3Ba", "%252e%252e", "..%00", "..%20", "...",
      "..%c0%af", "%c0%ae%c0%ae", "%u002e%u002e", "..\\x", "%e3%80%82%e3%80%82"]
SLASH = ["/", "%2f", "%2F", "\\", "%5c", "%252f", "//", "/./", "/;/", "/%2e/", "/.;/", "/;a=b/"]

TRICKS = [
    *(f"/public/{up}/checkout" for up in UP),
    *(f"/public{slash}..{slash}checkout" for slash in SLASH),
    *(f"/public/a/..{slash}..{slash}checkout" for slash in SLASH),
    "/public/;/../checkout", "/public/.;/../checkout", "/public/x/;/../../checkout", "/public;/../checkout", "/public/..",
    "/public/../public/../checkout", "/public/x/..;/..;/checkout", "/public/..;/public/..;/checkout", "/public/.",
    # To the gateway it could look open in the end, to a site that routes by prefix it is guarded.
    "/order/../public/x", "/order/42/../../public/x", "/order/..%2fpublic%2fx", "/order/%2e%2e/public/x",
    "/order/..;/public/x", "/order;/../public/x", "/order\\..\\public\\x", "//order/../public/x",
    "/order%2f..%2fpublic/x", "/order?/public/x", "/order#/public/x", "/order/?a=/../public/x", "/order%3f/../public/x",
    "/order%23/../public/x", "//public/x", "///public/x", "/./public/x", "/%70ublic/x", "/PUBLIC/x", "/public", "/publicx",
    "/public%2fx", "/public%2f..%2fcheckout", "\\public\\x", "/public\\x",
    # Below the addresses of Tellerline.
    "/q/../checkout", "/q/..;/checkout", "/q/..%2fcheckout", "/q/%2e%2e/checkout", "/v1/queues/../../checkout",
    "/v1/queues/shop/..%2f..%2f..%2fcheckout", "/.well-known/jwks.json/../../checkout", "/.well-known/jwks.json;/x",
    "/order/../q/shop", "/order/..%2fq%2fshop", "/tellerline-check", "/tellerline-check?/public/x",
    "/.well-known/jwks.jsonx", "/q", "/v1/queues",
    # Whole addresses as the target.
    "http://localhost/checkout", "http://localhost/public/../checkout", "http://localhost/order/../public/x",
    "http://localhost/public/..;/checkout", "http://localhost?/public/x", "http://localhost\\/public/x",
    "http://public/checkout", "http:///public/../checkout", "http:/public/x", "public/x", "*",
]

PLAIN = ["/public/x", "/public/css/shop.v2.min.css", "/public/img/logo@2x.png?v=3&to=/../checkout", "/public/a-b_c/1~2.js",
         "/public/x?", "/public/dir/"]


@pytest.fixture(scope="module")
def tomcat() -> Iterator[Tomcat]:
    site = Tomcat()  # starts while the first system does
    yield site
    site.close()


@pytest.fixture(scope="module")
def wsgi() -> Iterator[WsgiSite]:
    site = WsgiSite()
    yield site
    site.close()


def answer_to(place: Place, target: str, method: str = "GET") -> bytes:
    """The whole answer to a request with exactly this target."""
    with socket.create_connection(("127.0.0.1", place.port), timeout=patient(15)) as connection:
        connection.sendall(f"{method} {target} HTTP/1.1\r\nHost: localhost:{place.port}\r\nConnection: close\r\n\r\n".encode())
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def wrong_answers(place: Place) -> list[str]:
    """What a visitor without a place reached although it is guarded, and what is shut although it is open."""
    return [f"let through: {target}" for target in TRICKS if GUARDED in answer_to(place, target)] + \
           [f"shut: {target}" for target in PLAIN if OPEN not in answer_to(place, target)]


def test_no_trick_with_a_path_opens_a_guarded_page(open_shop: Shops, wsgi, request):  # noqa: F811
    place = open_shop(lambda _: wsgi.port, capacity=10)
    assert wrong_answers(place) == []
    browser = place.inside()
    for target in ("/", "/checkout", "/order/7%2F8?seat=A", "/public/%EA%B9%80.png"):
        assert browser.get(target).status == 200, target

    tomcat = request.getfixturevalue("tomcat")  # skips what follows, if it is not installed
    tomcat.wait_ready()
    assert wrong_answers(open_shop.gateway(place.system, tomcat.port, free_port())) == []
