# SPDX-License-Identifier: Apache-2.0
"""Everything on one machine: `tellerline up`."""
from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from families import children, descendants, program_of
from http_client import CONNECTION_TROUBLE, Client, Visitor, ready
from terminal import Terminal
from tellerline import BIN, PATIENCE, TOP, alive, environment, free_port, run, yaml
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
    """`tellerline up` with its embedded Redis, and further options."""

    def __init__(self, directory: Path, config: Path, *options: str, data: str = "data", **env: str) -> None:
        self.log = directory / "up.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", str(BIN / "tellerline"), "up", "--config",
                 str(config), "--data", str(directory / data), *options], cwd=directory,
                env=environment() | env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

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


@pytest.fixture(name="reachable")
def a_reachable_folder():
    """PostgreSQL, which does not run as root, can reach it."""
    folder = Path(tempfile.mkdtemp(prefix="tellerline-up-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def archived(folder: Path) -> list[str]:
    """The status of each place, in the order of the line."""
    done = subprocess.run(["psql", "-XqAt", (folder / "data/postgres.url").read_text().strip(),
                           "-c", "SELECT status FROM tellerline.queue_entries ORDER BY seq"],
                          capture_output=True, text=True, check=False)
    return done.stdout.split()


@pytest.mark.sanitized
def test_up_keeps_an_archive(reachable):
    """In a PostgreSQL of its own, which survives a restart, is started again when it dies, waits for no client at the end,
    and ends with its parent."""
    config, port = write_config(reachable)
    running = Up(reachable, config, "--archive")
    try:
        running.wait_ready(port)
        client = Client(port)
        active, waiting = Visitor(client, "bank").join(), Visitor(client, "bank").join()
        wait_until(active.is_active, PATIENCE, "the first is active")
        wait_until(lambda: archived(reachable) == ["active", "waiting"], PATIENCE, "both are archived")
        (server,) = [pid for pid in children(running.process.pid) if program_of(pid) == "postgres"]
        if os.geteuid() == 0:
            assert Path(f"/proc/{server}").stat().st_uid == pwd.getpwnam("postgres").pw_uid
            assert (reachable / "data").stat().st_mode & 0o777 == 0o710
        os.kill(server, signal.SIGKILL)
        waiting.leave()
        wait_until(lambda: archived(reachable) == ["active", "left"], PATIENCE, "it is there again, and nothing is missing")
        client.close()
        done = run(BIN / "tellerline", "report", "bank", "--data", str(reachable / "data"))
        assert "Arrived 2: admitted 1, gave up 1, still waiting 0." in done.stdout, done.stdout + done.stderr
        with subprocess.Popen(["psql", "-XqAt", (reachable / "data/postgres.url").read_text().strip()],
                              stdin=subprocess.PIPE) as idle:
            running.end(signal.SIGINT)
            idle.stdin.close()
        assert "not cleanly" not in running.text() and not (reachable / "data/postgres.url").exists(), running.text()

        running = Up(reachable, config, "--archive")
        running.wait_ready(port)
        wait_until(lambda: archived(reachable) == ["active", "left"], PATIENCE, "the archive is kept")
        family = descendants(running.process.pid)
        running.process.kill()
        running.process.wait()
        wait_until(lambda: not any(map(alive, family)), PATIENCE, "nothing is left")
    finally:
        running.abandon()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another user")
def test_up_as_root_shows_the_user_of_postgresql_nothing_else(reachable):
    """It reaches its socket, although the data folder has too long a name for one, and none of the files that were there."""
    config, port = write_config(reachable)
    data, runtime = reachable / ("long" * 25), reachable / "runtime"
    for folder in (data, data / "appendonlydir.old", runtime):
        folder.mkdir(mode=0o700)
    (data / "old.rdb").write_text("places")
    (data / "old.rdb").chmod(0o644)
    (data / "appendonlydir.old").chmod(0o755)
    running = Up(reachable, config, "--archive", data=data.name, XDG_RUNTIME_DIR=str(runtime))
    try:
        running.wait_ready(port)
        assert "host=/tmp/tellerline-" in (data / "postgres.url").read_text()
        for name in ("old.rdb", "appendonlydir.old"):
            assert (data / name).stat().st_mode & 0o077 == 0, name
        running.end(signal.SIGTERM)
        # The folder stays open for it when the next start has no archive.
        shutil.rmtree(data / "appendonlydir")
        running = Up(reachable, config, data=data.name, XDG_RUNTIME_DIR=str(runtime))
        running.wait_ready(port)
        assert (data / "appendonlydir").stat().st_mode & 0o077 == 0
        running.end(signal.SIGTERM)
    finally:
        running.abandon()


def test_up_says_what_an_archive_lacks(tmp_path, reachable):
    """PostgreSQL itself, or a folder that its user reaches."""
    up = f"exec {BIN / 'tellerline'} up --archive --data {reachable / 'data'}"
    done = run(Path("/usr/bin/unshare"), "-rm", "sh", "-c", f"mount -t tmpfs none /usr/lib/postgresql && {up}")
    assert done.returncode == 2 and "run `apt-get install postgresql`" in done.stderr, done.stdout + done.stderr
    if os.geteuid() == 0:
        tmp_path.chmod(0o700)
        config, _ = write_config(tmp_path)
        shut = Up(tmp_path, config, "--archive")
        assert shut.process.wait(patient(PATIENCE)) == 2, shut.text()
        assert "the user postgres, as whom PostgreSQL runs, cannot reach " in shut.text(), shut.text()


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
