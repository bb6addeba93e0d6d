# SPDX-License-Identifier: Apache-2.0
"""A server with an archive, set up with the commands of docs/operators/debian.md and archive.md as they are written there."""
from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from conftest import ROOT, Packages
from machine import Machine, wait_for
from server import CONFIG, SERVICES, SITE, file, join, ready

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


def entries(machine: Machine, database: str = "archive") -> str:
    """The status of each place in the archive, in the order of the line."""
    return machine.out("sudo -u postgres psql -d " + database + " -AtX -c \"SELECT string_agg(status::text, ' ' ORDER BY seq) "
                       'FROM tellerline.queue_entries"')


def one_buys(machine: Machine) -> None:
    """A visitor joins, comes in and completes."""
    ticket = join(machine, "concert")["ticket"]
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
    apt, status = commands(install.replace(PACKAGE, made.put(packages.first)))
    made.run(apt)
    assert all(service in made.run(status, check=False).stdout for service in SERVICES)  # some may still be starting
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
    setup, use = (commands(block) for block in blocks("debian.md", "The archive"))
    (settings,) = blocks("debian.md", "The archive", "yaml")
    *begin, report = use
    for command in setup:
        machine.run(command)
    with file(machine, CONFIG).open("a") as config:
        config.write(settings)
    machine.run("tellerline check")
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
