# SPDX-License-Identifier: Apache-2.0
"""Libraries that are loaded before those of a program (LD_PRELOAD), to fail or to kill it at a chosen call."""
from __future__ import annotations

import mmap
import struct
import subprocess
from pathlib import Path

#: Shared with the programs that are loaded: begin() maps the file that the variable PRELOAD_SHARED names.
_SHARED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static volatile unsigned *shared; /* four numbers */

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("PRELOAD_SHARED");
    int file = name != NULL ? open(name, O_RDWR | O_CLOEXEC) : -1;
    void *memory = file >= 0 ? mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (memory != MAP_FAILED)
        shared = memory;
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (next == NULL) \
        next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
"""

#: Lets allocations fail: one in shared[0] (0: none), and the one at which shared[1] (0: none) has counted down to 0. But
#: not those of pthread_getattr_np, which AddressSanitizer calls at the start of each thread and cannot do without, nor
#: those of redisBufferWrite: hiredis 0.14 crashes when it cannot make a new buffer; nor those of getpwuid_r, in which
#: glibc does.
FAILING = _SHARED + r"""
static unsigned long turns;
static _Thread_local int exempt __attribute__((tls_model("initial-exec")));

static int fails(void)
{
    if (shared == NULL || exempt)
        return 0;
    unsigned one_in = shared[0];
    int now = one_in != 0 && __atomic_add_fetch(&turns, 1, __ATOMIC_RELAXED) % one_in == 0;
    if (shared[1] != 0 && __atomic_sub_fetch(&shared[1], 1, __ATOMIC_RELAXED) == 0)
        now = 1;
    if (now)
        errno = ENOMEM;
    return now;
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
    exempt = 1;
    NEXT(pthread_getattr_np);
    int result = next(thread, attributes);
    exempt = 0;
    return result;
}

int redisBufferWrite(void *context, int *done)
{
    exempt = 1;
    NEXT(redisBufferWrite);
    int result = next(context, done);
    exempt = 0;
    return result;
}

int getpwuid_r(unsigned user, void *entry, char *buffer, size_t size, void **found)
{
    exempt = 1;
    NEXT(getpwuid_r);
    int result = next(user, entry, buffer, size, found);
    exempt = 0;
    return result;
}

void *malloc(size_t size)
{
    NEXT(malloc);
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
    NEXT(realloc);
    return fails() ? NULL : next(old, size);
}
"""

#: Writes one byte too many into memory of its own when the program ends, if shared[0] is 1.
OVERFLOWING = _SHARED + r"""
__attribute__((destructor)) static void overflow(void)
{
    void *(*volatile fill)(void *, int, size_t) = memset;
    volatile size_t size = 8;
    if (shared != NULL && shared[0] == 1)
        fill(malloc(size), 0, size + 1);
}
"""

#: Kills the process at a call on its connection to Redis: shared[0] counts down the calls of kind shared[1], and at 0 the
#: process ends right before the call (shared[2] is 0) or right after it (1). shared[3] becomes 1.
KILLING = _SHARED + r"""
enum { WRITE = 1, READ = 2 };

static int is_redis(int fd)
{
    struct sockaddr_un peer = {0};
    socklen_t length = sizeof(peer);
    int before = errno;
    int found = getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sun_family == AF_UNIX &&
                strstr(peer.sun_path, "redis.sock") != NULL;
    errno = before;
    return found;
}

/* Is this the call? */
static int is_chosen(int fd, unsigned kind)
{
    return shared != NULL && shared[0] != 0 && shared[1] == kind && is_redis(fd) &&
           __atomic_sub_fetch(&shared[0], 1, __ATOMIC_SEQ_CST) == 0;
}

static void end(void)
{
    shared[3] = 1;
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

#define AROUND(kind, call) \
    int chosen = is_chosen(fd, kind); \
    if (chosen && shared[2] == 0) \
        end(); \
    ssize_t result = call; \
    if (chosen) \
        end(); \
    return result

ssize_t write(int fd, const void *bytes, size_t length)
{
    NEXT(write);
    AROUND(WRITE, next(fd, bytes, length));
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    NEXT(send);
    AROUND(WRITE, next(fd, bytes, length, flags));
}

ssize_t read(int fd, void *bytes, size_t length)
{
    NEXT(read);
    AROUND(READ, next(fd, bytes, length));
}

ssize_t recv(int fd, void *bytes, size_t length, int flags)
{
    NEXT(recv);
    AROUND(READ, next(fd, bytes, length, flags));
}
"""


class Preload:
    """One such library, built in this folder, and the numbers that it shares with the test."""

    def __init__(self, folder: Path, source: str) -> None:
        library, shared = folder / "preload.so", folder / "preload.shared"
        (folder / "preload.c").write_text(source)
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", str(library), str(folder / "preload.c")], check=True)
        shared.write_bytes(bytes(16))
        self.env = {"LD_PRELOAD": str(library), "PRELOAD_SHARED": str(shared),
                    "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
        #: Before a command line.
        self.prefix = ["env", *(f"{name}={value}" for name, value in self.env.items())]
        with shared.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 16)

    def set(self, *numbers: int) -> None:
        """The first number is written last: it starts what the others describe."""
        for at, number in reversed(list(enumerate(numbers))):
            struct.pack_into("=I", self._memory, 4 * at, number)

    def get(self, at: int) -> int:
        return struct.unpack_from("=I", self._memory, 4 * at)[0]
