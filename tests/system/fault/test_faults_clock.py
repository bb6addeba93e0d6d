# SPDX-License-Identifier: Apache-2.0
"""The clock jumps by an hour, forward and back, under running programs and under Redis.

libfaketime does not work with the memory allocator of redis-server; a few lines of C do.
"""
from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

import puzzles as puzzles_of
import wire
from http_client import Visitor
from tellerline import CALM, PATIENCE, System
from test_store_trouble import PROMPT, STORE_TROUBLE, redis_ms
from waiting import wait_until

pytestmark = pytest.mark.sanitized

HOUR = 3600

#: The time of day, shifted by the number of seconds in a file. The monotonic clock stays, as when an administrator sets
#: the time.
SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void)
{
    const char *name = getenv("CLOCK_SHIFT");
    int file = name != NULL ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    char text[16] = "";
    if (file >= 0) {
        if (read(file, text, sizeof(text) - 1) < 0)
            text[0] = 0;
        close(file);
    }
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, id, now);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result)
{
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (result != NULL)
        *result = precise.tv_sec;
    return precise.tv_sec;
}
"""


class Clock:
    """The clock of a program, which a file moves."""

    def __init__(self, folder: Path) -> None:
        self._file, self._library = folder / "shift", folder / "clock.so"
        (folder / "clock.c").write_text(SHIM)
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", str(self._library), str(folder / "clock.c")], check=True)
        self.set(0)

    @property
    def prefix(self) -> list[str]:
        return ["env", f"LD_PRELOAD={self._library}", f"CLOCK_SHIFT={self._file}",
                "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"]  # other tests look for leaks

    def set(self, seconds: int) -> None:
        written = self._file.with_suffix(".new")
        written.write_text(f"{seconds}\n")
        written.rename(self._file)


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
def test_the_clock_of_programs_jumps(start, jump, tmp_path):
    """Only Redis's clock counts: nothing changes for anyone."""
    clock = Clock(tmp_path)

    def prepare(system: System) -> None:
        for program in system.programs:
            program.prefix = clock.prefix

    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT, prepare=prepare)
    visitors = [system.join("bank") for _ in range(5)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is active")
    clock.set(jump)
    visitors.append(system.join("bank"))
    assert visitors[0].status()["status"] == "active"
    for position, visitor in enumerate(visitors[1:], 1):
        assert visitor.status()["position"] == position
    for ended, following in zip(visitors, visitors[1:]):
        assert ended.complete()["status"] == "completed"
        wait_until(following.is_active, PATIENCE, "the next one is called")
    assert visitors[-1].complete()["status"] == "completed"
    assert system.numbers("bank")["expired"] == 0


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
def test_the_clock_of_one_of_two_workers_jumps(start, jump, tmp_path):
    """What one signs the other takes, and the gate of each: tickets, also pending ones, passes and puzzles. Both say the
    same deadlines. The clock is wrong before the worker's next start, too."""
    clock = Clock(tmp_path)

    def prepare(system: System) -> None:
        system.of("worker")[0].prefix = clock.prefix

    def opens(visitor: Visitor) -> None:
        """At both, with the pass that each of them gives."""
        deadlines = set()
        for giver in clients:
            view = wait_until(lambda by=giver: (now := visitor.status(by))["status"] == "active" and now, PATIENCE,
                              "this worker has heard of it, too")
            deadlines.add(view["expires_at"])
            assert abs(wire.read_pass(view["pass"])["iat"] - redis_ms(system) / 1000) < HOUR / 2, view
            for checker in clients:
                assert checker.get(f"{visitor.path}/check", ticket=view["pass"]).status == 204
                assert checker.get(f"{visitor.path}/check", ticket=visitor.ticket).status == 204
        assert len(deadlines) == 1, deadlines

    system = start({"bank": {"capacity": 1} | CALM, "hard": {"capacity": 9, "challenge": "work"} | CALM}, workers=2,
                   settings=PROMPT, prepare=prepare)
    system.expect(STORE_TROUBLE)
    clients, worker = [system.client(0), system.client(1)], system.of("worker")[0]
    visitors = [system.join("bank", i % 2) for i in range(6)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is active")
    opens(visitors[0])
    puzzles = [puzzles_of.asked(client, "hard") for client in clients]
    clock.set(jump)
    opens(visitors[0])
    for problem, client in zip(puzzles, reversed(clients)):  # set before the jump, by the other
        assert puzzles_of.join(client, "hard", puzzles_of.solve(problem)).status == 200
    for setter, taker in (clients, clients[::-1]):
        assert puzzles_of.join(taker, "hard", puzzles_of.solve(puzzles_of.asked(setter, "hard"))).status == 200

    dispatcher = system.of("dispatcher")[0]
    dispatcher.kill()
    pending = [client.post("/v1/queues/bank/join") for client in clients]
    assert [answer.status for answer in pending] == [202, 202]
    dispatcher.start()
    for answer, taker in zip(pending, reversed(clients)):
        visitors.append(Visitor(taker, "bank", answer.json["ticket"]))
        wait_until(lambda v=visitors[-1]: v.status()["status"] == "waiting", PATIENCE, "the place is known",
                   again_on=AssertionError)
    visitors[-2:] = sorted(visitors[-2:], key=lambda visitor: visitor.view["position"])

    for ended, following in zip(visitors, visitors[1:]):
        opens(ended)
        assert ended.complete()["status"] == "completed"
        wait_until(following.is_active, PATIENCE, "the next one is called")
        if ended is visitors[2]:  # it starts with the wrong clock
            worker.kill()
            worker.start()
            worker.wait_ready()
            clients[0] = system.client(0)
            for visitor in visitors:
                visitor.client = clients[0]
    assert system.numbers("bank")["expired"] == 0


@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
def test_the_clock_of_redis_jumps(start, jump, tmp_path):
    """Sessions are measured by it: forward, those that are active end. No one who waits loses the place."""
    clock = Clock(tmp_path)

    def prepare(system: System) -> None:
        system.redis.prefix = clock.prefix

    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT, dispatchers=2, admitters=2, expirers=2,
                   prepare=prepare)
    system.expect(STORE_TROUBLE)
    visitors = [system.join("bank") for _ in range(5)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is active")
    before = redis_ms(system)
    clock.set(jump)
    wait_until(lambda: abs(redis_ms(system) - before) > 1000 * HOUR / 2, PATIENCE, "the clock has jumped")
    visitors.append(system.join("bank"))
    if jump > 0:
        wait_until(lambda: visitors[0].status()["status"] == "expired", PATIENCE, "the session is over")
    else:
        assert visitors[0].complete()["status"] == "completed"
    for visitor, following in zip(visitors[1:], visitors[2:]):
        wait_until(visitor.is_active, PATIENCE, "is called, in order")
        assert following.status()["status"] == "waiting"
        assert visitor.complete()["status"] == "completed"
    wait_until(visitors[-1].is_active, PATIENCE, "the newcomer is last")


def test_a_moment_a_day_ahead_leaves_nothing_behind(start, tmp_path):
    """Who was called in that time and does not come does not hold the counter for a day; ends of then are honest."""
    clock = Clock(tmp_path)

    def prepare(system: System) -> None:
        system.redis.prefix = clock.prefix

    system = start({"bank": {"capacity": 2, "session_ttl": "3s", "claim_ttl": "2s", "waiting_ttl": "10m"}},
                   settings=PROMPT, prepare=prepare)
    system.expect(STORE_TROUBLE)
    visitors = [system.join("bank") for _ in range(8)]
    before, active, ended = redis_ms(system), system.key("bank", "active"), system.key("bank", "ended")

    def called_ahead() -> bool:
        sessions = system.store.hash(system.key("bank", "sessions")).values()
        return len(sessions) == 2 and all(int(text.split(":")[1]) > before + 1000 * HOUR for text in sessions)

    clock.set(24 * HOUR)
    wait_until(called_ahead, PATIENCE, "two were called a day ahead")
    assert visitors[-1].leave()["status"] == "left"  # a day ahead, too
    clock.set(0)
    wait_until(lambda: redis_ms(system) < before + 1000 * HOUR, PATIENCE, "the clock is right again")
    wait_until(visitors[-2].is_active, PATIENCE, "all before have not come, and the last one is called")
    for key, unit in ((active, 1), (ended, 8)):
        latest = system.store.command("ZRANGE", key, "-1", "-1", "WITHSCORES")
        assert not latest or float(latest[1]) / unit < redis_ms(system) + 10_000, latest
    assert system.ctl("audit").returncode == 0


@pytest.mark.parametrize("role", ["dispatcher", "admitter", "expirer"])
def test_a_lease_holder_dies_when_the_clock_of_redis_went_back(start, role, tmp_path):
    """Its lease was to end an hour later by the new clock; another process takes over all the same."""
    clock = Clock(tmp_path)

    def prepare(system: System) -> None:
        system.redis.prefix = clock.prefix

    system = start({"bank": {"capacity": 1, "session_ttl": "2s", "claim_ttl": "2s", "waiting_ttl": "10m"}},
                   settings=PROMPT, prepare=prepare)
    system.expect(STORE_TROUBLE)
    system.join("bank")
    program = system.of(role)[0]
    program.kill()  # its lease stays in Redis
    clock.set(-HOUR)
    program.start()
    wait_until(lambda: program.running and program.ready(), PATIENCE, f"the {role} takes the lease")
    visitors = [system.join("bank") for _ in range(2)]
    # The session of the first visitor lasts until then; it is over in the new time much later.
    system.store.command("ZADD", system.key("bank", "active"), "XX", redis_ms(system),
                         *system.store.command("ZRANGE", system.key("bank", "active"), 0, 0))
    wait_until(visitors[-1].is_active, PATIENCE, "the line moves")


@pytest.mark.parametrize("shape", ["batches", "smooth"])
def test_a_jump_grants_nothing_when_a_standby_takes_over(start, shape, tmp_path):
    """A jump forward ends all leases: the next step may be that of a process that never served this queue. It followed
    the clock, too. Its budget begins spent, so nobody is admitted here."""
    clock = Clock(tmp_path)

    def prepare(system: System) -> None:
        system.redis.prefix = clock.prefix

    system = start({"bank": {"policy": "rate", "rate": {"admit": 3, "every": "1d", "shape": shape}} | CALM},
                   settings=PROMPT, admitters=2, prepare=prepare)
    system.expect(STORE_TROUBLE)
    for _ in range(5):
        system.join("bank")

    def budget() -> str:
        return system.store.command("HGET", system.key("bank", "state"), "budget") or ""

    before = wait_until(budget, PATIENCE, "the budget has begun")
    standby = wait_until(lambda: [program for program in system.of("admitter") if "lease taken" not in program.text()],
                         PATIENCE, "an admitter has the lease")[0]
    holder = next(program for program in system.of("admitter") if program is not standby)
    wait_until(lambda: "ready" in standby.text(), PATIENCE, "the standby is there")
    holder.send(signal.SIGSTOP)
    clock.set(48 * HOUR)
    wait_until(lambda: "lease taken" in standby.text() and budget() != before, PATIENCE, "the standby took a step")
    assert system.numbers("bank")["admitted"] == 0
    before = budget()
    holder.send(signal.SIGCONT)
    standby.send(signal.SIGSTOP)
    clock.set(96 * HOUR)  # before the former holder knows that it lost the lease, or after
    wait_until(lambda: budget() != before, PATIENCE, "the former holder took a step")
    assert system.numbers("bank")["admitted"] == 0
    standby.send(signal.SIGCONT)
