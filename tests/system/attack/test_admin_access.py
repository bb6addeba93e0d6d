# SPDX-License-Identifier: Apache-2.0
"""Who may use the admin API: tokens, roles, sessions of browsers, and what attackers try."""
from __future__ import annotations

import re
import socket

import pytest

from admin import ADMIN_TOKEN, CSRF, ROLES, Admin, Browser, EventReader, admin_file, operations, target
from http_client import Client
from tellerline import CALM, PATIENCE, System
from test_pass import key_file
from test_store_trouble import STORE_TROUBLE
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=20)

QUEUES = {"bank": {"capacity": 1} | CALM}
#: Calls about the session of a browser: they have rules of their own.
SESSION = "/v1/admin/session"
WRONG = "tl_nobody_" + "A" * 43


@pytest.fixture
def room(start):
    def begin(prepare=None, store=None, **admin) -> System:
        def make(system: System) -> None:
            admin_file(system)
            if prepare is not None:
                prepare(system)

        return start(QUEUES, settings={"admin": {"max_failed_logins_per_minute": 0} | admin, "redis": store or {}}, prepare=make)

    return begin


@pytest.fixture(scope="module")
def token_file(tmp_path_factory) -> str:
    return key_file(tmp_path_factory.mktemp("admin") / "admin.token", ADMIN_TOKEN + "\n")


@pytest.fixture
def desk(share, token_file) -> tuple[System, str]:
    """The stack that the tests of this file share, and a queue of it."""
    system = share(settings={"admin": {"max_failed_logins_per_minute": 0}, "secrets": {"admin_token": token_file}})
    return system, system.queue()


def refusals(system: System) -> list[str]:
    return [line for line in system.of("worker")[0].text().splitlines() if "admin API: refused" in line]


def test_every_call_is_refused_without_the_right_token(desk):
    """All calls of the document, so that a new one cannot be forgotten: without a token, with a wrong one, with that of
    each lesser role. Each refusal is in the log, and nothing has changed."""
    system, bank = desk
    worker = system.of("worker")[0]
    admin = Admin(worker)
    tokens = {role: admin.make_token(f"a-{role}", role) for role in ROLES}
    tokens["a revoked"] = admin.make_token("revoked", "admin")
    admin.done("DELETE", "tokens/revoked")
    before = admin.done("GET", "changes")
    tried = 0
    for method, path, operation in operations():
        if path == SESSION:
            continue
        needed = operation["x-role"]
        lesser = ROLES[:ROLES.index(needed)]
        wrong = [(None, 401), (WRONG, 401), ("a", 401), (tokens["a revoked"], 401),
                 *((tokens[role], 403) for role in lesser)]
        for token, status in wrong:
            caller = Admin(worker, token)

            def refused() -> bool:
                """Once more where the log has had its lines for this second."""
                seen = len(refusals(system))
                body = b"{}" if method != "GET" else None
                caller.request(method, target(path, bank), body, token).problem(status)
                logged = refusals(system)[seen:]
                return any(f"{method} {target(path, bank)} of" in line and "from 127.0.0.1" in line for line in logged)

            wait_until(refused, PATIENCE, f"{method} {path} is refused and logged")
            caller.close()
            assert token is None or len(token) < 10 or token not in worker.text()
            tried += 1
    assert tried > 100, tried
    assert admin.done("GET", "changes") == before
    admin.close()


def test_the_roles(desk):
    system, bank = desk
    worker = system.of("worker")[0]
    admin = Admin(worker)
    viewer = Admin(worker, admin.make_token(f"eve-{bank}", "viewer"))
    operator = Admin(worker, admin.make_token(f"jane-{bank}", "operator"))
    assert viewer.call("GET", f"queues/{bank}/stats").status == 200
    viewer.call("POST", f"queues/{bank}/pause").problem(403)
    assert operator.call("POST", f"queues/{bank}/pause").status == 200
    operator.call("GET", "tokens").problem(403)
    newest = admin.done("GET", f"changes?queue={bank}&limit=1")["changes"][0]
    assert (newest["who"], newest["from"], newest["what"]) == (f"jane-{bank}", "127.0.0.1", "mode"), newest
    assert viewer.call("GET", "session").json == {"name": f"eve-{bank}", "role": "viewer", "csrf": None, "ends_at": None}
    admin.done("DELETE", f"tokens/eve-{bank}")
    viewer.call("GET", f"queues/{bank}/stats").problem(401)


def test_wrong_tokens_of_an_address_are_limited(room):
    system = room(max_failed_logins_per_minute=20)
    worker = system.of("worker")[0]
    jane = Admin(worker, Admin(worker).make_token("jane", "viewer"), source="127.0.0.2")
    assert jane.call("GET", "queues").status == 200
    guesser = Admin(worker, WRONG, source="127.0.0.2")
    answers = [guesser.call("GET", "queues").status for _ in range(50)]
    # One comes back every three seconds.
    assert answers[:20] == [401] * 20 and 429 in answers and set(answers) == {401, 429}, answers
    late = guesser.call("GET", "queues")
    assert late.status == 401 or 0 < int(late.headers["retry-after"]) <= 61
    assert Admin(worker, ADMIN_TOKEN, source="127.0.0.2").call("GET", "queues").status == 200, "it is in a file"
    assert jane.call("GET", "queues").status == 200, "it was right before"
    assert Admin(worker).call("GET", "queues").status == 200, "another address is listened to"
    assert Admin(worker, None, source="127.0.0.2").call("GET", "queues").status == 401, "no token is no guess"


# ---- browsers ----

def test_a_browser_signs_in_and_out(desk):
    system, bank = desk
    worker = system.of("worker")[0]
    browser = Browser(worker)
    attributes = browser.signed_in.headers["set-cookie"].split("; ")[1:]
    assert attributes == ["Path=/", "HttpOnly", "SameSite=Strict"], attributes
    assert browser.signed_in.json["role"] == "admin"
    assert browser.call("GET", "session").json["csrf"] == browser.csrf
    assert browser.call("POST", f"queues/{bank}/pause").status == 200
    cookie = browser.cookie
    out = browser.call("DELETE", "session")
    assert out.status == 204 and "Max-Age=0" in out.headers["set-cookie"], out
    browser.cookie = cookie
    browser.call("GET", "queues").problem(401)
    for token in ("", WRONG, ADMIN_TOKEN + "x"):
        browser.sign_in(token).problem(401)
    for body in ({}, {"token": 1}, {"token": ADMIN_TOKEN, "more": 1}, None):
        browser.call("POST", "session", body).problem(400)


def test_a_session_ends_with_its_token(desk):
    system, bank = desk
    worker = system.of("worker")[0]
    admin = Admin(worker)
    browser = Browser(worker, admin.make_token(f"jane-{bank}", "operator"))
    stream = EventReader(worker, f"queues/{bank}/events", {"Cookie": browser.cookie, "Host": browser.host})
    assert stream.next()[0] == "stats"
    assert browser.call("GET", "queues").status == 200
    admin.done("DELETE", f"tokens/jane-{bank}")
    browser.call("GET", "queues").problem(401)
    while (event := stream.next()) is not None and event[0] == "stats":
        pass
    assert event[0] == "end" and event[1]["status"] == 401 and stream.next() is None
    admin.make_token(f"jane-{bank}", "admin")  # another token of that name
    browser.call("GET", "queues").problem(401)


def link_text(admin: Admin) -> str:
    url = admin.done("POST", "session/link")["url"]
    assert url.startswith("/#/sign-in/"), url
    return url.removeprefix("/#/sign-in/")


def test_a_link_signs_one_browser_in(desk):
    """Seen later, in a history or a list of processes, it is worth nothing. It has the rights of its token, and no more; a
    session makes none."""
    system, bank = desk
    worker = system.of("worker")[0]
    admin = Admin(worker)
    viewer = Admin(worker, admin.make_token(f"eve-{bank}", "viewer"))
    text = link_text(viewer)
    browser = Browser(worker, text)
    assert browser.signed_in.json["role"] == "viewer" and browser.signed_in.json["name"] == f"eve-{bank}"
    browser.call("POST", f"queues/{bank}/pause").problem(403)
    browser.call("POST", "session/link").problem(403)
    assert "tellerline dashboard" in browser.sign_in(text).problem(401)["detail"]
    assert browser.call("GET", "queues").status == 200, "the first stays signed in"
    viewer.token = text  # in the place of a token
    viewer.call("GET", "queues").problem(401)
    assert text not in worker.text()

    late = link_text(Admin(worker, admin.make_token(f"joe-{bank}", "operator")))
    admin.done("DELETE", f"tokens/joe-{bank}")
    browser.sign_in(late).problem(401)
    name, ends, rest = link_text(admin).split(":", 2)
    browser.sign_in(f"{name}:{int(ends, 16) + 3600000:x}:{rest}").problem(401)
    browser.sign_in(f"eve-{bank}:{ends}:{rest}").problem(401)
    browser.sign_in(f"{name}:{ends}:{rest}", {"Origin": "https://evil.example"}).problem(403)
    assert browser.sign_in(f"{name}:{ends}:{rest}").json["role"] == "admin", "it was not used by these"

    text = link_text(admin)
    worker.stop()
    worker.start()
    worker.wait_ready()
    wait_until(lambda: browser.sign_in(text), PATIENCE, "it answers", again_on=OSError).problem(401)


def test_a_link_has_the_address_of_browsers(room):
    system = room(public_url="http://queues.shop.example")
    admin = Admin(system.of("worker")[0])
    assert admin.done("POST", "session/link")["url"].startswith("http://queues.shop.example/#/sign-in/admin:")
    admin.call("POST", "session/link", {"role": "admin"}).problem(400)
    admin.call("GET", "session/link").problem(405)


def test_planted_cookies_lock_nobody_out(room):
    """Another host of the domain makes the operator's browser send them with every request."""
    system = room(max_failed_logins_per_minute=3)
    worker = system.of("worker")[0]
    browser = Browser(worker)
    name, _, session = browser.cookie.partition("=")
    planted = "; ".join(f"{name}={value}" for value in ("x", session[:-1] + ("A" if session[-1] != "A" else "B"),
                                                        "admin:1:" + session.split(":", 2)[2]))
    for _ in range(20):
        browser.call("GET", "queues", None, {"Cookie": planted}).problem(401)
    browser.call("POST", "session", {"token": ADMIN_TOKEN}, {"Cookie": planted})
    assert browser.call("GET", "queues", None, {"Cookie": f"{planted}; {browser.cookie}"}).status == 200
    assert browser.call("POST", "queues/bank/pause", None, {"Cookie": f"{planted}; {browser.cookie}"}).status == 200
    assert browser.sign_in(ADMIN_TOKEN, {"Cookie": planted}).status == 200


@pytest.mark.parametrize("section", ["http", "admin"])
def test_only_its_own_proxies_are_believed(start, section):
    """Those in front of visitors are others."""
    system = start(QUEUES, settings={section: {"trusted_proxies": "127.0.0.1"}}, prepare=admin_file)
    admin = Admin(system.of("worker")[0])
    assert admin.call("POST", "queues/bank/pause", None, {"X-Forwarded-For": "203.0.113.9"}).status == 200
    newest = admin.done("GET", "changes?queue=bank&limit=1")["changes"][0]
    assert newest["from"] == ("203.0.113.9" if section == "admin" else "127.0.0.1"), newest


def test_sessions_outlive_a_restart(desk):
    system, bank = desk
    worker = system.of("worker")[0]
    browser = Browser(worker, Admin(worker).make_token(f"jane-{bank}", "operator"))
    worker.stop()
    worker.start()
    worker.wait_ready()
    assert wait_until(lambda: browser.call("GET", "queues"), PATIENCE, "it answers", again_on=OSError).status == 200
    assert browser.call("POST", f"queues/{bank}/pause").status == 200


def test_other_sites_change_nothing(desk):
    """A page of another site makes a browser that is signed in send requests (CSRF)."""
    system, bank = desk
    worker = system.of("worker")[0]
    browser = Browser(worker)
    before = Admin(worker).done("GET", f"queues/{bank}")
    for headers in ({CSRF: ""}, {CSRF: "x"}, {CSRF: browser.csrf[:-1]}, {CSRF: Browser(worker).csrf},
                    {"Origin": "https://evil.example"}, {"Origin": "null"},
                    {"Origin": f"http://127.0.0.1:{worker.http_port}"}, {"Origin": "", "Sec-Fetch-Site": "cross-site"},
                    {"Sec-Fetch-Site": "same-site"}):
        browser.call("POST", f"queues/{bank}/pause", {}, headers).problem(403)
        browser.call("DELETE", f"queues/{bank}?confirm={bank}", None, headers).problem(403)
        browser.call("DELETE", "session", None, headers).problem(403)
    browser.sign_in(ADMIN_TOKEN, {"Origin": "https://evil.example"}).problem(403)
    # What a form can send without asking first.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        browser.call("PATCH", f"queues/{bank}", {"capacity": 5}, {"Content-Type": kind}).problem(415)
    preflight = browser.call("OPTIONS", f"queues/{bank}/pause", None, {"Origin": "https://evil.example",
                                                                    "Access-Control-Request-Method": "POST"})
    assert preflight.status == 405
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    assert Admin(worker).done("GET", f"queues/{bank}") == before


def test_no_site_reaches_it_under_a_name_of_its_own(room):
    """DNS rebinding: a name of another site that points to the listener."""
    system = room(public_url="http://queues.shop.example")
    worker = system.of("worker")[0]
    browser = Browser(worker)
    client = Client(worker.admin_port)
    for host in ("evil.example", "queues.shop.example.evil.example", f"localhost.evil.example:{worker.admin_port}"):
        assert client.get("/", headers={"Host": host}).problem(403)
        evil = {"Host": host, "Origin": f"http://{host}"}
        browser.call("GET", "queues", None, evil).problem(403)
        browser.call("POST", "queues/bank/pause", {}, evil).problem(403)
        browser.sign_in(ADMIN_TOKEN, evil).problem(403)
    for host in ("queues.shop.example", "localhost", f"127.0.0.1:{worker.admin_port}", "[::1]"):
        assert client.get("/", headers={"Host": host}).status == 200, host
    # A program shows its token: no browser does that by itself. Probes tell no secrets.
    assert client.get("/v1/admin/queues", ADMIN_TOKEN, headers={"Host": "tellerline-worker:8081"}).status == 200
    assert client.get("/livez", headers={"Host": "evil.example"}).status == 200


def test_nothing_can_be_framed_or_run(desk):
    """Clickjacking; and scripts in what visitors and operators write are text wherever it comes out."""
    system, bank = desk
    worker = system.of("worker")[0]
    admin = Admin(worker)
    script = "<script>alert(1)</script>"
    admin.done("POST", f"queues/{bank}/notice", {"text": f"\"'>{script}"})
    admin.done("POST", f"queues/{bank}/joins", {"visitors": [{"visitor": script}]})
    assert admin.call("PUT", f"queues/{script.replace('/', '%2F')}", {}).status in (400, 404, 422)
    admin.call("GET", f"queues/{bank}/visitors/{script.replace('/', '%2F')}")
    for path in ("/", "/assets/dashboard.js", "/nothing", "/v1/admin/queues", f"/v1/admin/queues/{bank}/line",
                 f"/v1/admin/queues/{bank}", "/v1/admin/changes", f"/v1/admin/queues/{script}", "/v1/nothing",
                 f"/v1/admin/queues/{bank}/export?format=csv", f"/v1/admin/queues/{bank}/export?format=jsonl"):
        answer = admin.get(path, ADMIN_TOKEN)
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "default-src 'none'" in policy, (path, policy)
        assert "unsafe" not in policy, policy
        assert answer.headers["x-frame-options"] == "DENY", path
        assert answer.headers["x-content-type-options"] == "nosniff", path
        kind = answer.headers["content-type"].partition(";")[0]
        assert (kind == "text/html") == (path == "/"), (path, kind)
        assert path != "/" or script.encode() not in answer.body


def test_browsers_need_loopback_or_tls(room):
    """Otherwise tokens and cookies would cross a network in the clear."""
    def everywhere(system: System) -> None:
        worker = system.of("worker")[0]
        worker.env["TELLERLINE_ADMIN_WORKER"] = f"0.0.0.0:{worker.admin_port}"

    system = room(prepare=everywhere)
    worker = system.of("worker")[0]
    assert "admin.tls" in Browser(worker).signed_in.problem(403)["detail"]
    assert "admin.tls" in Admin(worker).call("POST", "session/link").problem(403)["detail"]
    assert Admin(worker).call("GET", "queues").status == 200


def test_cookies_behind_tls(room):
    def everywhere(system: System) -> None:
        worker = system.of("worker")[0]
        worker.env["TELLERLINE_ADMIN_WORKER"] = f"0.0.0.0:{worker.admin_port}"

    system = room(prepare=everywhere, tls="terminated", public_url="https://queues.shop.example")
    worker = system.of("worker")[0]
    browser = Browser(worker, host="queues.shop.example")
    browser.sign_in(ADMIN_TOKEN, {"Origin": "https://queues.shop.example"})
    cookie = browser.call("POST", "session", {"token": ADMIN_TOKEN}, {"Origin": "https://queues.shop.example"})
    assert re.fullmatch(r"__Host-tellerline_admin=\S+; Path=/; HttpOnly; SameSite=Strict; Secure",
                        cookie.headers["set-cookie"]), cookie.headers
    assert browser.call("POST", "queues/bank/pause", {}, {"Origin": "https://queues.shop.example"}).status == 200
    # One without the prefix may have been planted by another host of the domain.
    planted = browser.cookie.replace("__Host-", "")
    browser.call("GET", "queues", None, {"Cookie": planted}).problem(401)


# ---- while something is wrong ----

def test_without_the_store_the_admin_token_is_known(desk):
    system, bank = desk
    worker = system.of("worker")[0]
    jane = Admin(worker, Admin(worker).make_token(f"jane-{bank}", "viewer"))
    system.expect(STORE_TROUBLE)
    system.redis.stop()
    assert Admin(worker).call("GET", "session").json == {"name": "admin", "role": "admin", "csrf": None, "ends_at": None}
    assert Browser(worker).signed_in.status == 200
    assert "retry-after" in Admin(worker).call("GET", "queues").headers
    Admin(worker).call("GET", "queues").problem(503)
    jane.call("GET", "queues").problem(503)
    Admin(worker, "wrong-token-of-nobody").call("GET", "queues").problem(401)
    system.forget_store()
    system.redis.start()
    wait_until(lambda: jane.call("GET", "queues").status == 200, PATIENCE, "the store is back")


def test_probes_are_answered_while_the_store_hangs(room):
    """Every connection of the API to Redis waits, and more requests wait for one."""
    system = room(store={"timeout": "500ms"})
    worker = system.of("worker")[0]
    system.expect(STORE_TROUBLE)
    system.redis.pause()
    try:
        callers = [Admin(worker) for _ in range(60)]
        for caller in callers:
            caller.send("GET", "/v1/admin/queues", ticket=ADMIN_TOKEN)
        for _ in range(5):
            assert Client(worker.admin_port).get("/livez").status == 200
            assert Client(worker.admin_port).get("/metrics").status == 200
        statuses = {caller.receive().status for caller in callers}
        assert statuses == {503}, statuses
    finally:
        system.redis.resume()
    wait_until(lambda: Admin(worker).call("GET", "queues").status == 200, PATIENCE, "the store is back")


def test_slow_bodies_do_not_keep_a_probe_out(desk):
    system, bank = desk
    worker = system.of("worker")[0]
    head = (f"POST /v1/admin/queues/{bank}/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{").encode()
    sockets = []
    for _ in range(200):
        one = socket.create_connection(("127.0.0.1", worker.admin_port))
        try:
            one.sendall(head)
        except OSError:
            pass  # closed already
        sockets.append(one)

    def probe() -> None:
        for _ in range(3):
            assert wait_until(lambda: Client(worker.admin_port, timeout=60).get("/livez").status == 200, PATIENCE,
                              "a probe is answered", again_on=OSError)

    probe()
    for one in sockets:
        one.close()
    probe()  # there is room again for the next test


def test_bodies_have_a_limit(desk):
    system, bank = desk
    worker = system.of("worker")[0]
    admin = Admin(worker)
    huge = b'{"a": "' + b"x" * 300_000 + b'"}'
    admin.request("PATCH", f"/v1/admin/queues/{bank}", huge, ADMIN_TOKEN).problem(413)
    nested = b"[" * 2040 + b"]" * 2040  # as deep as the parser goes, on the stack of the connection's thread
    for body in (b"{", b"[]", b"1", b'{"a": 1, "a": 2}', b"\xff", b'{"capacity": 1} x', nested, b"[" * 100_000):
        Admin(worker).request("PATCH", f"/v1/admin/queues/{bank}", body, ADMIN_TOKEN).problem(400)


def test_events_come_once_a_second(desk):
    system, bank = desk
    worker = system.of("worker")[0]
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}

    def follow() -> EventReader:
        reader = EventReader(worker, f"queues/{bank}/events", headers)
        assert reader.status == 200
        return reader

    def told(reader: EventReader, kind: str) -> dict | None:
        """The next event, if it is of this kind. `problem`: the store was not in time; the next event has what it says."""
        event = reader.next()
        assert event is not None and event[0] in ("stats", "problem", kind), event
        return event[1] if event[0] == kind else None

    readers = [follow() for _ in range(3)]
    system.join(bank)
    system.join(bank)
    for reader in readers:
        wait_until(lambda reader=reader: (told(reader, "stats") or {}).get("waiting") == 1, PATIENCE, "one waits")
    for reader in readers[1:]:
        reader.close()
    # A queue that is deleted ends its streams.
    Admin(worker).done("DELETE", f"queues/{bank}?confirm={bank}")
    assert wait_until(lambda: told(readers[0], "end"), PATIENCE, "the stream ends")["status"] == 404
    late = follow()
    assert wait_until(lambda: told(late, "end"), PATIENCE, "so does a new one")["status"] == 404
    system.forget(bank)


def test_only_so_many_streams(desk):
    system, bank = desk
    worker = system.of("worker")[0]
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    readers = [EventReader(worker, f"queues/{bank}/events", headers) for _ in range(40)]
    assert sorted({reader.status for reader in readers}) == [200, 503]
    assert Client(worker.admin_port).get("/livez").status == 200
    for reader in readers:
        reader.close()
    wait_until(lambda: EventReader(worker, f"queues/{bank}/events", headers).status == 200, PATIENCE,
               "there is room again")
    worker.stop()  # also with open streams
    worker.start()
    worker.wait_ready()


@pytest.mark.parametrize("path", ["events", "export?format=csv"])
def test_streams_of_clients_that_hung_up_end(room, path):
    """They are gone before the answer can begin: what was opened for them has no reader, and gives its place back."""
    system = room(store={"timeout": "30s"})
    worker = system.of("worker")[0]
    streams, threads = 32, 4
    for _ in range(streams // threads + 1):
        system.redis.pause()
        try:
            for _ in range(threads):
                caller = Admin(worker)
                caller.send("GET", f"/v1/admin/queues/bank/{path}", ticket=ADMIN_TOKEN)
                caller.close()
        finally:
            system.redis.resume()
        assert Admin(worker).call("GET", "queues").status == 200
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    wait_until(lambda: EventReader(worker, f"queues/bank/{path}", headers).status == 200, PATIENCE, "there is room")


def test_an_export_has_everybody(desk):
    """More than the buffer holds, for two readers at once."""
    system, bank = desk
    worker = system.of("worker")[0]
    visitors = [f"visitor-{i:05}" for i in range(6000)]
    for first in range(0, len(visitors), 1000):
        names = [{"visitor": name} for name in visitors[first:first + 1000]]
        Admin(worker).done("POST", f"queues/{bank}/joins", {"visitors": names})
    wait_until(lambda: system.waiting(bank) + system.active(bank) == len(visitors), PATIENCE, "all have joined")
    readers = [Admin(worker), Admin(worker)]
    for reader, kind in zip(readers, ("csv", "jsonl")):
        reader.send("GET", f"/v1/admin/queues/{bank}/export?format={kind}", ticket=ADMIN_TOKEN)
    for reader in readers:
        answer = reader.receive()
        assert answer.status == 200
        assert sorted(re.findall(r"visitor-\d{5}", answer.body.decode())) == visitors


def test_ports(desk):
    """The API is on the admin listener of the worker only."""
    system, _ = desk
    visitors = Client(system.of("worker")[0].http_port)
    assert visitors.get("/v1/admin/queues", ADMIN_TOKEN).status == 404
    other = Client(system.of("dispatcher")[0].admin_port)
    assert other.get("/v1/admin/queues", ADMIN_TOKEN).status == 404
