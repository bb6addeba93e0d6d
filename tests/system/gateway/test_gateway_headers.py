# SPDX-License-Identifier: Apache-2.0
"""Which headers of a request the gateways pass on, to the site and to Tellerline."""
from __future__ import annotations

import re

import pytest

from gateways import Browser, Place, Shops, StandIn, open_shop, place, stand_in, standing  # noqa: F401 - fixtures

pytestmark = pytest.mark.together(seconds=10)

#: Spellings of one name for sites that turn headers into variables, as CGI does.
FORGED = ["X-Tellerline-Visitor", "x-tellerline-visitor", "X-TELLERLINE-VISITOR", "X_Tellerline_Visitor", "x_tellerline-visitor",
          "X-Tellerline_Visitor", "X.Tellerline.Visitor", "X-Tellerline-Location", "X_Tellerline_Location",
          "X-Forwarded-For", "X_Forwarded_For", "X-Forwarded_For", "X_FORWARDED_PROTO", "X-Original-URL", "X_Original_URL",
          "X-Rewrite-URL", "X-Rewrite_Url"]


def variables(place: Place) -> dict[str, list[str]]:
    """The headers of the site's last request by the name of their variable. Those about the visitor and the path only."""
    found: dict[str, list[str]] = {}
    for name, value in place.site.headers[-1]:
        variable = re.sub("[^a-z0-9]", "_", name.lower())
        if re.search("tellerline|forwarded_for|forwarded_proto|original|rewrite", variable):
            found.setdefault(variable, []).append(value)
    return found


def test_only_the_gateway_says_who_it_is(place: Place):  # noqa: F811
    browser = place.inside()
    visitor = browser.get("/v1/queues/shop/status").json["visitor"]
    true = {"x_forwarded_for": ["127.0.0.1"], "x_forwarded_proto": ["http"]}
    for path, named in (("/public/x", {}), ("/account", {"x_tellerline_visitor": [visitor]})):
        for name in FORGED:
            assert browser.send_raw(path, [(name, "admin"), (name.swapcase(), "admin")]) == 200, (path, name)
            assert variables(place) == true | named, (path, name)
        # A header named in Connection is for the next hop only, and so would be lost.
        assert browser.send_raw(path, [("Connection", "close, X-Tellerline-Visitor, X-Forwarded-For")]) == 200
        assert variables(place) == true | named, path


OURS = ["__Host-tellerline_shop=T1", "tellerline_shop=T2", "tellerline_lang=ko", "tellerline_shop=T3"]
OTHERS = [f"visits{i}={'x' * 190}" for i in range(40)]  # 8,000 bytes


def test_tellerline_gets_its_own_cookies_only(open_shop: Shops, stand_in: StandIn):  # noqa: F811
    """All other cookies of a site together can be longer than what a worker takes."""
    place = open_shop.alone(stand_in.port)
    for ours in (OURS, OURS[:1], OURS[1:2], OURS[2:], []):
        half = len(OTHERS) // 2
        sent = [*ours[:1], "xtellerline_shop=bad", *OTHERS[:half], *ours[1:2], *OTHERS[half:], "a=tellerline_shop=bad", *ours[2:]]
        for path in ("/", "/v1/queues/shop/status", "/q/shop"):
            stand_in.headers.clear()
            place.site.headers.clear()
            Browser(place.port).send_raw(path, [("Cookie", "; ".join(sent)), ("X-Forwarded-For", "192.0.2.1"),
                                                ("User-Agent", "tester"), ("Authorization", "Bearer abc")])
            headers = stand_in.headers[-1]
            got = [cookie.strip() for cookie in headers.get("cookie", "").split(";")]
            assert sorted({cookie for cookie in got if cookie not in ("", "tellerline_lang=", "tellerline_COOKIES=")}) == sorted(ours), path
            assert headers["x-forwarded-for"] == "127.0.0.1" and headers["user-agent"] == "tester", path
            assert headers["authorization"] == "Bearer abc" and headers["x-forwarded-proto"] == "http", path
            for _, cookies in (pair for pair in (place.site.headers or [[]])[-1] if pair[0].lower() == "cookie"):
                assert cookies == "; ".join(sent), "the site gets all of its cookies"


def test_other_cookies_shut_nobody_out(place: Place):  # noqa: F811
    browser = place.inside()
    browser.cookies = {cookie.partition("=")[0]: cookie.partition("=")[2] for cookie in OTHERS} | browser.cookies
    assert browser.is_inside() and browser.status() == "active"
    page = browser.get("/q/shop", {"Accept-Language": "ko"})
    assert page.status in (200, 303), page


def test_the_page_learns_that_cookies_work(place: Place):  # noqa: F811
    """Before it joins, a browser shows a cookie of the page's own; then no address needs the ticket."""
    browser = place.browser()
    opens = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}
    asked = browser.get("/q/shop", opens)
    assert asked.status == 303 and browser.cookies == {"tellerline_COOKIES": "1"}, asked
    page = browser.get(asked.headers["location"], opens)
    assert page.status == 200 and b"/q/shop" in page.body and b"ticket=A" not in page.body, page
