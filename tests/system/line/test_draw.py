# SPDX-License-Identifier: Apache-2.0
"""The draw of an opening, with the real programs: the order, its publication, and what becomes of tickets of before."""
from __future__ import annotations

import hashlib
import hmac
import random
from datetime import datetime, timedelta, timezone

import wire
from browser import chromium, until, visit
from http_client import Visitor, redeem
from sse import EventStream
from tellerline import BIN, CALM, PATIENCE, System, run
from test_store_trouble import PROMPT, STORE_TROUBLE
from waiting import wait_until

KEY = "ab" * 32
API_KEY = "draw-test-key-0123456789abcdef0123"


def time_in(seconds: float) -> str:
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def with_secrets(system: System) -> None:
    """The same secret for every system: so the same order, where queue and opening are the same."""
    folder = system.directory / "secrets"
    folder.mkdir(mode=0o700, exist_ok=True)
    for path, text in ((folder / "draw.key", KEY), (system.directory / "api.keys", f"shop {API_KEY}")):
        path.write_text(text + "\n")
        path.chmod(0o600)


def begin(start, opens_at: str, **more) -> System:
    return start({"sale": {"capacity": 1, "order": "draw", "opens_at": opens_at} | CALM | more.pop("queue", {})},
                 settings=PROMPT | more.pop("settings", {}), prepare=with_secrets, **more)


def open_now(system: System) -> str:
    """Everyone has joined: the opening is now."""
    opens_at = time_in(0.3)
    system.set("sale", f"opens_at={opens_at}")
    return opens_at


def drawn(system: System) -> bool:
    return "drawn" in system.client().get("/v1/queues/sale").json


def published(system: System, tmp_path, name: str = "list") -> list[str]:
    path = tmp_path / name
    assert system.ctl("draw", "show", "sale", str(path)).returncode == 0
    return path.read_text().splitlines()


def verify(path, *words: str):
    return run(BIN / "tellerline", "draw", "verify", str(path), *words)


def address_of(system: System) -> str:
    return f"http://127.0.0.1:{system.of('worker')[0].http_port}/v1/queues/sale/draw"


def line_of(system: System) -> list[str]:
    return system.store.command("ZRANGE", system.key("sale", "waiting"), "0", "-1")


def test_a_draw_is_scheduled(start):
    """For a queue that exists; from then on the hash of the seed is public."""
    system = start({"sale": {"capacity": 1}}, settings=PROMPT, prepare=with_secrets)
    assert "no draw" in system.ctl("draw", "show", "sale").stdout
    assert system.ctl("draw", "schedule", "sale", "soon").returncode == 1
    at = time_in(600)
    done = system.ctl("draw", "schedule", "sale", at)
    assert done.returncode == 0 and "are drawn by lot" in done.stdout, done
    wait_until(lambda: "hash of the seed" in system.ctl("draw", "show", "sale").stdout, PATIENCE, "it is announced")


def test_the_draw_is_announced_held_and_verified(start, tmp_path):
    system = begin(start, time_in(600))
    before = wait_until(lambda: system.client().get("/v1/queues/sale").json.get("draw_seed_hash"), PATIENCE, "the hash")
    visitors = [system.join("sale") for _ in range(40)]
    ids = []
    for visitor in visitors:
        view = visitor.status()
        assert view["status"] == "waiting" and view["order"] == "draw"
        assert "position" not in view and "ahead" not in view and "eta_seconds" not in view
        assert view["opens_at"]
        ids.append(view["draw_id"])
    assert system.ctl("draw", "show", "sale", str(tmp_path / "early")).returncode == 1
    assert before in system.ctl("draw", "show", "sale").stdout

    open_now(system)
    wait_until(lambda: drawn(system), PATIENCE, "the draw is done")
    public = system.client().get("/v1/queues/sale").json
    seed = bytes.fromhex(public["draw_seed"])
    assert public["drawn"] == 40
    assert hashlib.sha256(seed).hexdigest() == public["draw_seed_hash"]

    lines = published(system, tmp_path)
    listed = lines[lines.index("") + 1:]
    keys = [hmac.new(seed, bytes.fromhex(line), hashlib.sha256).digest() for line in listed]
    assert keys == sorted(keys)
    # The ids that a visitor was told before the opening are those of the opening then.
    now = [visitor.status()["draw_id"] for visitor in visitors]
    assert sorted(listed) == sorted(now)

    assert verify(tmp_path / "list", public["draw_seed_hash"], listed[6]).stdout.endswith("at 7\n")
    for a in (0, 17, 38):
        swapped = lines[:]
        at = lines.index("") + 1 + a
        swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
        (tmp_path / "swapped").write_text("\n".join(swapped) + "\n")
        result = verify(tmp_path / "swapped")
        assert result.returncode == 1 and "the order is wrong" in result.stderr
    assert verify(tmp_path / "list", before).returncode == 1, "another opening, another seed"


def test_anyone_can_fetch_and_verify_the_list(start, tmp_path):
    """Without access to the system: from the address, and from pages that were saved."""
    system = begin(start, time_in(600), queue={"mode": "paused"})
    client, path = system.client(), "/v1/queues/sale/draw"
    before = wait_until(lambda: client.get(path).json.get("hash"), PATIENCE, "the hash")
    assert client.get(path).json["phase"] == "none" and "no list before" in verify(address_of(system)).stderr
    visitors = [system.join("sale") for _ in range(30)]
    open_now(system)
    wait_until(lambda: drawn(system), PATIENCE, "the draw is done")

    pages = [client.get(f"{path}?starting_after={last}&limit=7") for last in range(0, 30, 7)]
    ids = [one for page in pages for one in page.json["ids"]]
    lines = published(system, tmp_path)
    assert ids == lines[lines.index("") + 1:], "the list that the operator writes"
    assert len({page.headers["etag"] for page in pages}) == len(pages)
    same = client.get(f"{path}?starting_after=7&limit=7", headers={"If-None-Match": pages[1].headers["etag"]})
    assert same.status == 304 and not same.body and "max-age" in same.headers["cache-control"]
    assert [page.json["has_more"] for page in pages] == [True] * 4 + [False]
    assert client.get(f"{path}?starting_after=30").json["ids"] == []
    text = b"".join(page.body for page in pages).decode()
    assert not [visitor for visitor in visitors if visitor.view["visitor"] in text], "draw ids only"

    seed_hash = pages[0].json["hash"]
    own = visitors[4].status()["draw_id"]
    result = verify(address_of(system), seed_hash, own)
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith(f"stands at {ids.index(own) + 1}\n")
    assert verify(address_of(system), before).returncode == 1, "another opening, another seed"
    saved = tmp_path / "pages"
    saved.write_text(text)
    assert verify(saved, seed_hash).stdout.startswith("sale: the order of 30 visitors is that of the seed")
    saved.write_text(b"".join(page.body for page in pages[:-1]).decode())
    assert "names 30 drawn visitors, but has 28" in verify(saved).stderr
    saved.write_text(text.replace(ids[11], "*").replace(ids[12], ids[11]).replace("*", ids[12]))
    swapped = verify(saved)
    assert swapped.returncode == 1 and "the order is wrong" in swapped.stderr

    # The same in the store: what everyone reads then is wrong.
    key, places = system.key("sale", "drawn"), [(12, ids[20]), (21, ids[11])]
    for place, one in places:
        system.store.command("SETRANGE", key, str(16 * place), bytes.fromhex(one))
    result = verify(address_of(system))
    assert result.returncode == 1 and "the order is wrong" in result.stderr
    for (place, _), one in zip(places, (ids[11], ids[20])):
        system.store.command("SETRANGE", key, str(16 * place), bytes.fromhex(one))


def test_nobody_has_a_place_before_and_all_have_one_after(start):
    """Old tickets go on working: on every worker, with every call, also after restarts; streams are told at once."""
    system = begin(start, time_in(600), workers=2, queue={"capacity": 3})
    visitors = [system.join("sale", i % 2) for i in range(30)]
    old = [visitor.ticket for visitor in visitors]
    streams = [EventStream(system.of("worker")[i % 2].http_port, "/v1/queues/sale/events", old[i]) for i in range(6)]
    for stream in streams:
        assert "position" not in stream.event("position").json
    opens_at = open_now(system)

    def is_late() -> bool:
        return datetime.now(timezone.utc) > datetime.fromisoformat(opens_at) + timedelta(milliseconds=50)
    wait_until(is_late, PATIENCE, "the opening")
    late = [system.join("sale") for _ in range(3)]
    wait_until(lambda: drawn(system), PATIENCE, "the draw is done")
    wait_until(lambda: system.active("sale") == 3, PATIENCE, "the first are admitted")
    for stream in streams:
        def told(stream=stream):
            event = stream.event("position", "admitted").json
            return event if "position" in event or event["status"] == "active" else None
        wait_until(told, PATIENCE, "a stream is told its place")

    def views() -> list[dict]:
        return [Visitor(system.client(i % 2), "sale", ticket).status() for i, ticket in enumerate(old)]

    def check() -> None:
        seen = views()
        assert sorted(view["position"] for view in seen if view["status"] == "waiting") == list(range(1, 28))
        assert sum(view["status"] == "active" for view in seen) == 3

    wait_until(lambda: all("position" in view or view["status"] == "active" for view in views()), PATIENCE, "places")
    check()
    assert [visitor.status()["position"] for visitor in late] == [28, 29, 30], "who comes later stands behind"
    for program in system.of("worker"):
        program.kill()
        program.start()
        program.wait_ready()
    check()
    # A command with a ticket of before.
    last = max((view for view in views() if view["status"] == "waiting"), key=lambda view: view["position"])
    leaver = next(ticket for ticket, view in zip(old, views()) if view["visitor"] == last["visitor"])
    assert Visitor(system.client(1), "sale", leaver).leave()["status"] == "left"
    wait_until(lambda: late[0].status(system.client(0))["position"] == 27, PATIENCE, "the line moves up")
    # The session of one who was drawn first: with the old ticket.
    first = next(ticket for ticket, view in zip(old, views()) if view["status"] == "active")
    assert Visitor(system.client(0), "sale", first).complete()["status"] == "completed"
    for stream in streams:
        stream.close()


def join_named(system: System, names: list[str], again: random.Random) -> None:
    """Trusted joins of these visitors, of whom some join more than once."""
    client = system.client()
    for name in names:
        for _ in range(again.choice((1, 1, 3))):
            answer = client.request("POST", "/v1/queues/sale/join", f'{{"visitor": "{name}"}}'.encode(),
                                    headers={"Authorization": f"Bearer {API_KEY}"})
            assert answer.status in (200, 202), answer.body


def test_arrival_and_kills_do_not_change_the_order(start):
    """The same visitors in another order, some of them more often, and programs killed in the middle of the draw."""
    chance = random.Random(11)
    names = [f"visitor-{i}" for i in range(60)]
    systems = [begin(start, time_in(600), admitters=2, dispatchers=2, queue={"mode": "paused"}) for _ in range(2)]
    for system in systems:
        chance.shuffle(names)
        join_named(system, names, chance)
    opens_at = time_in(1)  # all have joined
    for system in systems:
        system.set("sale", f"opens_at={opens_at}")
    begins = datetime.fromisoformat(opens_at) - timedelta(seconds=0.3)
    wait_until(lambda: datetime.now(timezone.utc) > begins, 30, "the opening")
    for _ in range(12):
        program = chance.choice(systems[1].of("admitter") + systems[1].of("dispatcher"))
        program.kill()
        program.start()
    for system in systems:
        wait_until(lambda system=system: drawn(system), PATIENCE, "the draw is done")
    orders = [line_of(system) for system in systems]
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == sorted(names) and orders[0] != sorted(orders[0])


def test_a_total_loss_after_the_draw_keeps_the_order(start):
    """Old tickets, too, of visitors who were seen after the draw; who was not seen comes behind them."""
    far = time_in(600)
    system = begin(start, far, queue={"mode": "paused", "recovery_window": "4s"})
    visitors = [system.join("sale") for _ in range(12)]
    old = [visitor.ticket for visitor in visitors]
    # The opening is now that all have joined, also of the queue that is made again: so the file says the same.
    system.config.write_text(system.config.read_text().replace(far, open_now(system)))
    for program in system.programs:
        program.stop()
        program.start()
    for program in system.programs:
        program.wait_ready()
    wait_until(lambda: drawn(system), PATIENCE, "the draw is done")
    seen = visitors[:11]  # the last one is away
    client = system.client()
    before = {visitor.view["visitor"]: place for visitor in seen
              if (place := wait_until(lambda v=visitor: v.status(client).get("position"), PATIENCE, "a place"))}
    order = sorted(before, key=before.get)
    assert order != [visitor.view["visitor"] for visitor in seen], "the order of arrival"
    generation = system.numbers("sale")["generation"]
    system.store.command("FLUSHALL")
    wait_until(lambda: system.numbers("sale")["generation"] > generation, PATIENCE, "the queue is made again",
               again_on=KeyError)

    def back() -> bool:
        views = [Visitor(system.client(), "sale", ticket).status() for ticket in old]
        return [view["visitor"] for view in sorted(views[:11], key=lambda view: view["position"])] == order \
            and views[11]["position"] == 12 and system.numbers("sale")["recover_until"] == 0

    wait_until(back, PATIENCE, "all are back", every=0.2, again_on=(AssertionError, KeyError))
    wait_until(lambda: drawn(system), PATIENCE, "nobody waits for the draw")
    assert back()


def test_an_opening_in_the_lost_end_comes_again(start):
    """Redis comes back as it was before the opening. The order is the same, who had heard of a place or not; who came
    after the opening stands behind, in either history; and nobody is told that the place is over."""
    system = begin(start, time_in(600), workers=2, queue={"mode": "paused"}, redis={"appendfsync": "always"})
    system.expect(STORE_TROUBLE)
    visitors = [system.join("sale", i % 2) for i in range(20)]
    tickets = [visitor.ticket for visitor in visitors]
    opens_at = time_in(1.5)
    system.set("sale", f"opens_at={opens_at}")
    history = system.redis.history()
    wait_until(lambda: drawn(system), PATIENCE, "the draw is done")
    late = [system.join("sale", i % 2) for i in range(4)]
    order = line_of(system)

    def has_place(visitor: Visitor) -> bool:
        view = visitor.status(system.client(0))
        assert view["status"] in ("waiting", "pending"), view
        return "position" in view

    for visitor in visitors[::2] + late:  # the others have not heard of the draw
        wait_until(lambda visitor=visitor: has_place(visitor), PATIENCE, "a place")
    tickets += [visitor.ticket for visitor in visitors[::2]]
    streams = [EventStream(system.of("worker")[i % 2].http_port, "/v1/queues/sale/events", visitor.ticket)
               for i, visitor in enumerate(visitors[:4])]
    system.redis.kill()
    system.redis.lose_tail(history)
    system.redis.start()
    system.forget_store()

    new = [wait_until(lambda: system.join("sale"), PATIENCE, "a newcomer joins", again_on=AssertionError) for _ in range(3)]
    order += [visitor.view["visitor"] for visitor in new]
    for visitor in visitors[::2] + late:  # also while the draw comes again
        wait_until(lambda visitor=visitor: visitor.status(system.client(1)), PATIENCE, "an answer", again_on=AssertionError)
    wait_until(lambda: drawn(system), PATIENCE, "the draw is done again")
    wait_until(lambda: line_of(system) == order, PATIENCE, "all stand as before")

    def place(ticket: str, worker: int) -> int | None:
        return Visitor(system.client(worker), "sale", ticket).status().get("position")

    for ticket in tickets + [visitor.ticket for visitor in late + new]:
        for worker in (0, 1):
            at = wait_until(lambda ticket=ticket, worker=worker: place(ticket, worker), PATIENCE, "a place",
                            again_on=AssertionError)  # 503 while the worker reads the line again
            assert order[at - 1] == Visitor(system.client(worker), "sale", ticket).status()["visitor"]
    for stream in streams:
        wait_until(lambda stream=stream: "position" in stream.event("position").json, PATIENCE, "a stream is told its place")
        stream.close()


def test_who_leaves_while_the_draw_is_numbered_has_left(start):
    """With the ticket of before, which workers know until the draw is done."""
    system = begin(start, time_in(600), queue={"mode": "paused"})
    visitors = [system.join("sale") for _ in range(6)]
    opens_at = int((datetime.now(timezone.utc).timestamp() - 1) * 1000)
    for program in system.of("admitter"):
        program.stop()
    last = int(float(system.store.command("ZRANGE", system.key("sale", "waiting"), "-1", "-1", "WITHSCORES")[1]))
    cut = last % wire.LANE
    # As another admitter has left it, in the middle.
    record = f"{opens_at}:2:{cut}:{cut + 2}:{cut + 2**30}:{cut + 1}:0:1:0"
    system.store.command("HSET", system.key("sale", "config"), "opens_at", opens_at)
    system.store.command("HSET", system.key("sale", "state"), "draw", record, "seq", cut + 2**30)
    leaver = visitors[3]
    system.store.command("ZADD", system.key("sale", "waiting"), "XX", last + 1, leaver.view["visitor"])
    assert leaver.leave()["status"] == "left"
    assert leaver.status()["status"] == "left"
    assert all(visitor.status()["status"] == "waiting" for visitor in visitors if visitor is not leaver)
    system.sound = False  # nobody finishes that draw


def test_a_place_on_another_device_stays_there_through_a_late_draw(start):
    system = start({"sale": {"capacity": 1, "mode": "paused"} | CALM}, settings=PROMPT, prepare=with_secrets)
    visitors = [system.join("sale") for _ in range(5)]
    old = visitors[2]
    code = old.client.post(f"{old.path}/transfer", ticket=old.ticket).json["code"]
    new = Visitor(system.client(), "sale", redeem(old.client, "sale", code).json["ticket"])
    opens_at = time_in(0.3)
    system.set("sale", "order=draw", f"opens_at={opens_at}")
    wait_until(lambda: drawn(system), PATIENCE, "the draw is done")
    wait_until(lambda: "position" in new.status(), PATIENCE, "the new device has a place")
    assert new.view["visitor"] == old.view["visitor"]
    wait_until(lambda: old.status()["status"] == "moved", PATIENCE, "the old ticket is refused")
    assert "position" in new.status()
    assert system.ctl("audit").returncode == 0


def test_the_page_counts_down_and_shows_the_place_after_the_draw(start):
    system = begin(start, time_in(600), queue={"mode": "paused"})
    others = [system.join("sale") for _ in range(4)]
    with chromium() as browser:
        visit(browser, f"http://127.0.0.1:{system.of('worker')[0].http_port}/q/sale?lang=en")
        page = until(browser, lambda page: page.state == "waiting" and page.shows("drawing"), "it says the rule")
        assert page.shows("before") and "minutes" in page.text("countdown") and not page.shows("ahead")
        assert page.title.startswith("Places are drawn by lot")
        open_now(system)
        page = until(browser, lambda page: page.shows("ahead"), "it shows the place by itself")
        assert not page.shows("drawing") and not page.shows("before")
        place = int(page.text("ahead")) + 1
        assert 1 <= place <= 5 and page.title.startswith(f"No. {place} "), page.title
    wait_until(lambda: all("position" in visitor.status() for visitor in others), PATIENCE, "the others, too")
