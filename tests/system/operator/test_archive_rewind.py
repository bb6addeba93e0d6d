# SPDX-License-Identifier: Apache-2.0
"""Redis is started from a copy that is an hour old, and the archive brings back that hour. Or PostgreSQL is the older
one, or both are."""
from __future__ import annotations

import os
import signal
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest

from admin import Admin
from test_archive import agree, agree_open, join_many
from test_archive_restore import CAPACITY, begin, field, hold_a_sale, is_restored, lose, picture, prepared, totals
from test_faults_clock import HOUR, Clock
from test_trail import export, verify
from waiting import PATIENCE, wait_until

LONG = {"recovery_window": "12s", "session_ttl": "3h", "claim_ttl": "3h", "waiting_ttl": "3h"}
#: A transaction that moves on what was written waits at its end while somebody has this lock.
WAITS_AT_ITS_END = """CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 SET statement_timeout = 0 AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$;
    CREATE CONSTRAINT TRIGGER held AFTER UPDATE ON queue_generations DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.event > OLD.event) EXECUTE FUNCTION held()"""
RECORD = "SELECT visitor, lane, status, joined_at, admitted_at, ended_at FROM queue_entries ORDER BY seq"


def started(start, postgres, tmp_path, **more):
    clock = Clock(tmp_path)

    def prepare(system):
        prepared(system)
        system.redis.prefix = clock.prefix

    system = begin(start, postgres, LONG, prepare=prepare, **more)
    system.expect("old copy")
    system.expect("until you choose")
    return system, clock


def an_hour(system, clock, waiting, active):
    """Later some have ended, others were called, came, or came again, and one was moved. Returns who waits, and who is
    active."""
    clock.set(HOUR)
    for _ in range(2):  # who was moved to the first lane is called first
        active.pop(0).complete()
    wait_until(waiting[0].is_active, PATIENCE, "the next is called")
    active.append(waiting.pop(0))
    desk = Admin(system.of("worker")[0])
    for visitor in ("v5", "v6"):
        desk.done("DELETE", f"queues/sale/visitors/{visitor}")
    desk.done("POST", "queues/sale/visitors/v7/lane", {"lane": "vip"})
    desk.close()
    join_many(system, 600, "w")
    join_many(system, 1, "v6")
    system.join("sale").leave()
    return waiting, active


def go_back(system, clock, history):
    """Redis is killed, and comes back with a copy of then."""
    system.redis.kill()
    system.redis.lose_tail(history)
    system.forget_store()
    clock.set(HOUR + 5)
    system.redis.start()


def at_work(system):
    """Redis takes steps again."""
    return wait_until(lambda: system.join("sale"), PATIENCE, "joins are taken", again_on=AssertionError)


def gaps(postgres):
    return postgres.sql("SELECT reason FROM queue_gaps ORDER BY event").splitlines()


def test_an_hour_comes_back(start, postgres, tmp_path):
    """Each visitor has the place or session that the archive knows, nobody has two, no number is given twice, and who has
    ended since has ended. Nobody is called meanwhile."""
    system, clock = started(start, postgres, tmp_path)
    waiting, active = hold_a_sale(system)
    agree(system, postgres)
    history = system.redis.history()
    waiting, active = an_hour(system, clock, waiting, active)
    agree(system, postgres)
    before, counted, record = picture(system), totals(system), postgres.rows(RECORD)
    go_back(system, clock, history)
    wait_until(lambda: field(system, "restore")[:4] in ("back", "runn"), PATIENCE, "it is known to be an old copy")
    newcomer = at_work(system)
    wait_until(lambda: is_restored(system), PATIENCE, "the archive has brought them back")
    line, sessions = picture(system)
    assert line[-2] == newcomer.view["visitor"]
    assert (line[:-2], sessions) == before
    assert totals(system) == counted | {"joined": counted["joined"] + 1, "waiting": counted["waiting"] + 1}
    for visitor in active:
        assert visitor.status()["status"] == "active"
    wait_until(lambda: field(system, "recover_until") == "0", 2 * PATIENCE, "the recovery ends")
    assert field(system, "active") == str(CAPACITY)
    agree(system, postgres)
    assert postgres.rows(RECORD)[:-1] == record
    assert postgres.sql("SELECT reason, until - since > interval '59 minutes' FROM queue_gaps WHERE reason <> 'opened'") == "store|t"
    # Admission goes on in the old order: first who was moved meanwhile.
    for visitor in active[:2]:
        visitor.complete()
    wait_until(waiting[0].is_active, PATIENCE, "the next in the old order are called")
    assert {"v300", "v7"} < set(dict(picture(system)[1]))


def test_nobody_asks(start, postgres, tmp_path):
    """archive.restore: manual. For the recovery window an operator may ask."""
    system, clock = started(start, postgres, tmp_path, restore="manual")
    waiting, active = hold_a_sale(system)
    agree(system, postgres)
    history = system.redis.history()
    an_hour(system, clock, waiting, active)
    agree(system, postgres)
    before, counted = picture(system), totals(system)
    go_back(system, clock, history)
    wait_until(lambda: "`tellerline restore` brings back" in system.of("archiver")[0].text(), PATIENCE, "it says what to do")
    done = system.ctl("restore", "sale")
    assert done.returncode == 0 and "visitors came back" in done.stdout, done.stderr
    assert picture(system) == before
    assert totals(system) == counted
    agree(system, postgres)


def cpu_seconds(program):
    ticks = Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def test_to_wait_for_an_operator_costs_nothing(start, postgres, tmp_path):
    """The archiver looks now and then, although the record may not be read."""
    system, clock = started(start, postgres, tmp_path, restore="manual")
    hold_a_sale(system)
    agree(system, postgres)
    history = system.redis.history()
    clock.set(HOUR)
    join_many(system, 50, "w")
    agree(system, postgres)
    go_back(system, clock, history)
    archiver = system.of("archiver")[0]
    wait_until(lambda: "`tellerline restore` brings back" in archiver.text(), PATIENCE, "it says what to do")
    used, began = cpu_seconds(archiver), time.monotonic()
    wait_until(lambda: field(system, "restore") == "none:ended", PATIENCE, "nobody has asked")
    assert (cpu_seconds(archiver) - used) / (time.monotonic() - began) < 0.2


def test_nothing_is_missing(start, postgres, tmp_path):
    """Redis was away for an hour, and has everything: it goes on as soon as the archive has said so."""
    system, clock = started(start, postgres, tmp_path)
    _, active = hold_a_sale(system)
    agree(system, postgres)
    system.set("sale", "recovery_window=5m")
    agree(system, postgres)
    before = picture(system)
    go_back(system, clock, system.redis.history())
    wait_until(lambda: field(system, "restore") == "none:whole", PATIENCE, "the archive knows nothing more")
    assert picture(system) == before
    active[0].client.close()
    wait_until(lambda: active[0].complete()["status"] == "completed", PATIENCE, "it goes on", again_on=(AssertionError, OSError))
    wait_until(lambda: "v300" in dict(picture(system)[1]), PATIENCE, "the next is called")


def test_nobody_compares(start, postgres, tmp_path):
    """Redis was away for an hour, and has everything, and there is no archiver: it goes on within seconds."""
    system, clock = started(start, postgres, tmp_path)
    _, active = hold_a_sale(system)
    system.set("sale", "recovery_window=1h")
    agree(system, postgres)
    system.of("archiver")[0].stop()
    go_back(system, clock, system.redis.history())
    wait_until(lambda: field(system, "restore") == "back", PATIENCE, "it is known to be an old copy")
    active[0].client.close()
    wait_until(lambda: active[0].complete()["status"] == "completed", PATIENCE, "it goes on", again_on=(AssertionError, OSError))
    assert "v300" not in dict(picture(system)[1])
    wait_until(lambda: "v300" in dict(picture(system)[1]), PATIENCE, "the next is called")
    assert field(system, "restore") == "none:ended"
    system.of("archiver")[0].start()
    agree_open(system, postgres)


def test_an_archiver_compares_slowly(start, postgres, tmp_path):
    """Where there is one, nobody is admitted before it has compared."""
    system, clock = started(start, postgres, tmp_path)
    _, active = hold_a_sale(system)
    system.set("sale", "recovery_window=1h")
    agree(system, postgres)
    with postgres.session("LOCK queue_entries"):
        go_back(system, clock, system.redis.history())
        wait_until(lambda: int(field(system, "recover_until")) - int(field(system, "recover_since")) == HOUR * 1000,
                   PATIENCE, "an archiver is there", again_on=(ValueError, OSError))
        clock.set(HOUR + 5 + 60)  # longer than one without an archiver is held
        active[0].client.close()
        wait_until(lambda: active[0].complete()["status"] == "completed", PATIENCE, "it goes on", again_on=(AssertionError, OSError))
        for _ in range(20):  # steps, of which none admits
            system.join("sale")
        assert field(system, "restore") == "back" and "v300" not in dict(picture(system)[1])
    wait_until(lambda: field(system, "restore") == "none:whole", PATIENCE, "it has compared")
    wait_until(lambda: "v300" in dict(picture(system)[1]), PATIENCE, "the next is called")


def test_the_last_seconds_are_missing(start, postgres, tmp_path):
    """archive.restore: manual. Redis was away for an hour, and lacks seconds: it goes on as of then at once."""
    system, clock = started(start, postgres, tmp_path, restore="manual")
    _, active = hold_a_sale(system)
    system.set("sale", "recovery_window=5m")
    agree(system, postgres)
    history = system.redis.history()
    join_many(system, 3, "w")
    agree(system, postgres)
    go_back(system, clock, history)
    wait_until(lambda: field(system, "restore") == "none:recent", PATIENCE, "nobody is held up")
    active[0].client.close()
    wait_until(lambda: active[0].complete()["status"] == "completed", PATIENCE, "it goes on", again_on=(AssertionError, OSError))
    wait_until(lambda: "v300" in dict(picture(system)[1]), PATIENCE, "the next is called")


def test_the_line_was_drawn_before(start, postgres, tmp_path):
    """A copy that knows of its draw comes back as any other."""
    system, clock = started(start, postgres, tmp_path)
    waiting, active = hold_a_sale(system)
    agree(system, postgres)
    system.store.command("HSET", "tl:{sale}:state", "draw", "1000:3:1:2:2:2:0:0:0")
    postgres.sql("UPDATE queue_entries SET joined_seq = 1 WHERE status = 'waiting'")
    history = system.redis.history()
    an_hour(system, clock, waiting, active)
    agree(system, postgres)
    before = picture(system)
    go_back(system, clock, history)
    wait_until(lambda: is_restored(system), 2 * PATIENCE, "the archive has brought them back")
    assert picture(system) == before
    system.store.command("HDEL", "tl:{sale}:state", "draw")  # it was invented


def back_before_a_loss(system, postgres, clock):
    """Redis lost everything, and the archive brought it back. Then Redis comes back from a copy of before. Returns who waits,
    who is active, what was there before the copy came, and the generations of the copy and of then."""
    waiting, active = hold_a_sale(system)
    agree(system, postgres)
    old, history = int(field(system, "generation")), system.redis.history()
    lose(system)
    wait_until(lambda: is_restored(system), PATIENCE, "the archive has brought them back")
    wait_until(lambda: field(system, "recover_until") == "0", 2 * PATIENCE, "the recovery ends")
    active.pop(0).complete()
    wait_until(lambda: "v300" in dict(picture(system)[1]), PATIENCE, "the next is called")
    join_many(system, 50, "w")
    for visitor in waiting + active:
        visitor.status()  # gets a ticket of this generation
    wait_until(lambda: system.store.command("XLEN", system.key("sale", "record")) == 0, PATIENCE, "the archive knows all")
    before, new = picture(system), int(field(system, "generation"))
    go_back(system, clock, history)
    wait_until(lambda: "until you choose" in system.of("archiver")[0].text(), PATIENCE, "the operator is told")
    assert int(field(system, "generation")) == old
    assert system.numbers("sale")["active"] == CAPACITY
    # Also when the window is over.
    began = int(field(system, "recover_since"))
    wait_until(lambda: int(field(system, "recover_until")) > began + 13000, PATIENCE, "nobody is called")
    return waiting, active, before, (old, new)


def test_a_copy_from_before_a_total_loss(start, postgres, tmp_path):
    """The line that came after it is the true one. It comes back when an operator asks; its tickets wait until then."""
    system, clock = started(start, postgres, tmp_path)
    waiting, active, before, (_, new) = back_before_a_loss(system, postgres, clock)
    for visitor in waiting + active:
        wait_until(lambda visitor=visitor: visitor.client.get(f"{visitor.path}/status", visitor.ticket).status == 503, PATIENCE,
                   "it is not known yet", again_on=OSError)
    newcomer = system.join("sale")
    done = system.ctl("restore", "sale")
    assert done.returncode == 0 and "visitors came back" in done.stdout, done.stderr
    assert picture(system) == before
    assert int(field(system, "generation")) > new
    for visitor in waiting:
        assert visitor.status()["status"] == "waiting"
    for visitor in active:
        assert visitor.status()["status"] == "active"
    assert newcomer.client.get(f"{newcomer.path}/status", newcomer.ticket).status == 409
    wait_until(lambda: field(system, "recover_until") == "0", 2 * PATIENCE, "the recovery ends")
    for visitor in active[:2]:
        visitor.complete()
    wait_until(lambda: all(visitor.is_active() for visitor in waiting), PATIENCE, "the next in the old order are called")


def test_a_draw_was_held_since(start, postgres, tmp_path):
    """The copy would be drawn again. An operator can have the line that was drawn: without the copy, and programs that
    remember it, this is a total loss."""
    system, clock = started(start, postgres, tmp_path)
    waiting, active = hold_a_sale(system)
    agree(system, postgres)
    history, joined = system.redis.history(), picture(system)[0]
    opens = datetime.fromtimestamp(int(system.store.command("TIME")[0]) + 1, timezone.utc)
    assert system.ctl("draw", "schedule", "sale", opens.isoformat()).returncode == 0
    wait_until(lambda: ":3:" in field(system, "draw"), PATIENCE, "the draw is held")
    join_many(system, 5, "w")
    active.pop(0).complete()
    wait_until(lambda: "v300" in dict(picture(system)[1]), PATIENCE, "the next is called")
    agree(system, postgres)
    is_known = "SELECT count(*) > 0 FROM queue_changes WHERE what = 'set' AND after ? 'order'"
    wait_until(lambda: postgres.sql(is_known) == "t", PATIENCE, "the archive knows of the draw")
    before = picture(system)
    assert before[0][::2] != joined[::2]
    go_back(system, clock, history)
    wait_until(lambda: "a draw was held" in system.of("archiver")[0].text(), PATIENCE, "the operator is told")
    assert "cannot complete it" in system.ctl("restore", "sale").stderr
    for program in system.programs:
        program.stop()
    system.store.command("UNLINK", *system.store.command("KEYS", "tl:{sale}:*"))
    for program in system.programs:
        program.start()
    wait_until(lambda: field(system, "generation"), PATIENCE, "the queue is created again")
    done = system.ctl("restore", "sale")
    assert done.returncode == 0 and "visitors came back" in done.stdout, done.stderr
    assert picture(system) == before
    assert system.ctl("queue", "recover", "sale", "--now").returncode == 0
    wait_until(lambda: ":3:" in field(system, "draw"), PATIENCE, "there is nothing to draw")
    assert picture(system) == before
    for program in system.programs:
        program.wait_ready()


def test_an_operator_wants_the_line_of_the_copy(start, postgres, tmp_path):
    """It goes on, and is the one that comes back after the next loss."""
    system, clock = started(start, postgres, tmp_path)
    _, _, _, (old, _) = back_before_a_loss(system, postgres, clock)
    assert system.ctl("queue", "recover", "sale", "--now").returncode == 0
    wait_until(lambda: field(system, "recover_until") == "0", PATIENCE, "the recovery ends")
    assert int(field(system, "generation")) == old
    at_work(system)
    wait_until(lambda: system.store.command("XLEN", system.key("sale", "record")) == 0, PATIENCE, "the archive knows all")
    before = picture(system)
    lose(system)
    wait_until(lambda: is_restored(system), PATIENCE, "the archive has brought them back")
    assert picture(system) == before


@pytest.mark.parametrize("older", ["redis", "postgres"])
def test_both_go_back(start, postgres, tmp_path, older):
    """To different times: the line is that of the younger copy, and a gap says so. Nobody is there twice."""
    system, clock = started(start, postgres, tmp_path)
    waiting, active = hold_a_sale(system)
    agree(system, postgres)
    history = system.redis.history()
    if older == "postgres":
        postgres.keep()
    waiting, active = an_hour(system, clock, waiting, active)
    agree(system, postgres)
    before = picture(system)
    if older == "redis":
        postgres.keep()
    else:
        history = system.redis.history()
    active.pop(0).complete()
    join_many(system, 5, "x")
    agree(system, postgres)
    system.redis.kill()
    postgres.go_back()
    go_back(system, clock, history)
    at_work(system)
    if older == "redis":
        wait_until(lambda: is_restored(system), PATIENCE, "the archive has brought them back")
    line, sessions = picture(system)
    assert (line[:-2], sessions) == before
    agree_open(system, postgres)
    wait_until(lambda: gaps(postgres)[-1] == ("store" if older == "redis" else "archive"), PATIENCE, "the gap is told")
    assert postgres.sql("SELECT count(*) FROM queue_entries GROUP BY visitor, status HAVING count(*) > 1 AND status < 'completed'") == ""


def test_postgres_goes_back(start, postgres, tmp_path):
    """Redis has everything: who waits and is active is told again, and who has ended since is not known."""
    system, _ = started(start, postgres, tmp_path)
    hold_a_sale(system, 320)
    agree(system, postgres)
    known = int(postgres.sql("SELECT count(*) FROM queue_entries"))
    postgres.keep()
    join_many(system, 20, "w")
    for _ in range(3):
        system.join("sale").leave()
    agree(system, postgres)
    postgres.go_back()
    desk = Admin(system.of("worker")[0])
    desk.done("POST", "queues/sale/visitors/w7/lane", {"lane": "vip"})  # of whose place the copy knows nothing
    desk.close()
    system.join("sale")
    wait_until(lambda: gaps(postgres) == ["opened", "archive"], PATIENCE, "the gap is told")
    agree_open(system, postgres)
    assert postgres.sql("SELECT count(*) FROM queue_differences") == "0"
    assert int(postgres.sql("SELECT count(*) FROM queue_entries")) == known + 21


def test_postgres_goes_back_and_the_archiver_dies(start, postgres, tmp_path):
    """Its first transaction since is done, and Redis has not heard of it: the gap is told nevertheless."""
    system, _ = started(start, postgres, tmp_path)
    hold_a_sale(system, 320)
    agree(system, postgres)
    postgres.keep()
    join_many(system, 20, "w")
    agree(system, postgres)
    archiver = system.of("archiver")[0]
    archiver.stop()
    postgres.go_back()
    postgres.sql(WAITS_AT_ITS_END)
    system.join("sale")
    with postgres.session("SELECT pg_advisory_xact_lock(1)"):
        archiver.start()
        at_its_end = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_until(lambda: postgres.sql(at_its_end) == "1", PATIENCE, "the transaction waits")
        archiver.send(signal.SIGSTOP)
    known = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    wait_until(lambda: postgres.sql(known) == "0", PATIENCE, "the transaction is done")
    archiver.kill()
    postgres.sql("DROP FUNCTION held() CASCADE")
    archiver.start()
    wait_until(lambda: gaps(postgres) == ["opened", "archive"], PATIENCE, "the gap is told")
    agree_open(system, postgres)
    assert postgres.sql("SELECT count(*) FROM queue_differences") == "0"


@pytest.mark.parametrize("keys", [["waiting"], ["active", "sessions"], ["waiting", "active", "sessions", "events"]])
def test_a_part_of_a_queue_gets_the_rest(start, postgres, tmp_path, keys):
    """An operator goes on with what is there: the archive brings back what is missing, of any age."""
    system, _ = started(start, postgres, tmp_path)
    system.expect("only a part of the queue")
    system.expect("a part of the queue is missing")
    waiting, active = hold_a_sale(system)
    agree(system, postgres)
    before = picture(system)
    names = [system.key("sale", name) for name in ["state", *keys]]
    system.store.command("EVAL", "redis.call('HSET', KEYS[1], 'store', 'another') redis.call('DEL', unpack(KEYS, 2))",
                         len(names), *names)
    wait_until(lambda: "only a part" in system.ctl("queue", "list", "-o", "json").stdout, PATIENCE, "the operator is told")
    done = system.ctl("queue", "recover", "sale", "--wait", "5m")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: is_restored(system), PATIENCE, "the archive has brought them back")
    assert picture(system) == before
    assert field(system, "recover_until") != "0"
    agree_open(system, postgres)
    for visitor in active:
        assert visitor.status()["status"] == "active"
    assert system.ctl("queue", "recover", "sale", "--now").returncode == 0
    for visitor in active[:3]:
        visitor.complete()
    wait_until(lambda: all(visitor.is_active() for visitor in waiting), PATIENCE, "the next in the old order are called")
    wait_until(lambda: gaps(postgres) == ["opened", "store"], PATIENCE, "the gap is told")
    assert postgres.sql("SELECT count(*) FROM queue_differences") == "0"


def test_the_clock_goes_back_too(start, postgres, tmp_path):
    """Numbers of events begin below those that PostgreSQL has: nothing is skipped as known."""
    system, clock = started(start, postgres, tmp_path)
    hold_a_sale(system, 320)
    agree(system, postgres)
    system.redis.kill()
    system.redis.keep()
    clock.set(HOUR // 60)
    system.forget_store()
    system.redis.start()
    at_work(system)
    agree(system, postgres)
    system.redis.kill()
    system.redis.go_back()
    clock.set(0)
    system.forget_store()
    system.redis.start()
    at_work(system)
    join_many(system, 20, "w")
    agree_open(system, postgres)
    assert postgres.sql("SELECT count(*) FROM queue_entries WHERE visitor ~ '^w[0-9]{1,2}$'") == "20"
    done = verify(export(system, tmp_path / "trail"))
    assert done.returncode == 0 and "2 gaps; of " in done.stdout, done.stdout + done.stderr
