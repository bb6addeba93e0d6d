# SPDX-License-Identifier: Apache-2.0
"""A place goes to another device: one code, once, within two minutes, and the old ticket is no use any more."""
from __future__ import annotations

import base64
import os
import re
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest

import http_client
from http_client import Visitor
from shared_stack import Stack
from sse import EventStream
from tellerline import CALM, HELD, PATIENCE, System
from test_faults_clock import Clock
from test_store_trouble import STORE_TROUBLE
from waiting import wait_until


pytestmark = pytest.mark.together(seconds=20)


def waiting_visitor(start, workers: int = 1, prepare: Callable[[System], None] | None = None) -> tuple[System, Visitor]:
    """A system whose queue bank has one visitor inside and one who waits."""
    system = start({"bank": {"capacity": 1} | CALM}, workers=workers, prepare=prepare)
    return system, one_waits(system, "bank")


def waits_at(share, join_wait: str = HELD) -> tuple[Stack, str, Visitor]:
    """The same with a queue of the stack that the tests of this file share."""
    system = share(workers=2, settings={"http": {"join_wait": join_wait}})
    queue = system.queue()
    return system, queue, one_waits(system, queue)


def one_waits(system: System, queue: str) -> Visitor:
    first = system.join(queue)
    wait_until(first.is_active, PATIENCE, "the first is in")
    visitor = system.join(queue)
    visitor.status()
    assert visitor.view["status"] == "waiting"
    return visitor


def code_of(visitor: Visitor) -> str:
    answer = visitor.client.post(f"{visitor.path}/transfer", ticket=visitor.ticket)
    assert answer.status == 200, answer.body
    return answer.json["code"]


def redeem(system: System, code: str, queue: str = "bank", device: str = "", worker: int = 0):
    return http_client.redeem(system.client(worker), queue, code, device)


def moved(system: System, visitor: Visitor, worker: int = 0) -> Visitor:
    """The visitor on another device."""
    queue = visitor.path.rpartition("/")[2]
    answer = redeem(system, code_of(visitor), queue, worker=worker)
    assert answer.status == 200, answer.body
    other = system.visitor(queue, worker)
    other.ticket, other.view = answer.json["ticket"], answer.json
    return other


def test_a_place_goes_to_another_device(share):
    system, bank, old = waits_at(share)
    answer = old.client.post(f"{old.path}/transfer", ticket=old.ticket)
    code = answer.json
    assert code["address"].endswith(f"/q/{bank}/move#{code['code']}")
    assert code["expires_in_seconds"] == 120 and code["svg"].startswith("<svg ")
    answer = redeem(system, code["code"], bank)
    new = system.visitor(bank)
    new.ticket = answer.json["ticket"]
    assert answer.json["status"] == "waiting" and answer.json["visitor"] == old.view["visitor"]
    assert new.status()["position"] == 1
    view = old.status()
    view.pop("reference", None)
    assert view == {"queue": bank, "visitor": old.view["visitor"], "status": "moved", "waiting": 1, "active": 1,
                    "capacity": 1}
    newest = moved(system, new)  # and on
    assert new.status()["status"] == old.status()["status"] == "moved"
    assert newest.leave()["status"] == "left"


def press(visitor: Visitor, page: str, code: str, queue: str):
    """The button of the page."""
    action = f"/q/{queue}/move" + page.split(f'action="/q/{queue}/move')[1].split('"')[0].replace("&amp;", "&")
    device = page.split('name="device" value="')[1].split('"')[0]
    return http_client.redeem_by_page(visitor.client, action, code, device)


def test_the_code_knows_where_the_visitor_wants_to_go(share):
    """The new device goes on to the same page of the shop: as far as a scanner can read so long an address."""
    system, _, _ = waits_at(share)
    shop = system.queue(target_url="https://shop.example/")
    system.join(shop)
    visitor = system.join(shop)
    wanted = "https://shop.example/tickets?show=7&row=a"
    given = f"?return={quote(wanted, safe='')}"
    address = urlsplit(visitor.client.post(f"{visitor.path}/transfer{given}", ticket=visitor.ticket).json["address"])
    assert parse_qs(address.query) == {"return": [wanted]}
    html = visitor.client.post(f"/q/{shop}/transfer{given}&ticket={visitor.ticket}").body.decode()
    shown = html.split(f"/q/{shop}/move?return=")[1].split('"')[0]
    assert unquote(shown.partition("#")[0]) == wanted and shown.partition("#")[2]
    page = visitor.client.get(f"{address.path}?{address.query}").body.decode()
    moved_on = press(visitor, page, address.fragment, shop)
    assert moved_on.status == 303 and parse_qs(urlsplit(moved_on.headers["location"]).query)["return"] == [wanted]
    visitor.ticket = moved_on.headers["set-cookie"].split("=", 1)[1].split(";")[0]
    for refused in ("https://elsewhere.example/", f"{wanted}&long={'x' * 500}"):
        answer = visitor.client.post(f"{visitor.path}/transfer?return={quote(refused, safe='')}", ticket=visitor.ticket)
        assert "return" not in answer.json["address"] and answer.json["svg"].startswith("<svg "), answer.json


def test_the_old_ticket_is_refused_everywhere(share):
    system, bank, old = waits_at(share)
    first = old.ticket
    new = moved(system, old)
    assert old.status()["status"] == "moved"
    for verb in ("leave", "complete", "renew", "extend", "transfer", "join"):
        problem = old.client.post(f"{old.path}/{verb}", ticket=first).problem(409)
        assert problem["type"] == "/problems/moved", (verb, problem)
    system.set(bank, "capacity=5")
    wait_until(new.is_active, PATIENCE, "the new device has its turn")
    assert new.view["pass"]
    assert "pass" not in old.status()
    for credential, status in ((first, 401), (new.ticket, 204), (new.view["pass"], 204)):
        assert old.client.get(f"{old.path}/check", ticket=credential).status == status
    assert new.complete()["status"] == "completed"
    assert system.store.command("EXISTS", system.key(bank, "serials")) == 0


def test_open_streams_of_the_old_ticket_are_told(share):
    system, _, old = waits_at(share)
    streams = [EventStream(system.client(worker).port, f"{old.path}/events", old.ticket) for worker in (0, 1)]
    for stream in streams:
        assert stream.event("position")
    moved(system, old)
    for stream in streams:
        assert stream.event("moved")


def test_a_code_is_good_once_and_its_device_may_repeat_it(share):
    system, bank, old = waits_at(share)
    code, rival = code_of(old), code_of(old)
    tickets = {redeem(system, code, bank, device="abc").json["ticket"] for _ in range(2)}
    assert tickets
    for again, device in ((code, "def"), (code, ""), (rival, "def"), (rival, "")):
        assert redeem(system, again, bank, device=device).problem(409)["type"] == "/problems/code-used"
    for ticket in tickets:
        assert old.client.get(f"{old.path}/status", ticket=ticket).json["status"] == "waiting"


def test_a_hand_over_can_be_repeated_after_the_life_of_the_code(start, tmp_path):
    """By the same device only, whose answer was lost: it alone has the place. A code not used by then is over; in the
    end each one is."""
    clock = Clock(tmp_path)

    def prepare(system: System) -> None:
        system.redis.prefix = clock.prefix

    system, old = waiting_visitor(start, prepare=prepare)
    system.expect(STORE_TROUBLE)
    code, unused = code_of(old), code_of(system.join("bank"))
    assert redeem(system, code, device="abc").status == 200

    def now_s() -> float:
        """The store's time, as the worker knows it."""
        return int(re.search('data-now="([0-9]+)"', old.client.get("/q/bank/move").body.decode())[1]) / 1000

    began = now_s()
    clock.set(125)
    wait_until(lambda: now_s() > began + 122, PATIENCE, "the worker knows the new time")
    assert redeem(system, unused, device="abc").problem(410)["type"] == "/problems/code-expired"
    answer = redeem(system, code, device="abc")
    assert answer.status == 200, answer.body
    assert old.client.get(f"{old.path}/status", ticket=answer.json["ticket"]).json["status"] == "waiting"
    for device in ("def", ""):
        assert redeem(system, code, device=device).problem(409)["type"] == "/problems/code-used"
    clock.set(605)
    wait_until(lambda: redeem(system, code, device="abc").status == 410, PATIENCE, "no repeats for ever")


def test_codes_that_are_not_genuine(share):
    system, bank, old = waits_at(share)
    other = system.queue()
    code = code_of(old)
    whole = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
    forged = []
    for i in range(len(whole)):
        damaged = bytearray(whole)
        damaged[i] ^= 1
        forged.append(base64.urlsafe_b64encode(damaged).decode().rstrip("="))
    as_ticket = bytes([1]) + whole[1:]
    forged = forged[::4] + [old.ticket, base64.urlsafe_b64encode(as_ticket).decode().rstrip("="), "x"]
    for text in forged:
        assert redeem(system, text, bank).problem(403)["type"] == "/problems/bad-code"
    assert redeem(system, code, queue=other).problem(403)["type"] == "/problems/bad-code"
    assert old.client.get(f"{old.path}/status", ticket=code).status == 401
    assert redeem(system, code, bank, device="xyz").status == 400
    assert system.client().post(f"/v1/queues/{bank}/move").status == 400
    for address in (f"/v1/queues/{bank}/move?move={code}&by=a", f"/v1/queues/{bank}/move?code={code}&device=a"):
        assert system.client().post(address).status == 400, "an address stands in logs"
    assert old.status()["position"] == 1
    assert redeem(system, code, bank).status == 200


def test_codes_of_places_that_do_not_wait(share):
    system, bank, old = waits_at(share)
    late, gone = code_of(old), system.join(bank)
    code = code_of(gone)
    gone.leave()
    assert redeem(system, code, bank).problem(410)["type"] == "/problems/code-expired"
    system.set(bank, "capacity=5")
    wait_until(old.is_active, PATIENCE, "it has its turn")
    assert redeem(system, late, bank).problem(410)["type"] == "/problems/code-expired"
    answer = old.client.post(f"{old.path}/transfer", ticket=old.ticket)
    assert answer.problem(409)["type"] == "/problems/not-waiting"
    assert old.is_active()


def test_it_can_be_switched_off(start):
    system = start({"shop": {"capacity": 0} | CALM}, settings={"http": {"transfer": False}})
    visitor = system.join("shop")
    answer = system.client().post(f"{visitor.path}/transfer", ticket=visitor.ticket)
    assert answer.problem(403)["type"] == "/problems/no-transfer"
    assert visitor.status()["status"] == "waiting"
    page = system.client().get(f"/q/shop?ticket={visitor.ticket}").body.decode()
    assert 'data-state="waiting"' in page and 'data-tl="move-form"' not in page


def test_of_many_devices_at_once_one_gets_the_place(share):
    system, bank, old = waits_at(share)
    for _ in range(5):
        code = code_of(old)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda i: redeem(system, code, bank, worker=i % 2), range(8)))
        assert sorted(answer.status for answer in answers) == [200] + [409] * 7
        old.ticket = next(answer.json["ticket"] for answer in answers if answer.status == 200)
        assert old.status()["status"] == "waiting"


def test_at_a_worker_whose_line_is_behind(share):
    """It was stopped while the place went away. The new ticket is good there at once, the old one is not."""
    system, bank, old = waits_at(share)
    second = system.of("worker")[1].children()
    late, later = system.client(1), system.client(1)
    late.get("/livez")
    later.get("/livez")
    for pid in second:
        os.kill(pid, signal.SIGSTOP)
    try:
        new = moved(system, old)
        late.send("GET", f"{old.path}/status", ticket=new.ticket)
        later.send("POST", f"{old.path}/transfer", ticket=old.ticket)
    finally:
        for pid in second:
            os.kill(pid, signal.SIGCONT)
    assert late.receive().json["status"] == "waiting"
    answer = later.receive()
    if answer.status == 200:  # made before the worker heard of it: no use
        assert redeem(system, answer.json["code"], bank).problem(409)["type"] == "/problems/code-used"
    wait_until(lambda: old.status(late)["status"] == "moved", PATIENCE, "the old ticket is refused there, too")


def test_a_pending_ticket_is_no_way_back(share):
    """Nor is the invite that opened the join: only a trusted caller gets the ticket of the new device."""
    system, bank, _ = waits_at(share, join_wait="3s")  # the move has to be known within it, also on a slow machine
    client = system.client()
    dispatcher = system.of("dispatcher")[0]
    dispatcher.send(signal.SIGSTOP)
    pending = client.post(f"/v1/queues/{bank}/join").json
    assert pending["status"] == "pending"
    dispatcher.send(signal.SIGCONT)
    old = system.visitor(bank)
    old.ticket = pending["ticket"]
    wait_until(lambda: client.get(f"{old.path}/status", ticket=old.ticket).status == 200, PATIENCE, "it is numbered")
    old.status()
    moved(system, old)
    for method, verb in (("GET", "status"), ("POST", "join")):
        answer = client.request(method, f"{old.path}/{verb}", ticket=pending["ticket"])
        assert answer.problem(409)["type"] == "/problems/moved", verb
    client.post(f"{old.path}/leave", ticket=pending["ticket"]).problem(409)
    stream = EventStream(client.port, f"{old.path}/events", pending["ticket"])
    assert stream.event("moved")
    assert system.waiting(bank) == 2


def lose_all(system: System) -> None:
    """The store loses everything. Returns when the queue is there again."""
    generation = system.numbers("bank")["generation"]
    system.store.command("FLUSHALL")
    wait_until(lambda: system.numbers("bank")["generation"] > generation, PATIENCE, "the queue is made again",
               again_on=KeyError)


def knows_the_serial(system: System) -> bool:
    return system.store.command("HLEN", system.key("bank", "serials")) == 1


def test_a_higher_serial_survives_a_total_loss(start):
    """The worker knows nothing of before. The new device comes back after the old one did, which thereby loses the
    place for good."""
    system, old = waiting_visitor(start)
    new = moved(system, old)
    worker = system.of("worker")[0]
    worker.kill()
    lose_all(system)
    worker.start()
    worker.wait_ready()
    first, client = old.ticket, system.client()

    def is_back() -> bool:
        answer = client.get(f"{old.path}/status", ticket=first)
        return answer.status == 200 and answer.json["status"] == "waiting"

    wait_until(is_back, PATIENCE, "the old ticket brings the place back, as nothing of the hand-over is known")
    assert wait_until(lambda: client.get(f"{old.path}/status", ticket=new.ticket), PATIENCE,
                      "the new device asks").json["status"] == "waiting"
    wait_until(lambda: old.status(client)["status"] == "moved", PATIENCE, "the old ticket is refused")
    wait_until(lambda: knows_the_serial(system), PATIENCE, "the store knows the serial again")
    assert new.status(client)["status"] == "waiting"


def test_a_worker_remembers_serials_through_a_total_loss(start):
    """The old device asks first, and again and again; it never has the place."""
    system, old = waiting_visitor(start)
    new = moved(system, old)
    lose_all(system)

    def is_told() -> bool:
        answer = old.client.get(f"{old.path}/status", ticket=old.ticket)
        assert answer.status != 200 or answer.json["status"] == "moved", answer.body
        return knows_the_serial(system)

    wait_until(is_told, PATIENCE, "the store knows the serial again")
    assert new.status()["status"] == "waiting"
    assert system.ctl("queue", "recover", "bank", "--now").returncode == 0
    assert old.status()["status"] == "moved" and new.status()["status"] in ("waiting", "active")
    assert system.ctl("audit").returncode == 0


def test_a_pass_brings_the_serial_back(start):
    """The session is that of the new device, although its pass says nothing of a serial."""
    system, old = waiting_visitor(start)
    new = moved(system, old)
    system.set("bank", "capacity=5")
    wait_until(new.is_active, PATIENCE, "the new device has its turn")
    new.client.post(f"{new.path}/renew", ticket=new.ticket)
    entry = new.status()["pass"]
    lose_all(system)

    def is_told() -> bool:
        new.client.get(f"{new.path}/check", ticket=entry)
        return knows_the_serial(system)

    wait_until(is_told, PATIENCE, "the store knows the serial again")
    assert system.ctl("queue", "recover", "bank", "--now").returncode == 0
    wait_until(lambda: old.client.get(f"{old.path}/status", ticket=old.ticket).json["status"] == "moved", PATIENCE,
               "the old ticket is refused", again_on=KeyError)
    assert old.client.get(f"{old.path}/check", ticket=old.ticket).status == 401
    assert new.client.get(f"{new.path}/check", ticket=entry).status == 204


def test_a_snapshot_knows_the_serials(start):
    system, old = waiting_visitor(start)
    new = moved(system, old)
    worker = system.of("worker")[0]
    worker.kill()
    worker.start()
    worker.wait_ready()
    assert old.status(system.client())["status"] == "moved"
    assert new.status(system.client())["status"] == "waiting"


def test_the_audit_finds_serials_that_cannot_be(share):
    system, bank, old = waits_at(share)
    new = moved(system, old)
    assert system.ctl("audit").returncode == 0
    key = system.key(bank, "serials")
    seq = system.store.command("HKEYS", key)[0]
    system.store.command("HSET", key, "5", "1:1:nobody", "six", "?")
    found = system.ctl("audit")
    assert found.returncode == 1 and "nobody" in found.stdout and "six" in found.stdout, found.stdout
    system.store.command("HDEL", key, "5", "six")
    assert system.store.command("HKEYS", key) == [seq]
    assert new.status()["status"] == "waiting"
    assert system.ctl("audit").returncode == 0
