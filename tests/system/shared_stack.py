# SPDX-License-Identifier: Apache-2.0
"""One stack of programs for many tests of a file, and queues of its own for each test.

To start and stop a stack takes longer than most tests do with it. A test that leaves all as it was, but for its own
queues, uses `share` instead of `start`. Its file has the mark `together`, so that one process runs all of it.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from http_client import Client
from tellerline import CALM, Program, System
from waiting import PATIENCE, wait_until

#: What a queue is like of which a test says nothing more.
QUEUE = CALM | {"capacity": 1}
#: A capacity that no test has, to see that a worker knows a change.
MARK = 77
#: The queues of a stack. They are in its configuration file and served from its start: one made later takes a second.
POOL = 24


def words(settings: dict[str, Any], prefix: str = "") -> list[str]:
    """The settings of a queue as `tellerline queue set` takes them."""
    found = []
    for name, value in settings.items():
        if isinstance(value, dict):
            found += words(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            found.append(f"{prefix}{name}={','.join(map(str, value))}")
        else:
            found.append(f"{prefix}{name}={str(value).lower() if isinstance(value, bool) else value}")
    return found


class SharedSystem(System):
    """A System that several tests use, one after the other. After each test it is checked; the programs run on."""

    def __init__(self, queues: dict[str, dict[str, Any]], counts: dict[str, int], settings: dict[str, Any],
                 redis: dict[str, str]) -> None:
        super().__init__(queues, counts, settings, redis)
        self._seen: dict[str, int] = {}  # how much of each log is checked

    def check_test(self, queues: list[str]) -> None:
        """What must hold after each test: all programs are ready, also if Redis was away, there is no finding about its
        queues, and no unexpected log line."""
        for program in self.programs:
            program.wait_ready()
        for name in queues:
            audit = self.ctl("audit", "--queue", name)
            assert audit.returncode == 0, f"audit of {name}:\n{audit.stdout}{audit.stderr}"
        for program in self.programs:
            self._check_log(program)
        self._expected.clear()
        for client in self._clients:
            client.close()
        self._clients.clear()

    def _check_log(self, program: Program, since: int = 0) -> None:
        """Only of what it has logged since the last check."""
        since = self._seen.get(program.name, 0)
        self._seen[program.name] = len(program.text())
        super()._check_log(program, since)


class Stack(SharedSystem):
    """A shared system with queues that no test has had yet."""

    def __init__(self, queue: dict[str, Any], counts: dict[str, int], settings: dict[str, Any],
                 redis: dict[str, str]) -> None:
        self._queue = QUEUE | queue
        self._free = [f"queue-{i}" for i in range(POOL, 0, -1)]
        self._used: list[str] = []
        super().__init__(dict.fromkeys(self._free, self._queue), counts, settings, redis)

    @property
    def left(self) -> int:
        """How many queues no test has had."""
        return len(self._free)

    def queue(self, **settings: Any) -> str:
        """A queue that no other test has, by its name. Every worker knows its settings."""
        name = self._free.pop()
        self._used.append(name)
        changed = {key: value for key, value in settings.items() if self._queue.get(key) != value}
        capacity = changed.get("capacity", self._queue["capacity"])
        if changed and "capacity" not in changed and isinstance(capacity, int):
            # One change is one event. So who shows this capacity knows the rest, too.
            self._set(name, changed | {"capacity": MARK})
            changed = {"capacity": capacity}
        if changed:
            self._set(name, changed)
        return name

    def _set(self, queue: str, settings: dict[str, Any]) -> None:
        self.set(queue, *words(settings))
        wanted = settings.get("capacity")
        for worker in self.of("worker") if isinstance(wanted, int) else []:
            client = Client(worker.http_port)
            wait_until(lambda client=client: client.get(f"/v1/queues/{queue}").json.get("capacity") in (wanted, None),
                       PATIENCE, f"{worker.name} knows the settings of {queue}")
            client.close()

    def forget(self, queue: str) -> None:
        """The test has deleted or broken it."""
        self._used.remove(queue)

    def check(self) -> None:
        """After a test."""
        used, self._used = self._used, []
        self.check_test(used)


class Stacks:
    """The stacks of one file, by the settings that they were started with."""

    def __init__(self) -> None:
        self._running: dict[str, Stack] = {}
        self._spent: list[Stack] = []

    def get(self, queue: dict[str, Any], counts: dict[str, int], settings: dict[str, Any], redis: dict[str, str],
            queues: int) -> Stack:
        key = json.dumps([queue, counts, settings, redis], sort_keys=True)
        stack = self._running.get(key)
        if stack is not None and stack.left < queues:
            self._spent.append(self._running.pop(key))
            stack = None
        if stack is None:
            stack = self._running[key] = Stack(queue, counts, settings, redis)
            stack.start()
        return stack

    def discard(self, stack: Stack) -> None:
        """After a failed test: the next one gets another stack. The files of this one stay."""
        self._running = {key: one for key, one in self._running.items() if one is not stack}
        for program in stack.programs:
            print(f"---- {program.name} ({program.log})\n{program.tail()}")
        stack.close(keep=True)

    def finish(self) -> None:
        """Checks what must hold of all queues, and that each program ends well."""
        stacks = [*self._running.values(), *self._spent]
        fine = False
        try:
            for stack in stacks:
                stack.finish()
            fine = True
        finally:
            for stack in stacks:
                stack.close(keep=not fine)


@pytest.fixture(scope="module")
def stacks() -> Iterator[Stacks]:
    kept = Stacks()
    yield kept
    kept.finish()


@pytest.fixture
def share(request: pytest.FixtureRequest, stacks: Stacks) -> Iterator[Callable[..., Stack]]:  # noqa: F811
    """A running stack of this file: the first test that asks for one of this kind starts it. Checked after each test.

    stack = share(workers=1, dispatchers=1, admitters=1, expirers=1, notifiers=0, settings={"http": {...}},
                  redis={"appendfsync": "always"}, queue={...}, queues=5)
    name = stack.queue(capacity=2)

    queue: what all queues of the stack have beside CALM and one place at a time. queues: how many the test takes.
    """
    assert request.node.get_closest_marker("together"), "a file with a shared stack has the mark `together`"
    used: list[Stack] = []
    failed = request.session.testsfailed

    def get(workers: int = 1, dispatchers: int = 1, admitters: int = 1, expirers: int = 1, notifiers: int = 0,
            settings: dict[str, Any] | None = None, redis: dict[str, str] | None = None,
            queue: dict[str, Any] | None = None, queues: int = 5) -> Stack:
        counts = {"worker": workers, "dispatcher": dispatchers, "admitter": admitters,
                  "expirer": expirers, "notifier": notifiers}
        stack = stacks.get(queue or {}, counts, settings or {}, redis or {}, queues)
        if stack not in used:
            used.append(stack)
        return stack

    yield get

    fine = False
    try:
        if request.session.testsfailed == failed:
            for stack in used:
                stack.check()
            fine = True
    finally:
        for stack in used if not fine else []:
            stacks.discard(stack)
