# SPDX-License-Identifier: Apache-2.0
"""The logs of the gateways, and that of the worker, have no credentials: of an address they tell the path only."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from gateways import Browser, Place, Shops, open_shop  # noqa: F401 - a fixture
from tellerline import free_port
from waiting import PATIENCE, wait_until

SECRET = "AVtAy30ABmDZBWJ9"

REQUESTS = [
    (f"/q/shop?ticket={SECRET}&lang=ko", []), (f"/q/shop?lang=ko&ticket={SECRET}", []),
    (f"/v1/queues/shop/status?ticket={SECRET}", []), (f"/v1/queues/shop/events?Ticket={SECRET}", []),
    (f"/q/shop?invite={SECRET}.{SECRET}", []), (f"/q/shop?ticket=1&invite={SECRET}", []),
    (f"/q/shop?return=http%3A%2F%2Fshop.example%2Fx%3Fticket%3D{SECRET}%26a%3D{SECRET}", []),
    (f"/public/x?ticket={SECRET}", []), (f"/checkout?invite={SECRET}", []), (f"/q/shop?solution={SECRET}", []),
    (f"/q/shop/move?move={SECRET}&by={SECRET}", []), (f"/q/shop?%74icket={SECRET}", []), (f"/q/shop?ticket%3D{SECRET}", []),
    (f"/v1/queues/shop/move?code={SECRET}", []), (f"/q/shop#{SECRET}", []), (f"http://localhost/q/shop?ticket={SECRET}", []),
    ("/q/shop", [("Referer", f"http://localhost/q/shop?ticket={SECRET}")]),
    ("/q/shop", [("Cookie", f"tellerline_shop={SECRET}"), ("Authorization", f"Bearer {SECRET}")]),
]


def logs(place: Place) -> str:
    """All that the gateway has logged."""
    files = [place.log, place.log.parent / "access.log", place.log.parent / "error.log"]
    return "\n".join(file.read_text(errors="replace") for file in files if file.exists())


def test_no_log_has_tickets(open_shop: Shops):  # noqa: F811
    place = open_shop()
    for target, headers in REQUESTS:
        Browser(place.port).send_raw(target, headers)
    Browser(place.port).send_raw("/public/last", [])
    wait_until(lambda: "/public/last" in logs(place), PATIENCE, "the last request is logged")
    text = logs(place)
    assert "/q/shop" in text and "/v1/queues/shop/status" in text and "/checkout" in text, text
    assert SECRET not in text, text
    for program in place.system.programs:
        assert SECRET not in program.log.read_text(), program.name


def test_no_log_has_tickets_while_tellerline_is_away(open_shop: Shops):  # noqa: F811
    place = open_shop.alone(free_port())
    requests = [request for request in REQUESTS if request[0].startswith(("/q/", "/v1/")) and "#" not in request[0]]
    with ThreadPoolExecutor(len(requests)) as pool:  # HAProxy tries for some seconds
        answers = list(pool.map(lambda request: Browser(place.port).send_raw(*request), requests))
    assert set(answers) <= {502, 503, 504}, answers
    wait_until(lambda: "/v1/queues/shop/move" in logs(place), PATIENCE, "logged")
    assert SECRET not in logs(place), logs(place)
