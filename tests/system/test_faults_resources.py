"""Programs without descriptors, memory or a reader of their log, and Redis without room on its disk."""
from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from http_client import CONNECTION_TROUBLE, Visitor
from tellerline import CALM, PATIENCE, Program, System
from test_store_trouble import PROMPT, STORE_TROUBLE, joins_again, line_of, places_kept, refused
from waiting import wait_until


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

    system = start({"bank": CALM | {"capacity": 1, "session_ttl": "2s", "claim_ttl": "2s"}}, settings=PROMPT, prepare=prepare)
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


#: Lets allocations fail: one in so many as the first number in a file says (0: none), of the whole process. But not those
#: of pthread_getattr_np, which AddressSanitizer calls at the start of each thread and cannot do without, nor those of
#: redisBufferWrite: hiredis 0.14 crashes when it cannot make a new buffer.
FAILING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

static volatile unsigned char *one_in;
static unsigned long turns;
static _Thread_local int exempt __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("FAILING");
    int file = name != NULL ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *memory = file >= 0 ? mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    if (memory != MAP_FAILED)
        one_in = memory;
}

static int fails(void)
{
    unsigned n = one_in != NULL ? *one_in : 0;
    if (n == 0 || exempt || __atomic_add_fetch(&turns, 1, __ATOMIC_RELAXED) % n != 0)
        return 0;
    errno = ENOMEM;
    return 1;
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    static int (*next)(pthread_t, pthread_attr_t *);
    exempt = 1;
    if (next == NULL)
        next = (int (*)(pthread_t, pthread_attr_t *))dlsym(RTLD_NEXT, "pthread_getattr_np");
    int result = next(thread, attributes);
    exempt = 0;
    return result;
}

int redisBufferWrite(void *context, int *done)
{
    static int (*next)(void *, int *);
    exempt = 1;
    if (next == NULL)
        next = (int (*)(void *, int *))dlsym(RTLD_NEXT, "redisBufferWrite");
    int result = next(context, done);
    exempt = 0;
    return result;
}

void *malloc(size_t size)
{
    static void *(*next)(size_t);
    if (next == NULL)
        next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    return fails() ? NULL : next(size);
}

void *calloc(size_t n, size_t size)
{
    static void *(*next)(size_t, size_t);
    static char early[4096]; /* for dlsym itself */
    static int looks;
    if (next == NULL) {
        if (looks)
            return early;
        looks = 1;
        next = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    }
    return fails() ? NULL : next(n, size);
}

void *realloc(void *old, size_t size)
{
    static void *(*next)(void *, size_t);
    if (next == NULL)
        next = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    return fails() ? NULL : next(old, size);
}
"""


def test_a_worker_whose_allocations_fail(start, tmp_path):
    """What it accepts is kept; what it cannot do it refuses, or ends and is started again."""
    rate, library = tmp_path / "rate", tmp_path / "failing.so"
    rate.write_bytes(b"\0")
    (tmp_path / "failing.c").write_text(FAILING)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", str(library), str(tmp_path / "failing.c")], check=True)

    def prepare(system: System) -> None:
        system.of("worker")[0].prefix = ["env", f"LD_PRELOAD={library}", f"FAILING={rate}",
                                         "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"]

    def set_rate(one_in: int) -> None:
        with rate.open("r+b") as file:
            file.write(bytes([one_in]))

    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT, prepare=prepare)
    system.expect(r"role=worker")
    worker = system.of("worker")[0]
    kept = [system.join("bank") for _ in range(3)]
    wait_until(kept[0].is_active, PATIENCE, "the first is active")
    answers = []
    for one_in in (200, 50, 20):
        set_rate(one_in)
        for _ in range(60):
            try:
                answer = system.client(timeout=2).post("/v1/queues/bank/join")
            except CONNECTION_TROUBLE as trouble:
                answers.append(0)
                if isinstance(trouble, TimeoutError):  # a process that ended cannot start while so many fail
                    set_rate(0)
                    worker.wait_ready()
                    set_rate(one_in)
                continue
            answers.append(answer.status)
            if answer.status in (200, 202):
                kept.append(Visitor(system.client(), "bank", answer.json["ticket"]))
        set_rate(0)
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
