# SPDX-License-Identifier: Apache-2.0
"""Wrong requests: each gets a clear answer, and none changes any data."""
from __future__ import annotations

import base64
import itertools
import socket
from collections.abc import Callable
from typing import TypeVar

import pytest

from http_client import Answer
from shared_stack import Stack
from tellerline import PATIENCE
from waiting import patient, wait_until

pytestmark = pytest.mark.together(seconds=8)

API_KEY = "k" * 40
T = TypeVar("T")


@pytest.fixture
def bank(share) -> str:
    """A queue, by its name."""
    return share().queue()


@pytest.fixture
def post(share) -> str:
    """And another one."""
    return share().queue()


@pytest.fixture
def system(share) -> Stack:
    return share()


@pytest.fixture
def same_after(system, bank, post) -> Callable[[Callable[[], T]], T]:
    """Makes a request that must change nothing: it sends no command and moves no counter."""
    def make(request: Callable[[], T]) -> T:
        before = {queue: (system.last_batch(queue), system.numbers(queue)) for queue in (bank, post)}
        answer = request()
        for queue, (last, numbers) in before.items():
            assert system.commands_since(queue, last) == []
            assert system.numbers(queue) == numbers
        return answer

    return make


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


def test_wrong_bodies(system, bank, same_after):
    client = system.client()
    for body, headers, status in WRONG_BODIES:
        answer = same_after(lambda b=body, h=headers: client.post(
            f"/v1/queues/{bank}/join", b, headers=h))
        problem = answer.problem(status)
        assert status == 415 or problem["detail"], body
        if body.startswith(b'{"visitor": }'):
            assert "line 1" in problem["detail"] and "column" in problem["detail"], problem


def test_wrong_bodies_of_a_trusted_caller(share, tmp_path):
    keys = tmp_path / "api.keys"
    keys.write_text(f"shop {API_KEY}\n")
    keys.chmod(0o600)
    system = share(settings={"secrets": {"api_keys": str(keys)}})
    bank = system.queue()
    client, path = system.client(), f"/v1/queues/{bank}/join"
    before = system.last_batch(bank), system.numbers(bank)
    for body in (b'{"lane": "nowhere"}', b'{"visitor": ""}', b'{"visitor": "two words"}',
                 b'{"visitor": "%s"}' % (b"x" * 65)):
        assert client.post(path, body, ticket=API_KEY).problem(400)["detail"]
    answer = client.post(path, b'{"visitor": "alice"}', ticket="w" * 40)
    assert answer.status in (401, 403), answer.body
    assert (system.commands_since(bank, before[0]), system.numbers(bank)) == ([], before[1])
    answer = client.post(path, b'{"visitor": "alice", "lane": "vip"}', ticket=API_KEY)
    assert answer.status == 200 and answer.json["visitor"] == "alice", answer.body


def test_sizes_beyond_the_limits(system, bank, same_after):
    client = system.client()
    body = b'{"visitor": "' + b"x" * 17000 + b'"}'
    assert same_after(lambda: client.post(f"/v1/queues/{bank}/join", body)).problem(413)
    client.close()
    answer = same_after(lambda: client.post(f"/v1/queues/{bank}/join",
                                                    headers={"X-Long": "x" * 100_000}))
    assert answer.status in (400, 413, 431), answer.status
    client.close()
    assert client.get(f"/v1/queues/{bank}").status == 200, "the worker goes on"


def test_chunked_body_beyond_the_limit(system, bank, same_after):
    """The limit must also hold without a Content-Length."""
    def send() -> int:
        with socket.create_connection(("127.0.0.1", system.of("worker")[0].http_port), patient(10)) as peer:
            peer.sendall(f"POST /v1/queues/{bank}/join HTTP/1.1\r\nHost: x\r\n".encode() +
                         b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                for _ in range(100):
                    peer.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
                peer.sendall(b"0\r\n\r\n")
            except OSError:
                pass  # refused before the end
            return int(peer.recv(4096).split(b" ")[1])

    assert same_after(send) == 413


def test_unknown_things(system, bank, post, same_after):
    client = system.client()
    wrong = [("POST", "/v1/queues/nowhere/join", 404), ("GET", "/v1/queues/nowhere", 404),
             ("GET", "/v1/queues/nowhere/status", 404), ("POST", "/v1/queues/BAD%0aNAME/join", 404),
             ("POST", "/v1/queues/" + "x" * 64 + "/join", 404), ("GET", "/v1/queue", 404),
             ("GET", f"/v1/queues/{bank}/../{post}/status", 404), ("GET", f"/v1/queues/{bank}/join", 405),
             ("DELETE", f"/v1/queues/{bank}/status", 405), ("POST", f"/v1/queues/{bank}", 405)]
    for method, path, status in wrong:
        answer = same_after(lambda m=method, p=path: client.request(m, p))
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


def test_forged_tickets(system, bank, same_after):
    visitor = system.join(bank)
    wait_until(visitor.is_active, PATIENCE, "the visitor is active")
    # The first sign of the visitor claims the session: the only command that a status request may send.
    session = system.key(bank, "sessions")
    wait_until(lambda: system.store.command("HVALS", session)[0].endswith(":1"), PATIENCE, "claimed")
    client = system.client()

    def try_all() -> Answer:
        for forged in forgeries(visitor.ticket):
            for verb, method in (("status", "GET"), ("leave", "POST"), ("complete", "POST"),
                                 ("renew", "POST"), ("extend", "POST")):
                answer = client.request(method, f"/v1/queues/{bank}/{verb}", ticket=forged)
                answer.problem(401)
                assert "Bearer" in answer.headers["www-authenticate"]
        return client.get(f"/v1/queues/{bank}/status")

    assert same_after(try_all).problem(401), "no ticket at all"
    assert visitor.status()["status"] == "active"


def test_ticket_of_another_queue(system, bank, post, same_after):
    visitor = system.join(bank)
    answer = same_after(lambda: system.client().post(f"/v1/queues/{post}/leave",
                                                             ticket=visitor.ticket))
    answer.problem(401)
    assert visitor.status()["status"] in ("waiting", "active")


def test_ticket_by_cookie_and_query(system, bank):
    visitor = system.visitor(bank)
    answer = visitor.client.post(f"{visitor.path}/join")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"tellerline_{bank}=") and "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie and "Secure" not in cookie, "the public address has no TLS"
    ticket = answer.json["ticket"]
    for headers, query in (({"Cookie": f"a=b; tellerline_{bank}={ticket}; c=d"}, ""),
                           ({}, f"?ticket={ticket}")):
        answer = visitor.client.get(f"{visitor.path}/status{query}", headers=headers)
        assert answer.status == 200 and answer.json["visitor"], answer.body
        assert answer.headers["cache-control"] == "no-store"


def test_what_a_visitor_sends_forges_no_log_line(system, bank):
    client = system.client()
    evil = "a\"b level=fatal msg=forged"
    client.get(f"/v1/queues/{bank}/status", headers={"X-Request-Id": evil, "User-Agent": evil})
    client.get("/v1/queues/x%0Alevel=fatal%20msg=forged/status")
    assert "msg=forged" not in system.of("worker")[0].text().replace('"', "\n")


IMPATIENT = {"http": {"idle_timeout": "1s"}}


def test_half_a_request_and_silence(share):
    """A connection that never finishes its request is closed, and does not disturb others meanwhile."""
    system = share(settings=IMPATIENT)
    bank, port = system.queue(), system.of("worker")[0].http_port
    peer = socket.create_connection(("127.0.0.1", port), patient(10))
    peer.sendall(f"POST /v1/queues/{bank}/join HTTP/1.1\r\nHost: x\r\nContent-Le".encode())
    assert system.client().get(f"/v1/queues/{bank}").status == 200
    peer.settimeout(patient(PATIENCE))
    while peer.recv(4096):
        pass
    peer.close()


def test_pipelined_requests_are_answered_in_order(system, bank, post):
    """Several requests in one write: also those behind a join that waits for its outcome, and behind a wrong one."""
    head = " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
    requests = [(f"GET /v1/queues/{bank}", 200), (f"POST /v1/queues/{bank}/join", 200), ("GET /v1/queues/nowhere", 404),
                (f"POST /v1/queues/{post}/join", 200), (f"GET /v1/queues/{bank}/status", 401), ("POST /v1/queue", 404),
                (f"GET /v1/queues/{post}", 200)]
    with socket.create_connection(("127.0.0.1", system.of("worker")[0].http_port), patient(PATIENCE)) as peer:
        peer.sendall("".join(line + head + "\r\n" for line, _ in requests[:-1]).encode()
                     + (requests[-1][0] + head + "Connection: close\r\n\r\n").encode())
        received = ""
        while data := peer.recv(65536):
            received += data.decode()
    answers = received.split("HTTP/1.1 ")[1:]
    assert [int(answer[:3]) for answer in answers] == [status for _, status in requests], received
    assert '"ticket"' in answers[1] and f"tellerline_{bank}=" in answers[1], answers[1]
    assert '"ticket"' in answers[3] and f"tellerline_{post}=" in answers[3], answers[3]
    assert [system.numbers(queue)["joined"] for queue in (bank, post)] == [1, 1]


def test_dripped_request_is_cut_off(share):
    """Single bytes do not keep a connection open: the whole request must arrive within idle_timeout."""
    system = share(settings=IMPATIENT)
    drops = itertools.chain(b"GET /livez HTTP/1.1\r\nX: ", itertools.repeat(ord("a")))
    with socket.create_connection(("127.0.0.1", system.of("worker")[0].http_port), patient(PATIENCE)) as slow:
        slow.settimeout(0.1)

        def is_closed() -> bool:
            try:
                slow.send(bytes([next(drops)]))
                return slow.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        wait_until(is_closed, PATIENCE, "it is closed")
    assert system.client().get("/livez").status == 200
