# SPDX-License-Identifier: Apache-2.0
"""A worker for operators only (worker.processes: 0), and one for visitors without the secrets of operators."""
from __future__ import annotations

import os
import re
import signal
import socket

from admin import ADMIN_TOKEN, Admin, Browser, admin_file
from http_client import Client
from tellerline import CALM, PATIENCE, System
from waiting import wait_until

STORE_TROUBLE = r"kind=(store|timeout)\b"


def apart(system: System) -> None:
    """Worker 0 serves visitors, worker 1 operators."""
    admin_file(system)
    visitors, control = system.of("worker")
    visitors.env |= {"TELLERLINE_SECRETS_ADMIN_TOKEN": "", "TELLERLINE_SECRETS_TOKEN_KEY": ""}
    control.env |= {"TELLERLINE_WORKER_PROCESSES": "0", "TELLERLINE_HTTP_LISTEN": f"127.0.0.1:{control.http_port}",
                    "TELLERLINE_ADMIN_WORKER": f"0.0.0.0:{control.admin_port}", "TELLERLINE_ADMIN_TLS": "loopback"}
    control.http_port = 0  # which is not opened


def get(port: int, path: str):
    client = Client(port)
    try:
        return client.get(path)
    finally:
        client.close()


def test_operators_have_a_worker_of_their_own(start):
    system = start({"bank": {"capacity": 1} | CALM}, workers=2, prepare=apart)
    visitors, control = system.of("worker")
    port = int(control.env["TELLERLINE_HTTP_LISTEN"].rpartition(":")[2])
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0, "the port of visitors is closed"
    admin = Admin(control)
    admin.make_token("jane", "operator")
    admin.done("POST", "queues/bank/pause")
    system.join("bank")
    wait_until(lambda: admin.done("GET", "queues/bank/stats")["waiting"] == 1, PATIENCE, "the queue is seen")
    text = get(control.admin_port, "/metrics").body.decode()
    assert re.search(r"^tellerline_ready\{[^}]*\} 1$", text, re.MULTILINE)
    assert re.search(r"^tellerline_worker_processes\{[^}]*\} 0$", text, re.MULTILINE)

    # The visitors' worker has probes and metrics, no admin API, no dashboard, and makes no secret of operators.
    assert get(visitors.admin_port, "/livez").status == get(visitors.admin_port, "/readyz").status == 200
    for path in ("/", "/v1/admin/queues", "/v1/admin/session"):
        assert get(visitors.admin_port, path).status == 404, path
    assert ADMIN_TOKEN in (system.directory / "admin.token").read_text()


def test_a_browser_of_this_machine_signs_in(start):
    """The listener is at all addresses, and published at a loopback address, as a container's port is."""
    system = start({"bank": {"capacity": 1} | CALM}, workers=2, prepare=apart)
    _, control = system.of("worker")
    for host in ("localhost", "127.0.0.1"):
        browser = Browser(control, host=f"{host}:{control.admin_port}")
        assert browser.signed_in.status == 200
        assert not re.search("Secure", browser.signed_in.headers["set-cookie"])
        assert browser.call("POST", "queues/bank/pause", {}).status == 200
    assert "localhost" in Browser(control, host=f"192.0.2.7:{control.admin_port}").signed_in.problem(403)["detail"]


def test_readiness_follows_the_store(start):
    system = start({"bank": {"capacity": 1} | CALM}, workers=2, prepare=apart)
    _, control = system.of("worker")
    system.expect(STORE_TROUBLE)
    system.redis.stop()
    wait_until(lambda: get(control.admin_port, "/readyz").status == 503, PATIENCE, "it is not ready")
    assert get(control.admin_port, "/livez").status == 200
    system.redis.start()
    system.forget_store()
    wait_until(control.ready, PATIENCE, "it is ready again")


def test_a_reload_is_counted(start):
    system = start({"bank": {"capacity": 1} | CALM}, workers=2, prepare=apart)
    _, control = system.of("worker")
    good = system.config.read_text()
    system.expect(r"nonsense")
    system.config.write_text(good + "\nnonsense: 1\n")
    control.send(signal.SIGHUP)
    wait_until(lambda: re.search(r"^tellerline_\w*reload\w*\{[^}]*\} 1$", get(control.admin_port, "/metrics").body.decode(),
                                 re.MULTILINE), PATIENCE, "the mistake is counted")
    system.config.write_text(good)


def test_its_processes_are_started_again(start):
    """Also the only one."""
    system = start({"bank": {"capacity": 1} | CALM}, workers=2, prepare=apart)
    _, control = system.of("worker")
    system.expect(r"worker\.admin .* was ended by signal 9")
    before = control.children()
    assert len(before) == 1
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: control.children() not in ([], before), PATIENCE, "it is started again")
    wait_until(control.ready, PATIENCE, "it is ready again")


def test_nothing_to_serve(start):
    system = start({"bank": {"capacity": 1} | CALM}, workers=1)
    worker = system.of("worker")[0]
    worker.stop()
    worker.env |= {"TELLERLINE_WORKER_PROCESSES": "0", "TELLERLINE_ADMIN_WORKER": ""}
    system.expect(r"nothing to serve")
    worker.start()
    wait_until(lambda: worker.status() == 1, PATIENCE, "it does not start")
    assert "worker.processes is 0" in worker.text()
    worker.kill()  # it is gone: nothing more to stop
