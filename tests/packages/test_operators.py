# SPDX-License-Identifier: Apache-2.0
"""What the package keeps apart: the worker that visitors reach, and tellerline-control with the secrets of operators."""
from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from conftest import Packages
from machine import Machine, wait_for
from server import CONFIG, SITE, file, join, ready, serve

Boot = Callable[[], Machine]

OPERATORS = "http://127.0.0.1:8081"
PROBES = "http://127.0.0.1:8086"  # of the worker that visitors reach
STATE = "/var/lib/tellerline-control"
TICKET_KEYS = "/var/lib/tellerline/ticket.keys"


def as_worker(machine: Machine, path: str) -> bool:
    """Can the user of the worker that visitors reach read this file?"""
    return machine.run(f"setpriv --reuid tellerline --regid tellerline --init-groups cat {path}",
                       check=False).returncode == 0


def code(machine: Machine, url: str, options: str = "") -> str:
    """The status code of an answer; 000 where nobody answers."""
    return machine.run(f"curl -s -o /dev/null -w '%{{http_code}}' {options} {url}", check=False).stdout


def admin_token(machine: Machine) -> str:
    return file(machine, f"{STATE}/admin.token").read_text().splitlines()[-1].strip()


@pytest.fixture
def machine(packages: Packages, boot: Boot) -> Machine:
    """Serves visitors and operators. The environment of all services tries to make all workers alike."""
    made = boot()
    serve(made, packages.first)
    file(made, "/etc/default/tellerline").write_text(
        f"TELLERLINE_WORKER_PROCESSES=1\nTELLERLINE_SECRETS_ADMIN_TOKEN={STATE}/admin.token\n")
    made.run("systemctl restart tellerline.target")
    wait_for(lambda: ready(made) and code(made, f"{OPERATORS}/readyz") == "200", "both workers are ready")
    return made


@pytest.mark.long(30)
def test_visitors_worker_has_no_secret_of_operators(machine: Machine) -> None:
    for name in ("admin.token", "token.key"):
        assert machine.out(f"stat -c '%U %G %a' {STATE}/{name}") == "tellerline-control tellerline-control 600"
        assert not as_worker(machine, f"{STATE}/{name}")
    control = machine.show("tellerline-control", "MainPID")
    assert machine.out(f"stat -c %U /proc/{control}") == "tellerline-control"
    for name in ("environ", "maps"):
        assert not as_worker(machine, f"/proc/{control}/{name}")
    assert as_worker(machine, CONFIG) and as_worker(machine, TICKET_KEYS), "what it may read"
    assert machine.out("find /var/lib/tellerline -name '*token*'") == ""
    environment = machine.out(f"tr '\\0' '\\n' < /proc/{machine.show('tellerline-worker', 'MainPID')}/environ")
    assert {"TELLERLINE_SECRETS_ADMIN_TOKEN=", "TELLERLINE_SECRETS_TOKEN_KEY="} <= set(environment.splitlines())

    bearer = f"-H 'Authorization: Bearer {admin_token(machine)}'"
    assert code(machine, f"{PROBES}/metrics") == "200"
    assert code(machine, f"{PROBES}/v1/admin/queues", bearer) == "404"
    assert code(machine, f"{SITE}/v1/admin/queues", bearer) == "404"


@pytest.mark.long(30)
def test_visitors_worker_has_no_secret_of_other_programs(machine: Machine) -> None:
    """Not the secret of the draws, nor those of the webhooks, nor what the environment of a program says, as its user of
    Redis. No other program can read the keys of visitors."""
    config, webhook = file(machine, CONFIG), "/var/lib/tellerline-notifier/shop.secret"
    config.write_text(
        config.read_text() + f"webhooks:\n  - name: shop\n    url: http://127.0.0.1:9/\n    secret_file: {webhook}\n    events: [paused]\n")
    machine.run("tellerline check && systemctl restart tellerline-notifier")
    assert machine.out(f"stat -c '%U %a' {webhook}") == "tellerline-notifier 600" and not as_worker(machine, webhook)
    assert machine.out("stat -c '%U %a' /var/lib/tellerline-admitter") == "tellerline-admitter 700"
    for name in ("dispatcher", "admitter", "expirer", "notifier"):
        pid = machine.show(f"tellerline-{name}", "MainPID")
        assert not as_worker(machine, f"/proc/{pid}/environ") and not as_worker(machine, f"/proc/{pid}/maps")
    for name in ("worker", "dispatcher", "admitter", "expirer", "notifier"):
        there = machine.run(f"nsenter --target {machine.show(f'tellerline-{name}', 'MainPID')} --mount cat {TICKET_KEYS}",
                            check=False)
        assert (there.returncode == 0) == (name == "worker"), (name, there.stderr)


@pytest.mark.long(30)
def test_a_key_made_by_root_is_the_worker_s(machine: Machine) -> None:
    machine.run("tellerline key create api shop")
    assert machine.out("stat -c '%U %G %a' /var/lib/tellerline/api.keys") == "tellerline tellerline 600"
    machine.run("systemctl reload tellerline-worker")
    wait_for(lambda: "read again" in machine.journal("-worker"), "the worker has reloaded")


@pytest.mark.long(30)
def test_control_serves_operators(machine: Machine) -> None:
    """A browser of this machine signs in to the dashboard, with the address that one command writes. A visitor is found by
    the ticket, also after the keys were replaced. Tokens that the command line makes count, and it finds Redis by a file.
    One service can have a setting of its own."""
    assert "<html" in machine.out(f"curl -fsS {OPERATORS}/")
    address = machine.out("tellerline dashboard 2>/dev/null")
    assert address.startswith(f"{OPERATORS}/#/sign-in/admin:"), address
    token = json.dumps({"token": address.rpartition("/")[2]})
    signed_in = machine.out(f"curl -fsS -c /root/cookies -H 'Content-Type: application/json' -H 'Origin: {OPERATORS}' "
                            f"-d '{token}' {OPERATORS}/v1/admin/session")
    assert json.loads(signed_in)["role"] == "admin"
    assert code(machine, f"{OPERATORS}/v1/admin/queues", "-b /root/cookies") == "200"
    assert code(machine, f"{OPERATORS}/v1/queues/shop") == "404", "control serves no visitor"

    def found(ticket: str) -> bool:
        return code(machine, f"{OPERATORS}/v1/admin/queues/shop/visitors/{ticket}", "-b /root/cookies") == "200"

    def signs() -> str:
        return machine.out(f"curl -fsS {PROBES}/metrics | grep '^tellerline_worker_ticket_key{{'")

    wait_for(lambda: found(join(machine)["ticket"]), "a visitor is found by the ticket")
    before = signs()
    machine.run(f"{{ echo 89abcdef $(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n'); cat {TICKET_KEYS}; }} "
                f"> /root/ticket.keys; install -o tellerline -g tellerline -m 600 /root/ticket.keys {TICKET_KEYS}; "
                "systemctl reload tellerline-worker")
    wait_for(lambda: machine.out(f"stat -c %a {TICKET_KEYS}") == "640", "control may read the new keys")
    wait_for(lambda: signs() != before, "the new key signs")
    assert found(join(machine)["ticket"])
    assert machine.show("tellerline-ticket-keys.path", "ActiveState") == "active", "it did not trigger itself again"

    made = machine.out("tellerline token create jo operator")
    assert code(machine, f"{OPERATORS}/v1/admin/queues", f"-H 'Authorization: Bearer {made}'") == "200"
    file(machine, "/etc/tellerline/operator.url").write_text("redis://127.0.0.1:1/0\n")
    by_file = "TELLERLINE_REDIS_URL_FILE=/etc/tellerline/operator.url"
    assert "127.0.0.1:1" in machine.run(f"{by_file} tellerline audit", check=False).stderr
    file(machine, "/etc/tellerline/operator.url").write_text("redis://127.0.0.1:6379/0\n")
    machine.run(f"{by_file} tellerline audit")
    machine.run(f"tellerline queue list --server {OPERATORS} --token-file {STATE}/admin.token")

    file(machine, "/etc/default/tellerline-control").write_text("TELLERLINE_ADMIN_WORKER=127.0.0.1:9081\n")
    machine.run("systemctl restart tellerline-control")
    wait_for(lambda: code(machine, "http://127.0.0.1:9081/readyz") == "200", "control listens elsewhere")
    assert code(machine, f"{PROBES}/livez") == "200"
