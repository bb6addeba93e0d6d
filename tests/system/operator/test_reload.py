# SPDX-License-Identifier: Apache-2.0
"""SIGHUP after any change of the file: it is in force, or the log says when it will be. No program ends of it."""
from __future__ import annotations

import re
import signal

import pytest

from tellerline import CALM, PATIENCE, Program, System, run
from waiting import wait_until

pytestmark = pytest.mark.sanitized

READ, REFUSED = "configuration read again", "reload refused"

#: Another value of a text; those of all other types follow from their bounds.
TEXTS = {
    "redis.url": "unix:///nowhere/redis.sock", "redis.key_prefix": "other:", "redis.ca_file": "other.pem",
    "http.public_url": "https://other.example", "http.trusted_proxies": "10.0.0.0/8", "http.allowed_origins": "https://shop.example",
    "bypass.networks": "10.1.0.0/16", "bypass.header": "X-Staff", "brand.name": "Another", "brand.accent_light": "#224488",
    "brand.accent_dark": "#ddeeff", "brand.timezone": "Asia/Seoul", "brand.text": "Hello",
    "http.return_urls": "https://shop.example/back", "admin.public_url": "https://admin.example",
    "admin.redis_url": "unix:///nowhere/admin.sock", "admin.trusted_proxies": "10.2.0.0/16", "notifier.http_hosts": "webhooks",
    "archive.url": "postgresql://nowhere/archive",
    "challenge_service.site_key": "key", "challenge_service.verify_url": "https://verify.example/v",
    "challenge_service.script_url": "https://script.example/s.js", "challenge_service.hostname": "shop.example",
    # Files that do not exist.
    "brand.style": "none.css", "brand.logo": "none.svg", "brand.languages": "none",
    "secrets.ticket_keys": "none", "secrets.api_keys": "none", "secrets.pass_keys": "none", "secrets.invite_keys": "none",
    "secrets.challenge_secret": "none", "secrets.admin_token": "none", "secrets.token_key": "none", "secrets.draw_key": "none",
    "secrets.archive_key": "none", "secrets.trail_key": "none",
}
#: Whose files workers read at a reload. These are not there, or hold something else.
FILES_READ = {"pass.algorithm", "brand.style", "brand.logo", "secrets.ticket_keys", "secrets.pass_keys", "secrets.invite_keys",
              "secrets.challenge_secret"}
#: Every program refuses this one: the provider has no score.
INVALID = {"challenge_service.min_score"}


def rows(system: System) -> list[tuple[str, str]]:
    """Each setting of the programs, and another value than its default."""
    table = run(system.folder / "tellerline", "config-doc").stdout
    found = []
    for path, kind, default, bounds in re.findall(r"^\| `([\w.]+)` \| `TELLERLINE_\w+` \| (\w+) \| (.+?) \| (.+?) \|", table, re.M):
        others = {"boolean": ["true", "false"], "choice": bounds.split(", "), "address": ["127.0.0.1:1"],
                  "text": [TEXTS.get(path, "")], "list": [TEXTS.get(path, "")], "texts": [TEXTS.get(path, "")]}.get(kind, bounds.split(" to "))
        other = next((value for value in others if value != default.strip("`")), "")
        assert other, f"{path}: no other value than {default}"
        found.append((path, other))
    return found


def reload(programs: list[Program]) -> dict[str, str]:
    """The line of each program's log that says what came of it."""
    before = {program.name: len(program.text()) for program in programs}
    for program in programs:
        program.send(signal.SIGHUP)

    def said(program: Program) -> str:
        lines = program.text()[before[program.name]:].splitlines()
        return next((line for line in lines if READ in line or REFUSED in line), "")

    return {program.name: wait_until(lambda p=program: said(p), PATIENCE, f"{program.name} says what it did")
            for program in programs}


@pytest.mark.long(seconds=20)
def test_every_setting(start):
    """One after the other. Visitors notice nothing, and the next reload puts everything back."""
    system = start({"bank": {"capacity": 1} | CALM}, notifiers=1)
    system.expect(REFUSED)
    active, waiting = system.join("bank"), system.join("bank")
    wait_until(active.is_active, PATIENCE, "the first is called")
    original = system.config.read_text()
    settings = rows(system)
    assert len(settings) > 60, settings
    for path, value in settings:
        section, _, name = path.partition(".")
        changed, n = re.subn(rf"(?m)^({section}:\n(?:  .*\n)*?)  {name}: .*\n", r"\1", original)
        line = f"  {name}: \"{value}\"\n" if path in TEXTS else f"  {name}: {value}\n"
        changed = changed.replace(f"{section}:\n", f"{section}:\n{line}", 1) if re.search(rf"(?m)^{section}:\n", changed) \
            else f"{changed}{section}:\n{line}"
        system.config.write_text(changed)
        said = reload(system.programs)
        for program in system.programs:
            assert program.running, f"{path}: {program.tail()}"
            refuses = path in INVALID or program.role == "worker" and path in FILES_READ
            line = said[program.name]
            assert (REFUSED if refuses else "the rest at the next start") in line, f"{path}: {value}: {line}"
            assert path != "log.format" or line.startswith("{"), line
        assert active.status()["status"] == "active" and waiting.status()["position"] == 1, path
    assert "capacity: 1\n" in original
    system.config.write_text(original.replace("capacity: 1\n", "capacity: 2\n"))
    for line in reload(system.programs).values():
        assert "`tellerline queue set` changes the settings of queues that exist" in line
    assert waiting.status()["position"] == 1
    system.config.write_text(original)
    reload(system.programs)
