# SPDX-License-Identifier: Apache-2.0
"""Rehearsals that run beside each other on one stack of programs, each of a queue of its own, judged by several tests.

A rehearsal takes its seconds whatever the machine does: the sale's own, and those in which the programs learn of its
scratch queue and let go of it. So all that the chosen tests ask for are begun at once.
"""
from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tellerline import BIN, PATIENCE, System, environment
from waiting import patient, wait_until

#: Sixty times as fast these are 10 s and more, so that a busy machine loses nobody.
SALE = {"capacity": 20, "session_ttl": "30m", "claim_ttl": "10m", "waiting_ttl": "30m",
        "target_url": "https://shop.example/checkout"}
FAST = ["--speed", "60"]
API_KEY = "rehearsal " + "k" * 40 + "\n"


def target(system: System) -> list[str]:
    return ["--target", f"http://127.0.0.1:{system.of('worker')[0].http_port}"]


def left(system: System) -> list[str]:
    """What rehearsals have left in Redis, but for what expires: the mark and the record of a deletion, presence,
    and used invites."""
    store = system.store
    keys = [key for key in store.command("KEYS", "*rehearsal-*")
            if not (re.search(r"\}:(retired|changes|seen:[\d:]+|spent:.+)$", key) and store.command("PTTL", key) > 0)]
    return keys + [
        name for name in system.store.command("SMEMBERS", "tl:queues") if name.startswith("rehearsal-")]


def numbers(system: System, queue: str) -> dict[str, int]:
    """The counters that a rehearsal might touch. A busy machine's dispatcher may take its lease again meanwhile."""
    return {name: value for name, value in system.numbers(queue).items() if name != "fence"}


class Running:
    """A rehearsal in the background."""

    def __init__(self, system: System, queue: str, *args: str, config: Path | None = None) -> None:
        self.system, self.queue = system, queue
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [str(BIN / "tellerline"), "rehearse", queue, *target(system), *args,
             "--config", str(config or system.config)],
            env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @property
    def scratch(self) -> str:
        return next((name for name in self.system.store.command("SMEMBERS", "tl:queues")
                     if name.startswith(f"rehearsal-{self.queue}-")), "")

    def wait_active(self, n: int) -> None:
        wait_until(lambda: self.scratch and self.system.active(self.scratch) >= n, PATIENCE, f"{n} are active")

    def end(self, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        try:
            out, err = self.process.communicate(timeout=patient(seconds))
        finally:
            self.process.kill()
        assert "Sanitizer" not in err, err
        return subprocess.CompletedProcess([], self.process.returncode, out, err)


@dataclass
class Rehearsed:
    """What became of one: its answer, and whatever else `meanwhile` noted."""
    done: subprocess.CompletedProcess[str]
    queue: str
    most_ms: float  # of the sale: no wait in it can be longer
    noted: Any
    touched: bool  # has it changed the queue that it rehearsed?
    left: list[str] = field(default_factory=list)

    @property
    def report(self) -> dict[str, Any]:
        assert self.done.stdout, self.done
        return json.loads(self.done.stdout)


@pytest.fixture(name="run")
def judged(rehearsed: dict[str, Rehearsed], crowd: str) -> Rehearsed:
    """The one that a test judges. None leaves anything behind, and none touches the queue that it rehearses."""
    one = rehearsed[crowd]
    assert one.left == [] and not one.touched, one
    return one


@dataclass
class Crowd:
    """A rehearsal to run. meanwhile: is called right after the start, and may wait for things and act."""
    args: list[str]
    queue: dict[str, Any] = field(default_factory=dict)
    meanwhile: Callable[[Running], Any] = lambda running: None
    config: Callable[[System, str], Path] | None = None  # another file for the command
    named: str = ""  # the queue in that file, if it is not one of the stack's


def wanted(request: pytest.FixtureRequest) -> set[str]:
    """The values of the parameter `crowd` of the chosen tests of this file."""
    specs = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    return {spec.params["crowd"] for spec in specs if spec is not None and "crowd" in spec.params}


def run_all(system: System, take: Callable[..., str], crowds: dict[str, Crowd]) -> dict[str, Rehearsed]:
    """Runs all of them at once. take(**settings): the name of a queue with these settings."""
    running: dict[str, Running] = {}
    before: dict[str, tuple[str, dict[str, int]]] = {}
    try:
        for name, crowd in crowds.items():
            queue = take(**crowd.queue)
            before[name] = queue, numbers(system, queue)
            running[name] = Running(system, crowd.named or queue, *crowd.args,
                                    config=crowd.config(system, queue) if crowd.config else None)
        notes = {name: crowd.meanwhile(running[name]) for name, crowd in crowds.items()}
        found = {}
        for name, one in running.items():
            done = one.end()
            speed = re.search(r"--speed (\d+)", " ".join(crowds[name].args))
            most_ms = (time.monotonic() - one.began) * 1000 * int(speed[1] if speed else 1)
            queue, old = before[name]
            found[name] = Rehearsed(done, one.queue, most_ms, notes[name], numbers(system, queue) != old)
    finally:
        for one in running.values():
            one.process.kill()
    everything = left(system)
    for one in found.values():
        one.left = [name for name in everything if f"rehearsal-{one.queue}-" in name]
    return found


def interrupt(number: signal.Signals, active: int) -> Callable[[Running], None]:
    def act(running: Running) -> None:
        running.wait_active(active)
        running.process.send_signal(number)
    return act
