# SPDX-License-Identifier: Apache-2.0
"""What a worker's metrics say."""
from __future__ import annotations

import re

from http_client import Client
from tellerline import Program


def metrics(program: Program) -> str:
    client = Client(program.admin_port)
    try:
        return client.get("/metrics").body.decode()
    finally:
        client.close()


def metric(program: Program, name: str) -> int:
    found = re.search(rf"^{name}{{.*}} (\d+)$", metrics(program), re.MULTILINE)
    assert found, f"no {name} in the metrics of {program.name}"
    return int(found.group(1))


def fingerprints(worker: Program) -> dict[str, int]:
    """Of the keys that sign tickets, with the number of processes that use each."""
    found = re.findall(r'^tellerline_worker_ticket_key{.*fingerprint="(\w+)"} (\d+)$', metrics(worker), re.MULTILINE)
    return {key: int(users) for key, users in found}
