# SPDX-License-Identifier: Apache-2.0
"""What the commands print, ask and return: on a terminal and without one, with a file that differs, with -o json."""
from __future__ import annotations

import json
import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from yaml import safe_load

from admin import admin_file
from stand_in_server import QuietHandler, StandInServer
from tellerline import BIN, CALM, PATIENCE, System, run, yaml
from terminal import Terminal
from test_pass import API_KEY, key_file
from waiting import wait_until

TELLERLINE = str(BIN / "tellerline")
SALE = {"capacity": 1, "lanes": ["vip", "all"], "default_lane": "all"} | CALM


pytestmark = pytest.mark.together(seconds=8)


def begin(system: System, name: str) -> System:
    """The queue gets one active visitor and two who wait."""
    visitors = [system.join(name) for _ in range(3)]
    wait_until(lambda: system.active(name) == 1 and system.waiting(name) == 2, PATIENCE, "one is in, two wait")
    system.name = name
    system.first_of_line = visitors[1].ticket  # an id may begin with "-", which is taken for an option
    return system


@pytest.fixture(name="sale")
def sale_of_three(share) -> System:
    stack = share(queue=SALE)
    return begin(stack, stack.queue())


def edited(system: System, queues: dict) -> Path:
    """The same configuration with these queues."""
    text = re.sub(r"^queues:.*\Z", "", system.config.read_text(), flags=re.MULTILINE | re.DOTALL)
    path = system.directory / "edited.yaml"
    path.write_text(text + yaml({"queues": queues}))
    return path


# ---- statuses ----

@pytest.mark.sanitized
def test_exit_statuses(sale):
    visitor = sale.first_of_line
    for words, status, says in [
            (["queue", "show", sale.name], 0, "capacity"), (["queue", "show", "nowhere"], 1, "does not exist"),
            (["queue", "create", sale.name], 1, "already"), (["queue", "create", "Sale!"], 1, "name"),
            (["queue", "create", "new", "capacity=-1"], 1, "capacity"),
            (["queue", "set", sale.name, "capacity"], 1, "SETTING=VALUE"),
            (["queue", "set", sale.name, "capacity=1", "capacity=2"], 1, "twice"),
            (["queue", "set", sale.name, "nonsense=1", "capacity=x"], 1, "nonsense"),
            (["visitor", "show", sale.name, visitor], 0, "waiting"),
            (["visitor", "show", sale.name, "nobody"], 1, "no visitor nobody"),
            (["visitor", "move", sale.name, visitor, "gold"], 1, "not one of the lanes"),
            (["queue", "stats", "nowhere"], 1, "does not exist"), (["queue", "export", "nowhere"], 1, "does not exist"),
            (["queue", "export", sale.name, "--format", "xml"], 2, "not one of csv, jsonl"),
            (["queue", "recover", sale.name], 2, "one of --now and --wait"),
            (["block", "remove", "192.0.2.0/24"], 1, "not blocked"),
            (["queue", "delete", sale.name], 3, "--yes"), (["visitor", "remove", sale.name, visitor], 3, "--yes"),
            (["queue", "list", "--server", "ftp://x"], 2, "not an address"),
            (["queue", "list", "--server", "http://127.0.0.1:1"], 2, "TELLERLINE_TOKEN"),
            (["queue", "list", "--redis", "redis://127.0.0.1:1"], 2, "127.0.0.1")]:
        done = sale.ctl(*words)
        assert done.returncode == status and says in done.stdout + done.stderr, (words, done)
    assert sale.store.command("HGET", sale.key(sale.name, "config"), "capacity") == "1", "nothing was changed"
    refused = sale.ctl("queue", "set", sale.name, "nonsense=1", "capacity=x")
    assert "nonsense" in refused.stderr and "capacity" in refused.stderr, "every one that is wrong is named"


def test_what_is_no_text_is_not_sent(sale):
    """A body that cannot be made: nothing is asked without it."""
    visitor, broken = sale.first_of_line, os.fsdecode(b"a\xffb")
    for words in (["queue", "create", broken], ["visitor", "move", sale.name, visitor, broken],
                  ["token", "create", broken, "viewer"], ["token", "create", "eve", broken], ["block", "add", broken],
                  ["block", "add", "192.0.2.0/24", "--queue", broken],
                  ["queue", "notice", sale.name, broken], ["queue", "set", sale.name, "notice=" + broken]):
        done = sale.ctl(*words)
        assert done.returncode == 1 and "is not text in UTF-8" in done.stderr, (words, done)


def test_no_answer_of_a_server_is_a_failure(sale, tmp_path):
    token = tmp_path / "token"
    token.write_text("tl_me_" + "x" * 43 + "\n")
    token.chmod(0o600)
    done = sale.ctl("queue", "list", "--server", "http://127.0.0.1:1", "--token-file", str(token))
    assert done.returncode == 2 and "127.0.0.1" in done.stderr
    token.chmod(0o644)
    done = sale.ctl("queue", "list", "--server", "http://127.0.0.1:1", "--token-file", str(token))
    assert done.returncode == 2 and str(token) in done.stderr, "others can read it"


def test_a_notice_is_in_a_language_that_somebody_reads(sale, tmp_path):
    """kr= is no Korean: pages are in ko, and nobody would read it. One language is no text for everyone."""
    def now() -> str:
        return sale.store.command("HGET", sale.key(sale.name, "state"), "notice") or ""

    for words in (("kr=안녕",), ("en=Hello", "kr=안녕"), ("jp=x", "en=y")):
        refused = sale.ctl("queue", "notice", sale.name, *words)
        assert refused.returncode == 1 and 'no page is in' in refused.stderr and " ko " in refused.stderr, refused
        assert now() == ""
    assert sale.ctl("queue", "notice", sale.name, "zh=你好").returncode == 0, "both of zh-Hans and zh-Hant"
    assert sale.ctl("queue", "notice", sale.name, "ko=안녕").returncode == 0
    assert now() == "\x1e[ko] 안녕"
    assert sale.ctl("queue", "notice", sale.name, "price=3 or less").returncode == 0 and now() == "price=3 or less"
    assert sale.ctl("queue", "notice", sale.name, "").returncode == 0 and now() == ""


def test_a_block_without_effect_or_of_everyone_is_refused(start):
    system = start({"sale": SALE}, settings={"http": {"trusted_proxies": "127.0.0.1 10.1.0.0/16"}})
    for words, says in ((("192.0.2.7", "--queue", "slae"), "queue slae does not exist"),
                        (("127.0.0.1",), "http.trusted_proxies"), (("10.0.0.0/8",), "http.trusted_proxies"),
                        (("10.1.2.3",), "http.trusted_proxies")):
        refused = system.ctl("block", "add", *words)
        assert refused.returncode == 1 and says in refused.stderr, (words, refused)
    assert system.ctl("block", "list").stdout == "no prefix is blocked\n"
    assert system.ctl("block", "add", "10.2.0.1", "--queue", "sale").returncode == 0
    assert system.ctl("block", "remove", "10.2.0.1", "--queue", "sale").returncode == 0


def test_what_was_meant_is_proposed(start):
    system = start({"concert-2026": SALE, "museum": SALE}, prepare=admin_file)
    for words in (["queue", "show", "concert-2062"], ["queue", "stats", "concert2026"], ["queue", "set", "concert-2025", "capacity=2"],
                  ["visitor", "show", "concert-226", "x"], ["block", "add", "192.0.2.1", "--queue", "concert-202"],
                  ["queue", "export", "concert-20266"], ["log", "--queue", "concert-2027"], ["diff", "--queue", "concert-206"],
                  ["apply", "--queue", "concert2026"], ["draw", "show", "conzert-2026"],
                  ["rehearse", "concert-20-26", "--visitors", "1"]):
        refused = system.ctl(*words)
        assert refused.returncode == 1 and 'did you mean queue "concert-2026"?' in refused.stderr, (words, refused)
    refused = system.ctl("audit", "--queue", "musem")
    assert refused.returncode == 2 and 'did you mean queue "museum"?' in refused.stderr, refused
    for words in (["queue", "show", "theatre"], ["visitor", "show", "museum", "nobody"], ["diff", "--queue", "theatre"]):
        refused = system.ctl(*words)
        assert refused.returncode == 1 and "did you mean" not in refused.stderr, (words, refused)

    token = ["--token-file", str(system.directory / "admin.token")]
    worker = system.of("worker")[0]
    visitors, admin = (f"http://127.0.0.1:{port}" for port in (worker.http_port, worker.admin_port))
    refused = system.ctl("queue", "list", "--server", visitors, *token)
    assert refused.returncode == 1 and "is it the port of visitors?" in refused.stderr, refused
    refused = system.ctl("queue", "show", "musem", "--server", admin, *token)
    assert refused.returncode == 1 and 'did you mean queue "museum"?' in refused.stderr, refused
    assert "port of visitors" not in refused.stderr


def test_an_id_may_begin_with_a_hyphen(sale):
    """Two in a hundred of those made at random do; they stand in exports and logs, and are pasted."""
    refused = sale.ctl("visitor", "show", sale.name, "-uD4x_2Zz")
    assert refused.returncode == 1 and "no visitor -uD4x_2Zz; ends are known for retention.ended" in refused.stderr, refused


def test_the_line_says_how_it_goes_on(sale):
    first = sale.ctl("queue", "line", sale.name, "--limit", "1")
    assert first.returncode == 0 and first.stdout.endswith("2 wait in all; --from 2 goes on\n"), first
    last = sale.ctl("queue", "line", sale.name, "--from", "2")
    assert last.returncode == 0 and "wait in all" not in last.stdout, last


class _Endless(QuietHandler):
    """Says that more blocks come, and gives none but the first."""

    def do_GET(self) -> None:
        blocks = [] if "starting_after=" in self.path else [{"id": "a", "prefix": "192.0.2.0/24"}]
        body = json.dumps({"blocks": blocks, "has_more": True}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Line(QuietHandler):
    """A long line, in pages."""

    asked: list[tuple[int, int]] = []

    def do_GET(self) -> None:
        query = dict(parse_qsl(urlsplit(self.path).query))
        after, limit = int(query.get("starting_after", 0)), int(query.get("limit", 100))
        self.asked.append((after, limit))
        visitors = [{"position": after + i, "lane": "all", "joined_at": None, "visitor": f"v{after + i}"}
                    for i in range(1, limit + 1)]
        body = json.dumps({"queue": "sale", "waiting": 5000, "visitors": visitors, "has_more": True}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.parametrize(("words", "pages"), [
    ([], [(0, 100)]),
    (["--limit", "2100"], [(0, 1000), (1000, 1000), (2000, 100)]),
    (["--limit", "1001", "--from", "11"], [(10, 1000), (1010, 1)]),
])
def test_a_limit_beyond_a_page_is_asked_for_page_by_page(words, pages):
    _Line.asked.clear()
    with StandInServer(_Line).serving() as server:
        done = run(BIN / "tellerline", "queue", "line", "sale", *words, "-o", "json", "--server",
                   f"http://127.0.0.1:{server.port}", env={"TELLERLINE_TOKEN": "x" * 40})
    assert done.returncode == 0 and _Line.asked == pages, (done.stderr, _Line.asked)
    first = pages[0][0] + 1
    assert [visitor["position"] for visitor in json.loads(done.stdout)["visitors"]] == \
        list(range(first, first + sum(limit for _, limit in pages)))


def test_a_list_that_does_not_go_on_is_not_taken_for_whole():
    with StandInServer(_Endless).serving() as server:
        done = run(BIN / "tellerline", "block", "list", "--server", f"http://127.0.0.1:{server.port}",
                   env={"TELLERLINE_TOKEN": "x" * 40})
    assert done.returncode == 2 and done.stdout == "" and "empty, and is not the last" in done.stderr, done


def test_a_ticket_that_cannot_be_verified_is_no_unknown_visitor(start):
    """Short ids make tickets so short that they might be ids."""
    system = start({"sale": SALE}, prepare=lambda made: key_file(made.directory / "api.keys", f"shop {API_KEY}\n"))
    ticket = system.client().post("/v1/queues/sale/join", b'{"visitor": "42"}', ticket=API_KEY).json["ticket"]
    assert len(ticket) <= 64
    assert system.ctl("visitor", "show", "sale", ticket).returncode == 0
    keys = system.directory / "ticket.keys"
    keys.chmod(0o644)
    refused = system.ctl("visitor", "show", "sale", ticket)
    assert refused.returncode == 1 and "cannot be verified" in refused.stderr and str(keys) in refused.stderr, refused
    assert system.ctl("visitor", "show", "sale", "42").returncode == 0
    keys.chmod(0o600)


# ---- -o json, and times ----

@pytest.mark.sanitized
def test_json_is_one_value_with_times_in_utc(sale):
    visitor = sale.first_of_line
    sale.set(sale.name, "opens_at=2020-12-01T20:00:00+09:00")
    env = {"TZ": "Asia/Seoul"}
    for words in (["queue", "list"], ["queue", "show", sale.name], ["queue", "line", sale.name], ["queue", "stats", sale.name],
                  ["block", "list"], ["visitor", "show", sale.name, visitor], ["log"], ["token", "list"],
                  ["draw", "show", sale.name],
                  ["queue", "set", sale.name, "capacity=1"], ["queue", "pause", sale.name],
                  ["queue", "notice", sale.name, "x"],
                  ["visitor", "move", sale.name, visitor, "vip"], ["visitor", "remove", sale.name, visitor, "--yes"],
                  ["block", "add", "198.51.100.0/24", "--for", "1h"], ["queue", "create", "other"],
                  ["queue", "delete", "other", "--yes"]):
        done = run(BIN / "tellerline", *words, "-o", "json", "--config", str(sale.config), env=env)
        assert done.returncode == 0, (words, done.stderr)
        text = json.dumps(json.loads(done.stdout))
        assert "+09:00" not in text, (words, text)
    refused = run(BIN / "tellerline", "queue", "stats", "nowhere", "-o", "json", "--config", str(sale.config), env=env)
    assert json.loads(refused.stdout)["status"] == 404
    shown = run(BIN / "tellerline", "queue", "show", sale.name, "--config", str(sale.config), env=env).stdout
    assert "2020-12-01T20:00:00+09:00" in shown, "people see the time here, with its offset"
    opens = json.loads(run(BIN / "tellerline", "queue", "show", sale.name, "-o", "json", "--config", str(sale.config),
                           env=env).stdout)["settings"]["opens_at"]
    assert opens == "2020-12-01T11:00:00Z"


@pytest.mark.sanitized
def test_yaml_is_the_same_value(sale):
    """With texts that YAML could take for something else."""
    sale.ctl("queue", "notice", sale.name, "en=yes", "ko=- a: b # c\n\"곧\"")
    for words in (["queue", "list"], ["queue", "show", sale.name], ["visitor", "show", sale.name, sale.first_of_line],
                  ["block", "list"], ["log", "-q", sale.name], ["diff"], ["audit"]):
        as_json, as_yaml = (sale.ctl(*words, "-o", form) for form in ("json", "yaml"))
        assert as_yaml.stderr == "" and as_yaml.returncode == as_json.returncode, words
        found, wanted = safe_load(as_yaml.stdout), json.loads(as_json.stdout)
        assert same(found) == same(wanted), words


def same(value):
    """Without what is another one each time."""
    if isinstance(value, dict):
        return {name: same(inner) for name, inner in value.items() if name not in ("at", "joined_at")}
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return type(value)
    return [same(inner) for inner in value] if isinstance(value, list) else value


def test_the_export_is_complete_or_not_there(sale, tmp_path):
    lines = sale.ctl("queue", "export", sale.name, "--format", "jsonl").stdout.splitlines()
    assert sorted(json.loads(line)["status"] for line in lines) == ["active", "waiting", "waiting"]
    target = tmp_path / "sale.csv"
    assert sale.ctl("queue", "export", sale.name, str(target)).returncode == 0
    assert len(target.read_text().splitlines()) == 4 and target.read_text().splitlines()[0].startswith("visitor,")
    assert sale.ctl("queue", "export", "nowhere", str(tmp_path / "none.csv")).returncode == 1
    assert not (tmp_path / "none.csv").exists()
    assert sale.ctl("queue", "export", sale.name, "/dev/full").returncode == 2


# ---- the terminal ----

def on_terminal(system: System, *words: str, **more) -> Terminal:
    return Terminal(TELLERLINE, *words, "--config", str(system.config), **more)


def test_colour_is_for_terminals_that_want_it(sale):
    sale.ctl("queue", "pause", sale.name)
    assert "\033[" not in sale.ctl("queue", "list").stdout
    for env, coloured in [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)]:
        shown = on_terminal(sale, "queue", "list", env=env)
        assert shown.end() == 0 and ("\033[33mpaused" in shown.text or "\033[33mopen" in shown.text) == coloured, shown.text


@pytest.mark.sanitized
def test_what_cannot_be_undone_is_asked(start):
    sale = begin(start({"sale": SALE}), "sale")
    visitor = sale.first_of_line
    asked = on_terminal(sale, "visitor", "remove", "sale", visitor)
    asked.expect("Go on? [y/N]")
    asked.type("\n")
    assert asked.end() == 3 and "Nothing was changed" in asked.text
    asked = on_terminal(sale, "queue", "delete", "sale")
    asked.expect("2 who wait lose their places, 1 who are active")
    asked.type("yes\n")  # not its name
    assert asked.end() == 3
    assert sale.waiting("sale") == 2
    asked = on_terminal(sale, "visitor", "remove", "sale", visitor)
    asked.expect("[y/N]")
    asked.type("y\n")
    assert asked.end() == 0 and sale.waiting("sale") == 1
    asked = on_terminal(sale, "queue", "delete", "sale")
    asked.expect("Type sale to go on")
    asked.type("sale\n")
    assert asked.end() == 0
    wait_until(lambda: not sale.store.command("EXISTS", sale.key("sale", "state")), PATIENCE, "it is gone")


def test_a_time_that_shrinks_below_a_tenth_is_asked(sale):
    """It is a wrong unit, more often than not: claim_ttl=200ms makes everyone a no-show."""
    def now() -> str:
        return sale.store.command("HGET", sale.key(sale.name, "config"), "claim_ttl")

    sale.set(sale.name, "claim_ttl=2m", "rate.every=10s")
    refused = sale.ctl("queue", "set", sale.name, "claim_ttl=200ms", "rate.every=1s", "capacity=1")
    assert refused.returncode == 3 and "claim_ttl becomes 200ms" in refused.stderr and "(2m)" in refused.stderr
    assert "rate.every" not in refused.stderr, "a tenth is not below a tenth"
    assert now() == "120000" and "--yes" in refused.stderr
    refused = sale.ctl("queue", "set", sale.name, "rate.every=900ms")
    assert refused.returncode == 3 and "rate.every becomes 900ms" in refused.stderr
    asked = on_terminal(sale, "queue", "set", sale.name, "claim_ttl=200ms")
    asked.expect("Go on? [y/N]")
    asked.type("n\n")
    assert asked.end() == 3 and now() == "120000"
    asked = on_terminal(sale, "queue", "set", sale.name, "claim_ttl=200ms")
    asked.expect("Go on? [y/N]")
    asked.type("y\n")
    assert asked.end() == 0 and now() == "200"
    assert sale.ctl("queue", "set", sale.name, "claim_ttl=2m").returncode == 0, "longer needs no question"
    assert sale.ctl("queue", "set", sale.name, "claim_ttl=1s", "--yes").returncode == 0 and now() == "1000"


def test_long_work_shows_how_far_it_is(sale, tmp_path):
    with (tmp_path / "out.csv").open("wb") as out:
        shown = on_terminal(sale, "queue", "export", sale.name, stdout=out.fileno())
        assert shown.end() == 0
    assert "export [" in shown.text and shown.text.endswith("\r\033[K"), "a bar, gone at the end"
    with (tmp_path / "again.csv").open("wb") as out:
        assert sale.ctl("queue", "export", sale.name).stderr == "", "no bar where there is no terminal"


def test_top_fits_the_terminal(start):
    name = "a-queue-with-a-name-that-is-far-too-long-for-any-table-of-mine"
    system = start({name: {"capacity": 1234567} | CALM, "b": {"mode": "draining"}})
    for columns in (80, 200):
        shown = on_terminal(system, "top", "--interval", "200ms", columns=columns, env={"NO_COLOR": "1"})
        shown.expect("\033[J")
        shown.type("q")
        assert shown.end() == 0
        screen = shown.text.split("\033[H")[1].split("\033[J")[0]
        lines = [re.sub(r"\033\[[0-9;?]*[a-zA-Z]", "", line).rstrip() for line in screen.split("\r\n") if line.strip()]
        assert all(len(line) <= columns for line in lines) and len(lines) == 3, lines
        wanted = {80: ["OLDEST", "ADM/MIN", "GAVE UP", "NO-SHOW"],
                  200: ["OLDEST", "ADMITTED", "/MIN", "NO-SHOWS", "EXPIRED"]}
        assert all(word in lines[0] for word in wanted[columns]), lines[0]
        assert (name in lines[1]) == (columns == 200) and "draining" in lines[2]


# ---- the file and the store ----

def test_diff_shows_and_apply_settles(start):
    system = start({"sale": {"capacity": 1, "session_ttl": "5m", "rate": {"every": "20s"}} | {"claim_ttl": "1m"}})
    system.ctl("queue", "create", "extra")
    assert system.ctl("diff").returncode == 0
    system.set("sale", "max_waiting=7")  # the file does not mention it
    file = edited(system, {"sale": {"capacity": 5, "session_ttl": "9m", "rate": {"every": "20s"}, "lanes": ["vip", "all"],
                                    "session_sharing": "warn", "session_sliding": True},
                           "new": {"capacity": 3, "mode": "paused"}})

    def ctl(*words: str):
        return run(BIN / "tellerline", *words, "--config", str(file))

    shown = ctl("diff")
    assert shown.returncode == 1 and "new: in the file only" in shown.stdout and "extra: in the store only" in shown.stdout
    found = json.loads(ctl("diff", "-o", "json").stdout)
    assert found["only_in_file"] == ["new"] and found["only_in_store"] == ["extra"]
    differences = {row["setting"]: (row["file"], row["store"]) for row in found["differences"]}
    assert differences == {"capacity": ("5", "1"), "session_ttl": ("9m", "5m"), "lanes": ("vip,all", "vip,normal"),
                           "session_sharing": ("warn", "count"), "session_sliding": ("true", "false")} | {
                               name: value for name, value in differences.items() if name == "session_max"}
    before = system.store.hash(system.key("sale", "config"))
    assert ctl("apply", "--dry-run").returncode == 0 and system.store.hash(system.key("sale", "config")) == before
    assert ctl("apply", "--queue", "nowhere").returncode == 1
    done = ctl("apply")
    assert done.returncode == 0 and "sale: the settings of the file are in force now" in done.stdout, done
    assert ctl("diff").returncode == 0
    after = system.store.hash(system.key("sale", "config"))
    assert (after["capacity"], after["session_ttl"], after["max_waiting"], after["claim_ttl"]) == ("5", "540000", "7", "60000")
    assert system.store.hash(system.key("new", "config"))["mode"] == "paused"
    changed = [entry for entry in json.loads(system.ctl("log", "-q", "sale", "-o", "json").stdout)["changes"] if entry["what"] == "set"]
    assert changed[-1]["after"]["capacity"] == "5" and changed[-1]["after"]["lanes"] == "vip,all", "one change"
    assert ctl("apply").stdout.strip().endswith("nothing differs")
    file = edited(system, {"extra": {"capacity": 9}, "sale": {"session_ttl": "5s"}})
    refused = ctl("apply")
    assert refused.returncode == 3 and "sale: session_ttl becomes 5s" in refused.stderr and refused.stdout == ""
    assert system.store.command("HGET", system.key("extra", "config"), "capacity") == "300", "all of them, or none"
    assert ctl("apply", "--dry-run").returncode == 0
    assert ctl("apply", "--yes").returncode == 0 and ctl("diff").returncode == 0


def test_apply_keeps_a_capacity_steered(start):
    """When the file and the store differ in one of its bounds alone."""
    system = start({"sale": {"capacity": {"min": 2, "max": 6}}})
    config = system.key("sale", "config")
    for assignment in ("capacity.max=4", "capacity.min=3", "capacity=6"):
        system.set("sale", assignment)
        assert system.ctl("diff").returncode == 1
        assert system.ctl("apply").returncode == 0 and system.ctl("diff").returncode == 0
        assert system.store.command("HMGET", config, "capacity", "capacity.min") == ["6", "2"], assignment


def test_a_file_that_is_wrong_changes_nothing(share):
    system = share(queue=SALE)
    file = edited(system, {"sale": {"capacity": -5}})
    for word in ("diff", "apply"):
        done = run(BIN / "tellerline", word, "--config", str(file))
        assert done.returncode == 1 and "capacity" in done.stderr
