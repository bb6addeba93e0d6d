# SPDX-License-Identifier: Apache-2.0
"""The archive: PostgreSQL has every place that was given, in the right state, whatever is killed meanwhile."""
from __future__ import annotations

import os
import random
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import wire
from admin import Admin, admin_file
from archived import SUMS, counts
from http_client import Client
from postgres_server import PostgresServer
from tellerline import BIN, CALM, Program, free_port, run
from trails import check_trail
from waiting import PATIENCE, wait_until


def begin(start, postgres, settings, archivers=1, **archive):
    """A system whose queue "sale" is archived."""
    return start({"sale": settings}, archivers=archivers, prepare=admin_file,
                 settings={"archive": {"url": postgres.url} | archive})


def agrees(system, postgres):
    """PostgreSQL has as many places of each kind as Redis counts, and Redis keeps no entry for it any more."""
    totals = {name: number for name, number in system.numbers("sale").items() if name in SUMS}
    return system.store.command("XLEN", system.key("sale", "record")) == 0 and counts(postgres) == totals


def agree(system, postgres, seconds=PATIENCE):
    try:
        wait_until(lambda: agrees(system, postgres), seconds, "the archive agrees with Redis")
    except AssertionError as error:
        raise AssertionError(f"{error}: {counts(postgres)} {system.numbers('sale')}") from error


def agree_open(system, postgres):
    """Of those who wait and are active alone."""
    def do():
        there, totals = counts(postgres), system.numbers("sale")
        return all(there[name] == totals[name] for name in ("waiting", "active"))
    wait_until(do, PATIENCE, "the archive has who waits and is active as Redis has")


def lose_end(system, postgres, history):
    """Redis is killed, and comes back without what it was told after this point of its history. The archive knows it."""
    system.redis.kill()
    system.redis.lose_tail(history)
    system.forget_store()
    system.redis.start()
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_gaps WHERE reason = 'store'") != "0", PATIENCE,
               "the loss is recorded")


def value(client, name):
    """Of a metric."""
    return int(re.search(rf"^{name}{{[^}}]*}} (\d+)$", client.get("/metrics").body.decode(), re.MULTILINE).group(1))


def join_many(system, n, prefix, queue="sale"):
    """n visitors whose ids begin so, in this order."""
    desk = Admin(system.of("worker")[0])
    for first in range(0, n, 500):
        desk.done("POST", f"queues/{queue}/joins", {"visitors": [
            {"visitor": f"{prefix}{i}"} for i in range(first, min(first + 500, n))]})
    desk.close()


def complete_some(visitors):
    """Those whose turn it is."""
    for visitor in visitors:
        if visitor.is_active():
            visitor.complete()


SALE = 50_000 if "TELLERLINE_SOAK" in os.environ else 6_000
PORTIONS = 6
#: The reasons of tl:{q}:ended.
REASONS = ["", "completed", "left", "expired", "unclaimed", "absent", "removed"]


def strike(kind, postgres, archivers):
    """One fault of PostgreSQL."""
    def failures():
        return sum(one.text().count("the archive failed") for one in archivers)

    if kind == "crash":
        postgres.kill()
        postgres.start()
    elif kind == "restart":
        postgres.stop()
        postgres.start()
    else:
        before = failures()
        postgres.fill_disk()
        wait_until(lambda: failures() > before or not postgres.running, PATIENCE, "the disk is full")
        postgres.free_disk()


@pytest.mark.long(seconds=40)
def test_sale_is_archived_whatever_is_killed(start):
    """Everything is there once, and in the right state, while an archiver is killed at random, PostgreSQL crashes and
    restarts, and its disk is full. 50,000 with --soak."""
    chance, faults = random.Random(11), ["crash", "restart", "full", "", "full", "crash"]
    chance.shuffle(faults)
    server = PostgresServer(disk_mb=400)
    with closing(server), ThreadPoolExecutor(1) as crowd:
        server.start()
        done = run(BIN / "tellerline", "db", "migrate", env={"TELLERLINE_ARCHIVE_URL": server.url})
        assert done.returncode == 0, done.stderr
        system = begin(start, server, CALM | {"capacity": SALE // 6, "claim_ttl": "2s"}, archivers=2)
        archivers = system.of("archiver")
        for portion in range(PORTIONS):
            come = [system.join("sale") for _ in range(20)]
            come.pop().leave()
            complete_some(come)
            joins = crowd.submit(join_many, system, SALE // PORTIONS - 20, f"v{portion}-")
            victim = chance.choice(archivers)
            victim.kill()
            if faults[portion]:
                strike(faults[portion], server, archivers)
            victim.start()
            joins.result()
            complete_some(come)
        for archiver in archivers:
            archiver.wait_ready()
        began = time.monotonic()
        agree(system, server, 3 * PATIENCE)
        print(f"the archive agrees {time.monotonic() - began:.1f} s after the last join")
        wait_until(lambda: system.numbers("sale")["waiting"] == 0 and system.numbers("sale")["active"] == 0, 3 * PATIENCE,
                   "the sale ends")
        agree(system, server)
        is_right(system, server)


def is_right(system, postgres):
    """A sale that has ended: each place as Redis knows it, and nobody was admitted before an earlier one."""
    total, ends = PORTIONS * (SALE // PORTIONS), counts(postgres)
    assert ends["completed"] > 0 and ends["left"] >= PORTIONS - 1 and ends["unclaimed"] > SALE // 2
    flat = system.store.command("ZRANGE", system.key("sale", "ended"), 0, -1, "WITHSCORES")
    known = {visitor: (REASONS[int(score) % 8], int(score) // 8) for visitor, score in zip(flat[::2], flat[1::2])}
    rows = postgres.rows("SELECT visitor, status, round(extract(epoch FROM ended_at) * 1000) FROM queue_entries")
    assert {visitor: (status, int(ms)) for visitor, status, ms in rows} == known
    assert len(rows) == len(known) == total
    assert postgres.sql("SELECT count(*) FROM queue_entries WHERE joined_at IS NULL OR admitted_at IS NULL AND status <> 'left'") \
        == "0"
    assert postgres.sql("SELECT count(*) FROM (SELECT admitted_at < max(admitted_at) OVER (ORDER BY seq) AS passes "
                        "FROM queue_entries) AS places WHERE passes") == "0"
    assert postgres.sql("SELECT reason, since > now() - interval '1 hour' FROM queue_gaps") == "opened|t"
    kinds = Counter(leaf.split(" ")[2] for leaf in check_trail(postgres))
    assert kinds["entered"] + kinds["waits"] + kinds["stays"] == total == kinds["ended"]
    assert kinds["admitted"] == int(postgres.sql("SELECT count(admitted_at) FROM queue_entries"))
    assert kinds["begins"] == kinds["all"] == 1


def test_what_is_beyond_the_bound_is_counted(start, postgres):
    """While PostgreSQL is away the record grows to its bound; then the gap is told, and all who are left."""
    system = begin(start, postgres, CALM | {"capacity": 3}, entries=10)
    first = [system.join("sale") for _ in range(4)]
    agree(system, postgres)
    postgres.stop()
    for visitor in first[:2]:
        visitor.complete()
    later = [system.join("sale") for _ in range(12)]
    later[-1].leave()
    client = Client(system.of("archiver")[0].admin_port)
    missing = wait_until(lambda: value(client, "tellerline_archive_missing"), PATIENCE, "some are missing")
    assert client.get("/readyz").status == 503
    client.close()
    postgres.start()
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_gaps WHERE reason = 'backlog'") == "1", PATIENCE,
               "the gap is recorded")
    agree_open(system, postgres)
    assert int(postgres.sql("SELECT missing FROM queue_gaps WHERE reason = 'backlog'")) >= missing > 0
    # The one who joined and left meanwhile is among the missing.
    assert counts(postgres)["left"] == 0


def test_the_bound_in_bytes(start, postgres):
    """The record never holds more bytes than it may, and what is missing is counted until it can be told."""
    system = begin(start, postgres, CALM | {"capacity": 1}, bytes="1MiB")
    system.join("sale")
    agree(system, postgres)
    postgres.stop()
    join_many(system, 24000, "a-visitor-with-a-long-name-" + 20 * "x" + "-")
    record = system.store.command("XRANGE", system.key("sale", "record"), "-", "+")
    held = sum(-(-len(fields[1]) // 64) * 64 for _, fields in record)
    assert 900_000 < held <= 1 << 20
    client = Client(system.of("archiver")[0].admin_port)
    missing = wait_until(lambda: value(client, "tellerline_archive_missing"), PATIENCE, "some are missing")
    join_many(system, 10, "later")
    wait_until(lambda: value(client, "tellerline_archive_missing") > missing, PATIENCE, "more are missing")
    client.close()
    postgres.start()
    agree_open(system, postgres)
    gaps = postgres.rows("SELECT missing FROM queue_gaps WHERE reason = 'backlog'")
    assert len(gaps) == 1 and int(gaps[0][0]) > missing
    # All of them end with the queue, which takes more than one portion.
    desk = Admin(system.of("worker")[0])
    desk.done("DELETE", "queues/sale?confirm=sale")
    desk.close()
    wait_until(lambda: postgres.sql("SELECT status, count(*) >= 24000 FROM queue_entries GROUP BY 1") == "deleted|t", PATIENCE,
               "all have ended")


def test_a_record_that_could_not_be_written(start, postgres):
    """What happened meanwhile is told again when the record can be written again."""
    system = begin(start, postgres, CALM | {"capacity": 1})
    system.join("sale")
    agree(system, postgres)
    record = system.key("sale", "record")
    system.expect("the record|:record is a string")
    system.store.command("DEL", record)
    system.store.command("SET", record, "by hand")
    system.join("sale")
    system.store.command("DEL", record)
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_gaps WHERE reason = 'damaged'") == "1", PATIENCE,
               "the gap is recorded")
    agree_open(system, postgres)


def test_a_gap_outlives_a_restart_of_redis(start, postgres):
    """How much is missing is known, although Redis became another one before it could be told."""
    system = begin(start, postgres, CALM | {"capacity": 1})
    system.join("sale")
    agree(system, postgres)
    archiver = system.of("archiver")[0]
    archiver.stop()
    system.store.command("HSET", system.key("sale", "state"), "standing", "2 1700000000000 57 begin 0", "store", "another")
    system.join("sale")
    archiver.start()
    told = "SELECT reason, missing, extract(epoch FROM since)::bigint FROM queue_gaps WHERE reason <> 'opened'"
    wait_until(lambda: postgres.sql(told) == "backlog|57|1700000000", PATIENCE, "the gap is recorded")
    agree_open(system, postgres)


def test_a_queue_that_was_there_before(start, postgres):
    """An archive that is switched on has all who wait and are active; those who end meanwhile, too."""
    system = begin(start, postgres, CALM | {"capacity": 2}, archivers=0)
    join_many(system, 1300, "v")
    visitor = system.join("sale")
    wait_until(lambda: system.numbers("sale")["active"] == 2, PATIENCE, "two are active")
    archiver = Program("archiver", "archiver-0", system.directory, system.config, free_port())
    system.programs.append(archiver)
    archiver.start()
    agree_open(system, postgres)
    visitor.leave()
    wait_until(lambda: counts(postgres)["left"] == 1, PATIENCE, "an end is archived")
    agree_open(system, postgres)
    created = f"to_timestamp({system.numbers('sale')['generation'] // 1000} / 1000.0)"
    assert postgres.sql(f"SELECT reason, since = {created}, since < until FROM queue_gaps") == "opened|t|t"
    places = system.store.command("ZRANGE", system.key("sale", "waiting"), 0, -1, "WITHSCORES")
    assert dict(postgres.rows("SELECT visitor, lane * 281474976710656 + seq FROM queue_entries WHERE status = 'waiting'")) \
        == dict(zip(places[::2], places[1::2]))


def test_redis_comes_back_without_its_end(start, postgres):
    """What it has lost is known as such: afterwards the archive has who waits and is active as Redis has."""
    system = begin(start, postgres, CALM | {"capacity": 2})
    visitors = [system.join("sale") for _ in range(4)]
    agree(system, postgres)
    history = system.redis.history()
    visitors[0].complete()
    system.join("sale")
    agree(system, postgres)
    lose_end(system, postgres, history)
    agree_open(system, postgres)


def test_forgotten_and_deleted(start, postgres):
    """A visitor who is forgotten is so in PostgreSQL, too; what waits in a deleted queue has ended."""
    system = begin(start, postgres, CALM | {"capacity": 1})
    join_many(system, 3, "person")
    agree(system, postgres)
    desk = Admin(system.of("worker")[0])
    desk.done("DELETE", "queues/sale/visitors/person1")
    system.store.command("CONFIG", "SET", "slowlog-log-slower-than", 0, "slowlog-max-len", 10000)
    desk.done("POST", "queues/sale/visitors/person1/forget")
    wait_until(lambda: postgres.sql("SELECT count(*), count(visitor) FROM queue_entries") == "3|2", PATIENCE, "one is erased")
    agree(system, postgres)
    # The archiver hears of it when the changes name the visitor no longer: it may read them in between.
    steps = [words[5] for *_, words, _, _ in reversed(system.store.command("SLOWLOG", "GET", -1)) if "person1" in words[4:5]]
    assert steps[-2:] == ["sets", "record"] and "look" in steps
    desk.done("DELETE", "queues/sale?confirm=sale")
    wait_until(lambda: postgres.sql("SELECT status, count(*) FROM queue_entries GROUP BY 1 ORDER BY 1")
               == "removed|1\ndeleted|2", PATIENCE, "the others have ended")
    assert postgres.sql("SELECT count(*) FROM queue_generations WHERE deleted_at IS NULL") == "0"
    assert "person1" not in postgres.sql("SELECT * FROM queue_changes")
    desk.close()


def test_pseudonyms_lanes_and_changes(start, postgres):
    """With pseudonyms no id is in PostgreSQL. A move and a change of settings are there."""
    system = begin(start, postgres, CALM | {"capacity": 1}, pseudonyms=True)
    join_many(system, 3, "person")
    desk = Admin(system.of("worker")[0])
    desk.done("POST", "queues/sale/visitors/person2/lane", {"lane": "vip"})
    system.set("sale", "capacity=2")
    agree(system, postgres)
    assert postgres.sql("SELECT lane, count(*) FROM queue_entries GROUP BY 1 ORDER BY 1") == "0|1\n1|2"
    assert "person" not in postgres.sql("SELECT * FROM queue_entries")
    wait_until(lambda: postgres.sql("SELECT what FROM queue_changes ORDER BY entry_ms") == "create\njoin\nmove\nset", PATIENCE,
               "the changes are there")
    assert "person" not in postgres.sql("SELECT * FROM queue_changes")
    assert postgres.sql("SELECT count(*) FROM queue_changes AS c JOIN queue_entries AS e "
                        "ON e.visitor = c.before->>'visitor' AND e.visitor = c.after->>'visitor'") == "1"
    desk.done("DELETE", "queues/sale/visitors/person2")
    desk.done("POST", "queues/sale/visitors/person2/forget")
    desk.close()
    wait_until(lambda: postgres.sql("SELECT count(*), count(visitor) FROM queue_entries") == "3|2", PATIENCE, "one is erased")
    assert postgres.sql("SELECT after->>'visitor' FROM queue_changes WHERE what = 'move'") == "(forgotten)"


def test_changes_that_something_else_wrote(start, postgres):
    """A change without its fields, or with texts that are no UTF-8, does not stop the archive."""
    system = begin(start, postgres, CALM | {"capacity": 1})
    changes = system.key("sale", "changes")
    system.store.command("XADD", changes, "*", "what", "by hand")
    system.store.command("XADD", changes, "*", "at", "soon", "who", b"\xff", "from", "", "what", "bytes", "before", b"{\xff", "after", "1")
    system.join("sale")
    wait_until(lambda: postgres.sql("SELECT what, who, after FROM queue_changes WHERE what <> 'create' ORDER BY entry_ms, entry_nth")
               == "by hand||{}\nbytes||{}", PATIENCE, "they are there")
    agree(system, postgres)


def test_old_entries_go(start, postgres):
    """A generation whose last event is older than archive.kept goes as a whole."""
    system = begin(start, postgres, CALM | {"capacity": 1}, kept="1d")
    system.join("sale").complete()
    agree(system, postgres)
    archiver = system.of("archiver")[0]
    archiver.stop()
    postgres.sql("UPDATE queue_generations SET last_at = now() - interval '2 days'; UPDATE upkeep SET swept_at = '-infinity'")
    archiver.start()
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_entries") == "0", PATIENCE, "the entry is gone")
    assert postgres.sql("SELECT (SELECT count(*) FROM trails) + (SELECT count(*) FROM trail_tiles)") == "0"
    assert postgres.sql("SELECT count(*) FROM pg_class WHERE relname LIKE 'queue\\_entries\\_%' AND relkind = 'r'") == "0"


HISTORY = """redis.call('DEL', KEYS[1])
for i = 0, 599 do
    redis.call('XADD', KEYS[1], tonumber(ARGV[1]) + 60000 * i .. '-0', 'capacity', 300, 'mode', i < 9 and 'paused' or '\\255', 'waiting', i,
        'active', 7, 'joined', 2 * i, 'eta_judged', i, 'eta_late', 'x')
end"""


def test_the_history_stays(start, postgres):
    """Each point of a minute is copied once, whatever else it holds, and stays when Redis has none of them any more."""
    system = begin(start, postgres, CALM | {"capacity": 1})
    key, archiver = system.key("sale", "history:minutes"), system.of("archiver")[0]
    archiver.stop()
    seconds, _ = system.store.command("TIME")
    first = (int(seconds) // 60 - 700) * 60000
    system.store.command("EVAL", HISTORY, 1, key, first)
    postgres.sql("DELETE FROM queue_stats")
    join_many(system, 1, "v")
    archiver.start()
    of_these = f"SELECT count(*) FROM queue_stats WHERE at < to_timestamp({first / 1000} + 600 * 60)"
    wait_until(lambda: postgres.sql(of_these) == "600", PATIENCE, "all points are there")
    assert postgres.rows(f"SELECT mode, waiting, active, capacity, totals->'joined', totals->'eta_judged', totals->'eta_late', "
                         f"totals ? 'waiting' FROM queue_stats WHERE at = to_timestamp({first / 1000} + 60 * 8)") \
        == [("paused", "8", "7", "300", "16", "8", "0", "f")]
    archiver.kill()
    system.store.command("DEL", key)
    system.store.command("XADD", key, f"{first + 60000 * 720}-0", "waiting", 4711)
    archiver.start()
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_stats WHERE waiting = 4711") == "1", PATIENCE, "the next point comes")
    assert postgres.sql(of_these) == "600"
    postgres.sql("UPDATE queue_stats SET at = at - interval '9 days' WHERE waiting BETWEEN 10 AND 19; "
                 "UPDATE upkeep SET swept_at = '-infinity'")
    again = "t"
    while again == "t":
        again = postgres.sql("SELECT again FROM sweep('1 day', 3)")
    assert postgres.sql(of_these) == "590" and postgres.sql("SELECT count(*) FROM queue_entries") == "1"


def test_old_entries_go_in_portions(postgres):
    """A large archive is cleared by many short transactions, and only of what is old."""
    made = "SELECT generation_id FROM open_generation('{}', 1)"
    old, live = (postgres.sql(made.format(name)) for name in ("old", "live"))
    for generation, ages in ((old, 7 * [9]), (live, [9, 9, 9, 0, 9, 9, 0])):
        for seq, days in enumerate(ages, 1):
            postgres.sql(f"INSERT INTO queue_entries (generation_id, seq, lane, status, event, ended_at) VALUES "
                         f"({generation}, {seq}, 0, 'left', 1, now() - interval '{days} days')")
    postgres.sql(f"INSERT INTO queue_entries (generation_id, seq, lane, status, event) VALUES ({live}, 8, 0, 'waiting', 1)")
    postgres.sql(f"UPDATE queue_generations SET last_at = now() - interval '9 days' * (generation_id = {old})::int")
    counts_after, again = [], "t"
    while again == "t":
        again = postgres.sql("SELECT again FROM sweep('1 day', 3)")
        counts_after.append(int(postgres.sql("SELECT count(*) FROM queue_entries")))
    assert counts_after[0] == 8 and counts_after[-1] == 3
    assert all(0 <= before - after <= 3 for before, after in zip(counts_after, counts_after[1:]))
    assert postgres.sql("SELECT string_agg(seq::text, ' ' ORDER BY seq) FROM queue_entries") == "4 7 8"
    assert postgres.sql("SELECT again FROM sweep('1 day', 3)") == "f"


def test_a_long_trail_goes_in_portions(postgres):
    """The tiles of an old generation go before it, a portion in each transaction; those of others stay."""
    old, live = (postgres.sql(f"SELECT generation_id FROM open_generation('{name}', 1)") for name in ("old", "live"))
    for generation in (old, live):
        postgres.sql(f"INSERT INTO trails VALUES ({generation}, 9, 'signed'); INSERT INTO trail_tiles "
                     f"SELECT {generation}, level, 0, n, '' FROM generate_series(-1, 0) AS level, generate_series(0, 3) AS n")
    postgres.sql(f"UPDATE queue_generations SET last_at = now() - interval '9 days' * (generation_id = {old})::int")
    left = "SELECT count(*), (SELECT count(*) FROM queue_generations) FROM trail_tiles"
    for portion, rows in enumerate([("13", "2"), ("10", "2"), ("8", "2"), ("8", "1")]):
        assert postgres.rows("SELECT * FROM sweep('1 day', 30)") == [("1" if portion == 3 else "0", "t")]
        assert postgres.rows(left) == [rows]
    assert postgres.sql("SELECT string_agg(generation_id::text, ' ') FROM trails") == live


def test_tables_of_another_release(start, postgres):
    """The archiver waits for the tables of its release, and says what to do."""
    postgres.sql("DROP SCHEMA tellerline CASCADE")
    system = begin(start, postgres, CALM | {"capacity": 1}, archivers=0)
    archiver = Program("archiver", "archiver-0", system.directory, system.config, free_port())
    system.programs.append(archiver)
    archiver.start()
    wait_until(lambda: "run `tellerline db migrate`" in archiver.text(), PATIENCE, "it says so")
    system.join("sale")
    for words in ("version 1 now, before: 0", "version 1 already"):
        done = system.ctl("db", "migrate")
        assert done.returncode == 0 and words in done.stdout, done.stderr
    archiver.wait_ready()
    agree(system, postgres)


def test_rights_that_come_later(start, postgres):
    """An archiver that may not see the version of the tables goes on as soon as it may."""
    postgres.sql("CREATE ROLE writer LOGIN")
    system = begin(start, postgres, CALM | {"capacity": 1}, archivers=0)
    archiver = Program("archiver", "archiver-0", system.directory, system.config, free_port())
    archiver.env["TELLERLINE_ARCHIVE_URL"] = postgres.url.replace("archive@", "writer@")
    system.programs.append(archiver)
    archiver.start()
    wait_until(lambda: "permission denied" in archiver.text(), PATIENCE, "it says so")
    system.join("sale")
    postgres.sql("GRANT archive TO writer")
    archiver.wait_ready()
    agree(system, postgres)


def test_somebody_reads_for_long(start, postgres):
    """A new queue is archived while a transaction that has read the entries goes on."""
    system = begin(start, postgres, CALM | {"capacity": 1})
    system.join("sale")
    agree(system, postgres)
    with postgres.session("SELECT count(*) FROM queue_entries"):
        made = system.ctl("queue", "create", "other", "capacity=1")
        assert made.returncode == 0, made.stderr
        join_many(system, 1, "v", "other")
        wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_entries") == "2", PATIENCE, "the new queue is archived")


def count(postgres, prefix):
    return postgres.sql(f"SELECT count(*) FROM queue_entries WHERE visitor LIKE '{prefix}%'")


def test_one_queue_is_refused(start, postgres):
    """Somebody has locked the entries of one queue, or the changes of all: everything else is archived meanwhile."""
    queues = {name: CALM | {"capacity": 1} for name in ("a", "b")}
    system = start(queues, archivers=1, prepare=admin_file, settings={"archive": {"url": postgres.url}})
    system.expect("lock timeout")
    for name in queues:
        join_many(system, 5, f"{name}0", name)
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_entries") == "10", PATIENCE, "both are archived")
    part = postgres.sql("SELECT generation_id FROM queue_generations JOIN queues USING (queue_id) WHERE name = 'a'")
    for i, table in enumerate((f"queue_entries_{part}", "queue_changes"), 1):
        with postgres.session(f"LOCK TABLE {table} IN SHARE MODE"):
            for name in queues:
                join_many(system, 5, f"{name}{i}", name)
            wait_until(lambda i=i: count(postgres, f"b{i}") == "5", PATIENCE, "the other queue is archived")
            assert count(postgres, "a1") == ("0" if i == 1 else "5")
        wait_until(lambda: count(postgres, "a1") == "5", PATIENCE, "the queue is archived")
    changes = "SELECT count(*) FROM queue_changes WHERE what = 'join'"
    wait_until(lambda: postgres.sql(changes) == "6", PATIENCE, "the changes are there")


def test_rehearsals_are_left_out(start, postgres):
    """The visitors of a rehearsal are invented: PostgreSQL hears nothing of them."""
    queues = {name: CALM | {"capacity": 1} for name in ("rehearsal-sale-0a1b2c", "sale")}
    system = start(queues, archivers=1, prepare=admin_file, settings={"archive": {"url": postgres.url}})
    for name in queues:
        system.join(name)
    agree(system, postgres)
    assert postgres.sql("SELECT name FROM queues") == "sale"
    assert system.store.command("HGET", system.key("rehearsal-sale-0a1b2c", "state"), "archive") is None


def test_entries_of_another_release_wait(start, postgres):
    """What a newer dispatcher wrote is not dropped by an archiver that cannot read it; other queues go on."""
    queues = {name: CALM | {"capacity": 1} for name in ("other", "sale")}
    system = start(queues, archivers=1, prepare=admin_file, settings={"archive": {"url": postgres.url}})
    system.join("sale")
    agree(system, postgres)
    system.expect("upgrade this program")
    record = system.key("sale", "record")
    newer = system.store.command("XADD", record, "*", "d", wire.pack([2, 1, 1, 1]))
    system.join("sale")
    wait_until(lambda: "upgrade this program" in system.of("archiver")[0].text(), PATIENCE, "it says what to do")
    system.join("other")
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_entries") == "2", PATIENCE, "the other queue goes on")
    assert system.store.command("XRANGE", record, "-", "+", "COUNT", 1)[0][0] == newer
    system.store.command("XDEL", record, newer)
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_entries") == "3", PATIENCE, "the rest is archived")
