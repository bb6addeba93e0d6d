# SPDX-License-Identifier: Apache-2.0
"""The trail proves that each lane was served as often as its weight says."""
from __future__ import annotations

import os
import random
import re

import pytest

from admin import Admin, admin_file
from tellerline import CALM, System
from test_archive import agree
from test_store_trouble import PROMPT
from test_trail import TURN
from waiting import PATIENCE, wait_until

SALES = [f"sale{i}" for i in range(20)]
LANES = ["vip", "normal", "late"]
WEIGHTS = [[3, 1, 1], [1, 1, 1], [5, 3, 2], [1, 7, 4], [1000, 1, 10]]
SALE = CALM | {"capacity": 10, "claim_ttl": "1s", "lanes": LANES, "default_lane": "normal"}


def verified(system, queue, path):
    exported = system.ctl("trail", "export", queue)
    assert exported.returncode == 0, exported.stderr
    path.write_text(exported.stdout)
    return system.ctl("verify", "trail", str(path), "--archive")


def is_archived(system: System) -> bool:
    return all(system.store.command("XLEN", system.key(queue, "record")) == 0 for queue in SALES)


def turn(desk, queue, chance, n):
    """Some come to any lanes, one moves, one goes; now and then the weights or the capacity are others."""
    come = chance.randrange(1, 25)
    desk.done("POST", f"queues/{queue}/joins", {"visitors": [
        {"visitor": f"v{n}-{i}", "lane": chance.choice(LANES[:chance.randrange(1, 4)])} for i in range(come)]})
    if come > 2:
        desk.call("POST", f"queues/{queue}/visitors/v{n}-{come - 1}/lane", {"lane": chance.choice(LANES)})
        desk.call("DELETE", f"queues/{queue}/visitors/v{n}-{come - 2}")
    if chance.random() < 0.3:
        change = chance.choice([{"lane_weights": chance.choice(WEIGHTS)}, {"lane_weights": None}, {"capacity": chance.randrange(1, 30)}])
        desk.done("PATCH", f"queues/{queue}", change)
    if chance.random() < 0.1:
        desk.done("POST", f"queues/{queue}/pause")
        desk.done("POST", f"queues/{queue}/resume")


@pytest.mark.long(seconds=60)
def test_sales_that_followed_the_weights(start, postgres, tmp_path):
    """However lanes, weights and capacity change, and the archiver, the admitter and Redis are killed."""
    seed = int(os.environ.get("TELLERLINE_SEED", "7"))
    chance = random.Random(seed)
    system = start({queue: SALE | {"lane_weights": chance.choice(WEIGHTS)} for queue in SALES}, archivers=1, prepare=admin_file,
                   settings=PROMPT | {"archive": {"url": postgres.url}}, redis={"appendfsync": "always"})
    desk = Admin(system.of("worker")[0])
    for n in range(12):
        for queue in chance.sample(SALES, 12):
            turn(desk, queue, chance, n)
        for program in (system.of("archiver")[0], system.of("admitter")[0]):
            if chance.random() < 0.3:
                program.kill()
                program.start()
    system.redis.kill()
    system.forget_store()
    system.redis.start()
    wait_until(lambda: desk.call("GET", "queues/sale0").status == 200, PATIENCE, "Redis is back")
    for queue in SALES:
        wait_until(lambda queue=queue: desk.call("PATCH", f"queues/{queue}", {"lane_weights": [2, 1, 1], "capacity": 30}).status == 200,
                   PATIENCE, "it is set")
        turn(desk, queue, chance, "last")
    desk.close()
    wait_until(lambda: all(system.numbers(queue)["waiting"] == 0 for queue in SALES), PATIENCE, "all are admitted")
    wait_until(lambda: is_archived(system), PATIENCE, "all is archived")
    admitted = 0
    for queue in SALES:
        done = verified(system, queue, tmp_path / queue)
        assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"
        admitted += int(re.search(r"(\d+) admitted", done.stdout)[1])
        assert len(set(re.findall(r";weights=([\d,]*);", (tmp_path / queue).read_text()))) > 1
    assert admitted > 1000


@pytest.mark.parametrize("key, field, value", [("config", "lane_weights", "1,9,1"), ("state", "turns", "9,1,1:9:1,9,0")],
                         ids=["weights", "turns"])
def test_weights_that_were_changed_by_hand(start, postgres, tmp_path, key, field, value):
    """Another lane was served than the published rules say."""
    system = start({"sale": SALE | {"capacity": 1, "lane_weights": [9, 1, 1], "claim_ttl": "10m"}}, archivers=1, prepare=admin_file,
                   settings={"archive": {"url": postgres.url}})
    system.sound = False
    desk = Admin(system.of("worker")[0])
    desk.done("POST", "queues/sale/joins", {"visitors": [{"visitor": f"v{i}", "lane": LANES[i % 2]} for i in range(20)]})
    wait_until(lambda: system.active("sale") == 1, PATIENCE, "one is admitted")
    agree(system, postgres)
    assert verified(system, "sale", tmp_path / "trail").returncode == 0
    system.store.command("HSET", system.key("sale", key), field, value)
    for _ in range(4):
        [first] = system.store.command("ZRANGE", system.key("sale", "active"), 0, 0)
        desk.done("DELETE", f"queues/sale/visitors/{first}")
        wait_until(lambda first=first: system.store.command("ZRANGE", system.key("sale", "active"), 0, 0) not in ([], [first]),
                   PATIENCE, "the next one is admitted")
    desk.close()
    agree(system, postgres)
    done = verified(system, "sale", tmp_path / "trail")
    assert done.returncode == 1 and TURN not in done.stdout, done.stdout
    assert re.search(r"admitted: place [01]:\d+, as number 1 of its lane at once, which had 0 of 1 turns", done.stdout), done.stdout
