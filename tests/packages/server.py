# SPDX-License-Identifier: Apache-2.0
"""Steps of the tests with Tellerline on a machine: install, open a queue, join, ask for the status."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from machine import Machine, wait_for

PROGRAMS = ["dispatcher", "admitter", "expirer", "notifier", "archiver", "worker"]
# tellerline-control is a worker, too: for operators only.
SERVICES = [f"tellerline-{name}.service" for name in (*PROGRAMS, "control")]
CONFIG = "/etc/tellerline/tellerline.yaml"
SITE = "http://127.0.0.1:8080"
QUEUE = """
queues:
  shop:
    capacity: 1
    session_ttl: 1h
    claim_ttl: 1h
    waiting_ttl: 1h
"""


def file(machine: Machine, path: str) -> Path:
    """A file of the machine, as the host sees it."""
    return machine.root / path.lstrip("/")


def ready(machine: Machine) -> bool:
    return machine.run(f"curl -fs {SITE}/readyz", check=False).returncode == 0


def open_queue(machine: Machine) -> None:
    """Adds a queue with one counter to the configuration, as an administrator would, and restarts."""
    config = file(machine, CONFIG)
    config.write_text(config.read_text() + QUEUE)
    machine.run("systemctl restart tellerline.target")
    wait_for(lambda: machine.run(f"curl -fs {SITE}/v1/queues/shop", check=False).returncode == 0, "the queue is open")


def serve(machine: Machine, package: Path) -> None:
    """Installs Redis and the package, and opens the queue."""
    machine.apt("install redis-server")
    machine.apt(f"install {machine.put(package)}")
    open_queue(machine)


def join(machine: Machine, queue: str = "shop") -> dict[str, Any]:
    """A visitor's view after joining."""
    return json.loads(machine.out(f"curl -fsS -X POST {SITE}/v1/queues/{queue}/join"))


def status(machine: Machine, ticket: str, queue: str = "shop") -> dict[str, Any]:
    return json.loads(machine.out(f"curl -fsS -H 'Authorization: Bearer {ticket}' {SITE}/v1/queues/{queue}/status"))


def places(machine: Machine, tickets: list[str]) -> list[tuple[str, int | None]]:
    """Status and position of each ticket's holder."""
    views = [status(machine, ticket) for ticket in tickets]
    return [(view["status"], view.get("position")) for view in views]


def main_pids(machine: Machine) -> list[str]:
    return [machine.show(service, "MainPID") for service in SERVICES]


def states(machine: Machine) -> list[str]:
    return [machine.show(service, "ActiveState") for service in SERVICES]
