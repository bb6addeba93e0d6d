# SPDX-License-Identifier: Apache-2.0
"""An operator deletes a queue while others are served: they do not notice, and nothing of it comes back."""
from __future__ import annotations

from tellerline import CALM, PATIENCE
from waiting import wait_until

TIMES = 12


def test_deleting_a_queue_disturbs_no_other(start):
    """The dispatcher waits for entries of all queues with one command, which ends with an error when a stream goes."""
    system = start({"bank": {"capacity": 1} | CALM})
    system.join("bank")
    dispatcher = system.of("dispatcher")[0]
    for i in range(TIMES):
        name = f"sale{i}"
        assert system.ctl("queue", "create", name).returncode == 0
        wait_until(lambda: system.store.command("EXISTS", system.key(name, "dispatcher")), PATIENCE, "it is served")
        assert system.ctl("queue", "delete", name, "--yes").returncode == 0
        wait_until(lambda: not system.store.command("EXISTS", system.key(name, "dispatcher")), PATIENCE, "it is left")
        visitor = system.join("bank")
        assert visitor.ticket
    log = dispatcher.tail(10000)
    assert "the store failed" not in log, "the dispatcher left the store"
    for i in range(TIMES):
        found = [key for key in ("ingest", "events", "state") if system.store.command("EXISTS", system.key(f"sale{i}", key))]
        assert not found, (i, found)
