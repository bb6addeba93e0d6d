# SPDX-License-Identifier: Apache-2.0
"""docs/integrators/openapi.yaml against the running service: every answer is documented, and every documented answer
occurs."""
from __future__ import annotations

import json
import re
import signal
from datetime import datetime, timedelta, timezone
from typing import Any

import jsonschema
import pytest
import yaml

from challenge_service import SECRET as SERVICE_SECRET
from challenge_service import SITE_KEY, ChallengeService
from contract import METHODS, Contract
from http_client import Answer, Client, Visitor, redeem, redeem_by_page
from puzzles import asked, join, solve
from sse import EventStream
from tellerline import CALM, PATIENCE, TOP, System
from test_pass import API_KEY, Shop, key_file
from test_push import post_notice
from test_store_trouble import STORE_TROUBLE
from waiting import wait_until

pytestmark = pytest.mark.together

DOCUMENT = TOP / "docs" / "integrators" / "openapi.yaml"

#: Documented answers that are not provoked here, each with its reason.
ELSEWHERE = {
    "/problems/stopping": "a moment that cannot be held",
    "/problems/loading": "a worker serves after its lines are loaded, so only a new queue answers this, for a moment",
    "image/png": "a logo, if the operator has one",
    "image/webp": "the same",
    "trail": "test_trail_served has an archive",
    "trailProof": "the same",
    "pageProof": "test_proof_page has one",
    "/problems/no-transfer": "a setting of the whole process; test_handover has it",
}


class Witness(Client):
    """A client that checks every answer against the document."""

    def __init__(self, contract: Contract, port: int) -> None:
        super().__init__(port)
        self._contract = contract
        self._asked = ("", "")

    def send(self, method: str, path: str, *args: Any, **more: Any) -> None:
        self._asked = (method, path)
        super().send(method, path, *args, **more)

    def receive(self) -> Answer:
        answer = super().receive()
        assert "x-request-id" in answer.headers, self._asked
        self._contract.check(*self._asked, answer)
        return answer


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract(DOCUMENT)


def witness(contract: Contract, system: System) -> Witness:
    return Witness(contract, system.of("worker")[0].http_port)


def stream_view(contract: Contract, stream: EventStream, kind: str) -> None:
    assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
    contract.validate(stream.event(kind).json, {"$ref": "#/components/schemas/View"}, kind)
    contract.seen.add(("events", "200", "text/event-stream", ""))


# ---- provoking the answers ----

def ordinary(contract: Contract, system: System, shop: Shop) -> None:
    client = witness(contract, system)
    first = Visitor(client, "bank").join()
    wait_until(first.is_active, PATIENCE, "the first is active")
    assert first.renew()
    second, third = Visitor(client, "bank").join(), Visitor(client, "bank").join()
    post_notice(system, "open until six")
    wait_until(lambda: second.status().get("notice") == "open until six", PATIENCE, "the notice")
    for visitor, kind in ((first, "admitted"), (second, "position")):
        stream = EventStream(client.port, f"{visitor.path}/events", visitor.ticket)
        stream_view(contract, stream, kind)
        contract.validate(stream.event("notice").json, {"$ref": "#/components/schemas/Notice"}, "")
        stream.close()
    for verb in ("complete", "renew", "extend"):
        client.post(f"{second.path}/{verb}", ticket=second.ticket).problem(409)
    handed_over(client, second, first)
    assert client.post(f"{first.path}/extend", ticket=first.ticket).json["status"] == "active"
    third.leave()
    stream = EventStream(client.port, f"{third.path}/events", third.ticket)
    stream_view(contract, stream, "ended")
    stream.close()
    assert client.get(f"{first.path}/check", ticket=first.ticket).status == 204
    assert client.get(f"{first.path}/check").status == 401
    first.complete()
    wait_until(second.is_active, PATIENCE, "the next is active")
    client.get("/v1/queues/bank")
    client.get("/v1/queues/later")
    Visitor(client, "later").join().status()
    client.get("/readyz?exclude=store")
    client.get("/readyz?exclude=disk")
    for path in ("/livez", "/readyz", "/.well-known/jwks.json"):
        assert client.get(path).status == 200
    joined = client.post("/v1/queues/bank/join",
                         json.dumps({"invite": shop.invite("user-1", jti="1")}).encode())
    Visitor(client, "bank", joined.json["ticket"]).leave()
    shop_joins, solved = contract.bodies()["join", "request"][0]
    trusted = client.post("/v1/queues/bank/join", json.dumps(shop_joins).encode(), ticket=API_KEY)
    assert trusted.json["visitor"] == shop_joins["visitor"]
    assert client.post("/v1/queues/bank/join", json.dumps(solved).encode()).status == 200, "no solution is asked for"
    (report,), _ = contract.bodies()["feedback", "request"]
    assert client.post("/v1/queues/bank/feedback", json.dumps(report).encode(), ticket=API_KEY).status == 202
    answer = client.get("/openapi.yaml")
    assert yaml.safe_load(answer.body) == contract.document, "it is served as it is"


def handed_over(client: Client, waits: Visitor, inside: Visitor) -> None:
    """The place that waits goes to another device, twice: through the API and through the pages."""
    path, old = waits.path, waits.ticket
    code = client.post(f"{path}/transfer", ticket=old).json["code"]
    for body, status in ((None, 400), (b"x", 400), (b'{"code": "x"}', 403), (f'{{"code": "{code}", "device": "x"}}'.encode(), 400)):
        client.post(f"{path}/move", body).problem(status)
        assert client.post("/q/bank/move", body).status == status
    for bad in ("", "x"):
        assert redeem_by_page(client, "/q/bank/move", bad).status == 403
    waits.ticket = redeem(client, "bank", code).json["ticket"]
    redeem(client, "bank", code).problem(409)
    assert redeem_by_page(client, "/q/bank/move", code).status == 409
    assert client.get(f"{path}/status", ticket=old).json["status"] == "moved"
    for verb in ("leave", "complete", "renew", "extend", "transfer", "join"):
        assert client.post(f"{path}/{verb}", ticket=old).problem(409)["type"] == "/problems/moved"
    client.post(f"{path}/transfer", ticket=inside.ticket).problem(409)
    assert client.post(f"/q/bank/transfer?ticket={inside.ticket}").status == 303
    assert client.post(f"/q/bank/transfer?ticket={old}").status == 409
    page = client.post(f"/q/bank/transfer?ticket={waits.ticket}").body.decode()
    code = page.split("/q/bank/move#")[1].split('"')[0]
    assert client.get("/q/bank/move").status == 200
    moved = redeem_by_page(client, "/q/bank/move", code)
    waits.ticket = moved.headers["set-cookie"].partition("=")[2].partition(";")[0]
    gone = Visitor(client, "bank").join()
    code = client.post(f"{path}/transfer", ticket=gone.ticket).json["code"]
    gone.leave()
    redeem(client, "bank", code).problem(410)
    assert redeem_by_page(client, "/q/bank/move", code).status == 410


def refused(contract: Contract, system: System, shop: Shop) -> None:
    client = witness(contract, system)
    large = b" " * 17000
    for template, item in contract.document["paths"].items():
        for queue in ("bank", "nowhere"):
            path = template.replace("{queue}", queue).replace("{file}", "none.css")
            client.request("PUT", path).problem(405)
            for method in (name for name in METHODS if name in item):
                client.request(method.upper(), path)
                if "413" in item[method]["responses"]:
                    assert client.request(method.upper(), path, large).status == 413
                    client.close()
    join = "/v1/queues/bank/join"
    client.get("/v1/queues/bank/status?wait=x", ticket=Visitor(client, "bank").join().ticket)
    for body, status in ((b"{", 400), (b'{"visitor": "u"}', 403), (b'{"invite": "x.y.z"}', 403),
                         (json.dumps({"invite": shop.invite("user-2", jti="1")}).encode(), 403)):
        client.post(join, body).problem(status)
    client.post(join, headers={"Idempotency-Key": "too short"}).problem(400)
    client.post("/v1/queues/club/join").problem(403)
    removed = Visitor(client, "bank").join()
    assert system.ctl("visitor", "remove", "bank", removed.ticket, "--yes").returncode == 0
    wait_until(lambda: removed.status().get("end_reason") == "removed", PATIENCE, "removed")
    client.post(join, ticket=removed.ticket).problem(403)
    feedback = "/v1/queues/bank/feedback"
    assert client.post(feedback, b'{"load": 0.5}', ticket=API_KEY).status == 202
    client.post(feedback, b'{"load": 5}', ticket=API_KEY).problem(400)
    client.post(feedback, b'{"load": 0.5}').problem(403)
    wait_until(lambda: client.post(feedback, b'{"load": 0.5}', ticket=API_KEY).status == 429, PATIENCE,
               "more reports than an API key may make", every=0.001)
    for verb in ("join", "leave", "complete", "renew", "extend", "transfer", "move", "feedback"):
        foreign = client.post(f"/v1/queues/bank/{verb}", headers={"Origin": "https://evil.example"})
        assert foreign.problem(403)["type"] == "/problems/cross-origin"
    client.post(join, b"{}", headers={"Content-Type": "text/plain"}).problem(415)
    client.get("/nowhere").problem(404)


def pages(contract: Contract, system: System, shop: Shop) -> None:
    client = witness(contract, system)
    answer = client.get("/q/bank")
    ticket = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    cookie = {"Cookie": f"tellerline_bank={ticket}"}
    icon = re.search(r"/q/assets/[\w.-]+\.svg", answer.body.decode()).group()
    given = client.get(icon)
    assert given.status == 200
    assert client.get(icon, headers={"If-None-Match": given.headers["etag"]}).status == 304
    assert client.get("/problems/sold-out").body.startswith(b"sold-out (410)\nSold out\n")
    assert client.get("/problems/none").problem(404)["type"] == "/problems/not-found"
    for verb in ("leave", "join"):
        assert client.post(f"/q/bank/{verb}", headers=cookie).status == 303
    assert client.post("/q/bank/leave").status == 401
    assert client.post("/q/bank/leave", headers={"Origin": "https://evil.example"}).status == 403
    assert client.get("/q/bank", headers={"Sec-Purpose": "prefetch"}).status == 204
    assert client.get(f"/q/bank?ticket={ticket}", headers=cookie).status == 303
    for method in ("GET", "POST"):
        path = "/q/club" if method == "GET" else "/q/club/join"
        assert client.request(method, path).status == 403
        nowhere = shop.invite("user-9", aud="club", lane="nowhere")
        assert client.request(method, f"{path}?invite={nowhere}").status == 400


def challenged(contract: Contract, system: System) -> None:
    """A queue with a challenge."""
    client = witness(contract, system)
    solution = solve(asked(client, "gate"))
    assert join(client, "gate", solution).status == 200
    assert join(client, "gate", "x").problem(403)["type"] == "/problems/challenge-failed"
    script = re.search(r"/q/assets/challenge-[\w.-]+\.js", client.get("/q/gate").body.decode()).group()
    assert client.get(script).status == 200
    assert client.get("/q/gate").status == 200
    assert client.post("/q/gate/join").status == 200


def verified(contract: Contract, system: System, service: ChallengeService) -> None:
    """A queue with a challenge service."""
    client = witness(contract, system)
    path = "/v1/queues/door/join"
    assert client.post(path).problem(403)["provider"] == "turnstile"
    assert client.post(path, b'{"token": "bad-1"}').problem(403)["type"] == "/problems/challenge-failed"
    assert client.post(path, b'{"token": "error-1"}').problem(503)["type"] == "/problems/challenge-unavailable"
    assert client.post(path, b'{"token": "good-1"}').status == 200 and len(service.forms) == 3
    assert client.get("/q/door").status == 200


def crowded(contract: Contract, system: System) -> None:
    """More joins from one address than the limit allows, and then more than may wait."""
    client = witness(contract, system)
    system.set("bank", "capacity=0")
    ticket = Visitor(client, "bank").join().ticket
    client.post("/v1/queues/bank/join").problem(429)
    code = client.post("/v1/queues/bank/transfer", ticket=ticket).json["code"]
    for answer in (client.post("/v1/queues/bank/transfer", ticket=ticket), redeem(client, "bank", code)):
        assert answer.problem(429)["type"] == "/problems/too-often"
    assert client.post(f"/q/bank/transfer?ticket={ticket}").status == 429
    assert redeem_by_page(client, "/q/bank/move", code).status == 429
    sorry = client.get("/q/bank")
    assert sorry.status == 429 and sorry.headers["content-security-policy"] == "default-src 'none'"
    assert sorry.headers["refresh"].startswith(f"{sorry.headers['retry-after']}; url=/q/bank")
    assert client.post("/q/bank/join").status == 429
    system.set("bank", "max_waiting=1")
    trusted = {"Authorization": f"Bearer {API_KEY}"}
    wait_until(lambda: client.post("/v1/queues/bank/join", headers=trusted).status == 503, PATIENCE, "the line is full")
    assert client.post("/v1/queues/bank/join", headers=trusted).problem(503)["type"] == "/problems/full"


def drawn(contract: Contract, system: System) -> None:
    """The list of a draw: before and after it, lost, asked for too often and by too many, and without the store."""
    client, path = witness(contract, system), "/v1/queues/sale/draw"
    for _ in range(3):
        Visitor(client, "sale").join()
    assert client.get(path).json["phase"] == "none"
    system.set("sale", f"opens_at={(datetime.now(timezone.utc) + timedelta(seconds=0.3)).isoformat()}")
    wait_until(lambda: client.get("/v1/queues/sale").json.get("drawn") == 3, PATIENCE, "the draw is done")
    page = client.get(path)
    assert len(page.json["ids"]) == 3
    assert client.get(path, headers={"If-None-Match": page.headers["etag"]}).status == 304
    for query in ("starting_after=-1", "starting_after=x", "starting_after=", "starting_after=1099511627777", "limit=1001", "limit=-1"):
        client.get(f"{path}?{query}").problem(400)
    there, away = system.key("sale", "drawn"), system.key("sale", "away")
    system.store.command("RENAME", there, away)
    client.get(path).problem(404)
    system.store.command("RENAME", away, there)
    wait_until(lambda: client.get(path).status == 429, PATIENCE, "more pages than an address may have", every=0.001)
    system.redis.send(signal.SIGSTOP)
    waiting = []
    for i in range(17):
        one = witness(contract, system)
        one.send("GET", path, headers={"X-Forwarded-For": f"192.0.2.{i}"})
        waiting.append(one)
    kinds = [one.receive().problem(503)["type"] for one in waiting]
    system.redis.send(signal.SIGCONT)
    assert sorted(kinds)[0] == "/problems/busy" and kinds.count("/problems/store-unavailable") == 16, kinds
    wait_until(lambda: client.get(path).status == 200, PATIENCE, "the store is back", every=0.2)


def states(contract: Contract, system: System) -> None:
    """The modes of a queue, and the end of its time."""
    client = witness(contract, system)
    join, page = "/v1/queues/bank/join", "/q/bank"
    Visitor(client, "bank").join()
    ticket = Visitor(client, "bank").join().ticket  # it waits, as there is one slot

    def is_so(mode: str) -> bool:
        return client.get("/v1/queues/bank").json["mode"] == mode

    for command, mode, status in (("pause", "paused", 200), ("drain", "draining", 403), ("close", "closed", 403),
                                  ("sell-out", "sold_out", 410)):
        assert system.ctl("queue", command, "bank").returncode == 0
        wait_until(lambda: is_so(mode), PATIENCE, mode)
        assert client.post(join).status == status
        assert client.get(page).status == status
        assert client.post(f"{page}/join").status in (status, 303)
        assert client.get("/v1/queues/bank/status", ticket=ticket).status == 200
        assert client.get("/v1/queues/bank/check").status == 401
    assert system.ctl("queue", "passthrough", "bank").returncode == 0
    wait_until(lambda: is_so("passthrough"), PATIENCE, "passthrough")
    assert client.post(join).json["status"] == "passthrough"
    assert client.get(page).headers["location"] == client.post(f"{page}/join").headers["location"]
    assert client.get("/v1/queues/bank/check").status == 204
    assert client.get("/v1/queues/bank/status", ticket=ticket).status == 200
    assert system.ctl("queue", "open", "bank").returncode == 0
    system.set("bank", "closes_at=2001-01-01T00:00:00Z")
    wait_until(lambda: client.get("/v1/queues/bank").json["phase"] == "over", PATIENCE, "over")
    assert client.post(join).problem(410)["type"] == "/problems/join-closed"
    assert client.get("/v1/queues/bank/status", ticket=ticket).status == 200


def blocked(contract: Contract, system: System) -> None:
    """The operator blocks the address of this test."""
    client = witness(contract, system)
    ticket = Visitor(client, "bank").join().ticket
    assert system.ctl("block", "add", "127.0.0.1").returncode == 0
    wait_until(lambda: client.post("/v1/queues/bank/join").status == 403, PATIENCE, "blocked")
    for verb in ("status", "events"):
        assert client.get(f"/v1/queues/bank/{verb}", ticket=ticket).problem(403)["type"] == "/problems/blocked"
    for verb in ("transfer", "move"):
        assert client.post(f"/v1/queues/bank/{verb}", ticket=ticket).problem(403)["type"] == "/problems/blocked"
        assert client.post(f"/q/bank/{verb}").status == 403
    assert client.get("/q/bank").status == client.post("/q/bank/join").status == client.get("/q/bank/move").status == 403


def shared(contract: Contract, system: System) -> None:
    """Two clients use one session in turn."""
    client = witness(contract, system)
    visitor = Visitor(client, "bank").join()
    wait_until(visitor.is_active, PATIENCE, "admitted")

    def refused() -> bool:
        statuses = [client.get("/v1/queues/bank/check", ticket=visitor.ticket,
                               headers={"X-Forwarded-For": address, "User-Agent": address}).status
                    for address in ("192.0.2.7", "198.51.100.7")]
        return statuses == [204, 403]

    wait_until(refused, PATIENCE, "the later one is refused", every=0.2)


def forged(contract: Contract, system: System, shop: Shop) -> None:
    """More forged passes, and forged invites, from one address than are verified in a minute."""
    client = witness(contract, system)
    visitor = Visitor(client, "bank").join()
    wait_until(visitor.is_active, PATIENCE, "the visitor is active")

    def other(token: str) -> str:
        signed, _, signature = token.rpartition(".")
        return f"{signed}.{signature[:9]}{'B' if signature[9] == 'A' else 'A'}{signature[10:]}"

    gate = other(visitor.view["pass"])
    invite = json.dumps({"invite": other(shop.invite("user-1", key=shop.es256, algorithm="ES256", kid="shop-2"))}).encode()
    for ask in (lambda: client.get("/v1/queues/bank/check", ticket=gate),
                lambda: client.post("/v1/queues/bank/join", invite)):
        answer = wait_until(lambda: (now := ask()).status == 429 and now, PATIENCE, "they are not verified any more", every=0)
        assert answer.problem(429)["type"] == "/problems/too-many-forgeries"


def slow_dispatcher(contract: Contract, system: System) -> None:
    """Joins are not numbered for a while: 202, and the answers possible in that state."""
    client = witness(contract, system)
    inside, waiting = Visitor(client, "bank").join(), Visitor(client, "bank").join()
    # The session is claimed, so that no other command is pending.
    wait_until(inside.is_active, PATIENCE, "the first is active")
    session = system.key("bank", "sessions")
    wait_until(lambda: system.store.command("HVALS", session)[0].endswith(":1"), PATIENCE, "claimed")
    code = client.post("/v1/queues/bank/transfer", ticket=waiting.ticket).json["code"]
    dispatcher = system.of("dispatcher")[0]
    dispatcher.send(signal.SIGSTOP)
    pending = client.post("/v1/queues/bank/join")
    assert pending.status == 202 and pending.json["status"] == "pending", pending
    ticket = pending.json["ticket"]
    assert client.get("/v1/queues/bank/status", ticket=ticket).status == 202
    stream = EventStream(client.port, "/v1/queues/bank/events", ticket)
    stream_view(contract, stream, "pending")
    stream.close()
    assert client.post("/v1/queues/bank/leave", ticket=ticket).status == 202, "it is done when the place is known"
    for verb in ("complete", "renew", "extend", "transfer"):
        problem = client.post(f"/v1/queues/bank/{verb}", ticket=ticket).problem(409)
        assert problem["type"] == "/problems/pending"
    problem = redeem(client, "bank", code, device="a").problem(503)
    assert problem["type"] == "/problems/unknown-outcome"
    page = redeem_by_page(client, "/q/bank/move", code)
    assert page.status == 503 and f'name="code" value="{code}"' in page.body.decode(), "the page can be sent again"
    assert '<section data-state="move_here">' in page.body.decode() and 'name="device" value="a"' in page.body.decode()
    unknown = client.post("/v1/queues/bank/leave", ticket=waiting.ticket).problem(503)
    assert unknown["type"] == "/problems/unknown-outcome"
    for verb in ("complete", "renew", "extend"):
        client.post(f"/v1/queues/bank/{verb}", ticket=inside.ticket).problem(503)
    # Beyond worker.max_pending.
    wait_until(lambda: client.post("/v1/queues/bank/join").status == 503, PATIENCE, "busy")
    problem = client.get("/v1/queues/bank/status", ticket=ticket).problem(503)
    assert problem["type"] == "/problems/busy"
    for verb in ("leave", "complete", "renew", "extend", "transfer", "move"):
        client.post(f"/v1/queues/bank/{verb}", ticket=inside.ticket).problem(503)
    dispatcher.send(signal.SIGCONT)

    def is_left() -> bool:
        answer = client.get("/v1/queues/bank/status", ticket=ticket)
        return answer.status == 200 and answer.json["status"] == "left"

    wait_until(is_left, PATIENCE, "the leave is remembered until the place is known", every=0.1)
    assert client.request("HEAD", "/v1/queues/bank/events", ticket=ticket).status == 200

    # An end that the worker must look up: the stream reports it once the store has answered.
    inside.leave()
    client.close()
    worker = system.of("worker")[0]
    worker.stop()
    worker.start()
    worker.wait_ready()
    stream = EventStream(client.port, "/v1/queues/bank/events", inside.ticket)
    assert stream.event("ended").json["end_reason"] == "completed"
    stream.close()


def store_away(contract: Contract, system: System) -> None:
    """The store stops and returns empty: the tickets of earlier visitors are of an old generation."""
    client = witness(contract, system)
    inside = Visitor(client, "bank").join()
    dispatcher = system.of("dispatcher")[0]
    dispatcher.send(signal.SIGSTOP)
    pending = client.post("/v1/queues/bank/join").json["ticket"]
    dispatcher.send(signal.SIGCONT)
    system.redis.kill()
    system.forget_store()
    wait_until(lambda: client.get("/readyz").status == 503, PATIENCE, "the worker reports the store's absence")
    client.post("/v1/queues/bank/join").problem(503)
    client.post("/v1/queues/bank/feedback", b'{"load": 0.5}', ticket=API_KEY).problem(503)
    client.get("/v1/queues/bank/status", ticket=pending).problem(503)
    for verb in ("leave", "complete", "renew", "extend", "transfer", "move"):
        client.post(f"/v1/queues/bank/{verb}", ticket=inside.ticket).problem(503)
    assert client.get("/q/bank").status == 503
    assert client.post("/q/bank/join").status == 503
    cookie = {"Cookie": f"tellerline_bank={inside.ticket}"}
    for verb in ("leave", "transfer", "move"):
        assert client.post(f"/q/bank/{verb}", headers=cookie).status == 503
    for leftover in system.directory.glob("appendonlydir/*"):
        leftover.unlink()
    system.redis.start()
    for program in system.programs:
        program.wait_ready()
    path = "/v1/queues/bank"
    wait_until(lambda: client.get(f"{path}/status", ticket=inside.ticket).status == 409, PATIENCE,
               "the queue was created again")
    assert client.get(f"{path}/events", ticket=inside.ticket).status == 409
    for verb in ("leave", "complete", "renew", "extend", "transfer"):
        problem = client.post(f"{path}/{verb}", ticket=inside.ticket).problem(409)
        assert problem["type"] == "/problems/queue-recreated"
    assert client.get("/q/bank", headers=cookie).status == 409
    assert client.post("/q/bank/leave", headers=cookie).status == 409


# ---- tests ----

def test_document_is_sound(contract):
    """Every schema is valid, every reference resolves, every component is used."""
    assert contract.document["openapi"].startswith("3.1.")
    used = set()

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if "$ref" in node:
                used.add(node["$ref"])
                assert contract.resolve(node)
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(contract.document)
    for schema in contract.document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for group in ("parameters", "headers", "responses", "schemas", "examples"):
        for name in contract.document["components"][group]:
            if name != "Notice":  # described in prose: OpenAPI has no schema for single events
                assert f"#/components/{group}/{name}" in used, f"{group}/{name} is used nowhere"
    names = [item[method]["operationId"] for item in contract.document["paths"].values()
             for method in METHODS if method in item]
    assert len(names) == len(set(names))


def test_every_body_has_an_example(contract):
    bodies = contract.bodies()
    assert {"join", "status", "leave", "move", "transfer", "feedback", "draw", "queue", "keys"} <= {name for name, _ in bodies}
    for which, (examples, schema) in bodies.items():
        assert examples, f"{which}: no example"
        for example in examples:
            contract.validate(example, schema, f"{which}: the example")
            assert contract.strange(example, [schema]) == [], which


def test_a_member_that_no_schema_has_is_strange(contract):
    draw = {"queue": "sale", "opening": "draw"}
    assert contract.strange(draw, [{"$ref": "#/components/schemas/Draw"}]) == ["$.opening"]
    place = {"properties": {"lane": {"type": "string"}}}
    nested = {"allOf": [{"properties": {"line": {"items": {"anyOf": [place, {"properties": {"number": {}}}]}}}}]}
    assert contract.strange({"line": [{"lane": "vip", "number": 1}, {"lan": "vip"}]}, [nested]) == ["$.line[1].lan"]
    assert contract.strange({"free": {"any": 1}}, [{"properties": {"free": {"type": "object"}}}]) == []


def test_every_route_is_documented(contract):
    """Compares the document with the table of routes."""
    table = (TOP / "worker" / "api" / "routes.c").read_text()
    routes = {(method, re.sub(r"(\*.*/)$", r"\1*", path)) for method, path in re.findall(r'\{"(GET|POST)", "([^"]+)",', table)}
    documented = {(method.upper(), re.sub(r"\{\w+\}", "*", path))
                  for path, item in contract.document["paths"].items()
                  for method in METHODS if method in item}
    assert routes and routes == documented


def test_the_documents_name_every_problem():
    folder = TOP / "docs" / "integrators"
    types = set(re.findall(r"^## ([a-z-]+)$", (folder / "problems.md").read_text(), re.MULTILINE))
    named = {name for document in ("openapi.yaml", "openapi-admin.yaml")
             for name in re.findall(r"/problems/([a-z-]+)\b", (folder / document).read_text())}
    assert named == types


@pytest.mark.sanitized
def test_answers_are_as_documented(contract, start, tmp_path):
    """Each documented answer is provoked, with few exceptions, and each answer received is documented."""
    shop = Shop(tmp_path)

    def keys(system: System) -> None:
        key_file(system.directory / "api.keys", f"shop {API_KEY}\n")

    bank = {"capacity": 1} | CALM
    secret = key_file(tmp_path / "challenge.secret", SERVICE_SECRET)
    with ChallengeService().serving() as service:
        system = start({"bank": bank | {"target_url": "https://shop.example/in?a=\"b"},
                        "later": bank | {"opens_at": "2999-01-01T00:00:00Z", "mode": "paused"},
                        "club": bank | {"join": "invited"}, "gate": bank | {"challenge": "work"},
                        "door": bank | {"challenge": "external"}},
                       settings={"pass": {"algorithm": "ES256"},
                                 "secrets": shop.settings["secrets"] | {"challenge_secret": secret},
                                 "challenge_service": {"site_key": SITE_KEY, "timeout": "30s",
                                                       "verify_url": f"http://127.0.0.1:{service.port}/siteverify"}},
                       prepare=keys)
        ordinary(contract, system, shop)
        refused(contract, system, shop)
        pages(contract, system, shop)
        challenged(contract, system)
        verified(contract, system, service)
    crowded(contract, start({"bank": bank}, settings={"http": {"joins_per_minute": 1}}, prepare=keys))
    blocked(contract, start({"bank": bank}))
    lottery = start({"sale": bank | {"order": "draw", "opens_at": "2999-01-01T00:00:00Z"}},
                    settings={"redis": {"timeout": "1s"}, "http": {"trusted_proxies": "127.0.0.1"},
                              "worker": {"processes": 1}})
    lottery.expect(STORE_TROUBLE)
    drawn(contract, lottery)
    states(contract, start({"bank": bank | {"target_url": "https://shop.example/in"}}))
    forged(contract, start({"bank": bank}, settings=shop.settings | {"pass": {"algorithm": "ES256"}}), shop)
    shared(contract, start({"bank": bank | {"session_sharing": "refuse"}},
                           settings={"http": {"trusted_proxies": "127.0.0.1"}}))
    slow_dispatcher(contract, start({"bank": bank}, settings={
        "http": {"join_wait": "300ms"}, "worker": {"max_pending": 8}}))
    away = start({"bank": bank | {"recovery_window": "0s"}}, settings={"redis": {"timeout": "1s"}, "http": {"join_wait": "1s"}},
                 prepare=keys)
    away.expect(STORE_TROUBLE)
    store_away(contract, away)

    missing = {answer for answer in contract.documented() - contract.seen
               if not ELSEWHERE.keys() & set(answer)}
    assert not missing, "documented, but never seen:\n" + "\n".join(map(str, sorted(missing)))
