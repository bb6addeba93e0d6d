# SPDX-License-Identifier: Apache-2.0
"""A visitor is forgotten everywhere; what names people is not kept longer than the settings say."""
from __future__ import annotations

import json

from webhook_stand_in import Receiver
from tellerline import CALM, PATIENCE
from test_webhooks import journal_length, watched
from test_users import denied_but_creating, guarded
from waiting import wait_until


def keys_with(system, text: str) -> list[str]:
    """All keys that hold the text, in a name or a value."""
    found = []
    for key in system.store.command("KEYS", "*"):
        dump = {"string": ("GET", key), "zset": ("ZRANGE", key, 0, -1), "hash": ("HGETALL", key),
                "set": ("SMEMBERS", key), "stream": ("XRANGE", key, "-", "+")}[system.store.command("TYPE", key)]
        if text in key or text in repr(system.store.command(*dump)):
            found.append(key)
    return sorted(found)


def test_a_visitor_is_forgotten_everywhere_and_the_others_are_not(start, tmp_path):
    receiver = Receiver(tmp_path)
    receiver.mood = "error"  # so that the journal keeps what it was told
    with receiver.serving():
        system = start({"shop": {"capacity": 50} | CALM}, notifiers=1, prepare=guarded,
                       settings={"webhooks": [receiver.webhook("site", ["admitted"])]})
        watched(system)
        system.serves("shop")
        for _ in range(60):
            system.join("shop")
        wait_until(lambda: system.active("shop") == 50, PATIENCE, "they are admitted")
        active = system.store.command("ZRANGE", system.key("shop", "active"), 0, -1)
        waiting = system.store.command("ZRANGE", system.key("shop", "waiting"), 0, -1)
        plain = [visitor for visitor in active if visitor[0] != "-"]  # an option would begin so
        gone, other = plain[7], plain[8]
        left = next(visitor for visitor in waiting[3:] if visitor[0] != "-")
        changes, spent = system.key("shop", "changes"), system.key("shop", "spent:") + "invite-1"
        system.store.command("XADD", changes, "*", "what", "remove", "before", json.dumps({"visitor": gone}), "after", "{}")
        system.store.command("XADD", changes, "*", "what", "remove", "before", json.dumps({"visitor": other}), "after", "{}")
        system.store.command("SET", spent, gone, "EX", "1000")
        before = journal_length(system)
        for visitor in (gone, left):
            done = system.ctl("visitor", "forget", "shop", visitor, "--yes")
            assert done.returncode == 0 and "forgotten" in done.stdout, done.stdout + done.stderr
        ingest = system.key("shop", "ingest")  # applied batches, trimmed with the next ones
        assert set(keys_with(system, gone)) <= {ingest} and set(keys_with(system, left)) <= {ingest}
        assert system.store.command("GET", spent) == "" and system.store.command("TTL", spent) > 900
        assert {system.key("shop", "journal"), changes} <= set(keys_with(system, other))
        wait_until(lambda: journal_length(system) == before + 1, PATIENCE, "the free slot went to another one")
        assert system.store.command("PTTL", system.key("shop", "journal")) > 0
        assert system.ctl("visitor", "forget", "shop", gone, "--yes").returncode == 1  # nothing is left
        recorded = [entry[1][entry[1].index("what") + 1] for entry in system.store.command("XRANGE", changes, "-", "+")]
        assert recorded.count("forget") == 2, recorded
        receiver.mood = "well"
        wait_until(lambda: len(receiver.admitted()) >= 50, PATIENCE, "the others are told", every=0.1)
        told = receiver.admitted()
        assert gone not in told and set(active) - {gone} <= set(told) and not receiver.events("lost")
        assert not denied_but_creating(system)


def test_old_records_are_dropped(start):
    """Signs and changes older than their settings; the expirer looks at its start."""
    day = 86400000
    system = start({"shop": {}}, prepare=guarded)
    program = system.of("expirer")[0]
    program.stop()
    now = int(system.store.command("TIME")[0]) * 1000
    streams = {system.key("shop", "signs"): 7, system.key("shop", "changes"): 365, "tl:changes{tl:queues}": 365}
    for stream, days in streams.items():
        system.store.command("DEL", stream)
        for age in (days + 1, days - 1):
            system.store.command("XADD", stream, f"{now - age * day}-0", "d", "x")
    program.start()
    for stream, days in streams.items():
        wait_until(lambda stream=stream: system.store.command("XLEN", stream) == 1, PATIENCE, f"{stream} is pruned")
    assert not denied_but_creating(system)
