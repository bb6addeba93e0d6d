# SPDX-License-Identifier: Apache-2.0
"""The configuration: a wrong one stops the start with its line and column, and --check changes nothing."""
from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from tellerline import BIN, CALM, TOP, run

PROGRAMS = ["tellerline-worker", "tellerline-dispatcher", "tellerline-admitter",
            "tellerline-expirer", "tellerline-notifier"]

GOOD = """\
redis:
  url: redis://127.0.0.1:1/0
queues:
  bank:
    capacity: 10
    lanes: [vip, normal]
"""

#: Old text, new text, the position (line, column) that the message must name, and a word of the message.
WRONG = [
    ("capacity: 10", "capacity: many", (5, 15), "capacity"),
    ("capacity: 10", "capacity: -1", (5, 15), "capacity"),
    ("capacity: 10", "capacity: 99999999999", (5, 15), "10000000"),
    ("capacity: 10", "capacitance: 10", (5, 5), "capacitance"),
    ("capacity: 10", "capacity: [1, 2]", (5, 15), "capacity"),
    ("capacity: 10", "session_ttl: 10 parsecs", (5, 18), "session_ttl"),
    ("capacity: 10", "capacity: 10\n    capacity: 11", (6, 5), "capacity"),
    ("capacity: 10", "policy: roulette", (5, 13), "policy"),
    ("capacity: 10", "policy: rate", (4, 3), "rate.admit"),
    ("capacity: 10", "rate: {admit: many}", (5, 19), "rate.admit"),
    ("capacity: 10", "rate: {admit: 9, every: 1ms}", (5, 29), "100ms"),
    ("capacity: 10", "rate: {admit: 9, shape: square}", (5, 29), "rate.shape"),
    ("capacity: 10", "rate: {admit: 9, shape: batches, burst: 2}", (4, 3), "rate.burst"),
    ("capacity: 10", "opens_at: tomorrow", (5, 15), "opens_at"),
    ("  bank:", "  Bank!:", (4, 3), "Bank"),
    ("lanes: [vip, normal]", "lanes: []", (6, 12), "lanes"),
    ("lanes: [vip, normal]", "lanes: [a, a]", (6, 12), "lanes"),
    ("redis:", "radish:", (1, 1), "radish"),
    ("url: redis://127.0.0.1:1/0", "url: http://127.0.0.1/", (2, 8), "redis"),
    ("capacity: 10", "capacity: &a 10", (5, 15), "anchor"),
    ("capacity: 10", "capacity: *a", (5, 15), "alias"),
    ("queues:", "brand:\n  timezone: Asia/Soul\nqueues:", (4, 13), "zone"),
    ("queues:", "brand:\n  timezone: ../etc/passwd\nqueues:", (4, 13), "Asia/Seoul"),
    ("capacity: 10", "capacity: {", None, ""),
    ("    capacity: 10", "\tcapacity: 10", None, ""),
]


def write(directory: Path, text: str) -> Path:
    path = directory / "wrong.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("old,new,where,word", WRONG, ids=[row[1].strip() for row in WRONG])
def test_wrong_configuration(tmp_path, old, new, where, word):
    """All programs read it in the same way: each of them has its turn, and the first row is for all."""
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    path = write(tmp_path, text)
    turn = WRONG.index((old, new, where, word))
    for program in [PROGRAMS[turn % len(PROGRAMS)]] if turn else PROGRAMS:
        done = run(BIN / program, "--config", str(path), cwd=tmp_path)
        assert done.returncode not in (0, -6, -11), done
        said = re.search(re.escape(str(path)) + r":(\d+):(\d+): (.+)", done.stderr)
        assert said, f"no file:line:column in {done.stderr!r}"
        if where is not None:
            assert (int(said[1]), int(said[2])) == where, done.stderr
        assert word in said[3], done.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["wrong.yaml"], "files were created"


@pytest.mark.parametrize("program", PROGRAMS)
def test_check_only_looks(tmp_path, program):
    good, wrong = tmp_path / "good.yaml", tmp_path / "wrong.yaml"
    good.write_text(GOOD)
    wrong.write_text(GOOD.replace("capacity: 10", "capacity: x"))
    done = run(BIN / program, "--config", str(good), "--check", cwd=tmp_path)
    assert done.returncode == 0, done
    done = run(BIN / program, "--config", str(wrong), "--check", cwd=tmp_path)
    assert done.returncode != 0 and "wrong.yaml:5:15" in done.stderr, done
    assert len(list(tmp_path.iterdir())) == 2, "a check creates no file"


def test_check_reads_the_files_of_the_page(tmp_path):
    languages = tmp_path / "languages"
    path = write(tmp_path, GOOD + "brand: {languages: languages}\n")

    def check() -> str:
        done = run(BIN / "tellerline", "check", "--config", str(path), cwd="/")
        assert done.returncode == (1 if done.stderr else 0), done
        return done.stderr

    assert "cannot read the folder" in check()
    languages.mkdir()
    text = languages / "en.yaml"
    text.write_text('language: {code: en}\ntexts:\n  active_link: "Buy {2}"\n')
    assert "en.yaml:3:16: \"active_link\": braces are only for {0} and {1}" in check()
    text.write_text('language: {code: en}\ntexts:\n  active_link: "Buy"\n')
    assert check() == ""


@pytest.mark.parametrize("program", PROGRAMS)
def test_configuration_that_comes_with_it(tmp_path, program):
    files = [TOP / "conf" / "tellerline.yaml", *sorted((TOP / "conf" / "examples").glob("*.yaml"))]
    for path in files:
        done = run(BIN / program, "--config", str(path), "--check", cwd=tmp_path)
        assert done.returncode == 0, f"{path}: {done.stderr}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_environment_is_checked_too(tmp_path, program):
    path = write(tmp_path, GOOD)
    done = run(BIN / program, "--config", str(path), "--check", cwd=tmp_path,
               env={"TELLERLINE_REDIS_TIMEOUT": "soon"})
    assert done.returncode != 0 and "TELLERLINE_REDIS_TIMEOUT" in done.stderr, done
    done = run(BIN / program, "--config", str(path), "--check", cwd=tmp_path,
               env={"TELLERLINE_REDIS_TIMEOUT": "3s"})
    assert done.returncode == 0, done


@pytest.mark.parametrize("program", PROGRAMS + ["tellerline"])
def test_help_and_version(program):
    done = run(BIN / program, "--version")
    assert done.returncode == 0 and re.search(r"\d+\.\d+\.\d+", done.stdout), done
    done = run(BIN / program, "--help")
    assert done.returncode == 0, done
    assert ("up " if program == "tellerline" else "--config") in done.stdout, done
    done = run(BIN / program, "--no-such-option")
    assert done.returncode not in (0, -6, -11) and "--no-such-option" in done.stderr, done


@pytest.mark.parametrize("program", PROGRAMS)
def test_missing_file(tmp_path, program):
    done = run(BIN / program, "--config", str(tmp_path / "none.yaml"), cwd=tmp_path)
    assert done.returncode != 0 and "none.yaml" in done.stderr, done


def test_own_style_sheet(start, tmp_path):
    style = tmp_path / "own.css"
    style.write_text(".card { border-radius: 0 }\n")
    page = {"style": style, "accent_light": '"#8b1a4a"'}
    system = start({"bank": {"capacity": 1} | CALM}, settings={"brand": page})
    client = system.client()
    answer = client.get("/q/bank")
    sheets = re.findall("<style>(.*?)</style>", answer.body.decode(), re.DOTALL)
    assert len(sheets) == 3 and "#8b1a4a" in sheets[1] and sheets[2] == style.read_text()
    for sheet in sheets:
        digest = b64encode(sha256(sheet.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in answer.headers["content-security-policy"]


def test_style_sheet_that_cannot_be_read(tmp_path):
    text = GOOD.replace("queues:", f"brand:\n  style: {tmp_path}/none.css\nqueues:", 1)
    done = run(BIN / "tellerline-worker", "--config", str(write(tmp_path, text)), cwd=tmp_path)
    assert done.returncode not in (0, -6, -11), done
    assert f"style: cannot open {tmp_path}/none.css: No such file" in done.stderr


def test_settings_of_a_running_queue_are_checked(start):
    """`tellerline queue set` refuses every value that the file would refuse, and then changes nothing."""
    system = start({"bank": {"capacity": 10}})
    before = system.store.hash(system.key("bank", "config"))
    for setting in ("capacity=many", "capacitance=3", "session_ttl=1ms", "policy=rate", "lanes=",
                    "capacity"):
        done = system.ctl("queue", "set", "--yes", "bank", setting)
        assert done.returncode == 1 and done.stderr, (setting, done)
    for setting, expected in [("session_ttl=600", "a duration such as 250ms, 10s"), ("rate.every=10", "such as 250ms"),
                              ("recovery_window=0", "such as 250ms"), ("opens_at=1795500000", "a time with an offset")]:
        done = system.ctl("queue", "set", "bank", setting)  # of seconds, or milliseconds?
        assert done.returncode == 1 and expected in done.stderr, (setting, done)
    assert system.ctl("queue", "set", "nowhere", "capacity=3").returncode == 1
    assert system.store.hash(system.key("bank", "config")) == before
    assert system.ctl("queue", "set", "bank", "capacity=3", "policy=rate").returncode == 1  # all of them or none
    assert system.store.hash(system.key("bank", "config")) == before
    system.set("bank", "capacity=20", "session_ttl=20s", "policy=both", "rate.admit=9", "rate.every=1m")
    after = system.store.hash(system.key("bank", "config"))
    assert after == before | {"capacity": "20", "session_ttl": "20000", "policy": "both", "rate.admit": "9",
                              "rate.every": "60000", "changed": after["changed"]}
