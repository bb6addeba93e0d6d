# SPDX-License-Identifier: Apache-2.0
"""A capacity that the protected site steers: by what it reports over HTTP, and by a probe of the admitter."""
from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from http_client import Answer, Client
from site_stand_in import Site
from tellerline import CALM, PATIENCE, System
from test_pass import API_KEY, key_file
from test_users import denied_but_creating, guarded
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=60)

STEERED = {"capacity": {"min": 2, "max": 20},
           "adaptive": {"every": "1s", "raise": "20%", "hold": "2s", "fresh": "2s"}} | CALM
OTHER_KEY = "o" * 40
#: What admitters say of a probe that fails.
FAILS = r"the probe of the site failed"


def capacity(system: System, queue: str = "shop") -> int:
    """What a visitor is told."""
    return system.client().get(f"/v1/queues/{queue}").json["capacity"]


def metric(system: System, name: str) -> int:
    total = 0
    for program in system.of("admitter"):
        client = Client(program.admin_port)
        found = re.search(rf"^{name}{{[^}}]*}} (\d+)", client.get("/metrics").body.decode(), re.M)
        total += int(found.group(1)) if found else 0
        client.close()
    return total


def report(system: System, **members: float) -> None:
    answer = system.client().post("/v1/queues/shop/feedback", json.dumps(members).encode(), ticket=API_KEY)
    assert answer.status == 202, answer.body
    assert answer.json["queue"] == "shop" and answer.json["steered"] is True


def limit(system: System) -> str:
    """As operators see it."""
    return next(line for line in system.ctl("queue", "list").stdout.splitlines() if line.startswith("shop"))


def crowd(system: System, n: int, queue: str = "shop") -> None:
    for _ in range(n):
        system.join(queue)


@pytest.fixture(scope="module", name="kind")
def what_the_stack_has(tmp_path_factory) -> dict[str, Any]:
    """Two keys, of the shop and of another one."""
    keys = key_file(tmp_path_factory.mktemp("keys") / "api.keys", f"shop {API_KEY}\nother {OTHER_KEY}\n")
    return {"queue": STEERED, "settings": {"secrets": {"api_keys": keys}}}


def test_the_site_steers_over_http(start, tmp_path):
    """Raised while it has room, cut when it is overloaded, back to a safe value when it falls silent; with the users of
    Redis that each program has."""
    api = key_file(tmp_path / "api.keys", f"shop {API_KEY}\n")
    system = start({"shop": STEERED}, settings={"secrets": {"api_keys": api}}, prepare=guarded)
    client = system.client()
    wait_until(lambda: client.get("/v1/queues/shop").status == 200, PATIENCE, "it is served")
    assert capacity(system) == 2 and "2 auto (no feedback)" in limit(system)
    crowd(system, 30)

    def while_it_reports(condition: Callable[[], bool], what: str) -> None:
        """A report is fresh for two seconds only."""
        wait_until(lambda: report(system, load=0.3, latency_ms=20, error_rate=0) or condition(), PATIENCE, what,
                   every=0.3)

    while_it_reports(lambda: capacity(system) >= 14, "it is raised")
    while_it_reports(lambda: "auto (no" not in limit(system), "operators see that it reports")
    while_it_reports(lambda: system.active("shop") >= 14, "and used")
    while_it_reports(lambda: metric(system, "tellerline_admitter_queues_without_feedback") == 0, "it says so")
    assert metric(system, "tellerline_admitter_queues_steered") == 1
    before = system.active("shop")
    wait_until(lambda: report(system, load=0.3, error_rate=0.2) or capacity(system) < before, PATIENCE, "it is cut",
               every=0.2)
    cut = capacity(system)
    assert cut in {int((before + more) * 0.7) for more in range(9)}, (before, cut)  # some may have been admitted since
    assert system.active("shop") >= before  # nobody is put out
    wait_until(lambda: metric(system, "tellerline_admitter_queues_without_feedback") == 1, PATIENCE, "it says so")
    assert capacity(system) <= cut and "auto (no feedback)" in limit(system)
    queues = json.loads(system.ctl("queue", "list", "-o", "json").stdout)["queues"]
    assert queues[0]["feedback"] is False and queues[0]["capacity_now"] == capacity(system)
    log = "".join(program.text() for program in system.of("admitter"))
    assert "the site reports nothing" in log and "capacity cut from" in log and "errors 20.0 %" in log
    assert not denied_but_creating(system)


#: Reports that make no sense.
SENSELESS = [b"", b"{}", b"[]", b'{"load": 2}', b'{"load": -0.1}', b'{"load": "1"}', b'{"speed": 1}',
             b'{"load": 1, "load": 0}', b'{"error_rate": 1.1}', b'{"latency_ms": 1e99}']


def test_only_the_site_may_report_and_only_what_makes_sense(share, kind):
    system = share(**kind)
    queue, client = system.queue(), system.client()
    address = f"/v1/queues/{queue}/feedback"
    for credential in (None, "k" * 41, system.join(queue).ticket):
        answer = client.post(address, b'{"load": 0.1}', ticket=credential)
        assert answer.problem(403)["type"].endswith("/not-trusted")
    assert client.post("/v1/queues/none/feedback", b'{"load": 0.1}', ticket=API_KEY).status == 404
    assert client.get(address, ticket=API_KEY).status == 405
    for body in SENSELESS:
        assert client.post(address, body, ticket=API_KEY).problem(400)["type"].endswith("/bad-body"), body
    assert system.store.command("XLEN", system.key(queue, "feedback")) == 0


def test_reports_are_limited_by_key_and_queue(share, kind):
    """20 a second; another key, and another queue, are not affected. Many within one second: a window may end between."""
    system = share(**kind)
    shop, bank, client = system.queue(), system.queue(), system.client()

    def post(queue: str, key: str) -> Answer:
        return client.post(f"/v1/queues/{queue}/feedback", b'{"load": 0.1}', ticket=key)

    def limited() -> bool:
        answers = [post(shop, API_KEY) for _ in range(50)]
        refused = [answer for answer in answers if answer.status != 202]
        for answer in refused:
            assert answer.problem(429)["type"].endswith("/too-often") and 1 <= int(answer.headers["retry-after"]) <= 2
        assert len(answers) - len(refused) >= 20
        return bool(refused)

    wait_until(limited, PATIENCE, "fifty within a second")
    for queue, key in ((bank, API_KEY), (shop, OTHER_KEY)):
        assert post(queue, key).status == 202
    wait_until(lambda: post(shop, API_KEY).status == 202, PATIENCE, "the second is over")


def test_capacity_gets_bounds_and_is_fixed_again(start):
    system = start({"shop": CALM | {"capacity": {"min": 3, "max": 40}}, "bank": CALM | {"capacity": 9}})

    def kept(queue: str) -> list:
        return system.store.command("HMGET", system.key(queue, "config"), "capacity", "capacity.min")

    assert kept("shop") == ["40", "3"] and kept("bank") == ["9", "0"]
    refused = system.ctl("queue", "set", "bank", "capacity.min=20")
    assert refused.returncode != 0 and "capacity.max" in refused.stderr and kept("bank") == ["9", "0"]
    system.set("bank", "capacity.max=20", "capacity.min=2")
    assert kept("bank") == ["20", "2"]
    system.set("bank", "capacity.max=30")
    assert kept("bank") == ["30", "2"]
    system.set("bank", "capacity=5")
    assert kept("bank") == ["5", "0"]


def test_a_probe_steers_whatever_the_site_does(start):
    """It hangs, answers rubbish, errors, a redirection, too much, and goes away; each time the capacity falls back, and
    the line goes on. One queue asks for JSON, one for the text of Prometheus."""
    with Site().serving() as site:
        probes = {"json": {"url": f"http://127.0.0.1:{site.port}/load", "value": "pool.busy"},
                  "text": {"url": f"http://127.0.0.1:{site.port}/metrics", "format": "prometheus", "value": "busy"}}
        queues = {name: STEERED | {"probe": probe | {"full": 200, "every": "200ms", "timeout": "400ms"}}
                  for name, probe in probes.items()}
        system = start(queues | {"other": {"capacity": 1} | CALM})
        system.expect(FAILS)

        def without_feedback(n: int) -> bool:
            return metric(system, "tellerline_admitter_queues_without_feedback") == n

        def capacities() -> list[int]:
            return [capacity(system, queue) for queue in probes]

        for queue in probes:
            crowd(system, 30, queue)
        wait_until(lambda: min(capacities()) >= 10, PATIENCE, "both are raised")
        site.load = 0.95
        wait_until(lambda: max(capacities()) < 10, PATIENCE, "both are cut")
        assert metric(system, "tellerline_admitter_capacity_cuts_total") >= 2
        for mood in ("hangs", "garbage", "error", "redirect", "huge"):
            site.mood, site.load = mood, 0.1
            wait_until(lambda: without_feedback(2), PATIENCE, mood)
            now, asked = metric(system, "tellerline_admitter_capacity_steered"), site.asked
            wait_until(lambda now=now: sum(capacities()) == now, PATIENCE, "the worker knows")
            other = system.join("other")
            wait_until(other.is_active, PATIENCE, "the admitter goes on")
            other.complete()
            wait_until(lambda: site.asked >= asked + 6, PATIENCE, "both ask again")
            assert sum(capacities()) == now
            site.mood = "well"
            wait_until(lambda: without_feedback(0), PATIENCE, "it is back")
    wait_until(lambda: without_feedback(2), PATIENCE, "the site is gone")
    assert metric(system, "tellerline_admitter_probe_errors_total") > 10
    log = system.of("admitter")[0].text()
    assert "the probe of the site failed" in log and "the site reports again" in log


def test_a_probe_of_a_fixed_capacity_asks_nobody(start):
    with Site().serving() as site:
        probe = {"url": f"http://127.0.0.1:{site.port}/load", "value": "pool.busy", "every": "100ms"}
        system = start({"shop": {"capacity": 5, "probe": probe} | CALM})
        visitor = system.join("shop")
        wait_until(visitor.is_active, PATIENCE, "is admitted")
        assert site.asked == 0
        system.set("shop", "capacity.min=1")
        wait_until(lambda: site.asked > 2, PATIENCE, "it is asked")


def test_three_admitters_that_die_do_not_steer_faster(start, tmp_path):
    """One after the other is killed at a random moment: raises and cuts keep their distances by Redis's clock."""
    api = key_file(tmp_path / "api.keys", f"shop {API_KEY}\n")
    queue = STEERED | {"capacity": {"min": 10, "max": 200},
                       "adaptive": {"every": "1s", "raise": "5%", "hold": "2s", "fresh": "10s"}}
    system = start({"shop": queue}, admitters=3, settings={"secrets": {"api_keys": api}})
    crowd(system, 220)
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    chance, seen, stop = random.Random(seed), [], threading.Event()
    script = ("return redis.call('HMGET', KEYS[1], 'capacity_now', 'capacity_raised', 'capacity_cut')")

    def watch() -> None:
        store = system.redis.connect()
        while not stop.wait(0.02):
            now = [int(value or 0) for value in store.command("EVAL", script, 1, system.key("shop", "state"))]
            if not seen or seen[-1] != now:
                seen.append(now)
        store.close()

    watcher = threading.Thread(target=watch)
    watcher.start()

    def raises() -> list[int]:
        return sorted({raised for _, raised, _ in list(seen) if raised})

    kills = 0

    def kill_one() -> bool:
        nonlocal kills
        victim, kills = chance.choice(system.of("admitter")), kills + 1
        victim.kill()
        for _ in range(chance.randrange(2, 12)):
            report(system, load=0.95 if kills % 5 == 0 else 0.2)
            time.sleep(0.1)  # as a site reports
        victim.start()
        return kills >= 12 and len(raises()) >= 5

    try:
        wait_until(kill_one, PATIENCE, "it is raised five times", every=0)
    finally:
        stop.set()
        watcher.join()
    raised_at = raises()
    cuts = sorted({cut for _, _, cut in seen if cut})
    assert all(b - a >= 1000 for a, b in zip(raised_at, raised_at[1:])), raised_at
    assert all(b - a >= 2000 for a, b in zip(cuts, cuts[1:])), cuts
    assert all(not 0 <= raised - cut < 2000 for raised in raised_at for cut in cuts), (raised_at, cuts)
    for (before, *_), (after, *_) in zip(seen, seen[1:]):
        assert after <= before + 10 and 10 <= after <= 200, (before, after)
