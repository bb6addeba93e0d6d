# SPDX-License-Identifier: Apache-2.0
"""Everything on one machine: `tellerline up`."""
from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from families import children, descendants, program_of
from http_client import CONNECTION_TROUBLE, Client, Visitor, ready
from terminal import Terminal
from tellerline import BIN, PATIENCE, TOP, alive, environment, free_port, yaml
from waiting import patient, wait_until

CROWD = TOP / "deploy" / "demo" / "crowd.py"
#: What the crowd writes before it writes its line again.
UPDATE = "\r\x1b[2K"


def write_config(directory: Path) -> tuple[Path, int]:
    port = free_port()
    config = directory / "up.yaml"
    config.write_text(yaml({
        "http": {"listen": f"127.0.0.1:{port}"},
        "admin": {role: f"127.0.0.1:{free_port()}"
                  for role in ("worker", "dispatcher", "admitter", "expirer", "notifier", "archiver")},
        "secrets": {"ticket_keys": str(directory / "ticket.keys")},
        "queues": {"bank": {"capacity": 1}},
    }))
    return config, port


class Up:
    """`tellerline up` with its embedded Redis."""

    def __init__(self, directory: Path, config: Path) -> None:
        self.log = directory / "up.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", str(BIN / "tellerline"), "up", "--config",
                 str(config), "--data", str(directory / "data")], cwd=directory,
                env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_ready(self, port: int) -> None:
        def check() -> bool:
            assert self.process.poll() is None, self.text()
            return ready(port)
        wait_until(check, PATIENCE, "everything is up")

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def end(self, number: signal.Signals) -> None:
        """Stops it. No process of it may remain."""
        family = descendants(self.process.pid)
        assert len(family) >= 6, f"Redis, four programs, a worker's child: {family}"
        self.process.send_signal(number)
        try:
            status = self.process.wait(patient(60))
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert status == 0, self.text()[-3000:]
        left = [pid for pid in family if alive(pid)]
        assert not left, f"still there: {left}\n{self.text()[-3000:]}"

    def abandon(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def up(tmp_path) -> Callable[[Path], Up]:
    started: list[Up] = []

    def start_up(config: Path) -> Up:
        started.append(Up(tmp_path, config))
        return started[-1]

    yield start_up
    for one in started:
        one.abandon()


@pytest.mark.sanitized
def test_up_serves_and_stops_cleanly(tmp_path, up):
    config, port = write_config(tmp_path)
    first = up(config)
    first.wait_ready(port)
    client = Client(port)
    active, waiting = Visitor(client, "bank").join(), Visitor(client, "bank").join()
    wait_until(active.is_active, PATIENCE, "the first is active")
    assert waiting.view["position"] == 1
    client.close()

    second = up(config)
    assert second.process.wait(patient(PATIENCE)) != 0, "a second start on the same data folder must fail"
    first.end(signal.SIGINT)
    text = first.text()
    for trouble in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "level=error",
                    "level=fatal"):
        assert trouble not in text, text
    assert "queue bank has no target_url" in text, text

    # The places survive a restart.
    third = up(config)
    third.wait_ready(port)
    client = Client(port)
    for visitor, status in ((active, "active"), (waiting, "waiting")):
        wait_until(lambda v=visitor, s=status: v.status(client)["status"] == s, PATIENCE, status)
    client.close()
    third.end(signal.SIGTERM)


def test_up_restarts_a_program_that_dies(tmp_path, up):
    config, port = write_config(tmp_path)
    running = up(config)
    running.wait_ready(port)
    client = Client(port)
    (dispatcher,) = [pid for pid in descendants(running.process.pid) if program_of(pid) == "tellerline-dispatcher"]
    os.kill(dispatcher, signal.SIGKILL)
    visitor = Visitor(client, "bank")

    def joined() -> bool:
        answer = client.post("/v1/queues/bank/join", ticket=visitor.ticket)
        if answer.status in (200, 202):
            visitor.ticket = answer.json["ticket"]
        return answer.status == 200

    wait_until(joined, PATIENCE, "a join after the restart")
    client.close()
    running.end(signal.SIGTERM)


def workers(up: Up) -> list[int]:
    """The worker that `up` started, without its children."""
    return [pid for pid in children(up.process.pid) if program_of(pid) == "tellerline-worker"]


def test_up_keeps_the_port_open(tmp_path, up):
    """Clients that connect all the time while the worker is killed and started again are never refused: they wait."""
    config, port = write_config(tmp_path)
    running = up(config)
    running.wait_ready(port)
    answered, broken, refused = [], [], []
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            client = Client(port, timeout=patient(PATIENCE))
            try:
                client.get("/livez")
                answered.append(time.monotonic())
            except ConnectionRefusedError as error:
                refused.append(error)
            except CONNECTION_TROUBLE as error:  # the killed worker had accepted it
                broken.append(error)
            finally:
                client.close()

    clients = [threading.Thread(target=come_and_go) for _ in range(4)]
    for client in clients:
        client.start()
    try:
        for _ in range(3):
            (worker,) = workers(running)
            for pid in descendants(worker) + [worker]:
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda old=worker: workers(running) not in ([], [old]), PATIENCE, "a new worker runs")
            wait_until(lambda now=time.monotonic(): answered and answered[-1] > now, PATIENCE, "it answers")
    finally:
        over.set()
        for client in clients:
            client.join()
    assert not refused, f"{len(refused)} refused, {len(answered)} answered"
    running.end(signal.SIGTERM)
    with pytest.raises(ConnectionRefusedError):
        Client(port).get("/livez")


def test_crowd_updates_one_line_of_a_terminal(tmp_path):
    """Where its output is a terminal: the last line is written again, and cut at the width."""
    config, port = write_config(tmp_path)
    up = Up(tmp_path, config)
    try:
        up.wait_ready(port)
        crowd = Terminal(str(CROWD), "--url", f"http://127.0.0.1:{port}", "--queue", "bank", "--line", "5-10",
                         columns=60)
        crowd.expect(" wait, 1 are in")
        seen = crowd.text.count(UPDATE)
        crowd.wait_for(lambda: crowd.text.count(UPDATE) >= seen + 2, "it goes on")
        crowd.interrupt()
        assert crowd.end() == 0, crowd.text
        up.end(signal.SIGTERM)
    finally:
        up.abandon()
    first, *updates = crowd.text.split(UPDATE)
    assert first == "", crowd.text
    assert all(len(update) < 60 and "\n" not in update for update in updates[:-1]), crowd.text
    assert updates[-1].endswith("\r\n") and re.search(r" wait, [01] are in", updates[-1]), crowd.text
