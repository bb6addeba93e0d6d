# SPDX-License-Identifier: Apache-2.0
"""Lanes with weights, and visitors whom the operator moves to another lane, with the real programs."""
from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import jwt
import pytest

from admin import Admin, admin_file
from http_client import CONNECTION_TROUBLE, Client, Visitor
from sse import EventStream
from tellerline import PATIENCE, System
from test_pass import key_file
from waiting import wait_until
from wire import LANE, read_ticket

API_KEY, SECRET = "k" * 40, "5e" * 32
QUEUE = {"lanes": ["vip", "normal"], "lane_weights": [3, 1], "capacity": 0, "session_ttl": "10m", "claim_ttl": "10m"}


@pytest.fixture
def begin(start: Callable[..., System], tmp_path: Path) -> Callable[..., System]:
    secrets = {"api_keys": key_file(tmp_path / "api.keys", f"shop {API_KEY}\n"),
               "invite_keys": key_file(tmp_path / "invite.keys", f"shop-1 HS256 {SECRET}\n")}
    return lambda queue=None, **more: start({"bank": QUEUE | (queue or {})}, settings={"secrets": secrets}, **more)


def enter(client: Client, name: str, lane: str) -> Visitor:
    body = json.dumps({"visitor": name, "lane": lane}).encode()
    answer = client.post("/v1/queues/bank/join", body, ticket=API_KEY)
    assert answer.status == 200, answer.body
    return Visitor(client, "bank", answer.json["ticket"])


def line(system: System, vip: int, normal: int) -> dict[str, Visitor]:
    """So many visitors of each lane, who came in turns. Returns them by name: v0, v1, ..., n0, n1, ..."""
    visitors, client = {}, system.client()
    for i in range(max(vip, normal)):
        for letter, lane, n in (("n", "normal", normal), ("v", "vip", vip)):
            if i < n:
                visitors[f"{letter}{i}"] = enter(client, f"{letter}{i}", lane)
    return visitors


def order_told(visitors: dict[str, Visitor]) -> list[str]:
    """The names by the positions that they are told, which are 1, 2, 3, ..."""
    told = sorted((visitor.status()["position"], name) for name, visitor in visitors.items())
    assert [position for position, _ in told] == list(range(1, len(told) + 1)), told
    return [name for _, name in told]


def serve(system: System, visitors: dict[str, Visitor], capacity: int) -> list[str]:
    """Lets `capacity` more in at once. Returns who is admitted."""
    before = {name for name, visitor in visitors.items() if visitor.view.get("status") == "active"}
    system.set("bank", f"capacity={len(before) + capacity}")
    wait_until(lambda: system.active("bank") == len(before) + capacity, PATIENCE, "they are admitted")

    def seen() -> set[str] | None:
        now = {name for name, visitor in visitors.items() if visitor.status()["status"] == "active"}
        return now - before if len(now) == len(before) + capacity else None

    return sorted(wait_until(seen, PATIENCE, "the worker knows"))


def test_visitors_are_admitted_as_their_positions_say(begin) -> None:
    system = begin()
    visitors = line(system, 12, 8)
    order = order_told(visitors)
    assert [name[0] for name in order[:8]] == list("vnvvvnvv") and order[-1] == "n7", order
    for capacity in (1, 1, 2, 5, 1, 6, 4):
        assert serve(system, visitors, capacity) == sorted(order[:capacity])
        order = order[capacity:]
        assert order_told({name: visitors[name] for name in order}) == order, "who is ahead has gone, and nobody came"


@pytest.mark.sanitized
def test_positions_hold_when_weights_change_and_admitters_are_killed(begin, figure) -> None:
    """What is told at any time comes true, whatever steps it is admitted in, whichever admitter and worker does it."""
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={seed}")
    chance = random.Random(seed)
    system = begin(workers=2, admitters=3)
    visitors = line(system, 30, 30)
    order, kills = order_told(visitors), 0
    assert order == order_by_store(system)
    other = system.client(1)
    while order:
        capacity = min(len(order), chance.randint(1, 8))
        victim = chance.choice(system.of("admitter"))
        victim.kill()
        assert serve(system, visitors, capacity) == sorted(order[:capacity]), f"after {kills} kills"
        order, kills = order[capacity:], kills + 1
        victim.start()
        if chance.random() < 0.4:
            system.set("bank", f"lane_weights={chance.choice(['1,1', '1,5', '7,2', ''])}")
            order = order_by_store(system)
        assert order == order_by_store(system)
        for client in (system.client(0), other):
            for place, name in enumerate(order, 1):
                wait_until(lambda: visitors[name].status(client)["position"] == place, PATIENCE,
                           f"both workers say that {name} is number {place}")
    figure(f"lanes with weights: {kills} admitters killed, every position told came true")


def order_by_store(system: System) -> list[str]:
    """The names in the order in which they are admitted, by what the store has: one after the other, by the rule itself."""
    scores = system.store.command("ZRANGE", system.key("bank", "waiting"), 0, -1, "WITHSCORES")
    waiting: dict[int, list[str]] = {}
    for name, score in zip(scores[::2], scores[1::2]):
        waiting.setdefault(int(float(score)) // LANE, []).append(name)
    weights = system.store.command("HGET", system.key("bank", "config"), "lane_weights")
    turns = system.store.command("HGET", system.key("bank", "state"), "turns") or ""
    shares = [int(weight) for weight in weights.split(",")] if weights else []
    known = turns.split(":") if turns.startswith(f"{weights}:") else [weights, "1", ",".join("0" for _ in shares)]
    due = [Fraction(int(each), int(known[1])) for each in known[2].split(",")] if shares else []
    order = []
    while waiting:
        lane = min(waiting, key=lambda lane: (due[lane] if shares else 0, lane))
        order.append(waiting[lane].pop(0))
        if shares:
            now = due[lane]
            due[lane] += Fraction(1, shares[lane])
            due = [max(each - now, Fraction()) for each in due]
        if not waiting[lane]:
            del waiting[lane]
    return order


def test_an_invite_carries_its_lane(begin) -> None:
    system = begin()
    client = system.client()
    visitors = line(system, 3, 3)
    invite = jwt.encode({"aud": "bank", "sub": "guest", "jti": "1", "lane": "vip", "exp": int(time.time()) + 600},
                        bytes.fromhex(SECRET), headers={"kid": "shop-1"})
    guest = client.post("/v1/queues/bank/join", json.dumps({"invite": invite}).encode()).json
    assert read_ticket(guest["ticket"]).lane == 0
    visitors["guest"] = Visitor(client, "bank", guest["ticket"])
    assert order_told(visitors) == ["v0", "n0", "v1", "v2", "guest", "n1", "n2"]


def move(system: System, visitor: str, lane: str, status: int = 0) -> str:
    done = system.ctl("visitor", "move", "bank", visitor, lane)
    assert done.returncode == status, f"{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_a_moved_visitor_keeps_the_seniority_and_the_old_ticket(begin) -> None:
    """Over an event stream and on two workers: the old ticket goes on working, and fresh ones name the new lane."""
    system = begin({"lane_weights": []}, workers=2)
    visitors = line(system, 3, 4)
    old = {name: visitor.ticket for name, visitor in visitors.items()}
    assert order_told(visitors) == ["v0", "v1", "v2", "n0", "n1", "n2", "n3"]
    streams = [EventStream(worker.http_port, "/v1/queues/bank/events", old["n1"]) for worker in system.of("worker")]
    for stream in streams:
        assert stream.event("position").json["position"] == 5
    poll = system.client(1)
    poll.send("GET", "/v1/queues/bank/status?wait=50s", ticket=old["n1"])
    assert "from lane normal to vip" in move(system, old["n1"], "vip")
    for stream in streams:
        view = stream.event("position").json
        assert view["position"] == 2, "behind v0, who joined before; ahead of v1 and v2"
        assert read_ticket(view["ticket"]).lane == 0
    assert poll.receive().json["position"] == 2
    for worker in range(2):
        client = system.client(worker)
        view = client.get("/v1/queues/bank/status", ticket=old["n1"]).json
        fresh = read_ticket(view["ticket"])
        assert (view["position"], fresh.lane, fresh.seq) == (2, 0, read_ticket(old["n1"]).seq)
        assert client.get("/v1/queues/bank/check", ticket=old["n1"]).status == 401
        assert client.post("/v1/queues/bank/join", ticket=old["n1"]).json["position"] == 2
    assert order_told(visitors) == ["v0", "n1", "v1", "v2", "n0", "n2", "n3"]

    # Back again, and once more; then the old ticket still opens the gate, and ends the session.
    move(system, "n1", "normal")
    move(system, "n1", "vip")
    for worker in system.of("worker"):  # a worker that starts later knows it from the store
        worker.kill()
        worker.start()
        worker.wait_ready()
    system.set("bank", "capacity=3")
    late = system.client(1)
    wait_until(lambda: late.get("/v1/queues/bank/status", ticket=old["n1"]).json["status"] == "active", PATIENCE, "is called")
    assert late.get("/v1/queues/bank/check", ticket=old["n1"]).status == 204
    answer = late.post("/v1/queues/bank/complete", ticket=old["n1"])
    assert answer.json["status"] == "completed"
    other = system.client(0)  # hears of it a moment later
    wait_until(lambda: other.get("/v1/queues/bank/status", ticket=old["n1"]).json["status"] == "completed", PATIENCE,
               "the other worker knows")
    # Who leaves with the old ticket leaves from the new lane.
    move(system, "n3", "vip")
    assert late.post("/v1/queues/bank/leave", ticket=old["n3"]).json["status"] == "left"
    for stream in streams:
        stream.close()


def test_who_cannot_be_moved_is_left_alone(begin) -> None:
    system = begin()
    line(system, 1, 1)
    assert "not one of the lanes" in move(system, "n0", "gold", 1)
    assert "already" in move(system, "n0", "normal")
    assert "no visitor" in move(system, "nobody", "vip", 1)
    system.set("bank", "capacity=2")
    wait_until(lambda: system.active("bank") == 2, PATIENCE, "both are called")
    assert "active already" in move(system, "n0", "vip", 1)
    usage = system.ctl("visitor", "move", "bank", "n0")
    assert usage.returncode == 2 and "QUEUE VISITOR LANE" in usage.stderr


def test_a_loss_does_not_undo_a_move_that_a_worker_remembers(begin) -> None:
    system = begin({"recovery_window": "5s", "lane_weights": []})
    visitors = line(system, 3, 3)
    old = visitors["n1"].ticket
    move(system, "n1", "vip")
    wait_until(lambda: visitors["n1"].status()["position"] == 2, PATIENCE, "the worker knows of the move")
    system.store.command("FLUSHALL")

    def back() -> bool:
        answers = [system.client().get("/v1/queues/bank/status", ticket=ticket)
                   for ticket in [*(v.ticket for name, v in visitors.items() if name != "n1"), old]]
        return all(answer.status == 200 for answer in answers) and system.waiting("bank") == len(visitors)

    wait_until(back, PATIENCE, "all are back", again_on=(*CONNECTION_TROUBLE, KeyError))
    view = system.client().get("/v1/queues/bank/status", ticket=old).json
    assert view["position"] == 2 and system.store.command("ZSCORE", system.key("bank", "waiting"), "n1") is not None
    assert int(float(system.store.command("ZSCORE", system.key("bank", "waiting"), "n1"))) < LANE


def test_the_most_lanes_with_the_longest_names_and_the_greatest_weights(begin) -> None:
    """A thousand visitors of 16 lanes are joined at once, and admitted in turns; the command line names each lane."""
    lanes = [f"lane-{i:02}-" + "x" * 23 for i in range(16)]
    assert {len(lane) for lane in lanes} == {31}
    system = begin({"lanes": lanes, "lane_weights": [1000] * 16}, prepare=admin_file)
    admin = Admin(system.of("worker")[0])
    people = [{"visitor": f"p{i}", "lane": lanes[-1 - i % 16]} for i in range(992)]
    told = admin.done("POST", "queues/bank/joins", {"visitors": people})["visitors"]
    assert [(one["visitor"], one["lane"]) for one in told] == [(one["visitor"], one["lane"]) for one in people]
    assert admin.call("POST", "queues/bank/joins", {"visitors": [{"visitor": "q", "lane": "lane-16"}]}).status == 422
    system.set("bank", "capacity=500")
    wait_until(lambda: system.active("bank") == 500, PATIENCE, "half of them are admitted")

    def admitted() -> list[int]:
        return [place for step in system.steps("bank") for place in step.admitted]

    def shares() -> list[int]:
        return [sum(place // LANE == lane for place in admitted()) for lane in range(16)]

    assert shares() == [32] * 4 + [31] * 12, "they are admitted in turns"
    system.set("bank", "lane_weights=" + ",".join(["1000"] * 15 + ["1"]), "capacity=961")
    wait_until(lambda: system.active("bank") == 961, PATIENCE, "almost all are admitted")
    assert shares()[15] <= 32, "the lane with the least weight is served last"
    system.set("bank", "capacity=992")
    wait_until(lambda: system.active("bank") == 992, PATIENCE, "all are admitted")
    assert system.waiting("bank") == 0
    for lane in range(16):
        own = [place for place in admitted() if place // LANE == lane]
        assert own == sorted(own) and len(own) == 62
    shown = system.ctl("queue", "show", "bank")
    assert shown.returncode == 0 and all(lane in shown.stdout for lane in lanes), shown.stdout + shown.stderr
    admin.close()
