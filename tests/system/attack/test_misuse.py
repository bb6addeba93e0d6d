# SPDX-License-Identifier: Apache-2.0
"""What an operator sees of misuse, and can do against it: remove a visitor, block addresses, refuse shared sessions."""
from __future__ import annotations

import re
import threading

import pytest

from admin import admin_file
from figures_of import metric, metrics
from http_client import Visitor
from sse import EventStream
from tellerline import CALM, PATIENCE, Program, System
from test_store_trouble import PROMPT, STORE_TROUBLE
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=25)

QUEUE = {"bank": {"capacity": 1, "recovery_window": "5m"} | CALM}


def count(worker: Program, name: str) -> int:
    return metric(worker, f"tellerline_worker_{name}_total")


def remove(system: System, queue: str, who: str) -> str:
    """who: a ticket. (An id may begin with "-", which is taken for an option.)"""
    done = system.ctl("visitor", "remove", queue, who, "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(system: System, worker: int, visitor: Visitor, credential: str | None) -> int:
    """The gate of this worker."""
    return system.client(worker).get(f"{visitor.path}/check", ticket=credential).status


def gets_nothing(system: System, worker: int, visitor: Visitor, credentials: list[str]) -> bool:
    """The gate is shut for ticket and pass."""
    return all(check(system, worker, visitor, credential) == 401 for credential in credentials)


def active(system: System, queue: str = "bank") -> tuple[Visitor, list[str]]:
    """A visitor with a session, and what opens the gate for it."""
    visitor = system.join(queue)
    wait_until(visitor.is_active, PATIENCE, "admitted")
    return visitor, [visitor.ticket, visitor.view["pass"]]


def test_a_revoked_session_opens_nothing(share):
    """At once, at every worker, for the ticket and for the pass; the next in line comes in."""
    system = share(workers=2, settings=PROXY)
    bank = system.queue()
    visitor, credentials = active(system, bank)
    following = system.join(bank, worker=1)
    for worker in range(2):
        for credential in credentials:
            wait_until(lambda w=worker, c=credential: check(system, w, visitor, c) == 204, PATIENCE, "the gate is open")
    assert "revoked" in remove(system, bank, visitor.ticket)
    for worker in range(2):
        wait_until(lambda w=worker: gets_nothing(system, w, visitor, credentials), PATIENCE, "the gate is shut")
    wait_until(following.is_active, PATIENCE, "the next comes in")
    view = visitor.status()
    assert (view["status"], view["end_reason"]) == ("removed", "removed") and "pass" not in view
    answer = visitor.client.post(f"{visitor.path}/join", ticket=visitor.ticket)
    assert answer.problem(403)["type"] == "/problems/removed"
    cookie = {"Cookie": f"tellerline_{bank}={visitor.ticket}"}
    page = system.client().get(f"/q/{bank}", headers=cookie | {"Accept-Language": "ko"})
    assert page.status == 200 and '<section data-state="removed">' in page.body.decode()
    again = system.client().post(f"/q/{bank}/join", headers=cookie)
    assert again.status == 403 and '<section data-state="removed">' in again.body.decode()
    assert system.numbers(bank)["removed"] == 1


def test_a_removed_visitor_is_told(share):
    """Who waits is told on the open stream; the others move up. Asking again for the same says that it is done."""
    system = share(workers=2, settings=PROXY)
    bank = system.queue()
    active(system, bank)
    visitor = system.join(bank)
    while visitor.view["visitor"].startswith("-"):
        visitor = system.join(bank)
    behind = system.join(bank)
    before = behind.view["position"]
    stream = EventStream(visitor.client.port, f"{visitor.path}/events", visitor.ticket)
    stream.event("position")
    assert "removed from the line" in remove(system, bank, visitor.view["visitor"])
    ended = stream.event("ended").json
    assert (ended["status"], ended["end_reason"]) == ("removed", "removed")
    stream.close()
    wait_until(lambda: behind.status()["position"] == before - 1, PATIENCE, "the other moves up")
    for arguments, status, says in [
            (("remove", bank, visitor.view["visitor"], "--yes"), 1, "(removed); nothing was changed"),
            (("remove", bank, "nobody", "--yes"), 1, "no visitor nobody"),
            (("remove", "nowhere", "nobody", "--yes"), 1, "does not exist"),
            (("remove", bank, "x" * 80, "--yes"), 1, "not a genuine ticket"),
            (("remove", bank, "", "--yes"), 1, "a name is empty"),
            (("keep", bank, "nobody"), 2, "no such command")]:
        done = system.ctl("visitor", *arguments)
        assert done.returncode == status and says in done.stdout + done.stderr, (arguments, done)


def test_a_total_loss_brings_no_removed_visitor_back(start):
    """The store loses everything: the worker remembers who was removed."""
    system = start(QUEUE, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    visitor, credentials = active(system)
    waiting, honest = system.join("bank"), system.join("bank")
    remove(system, "bank", visitor.ticket)
    remove(system, "bank", waiting.ticket)
    wait_until(lambda: waiting.status().get("end_reason") == "removed", PATIENCE, "the worker knows")
    before = system.numbers("bank")["generation"]
    system.store.command("FLUSHALL")
    wait_until(lambda: system.numbers("bank").get("generation", before) != before, PATIENCE, "it is created again")
    for gone in (visitor, waiting):
        refused = (f"{gone.path}/status", gone.ticket)
        wait_until(lambda r=refused: system.client().get(*r).status == 409, PATIENCE, "refused, in the new line")
    assert gets_nothing(system, 0, visitor, [*credentials, waiting.ticket])
    back = f"{honest.path}/status"
    wait_until(lambda: honest.client.get(back, ticket=honest.ticket).status == 200, PATIENCE, "the honest one is back")
    kept = system.store.command("ZRANGE", system.key("bank", "waiting"), "0", "-1")
    assert not {visitor.view["visitor"], waiting.view["visitor"]} & set(kept)


#: The tests are a proxy, so that they can come from any address.
PROXY = {"http": {"trusted_proxies": "127.0.0.1"}}


def come(system: System, address: str, worker: int = 0, queue: str = "bank") -> int:
    """The status of a join from this address."""
    return system.client(worker).post(f"/v1/queues/{queue}/join", headers={"X-Forwarded-For": address}).status


def block(system: System, *words: str, status: int = 0) -> str:
    done = system.ctl(*words)
    assert done.returncode == status, (words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def test_a_blocked_prefix_is_refused_everywhere(share):
    """IPv4 and IPv6, at both workers, for joins, pages, streams and status; others come in. Unblocked, it joins again."""
    system = share(workers=2, settings=PROXY)
    bank, door = system.queue(), system.queue()
    visitor = system.join(bank)
    said = block(system, "block", "add", "192.0.2.0/24", "--for", "1h")
    assert said.startswith("192.0.2.0/24 is blocked from all queues, for 1h\n") and "It is not known which places" in said
    assert block(system, "block", "add", "2001:db8::/48", "--queue", bank).startswith(
        f"2001:db8::/48 is blocked from {bank}, until `tellerline block remove`\n")
    for worker in range(2):
        for address in ("192.0.2.77", "2001:db8:0:5::1"):
            wait_until(lambda w=worker, a=address: come(system, a, w, queue=bank) == 403, PATIENCE, "refused")
        assert come(system, "192.0.3.1", worker, queue=bank) == come(system, "2001:db8:1::1", worker, queue=bank) == 200
        assert come(system, "192.0.2.1", worker, door) == 403 and come(system, "2001:db8::1", worker, door) == 200
    from_there = {"X-Forwarded-For": "192.0.2.9"}
    client = system.client()
    for path in ("status", "events"):
        answer = client.get(f"{visitor.path}/{path}", ticket=visitor.ticket, headers=from_there)
        assert answer.problem(403)["type"] == "/problems/blocked", path
    for language, words in (("en", "You cannot join from here"), ("ko", "차단했습니다")):
        page = client.get(f"/q/{bank}", headers=from_there | {"Accept-Language": language})
        assert page.status == 403 and words in page.body.decode()
    assert visitor.status()["status"] in ("waiting", "active")
    listed = block(system, "block", "list")
    assert listed.index("2001:db8::/48") and "192.0.2.0/24" in listed and bank in listed
    assert block(system, "block", "remove", "192.0.2.0/24") == "192.0.2.0/24 is no longer blocked from all queues\n"
    for worker in range(2):
        wait_until(lambda w=worker: come(system, "192.0.2.77", w, queue=bank) == 200, PATIENCE, "unblocked")
    block(system, "block", "remove", "192.0.2.0/24", status=1)
    block(system, "block", "remove", "2001:db8::/48", "--queue", bank)
    assert "no prefix is blocked" in block(system, "block", "list")
    for words, says in ((("block", "add", "0.0.0.0/0"), "too wide"), (("block", "add", "nonsense"), "is not an IP address"),
                        (("block", "add", "192.0.2.1", "--queue", "A B"), "not a valid queue name")):
        assert says in block(system, *words, status=1)
    assert "is out of bounds (1s to 365d)" in block(system, "block", "add", "192.0.2.1", "--for", "1ms", status=2)


def test_a_block_ends_the_streams_of_the_prefix(share):
    """At once, with an event that says so; a question that waits is answered. Other addresses stay, and the place, too."""
    system = share(workers=2, settings=PROXY)
    bank = system.queue()
    active(system, bank)
    visitor, other = system.join(bank), system.join(bank)
    port = system.client(1).port
    streams = {address: EventStream(port, f"{visitor.path}/events", who.ticket, {"X-Forwarded-For": address})
               for address, who in (("192.0.2.9", visitor), ("198.51.100.1", other))}
    for stream in streams.values():
        stream.event("position")
    waits = system.client(0)
    answers = []
    poll = threading.Thread(target=lambda: answers.append(
        waits.get(f"{visitor.path}/status?wait=50s", ticket=visitor.ticket, headers={"X-Forwarded-For": "192.0.2.8"})))
    poll.start()
    held = "tellerline_worker_subscribers"
    wait_until(lambda: metric(system.of("worker")[0], held) == 1, PATIENCE, "the question waits")
    block(system, "block", "add", "192.0.2.0/24")
    assert streams["192.0.2.9"].event("blocked", "admitted", "ended").kind == "blocked"
    streams["192.0.2.9"].rest()
    poll.join()
    assert answers[0].problem(403)["type"] == "/problems/blocked"
    again = system.client(1).get(f"{visitor.path}/events", ticket=visitor.ticket,
                                 headers={"X-Forwarded-For": "192.0.2.9"})
    assert again.problem(403)["type"] == "/problems/blocked"
    assert metric(system.of("worker")[1], "tellerline_worker_event_streams") == 1
    assert visitor.status()["status"] == other.status()["status"] == "waiting"
    other.leave()
    assert streams["198.51.100.1"].event("ended").json["status"] == "left", "the other stream was open all the time"
    streams["198.51.100.1"].close()
    block(system, "block", "remove", "192.0.2.0/24")
    for worker in range(2):
        wait_until(lambda w=worker: come(system, "192.0.2.9", w, bank) == 200, PATIENCE, "unblocked")


def test_a_block_ends_by_itself_and_outlives_the_store(start):
    """The store forgets the table: the worker does not, until the block is over."""
    system = start(QUEUE, settings=PROXY | PROMPT | {"http": PROXY["http"] | PROMPT.get("http", {})})
    system.expect(STORE_TROUBLE)
    block(system, "block", "add", "192.0.2.7", "--for", "5s")
    block(system, "block", "add", "192.0.2.8")
    wait_until(lambda: come(system, "192.0.2.8") == 403, PATIENCE, "blocked")
    system.store.command("DEL", "tl:blocks{tl:queues}")
    wait_until(lambda: "has lost the blocked prefixes" in system.of("worker")[0].text(), PATIENCE, "it says so")
    assert come(system, "192.0.2.8") == 403
    wait_until(lambda: come(system, "192.0.2.7") == 200, PATIENCE, "the block is over")
    assert come(system, "192.0.2.8") == 403


def test_a_session_is_one_visitor_s(share):
    """Two clients use one session in turn: noticed, and the one that came later is refused if the queue says so. The
    visitor who changes the network is not."""
    system = share(workers=2, settings=PROXY)
    bank = system.queue(session_sharing="refuse")
    visitor, (ticket, session_pass) = active(system, bank)
    worker = system.of("worker")[0]
    before = count(worker, "sessions_shared"), count(worker, "sessions_shared_refused")

    def check_from(address: str, agent: str, credential: str) -> int:
        headers = {"X-Forwarded-For": address, "User-Agent": agent}
        answer = visitor.client.get(f"{visitor.path}/check", ticket=credential, headers=headers)
        return answer.status if answer.status != 403 else answer.problem(403)["type"] == "/problems/shared-session" and 403

    def owner() -> int:
        return check_from("192.0.2.7", "phone", ticket)

    def other() -> int:
        return check_from("198.51.100.7", "laptop", session_pass)

    def refused() -> bool:
        assert owner() == 204
        return other() == 403

    wait_until(lambda: owner() == 204, PATIENCE, "the gate is open")
    wait_until(refused, PATIENCE, "the other is refused", every=0.2)
    for _ in range(5):
        assert (owner(), other()) == (204, 403)
    assert check_from("203.0.113.9", "phone", ticket) in (204, 403)  # two places at once: nobody can tell
    assert count(worker, "sessions_shared") == before[0] + 1
    assert count(worker, "sessions_shared_refused") >= before[1] + 6
    assert "is used by several clients in turn" in worker.text()
    system.set(bank, "session_sharing=count")
    wait_until(lambda: other() == 204, PATIENCE, "only counted")


def test_networks_that_send_very_many_are_named(share):
    """Joins, and credentials that open nothing: counted, and logged with the address and what to do."""
    system = share(workers=2, settings=PROXY)
    bank = system.queue()
    worker, client = system.of("worker")[0], system.client()
    before = {name: count(worker, name) for name in ("joins_many", "checks_failed_many", "checks_failed")}
    there = {"X-Forwarded-For": "203.0.113.7"}
    for _ in range(65):
        client.post(f"/v1/queues/{bank}/join", headers=there)
        assert client.get(f"/v1/queues/{bank}/check", ticket="a.forged.pass", headers=there).status == 401
    after = {name: count(worker, name) - before[name] for name in before}
    assert after["joins_many"] >= 1 and after["checks_failed_many"] >= 1 and after["checks_failed"] == 65, after
    for what in ("joins", "tickets and passes that open nothing"):
        assert f"203.0.113.7 sent 61 {what}" in worker.text(), what


def test_nobody_is_advised_to_block_a_proxy(start):
    """All its visitors would be refused: one that is trusted and sends no X-Forwarded-For, and one that is not trusted."""
    for settings, headers, says in ((PROXY, {}, "one of http.trusted_proxies, which has to send X-Forwarded-For"),
                                    ({}, {"X-Forwarded-For": "203.0.113.7"}, "if it is a proxy, name it in http.trusted_proxies")):
        system = start(QUEUE, settings=settings)
        client = system.client()
        for _ in range(65):
            client.post("/v1/queues/bank/join", headers=headers)
        said = [line for line in system.of("worker")[0].text().splitlines() if "127.0.0.1 sent 61 joins" in line]
        assert len(said) == 1 and says in said[0], said
        assert ("tellerline block add" in said[0]) == (not settings), said


def top(system: System, *where: str) -> str:
    shown = system.ctl("top", "--count", "1", *where)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return shown.stdout


def of_queue(worker: Program, name: str, queue: str) -> int:
    found = re.search(rf'^tellerline_worker_queue_{name}_total{{role="worker",queue="{queue}"}} (\d+)$', metrics(worker),
                      re.MULTILINE)
    return int(found.group(1)) if found else 0


def test_top_shows_the_signs_of_each_queue(start):
    """What two workers saw in the last minute is added up; a queue without signs is not mentioned. The metrics name the
    queue, too."""
    system = start({"bank": QUEUE["bank"], "door": QUEUE["bank"]}, workers=2, settings=PROXY, prepare=admin_file)
    assert "misuse" not in top(system)
    for worker in range(2):
        for _ in range(40):
            assert come(system, "192.0.2.7", worker) == 200
            forged = system.client(worker).get("/v1/queues/bank/check", ticket="a.forged.pass",
                                               headers={"X-Forwarded-For": "198.51.100.7"})
            assert forged.status == 401
        assert come(system, "192.0.2.7", worker, "door") == 200

    def shown() -> str:
        text = top(system)
        return text if "80 joins from 192.0.2.7" in text and "80 failed checks from 198.51.100.7" in text else ""

    text = wait_until(shown, PATIENCE, "top adds up what the workers report", every=1)
    there = ["--server", f"http://127.0.0.1:{system.of('worker')[0].admin_port}",
             "--token-file", str(system.directory / "admin.token")]
    assert "80 joins from 192.0.2.7" in top(system, *there), "an admin listener knows them, too"
    assert "80 joins from 192.0.2.7" in system.ctl("queue", "stats", "bank").stdout
    signs = text[text.index("Signs of misuse"):].splitlines()
    assert signs[1].startswith("! bank: ") and not any("door" in line for line in signs), signs
    assert all(len(line) <= 80 for line in signs)
    for worker in system.of("worker"):
        assert of_queue(worker, "checks_failed", "bank") == 40 and of_queue(worker, "checks_failed", "door") == 0
    key = system.key("bank", "signs")
    assert system.store.command("XLEN", key) <= 4, "an entry of each worker in ten seconds"
    for _ in range(300):
        system.store.command("XADD", key, "MAXLEN", "256", "*", "d", "garbage")
    assert "misuse" not in top(system), "what makes no sense is left out"
    system.store.command("DEL", key)
    system.store.command("SET", key, "x")
    assert "! bank: its signs of misuse cannot be read" in top(system)
    system.store.command("DEL", key)
