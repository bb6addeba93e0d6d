# SPDX-License-Identifier: Apache-2.0
"""The command line by itself: its table of commands, the manual page, the completions."""
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tellerline import BIN, PATIENCE, TOP, environment, run
from waiting import patient, wait_until

TELLERLINE = BIN / "tellerline"
COMPLETION = TOP / "ctl" / "completion"

QUEUES = {"sale": {"capacity": 1}, "sample": {}, "other": {}}


def words(*typed: str) -> list[str]:
    """What the command itself says can follow."""
    said = run(TELLERLINE, "complete", "--", *typed)
    assert said.returncode == 0, said.stderr
    return [line.split("\t")[0] for line in said.stdout.splitlines()]


def commands() -> list[str]:
    """All commands that the help lists."""
    groups = run(TELLERLINE, "--help").stdout.split("\n\n")
    lines = [line for group in groups[2:-2] for line in group.splitlines() if line.startswith("  ")]
    return [line[2:20].strip() for line in lines]


def test_the_help_has_every_command_and_every_command_has_help():
    listed = commands()
    assert {"queue list", "queue set", "visitor move", "up", "top"} <= set(listed)
    assert not {"manual", "complete", "config-doc"} & set(listed)
    for command in listed:
        said = run(TELLERLINE, *command.split(), "--help")
        assert said.returncode == 0 and said.stdout.startswith(f"Usage: tellerline {command} [options]"), command
        assert all(len(line) <= 120 for line in said.stdout.splitlines()), command
    assert run(TELLERLINE, "queue", "--help").stdout.count("\n  queue ") == sum(c.startswith("queue ") for c in listed)


@pytest.mark.parametrize("typed, says", [
    (("queue",), "queue list"), (("queue", "lst"), 'no such command: queue "lst"; did you mean "queue list"?'),
    (("visitr", "show"), '"visitr"; did you mean "visitor"?'), (("pasue", "x"), 'did you mean "queue pause"?'),
    (("stats", "x"), 'did you mean "queue stats"?'), (("queues",), 'did you mean "queue"?'), (("help", "queue", "lst"), '"queue list"'),
    (("webhook", "tset"), 'webhook "tset"; did you mean "webhook test"?'), (("nonsense",), '"nonsense"'),
    (("queue", "set", "--nonsense"), "no such option"), (("queue", "set", "sale"), "usage: tellerline queue set")])
def test_a_wrong_command_line_is_refused(typed, says):
    said = run(TELLERLINE, *typed)
    assert said.returncode == 2 and said.stdout == "" and says in said.stderr


def test_an_exit_status_is_said_once():
    for command in commands():
        said = run(TELLERLINE, *command.split(), "--help").stdout
        assert not re.search(r"1 \d", said.partition("Exit status:")[2].partition("\n")[0]), command


def test_help_is_a_command_too():
    for typed in ("", "queue", "queue set", "top"):
        said = run(TELLERLINE, "help", *typed.split())
        assert said.returncode == 0 and said.stdout == run(TELLERLINE, *typed.split(), "--help").stdout != "", typed


def test_the_manual_page_is_sound_and_complete(tmp_path):
    page = tmp_path / "tellerline.1"
    page.write_text(run(TELLERLINE, "manual").stdout)
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", str(page)], capture_output=True, text=True,
                          check=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "110"})
    assert done.stderr == ""
    for command in commands():
        assert f"\n   {command} [options]" in done.stdout, command
    for option in ("--config FILE", "--interval TIME", "--simulate"):
        assert option in done.stdout
    assert "`" not in done.stdout and "\\f" not in done.stdout


def test_what_can_follow():
    assert {"queue", "visitor", "top"} <= set(words(""))
    assert words("que")[0] == "queue" and words("queue", "se") == ["set", "sell-out"]
    assert words("top", "--in") == ["--interval"] and words("top", "--interval", "") == []
    assert words("queue", "set", "sale", "rate.b") == ["rate.burst="]
    assert words("queue", "set", "sale", "capacity=3", "policy=") == ["policy=counter", "policy=rate", "policy=both"]
    assert words("check", "--config", "") == [":files"] and words("queue", "list", "--data", "x") == [":folders"]
    assert words("queue", "list", "-o", "") == ["table", "json", "yaml"]
    assert words("no-such", "") == words("queue", "no-such", "") == []


# ---- the shells ----

def completed(shell: str, line: str, folder: Path) -> set[str]:
    """What the shell itself offers after this line."""
    env = environment({"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder), "LINE": line,
                       "ASAN_OPTIONS": "detect_leaks=0"})
    if shell == "bash":
        script = (f'. {COMPLETION}/tellerline.bash; compopt() {{ :; }}; COMP_LINE=$LINE COMP_POINT=${{#LINE}}; '
                  '_tellerline; printf "%s\\n" "${COMPREPLY[@]}"')
        command = ["bash", "--norc", "-c", script]
    elif shell == "fish":
        command = ["fish", "--no-config", "-c", f'source {COMPLETION}/tellerline.fish; complete -C "$LINE"']
    else:
        # zsh completes only in its line editor: catch what is offered to that.
        script = ('compdef() { : }; _describe() { print -l -- "${(@)${(@P)2}%%:*}" }; '
                  'compadd() { print -l -- "${(@P)argv[-1]}" }; _files() { print :files }; '
                  f'source {COMPLETION}/_tellerline; words=("${{(@s: :)LINE}}"); CURRENT=$#words; _tellerline')
        command = ["zsh", "-f", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, check=False,
                          timeout=patient(PATIENCE), stdin=subprocess.DEVNULL)
    assert done.stderr == "", done
    return {line.split("\t")[0].strip() for line in done.stdout.splitlines() if line.strip()}


def test_shells_complete(tmp_path, start):
    system = start(QUEUES, workers=0, admitters=0, expirers=0)
    wait_until(lambda: system.store.command("SCARD", "tl:queues") == 3, PATIENCE, "the queues exist")
    config = f"--config {system.config}"
    (tmp_path / "plan.yaml").write_text("")
    for shell in ("bash", "zsh", "fish"):
        assert completed(shell, "tellerline queue pa", tmp_path) == {"pause", "passthrough"}, shell
        assert completed(shell, f"tellerline queue pause {config} sa", tmp_path) == {"sale", "sample"}, shell
        names = completed(shell, "tellerline queue set sale capacity", tmp_path)
        assert names == {"capacity=", "capacity.min="}, shell
        values = completed(shell, "tellerline queue set sale order=", tmp_path)
        assert {value.removeprefix("order=") for value in values} == {"arrival", "draw"}, shell
        offered = completed(shell, "tellerline check --config pl", tmp_path)
        assert offered == ({":files"} if shell == "zsh" else {"plan.yaml"}), shell


# ---- a file that was edited ----

def test_each_role_says_once_where_an_edited_file_is_without_effect(start):
    system = start({"sale": {"capacity": 5, "session_ttl": "5m", "lanes": ["vip", "all"]}, "calm": {"capacity": 2}})
    system.set("sale", "capacity=7", "session_ttl=9m", "claim_ttl=30s")  # the file says nothing of claim_ttl
    for program in system.programs:
        program.stop()
        before = len(program.text())
        program.start()
        program.wait_ready()
        wait_until(lambda p=program, b=before: p.text()[b:].count("tellerline apply") >= 2, PATIENCE, "it says so")
    wait_until(lambda: system.client().get("/v1/queues/sale").status == 200, PATIENCE, "the worker serves it")
    for program in system.programs:
        said = [line for line in program.text().splitlines() if "tellerline apply" in line]
        assert len(said) == 2 and all("level=warn" in line and "queue=sale" in line for line in said), said
        assert 'capacity: the file says \\"5\\", but \\"7\\" of the store' in said[0]
        assert 'session_ttl: the file says \\"5m\\", but \\"9m\\"' in said[1]


# ---- the system that a package installed ----

#: In a name space of mounts of its own, /etc is a copy, with the files of a package; no Redis is where they say.
INSTALLED = """set -e
mount -t tmpfs none "$1"
cp -a /etc "$1"
mount --bind "$1/etc" /etc
mkdir -p /etc/tellerline /etc/default
echo 'redis: {url: "redis://127.0.0.1:1/0"}' >/etc/tellerline/tellerline.yaml
echo 'TELLERLINE_REDIS_URL=redis://127.0.0.1:2/0' >/etc/default/tellerline
chgrp 65500 /etc/tellerline/tellerline.yaml
chmod 640 /etc/tellerline/tellerline.yaml
chmod 600 /etc/default/tellerline
group=$2
shift 2
exec setpriv --reuid 65534 --regid "$group" --clear-groups "$@"
"""
ENVIRONMENT = "going on without the settings of /etc/default/tellerline: Permission denied"


def has_mounts() -> bool:
    """Can mounts of its own be made here, and another user become of root?"""
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "none", "/mnt"],
        capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_mounts(), reason="only root can lay a copy over /etc, and become another user")
def test_a_user_who_may_not_read_what_is_installed(tmp_path):
    def as_other(group: int, *typed: str) -> subprocess.CompletedProcess[str]:
        script = ["unshare", "--mount", "--propagation", "private", "sh", "-c", INSTALLED, "sh", str(tmp_path)]
        return run(*script, str(group), str(TELLERLINE), *typed)

    member = as_other(65500, "queue", "list")
    assert member.returncode == 2 and "127.0.0.1:1" in member.stderr and ENVIRONMENT in member.stderr, member
    nobody = as_other(65534, "queue", "list")
    assert nobody.returncode == 2 and "/etc/tellerline/tellerline.yaml: not readable" in nobody.stderr, nobody
    key = as_other(65534, "key", "create", "api", "shop", "-")
    assert key.returncode == 0 and key.stderr == "" and key.stdout.startswith("shop "), key
    assert "--output" in as_other(65534, "complete", "--", "queue", "set", "--o").stdout
