"""Wrong requests: each gets a clear answer, and none changes any data."""
from __future__ import annotations

import base64
import itertools
import socket
import time

import pytest

from http_client import Answer, Client
from tellerline import CALM, PATIENCE, System
from waiting import wait_until

API_KEY = "k" * 40
QUEUES = ("bank", "post")


@pytest.fixture
def system(start) -> System:
    """Two queues."""
    return start({queue: {"capacity": 1} | CALM for queue in QUEUES})


def same_after(system: System, request) -> Answer:
    """Makes a request that must change nothing: it sends no command and moves no counter."""
    before = {queue: (system.last_batch(queue), system.numbers(queue)) for queue in QUEUES}
    answer = request()
    for queue, (last, numbers) in before.items():
        assert system.commands_since(queue, last) == []
        assert system.numbers(queue) == numbers
    return answer


JSON = {"Content-Type": "application/json"}

WRONG_BODIES = [
    (b"{", JSON, 400),
    (b'{"visitor": }', JSON, 400),
    (b"[1,2]", JSON, 400),
    (b'"text"', JSON, 400),
    (b'{"colour": "red"}', JSON, 400),
    (b'{"visitor": 7}', JSON, 400),
    (b'{"lane": "nowhere"}', JSON, 403),
    (b'{"visitor": "alice"}', JSON, 403),
    (b'{"lane": "vip"}', JSON, 403),
    (b'{"invite": "x.y.z"}', JSON, 403),
    (b'{"visitor": "\xff\xfe"}', JSON, 400),
    (b"[" * 3000, JSON, 400),
    (b"{}", {"Content-Type": "text/plain"}, 415),
]


def test_wrong_bodies(system):
    client = system.client()
    for body, headers, status in WRONG_BODIES:
        answer = same_after(system, lambda b=body, h=headers: client.post(
            "/v1/queues/bank/join", b, headers=h))
        problem = answer.problem(status)
        assert status == 415 or problem["detail"], body
        if body.startswith(b'{"visitor": }'):
            assert "line 1" in problem["detail"] and "column" in problem["detail"], problem


def test_wrong_bodies_of_a_trusted_caller(start):
    def keys(system: System) -> None:
        path = system.directory / "api.keys"
        path.write_text(f"shop {API_KEY}\n")
        path.chmod(0o600)

    system = start({queue: {"capacity": 1} | CALM for queue in QUEUES}, prepare=keys)
    client = system.client()
    for body in (b'{"lane": "nowhere"}', b'{"visitor": ""}', b'{"visitor": "two words"}',
                 b'{"visitor": "%s"}' % (b"x" * 65)):
        answer = same_after(system, lambda b=body: client.post(
            "/v1/queues/bank/join", b, ticket=API_KEY))
        assert answer.problem(400)["detail"]
    answer = same_after(system, lambda: client.post(
        "/v1/queues/bank/join", b'{"visitor": "alice"}', ticket="w" * 40))
    assert answer.status in (401, 403), answer.body
    answer = client.post("/v1/queues/bank/join", b'{"visitor": "alice", "lane": "vip"}',
                         ticket=API_KEY)
    assert answer.status == 200 and answer.json["visitor"] == "alice", answer.body


def test_sizes_beyond_the_limits(system):
    client = system.client()
    body = b'{"visitor": "' + b"x" * 17000 + b'"}'
    assert same_after(system, lambda: client.post("/v1/queues/bank/join", body)).problem(413)
    client.close()
    answer = same_after(system, lambda: client.post("/v1/queues/bank/join",
                                                    headers={"X-Long": "x" * 100_000}))
    assert answer.status in (400, 413, 431), answer.status
    client.close()
    assert client.get("/v1/queues/bank").status == 200, "the worker goes on"


def test_chunked_body_beyond_the_limit(system):
    """The limit must also hold without a Content-Length."""
    def send() -> int:
        with socket.create_connection(("127.0.0.1", system.of("worker")[0].http_port), 10) as peer:
            peer.sendall(b"POST /v1/queues/bank/join HTTP/1.1\r\nHost: x\r\n"
                         b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                for _ in range(100):
                    peer.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
                peer.sendall(b"0\r\n\r\n")
            except OSError:
                pass  # refused before the end
            return int(peer.recv(4096).split(b" ")[1])

    assert same_after(system, send) == 413


def test_unknown_things(system):
    client = system.client()
    wrong = [("POST", "/v1/queues/nowhere/join", 404), ("GET", "/v1/queues/nowhere", 404),
             ("GET", "/v1/queues/nowhere/status", 404), ("POST", "/v1/queues/BAD%0aNAME/join", 404),
             ("POST", "/v1/queues/" + "x" * 64 + "/join", 404), ("GET", "/v1/queue", 404),
             ("GET", "/v1/queues/bank/../post/status", 404), ("GET", "/v1/queues/bank/join", 405),
             ("DELETE", "/v1/queues/bank/status", 405), ("POST", "/v1/queues/bank", 405)]
    for method, path, status in wrong:
        answer = same_after(system, lambda m=method, p=path: client.request(m, p))
        assert answer.problem(status), (method, path)
        if status == 405:
            assert answer.headers["allow"], answer.headers


def forgeries(ticket: str) -> list[str]:
    """Altered copies of a ticket."""
    raw = base64.urlsafe_b64decode(ticket + "=" * (-len(ticket) % 4))

    def text(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    flipped = [text(raw[:i] + bytes([raw[i] ^ 1]) + raw[i + 1:]) for i in range(len(raw))]
    cut = [text(raw[:length]) for length in range(len(raw))]
    return flipped + cut + [text(raw + b"\0"), ticket + "=", ticket + "A", ticket[:-1], "",
                            "x" * 5000, "../../etc/passwd", ticket.swapcase()]


def test_forged_tickets(system):
    visitor = system.join("bank")
    wait_until(visitor.is_active, PATIENCE, "the visitor is active")
    # The first sign of the visitor claims the session: the only command that a status request may send.
    session = system.key("bank", "sessions")
    wait_until(lambda: system.store.command("HVALS", session)[0].endswith(":1"), PATIENCE, "claimed")
    client = system.client()

    def try_all() -> Answer:
        for forged in forgeries(visitor.ticket):
            for verb, method in (("status", "GET"), ("leave", "POST"), ("complete", "POST"),
                                 ("renew", "POST"), ("extend", "POST")):
                answer = client.request(method, f"/v1/queues/bank/{verb}", ticket=forged)
                answer.problem(401)
                assert "Bearer" in answer.headers["www-authenticate"]
        return client.get("/v1/queues/bank/status")

    assert same_after(system, try_all).problem(401), "no ticket at all"
    assert visitor.status()["status"] == "active"


def test_ticket_of_another_queue(system):
    visitor = system.join("bank")
    answer = same_after(system, lambda: system.client().post("/v1/queues/post/leave",
                                                             ticket=visitor.ticket))
    answer.problem(401)
    assert visitor.status()["status"] in ("waiting", "active")


def test_ticket_by_cookie_and_query(system):
    visitor = system.visitor("bank")
    answer = visitor.client.post(f"{visitor.path}/join")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("tellerline_bank=") and "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie and "Secure" not in cookie, "the public address has no TLS"
    ticket = answer.json["ticket"]
    for headers, query in (({"Cookie": f"a=b; tellerline_bank={ticket}; c=d"}, ""),
                           ({}, f"?ticket={ticket}")):
        answer = visitor.client.get(f"{visitor.path}/status{query}", headers=headers)
        assert answer.status == 200 and answer.json["visitor"], answer.body
        assert answer.headers["cache-control"] == "no-store"


def test_what_a_visitor_sends_forges_no_log_line(system):
    client = system.client()
    evil = "a\"b level=fatal msg=forged"
    client.get("/v1/queues/bank/status", headers={"X-Request-Id": evil, "User-Agent": evil})
    client.get("/v1/queues/x%0Alevel=fatal%20msg=forged/status")
    assert "msg=forged" not in system.of("worker")[0].text().replace('"', "\n")


def test_half_a_request_and_silence(start):
    """A connection that never finishes its request is closed, and does not disturb others meanwhile."""
    system = start({"bank": {"capacity": 1} | CALM},
                   settings={"http": {"idle_timeout": "1s"}})
    peer = socket.create_connection(("127.0.0.1", system.of("worker")[0].http_port), 10)
    peer.sendall(b"POST /v1/queues/bank/join HTTP/1.1\r\nHost: x\r\nContent-Le")
    assert Client(system.of("worker")[0].http_port).get("/v1/queues/bank").status == 200
    peer.settimeout(PATIENCE)
    while peer.recv(4096):
        pass
    peer.close()


def test_pipelined_requests_are_answered_in_order(system):
    """Several requests in one write: also those behind a join that waits for its outcome, and behind a wrong one."""
    head = b" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
    requests = [(b"GET /v1/queues/bank", 200), (b"POST /v1/queues/bank/join", 200), (b"GET /v1/queues/nowhere", 404),
                (b"POST /v1/queues/post/join", 200), (b"GET /v1/queues/bank/status", 401), (b"POST /v1/queue", 404),
                (b"GET /v1/queues/post", 200)]
    with socket.create_connection(("127.0.0.1", system.of("worker")[0].http_port), PATIENCE) as peer:
        peer.sendall(b"".join(line + head + b"\r\n" for line, _ in requests[:-1])
                     + requests[-1][0] + head + b"Connection: close\r\n\r\n")
        received = b""
        while data := peer.recv(65536):
            received += data
    answers = received.split(b"HTTP/1.1 ")[1:]
    assert [int(answer[:3]) for answer in answers] == [status for _, status in requests], received
    assert b'"ticket"' in answers[1] and b"tellerline_bank=" in answers[1], answers[1]
    assert b'"ticket"' in answers[3] and b"tellerline_post=" in answers[3], answers[3]
    assert {queue: system.numbers(queue)["joined"] for queue in QUEUES} == {"bank": 1, "post": 1}


def test_dripped_request_is_cut_off(start):
    """Single bytes do not keep a connection open: the whole request must arrive within idle_timeout."""
    system = start({"bank": CALM}, settings={"http": {"idle_timeout": "1s"}})
    port = system.of("worker")[0].http_port
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as slow:
        slow.settimeout(0.1)
        began = time.monotonic()
        closed = False
        for byte in itertools.chain(b"GET /livez HTTP/1.1\r\nX: ", itertools.repeat(ord("a"))):
            try:
                slow.send(bytes([byte]))
                closed = slow.recv(1) == b""
            except TimeoutError:
                pass
            except OSError:
                closed = True
            if closed or time.monotonic() - began > PATIENCE:
                break
    assert closed
    assert system.client().get("/livez").status == 200
