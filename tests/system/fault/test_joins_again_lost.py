# SPDX-License-Identifier: Apache-2.0
"""The store loses a place while its visitor joins again, so the join gives another one: the visitor gets the lost one back,
or is told both, ticket and pass, of the place that counts."""
from __future__ import annotations

import json
from http.cookies import SimpleCookie

import pytest

import wire
from figures_of import metric
from http_client import Answer, Client, Visitor
from sse import EventStream
from tellerline import CALM, PATIENCE, System
from test_lost_tail import TruncatedFile
from test_pass import API_KEY, key_file
from test_store_trouble import PROMPT, STORE_TROUBLE
from waiting import wait_until

JOIN, PAGE = "/v1/queues/bank/join", "/q/bank/join"
#: Longer than the loss takes: the answer is the one that the store gives afterwards.
HELD = PROMPT | {"http": {"join_wait": "30s"}}


class Flushed:
    """All is lost."""

    def __init__(self, system: System) -> None:
        self._system = system

    def mark(self) -> None:
        pass

    def lose(self) -> None:
        self._system.store.command("FLUSHALL")


def place_of(ticket: str) -> int:
    return wire.read_ticket(ticket).place


def place_told(answer: Answer) -> int:
    """The page tells the ticket in a cookie alone."""
    assert answer.status in (200, 303), answer.body
    return place_of(SimpleCookie(answer.headers["set-cookie"]).popitem()[1].value)


def joins_again_in_the_air(system: System, visitor: Visitor, path: str = JOIN, name: str = "") -> Client:
    """Sends the join while no dispatcher runs, and waits until the store has it. name: the site sends it for the visitor."""
    last = system.last_batch("bank")
    system.of("dispatcher")[0].kill()
    client = system.client()
    if name:
        client.send("POST", path, json.dumps({"visitor": name}).encode(), ticket=API_KEY)
    else:
        client.send("POST", path, ticket=visitor.ticket)
    wait_until(lambda: system.commands_since("bank", last), PATIENCE, "the join is in the store")
    return client


@pytest.mark.parametrize("path, join", [(JOIN, "open"), (JOIN, "invited"), (PAGE, "open")],
                         ids=["open", "invited", "page"])
@pytest.mark.parametrize("way", [TruncatedFile, Flushed])
def test_who_joins_again_gets_the_lost_place_back(start, way: type, path: str, join: str):
    """The command is on its way at the loss. It finds another place, or none where newcomers need an invite."""
    system = start({"bank": {"capacity": 0} | CALM}, settings=HELD, redis={"appendfsync": "always"})
    system.expect(STORE_TROUBLE)
    system.join("bank")
    loss = way(system)
    loss.mark()
    visitor = system.join("bank")
    if join == "invited":
        system.set("bank", "join=invited")
        wait_until(lambda: system.client().post(JOIN).status == 403, PATIENCE, "newcomers need an invite")
    client = joins_again_in_the_air(system, visitor, path)
    loss.lose()
    system.forget_store()
    system.of("dispatcher")[0].start()
    assert place_told(client.receive()) == place_of(visitor.ticket)
    wait_until(lambda: system.waiting("bank") == 2 - (way is Flushed), PATIENCE, "nobody else is there")


@pytest.mark.parametrize("way", [TruncatedFile, Flushed])
def test_the_page_gives_the_lost_place_back(start, way: type):
    """Joining again is the first that the visitor does after the loss."""
    system = start({"bank": {"capacity": 0} | CALM}, settings=PROMPT, redis={"appendfsync": "always"})
    system.expect(STORE_TROUBLE)
    system.join("bank")
    loss = way(system)
    loss.mark()
    visitor = system.join("bank")
    before = metric(system.of("worker")[0], "tellerline_worker_snapshots_total")
    loss.lose()
    system.forget_store()
    wait_until(lambda: metric(system.of("worker")[0], "tellerline_worker_snapshots_total") > before, PATIENCE,
               "the line is loaded again")
    answer = wait_until(lambda: (now := visitor.client.post(PAGE, ticket=visitor.ticket)).status != 503 and now, PATIENCE,
                        "the store answers")
    assert place_told(answer) == place_of(visitor.ticket)


@pytest.mark.parametrize("how", ["asks", "listens", "waits"])
def test_who_was_called_at_another_place_gets_its_ticket(start, how: str):
    """The site joined again for the visitor, who has the ticket of the lost place, and a session at the other one."""
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT, redis={"appendfsync": "always"},
                   prepare=lambda made: key_file(made.directory / "api.keys", f"shop {API_KEY}\n"))
    system.expect(STORE_TROUBLE)
    first = system.join("bank")
    wait_until(first.is_active, PATIENCE, "the first is active")
    loss = TruncatedFile(system)
    loss.mark()
    visitor = system.join("bank")
    before = visitor.ticket
    client = joins_again_in_the_air(system, visitor, name=wire.read_ticket(before).visitor)
    assert client.receive().status == 202
    loss.lose()
    system.forget_store()
    system.of("dispatcher")[0].start()
    wait_until(lambda: system.waiting("bank") == 1, PATIENCE, "the join has come in", again_on=(OSError, ConnectionError))
    first.complete()
    wait_until(lambda: system.store.command("ZSCORE", system.key("bank", "active"), wire.read_ticket(before).visitor),
               PATIENCE, "the visitor is called")
    if how == "waits":
        asks = f"{visitor.path}/status?wait=1s"
        view = wait_until(lambda: (now := visitor.client.get(asks, ticket=before).json)["status"] == "active" and now,
                          PATIENCE, "active")
    elif how == "listens":
        view = EventStream(visitor.client.port, f"{visitor.path}/events", before).event("admitted").json
    else:
        view = wait_until(lambda: visitor.is_active() and visitor.view, PATIENCE, "active")
    place = wire.read_pass(view["pass"])["place"]
    assert place > place_of(before)
    assert place_of(view["ticket"]) == place
    system.redis.kill()
    system.forget_store()
    system.redis.start()
    wait_until(lambda: system.client().get(f"{visitor.path}/status", ticket=view["ticket"]).json["status"] == "active",
               PATIENCE, "the ticket counts", again_on=(OSError, ConnectionError))
