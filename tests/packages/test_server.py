# SPDX-License-Identifier: Apache-2.0
"""The package on a server with a real systemd: installation, upgrade, configuration errors, crashes, removal."""
from __future__ import annotations

from collections.abc import Callable

import pytest

from conftest import Packages
from machine import Machine, wait_for
from server import (CONFIG, PROGRAMS, SERVICES, SITE, file, join, main_pids, open_queue, places, ready, serve, states)
from test_package import EXPOSURE

#: What programs say that have nothing to do, and so need no store.
IDLE = {"tellerline-notifier.service": "ready; no webhooks are configured",
        "tellerline-archiver.service": "ready; archive.url is not set"}

Boot = Callable[[], Machine]


@pytest.mark.long(30)
def test_installation(packages: Packages, boot: Boot) -> None:
    """Installed on a server without Redis, the services start and wait for one. Then they serve, sandboxed."""
    machine = boot()
    machine.apt(f"install {machine.put(packages.first)}")
    assert states(machine) == ["active"] * len(SERVICES)
    for service in SERVICES:
        assert IDLE.get(service, "store") in machine.show(service, "StatusText")
        assert machine.show(service, "NRestarts") == "0"
        assert machine.out(f"systemctl is-enabled {service}") == "enabled"
    assert not ready(machine)

    machine.apt("install redis-server")
    wait_for(lambda: ready(machine), "ready, now that there is a Redis")
    for service in SERVICES:
        said = IDLE.get(service, "ready")
        wait_for(lambda service=service, said=said: machine.show(service, "StatusText") == said, f"{service} says so")
    open_queue(machine)
    first = join(machine)["ticket"]
    wait_for(lambda: places(machine, [first]) == [("active", None)], "the first is in")
    assert join(machine)["position"] == 1

    secrets = machine.out("stat -c '%n %U %a' /var/lib/tellerline /var/lib/tellerline/*").splitlines()
    assert "/var/lib/tellerline tellerline 710" in secrets
    assert "/var/lib/tellerline/pass.keys tellerline 600" in secrets
    assert machine.out(f"stat -c '%U %G %a' {CONFIG}") == "root tellerline 640"
    users = [machine.out(f"stat -c %U /proc/{pid}") for pid in main_pids(machine)]
    assert users == [name.removesuffix(".service").replace("tellerline-worker", "tellerline") for name in SERVICES]
    machine.run("systemd-analyze verify --man=no " + " ".join(SERVICES) + " tellerline.target")
    for service in SERVICES:
        machine.run(f"systemd-analyze security --no-pager --threshold={EXPOSURE} {service}")
    audit = machine.run("tellerline audit", check=False)  # finds the configuration
    assert audit.returncode == 0, audit.stdout + audit.stderr
    refused = machine.run("setpriv --reuid nobody --regid nogroup --clear-groups tellerline queue list", check=False)
    assert refused.returncode == 2 and "use sudo" in refused.stderr, refused.stderr


@pytest.mark.long(30)
def test_upgrade(packages: Packages, boot: Boot) -> None:
    """An upgrade drains and restarts running services. No visitor loses a place, and no configuration changes."""
    machine = boot()
    serve(machine, packages.first)
    tickets = [join(machine)["ticket"] for _ in range(5)]
    before = places(machine, tickets)
    assert before == [("active", None)] + [("waiting", position) for position in (1, 2, 3, 4)]
    # A visitor follows their place all the time. A cut stream would not end with success.
    machine.run(f"systemd-run --unit=visitor --property=RemainAfterExit=yes --quiet curl -fsSN "
                f"-H 'Authorization: Bearer {tickets[2]}' {SITE}/v1/queues/shop/events")
    wait_for(lambda: "event: position" in machine.out("journalctl -q -u visitor -o cat"), "the stream runs")
    config, pids = file(machine, CONFIG).read_text(), main_pids(machine)

    machine.apt(f"install {machine.put(packages.second)}")
    assert machine.out("dpkg-query -W -f '${Version}' tellerline").endswith("-2")
    assert states(machine) == ["active"] * len(SERVICES)
    assert not set(main_pids(machine)) & set(pids), "not all were restarted"
    wait_for(lambda: ready(machine), "ready again")
    assert places(machine, tickets) == before
    assert machine.show("visitor", "Result") == "success" and machine.show("visitor", "SubState") == "exited"
    assert file(machine, CONFIG).read_text() == config
    killed = machine.out("journalctl -q -o cat -u 'tellerline*' --grep 'SIGKILL|level=(error|fatal)' || true")
    assert killed == "", killed

    # The next upgrade brings another configuration file, and the worker is disabled on this server.
    machine.run("systemctl disable --now tellerline-worker")
    pids = main_pids(machine)
    machine.apt(f"-o Dpkg::Options::=--force-confold install {machine.put(packages.changed)}")
    assert file(machine, CONFIG).read_text() == config
    assert "next version" in file(machine, CONFIG + ".dpkg-dist").read_text()
    assert states(machine) == ["active"] * 5 + ["inactive", "active"]
    assert not (set(main_pids(machine)) - {"0"}) & set(pids)
    machine.run("systemctl enable --now tellerline-worker")
    wait_for(lambda: ready(machine), "ready with the worker")
    assert places(machine, tickets) == before


@pytest.mark.long(30)
def test_mistakes_and_crashes(packages: Packages, boot: Boot) -> None:
    """A wrong configuration prevents a start, without retries, and does not affect running services. Crashed and hung
    services are restarted."""
    machine = boot()
    serve(machine, packages.first)
    ticket = join(machine)["ticket"]
    good = file(machine, CONFIG).read_text()

    file(machine, CONFIG).write_text(good + "no_such_setting: 1\n")
    assert machine.run("systemctl restart tellerline-expirer", check=False).returncode != 0
    assert machine.show("tellerline-expirer", "ActiveState") == "failed"
    assert machine.show("tellerline-expirer", "NRestarts") == "0"
    assert "no_such_setting" in machine.journal("-expirer")
    pids = main_pids(machine)
    heard = machine.apt(f"install {machine.put(packages.second)}")
    assert "the configuration has a mistake" in heard and "no_such_setting" in heard
    assert main_pids(machine) == pids, "an upgrade with a wrong configuration affected running services"

    file(machine, CONFIG).write_text(good)

    of_one = file(machine, "/etc/default/tellerline-expirer")
    of_one.write_text("TELLERLINE_ADMIN_EXPIRER=nowhere\n")
    heard = machine.apt(f"install --reinstall {machine.put(packages.second)}")
    assert "the configuration has a mistake" in heard and "nowhere" in heard
    assert main_pids(machine) == pids, "an upgrade with a wrong setting of one service affected running services"
    of_one.unlink()

    machine.run("systemctl restart tellerline.target")
    assert states(machine) == ["active"] * len(SERVICES)

    # Killed.
    machine.run("systemctl kill --signal=KILL tellerline-dispatcher")
    wait_for(lambda: machine.show("tellerline-dispatcher", "NRestarts") == "1" and
             machine.show("tellerline-dispatcher", "ActiveState") == "active", "the dispatcher runs again")
    # Hung: with a short watchdog interval, all services report, and then one stops reporting.
    machine.run("mkdir -p /run/systemd/system/tellerline-.service.d && printf '[Service]\\nWatchdogSec=8s\\n' "
                "> /run/systemd/system/tellerline-.service.d/test.conf && systemctl daemon-reload && "
                "systemctl restart tellerline.target")
    for service in SERVICES:
        first = machine.show(service, "WatchdogTimestampMonotonic")
        wait_for(lambda: machine.show(service, "WatchdogTimestampMonotonic") != first, f"{service} feeds the watchdog")
    assert [machine.show(service, "NRestarts") for service in SERVICES] == ["0"] * len(SERVICES)
    machine.run("systemctl kill --signal=STOP tellerline-admitter")
    wait_for(lambda: machine.show("tellerline-admitter", "NRestarts") == "1" and
             machine.show("tellerline-admitter", "ActiveState") == "active", "the watchdog has ended the admitter")
    # One process of the worker: its parent restarts it.
    worker = machine.show("tellerline-worker", "MainPID")
    children = set(machine.out(f"cat /proc/{worker}/task/{worker}/children").split())
    machine.run(f"kill -KILL {min(children, key=int)}")
    wait_for(lambda: len(set(machine.out(f"cat /proc/{worker}/task/{worker}/children").split()) - children) == 1,
             "the worker has a new process")
    assert machine.show("tellerline-worker", "MainPID") == worker

    machine.run("systemctl reload tellerline-dispatcher tellerline-worker")
    for program in ("dispatcher", "worker"):
        wait_for(lambda program=program: "read again" in machine.journal(f"-{program}"), f"the {program} has reloaded")
    wait_for(lambda: ready(machine), "ready")
    assert places(machine, [ticket]) == [("active", None)]


# Files that change on any running machine.
PASSING = ("/run/", "/tmp/", "/var/tmp/", "/proc/", "/sys/", "/dev/", "/root/", "/var/log/", "/var/cache/",
           "/var/lib/apt/", "/var/lib/dpkg/", "/var/lib/redis", "/var/lib/systemd/", "/etc/ld.so.cache")
ELSEWHERE = ("/root/", "/proc/", "/sys/", "/var/log/")


def leftovers(machine: Machine, before: set[str]) -> set[str]:
    """New files, except ignored ones. Files with our name are never ignored."""
    new = set(machine.out("find / -xdev").splitlines()) - before
    ours = {path for path in new if "tellerline" in path and not path.startswith(ELSEWHERE)}
    return ours | {path for path in new if not path.startswith(PASSING)}


def processes(machine: Machine) -> list[str]:
    """The processes of the services' users."""
    users = " -o ".join(f"-user {line.split(':')[0]}" for line in file(machine, "/etc/passwd").read_text().splitlines()
                        if line.startswith("tellerline"))
    return machine.out(f"find /proc -maxdepth 1 -name '[0-9]*' '(' {users} ')'").splitlines()


@pytest.mark.long(30)
def test_removal(packages: Packages, boot: Boot) -> None:
    """Removal stops services and keeps configuration and keys. Reinstallation restores all, and purge leaves nothing."""
    machine = boot()
    depends = machine.apt(f"install --simulate {machine.put(packages.first)}")
    libraries = [line.split()[1] for line in depends.splitlines()
                 if line.startswith("Inst ") and "tellerline" not in line]
    machine.apt(f"install redis-server {' '.join(libraries)}")
    before = set(machine.out("find / -xdev").splitlines())
    machine.apt(f"install /root/{packages.first.name}")
    open_queue(machine)
    ticket = join(machine)["ticket"]
    assert len(processes(machine)) >= len(SERVICES)
    file(machine, "/etc/default/tellerline-worker").write_text("TELLERLINE_LOG_LEVEL=debug\n")
    keys = file(machine, "/var/lib/tellerline/ticket.keys").read_text()

    machine.apt("remove tellerline")
    assert processes(machine) == []
    assert machine.run(f"curl -fs {SITE}/livez", check=False).returncode != 0
    assert file(machine, "/var/lib/tellerline/ticket.keys").read_text() == keys
    assert "shop" in file(machine, CONFIG).read_text()
    assert not file(machine, "/usr/bin/tellerline-worker").exists()

    machine.apt(f"install /root/{packages.first.name}")
    wait_for(lambda: ready(machine), "ready after coming back")
    assert places(machine, [ticket]) == [("active", None)]

    machine.apt("purge tellerline")
    assert leftovers(machine, before) == set()
    for database in ("passwd", "group", "shadow"):
        assert "tellerline" not in file(machine, f"/etc/{database}").read_text()
    for listing in ("list-unit-files", "list-units --all"):
        shown = machine.run(f"systemctl {listing} --no-legend --no-pager 'tellerline*'", check=False)
        assert shown.stdout + shown.stderr == ""
    assert all(not file(machine, f"/usr/bin/tellerline-{program}").exists() for program in PROGRAMS)
    assert machine.state() == "running"
