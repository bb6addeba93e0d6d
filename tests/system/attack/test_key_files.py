# SPDX-License-Identifier: Apache-2.0
"""Key files that are missing: never replaced by new keys while visitors hold what the old ones signed."""
from __future__ import annotations

import re
import signal

import pytest

from figures_of import fingerprints, metric
from tellerline import CALM, PATIENCE, Program, System, free_port
from waiting import wait_until

NAMES = ["ticket.keys", "pass.keys"]


def reload_until(system: System, text: str) -> None:
    """SIGHUP; waits until the worker's log has one more line with this text."""
    worker = system.of("worker")[0]
    before = worker.text().count(text)
    worker.send(signal.SIGHUP)
    wait_until(lambda: worker.text().count(text) > before, PATIENCE, text)


@pytest.mark.parametrize("name", NAMES)
def test_missing_at_a_reload(start, name):
    """The running keys stay, and no file is made."""
    system = start({"bank": {"capacity": 0} | CALM})
    visitor = system.join("bank")
    path = system.directory / name
    kept = path.read_bytes()
    path.unlink()
    system.expect("reload refused")
    reload_until(system, "reload refused")
    assert not path.exists()
    assert visitor.status()["position"] == 1
    path.write_bytes(kept)
    path.chmod(0o600)
    reload_until(system, "configuration read again")
    assert visitor.status()["position"] == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sanitized
def test_missing_at_a_start_with_visitors(start, name):
    """An error that says what to do. It starts when the file is back, or when the visitors are gone."""
    system = start({"bank": {"capacity": 0} | CALM})
    visitor = system.join("bank")
    worker = system.of("worker")[0]
    path = system.directory / name
    kept = path.rename(system.directory / "kept")
    worker.stop()
    worker.start()
    system.expect("does not exist, and visitors in queue bank hold what its keys signed")
    wait_until(lambda: not worker.running, PATIENCE, "the worker ends")
    assert worker.text().count("cannot start") == 1 and not path.exists()
    kept.rename(path)
    worker.start()
    worker.wait_ready()
    assert visitor.status(system.client())["position"] == 1
    visitor.client = system.client()
    visitor.leave()
    worker.stop()
    path.unlink()
    worker.start()
    worker.wait_ready()
    assert re.search(rf"level=info .*{re.escape(str(path))} did not exist: made it", worker.text())


def test_missing_while_the_store_is_away(start):
    """It waits for the answer whether visitors hold tickets, and can be stopped meanwhile."""
    system = start({"bank": {"capacity": 0} | CALM}, redis={"appendfsync": "always"})
    system.expect("kind=(connect|timeout|loading)")
    visitor = system.join("bank")
    worker = system.of("worker")[0]
    path = system.directory / "ticket.keys"
    kept = path.rename(system.directory / "kept")
    worker.stop()
    system.redis.stop()
    system.forget_store()
    for _ in range(2):
        waits = worker.text().count("waiting for the store")
        worker.start()
        wait_until(lambda before=waits: worker.text().count("waiting for the store") > before, PATIENCE, "it waits")
        worker.stop()
    worker.start()
    system.redis.start()
    system.expect("does not exist, and visitors in queue bank")
    wait_until(lambda: not worker.running, PATIENCE, "the worker ends")
    assert not path.exists()
    kept.rename(path)
    worker.start()
    worker.wait_ready()
    assert visitor.status(system.client())["position"] == 1


def test_workers_that_start_at_once_share_one_key(start):
    """Several workers find no file: one makes it, all sign with it, and the metrics say so."""
    system = start({"bank": {"capacity": 0} | CALM}, workers=3)
    keys = {key for worker in system.of("worker") for key in fingerprints(worker)}
    assert len(keys) == 1
    visitor = system.join("bank")
    for worker in range(3):
        assert visitor.status(system.client(worker))["position"] == 1
    made = [worker.text().count("ticket.keys did not exist: made it") for worker in system.of("worker")]
    assert sum(made) == 1


def test_the_place_of_the_files(start, tmp_path):
    """Relative paths start at the folder of the configuration file, wherever a program was started."""
    system = start({"bank": {"capacity": 0} | CALM})
    visitor = system.join("bank")
    worker = system.of("worker")[0]
    worker.stop()
    text = system.config.read_text()
    system.config.write_text(text.replace(f": {system.directory}/", ": "))
    moved = Program("worker", "moved", system.directory, system.config, free_port(), worker.http_port, cwd=tmp_path)
    system.programs.append(moved)
    moved.start()
    moved.wait_ready()
    assert visitor.status(system.client())["position"] == 1
    assert not list(tmp_path.iterdir())


def test_refused_tickets_are_counted(start):
    system = start({"bank": {"capacity": 0} | CALM})
    worker, client = system.of("worker")[0], system.client()
    visitor = system.join("bank")
    name = "tellerline_worker_tickets_refused_total"
    assert metric(worker, name) == 0
    assert client.get("/v1/queues/bank/status").status == 401
    visitor.status()
    assert metric(worker, name) == 0
    before = fingerprints(worker)
    # The keys of another site: every ticket of this one is refused.
    path = system.directory / "ticket.keys"
    path.write_text("0000000a " + "5a" * 32 + "\n")
    reload_until(system, "configuration read again")
    assert client.get("/v1/queues/bank/status", ticket=visitor.ticket).status == 401
    wait_until(lambda: metric(worker, name) == 1, PATIENCE, "the refused ticket is counted")
    after = fingerprints(worker)
    assert len(after) == 1 and after.keys() != before.keys()
