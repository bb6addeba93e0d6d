# SPDX-License-Identifier: Apache-2.0
"""TLS to Redis: the chain and the name of its certificate are verified."""
from __future__ import annotations

from collections.abc import Callable

import pytest

from certificates import signed_for, skip_without_tls
from many_queues import QUEUES, queues, sent_for_a_visit, wait_served
from redis_server import RedisServer
from tellerline import CALM, PATIENCE, System, free_port, run
from waiting import wait_until

def with_tls(system: System) -> None:
    """Redis with a certificate for `localhost`, from an authority that the programs are told of."""
    folder = system.directory
    port = str(free_port())
    system.redis = RedisServer(folder, signed_for(folder, "DNS:localhost") | {"tls-port": port, "bind": "127.0.0.1"})
    system.settings("redis", {"url": f"rediss://localhost:{port}", "ca_file": str(folder / "ca.pem")})


@pytest.fixture
def start_with_tls(start) -> Callable[..., System]:
    skip_without_tls()
    return lambda queues: start(queues, prepare=with_tls)


def refusal(system: System, **changed: str) -> str:
    """What `tellerline queue list` says with other settings. It must fail."""
    done = run(system.folder / "tellerline", "queue", "list", "--config", str(system.config),
               env={f"TELLERLINE_REDIS_{name.upper()}": value for name, value in changed.items()})
    assert done.returncode != 0, done.stdout
    return done.stderr


def test_programs_talk_to_redis_by_tls_and_verify_it(start_with_tls):
    """A life through TLS, also after Redis was restarted; then a wrong name, another authority, no file."""
    system = start_with_tls({"bank": {"capacity": 1} | CALM})
    first, second = system.join("bank"), system.join("bank")
    wait_until(first.is_active, PATIENCE, "the first is active")
    assert first.complete()["status"] == "completed"
    wait_until(second.is_active, PATIENCE, "the second is active")
    system.redis.kill()
    system.redis.start()
    wait_until(lambda: system.client().get("/readyz").status == 200, PATIENCE, "the worker has connected again")
    assert "bank" in system.ctl("queue", "list").stdout
    port = system.redis.options["tls-port"]
    wrong = refusal(system, url=f"rediss://127.0.0.1:{port}")
    assert "certificate of the store at 127.0.0.1 is refused: IP address mismatch" in wrong, wrong
    unknown = refusal(system, ca_file=str(system.directory / "other.pem"))
    assert "certificate of the store at localhost is refused: " in unknown and "mismatch" not in unknown, unknown
    system_only = refusal(system, ca_file="")
    assert "is refused: " in system_only, system_only
    nothing = refusal(system, ca_file="/nowhere.pem")
    assert 'redis.ca_file "/nowhere.pem": no certificates can be read' in nothing, nothing
    plain = refusal(system, url=f"rediss://localhost:{port}/0".replace(port, str(system.of("worker")[0].http_port)))
    assert "(TLS)" in plain, "a server without TLS"


def test_a_visit_beside_many_queues_wakes_programs_by_tls(start_with_tls, figure):
    sent = {}
    for n in (1, QUEUES):
        system = start_with_tls(queues(n))
        wait_served(system.store, n)
        sent[n] = sent_for_a_visit(system.store, system.client())
    figure(f"bytes sent to the store for a visit: {sent}")
    assert 0 < sent[QUEUES] <= 2 * sent[1], sent
