# SPDX-License-Identifier: Apache-2.0
"""The cost of an idle Tellerline."""
from __future__ import annotations

import time

import pytest

from many_queues import QUEUES, calls, queues, sent_for_a_visit, wait_served
from tellerline import PATIENCE
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=20)

CHECKS_PER_UPDATE = 32  # worker/feed/followed_queues.c
SPAN_S = 6.0            # long enough for one periodic run of the functions admit and expire


def test_idle_queues_cost_little_and_each_is_looked_at(start, figure):
    """The load of 100 idle queues on the store. What is changed behind our back in one of them is noticed."""
    system = start(queues(QUEUES))
    wait_served(system.store, QUEUES)
    wait_until(lambda: calls([system.redis])["xinfo|groups"] >= QUEUES, PATIENCE,
               "every queue was once asked how far it is behind")
    before, began = calls([system.redis]), time.monotonic()
    wait_until(lambda: time.monotonic() - began >= SPAN_S, PATIENCE, "the span that is measured is over")
    seconds = time.monotonic() - began
    more = calls([system.redis]) - before
    figure(f"{QUEUES} idle queues, commands in {seconds:.1f} s: "
           + ", ".join(f"{name} {count}" for name, count in sorted(more.items())))
    # Leases: three roles, twice a second, one plain command each.
    assert 0 < more["getex"] <= 3 * QUEUES * (2 * seconds + 1), more
    # The functions admit and expire run every five seconds. No other one runs.
    assert more.get("fcall", 0) + more.get("fcall_ro", 0) <= 2 * QUEUES * (seconds / 5 + 1), more
    # One command reads the streams of all queues.
    for name, a_second in {"xread": 10, "xreadgroup": 4, "smembers": 8, "hgetall": CHECKS_PER_UPDATE}.items():
        assert more.get(name, 0) <= a_second * (seconds + 1), (name, more)
    for seldom in ("script|load", "xgroup|create", "sadd", "set", "xinfo|groups", "xadd"):
        assert more.get(seldom, 0) == 0, (seldom, more)

    # With more queues than one update checks, each queue is still checked in turn.
    for i in (0, QUEUES // 2, QUEUES - 1):
        system.store.command("HSET", system.key(f"q{i}", "config"), "capacity", "7")
    client = system.client()
    for i in (0, QUEUES // 2, QUEUES - 1):
        wait_until(lambda: client.get(f"/v1/queues/q{i}").json["capacity"] == 7, PATIENCE,
                   f"the new capacity of q{i} is shown")


def test_a_lone_visit_costs_the_store_no_more_beside_many_queues(start, figure):
    sent = {}
    for n in (1, QUEUES):
        system = start(queues(n))
        wait_served(system.store, n)
        sent[n] = sent_for_a_visit(system.store, system.client())
    figure(f"bytes sent to the store for a visit: {sent}")
    assert 0 < sent[QUEUES] <= 2 * sent[1], sent


def test_consumer_group_and_list_are_healed(share):
    """Keys deleted by hand are created again, and joins continue."""
    system = share()
    bank = system.queue()
    first = system.join(bank)
    system.store.command("XGROUP", "DESTROY", system.key(bank, "ingest"), "dispatchers")
    system.expect("NOGROUP|nogroup|consumer group .* was missing")
    wait_until(lambda: system.visitor(bank).client.post(f"/v1/queues/{bank}/join").status == 200, PATIENCE,
               "joins are numbered again")
    system.store.command("SREM", "tl:queues", bank)
    wait_until(lambda: system.store.command("SISMEMBER", "tl:queues", bank) == 1, PATIENCE,
               "the queue is listed again")
    wait_until(first.is_active, PATIENCE, "the first is active")


def test_consumer_group_of_one_queue_stops_no_other(share):
    """Also when that queue is in the store but no longer in the configuration."""
    system = share()
    bank = system.queue()
    for name in ("state", "config"):
        system.store.command("COPY", system.key(bank, name), system.key("old", name))
    ingest = system.key("old", "ingest")
    system.store.command("XGROUP", "CREATE", ingest, "dispatchers", "0", "MKSTREAM")
    system.store.command("SADD", "tl:queues", "old")
    wait_until(lambda: system.store.command("EXISTS", system.key("old", "dispatcher")) == 1, PATIENCE,
               "the dispatcher serves the queue")
    system.store.command("XGROUP", "DESTROY", ingest, "dispatchers")
    system.expect("NOGROUP|nogroup|consumer group .* was missing")
    wait_until(lambda: system.store.command("XINFO", "GROUPS", ingest), PATIENCE, "it has its group again")
    wait_until(lambda: system.visitor(bank).client.post(f"/v1/queues/{bank}/join").status == 200, PATIENCE,
               "joins of the other queue are numbered")
