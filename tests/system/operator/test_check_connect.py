# SPDX-License-Identifier: Apache-2.0
"""tellerline check --connect: whether the store is fit for this release, before the sale."""
from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from redis_server import RedisServer
from tellerline import BIN, free_port
from waiting import patient


def check(server: RedisServer, *options: str, user: str = "") -> tuple[int, str]:
    address = f"redis://{user}127.0.0.1:{server.options['port']}"
    done = subprocess.run([str(BIN / "tellerline"), "check", "--connect", "--redis", address, *options], capture_output=True,
                          text=True, check=False, timeout=patient(30), cwd=server.directory)
    return done.returncode, done.stdout + done.stderr


def listening() -> dict[str, str]:
    """Only addresses with a host name a user."""
    return {"port": str(free_port()), "bind": "127.0.0.1"}


@pytest.fixture
def server(tmp_path: Path):
    found = RedisServer(tmp_path, listening())
    found.start()
    yield found
    found.stop()


def loaded(server: RedisServer) -> int:
    store = server.connect()
    try:
        return len(store.command("FUNCTION", "LIST", "LIBRARYNAME", "tellerline_*"))
    finally:
        store.close()


def tell(server: RedisServer, *command: str) -> None:
    store = server.connect()
    store.command(*command)
    store.close()


def test_a_fit_store_gets_the_functions(server):
    assert loaded(server) == 0
    for _ in range(2):
        status, said = check(server)
        assert status == 0 and "the store: ok; it has the functions of this release (tellerline_" in said, said
        assert loaded(server) == 1


def full(server: RedisServer) -> None:
    tell(server, "CONFIG", "SET", "maxmemory", "1")


def evicting(server: RedisServer) -> None:
    tell(server, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")


def replica(server: RedisServer) -> None:
    tell(server, "REPLICAOF", "127.0.0.1", "1")


@pytest.mark.parametrize("change, says", [
    (full, "loading the functions of this release"), (evicting, "set it to noeviction"), (replica, "replica")])
def test_what_makes_a_store_unfit_is_said(server, change: Callable[[RedisServer], None], says: str):
    change(server)
    status, said = check(server)
    assert status != 0 and says in said, said


def test_a_user_who_may_not_load_is_told_who_does(server):
    tell(server, "ACL", "SETUSER", "guest", "on", ">secret", "~*", "+@all", "-function")
    status, said = check(server, user="guest:secret@")
    assert status == 1 and "may not load them: a dispatcher, admitter or expirer of this release does" in said, said


def test_a_server_without_functions_is_told_from_a_fit_one(tmp_path):
    """As a provider that has taken the command away."""
    found = RedisServer(tmp_path, {"rename-command FUNCTION": "hidden"} | listening())
    found.start()
    try:
        status, said = check(found)
        assert status == 1 and "loading the functions of this release" in said and "unknown command" in said, said
    finally:
        found.stop()


def test_a_durability_that_cannot_be_kept_is_said(server):
    config = server.directory / "c.yaml"
    config.write_text("redis: { durability: fsync }\n")
    status, said = check(server, "--config", str(config))
    assert (status, "redis.durability" in said) in ((1, True), (0, False)), said
