# SPDX-License-Identifier: Apache-2.0
"""The attacks of docs/contributors/threat-model.md against real workers."""
from __future__ import annotations

import http.client
import re

import pytest

from attacks import HERE, attacks, named, named_tests
from shared_stack import Stack
from tellerline import PATIENCE, System
from waiting import patient

pytestmark = pytest.mark.together(seconds=10)

# ---- the table ----


def test_each_attack_has_its_tests():
    """Every row of the threat model names tests that exist, and every attack in these files is in a row."""
    top = HERE.parent
    files = {file.name: file for folder in ("system", "unit", "component") for file in (top / folder).rglob("test_*")
             if file.suffix in (".py", ".c")}
    for attack in attacks():
        assert attack.tests, f"no test for: {attack.what}"
        for file, name in attack.tests:
            assert file in files and name in named_tests(files[file]), f"{file}::{name} is no test ({attack.what})"
    here = {(file.name, name) for file in (HERE / "attack").glob("test_attacks*.py") for name in named_tests(file)}
    assert here - named() == {("test_attacks.py", "test_each_attack_has_its_tests")}


SHOP = "https://shop.example"
EVIL = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}

# ---- other web sites ----


@pytest.fixture
def embedded(share) -> Stack:
    """Waiting rooms behind TLS whose API a shop's page may call."""
    return share(settings={"http": {"allowed_origins": SHOP, "public_url": "https://wait.example"},
                           "log": {"level": "debug"}})


def joined(system: System, queue: str) -> int:
    return system.numbers(queue)["joined"]


def test_other_sites_take_no_place(embedded):
    """An image, a frame, a script, a crawler, a preview, a form, a fetch ahead of time."""
    bank = embedded.queue()
    client = embedded.client()
    before = joined(embedded, bank)
    for headers in ({"Sec-Fetch-Dest": "image", "Sec-Fetch-Mode": "no-cors"},
                    {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Mode": "navigate"},
                    {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors"},
                    {"User-Agent": "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"},
                    {"User-Agent": "facebookexternalhit/1.1"}):
        answer = client.get(f"/q/{bank}", headers=headers)
        assert answer.status == 200 and b'data-state="outside" data-visitor' in answer.body and "set-cookie" not in answer.headers
        assert f'action="/q/{bank}/join"'.encode() in answer.body
    assert client.get(f"/q/{bank}", headers={"Sec-Purpose": "prefetch;prerender"}).status == 204
    assert client.request("HEAD", f"/q/{bank}").status == 204
    assert client.post(f"/q/{bank}/join", headers=EVIL).status == 403
    assert client.post(f"/v1/queues/{bank}/join", headers=EVIL).problem(403)["type"] == "/problems/cross-origin"
    assert client.post(f"/v1/queues/{bank}/join", headers={"Origin": "null"}).status == 403
    assert joined(embedded, bank) == before
    person = client.get(f"/q/{bank}", headers={"Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate",
                                            "Sec-Fetch-Site": "cross-site", "Cookie": "tellerline_COOKIES=1"})
    assert b'data-state="outside" data-visitor' not in person.body and "set-cookie" in person.headers
    assert joined(embedded, bank) == before + 1


def test_other_sites_end_no_place(embedded):
    """A page on another host of the same domain sends the cookie, too (SameSite=Lax), but with its own origin."""
    bank = embedded.queue()
    visitor = embedded.join(bank)
    cookie = {"Cookie": f"__Host-tellerline_{bank}={visitor.ticket}"}
    client = embedded.client()
    foreign = cookie | {"Origin": "https://blog.wait.example", "Sec-Fetch-Site": "same-site"}
    for path in (f"/v1/queues/{bank}/leave", f"/v1/queues/{bank}/complete", f"/v1/queues/{bank}/renew",
                 f"/q/{bank}/leave"):
        assert client.post(path, headers=foreign).status == 403
    assert visitor.status()["status"] in ("waiting", "active")
    own = client.post(f"/v1/queues/{bank}/leave", headers=cookie | {"Origin": "https://wait.example"})
    assert own.status == 200 and own.json["status"] == "left"


def test_allowed_site_may_read_the_answers_and_others_may_not(embedded):
    bank = embedded.queue()
    client = embedded.client()
    join = f"/v1/queues/{bank}/join"
    asks = {"Origin": SHOP, "Access-Control-Request-Method": "POST"}
    preflight = client.request("OPTIONS", join, headers=asks)
    assert preflight.status == 204 and "POST" in preflight.headers["access-control-allow-methods"]
    answer = client.post(join, headers={"Origin": SHOP, "Sec-Fetch-Site": "cross-site"})
    for shared in (preflight, answer, client.get(f"/v1/queues/{bank}/status", headers={"Origin": SHOP})):
        assert shared.headers["access-control-allow-origin"] == SHOP
        assert shared.headers["access-control-allow-credentials"] == "true"
        assert "Retry-After" in shared.headers["access-control-expose-headers"]
        assert shared.headers["vary"] == "Origin"
    for headers in ({"Origin": "https://evil.example"}, {}):
        other = client.get(f"/v1/queues/{bank}", headers=headers)
        assert "access-control-allow-origin" not in other.headers and other.headers["vary"] == "Origin"
    assert client.request("OPTIONS", join, headers=asks | {"Origin": "https://evil.example"}).status == 405
    assert "access-control-allow-origin" not in client.get(f"/q/{bank}", headers={"Origin": SHOP}).headers
    stream = http.client.HTTPConnection("127.0.0.1", client.port, timeout=patient(PATIENCE))
    stream.request("GET", f"/v1/queues/{bank}/events?ticket={answer.json['ticket']}", headers={"Origin": SHOP})
    head = stream.getresponse()
    assert head.headers["Access-Control-Allow-Origin"] == SHOP and head.headers["Vary"] == "Origin"
    stream.close()


# ---- cookies and tickets ----

def test_planted_cookies_do_not_hide_the_ticket(embedded):
    """Another host of the domain may set cookies with the name of ours: each is tried until one is valid."""
    bank = embedded.queue()
    answer = embedded.client().post(f"/v1/queues/{bank}/join")
    assert re.match(rf"__Host-tellerline_{bank}=\S+; Path=/; .*; Secure$", answer.headers["set-cookie"])
    ticket = answer.json["ticket"]
    name = f"tellerline_{bank}"
    for cookies in (f"{name}=planted; {name}={ticket}", f"{name}={ticket}; {name}=planted",
                    f"__Host-{name}=old; {name}={ticket}", f"a=b; __Host-{name}={ticket}; c=d"):
        status = embedded.client().get(f"/v1/queues/{bank}/status", headers={"Cookie": cookies})
        assert status.status == 200 and status.json["visitor"] == answer.json["visitor"], cookies


def test_tickets_leave_addresses_and_are_never_logged(embedded):
    bank = embedded.queue()
    client = embedded.client()
    ticket = embedded.join(bank).ticket
    cookie = {"Cookie": f"__Host-tellerline_{bank}={ticket}"}
    answer = client.get(f"/q/{bank}?ticket={ticket}&invite=SECRET-INVITE&from=7", headers=cookie)
    assert answer.status == 303 and answer.headers["location"] == f"/q/{bank}?from=7"
    page = client.get(f"/q/{bank}?ticket={ticket}")
    assert page.status == 200 and ticket.encode() in page.body, "without cookies it goes on"
    assert page.headers["referrer-policy"] == "strict-origin" and page.headers["cache-control"] == "no-store"
    client.get(f"/v1/queues/{bank}/status?ticket={ticket}x")
    client.get(f"/q/{bank}?invite=SECRET-INVITE")
    client.get(f"/nowhere?ticket={ticket}")
    for role in ("worker", "dispatcher", "admitter", "expirer"):
        for program in embedded.of(role):
            assert ticket not in program.text() and "SECRET-INVITE" not in program.text()
