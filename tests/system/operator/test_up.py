"""Everything on one machine: `tellerline up`, and the quickstart on a copy of the sources."""
from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from http_client import CONNECTION_TROUBLE, Client, Visitor
from terminal import Terminal
from tellerline import BIN, PATIENCE, TOP, alive, environment, free_port, yaml
from waiting import patient, wait_until

CROWD = TOP / "deploy" / "demo" / "crowd.py"
#: What the crowd writes before it writes its line again.
UPDATE = "\r\x1b[2K"


def descendants(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in path.read_text().split():
                found += [int(child), *descendants(int(child))]
        except OSError:
            continue  # it has just ended
    return found


def program_of(pid: int) -> str:
    """The executable of a process. Empty if the process has just ended."""
    try:
        return Path(f"/proc/{pid}/exe").resolve(strict=True).name
    except OSError:
        return ""


def command_line(pid: int) -> list[str]:
    """Empty if the process has just ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


def ready(port: int) -> bool:
    client = Client(port)
    try:
        return client.get("/readyz").status == 200
    except CONNECTION_TROUBLE:
        return False
    finally:
        client.close()


def write_config(directory: Path) -> tuple[Path, int]:
    port = free_port()
    config = directory / "up.yaml"
    config.write_text(yaml({
        "http": {"listen": f"127.0.0.1:{port}"},
        "admin": {role: f"127.0.0.1:{free_port()}"
                  for role in ("worker", "dispatcher", "admitter", "expirer", "notifier")},
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
    return [pid for pid in descendants(up.process.pid) if program_of(pid) == "tellerline-worker" and
            int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]) == up.process.pid]


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


def copy_sources(target: Path) -> None:
    """The files of a clone: tracked and new files, without those that git ignores."""
    listed = subprocess.run(["git", "-C", str(TOP), "ls-files", "-co", "--exclude-standard", "-z"],
                            capture_output=True, check=False)
    if listed.returncode != 0:  # not a git tree: a source package
        shutil.copytree(TOP, target, ignore=shutil.ignore_patterns("build", "data", ".git"))
        return
    for entry in listed.stdout.decode().split("\0"):
        source = TOP / entry
        if entry and source.is_file():
            (target / entry).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / entry)


def sources(folder: Path) -> set[str]:
    """The files of a checkout, what was built aside."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
            and path.relative_to(folder).parts[0] != "build" and "__pycache__" not in path.parts}


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


#: Seconds that the quickstart runs: far more than the test needs, which then ends the time.
TIME = "7200"


@pytest.mark.long(seconds=60)
def test_quickstart_on_a_clean_copy(tmp_path):
    """Builds, shows a line within seconds and a turn within a minute, and exits when its time is over without leaving a
    process or a file. The build is the same as that of the release here: with ccache nothing is compiled twice."""
    copy_sources(tmp_path / "clone")
    before = sources(tmp_path / "clone")
    port, shop_port = free_port(), free_port()
    log = tmp_path / "quickstart.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "./deploy/quickstart", "--port", str(port),
             "--shop-port", str(shop_port), "--seconds", TIME], cwd=tmp_path / "clone", env=environment(),
            stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        def up_and_ready() -> bool:
            assert process.poll() is None, log.read_text(errors="replace")[-4000:]
            return ready(port)

        wait_until(up_and_ready, 900, "built and ready", every=0.2)
        client = Client(port)
        wait_until(lambda: client.get("/v1/queues/demo").json["waiting"] >= 20, 15, "there is a line", every=0.1)
        newcomer = Visitor(client, "demo").join()
        place = newcomer.status()["position"]
        assert 15 <= place <= 70, place
        lengths = []

        def in_turn() -> bool:
            view = newcomer.status()
            lengths.append(view["waiting"])
            return view["status"] == "active"

        wait_until(in_turn, 60, "the newcomer's turn", every=0.5)
        assert min(lengths) >= 15 and max(lengths) <= 70 and len(set(lengths)) > 3, lengths
        page = client.get("/q/demo").body.decode()
        assert "This is a demo on your own machine" in page
        client.close()
        shop = Client(shop_port)
        assert shop.get("/public/shop.css").status == 200
        shop.close()
        wait_until(lambda: log.read_text(errors="replace").count("crowd after") >= 2, PATIENCE,
                   "the crowd says how it goes", every=0.2)
        family = descendants(process.pid)
        (timer,) = [pid for pid in family if command_line(pid) == ["sleep", TIME]]
        os.kill(timer, signal.SIGTERM)  # its time is over
        assert process.wait(patient(180)) == 0, log.read_text(errors="replace")[-4000:]
        wait_until(lambda: not any(alive(pid) for pid in family), PATIENCE, "no process is left")
        said = log.read_text(errors="replace")
        assert f"http://localhost:{shop_port}" in said and f":{port}" in said, "the addresses are printed"
        assert "\r" not in said, "plain lines where there is no terminal"
        assert sources(tmp_path / "clone") == before, "nothing is left in the checkout"
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(patient(60))
