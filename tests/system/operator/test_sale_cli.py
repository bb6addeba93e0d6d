# SPDX-License-Identifier: Apache-2.0
"""A sale from the command line alone: straight on Redis, over HTTP with a token, and by the runbook of the documents."""
from __future__ import annotations

import csv
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from admin import admin_file
from http_client import Visitor
from sale_story import NOTICE, Change, check_record, story
from stand_in_server import QuietHandler, StandInServer
from tellerline import BIN, PATIENCE, TOP, System, environment, run
from waiting import patient, wait_until

PAGE = TOP / "docs" / "operators" / "sale-day.md"

Do = Callable[..., subprocess.CompletedProcess[str]]


def changes(system: System, queue: str) -> list[dict]:
    """The record of changes of a queue, oldest first."""
    said = system.ctl("log", "-q", queue, "-o", "json")
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)["changes"]


def listed(export: str) -> set[str]:
    """The visitors of an export as CSV. Before an id that a spreadsheet would compute ("-1") stands a quote."""
    return {row["visitor"].removeprefix("'") for row in csv.DictReader(export.splitlines())}


def served(system: System, queue: str) -> None:
    wait_until(lambda: system.client().get(f"/v1/queues/{queue}").status == 200, PATIENCE, "the worker serves the queue")


def run_sale(system: System, do: Do) -> list[Change]:
    """Everything that an operator does in a sale. What the record has to say then."""
    def done(*words: str) -> str:
        said = do(*words)
        assert said.returncode == 0, (words, said.stdout, said.stderr)
        return said.stdout

    done("queue", "create", "sale", "capacity=1", "lanes=vip,normal", "default_lane=normal", "mode=paused")
    served(system, "sale")
    visitors = [system.join("sale") for _ in range(4)]
    assert "sale" in done("queue", "list") and "vip,normal" in done("queue", "show", "sale")
    done("queue", "open", "sale")
    wait_until(visitors[0].is_active, PATIENCE, "the first is in")
    done("queue", "notice", "sale", *(f"{language}={text}" for language, text in NOTICE.items()))
    assert system.ctl("queue", "notice", "sale", "en=A", "no language").returncode == 1
    assert system.ctl("queue", "notice", "sale", "en=A", "en=B").returncode == 1
    assert "capacity=2 (was 1)" in done("queue", "set", "sale", "capacity=2")
    wait_until(visitors[1].is_active, PATIENCE, "the second is in, too")
    done("queue", "pause", "sale")
    done("queue", "resume", "sale")
    assert visitors[3].status()["position"] == 2
    done("visitor", "move", "sale", visitors[3].ticket, "vip")
    wait_until(lambda: visitors[3].status()["position"] == 1, PATIENCE, "the important one goes first")
    assert "status       waiting" in done("visitor", "show", "sale", visitors[3].ticket)
    code = visitors[3].view["reference"]
    assert visitors[3].view["visitor"] in done("visitor", "show", "sale", "--reference", code.lower().replace("-", " "))
    assert "revoked" in done("visitor", "remove", "sale", visitors[0].ticket, "--yes")
    wait_until(lambda: system.client().get("/v1/queues/sale/check", ticket=visitors[0].ticket).status != 204, PATIENCE,
               "the gate refuses who was removed")
    done("queue", "drain", "sale")
    assert listed(done("queue", "export", "sale")) == {visitor.view["visitor"] for visitor in visitors}
    done("queue", "sell-out", "sale")
    return story(important=visitors[3].view["visitor"], revoked=visitors[0].view["visitor"])


def test_a_sale_from_the_command_line_on_redis(start):
    system = start({})
    expected = run_sale(system, system.ctl)
    me = os.environ.get("SUDO_USER") or subprocess.check_output(["id", "-un"], text=True).strip()
    check_record(system, changes(system, "sale"), expected, me, "cli")


# ---- the runbook ----

def runbook() -> list[str]:
    """The commands of the page's timeline, in its order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    return [line for block in blocks for line in block.splitlines()]


def asks(line: str) -> bool:
    return line.startswith(("tellerline queue delete", "tellerline visitor remove"))


def test_the_runbook_works_as_it_is_written(start, tmp_path: Path):
    system = start({})
    visitors: list[Visitor] = []
    env = environment({"TELLERLINE_CONFIG": str(system.config), "PATH": f"{BIN}:{os.environ['PATH']}"})

    def shell(line: str) -> str:
        done = subprocess.run(["bash", "-ec", line], env=env, cwd=tmp_path, capture_output=True, text=True,
                              timeout=patient(60), stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout

    for line in runbook():
        if line.startswith("tellerline queue line"):
            system.set("concert", "capacity=1")  # somebody has to wait
            visitors += [system.join("concert") for _ in range(3)]
            env |= {"VISITOR": visitors[-1].ticket, "ANOTHER": visitors[-2].ticket}
        said = shell(line + (" --count 1" if line == "tellerline top" else " --yes" if asks(line) else ""))
        if line.startswith("tellerline queue create"):
            served(system, "concert")
            visitors += [system.join("concert") for _ in range(3)]
        elif line == "tellerline queue open concert":
            wait_until(lambda: all(v.is_active() for v in visitors), PATIENCE, "all are in")
        elif line.startswith("tellerline queue stats"):
            # Workers report once in a while, and late on a busy machine.
            wait_until(lambda known=line: "missing" not in (now := shell(known)) and "workers     1" in now, PATIENCE,
                       "the worker reports")
        elif line == "tellerline top":
            assert "OLDEST" in said and "GAVE UP" in said and "NO-SHOWS" in said, said
        elif line.startswith("tellerline visitor move"):
            wait_until(lambda: visitors[-1].status()["position"] == 1, PATIENCE, "the worker knows of the move")
        elif line.startswith("tellerline queue export"):
            assert listed((tmp_path / "concert.csv").read_text()) == {visitor.view["visitor"] for visitor in visitors}
        elif line.startswith("tellerline log"):
            assert said.count("concert") >= 10, said
    wait_until(lambda: system.store.command("SCARD", "tl:queues") == 0, PATIENCE, "the queue is gone")
    assert json.loads(shell("tellerline log -o json"))["changes"][-1]["what"] == "delete"


# ---- over HTTP ----

def over_http(system: System, token: str) -> Do:
    """Commands that know neither the configuration nor Redis."""
    server = f"http://127.0.0.1:{system.of('worker')[0].admin_port}"

    def do(*words: str) -> subprocess.CompletedProcess[str]:
        return run(BIN / "tellerline", *words, "--server", server, env={"TELLERLINE_TOKEN": token}, cwd=system.directory)

    return do


def test_a_sale_from_the_command_line_over_http(start):
    """The same sale leaves the same record, with the name of the token. Each role may do what it may."""
    system = start({}, prepare=admin_file)
    tokens = {role: system.ctl("token", "create", f"{role}s", role).stdout.strip() for role in ("viewer", "operator", "admin")}
    expected = run_sale(system, over_http(system, tokens["operator"]))
    check_record(system, changes(system, "sale"), expected, "operators", "127.0.0.1")
    look, work, rule = (over_http(system, tokens[role]) for role in ("viewer", "operator", "admin"))
    for words in (["queue", "list"], ["queue", "stats", "sale"], ["queue", "line", "sale"], ["log", "-q", "sale"], ["queue", "export", "sale"],
                  ["block", "list"], ["draw", "show", "sale"], ["top", "--count", "1"]):
        done = look(*words)
        assert done.returncode == 0, (words, done.stderr)
    assert look("queue", "close", "sale").returncode == 4 and work("queue", "delete", "sale", "--yes").returncode == 4
    assert work("token", "list").returncode == 4 and over_http(system, "tl_no_" + "x" * 43)("queue", "list").returncode == 4
    assert "operators" in rule("token", "list").stdout
    assert work("block", "add", "192.0.2.0/24", "--for", "1h").returncode == 0
    assert work("block", "remove", "192.0.2.0/24").returncode == 0
    assert rule("queue", "delete", "sale", "--yes").returncode == 0
    client = system.client()
    wait_until(lambda: client.post("/v1/queues/sale/join").status == 404, PATIENCE, "visitors are told so")
    made = rule("token", "create", "late", "viewer")
    assert made.stdout.startswith("tl_late_") and rule("token", "revoke", "late", "--yes").returncode == 0
    assert over_http(system, made.stdout.strip())("queue", "list").returncode == 4, "it opens nothing any more"


class Answers(QuietHandler):
    """What it answers in turn: status, type, body."""

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        status, kind, body = self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_answers_that_are_not_of_the_admin_api(tmp_path):
    """A page in the place of an answer is no empty list; and a refusal half way has its exit status."""
    page, draw = (200, "text/html", b"<h1>Welcome</h1>"), (200, "application/json", b'{"phase": "done"}')
    refusal = (401, "application/problem+json", b'{"detail": "This is no token of an operator"}')
    server = StandInServer(Answers)
    with server.serving():
        for answers, words, status, says in (
                ([page], ("queue", "list"), 2, "answers 200 without JSON: is it the admin listener?"),
                ([draw, page], ("draw", "show", "lots", str(tmp_path / "list")), 2, "answers 200 without JSON"),
                ([draw, (200, "application/json", b"")], ("draw", "show", "lots", str(tmp_path / "list")), 2, "the answer is empty"),
                ([draw, refusal], ("draw", "show", "lots", str(tmp_path / "list")), 4, "This is no token of an operator")):
            server.answers = answers
            done = run(BIN / "tellerline", *words, "--server", f"http://127.0.0.1:{server.port}", env={"TELLERLINE_TOKEN": "tl_no_" + "x" * 43})
            assert (done.returncode, says in done.stderr) == (status, True), (words, done.returncode, done.stdout, done.stderr)
