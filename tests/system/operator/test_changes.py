# SPDX-License-Identifier: Apache-2.0
"""The record of changes, tokens and keys, with the real programs: who changed what, when and from where."""
from __future__ import annotations

import getpass
import json
import os
import re
import signal
import socket
import stat
import threading
from pathlib import Path
from typing import Any

from http_client import Client
from tellerline import CALM, PATIENCE, System
from waiting import wait_until

LANES = {"lanes": ["vip", "normal"], "capacity": 1} | CALM
USER = os.environ.get("SUDO_USER") or getpass.getuser()


def log(system: System, *words: str) -> list[dict[str, Any]]:
    """Newest last."""
    done = system.ctl("log", *words, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["changes"]


def test_each_command_leaves_its_entry(start):
    """In the same step; a command that changes nothing, or is refused, leaves none."""
    system = start({"bank": LANES})
    first, second, third = (system.join("bank") for _ in range(3))
    wait_until(first.is_active, PATIENCE, "the first is active")
    secret = re.escape(second.ticket[-20:])
    commands = [
        (("queue", "set", "bank", "claim_ttl=3m", "rate.burst=10"), "set", {"claim_ttl", "rate.burst"}),
        (("queue", "set", "bank", "claim_ttl=3m"), None, set()),
        (("queue", "set", "bank", "claim_ttl=soon"), None, set()),
        (("queue", "pause", "bank"), "mode", {"mode"}),
        (("queue", "pause", "bank"), None, set()),
        (("queue", "open", "bank"), "mode", {"mode"}),
        (("queue", "notice", "bank", "Back in <5> minutes, \"all\" of you: 곧"), "notice", {"notice"}),
        (("queue", "notice", "bank", "Back in <5> minutes, \"all\" of you: 곧"), None, set()),
        (("queue", "notice", "bank", "en=Soon", "ko=조금 뒤"), "notice", {"notice"}),
        (("visitor", "move", "bank", second.ticket, "vip"), "move", {"visitor", "lane"}),
        (("visitor", "remove", "bank", third.ticket, "--yes"), "remove", {"visitor", "state"}),
        (("visitor", "remove", "bank", "nobody", "--yes"), None, set()),
        (("queue", "recover", "bank", "--wait", "1s"), "recover", {"recover_until"}),
        (("block", "add", "192.0.2.0/24", "--for", "1h"), "block", {"prefix", "until"}),
        (("block", "add", "192.0.2.7", "--queue", "bank"), "block", {"prefix", "until"}),
        (("block", "remove", "192.0.2.0/24"), "unblock", {"prefix", "until"}),
        (("block", "remove", "192.0.2.0/24"), None, set()),
        (("token", "create", "jo", "operator"), "token", {"name", "role"}),
        (("token", "create", "jo", "admin"), None, set()),
        (("token", "revoke", "jo", "--yes"), "revoke", {"name", "role"}),
        (("token", "revoke", "jo", "--yes"), None, set()),
    ]
    n = len(log(system))
    created = log(system)[0]
    assert (created["what"], created["queue"], created["from"]) == ("create", "bank", socket.gethostname()[:63])
    assert created["who"] in ("dispatcher", "admitter", "expirer", "worker") and created["after"]["lanes"] == "vip,normal"
    for words, what, members in commands:
        done = system.ctl(*words)
        changes = log(system)
        assert len(changes) == n + (what is not None), (words, done.stdout, done.stderr, changes[-1])
        n = len(changes)
        if what is not None:
            assert done.returncode == 0, (words, done.stderr)
            entry = changes[-1]
            assert (entry["what"], entry["who"], entry["from"]) == (what, USER, "cli"), entry
            assert set(entry["before"]) | set(entry["after"]) == members, entry
            assert "until" not in entry["after"] or "--for" not in words or entry["after"]["until"].endswith("Z"), entry
            assert entry.get("queue") == ("bank" if "bank" in words else None), entry
            assert not re.search(secret, json.dumps(entry)), "a ticket is in the record"
    assert [entry["what"] for entry in log(system, "-q", "bank", "--limit", "3")] == ["remove", "recover", "block"]
    table = system.ctl("log").stdout
    assert re.search(r"claim_ttl \d+\w+ -> 3m", table), table
    assert re.search(r"\d\d:\d\d:\d\d\S+ +bank +\S+ +cli +mode +", table), table
    assert "\x1b" not in table and "\x1e" not in table  # a terminal would obey them
    assert "곧" in table and "[en] Soon [ko] 조금 뒤" in table, "Korean is readable, in any locale"


def test_set_says_what_was_before(start):
    system = start({"bank": {"capacity": 10, "session_ttl": "10m"} | CALM})
    done = system.ctl("queue", "set", "bank", "capacity=20", "rate.every=1m", "session_ttl=10m")
    assert sorted(done.stdout.splitlines()) == sorted([
        "bank: capacity=20 (was 10)", "bank: rate.every=1m (was 10s)", "bank: session_ttl=10m (as before)"]), done.stdout


def test_changes_at_the_same_time_are_all_there(start):
    """And those of several queues come in the order of their time, page by page."""
    system = start({"bank": {"capacity": 1} | CALM, "shop": {"capacity": 1} | CALM})
    settings = [("bank", "claim_ttl", "61s"), ("bank", "session_ttl", "62s"), ("shop", "claim_ttl", "63s"),
                ("shop", "waiting_ttl", "64s")]
    threads = [threading.Thread(target=system.set, args=(queue, f"{name}={value}")) for queue, name, value in settings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    changes = log(system)
    found = {(entry["queue"], name) for entry in changes if entry["what"] == "set" for name in entry["after"]}
    assert found == {(queue, name) for queue, name, _ in settings}
    times = [int(entry["id"].partition("-")[0]) for entry in changes]
    assert times == sorted(times)
    assert [entry["id"] for entry in changes[-2:]] == [entry["id"] for entry in log(system, "--limit", "2")]


def test_tokens_are_written_once_and_never_kept(start):
    system = start({"bank": {"capacity": 1} | CALM})
    made = system.ctl("token", "create", "jo", "operator")
    token = made.stdout.strip()
    assert re.fullmatch(r"tl_jo_[A-Za-z0-9_-]{43}", token), made
    kept = system.store.hash("tl:tokens{tl:queues}")
    assert list(kept) == ["jo"] and token not in kept["jo"] and token[6:] not in kept["jo"]
    listed = json.loads(system.ctl("token", "list", "-o", "json").stdout)["tokens"]
    assert [(one["name"], one["role"], one["created_by"]) for one in listed] == [("jo", "operator", USER)]
    assert "hash" not in listed[0] and "never" in system.ctl("token", "list").stdout
    for words in (("create", "admin", "admin"), ("create", "x y", "viewer"), ("create", "ok", "king"), ("revoke", "nobody", "--yes"),
                  ("create", "n" * 33, "viewer")):
        refused = system.ctl("token", *words)
        assert refused.returncode == 1 and refused.stderr and not refused.stdout, (words, refused)
    for entry in log(system):
        assert token[6:] not in json.dumps(entry)


def test_keys_are_added_to_their_files(start, tmp_path: Path):
    """The worker takes the API key after SIGHUP; the file keeps its mode and what it had."""
    keys, invites = tmp_path / "api.keys", tmp_path / "invite.keys"
    keys.write_text("# callers\nold " + "o" * 40)
    keys.chmod(0o640)
    system = start({"bank": {"capacity": 1} | CALM}, settings={"secrets": {"api_keys": str(keys), "invite_keys": ""}})
    made = system.ctl("key", "create", "api", "shop")
    key = made.stdout.strip()
    assert made.returncode == 0 and re.fullmatch("[0-9a-f]{64}", key), made
    assert keys.read_text() == f"# callers\nold {'o' * 40}\nshop {key}\n"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o640 and not list(tmp_path.glob("api.keys.*"))
    system.of("worker")[0].send(signal.SIGHUP)
    body = json.dumps({"visitor": "eve"}).encode()

    def is_known() -> bool:
        client = Client(system.of("worker")[0].http_port)
        try:
            return client.post("/v1/queues/bank/join", body, ticket=key).status == 200
        finally:
            client.close()

    wait_until(is_known, PATIENCE, "the worker knows the key")
    assert system.ctl("key", "create", "api", "shop").returncode == 1  # it is taken
    assert system.ctl("key", "create", "invite", "site-1").returncode == 1  # no file is configured
    assert system.ctl("key", "create", "invite", "site-1", str(invites)).returncode == 0
    assert re.fullmatch("site-1 HS256 [0-9a-f]{64}\n", invites.read_text())
    assert stat.S_IMODE(invites.stat().st_mode) == 0o600
    line = system.ctl("key", "create", "invite", "site-2", "-").stdout
    assert re.fullmatch("site-2 HS256 [0-9a-f]{64}\n", line) and "site-2" not in invites.read_text()
