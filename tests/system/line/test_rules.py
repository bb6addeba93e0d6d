# SPDX-License-Identifier: Apache-2.0
"""Commands that come twice or out of order, and changes under load, where a rate, a capacity and lanes with weights hold
together. TELLERLINE_SEED=N repeats the choices of a run."""
from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import rules
import wire
from history import Change, History, Shares
from rules import CAPACITY, RATES, come_and_go
from stories import Recorder, repeat_batches
from tellerline import System
from test_faults import batch, ingest
from test_recreated import delete_queue
from test_store_trouble import STORE_TROUBLE
from waiting import PATIENCE, patient, wait_until

RELOADED = "configuration read again"
SHAPES = pytest.mark.parametrize("shape", RATES)


@pytest.fixture
def begin(start: Callable[..., System], tmp_path: Path) -> Callable[..., System]:
    return lambda shape, more=None, **counts: start({"door": rules.queue_of(RATES[shape])} | (more or {}),
                                                    settings=rules.settings(tmp_path), **counts)


# ---- doubled and reordered ----


@SHAPES
def test_batches_that_come_twice(begin, shape):
    """Every batch of the run arrives again, some in the middle of it: nobody joins, ends or is admitted twice."""
    system, chosen = begin(shape, workers=2), rules.seed()
    recorder: Recorder | None = None
    with rules.visitors(system, "door", RATES[shape], chosen) as history:
        recorder = Recorder(system, history)
        recorder.start()
        for _ in range(3):
            come_and_go(history)
            repeat_batches(system, list(recorder.batches))
        recorder.stop()
    repeat_batches(system, recorder.batches)
    wait_until(lambda: system.is_applied("door"), PATIENCE, "all is applied")
    assert system.waiting("door") == system.active("door") == 0


@SHAPES
def test_commands_out_of_order(begin, shape):
    """Each visitor joins twice in one lane and once more in the other, completes twice and renews after the end. An end
    gives its counter back, and nothing of the rate."""
    system, chance = begin(shape), random.Random(rules.seed())
    names, commands = [f"v{i}" for i in range(30)], []
    for name in names:
        lane = chance.randrange(2)
        commands += [[wire.LEAVE, name, lane * wire.LANE + 1], [wire.JOIN, name, lane], [wire.JOIN, name, lane],
                     [wire.JOIN, name, 1 - lane]]
    began = time.monotonic()
    ingest(system, batch("tester-1", 1, *commands), queue="door")
    number, done = 1, set()

    def end_all() -> bool:
        nonlocal number
        for name in set(system.store.command("HKEYS", system.key("door", "sessions"))) - done:
            place = int(system.store.command("HGET", system.key("door", "sessions"), name).split(":")[0])
            number += 1
            ends = [[wire.COMPLETE, name, place + 7], [wire.RENEW, name, place], [wire.COMPLETE, name, place],
                    [wire.COMPLETE, name, place], [wire.RENEW, name, place], [wire.LEAVE, name, place]]
            for _ in range(2):
                ingest(system, batch("tester-1", number, *ends), queue="door")
            done.add(name)
        return len(done) == len(names)

    wait_until(end_all, PATIENCE, "all were admitted", every=0.01)
    wait_until(lambda: system.is_applied("door") and system.active("door") == 0, PATIENCE, "all have ended")
    numbers = system.numbers("door")
    assert [numbers[name] for name in ("joined", "admitted", "completed", "left", "expired")] == [30, 30, 30, 0, 0]
    rate, history = RATES[shape], History(shares=[Shares(0.0, rules.WEIGHTS)], joins_without_answer=len(names))
    rules.judge(system, "door", history, rate)
    assert time.monotonic() - began >= (len(names) - rate.admit - rate.burst) / rate.admit * rate.every * 0.9


@SHAPES
def test_ends_that_race_the_expiry(start, tmp_path, shape):
    """At the deadline a session is completed or expired, once: one more is admitted for it, by the rate."""
    rate = RATES[shape]._replace(ttl=1.0)
    system, chance = start({"door": rules.queue_of(rate)}, settings=rules.settings(tmp_path)), random.Random(rules.seed())
    ingest(system, batch("tester-1", 1, *[[wire.JOIN, f"v{i}", chance.randrange(2)] for i in range(3 * CAPACITY)]), queue="door")
    number, tried = 1, set()

    def race() -> bool:
        nonlocal number
        seconds, micros = system.store.command("TIME")
        now = int(seconds) * 1000 + int(micros) // 1000
        due = system.store.command("ZRANGEBYSCORE", system.key("door", "active"), 0, now + chance.randrange(4))
        for name in set(due) - tried:
            session = system.store.command("HGET", system.key("door", "sessions"), name)
            if session:
                number += 1
                ingest(system, batch("tester-1", number, [wire.COMPLETE, name, int(session.split(":")[0])]),
                       queue="door")
            tried.add(name)
        return system.numbers("door")["joined"] == 3 * CAPACITY and system.waiting("door") == system.active("door") == 0

    wait_until(race, PATIENCE, "the line drains", every=0.001)
    wait_until(lambda: system.is_applied("door"), PATIENCE, "all is applied")
    numbers = system.numbers("door")
    assert numbers["completed"] + numbers["expired"] == numbers["admitted"] == 3 * CAPACITY
    rules.judge(system, "door", History(shares=[Shares(0.0, rules.WEIGHTS)], joins_without_answer=3 * CAPACITY), rate)


# ---- changes ----


@SHAPES
def test_rules_changed_under_load(begin, shape):
    """Capacity, rate and weights, in any order: never more than the greater rate, and the shares of each time."""
    system, chosen, rate = begin(shape), rules.seed(), RATES[shape]
    chance = random.Random(chosen)
    with rules.visitors(system, "door", rate, chosen) as history:
        for capacity, admit, weights in chance.sample([(2, 3, (1, 3)), (6, rate.admit, (2, 1)), (4, 5, (1, 1)),
                                                       (5, 2, (5, 1))], 3):
            names = [f"capacity={capacity}", f"rate.admit={admit}", f"lane_weights={weights[0]},{weights[1]}"]
            sent = time.time()
            history.shares.append(Shares(sent, ()))  # not judged until it is done
            system.set("door", *names)
            history.shares[-1] = Shares(time.time(), weights)
            history.causes.append((sent, time.time() + patient(rules.STALENESS)))
            history.changes.append(Change(sent, time.time(), "rate.admit", str(admit)))
            come_and_go(history)
        system.set("door", f"capacity={CAPACITY}", f"rate.admit={rate.admit}")


def test_reload_and_drain_of_all_programs_under_load(begin):
    """SIGHUP of all, then SIGTERM of one after the other, while another of its kind goes on."""
    system, chosen = begin("smooth", workers=2, dispatchers=2, admitters=2, expirers=2), rules.seed()
    system.expect(STORE_TROUBLE)
    with rules.visitors(system, "door", RATES["smooth"], chosen) as history:
        for program in system.programs:
            program.send(signal.SIGHUP)
        for program in system.programs:
            wait_until(lambda p=program: RELOADED in p.text(), PATIENCE, f"{program.name} reloads")
        come_and_go(history)
        for program in random.Random(chosen).sample(system.programs, len(system.programs)):
            program.stop()
            program.start()
        come_and_go(history)


def test_a_queue_deleted_under_load_leaves_the_rules_of_others(begin):
    """Two queues with rules: one is deleted again and again. It is made again with its settings, and a budget that begins
    spent."""
    rate = RATES["batches"]
    system, chosen = begin("batches", {"bank": rules.queue_of(rate) | {"recovery_window": "0s"}}), rules.seed()
    system.expect(STORE_TROUBLE)
    with rules.visitors(system, "door", rate, chosen) as history:
        for _ in range(2):
            generation = system.numbers("bank")["generation"]
            ingest(system, batch("tester-1", 1, *[[wire.JOIN, f"{generation}-{i}", i % 2] for i in range(9)]))
            wait_until(lambda: system.active("bank") == CAPACITY, PATIENCE, "some are admitted")
            delete_queue(system)
            wait_until(lambda g=generation: system.numbers("bank").get("generation", g) != g, PATIENCE, "it is made again")
            assert system.numbers("bank")["admitted"] == 0
            come_and_go(history)
    wait_until(lambda: system.store.command("HMGET", system.key("bank", "config"), "policy", "lane_weights")
               == ["both", ",".join(map(str, rules.WEIGHTS))], PATIENCE, "it has its settings")
