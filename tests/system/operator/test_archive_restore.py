# SPDX-License-Identifier: Apache-2.0
"""The store loses a queue, and the archive brings it back: the same order, sessions and totals."""
from __future__ import annotations

import json

import pytest

from admin import Admin, admin_file
from faults import live_through
from tellerline import CALM
from test_faults_clock import HOUR, Clock
from test_archive import agree, join_many, value
from test_users import denials, guarded
from test_store_trouble import PROMPT, STORE_TROUBLE
from test_trail import export, verify_rows
from trails import check_trail
from http_client import Client
from waiting import PATIENCE, wait_until

TOTALS = ("joined", "waiting", "active", "completed", "left", "expired", "unclaimed", "absent", "removed")
CAPACITY = 4
QUEUE = CALM | {"capacity": CAPACITY, "session_ttl": "10m", "claim_ttl": "10m", "waiting_ttl": "10m", "lanes": "vip,normal",
                "default_lane": "normal"}


def prepared(system):
    """Each program has a user of its own in Redis."""
    admin_file(system)
    guarded(system)


def begin(start, postgres, settings, archivers=1, prepare=prepared, restore="auto"):
    system = start({"sale": QUEUE | settings}, archivers=archivers, prepare=prepare,
                   settings=PROMPT | {"archive": {"url": postgres.url, "restore": restore}})
    system.expect(STORE_TROUBLE)
    system.expect("has lost the queue")
    return system


def field(system, name, queue="sale"):
    return system.store.command("HGET", system.key(queue, "state"), name) or ""


def picture(system, queue="sale"):
    """Who stands where, and until when each session lasts."""
    waiting = system.store.command("ZRANGE", system.key(queue, "waiting"), 0, -1, "WITHSCORES")
    active = system.store.command("ZRANGE", system.key(queue, "active"), 0, -1, "WITHSCORES")
    return waiting, sorted(zip(active[::2], active[1::2]))


def totals(system):
    numbers = system.numbers("sale")
    return {name: numbers[name] for name in TOTALS}


def hold_a_sale(system, crowd=700):
    """Visitors of both lanes wait, are active and have ended. Returns those with a ticket who wait, and who are active."""
    wait_until(lambda: field(system, "archive"), PATIENCE, "the queue is archived")
    come = [system.join("sale") for _ in range(8)]
    wait_until(lambda: all(visitor.is_active() for visitor in come[:CAPACITY]), PATIENCE, "the first are called")
    come[0].complete()
    come[6].leave()
    wait_until(come[4].is_active, PATIENCE, "the next is called")
    join_many(system, crowd, "v")
    desk = Admin(system.of("worker")[0])
    desk.done("POST", "queues/sale/visitors/v300/lane", {"lane": "vip"})
    desk.done("DELETE", "queues/sale/visitors/v301")
    desk.close()
    return [come[5], come[7]], come[1:5]


def lose(system):
    before = field(system, "generation")
    system.store.command("FLUSHALL")
    wait_until(lambda: field(system, "generation") not in ("", before), PATIENCE, "the queue is created again")


def lose_with_memory(system):
    """The same while no program runs that remembers it. Archivers start first."""
    for program in system.programs:
        program.stop()
    system.store.command("FLUSHALL")
    archivers = system.of("archiver")
    for program in archivers + [program for program in system.programs if program not in archivers]:
        program.start()


def is_restored(system, queue="sale"):
    return field(system, "restore", queue).startswith("done")


def test_the_line_comes_back_by_itself(start, postgres, tmp_path):
    """Also those who do not return themselves: each stands where they stood, sessions last as long, totals are the same."""
    system = begin(start, postgres, {})
    waiting, active = hold_a_sale(system)
    agree(system, postgres)
    before, counted = picture(system), totals(system)
    lose(system)
    newcomer = system.join("sale")
    wait_until(lambda: is_restored(system), PATIENCE, "the archive has brought them back")
    assert field(system, "recover_until") != "0" or newcomer.status()["status"] == "waiting"
    line, sessions = picture(system)
    assert (line[:-2], sessions) == before
    assert line[-2] == newcomer.view["visitor"]
    assert totals(system) == counted | {"joined": counted["joined"] + 1, "waiting": counted["waiting"] + 1}
    assert field(system, "restore").split(":")[2] == field(system, "restored")
    for visitor in active:
        assert visitor.status()["status"] == "active"
    wait_until(lambda: field(system, "recover_until") == "0", PATIENCE, "the recovery ends")
    client = Client(system.of("archiver")[0].admin_port)
    assert value(client, "tellerline_archive_restored_total") > 600
    client.close()
    # Admission goes on in the old order: the visitor who was moved is first.
    for visitor in active[:3]:
        visitor.complete()
    wait_until(lambda: all(visitor.is_active() for visitor in waiting), PATIENCE, "the next in the old order are called")
    assert field(system, "active") == str(CAPACITY)
    assert "v300" in dict(picture(system)[1])
    # It leaves it to others to create a queue.
    assert not [one for one in denials(system) if "archiver" in one and "xgroup" not in one and "function|load" not in one]
    statuses = "SELECT status, count(*) FROM queue_entries WHERE generation_id = 2 GROUP BY 1 ORDER BY 1"
    wait_until(lambda: postgres.sql(statuses).startswith(f"waiting|{field(system, 'waiting')}\nactive|{CAPACITY}\n"), PATIENCE,
               "the archive knows of the new generation")
    assert postgres.sql("SELECT generation_id, until - since < interval '1 minute' FROM queue_gaps WHERE reason = 'lost'") == "2|t"
    # Both generations are one sale, and who came back is one visitor.
    said = json.loads(system.ctl("report", "sale", "--format", "json").stdout)
    assert said["totals"]["arrived"] == counted["joined"] + 1, said["totals"]
    assert (said["totals"]["unknown"], said["totals"]["waiting"]) == (0, system.numbers("sale")["waiting"]), said["totals"]
    assert [(lane["lane"], lane["arrived"]) for lane in said["lanes"]] == [("vip", 1), ("normal", counted["joined"])]
    assert [gap["reason"] for gap in said["gaps"]] == ["lost"]
    # The trails of both generations are true.
    for generation_id, generation in postgres.rows("SELECT generation_id, generation FROM queue_generations ORDER BY 1"):
        check_trail(postgres, generation_id)
        done = verify_rows(system, export(system, tmp_path / generation, "--generation", generation))
        assert done.returncode == 0 and f"/{generation}: " in done.stdout, done.stdout + done.stderr


def test_nobody_is_left_who_remembers(start, postgres):
    """All programs were restarted meanwhile, and an archiver is killed while it brings back: another one goes on."""
    system = begin(start, postgres, {"recovery_window": "5m"}, archivers=2)
    waiting, active = hold_a_sale(system, 2500)
    agree(system, postgres)
    before, counted = picture(system), totals(system)
    lose_with_memory(system)
    wait_until(lambda: field(system, "restore").startswith("running"), PATIENCE, "they begin to come back")
    archiver = system.of("archiver")[0]
    archiver.kill()
    wait_until(lambda: is_restored(system), PATIENCE, "the archive has brought them back")
    archiver.start()
    for program in system.programs:
        program.wait_ready()
    assert picture(system) == before
    assert totals(system) == counted
    left = waiting + active
    for visitor in left:
        visitor.client.close()  # of the worker before
    assert [visitor.status()["status"] for visitor in left] == ["waiting"] * len(waiting) + ["active"] * len(active)
    assert picture(system) == before
    done = system.ctl("queue", "recover", "sale", "--now")
    assert done.returncode == 0, done.stderr


def ask(system, visitor, what, ticket):
    """As another device of the visitor: no connection of before."""
    client = system.client()
    try:
        return client.get(f"{visitor.path}/{what}", ticket=ticket)
    finally:
        client.close()


def test_who_asks_before_the_archive_loses_nothing(start, postgres):
    """Nobody remembers the queue, and visitors ask with tickets and passes of before: of a session, of a place in another
    lane, of what has ended."""
    system = begin(start, postgres, {"recovery_window": "5m"})
    wait_until(lambda: field(system, "archive"), PATIENCE, "the queue is archived")
    come = [system.join("sale") for _ in range(CAPACITY + 5)]
    tickets = [visitor.ticket for visitor in come]
    wait_until(lambda: all(visitor.is_active() for visitor in come[:CAPACITY]), PATIENCE, "the first are called")
    passes = [visitor.status()["pass"] for visitor in come[:2]]
    for visitor in come[:2]:
        visitor.complete()
    wait_until(lambda: all(visitor.is_active() for visitor in come[2:CAPACITY + 2]), PATIENCE, "the next are called")
    join_many(system, 50, "v")
    desk = Admin(system.of("worker")[0])
    desk.done("POST", f"queues/sale/visitors/{come[-1].view['visitor']}/lane", {"lane": "vip"})
    desk.close()
    agree(system, postgres)
    before, counted = picture(system), totals(system)
    for program in system.programs:
        program.stop()
    system.store.command("FLUSHALL")
    others = [program for program in system.programs if program not in system.of("archiver")]
    for program in others:
        program.start()
    for program in others:
        program.wait_ready()

    def comes(at):
        answer = ask(system, come[at], "status", tickets[at])
        return answer.status == 200 and answer.json["status"] == "waiting"

    for at in (2, CAPACITY + 1, -1):
        wait_until(lambda at=at: comes(at), PATIENCE, "a ticket brings a place back")
    for one in passes:
        wait_until(lambda one=one: ask(system, come[0], "check", one).status == 204, PATIENCE, "a pass brings a session back")
    for archiver in system.of("archiver"):
        archiver.start()
    wait_until(lambda: is_restored(system), PATIENCE, "the archive has brought them back")
    assert picture(system) == before
    assert totals(system) == counted
    assert [ask(system, come[0], "check", one).status for one in passes] == [401, 401]
    done = system.ctl("queue", "recover", "sale", "--now")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: field(system, "recover_until") == "0", PATIENCE, "the recovery ends")
    assert picture(system) == before
    assert totals(system) == counted


def test_settings_mode_and_notice_come_back(start, postgres):
    """No program is left that remembers what operators had set: a queue that was paused stays so."""
    system = begin(start, postgres, {})
    hold_a_sale(system)
    system.set("sale", "capacity=6")
    for words in (("pause", "sale"), ("notice", "sale", "We begin late.")):
        done = system.ctl("queue", *words)
        assert done.returncode == 0, done.stderr
    agree(system, postgres)
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_changes WHERE what = 'notice'") == "1", PATIENCE, "it is there")
    postgres.sql("INSERT INTO queue_changes SELECT queue_id, at, entry_ms, entry_nth + 1, 'dispatcher', 'program', 'restore', '{}', "
                 "'{\"seq\": \"5\"}' FROM queue_changes WHERE what = 'mode'")
    before, config = picture(system), system.store.hash(system.key("sale", "config"))
    lose_with_memory(system)
    wait_until(lambda: is_restored(system), PATIENCE, "the archive has brought them back")
    now = system.store.hash(system.key("sale", "config"))
    assert now.pop("changed")[:13] == config.pop("changed")[:13] and now == config
    assert field(system, "notice") == "We begin late."
    assert picture(system) == before
    assert len([one for one in system.store.command("XRANGE", system.key("sale", "changes"), "-", "+") if "restore" in one[1]]) == 1
    for program in system.programs:
        program.wait_ready()


def test_an_end_counts_by_the_clock_of_redis(start, postgres, tmp_path):
    """Which is an hour behind that of PostgreSQL: a session that was completed does not come back by its pass."""
    clock = Clock(tmp_path)
    clock.set(-HOUR)

    def prepare(system):
        prepared(system)
        system.redis.prefix = clock.prefix

    system = begin(start, postgres, {}, prepare=prepare)
    wait_until(lambda: field(system, "archive"), PATIENCE, "the queue is archived")
    come = [system.join("sale") for _ in range(3)]
    wait_until(lambda: all(visitor.is_active() for visitor in come), PATIENCE, "they are called")
    pass_before = come[0].status()["pass"]
    come[0].complete()
    agree(system, postgres)
    lose_with_memory(system)
    wait_until(lambda: is_restored(system), PATIENCE, "the archive has brought them back")
    for program in system.programs:
        program.wait_ready()
    client = system.client()
    client.get(f"{come[0].path}/check", ticket=pass_before)
    client.get(f"{come[1].path}/check", ticket=come[1].ticket)
    assert system.ctl("queue", "recover", "sale", "--now").returncode == 0
    wait_until(lambda: client.get(f"{come[0].path}/check", ticket=pass_before).status == 401, PATIENCE, "the gate is shut")
    assert set(dict(picture(system)[1])) == {visitor.view["visitor"] for visitor in come[1:]}
    client.close()


def test_only_when_somebody_asks(start, postgres):
    """archive.restore: manual. `tellerline restore` refuses a queue that has visitors, and opens a recovery for an empty
    one."""
    system = begin(start, postgres, {}, restore="manual")
    hold_a_sale(system)
    agree(system, postgres)
    refused = system.ctl("restore", "sale", "--from", "postgres")
    assert refused.returncode == 1 and "has visitors" in refused.stderr, refused.stderr
    before, counted = picture(system), totals(system)
    for program in system.of("worker"):
        program.stop()
    lose(system)
    done = system.ctl("queue", "recover", "sale", "--now")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: field(system, "recover_until") == "0", PATIENCE, "the recovery ends")
    assert system.waiting("sale") == 0 and field(system, "restore") == ""
    done = system.ctl("restore", "sale")
    assert done.returncode == 0 and "visitors came back" in done.stdout, done.stderr
    assert picture(system) == before
    assert totals(system) == counted
    again = system.ctl("restore", "sale")
    assert again.returncode == 1, again.stdout
    for program in system.of("worker"):
        program.start()
        program.wait_ready()


def test_there_is_nothing_to_bring_back(start, postgres):
    """A queue that was deleted does not come back, nor one that never lost anything."""
    system = begin(start, postgres, {})
    hold_a_sale(system)
    agree(system, postgres)
    desk = Admin(system.of("worker")[0])
    desk.done("DELETE", "queues/sale?confirm=sale")
    desk.close()
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_generations WHERE deleted_at IS NULL") == "0", PATIENCE,
               "the archive knows it")
    made = system.ctl("queue", "create", "sale", "capacity=1")
    assert made.returncode == 0, made.stderr
    done = system.ctl("restore", "sale")
    assert done.returncode == 1 and "deleted the queue" in done.stderr, done.stderr
    assert system.waiting("sale") == 0 and field(system, "recover_until") in ("", "0"), "nothing was opened"


@pytest.mark.long(seconds=30)
def test_visitors_come_and_go_meanwhile(start, postgres):
    """The whole history is right, for visitors who come and go while the store loses everything twice. Workers repeat the
    change of a setting just before: they may."""
    system = begin(start, postgres, {"recovery_window": "8s"}, archivers=2, prepare=admin_file)
    live_through(system, "sale", CAPACITY, 7, ["flushed"], rounds=2, least=40)


def test_lost_again_before_it_is_archived(start, postgres):
    """The line came back, and the archive has a part of that: all come back again, from the generation before."""
    system = begin(start, postgres, {"recovery_window": "5m"})
    hold_a_sale(system)
    agree(system, postgres)
    before = picture(system)
    back = """SELECT count(*) FROM queue_entries WHERE status < 'completed' AND generation_id =
        (SELECT max(generation_id) FROM queue_generations)"""
    for _ in range(2):
        lose_with_memory(system)
        wait_until(lambda: is_restored(system), PATIENCE, "the archive has brought them back")
        assert picture(system) == before
        for program in system.programs:
            program.wait_ready()
        wait_until(lambda: postgres.sql(back) == str(len(before[0]) // 2 + len(before[1])), PATIENCE, "that is archived")
        system.of("archiver")[0].stop()
        # As if the archiver had ended in the midst of it.
        postgres.sql("""WITH part AS (UPDATE queue_generations AS g SET event = -q.event - 2 FROM queue_gaps AS q
            WHERE q.generation_id = g.generation_id AND reason = 'lost' AND g.generation_id > 1 RETURNING g.generation_id)
            DELETE FROM queue_entries WHERE generation_id IN (SELECT generation_id FROM part) AND seq % 2 = 0""")
    done = system.ctl("queue", "recover", "sale", "--now")
    assert done.returncode == 0, done.stderr
    system.of("archiver")[0].start()


def test_lost_again_while_nobody_was_there(start, postgres):
    """archive.restore: manual. Redis starts empty twice before an operator asks."""
    system = begin(start, postgres, {"recovery_window": "5m"}, restore="manual")
    hold_a_sale(system)
    agree(system, postgres)
    before, counted = picture(system), totals(system)
    for known in (2, 3):
        lose_with_memory(system)
        for program in system.programs:
            program.wait_ready()
        told = "SELECT count(*) FROM queue_generations WHERE last_at IS NOT NULL"
        wait_until(lambda known=known, told=told: postgres.sql(told) == str(known), PATIENCE, "the archive knows of it")
    done = system.ctl("restore", "sale")
    assert done.returncode == 0 and f"{counted['waiting'] + counted['active']} visitors came back" in done.stdout, done.stderr
    assert picture(system) == before
    assert totals(system) == counted
    done = system.ctl("queue", "recover", "sale", "--now")
    assert done.returncode == 0, done.stderr
