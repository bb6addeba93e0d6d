# SPDX-License-Identifier: Apache-2.0
"""Programs without descriptors, memory or a reader of their log, and Redis without room on its disk."""
from __future__ import annotations

import os
import random
import re
import socket
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors import Actor
from faults import STALENESS, conclude, end_visits
from history import History
from http_client import CONNECTION_TROUBLE, Visitor
from preload import FAILING, Preload
from tellerline import CALM, PATIENCE, Program, System, environment
from test_store_trouble import PROMPT, STORE_TROUBLE, joins_again, line_of, places_kept, refused
from waiting import patient, wait_until

pytestmark = pytest.mark.sanitized


#: Of sessions that end in a test: long enough to be seen on a slow machine.
TTL = f"{patient(2):.0f}s"


def processor_seconds(program: Program) -> float:
    """What it and its children used so far."""
    total = 0
    for pid in [program.pid, *program.children()]:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def test_a_worker_without_descriptors_goes_on(start):
    """The limit of connections follows that of descriptors; those with a request are served; nothing spins."""
    def prepare(system: System) -> None:
        system.of("worker")[0].prefix = ["prlimit", "--nofile=96:96"]

    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT | {"http": {"max_connections": 1000}},
                   prepare=prepare)
    visitors = [system.join("bank") for _ in range(3)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is active")
    port = system.of("worker")[0].http_port
    crowd = []
    try:
        for _ in range(150):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
            crowd.append(one)
        worker = system.of("worker")[0]
        wait_until(lambda: "connections (http.max_connections) are in use" in worker.text(), PATIENCE, "it is full")
        assert "the limit of open files is 96" in worker.text()
        visitors[2].client.close()  # without a request it was closed to make room
        assert visitors[2].status()["position"] == 2
        used, began = processor_seconds(worker), time.monotonic()
        wait_until(lambda: time.monotonic() > began + 2, PATIENCE, "some time passes")
        share = (processor_seconds(worker) - used) / (time.monotonic() - began)
        assert share < 0.5, f"it spins: {share:.0%} of a processor"
    finally:
        for one in crowd:
            one.close()
    late = wait_until(lambda: system.join("bank"), PATIENCE, "a newcomer is served", again_on=OSError)
    assert late.status()["position"] >= 3  # its earlier tries may have joined, too


@pytest.mark.parametrize("role", ["dispatcher", "admitter", "expirer"])
def test_a_role_without_descriptors_goes_on(start, role):
    """Connections to its admin listener take all there are: it does its work, and nothing spins."""
    def prepare(system: System) -> None:
        system.of(role)[0].prefix = ["prlimit", "--nofile=40:40"]

    system = start({"bank": CALM | {"capacity": 1, "session_ttl": TTL, "claim_ttl": TTL}}, settings=PROMPT, prepare=prepare)
    system.expect(r"descriptor|connections|Too many open files")
    visitors = [system.join("bank") for _ in range(3)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is active")
    program = system.of(role)[0]
    crowd = []
    try:
        for _ in range(60):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", program.admin_port))
            crowd.append(one)
        wait_until(lambda: open_files(program) > 35, PATIENCE, "it runs out of descriptors")
        used, began = processor_seconds(program), time.monotonic()
        visitors.append(system.join("bank"))
        for visitor in visitors[1:]:
            wait_until(visitor.is_active, PATIENCE, "the session before ends, and the next one is called")
        wait_until(lambda: time.monotonic() > began + 2, PATIENCE, "some time passes")
        share = (processor_seconds(program) - used) / (time.monotonic() - began)
        assert share < 0.5, f"it spins: {share:.0%} of a processor"
    finally:
        for one in crowd:
            one.close()
    program.wait_ready()


def open_files(program: Program) -> int:
    return max(len(os.listdir(f"/proc/{pid}/fd")) for pid in [program.pid, *program.children()])


@pytest.mark.parametrize("role", ["worker", "dispatcher", "admitter", "expirer"])
def test_a_log_pipe_that_is_closed_stops_no_program(start, role):
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT)
    program = system.of(role)[0]
    program.stop()
    reading, writing = os.pipe()
    program.start(log=writing)
    os.close(writing)
    program.wait_ready()
    os.close(reading)
    system.expect(STORE_TROUBLE)
    first = system.join("bank")
    wait_until(first.is_active, PATIENCE, "the first is active")
    system.store.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")  # which is worth a line in the log
    joins_again(system, system.client())
    visitors = [first, system.join("bank")]
    assert visitors[0].complete()["status"] == "completed"
    wait_until(lambda: system.numbers("bank")["admitted"] == 2, PATIENCE, "the next one is called")
    assert visitors[1].status()["position"] >= 1
    assert program.running


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], check=False, capture_output=True)
    if done.returncode != 0:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_the_disk_of_redis_is_full(start, small_disk):
    """Nothing is taken that could not be kept; positions go on; with room again, joins go on."""
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT, redis={"dir": str(small_disk)})
    system.expect(STORE_TROUBLE)
    visitors = line_of(system, 5)
    ballast = small_disk / "ballast"
    file = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(file, bytes(4096))
    except OSError:
        os.close(file)
    client = system.client()

    def nothing_taken() -> bool:
        return client.post("/v1/queues/bank/join").status == 503

    wait_until(nothing_taken, PATIENCE, "Redis notices that its disk is full")
    joined = system.numbers("bank")["joined"]
    refused(client)
    assert visitors[3].status()["position"] == 3
    assert system.numbers("bank")["joined"] == joined
    ballast.unlink()
    joins_again(system, client)
    places_kept(visitors)


def test_a_worker_whose_allocations_fail(start, tmp_path):
    """What it accepts is kept; what it cannot do it refuses, or ends and is started again."""
    failing = Preload(tmp_path, FAILING)

    def prepare(system: System) -> None:
        system.of("worker")[0].prefix = failing.prefix

    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT, prepare=prepare)
    system.expect(r"role=worker")
    worker = system.of("worker")[0]
    kept = [system.join("bank") for _ in range(3)]
    wait_until(kept[0].is_active, PATIENCE, "the first is active")
    answers = []
    for one_in in (200, 50, 20):
        failing.set(one_in)
        for _ in range(60):
            try:
                answer = system.client(timeout=patient(2)).post("/v1/queues/bank/join")
            except CONNECTION_TROUBLE as trouble:
                answers.append(0)
                if isinstance(trouble, TimeoutError):  # a process that ended cannot start while so many fail
                    failing.set(0)
                    worker.wait_ready()
                    failing.set(one_in)
                continue
            answers.append(answer.status)
            if answer.status in (200, 202):
                kept.append(Visitor(system.client(), "bank", answer.json["ticket"]))
        failing.set(0)
        worker.wait_ready()
    print(sorted((status, answers.count(status)) for status in set(answers)))
    places = []
    for visitor in kept[1:]:
        view = wait_until(lambda v=visitor: (view := v.status()).get("position") and view, PATIENCE, "in line",
                          again_on=CONNECTION_TROUBLE)
        places.append(view["position"])
    assert sorted(places) == list(range(1, len(kept))) or len(set(places)) == len(places), places
    # Libraries abort when they cannot do without memory: that is signal 6.
    assert not re.search(r"ERROR: AddressSanitizer|runtime error|ended by signal (?!6 )", worker.text())


@pytest.mark.parametrize("role", ["dispatcher", "admitter", "expirer"])
def test_a_role_whose_allocations_fail(start, tmp_path, role):
    """It says so and tries again, or ends and is started again; nothing that was accepted is lost or done wrong."""
    failing = Preload(tmp_path, FAILING)

    def prepare(system: System) -> None:
        system.of(role)[0].prefix = failing.prefix

    queue = {"capacity": 4, "session_ttl": "60s", "claim_ttl": "20s", "waiting_ttl": "60s"}
    system = start({"door": queue}, settings={"http": {"join_wait": "1s"}}, prepare=prepare)
    system.expect(f"role={role}|no memory|out of memory")
    program = system.of(role)[0]
    history, stop = History(), threading.Event()
    ports = [worker.http_port for worker in system.of("worker")]
    actors = [Actor(i, 1, ports, "door", history, stop, float("inf")) for i in range(6)]
    ends = []
    for actor in actors:
        actor.start()
    try:
        for one_in in (200, 50, 20, 5):
            failing.set(one_in)
            over, enough = time.monotonic() + 2.5, len(history.stays) + 8
            while time.monotonic() < over and len(history.stays) < enough:
                status = program.status()
                if status is not None:  # it cannot start while so many fail
                    ends.append(status)
                    failing.set(0)
                    program.kill()
                    program.start()
                    program.wait_ready()
                    failing.set(one_in)
                time.sleep(0.01)
        failing.set(0)

        def is_up() -> bool:  # what failed just before may still end it
            if program.status() is None:
                return program.ready()
            ends.append(program.status())
            program.kill()
            program.start()
            return False

        wait_until(is_up, PATIENCE, "it is up again", again_on=AssertionError)
    finally:
        failing.set(0)
        end_visits(stop, actors, history)
    conclude(system, "door", 4, actors, history, STALENESS, f"it ended with {ends}")
    print(f"{role}: ended with {ends}; {len(history.stays)} visitors; {program.text().count('level=warn')} warnings")
    assert {"no memory", "memory"} & set(re.findall(r"no memory|memory", program.text())) or ends, "nothing failed"
    assert set(ends) <= {1, 2, -signal.SIGABRT}, f"libraries abort when they cannot do without memory; else it exits: {ends}"


#: More allocations than a command makes, and how many of them fail in turn.
MANY, SAMPLE = 1_000_000, 20
#: What an operator asks, and a part of the right answer.
ASKED = [(["queue", "list"], "door"), (["top", "--count", "1"], "door"), (["audit"], "door: ok (waiting 2, active 1)"),
         (["queue", "recover", "door", "--wait", "1s"], "no one is admitted"), (["queue", "set", "door", "mode=paused"], "mode=paused"),
         (["queue", "notice", "door", "en=Soon", "ko=곧"], "notice set"), (["queue", "show", "door"], "SETTING"), (["check"], "ok; 1 queue"),
         (["diff"], "nothing differs"), (["block", "list"], "no prefix is blocked")]


@pytest.mark.parametrize("command, right", ASKED, ids=lambda value: value[0] if isinstance(value, list) else "")
def test_a_command_whose_allocations_fail(start, tmp_path, command, right):
    """Each allocation in turn, as far as a sample goes: the right answer, or an error and its status. Never half of one."""
    system = start({"door": {"capacity": 1} | CALM})
    for _ in range(3):
        system.join("door")
    wait_until(lambda: system.active("door") == 1, PATIENCE, "one is active")
    failing = Preload(tmp_path, FAILING)
    arguments = [str(system.folder / "tellerline"), *command, "--config", str(system.config)]

    def ask(nth: int) -> subprocess.CompletedProcess[str]:
        failing.set(0, nth)
        return subprocess.run(arguments, env=environment(failing.env), capture_output=True, text=True, timeout=patient(PATIENCE),
                              stdin=subprocess.DEVNULL, check=False)

    failing.set(0, MANY)
    sound = subprocess.run(arguments, env=environment(failing.env), capture_output=True, text=True, timeout=patient(PATIENCE),
                           stdin=subprocess.DEVNULL, check=False)
    total = MANY - failing.get(1)
    assert sound.returncode == 0 and right in sound.stdout, sound.stdout + sound.stderr
    seed = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    sample = sorted(random.Random(seed).sample(range(1, total + 1), min(SAMPLE, total)))
    failed = 0
    for nth in sample:
        done = ask(nth)
        what = f"allocation {nth} of {total}, TELLERLINE_SEED={seed}: {done.returncode} {done.stdout}{done.stderr}"
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, what
        if done.returncode == 0:
            assert right in done.stdout, what
            continue
        failed += 1
        if done.returncode != -signal.SIGABRT:  # hiredis 0.14 aborts where it cannot make a connection
            assert done.returncode == 2 and done.stderr.strip(), what
    print(f"{command[0]}: {failed} of {len(sample)} of {total} allocations failed it")
