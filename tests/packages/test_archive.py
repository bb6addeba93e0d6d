# SPDX-License-Identifier: Apache-2.0
"""A server with an archive, set up with the commands of docs/operators/debian.md and archive.md as they are written there."""
from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from conftest import ROOT, Packages
from machine import Machine, wait_for
from server import CONFIG, SERVICES, SITE, file, join, ready, status

Boot = Callable[[], Machine]

ARCHIVER = "tellerline-archiver.service"
PAGES = ROOT / "docs/operators"
PACKAGE = "./build/package/tellerline_0.1.0-1_amd64.deb"  # in the page


def blocks(page: str, heading: str, language: str = "sh") -> list[str]:
    """The blocks of code in a section of a page."""
    section = (PAGES / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found, f"{page}, {heading}: no {language}"
    return found


def commands(block: str) -> list[str]:
    """Its commands, one on each line, without comments."""
    return [re.sub(r"\s+# .*", "", line) for line in block.splitlines()]


def archive(machine: Machine, sql: str) -> str:
    """What PostgreSQL answers, a line for each row."""
    return machine.out(f'sudo -u postgres psql -d archive -AtX -c "SET search_path = tellerline" -c "{sql}" -q')


def entries(machine: Machine) -> str:
    """The status of each place in the archive, in the order of the line."""
    return archive(machine, "SELECT string_agg(status::text, ' ' ORDER BY seq) FROM queue_entries")


def one_buys(machine: Machine) -> None:
    """A visitor joins, comes in and completes."""
    ticket = join(machine, "concert")["ticket"]
    wait_for(lambda: status(machine, ticket, "concert")["status"] == "active", "the visitor is in")
    done = machine.out(f"curl -fsS -X POST -H 'Authorization: Bearer {ticket}' {SITE}/v1/queues/concert/complete")
    assert json.loads(done)["status"] == "completed"


@pytest.fixture
def machine(packages: Packages, boot: Boot) -> Machine:
    """Installed as the page says, with the queue `concert`, and one visitor in it."""
    made = boot()
    file(made, "/etc/apt/apt.conf.d/answers").write_text('APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\n')
    made.apt("install sudo")
    install, keep, create = blocks("debian.md", "Installing")
    assert PACKAGE in install
    apt, services = commands(install.replace(PACKAGE, made.put(packages.first)))
    made.run(apt)
    assert all(service in made.run(services, check=False).stdout for service in SERVICES)  # some may still be starting
    for command in commands(keep):
        made.run(command)
    wait_for(lambda: ready(made), "ready")
    queue, visitor = commands(create)
    made.run(queue)
    wait_for(lambda: '"status":"active"' in made.run(visitor, check=False).stdout, "the first visitor is in")
    return made


@pytest.mark.long(60)
def test_on_the_same_machine(machine: Machine) -> None:
    """By the page for Debian: with a PostgreSQL that knows the archiver by its user. Without PostgreSQL the record waits."""
    setup, use, *_ = (commands(block) for block in blocks("debian.md", "The archive"))
    (settings,) = blocks("debian.md", "The archive", "yaml")
    *begin, report = use
    for command in setup:
        machine.run(command)
    with file(machine, CONFIG).open("a") as config:
        config.write(settings)
    machine.run("tellerline check")
    machine.run("systemctl restart tellerline-archiver")  # too early
    wait_for(lambda: "tellerline db migrate" in machine.show(ARCHIVER, "StatusText"), "it says that there are no tables")
    for command in begin:
        machine.run(command)
    assert report.endswith(" report concert")
    wait_for(lambda: machine.show(ARCHIVER, "StatusText") == "ready", "the archiver is ready")
    one_buys(machine)
    wait_for(lambda: entries(machine) == "active completed", "both are in the archive")
    assert "Arrived 2: admitted 2, gave up 0, still waiting 0." in machine.out(report)

    machine.run("systemctl stop postgresql")
    one_buys(machine)
    wait_for(lambda: machine.show(ARCHIVER, "StatusText") != "ready", "the archiver says what it waits for")
    machine.run("systemctl start postgresql")
    wait_for(lambda: entries(machine) == "active completed completed", "what happened meanwhile is in the archive")
    wait_for(lambda: machine.show(ARCHIVER, "StatusText") == "ready", "the archiver is ready again")
    assert machine.show(ARCHIVER, "NRestarts") == "0"


@pytest.mark.long(60)
def test_elsewhere_with_a_password(machine: Machine) -> None:
    """By both pages: as if PostgreSQL were on another machine, over TLS. The services of visitors cannot read the password.
    PostgreSQL gets pseudonyms."""
    machine.apt("install postgresql")
    setting_up = (PAGES / "archive.md").read_text().partition("\n## Setting it up\n")[2]
    database = re.search(r"`(createuser --pwprompt .*?)`", setting_up)
    assert database
    # Without a terminal it reads the new password, twice, from its input.
    machine.run(f"printf 'secret\\nsecret\\n' | runuser -u postgres -- sh -c '{database[1]}'")
    config, key = file(machine, CONFIG), "/var/lib/tellerline-archiver/archive.key"
    with config.open("a") as settings:
        settings.write("archive:\n  pseudonyms: true\n")
    _, _, elsewhere, *_ = (commands(block) for block in blocks("debian.md", "The archive"))
    install, edit, *rest = elsewhere
    machine.run(install)
    (url_file,) = re.fullmatch(r"sudoedit (/etc/tellerline/\S+)", edit).groups()
    file(machine, url_file).write_text("postgresql://archive:secret@127.0.0.1/archive?sslmode=require\n")
    for command in rest:
        machine.run(command)
    for user, reads in (("tellerline", False), ("tellerline-dispatcher", False), ("tellerline-archiver", True)):
        done = machine.run(f"setpriv --reuid {user} --regid {user} --init-groups cat {url_file}", check=False)
        assert (done.returncode == 0) == reads, (user, done.stderr)

    wait_for(lambda: machine.show(ARCHIVER, "StatusText") == "ready", "the archiver is ready")
    visitor = join(machine, "concert")["visitor"]
    wait_for(lambda: entries(machine) == "active active", "both are in the archive")
    assert machine.out(f"stat -c '%U %a' {key}") == "tellerline-archiver 600"
    names = archive(machine, "SELECT visitor FROM queue_entries").split()
    assert visitor not in names and all(re.fullmatch("[0-9a-f]{32}", name) for name in names)
    assert archive(machine, "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
                            "WHERE usename = 'archive'") == "t"
