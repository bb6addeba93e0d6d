# SPDX-License-Identifier: Apache-2.0
"""docs/integrators/openapi-admin.yaml against the running admin API: every request of the tests and every answer is as it
is described there, without a member more, and each call answers in every good way that is described."""
from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from typing import Any

import pytest

from admin import ADMIN_TOKEN, DOCUMENT, Admin, Browser, EventReader, admin_file
from contract import METHODS, Contract
from postgres_server import PostgresServer
from webhook_stand_in import Receiver
from http_client import Answer
from tellerline import BIN, CALM, PATIENCE, System, run
from waiting import wait_until

LATER = "2999-01-01T00:00:00Z"

#: The name and the status of each type of problem, as the catalogue has them.
PROBLEMS = re.findall(r"^## ([a-z-]+)\n\n(\d{3})\b", (DOCUMENT.parent / "problems.md").read_text(), re.MULTILINE)


def close(schema: Any) -> None:
    """What has named members has no others, unless the document says so."""
    if isinstance(schema, dict):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            close(part)
    elif isinstance(schema, list):
        for part in schema:
            close(part)


class AdminContract(Contract):
    def __init__(self) -> None:
        super().__init__(DOCUMENT)
        close(self.document["components"]["schemas"])
        close(self.document["paths"])
        types = self.document["info"]["description"]
        self.problems = {(f"/problems/{name}", int(status)) for name, status in PROBLEMS if f"`/problems/{name}`" in types}

    def _check_body(self, response: dict[str, Any], answer: Answer, what: str) -> tuple[str, str]:
        media, kind = super()._check_body(response, answer, what)
        assert media != "application/problem+json" or (kind, answer.status) in self.problems, f"{what}: {kind}"
        return media, kind

    def check_request(self, method: str, path: str, body: Any) -> None:
        operation = self.document["paths"][self.path_of(path)][method.lower()]
        described = operation.get("requestBody")
        if body is None:
            assert not (described or {}).get("required"), f"{method} {path} needs a body"
        else:
            assert described is not None, f"{method} {path} has no body"
            self.validate(body, described["content"]["application/json"]["schema"], f"{method} {path}")

    def operations(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """By its name the method of each, and the operation, in the order of the document."""
        return {item[method]["operationId"]: (method, item[method]) for item in self.document["paths"].values()
                for method in METHODS if method in item}

    def good(self) -> set[tuple[str, str]]:
        """Each operation with each status below 300."""
        return {(name, status) for name, (_, operation) in self.operations().items()
                for status in operation["responses"] if status != "default"}


class AdminWitness(Admin):
    """An administrator who holds all that is sent and answered against the document."""

    def __init__(self, contract: AdminContract, system: System) -> None:
        super().__init__(system.of("worker")[0])
        self._contract = contract

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        answer = super().call(method, path, body, headers)
        target = f"/v1/admin/{path}"
        if answer.status < 300:
            self._contract.check_request(method, target.partition("?")[0], body)
        self._contract.check(method, target, answer)
        return answer


SALE = 1764586800000000


@pytest.fixture(name="archive")
def an_archive():
    """The settings of one, which has a sale of two queues."""
    server = PostgresServer()
    server.start()
    assert run(BIN / "tellerline", "db", "migrate", env={"TELLERLINE_ARCHIVE_URL": server.url}).returncode == 0
    server.sql(f"""SELECT open_generation('sale', {SALE}), open_generation('concert', {SALE});
        UPDATE queue_generations SET last_at = '2025-12-01T12:00:00Z';
        INSERT INTO queue_entries (generation_id, seq, lane, status, joined_at, admitted_at, event) SELECT generation_id, i, 0, 'active',
            '2025-12-01T11:00:00Z', '2025-12-01T11:05:00Z', i FROM queue_generations, generate_series(1, 3) AS i;
        INSERT INTO queue_stats SELECT queue_id, '2025-12-01T11:01:00Z', 'open', 3, 1, 4, '{{"eta_judged": 3, "eta_late": 1}}' FROM queues;
        INSERT INTO queue_changes SELECT queue_id, '2025-12-01T11:02:00Z', 1, 0, 'kim', 'cli', 'set', '{{"capacity": "3"}}', '{{"capacity": "4"}}'
            FROM queues;
        INSERT INTO queue_gaps SELECT generation_id, 1, 'store', '2025-12-01T11:02:00Z', '2025-12-01T11:03:00Z', 0 FROM queue_generations""")
    yield {"url": server.url}
    server.remove()


def reports(admin: AdminWitness) -> None:
    assert [sale["sale"] for sale in admin.done("GET", "queues/sale/reports")["sales"]] == [SALE]
    assert admin.done("GET", "queues/none/reports")["sales"] == []
    said = admin.done("GET", f"queues/sale/reports/{SALE}")
    assert said["estimates"]["late"] == 1 and said["changes"] and said["gaps"]
    for words in ("", f"&with={SALE}"):
        assert admin.call("GET", f"queues/sale/reports/{SALE}?format=html{words}").status == 200
    admin.call("GET", "queues/sale/reports/1").problem(404)
    admin.call("GET", f"queues/sale/reports/{SALE}?format=xml").problem(400)


def queues(admin: AdminWitness) -> None:
    settings = {"capacity": 1, "lanes": ["vip", "all"], "default_lane": "all"} | CALM
    admin.done("POST", "queues", {"name": "sale", "settings": settings})
    admin.call("POST", "queues", {"name": "sale"}).problem(409)
    admin.call("POST", "queues", {"name": "New!"}).problem(422)
    admin.call("POST", "queues", {"name": "new", "settings": {"capacity": -1, "lanes": []}}).problem(422)
    admin.done("GET", "queues")
    tag = admin.call("GET", "queues/sale").headers["etag"]
    admin.done("PATCH", "queues/sale", {"capacity": 2})
    admin.call("PATCH", "queues/sale", {"capacity": 3}, {"If-Match": tag}).problem(412)
    admin.done("PUT", "queues/sale", settings)
    admin.done("PUT", "queues/other", {"mode": "paused"})
    for mode in ("drain", "close", "passthrough", "pause", "open", "resume"):
        admin.done("POST", f"queues/sale/{mode}")
    admin.done("POST", "queues/other/sell-out")
    admin.done("POST", "queues/sale/notice", {"text": "Soon."})
    admin.done("POST", "queues/sale/notice", {"texts": {"en": "Soon.", "ko": "곧"}})
    admin.call("POST", "queues/sale/notice", {}).problem(400)
    admin.done("POST", "queues/other/recover", {"wait_seconds": 1})
    admin.done("PUT", "queues/lots", {"mode": "open"})
    admin.done("POST", "queues/lots/draw", {"opens_at": LATER})
    admin.done("GET", "queues/lots/draw?limit=10&starting_after=0")
    admin.done("GET", "queues/sale/draw")
    admin.call("GET", "queues/nowhere").problem(404)


def visitors(admin: AdminWitness, system: System) -> None:
    people = [{"visitor": "anna", "lane": "vip"}, {"visitor": "ben"}, {"visitor": "cleo"}, {"visitor": "dora"}]
    assert admin.call("POST", "queues/sale/joins", {"visitors": people}).status == 200
    wait_until(lambda: system.active("sale") == 1, PATIENCE, "one is in")
    admin.done("GET", "queues/sale/line?starting_after=1&limit=1")
    admin.done("GET", "queues/sale/line")
    reference = admin.done("GET", "queues/sale/visitors/ben")["reference"]
    assert admin.done("GET", f"queues/sale/visitors?reference={reference}")["visitor"] == "ben"
    for name in ("anna", "ben"):
        admin.done("GET", f"queues/sale/visitors/{name}")
    admin.done("POST", "queues/sale/visitors/cleo/lane", {"lane": "vip"})
    admin.done("POST", "queues/sale/visitors/cleo/lane", {"lane": "vip"})
    admin.call("POST", "queues/sale/visitors/cleo/lane", {"lane": "gold"}).problem(422)
    admin.done("DELETE", "queues/sale/visitors/anna")
    admin.done("GET", "queues/sale/visitors/anna")
    admin.done("POST", "queues/sale/visitors/dora/forget")
    admin.call("GET", "queues/sale/visitors/dora").problem(404)
    for form in ("csv", "jsonl"):
        assert admin.call("GET", f"queues/sale/export?format={form}").status == 200
    admin.done("GET", "queues/sale/stats")
    admin.done("GET", "queues")
    wait_until(lambda: admin.done("GET", "queues/sale/history?step_seconds=10")["points"], PATIENCE, "the history has begun", 0.2)
    admin.done("GET", "queues/sale/history?step_seconds=60")
    system.store.command("HSET", system.key("sale", "promised"), "eta_judged", 3, "eta_late", 1, "eta_error", 50)
    assert admin.done("GET", "queues/sale/stats")["eta"]["late"] == 1
    wait_until(lambda: admin.done("GET", "queues/sale/stats")["per_minute"], PATIENCE, "rates", 0.2)


def pending(admin: AdminWitness, system: System) -> None:
    """Nobody numbers the places for now."""
    dispatcher = system.of("dispatcher")[0]
    dispatcher.send(signal.SIGSTOP)
    assert admin.call("POST", "queues/sale/joins", {"visitors": [{"visitor": "emil"}]}).status == 202
    dispatcher.send(signal.SIGCONT)


def webhooks(admin: AdminWitness, system: System) -> None:
    wait_until(lambda: system.store.hash(system.key("sale", "webhooks")).get("wanted"), PATIENCE, "it is watched")
    admin.done("GET", "webhooks")
    admin.done("GET", "queues/sale/webhooks")
    assert admin.call("POST", "queues/sale/webhooks/site/test").status == 202
    wait_until(lambda: admin.done("GET", "queues/sale/webhooks")["webhooks"][0]["state"] == "answers", PATIENCE, "it was told")
    admin.call("POST", "queues/sale/webhooks/none/test").problem(409)


def access(admin: AdminWitness, contract: AdminContract) -> None:
    admin.done("POST", "tokens", {"name": "eve", "role": "viewer"})
    admin.call("POST", "tokens", {"name": "eve", "role": "viewer"}).problem(409)
    admin.done("GET", "tokens")
    admin.done("DELETE", "tokens/eve")
    admin.done("POST", "blocks", {"prefix": "192.0.2.0/24", "for_seconds": 3600})
    admin.done("POST", "blocks", {"prefix": "2001:db8::/32", "queue": "sale", "for_seconds": None})
    admin.done("GET", "blocks")
    admin.done("DELETE", "blocks?prefix=192.0.2.0/24")
    admin.done("GET", "session")
    page = admin.get(admin.call("GET", "queues/nowhere").problem(404)["type"])
    assert page.status == 200 and page.body.startswith(b"no-such-queue (404)\n")
    assert page.headers["cache-control"] == "no-store"
    admin.get("/problems/none").problem(404)
    changes = admin.done("GET", "changes?limit=3")
    admin.done("GET", f"changes?limit=1000&starting_after={changes['changes'][-1]['id']}")
    admin.done("GET", "changes?queue=sale")
    admin.call("GET", "changes?nonsense=1").problem(400)
    for wrong in ("queues?limit=%", "queues?limit=1&limit=1", "queues/sale/events?a=%"):
        assert admin.call("GET", wrong).problem(400)["type"] == "/problems/bad-query", wrong
    admin.token, token = "wrong", admin.token
    admin.call("GET", "queues").problem(401)
    admin.token = token
    assert {entry["what"] for entry in admin.done("GET", "changes?limit=1000")["changes"]} >= {
        "create", "set", "mode", "notice", "move", "remove"}


def browsers(contract: AdminContract, system: System) -> None:
    browser = Browser(system.of("worker")[0], ADMIN_TOKEN)
    contract.check("POST", "/v1/admin/session", browser.signed_in)
    contract.check("GET", "/v1/admin/session", browser.call("GET", "session"))
    contract.check("POST", "/v1/admin/session/link", Admin(system.of("worker")[0]).call("POST", "session/link"))
    contract.check("DELETE", "/v1/admin/session", browser.call("DELETE", "session"))
    browser.close()


def streams(contract: AdminContract, system: System) -> None:
    reader = EventReader(system.of("worker")[0], "queues/sale/events", {"Authorization": f"Bearer {ADMIN_TOKEN}"})
    event = reader.next()
    assert reader.status == 200 and event is not None and event[0] == "stats"
    contract.validate(event[1], {"$ref": "#/components/schemas/Stats"}, "an event")
    contract.seen.add(("followStats", "200", "text/event-stream", ""))
    reader.close()


@pytest.mark.sanitized
def test_every_call_answers_as_described(start, tmp_path, archive):
    contract = AdminContract()
    receiver = Receiver(tmp_path)
    with receiver.serving():
        system = start({}, notifiers=1, prepare=admin_file,
                       settings={"webhooks": [receiver.webhook("site", ["drawn"], queues="sale")], "archive": archive})
        admin = AdminWitness(contract, system)
        queues(admin)
        visitors(admin, system)
        webhooks(admin, system)
        reports(admin)
        access(admin, contract)
        browsers(contract, system)
        streams(contract, system)
        pending(admin, system)
        admin.done("DELETE", "queues/other?confirm=other")
        admin.call("DELETE", "queues/sale?confirm=other").problem(422)
        admin.close()
    missing = contract.good() - {(operation, status) for operation, status, *_ in contract.seen}
    assert not missing, f"described, but never answered: {sorted(missing)}"


def test_the_example_of_each_body_is_what_its_call_sends():
    """So it runs with the call. A token is no part of the document, only what one looks like."""
    contract = AdminContract()
    for name, (_, operation) in contract.operations().items():
        sent = re.search(r"-d '(.*)'$", operation["x-codeSamples"][0]["source"], re.MULTILINE)
        if "requestBody" in operation:
            body = operation["requestBody"]["content"]["application/json"]
            contract.validate(body["example"], body["schema"], name)
            assert name == "signIn" or sent is not None and json.loads(sent.group(1)) == body["example"], name
        else:
            assert sent is None, name


def test_the_example_of_each_call_runs(start, tmp_path, archive):
    """In the order of the document, but for what must be there first, and what goes."""
    first = ["createQueue", "putQueue", "joinVisitors", "moveVisitor"]
    receiver = Receiver(tmp_path)
    contract = AdminContract()
    operations = contract.operations()
    order = sorted(operations, key=lambda name: (operations[name][0] == "delete",
                                                 first.index(name) if name in first else len(first)))
    with receiver.serving():
        system = start({}, notifiers=1, prepare=admin_file,
                       settings={"webhooks": [receiver.webhook("shop", ["drawn"])], "archive": archive})
        admin = Admin(system.of("worker")[0])
        at = f"http://127.0.0.1:{admin.port}/v1/admin"
        described = contract.document["info"]["description"]
        function = re.search(r"^ *api\(\) \{.*?\}$", described, re.DOTALL | re.MULTILINE).group()
        for name in order:
            source = operations[name][1]["x-codeSamples"][0]["source"]
            if name == "findVisitor":
                source = source.replace("Q5T9-4XDR", admin.done("GET", "queues/concert/visitors/anna")["reference"])
            if name == "testWebhook":
                wait_until(lambda: system.store.hash(system.key("concert", "webhooks")).get("wanted"), PATIENCE, "it is watched")
            done = subprocess.run(["bash", "-c", f"set -e; at={at}\n{function}\n{source}"], cwd=tmp_path, text=True,
                                  env=os.environ | {"TELLERLINE_TOKEN": ADMIN_TOKEN}, capture_output=True, check=False)
            assert done.returncode == 0, (name, done.stdout, done.stderr)
        assert "anna" in (tmp_path / "visitors.csv").read_text()
        admin.close()
