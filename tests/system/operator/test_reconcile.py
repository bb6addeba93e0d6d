# SPDX-License-Identifier: Apache-2.0
"""Redis and the archive are compared: what was changed by hand is found on either side, and nothing else."""
from __future__ import annotations

import random

import pytest

from admin import Admin
from http_client import Client
from tellerline import CALM
from test_archive import agree, agree_open, begin, complete_some, join_many, value
from waiting import PATIENCE, wait_until

LANE = 1 << 48
QUEUE = CALM | {"capacity": 4, "session_ttl": "10m", "claim_ttl": "10m", "waiting_ttl": "10m", "lanes": "vip,normal",
                "default_lane": "normal"}
DIFFER = "SELECT source, seq, difference_text(d) FROM queue_differences AS d ORDER BY seq"


def differences(postgres):
    return [(source, int(seq), text) for source, seq, text in postgres.rows(DIFFER)]


def after_a_round(postgres):
    """Waits for one that begins from now on."""
    since = postgres.sql("SELECT clock_timestamp()")
    wait_until(lambda: postgres.sql(f"SELECT count(*) FROM queue_rounds WHERE done_at > '{since}'") == "1", PATIENCE,
               "a round is done")
    return differences(postgres)


class Sale:
    """A queue with four who are active and eight who wait, which is compared all the time."""

    def __init__(self, start, postgres, compared="1s"):
        self.postgres = postgres
        self.system = begin(start, postgres, QUEUE, reconcile=compared)
        self.system.sound = False
        join_many(self.system, 12, "v")
        agree(self.system, postgres)
        if compared != "0ms":
            assert after_a_round(postgres) == []

    def redis(self, name, key, *words):
        return self.system.store.command(name, self.system.key("sale", key), *words)

    def place(self, visitor):
        return int(self.redis("ZSCORE", "waiting", visitor))

    def session(self, visitor):
        return self.redis("HGET", "sessions", visitor)

    def add_to_size(self, name, n):
        """As who knows what the state says."""
        self.redis("HINCRBY", "state", name, n)


@pytest.fixture(name="sale")
def a_sale(start, postgres):
    return Sale(start, postgres)


def swap_waiting(sale):
    one, other = sale.place("v6"), sale.place("v9")
    sale.redis("ZADD", "waiting", one, "v9", other, "v6")
    return ("waiting", one % LANE, ['in Redis visitor "v9" waiting in lane 1, in the archive visitor "v6" waiting in lane 1',
                                    f"swapped with number {other % LANE}"]), \
        ("waiting", other % LANE, ['in Redis visitor "v6" waiting', 'in the archive visitor "v9" waiting', "swapped"])


def alter_waiting(sale):
    """To the lane before all others."""
    place = sale.place("v9")
    sale.redis("ZADD", "waiting", place % LANE, "v9")
    return ("waiting", place % LANE, ['"v9" waiting in lane 0, in the archive visitor "v9" waiting in lane 1']),


def alter_seq(sale):
    """Behind all others, or at a number that nobody had."""
    place = sale.place("v6")
    sale.redis("ZADD", "waiting", place + 1000, "v6")
    return ("waiting", place % LANE, ['in Redis nobody, in the archive visitor "v6" waiting']), \
        ("waiting", place % LANE + 1000, ['in Redis visitor "v6" waiting in lane 1, in the archive nobody'])


def remove_waiting(sale):
    place = sale.place("v7")
    sale.redis("ZREM", "waiting", "v7")
    sale.add_to_size("waiting", -1)
    return ("waiting", place % LANE, ['in Redis nobody, in the archive visitor "v7" waiting in lane 1']),


def insert_waiting(sale):
    place = sale.place("v11") + 5
    sale.redis("ZADD", "waiting", place, "friend")
    sale.add_to_size("waiting", 1)
    return ("waiting", place % LANE, ['in Redis visitor "friend" waiting in lane 1, in the archive nobody']),


def swap_sessions(sale):
    one, other = sale.session("v1"), sale.session("v2")
    sale.redis("HSET", "sessions", "v1", other, "v2", one)
    places = [int(text.split(":")[0]) % LANE for text in (one, other)]
    return ("active", places[0], ['in Redis visitor "v2" active', 'in the archive visitor "v1" active', f"swapped with number {places[1]}"]), \
        ("active", places[1], ['in Redis visitor "v1" active', "swapped"])


def alter_session(sale):
    """It lasts longer."""
    place = int(sale.session("v1").split(":")[0])
    sale.redis("ZINCRBY", "active", 3600000, "v1")
    return ("active", place % LANE, ['in Redis visitor "v1" active in lane 1 until', 'in the archive visitor "v1" active in lane 1 until']),


def remove_session(sale):
    place = int(sale.session("v2").split(":")[0])
    sale.redis("ZREM", "active", "v2")
    sale.redis("HDEL", "sessions", "v2")
    sale.redis("HSET", "state", "active", 3, "capacity_now", 3)
    sale.system.set("sale", "capacity=3")
    return ("active", place % LANE, ['in Redis nobody, in the archive visitor "v2" active in lane 1']),


def insert_session(sale):
    place, until = sale.place("v11") + 7, sale.redis("ZSCORE", "active", "v0")
    sale.redis("ZADD", "active", until, "friend")
    sale.redis("HSET", "sessions", "friend", f"{place}:1764000000000:1")
    sale.add_to_size("active", 1)
    return ("active", place % LANE, ['in Redis visitor "friend" active in lane 1', "in the archive nobody"]),


def swap_entries(sale):
    one, other = sale.place("v6") % LANE, sale.place("v9") % LANE
    sale.postgres.sql(f"UPDATE queue_entries SET visitor = CASE seq WHEN {one} THEN 'v9' ELSE 'v6' END WHERE seq IN ({one}, {other})")
    return ("waiting", one, ['in Redis visitor "v6" waiting', 'in the archive visitor "v9" waiting', f"swapped with number {other}"]), \
        ("waiting", other, ['in the archive visitor "v6" waiting', "swapped"])


def alter_entry(sale):
    seq = sale.place("v8") % LANE
    sale.postgres.sql(f"UPDATE queue_entries SET status = 'left', ended_at = now() WHERE seq = {seq}")
    return ("ended", -2, ["in Redis 0 places are left since ", "in the archive 1"]), \
        ("waiting", seq, ['in Redis visitor "v8" waiting in lane 1, in the archive visitor "v8" left in lane 1'])


def remove_entries(sale):
    """One who waits, and one who is active."""
    waits, stays = sale.place("v8") % LANE, int(sale.session("v3").split(":")[0]) % LANE
    sale.postgres.sql(f"DELETE FROM queue_entries WHERE seq IN ({waits}, {stays})")
    return ("active", stays, ['in Redis visitor "v3" active', "in the archive nobody"]), \
        ("waiting", waits, ['in Redis visitor "v8" waiting in lane 1, in the archive nobody'])


def insert_entries(sale):
    last = sale.place("v11") % LANE
    for seq, status in ((last + 3, "waiting"), (last + 4, "active")):
        sale.postgres.sql(f"INSERT INTO queue_entries (generation_id, seq, lane, status, event, visitor) "
                          f"SELECT generation_id, {seq}, 1, '{status}', 1, 'friend' FROM queue_generations")
    return ("waiting", last + 3, ['in Redis nobody, in the archive visitor "friend" waiting in lane 1']), \
        ("active", last + 4, ['in Redis nobody, in the archive visitor "friend" active in lane 1'])


def insert_later_entries(sale):
    """With events that are still to come."""
    expected = insert_entries(sale)
    sale.postgres.sql("UPDATE queue_entries SET event = 1::bigint << 60 WHERE visitor = 'friend'")
    return expected


BY_HAND = [swap_waiting, alter_waiting, alter_seq, remove_waiting, insert_waiting, swap_sessions, alter_session, remove_session,
           insert_session, swap_entries, alter_entry, remove_entries, insert_entries, insert_later_entries]


@pytest.mark.parametrize("change", BY_HAND)
def test_a_change_by_hand_is_found(sale, change):
    """The finding names the place, and what each side has there."""
    expected = change(sale)
    found = wait_until(lambda: (found := after_a_round(sale.postgres)) and len(found) == len(expected) and found, PATIENCE,
                       "it is found")
    for (source, seq, text), (of, number, parts) in zip(found, expected):
        assert (source, seq) == (of, number) and all(part in text for part in parts), text
    client = Client(sale.system.of("archiver")[0].admin_port)
    wait_until(lambda: value(client, "tellerline_archive_differences") == len(found), PATIENCE, "the metric counts them")
    client.close()
    assert found[-1][2] in sale.system.of("archiver")[0].text().replace('\\"', '"')
    assert after_a_round(sale.postgres) == found


def test_places_that_ended_are_counted(sale):
    """One that is removed or altered in PostgreSQL, by its kind; and a total of Redis."""
    system, postgres = sale.system, sale.postgres
    visitors = [system.join("sale") for _ in range(5)]
    visitors.pop().leave()
    system.set("sale", "capacity=30")
    for visitor in visitors:
        wait_until(visitor.is_active, PATIENCE, "the turn of each comes")
        visitor.complete()
    desk = Admin(system.of("worker")[0])
    desk.done("DELETE", "queues/sale/visitors/v2")
    desk.close()
    agree(system, postgres)
    assert after_a_round(postgres) == []
    postgres.sql("CREATE TABLE kept AS SELECT * FROM queue_entries WHERE status = 'completed' ORDER BY seq LIMIT 2")
    postgres.sql("DELETE FROM queue_entries WHERE seq = (SELECT min(seq) FROM kept)")
    [(source, kind, text)] = after_a_round(postgres)
    assert (source, kind) == ("ended", -1) and "in Redis 4 places are completed since " in text and text.endswith("in the archive 3"), text
    postgres.sql("UPDATE queue_entries SET status = 'left' WHERE seq = (SELECT max(seq) FROM kept)")
    assert [text.partition(" since ")[0] + text[text.rindex(","):] for _, _, text in after_a_round(postgres)] == [
        "in Redis 1 places are left, in the archive 2", "in Redis 4 places are completed, in the archive 2"]
    assert text in system.of("archiver")[0].text()
    postgres.sql("DELETE FROM queue_entries WHERE seq IN (SELECT seq FROM kept); INSERT INTO queue_entries SELECT * FROM kept")
    assert after_a_round(postgres) == []
    sale.add_to_size("removed", -1)
    assert [(source, kind) for source, kind, _ in after_a_round(postgres)] == [("ended", -6), ("ended", -3)]


def test_ends_that_a_gap_hides(start, postgres):
    """What was found before it stays found; what ended since is compared."""
    sale = Sale(start, postgres)
    desk = Admin(sale.system.of("worker")[0])
    desk.done("DELETE", "queues/sale/visitors/v2")
    agree_open(sale.system, postgres)
    postgres.sql("DELETE FROM queue_entries WHERE visitor = 'v2'")
    found = after_a_round(postgres)
    assert [kind for _, kind, _ in found] == [-6]
    sale.system.store.command("HSET", sale.system.key("sale", "state"), "standing", "4 1 0 begin 0")
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_gaps") == "2", PATIENCE, "all are told again")
    desk.done("DELETE", "queues/sale/visitors/v5")
    desk.close()
    agree_open(sale.system, postgres)
    assert after_a_round(postgres) == found
    postgres.sql("DELETE FROM queue_differences; DELETE FROM queue_entries WHERE visitor = 'v5'")
    assert ["in Redis 1 places are removed" in text for _, _, text in after_a_round(postgres)] == [True]


def test_a_draw_before_the_comparison(start, postgres):
    """What Redis had before it is at another number in PostgreSQL, which is ahead: that is no difference."""
    sale = Sale(start, postgres, compared="0ms")
    seq = sale.place("v8") % LANE
    event = int(postgres.sql("SELECT event FROM queue_generations"))
    compare = f"SELECT count(*) FROM compare(1, 'waiting', {event}, {event}, {seq - 1}, {seq}, '{{{seq}}}', '{{1}}', '{{v8}}', '{{NULL}}')"
    postgres.sql(f"UPDATE queue_generations SET event = {event + 5}")
    postgres.sql(f"UPDATE queue_entries SET joined_seq = seq, seq = seq + 1000, event = {event + 5} WHERE seq = {seq}")
    assert postgres.sql(compare) == "0"
    postgres.sql(f"UPDATE queue_entries SET event = {event} WHERE joined_seq = {seq}")
    assert postgres.sql(compare) == "1"


def test_a_generation_that_postgres_lost(start, postgres):
    """A round that had begun ends, and another one begins."""
    sale = Sale(start, postgres, compared="8s")
    wait_until(lambda: postgres.sql("SELECT began_at > done_at FROM queue_rounds") == "t", PATIENCE, "a round has begun")
    postgres.sql("DELETE FROM queue_generations")
    sale.system.join("sale")
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_rounds WHERE done_at > began_at - interval '1 minute'") == "1",
               PATIENCE, "a round is done")


def test_what_was_told_before_it_could_be_compared(start, postgres):
    """A change by hand that Redis then tells the archive, which agrees with it afterwards, is kept as a difference."""
    sale = Sale(start, postgres, compared="0ms")
    swapped, removed, moved, inserted = sale.place("v4"), sale.place("v7"), sale.place("v10"), sale.place("v11") + 5
    sale.redis("ZADD", "waiting", swapped, "v5", sale.place("v5"), "v4")
    sale.redis("ZADD", "waiting", moved % LANE, "v10")
    sale.redis("ZREM", "waiting", "v7", "v8")  # the sizes do not fit: all are told again
    sale.redis("ZADD", "waiting", inserted, "friend")
    sale.system.set("sale", "capacity=6")
    found = wait_until(lambda: (found := differences(postgres)) and len(found) == 6 and found, PATIENCE, "it is told")
    agree_open(sale.system, postgres)
    assert [source for source, _, _ in found] == 6 * ["told"]
    texts = {seq: text for _, seq, text in found}
    assert 'in Redis visitor "v5" active in lane 1, as was told, in the archive visitor "v4" waiting in lane 1' in texts[swapped % LANE]
    assert 'in Redis visitor "v10" active in lane 0, as was told, in the archive visitor "v10" waiting in lane 1' in texts[moved % LANE]
    assert 'in Redis nobody, in the archive visitor "v7" waiting or active in lane 1' in texts[removed % LANE]
    assert 'in Redis visitor "friend" waiting in lane 1, as was told, in the archive nobody' in texts[inserted % LANE]
    assert texts[inserted % LANE] in sale.system.of("archiver")[0].text().replace('\\"', '"')


@pytest.mark.long(seconds=40)
@pytest.mark.parametrize("pseudonyms", [False, True])
def test_nothing_else_is_found(start, postgres, pseudonyms):
    """While visitors come, move, hand over and go, and archivers are killed; then what has been swapped is found at once."""
    chance = random.Random(7)
    system = begin(start, postgres, QUEUE | {"capacity": 30, "claim_ttl": "2s", "session_ttl": "3s"}, archivers=2, reconcile="1s",
                   pseudonyms=pseudonyms)
    desk, come = Admin(system.of("worker")[0]), []
    for turn in range(30):
        join_many(system, chance.randrange(60), f"v{turn}-")
        come += [system.join("sale") for _ in range(3)]
        complete_some(come[:chance.randrange(3)])
        come = come[-20:]
        chance.choice(come).leave()
        desk.call("POST", f"queues/sale/visitors/v{turn}-1/lane", {"lane": "vip"})
        desk.call("DELETE", f"queues/sale/visitors/v{turn}-2")
        if turn % 7 == 3:
            chance.choice(system.of("archiver")).kill()
        for archiver in system.of("archiver"):
            if not archiver.running:
                archiver.start()
        assert differences(postgres) == []
    desk.close()
    assert after_a_round(postgres) == []
    system.sound = False
    system.store.command("ZADD", system.key("sale", "waiting"), *last_two_swapped(system))
    assert len(after_a_round(postgres)) == 2


def last_two_swapped(system):
    one, first, other, second = system.store.command("ZRANGE", system.key("sale", "waiting"), -2, -1, "WITHSCORES")
    return second, one, first, other


def test_the_audit_tells_what_differs(start, postgres):
    """It asks for a round, though none is due; and what has been found is told by each audit until it is corrected."""
    sale = Sale(start, postgres, compared="0ms")
    ctl = sale.system.ctl
    done = ctl("audit", "--archive")
    assert done.returncode == 0, done.stdout + done.stderr
    one, other = sale.place("v6"), sale.place("v9")
    sale.redis("ZADD", "waiting", one, "v9", other, "v6")
    assert ctl("audit").returncode == 0
    for words in (["--archive"], []):
        done = ctl("audit", *words)
        assert done.returncode == 1, done.stderr
        assert f'sale: violates invariant 14: number {one % LANE}: in Redis visitor "v9" waiting' in done.stdout
        assert f"swapped with number {one % LANE}" in done.stdout
    sale.redis("ZADD", "waiting", one, "v6", other, "v9")
    done = ctl("audit", "--archive", "--output", "json")
    assert done.returncode == 0 and '"n_violations": 0' in done.stdout, done.stdout + done.stderr
    sale.postgres.stop()
    done = ctl("audit")
    assert done.returncode == 0 and "not compared with the archive" in done.stderr
    assert ctl("audit", "--archive").returncode not in (0, 1)


def test_a_visitor_who_is_forgotten(start, postgres):
    """The id is erased in what was found, too."""
    sale = Sale(start, postgres)
    place = sale.place("v7")
    sale.redis("ZADD", "waiting", place % LANE, "v7")
    assert '"v7"' in wait_until(lambda: differences(postgres), PATIENCE, "it is found")[0][2]
    desk = Admin(sale.system.of("worker")[0])
    desk.done("DELETE", "queues/sale/visitors/v7")
    desk.done("POST", "queues/sale/visitors/v7/forget")
    desk.close()
    wait_until(lambda: "v7" not in postgres.sql("SELECT * FROM queue_differences"), PATIENCE, "it is erased")
