# SPDX-License-Identifier: Apache-2.0
"""A flood of joins from a few addresses beside ordinary visitors, and a line that is full.

With `tests/run --soak SECONDS` the flood lasts so long and has the default limit, for figures: run it against a release
build (TELLERLINE_TEST_BIN)."""
from __future__ import annotations

import itertools
import os
import socket
import statistics
import threading
import time

from http_client import Client
from tellerline import CALM, PATIENCE
from waiting import patient, wait_until

SOAK = float(os.environ.get("TELLERLINE_SOAK", 0))
LIMIT = 3000 if SOAK else 40  # joins of an address per minute
ATTACKERS = [f"127.0.0.{i}" for i in range(2, 12)]
DEPTH, BATCHES = 200, 10  # requests that an attacker sends at once; how many different such
ANSWER_MIN = 250  # bytes
ORDINARY = 60  # joins of ordinary visitors that are measured, at least
JOIN = "POST /v1/queues/bank/join HTTP/1.1\r\nHost: bank\r\nX-Forwarded-For: {}\r\nContent-Length: 0\r\n\r\n"
STATUSES = {status: b"HTTP/1.1 %d " % status for status in (200, 202, 429, 503)}


class Attacker(threading.Thread):
    """Joins from one address as fast as it can, through a trusted proxy."""

    def __init__(self, port: int, address: str, over: threading.Event) -> None:
        super().__init__()
        self.statuses: dict[int, int] = {}
        self._port, self._over = port, over
        # Each time with another claim of its own, which stands before what the proxy wrote, in a line of its own.
        claims = [f"203.0.{i >> 8}.{i & 255}\r\nX-Forwarded-For: {address}" for i in range(BATCHES * DEPTH)]
        self._batches = ["".join(JOIN.format(claim) for claim in claims[i::BATCHES]).encode() for i in range(BATCHES)]

    def run(self) -> None:
        with socket.create_connection(("127.0.0.1", self._port), timeout=patient(PATIENCE)) as connection:
            for batch in itertools.cycle(self._batches):
                if self._over.is_set():
                    return
                connection.sendall(batch)
                self._receive(connection)

    def _receive(self, connection: socket.socket) -> None:
        """Counts DEPTH answers; each body is a JSON object. In as few steps as possible: the flood is to be large. So
        it is woken first when most of them have come."""
        parts: list[bytes] = []
        answers = 0
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, DEPTH * ANSWER_MIN)
        while answers < DEPTH or not parts[-1].endswith((b"}", b"}\n")):
            parts.append(connection.recv(1 << 20))
            assert parts[-1], "the worker closed the connection"
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            answers += parts[-1].count(b"HTTP/1.1 ")
            if answers >= DEPTH - 1:  # the end of a part may have cut one in two
                answers = b"".join(parts).count(b"HTTP/1.1 ")
        text = b"".join(parts)
        found = {status: text.count(line) for status, line in STATUSES.items()}
        assert sum(found.values()) == DEPTH, text[:1000]
        for status, count in found.items():
            self.statuses[status] = self.statuses.get(status, 0) + count

    @property
    def places(self) -> int:
        return sum(count for status, count in self.statuses.items() if status in (200, 202))


def minute() -> int:
    """The window of the limit: the clock is that of the workers."""
    return int(time.monotonic()) // 60


def test_a_flood_leaves_the_room_to_others(start, figure):
    """Ten addresses get what one address may have each, and no ordinary visitor is refused."""
    system = start({"bank": {"capacity": 0} | CALM}, settings={
        "worker": {"processes": 2}, "http": {"joins_per_minute": LIMIT, "trusted_proxies": "127.0.0.1"}})
    port = next(program.http_port for program in system.programs if program.role == "worker")
    over = threading.Event()
    attackers = [Attacker(port, address, over) for address in ATTACKERS]
    began, first = time.monotonic(), minute()
    for attacker in attackers:
        attacker.start()
    times: list[float] = []
    client = Client(port)
    try:
        while len(times) < ORDINARY or time.monotonic() - began < SOAK or not all(a.statuses.get(429) for a in attackers):
            assert time.monotonic() - began < patient(PATIENCE) + SOAK and all(a.is_alive() for a in attackers)
            n = len(times)
            since = time.monotonic()
            answer = client.post("/v1/queues/bank/join", headers={"X-Forwarded-For": f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}"})
            times.append(time.monotonic() - since)
            assert answer.status == 200, answer.body
    finally:
        over.set()
        for attacker in attackers:
            attacker.join(patient(PATIENCE))
        client.close()
    seconds, windows = time.monotonic() - began, minute() - first + 1
    for attacker in attackers:
        assert 0 < attacker.places <= LIMIT * windows, attacker.statuses
    asked = sum(sum(attacker.statuses.values()) for attacker in attackers)
    figure(f"{asked / seconds:,.0f} joins a second from {len(attackers)} addresses; an ordinary join: median "
           f"{statistics.median(times) * 1000:.1f} ms, p99 {statistics.quantiles(times, n=100)[98] * 1000:.1f} ms of {len(times)}")
    taken = sum(attacker.places for attacker in attackers) + len(times)
    wait_until(lambda: Client(port).get("/v1/queues/bank").json["waiting"] == taken, PATIENCE,
               "the line holds the places that were answered and no others")


def test_a_full_line_is_told_and_mends_itself(start):
    """Two workers, which do not know of each other's joins at once, together take exactly so many."""
    system = start({"bank": {"capacity": 0, "max_waiting": 5, "reopen": {"after": "1s"}} | CALM}, workers=2)
    ports = [program.http_port for program in system.programs if program.role == "worker"]
    clients = [Client(ports[i % 2]) for i in range(12)]
    for client in clients:
        client.send("POST", "/v1/queues/bank/join")
    answers = [client.receive() for client in clients]
    taken = [(client, answer.json["ticket"]) for client, answer in zip(clients, answers) if answer.status == 200]
    assert len(taken) == 5
    for answer in answers:
        if answer.status != 200:
            problem = answer.problem(503)
            assert problem["type"] == "/problems/full" and int(answer.headers["retry-after"]) >= 15
    again = taken[0][0].post("/v1/queues/bank/join", ticket=taken[0][1])
    assert again.status == 200, "who holds a place keeps it"
    for language, text in (("en", "The line is full"), ("ko", "대기열이 가득 찼습니다")):
        page = clients[0].get("/q/bank", headers={"Accept-Language": language})
        assert page.status == 503 and text in page.body.decode() and b'http-equiv="refresh"' in page.body
    assert taken[0][0].post("/v1/queues/bank/leave", ticket=taken[0][1]).status == 200
    wait_until(lambda: clients[1].post("/v1/queues/bank/join").status == 200, PATIENCE, "the place is given again")
    for client in clients:
        client.close()
