"""`tellerline rehearse`: a described crowd on a scratch queue, with the real programs."""
from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tellerline import BIN, PATIENCE, System, environment
from waiting import early_in_a_minute, wait_until

SALE = {"capacity": 20, "session_ttl": "10m", "claim_ttl": "2m", "waiting_ttl": "10m",
        "target_url": "https://shop.example/checkout"}

#: Sessions of about 40 s for 20 counters: 300 visitors need ten minutes of the sale.
CROWD = ["--visitors", "300", "--over", "5m", "--session", "40s", "--no-shows", "5%"]
FAST = ["--speed", "60"]
API_KEY = "rehearsal " + "k" * 40 + "\n"


def with_key(system: System) -> None:
    path = system.directory / "api.keys"
    path.write_text(API_KEY)
    path.chmod(0o600)


def server(system: System) -> list[str]:
    return ["--server", f"http://127.0.0.1:{system.of('worker')[0].http_port}"]


def rehearse(system: System, *args: str, timeout: float = 180) -> subprocess.CompletedProcess[str]:
    return system.ctl("rehearse", "sale", *server(system), *args, timeout=timeout)


def report_of(done: subprocess.CompletedProcess[str]) -> dict:
    assert done.stdout, done
    return json.loads(done.stdout)


def left(system: System) -> list[str]:
    """What a rehearsal has left in Redis."""
    return system.store.command("KEYS", "*rehearsal-*") + [
        name for name in system.store.command("SMEMBERS", "tl:queues") if name.startswith("rehearsal-")]


class Running:
    """A rehearsal in the background."""

    def __init__(self, system: System, *args: str) -> None:
        self.system = system
        self.process = subprocess.Popen(
            [str(BIN / "tellerline"), "rehearse", "sale", *server(system), *args, "--json", "--config",
             str(system.config)],
            env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @property
    def queue(self) -> str:
        return next((name for name in self.system.store.command("SMEMBERS", "tl:queues")
                     if name.startswith("rehearsal-sale-")), "")

    def wait_active(self, n: int) -> None:
        wait_until(lambda: self.queue and self.system.active(self.queue) >= n, PATIENCE, f"{n} are active")

    def end(self, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        try:
            out, err = self.process.communicate(timeout=timeout)
        finally:
            self.process.kill()
        assert "Sanitizer" not in err, err
        return subprocess.CompletedProcess([], self.process.returncode, out, err)


@pytest.mark.long(seconds=40)
@pytest.mark.parametrize("policy", [{}, {"policy": "both", "rate": {"admit": 10, "every": "10s"}}],
                         ids=["counter", "both"])
def test_a_crowd_as_simulated(start, policy):
    system = start({"sale": SALE | policy}, settings={"worker": {"processes": 2}}, prepare=with_key)
    before = system.numbers("sale")
    done = rehearse(system, *CROWD, *FAST, "--patience", "20m", "--leaving", "50%", "--json")
    assert done.returncode == 0, done
    report = report_of(done)
    seen, plan = report["rehearsed"], report["simulated"]
    assert report["kept"] and not report["not_kept"] and seen["errors"] == [] and seen["refused"] == []
    assert seen["arrived"] == seen["joined"] == plan["arrived"] == 300
    fates = seen["fates"]
    assert sum(fates.values()) == 300 and fates["not_done"] == fates["failed"] == fates["dropped"] == 0
    assert fates["gave_up"] > 0 and fates["left"] > 0 and fates["no_shows"] > 0
    # Who gives up or does not come is drawn in the same way; only those called at about that time may differ.
    assert abs(fates["served"] - plan["served"]) <= 20, (fates, plan)
    assert 0 < seen["most_active"] <= 20 and seen["most_on_the_site"] <= 20
    assert abs(seen["longest_line"] - plan["longest_line"]) <= 0.2 * plan["longest_line"]
    # The way over HTTP costs some time, 60 times as much here.
    assert 0.7 * plan["waits"]["median_ms"] < seen["waits"]["median_ms"] < 2.5 * plan["waits"]["median_ms"]
    assert seen["waits"]["median_ms"] <= seen["waits"]["p90_ms"] <= seen["waits"]["longest_ms"]
    assert seen["promises"] > 50 and 0 < seen["promises_kept"] <= seen["promises"]
    if policy:
        assert 1 <= seen["admissions_per_period"]["most"] <= 10
    else:
        assert "admissions_per_period" not in seen
    assert left(system) == []
    assert system.numbers("sale") == before  # the queue itself was not touched


def test_the_text_for_people(start):
    system = start({"sale": SALE}, prepare=with_key)
    done = rehearse(system, *FAST, "--visitors", "60", "--over", "1m", "--session", "20s", "--opens-after", "3m")
    assert done.returncode == 0, done
    for line in [r"^Rehearsal of sale, with the settings it has in the store, over http://127\.0\.0\.1:\d+$",
                 r"^  60 come in a rush within 60 s \(seed 1\)$", r"^  60 times faster: ", r"^ +rehearsed +simulated$",
                 r"^  joined +60 +60$", r"^  served +60 +60$", r"^Capacity: 20 at most, ", r"^Errors over HTTP: none\.$",
                 r"^The page's range of the wait came true for ", r"^What the settings promise was kept\.$"]:
        assert re.search(line, done.stdout, re.MULTILINE), (line, done.stdout)
    # All came before the opening, three minutes of the sale after the first; the last two seconds before it.
    assert re.search(r"^  longest line +60 +60$", done.stdout, re.MULTILINE), done.stdout
    assert "Removing queue rehearsal-sale-" in done.stderr
    assert left(system) == []


def test_settings_of_the_configuration_and_the_store(start, tmp_path):
    """The store's settings count, where the queue exists; a queue that does not is rehearsed from the file."""
    system = start({"sale": SALE}, prepare=with_key)
    system.set("sale", "capacity=7")
    few = ["--visitors", "30", "--over", "10s", "--session", "10s", *FAST]
    seen = report_of(rehearse(system, *few, "--json"))
    assert seen["rehearsed"]["most_active"] == 7 and seen["settings_from"] == "it has in the store"
    other = tmp_path / "other.yaml"
    other.write_text(system.config.read_text().replace("  sale:", "  later:"))
    done = subprocess.run([str(BIN / "tellerline"), "rehearse", "later", *server(system), *few, "--json", "--config",
                           str(other)], env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done
    seen = report_of(done)
    assert seen["rehearsed"]["most_active"] == 20 and seen["settings_from"] == "of the configuration"
    assert left(system) == []


def test_a_broken_promise_is_noticed(start):
    """In the middle of the run, the scratch queue admits more than the settings allow."""
    system = start({"sale": SALE}, prepare=with_key)
    running = Running(system, *CROWD, *FAST)
    running.wait_active(20)
    system.set(running.queue, "capacity=40")
    done = running.end()
    assert done.returncode == 1, done
    report = report_of(done)
    assert not report["kept"] and report["rehearsed"]["most_active"] > 20
    assert any("are active; the settings allow 20" in text for text in report["not_kept"]), report["not_kept"]
    assert left(system) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_nothing(start, number):
    system = start({"sale": SALE}, prepare=with_key)
    running = Running(system, *CROWD, "--speed", "10")
    running.wait_active(10)
    running.process.send_signal(number)
    done = running.end(40)
    report = report_of(done)
    assert done.returncode == 1 and report["rehearsed"]["stopped"] and report["not_kept"] == []
    assert 1 <= report["rehearsed"]["joined"] < 300
    assert left(system) == []
    time.sleep(2)  # nobody makes it again
    assert left(system) == []


def test_what_a_killed_rehearsal_left_is_removed(start):
    system = start({"sale": SALE}, prepare=with_key)
    running = Running(system, *CROWD, "--speed", "10")
    running.wait_active(10)
    running.process.kill()
    running.end()
    queue = running.queue
    assert queue and left(system)
    refused = system.ctl("rehearse", "--remove", "sale")
    assert refused.returncode == 2 and "begins with rehearsal-" in refused.stderr, refused
    done = system.ctl("rehearse", "--remove", queue)
    assert done.returncode == 0 and done.stdout == f"{queue}: removed\n", done
    assert left(system) == []


def test_no_redis_at_the_end_says_what_to_do(start):
    system = start({"sale": SALE}, prepare=with_key)
    system.sound = False
    running = Running(system, *CROWD, "--speed", "10")
    running.wait_active(10)
    queue = running.queue
    system.forget_store()
    system.redis.stop()
    running.process.send_signal(signal.SIGINT)
    done = running.end(60)
    assert done.returncode == 1 and f"tellerline rehearse --remove {queue}" in done.stderr, done


# ---- limits ----

def test_without_a_key_the_limit_is_explained(start):
    system = start({"sale": SALE}, settings={"http": {"joins_per_minute": 100}})
    done = rehearse(system, *CROWD, *FAST)
    assert done.returncode == 1 and not done.stdout, done
    assert "http.joins_per_minute is 100" in done.stderr and "secrets.api_keys" in done.stderr, done
    assert left(system) == []
    # A worker whose limit is another one than that of our file: the refusals are explained in the report.
    system.config.write_text(re.sub("joins_per_minute: 100", "joins_per_minute: 0", system.config.read_text()))
    early_in_a_minute(20)  # the crowd comes within five seconds
    done = rehearse(system, *CROWD, *FAST, "--json")
    seen = report_of(done)["rehearsed"]
    assert seen["joined"] == 100 and seen["fates"]["refused"] == 200, seen
    [reason] = seen["refused"]
    assert reason["reason"] == "join: 429 too-many-joins" and "joins_per_minute" in reason["advice"]
    assert left(system) == []


@pytest.mark.parametrize("setting", [{"challenge": "work"}, {"join": "invited"}], ids=["challenge", "invited"])
def test_a_door_for_few_needs_a_key(start, setting):
    system = start({"sale": SALE | setting})
    few = ["--visitors", "10", "--over", "5s", "--session", "5s", *FAST]
    done = rehearse(system, *few)
    assert done.returncode == 1 and "secrets.api_keys" in done.stderr, done
    with_key(system)
    for program in system.of("worker"):
        program.stop()
        program.start()
        program.wait_ready()
    done = rehearse(system, *few)
    assert done.returncode == 0, done


def test_descriptors_are_counted_first(start):
    system = start({"sale": SALE | {"capacity": 1}}, prepare=with_key)
    done = subprocess.run(["prlimit", "--nofile=200:200", str(BIN / "tellerline"), "rehearse", "sale",
                           *server(system), *CROWD, *FAST, "--config", str(system.config)],
                          env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "this process may have 72" in done.stderr, done
    assert left(system) == []


def test_max_waiting_is_a_refusal_as_simulated(start):
    system = start({"sale": SALE | {"max_waiting": 50, "capacity": 5}}, prepare=with_key)
    done = rehearse(system, "--visitors", "120", "--over", "2s", "--session", "20s", "--speed", "20", "--json")
    report = report_of(done)
    assert done.returncode == 0, done
    assert report["rehearsed"]["fates"]["refused"] > 40 and report["simulated"]["refused"] > 40
    assert [reason["reason"] for reason in report["rehearsed"]["refused"]] == ["join: 503 full"]


@pytest.mark.parametrize("args, said", [
    ([], "who comes?"),
    (["--visitors", "10"], "--session is missing"),
    (["--visitors", "10", "--session", "1m", "--speed", "1000"], "--speed: at most 120 with the settings of sale"),
    (["--visitors", "10", "--session", "1m", "--server", "shop.example"], "is not an address"),
    (["--visitors", "10", "--session", "1m", "--server", "http://shop.example/path"], "is not an address"),
    (["--visitors", "10", "--session", "1m", "--leaving", "2"], "must be a share"),
    (["--visitors", "10", "--session", "1m", "--peak", "2h"], "--peak is later"),
])
def test_usage(start, args, said):
    system = start({"sale": SALE}, dispatchers=0, admitters=0, expirers=0, workers=0)
    done = system.ctl("rehearse", "sale", *args)
    assert done.returncode in (1, 2) and said in done.stderr, done
    assert left(system) == []


def test_arrivals_of_a_file(start, tmp_path: Path):
    system = start({"sale": SALE}, prepare=with_key)
    file = tmp_path / "day.csv"
    file.write_text("arrival,session\n" + "".join(f"{i / 2},{20 + i % 3}\n" for i in range(50)))
    done = rehearse(system, "--arrivals", str(file), "--visitors", "40", *FAST, "--json")
    assert done.returncode == 0, done
    assert report_of(done)["rehearsed"]["fates"]["served"] == 40
    assert os.path.basename(file) in report_of(done)["visitors"]
