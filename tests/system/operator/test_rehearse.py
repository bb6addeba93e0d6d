# SPDX-License-Identifier: Apache-2.0
"""`tellerline rehearse`: a described crowd on a scratch queue, with the real programs."""
from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rehearsals import API_KEY, FAST, SALE, Crowd, Rehearsed, Running, interrupt, left, run_all, target, wanted
from rehearsals import judged  # noqa: F401 (fixture)
from shared_stack import Stack
from tellerline import BIN, PATIENCE, System, environment
from test_pass import key_file
from waiting import patient, wait_until

pytestmark = pytest.mark.together(seconds=30)

#: Sessions of about 40 s for 20 counters: 150 visitors need five minutes of the sale.
CROWD = ["--visitors", "150", "--over", "150s", "--session", "40s", "--no-shows", "5%"]
#: So many, and so long, that it is far from its end whenever something is done to it.
LONG = ["--visitors", "300", "--over", "5m", "--session", "5m", "--speed", "10"]
FEW = ["--visitors", "10", "--over", "5s", "--session", "5s", *FAST]
BOTH = {"policy": "both", "rate": {"admit": 10, "every": "10s"}}
NEEDY = {"challenge": {"challenge": "work"}, "invited": {"join": "invited"}}


def admit_more(running: Running) -> None:
    """In the middle of the run, the scratch queue admits more than the settings allow."""
    running.wait_active(5)
    running.system.set(running.scratch, "capacity=10")


def kill_and_remove(running: Running) -> dict[str, Any]:
    running.wait_active(10)
    running.process.kill()
    running.end()
    queue = running.scratch
    noted = {"queue": queue, "left": left(running.system),
             "removed": running.system.ctl("queue", "delete", queue, "--yes")}
    wait_until(lambda: not [name for name in left(running.system) if queue in name], PATIENCE, f"{queue} is gone")
    return noted


def renamed(system: System, queue: str) -> Path:
    """The same configuration, in which this queue has another name that the store does not know."""
    path = system.directory / "other.yaml"
    path.write_text(system.config.read_text().replace(f"  {queue}:", "  later:"))
    return path


def arrivals(folder: Path) -> str:
    file = folder / "day.csv"
    file.write_text("arrival,session\n" + "".join(f"{i / 2},{20 + i % 3}\n" for i in range(50)))
    return str(file)


def crowds(folder: Path) -> dict[str, Crowd]:
    """All rehearsals of this file with a key. Those to which something is done come first."""
    return {
        "broken": Crowd(["--visitors", "60", "--over", "10s", "--session", "1m", *FAST, "-o", "json"], {"capacity": 5},
                        meanwhile=admit_more),
        "SIGINT": Crowd([*LONG, "-o", "json"], meanwhile=interrupt(signal.SIGINT, 10)),
        "SIGTERM": Crowd([*LONG, "-o", "json"], meanwhile=interrupt(signal.SIGTERM, 10)),
        "killed": Crowd(LONG, meanwhile=kill_and_remove),
        "counter": Crowd([*CROWD, *FAST, "--patience", "10m", "--leaving", "50%", "-o", "json"], {"waiting_ttl": "10m"}),
        "both": Crowd([*CROWD, *FAST, "-o", "json"], BOTH),
        "text": Crowd([*FAST, "--visitors", "60", "--over", "1m", "--session", "20s", "--opens-after", "3m"]),
        "store": Crowd(["--visitors", "30", "--over", "10s", "--session", "10s", *FAST, "-o", "json"], {"capacity": 7}),
        "file": Crowd(["--visitors", "30", "--over", "10s", "--session", "10s", *FAST, "-o", "json"], config=renamed,
                      named="later"),
        "full": Crowd(["--visitors", "60", "--over", "2s", "--session", "10s", *FAST, "-o", "json"],
                      {"max_waiting": 20, "capacity": 1}),
        "challenge": Crowd(FEW, NEEDY["challenge"]),
        "invited": Crowd(FEW, NEEDY["invited"]),
        "arrivals": Crowd(["--arrivals", arrivals(folder), "--visitors", "40", *FAST, "-o", "json"]),
    }


@pytest.fixture(scope="module", name="keyed")
def settings_with_a_key(tmp_path_factory) -> dict[str, Any]:
    """What the stack has that all but a few tests share."""
    keys = key_file(tmp_path_factory.mktemp("keys") / "api.keys", API_KEY)
    return {"settings": {"worker": {"processes": 2}, "secrets": {"api_keys": keys}}, "queue": SALE, "queues": 1}


@pytest.fixture(scope="module")
def rehearsed(request, stacks, keyed, tmp_path_factory) -> dict[str, Rehearsed]:
    """Of all crowds that the chosen tests judge."""
    counts = dict.fromkeys(("worker", "dispatcher", "admitter", "expirer"), 1) | {"notifier": 0}
    stack = stacks.get(keyed["queue"], counts, keyed["settings"], {}, keyed["queues"])
    every = crowds(tmp_path_factory.mktemp("crowds"))
    chosen = {name: crowd for name, crowd in every.items() if name in wanted(request)}
    found = run_all(stack, stack.queue, chosen)
    stack.check()
    return found


@pytest.mark.sanitized
@pytest.mark.parametrize("crowd", ["counter", "both"])
def test_a_crowd_as_simulated(run, crowd):
    assert run.done.returncode == 0, run.done
    report = run.report
    seen, plan = report["rehearsed"], report["simulated"]
    assert report["kept"] and not report["not_kept"] and seen["errors"] == [] and seen["refused"] == []
    assert seen["arrived"] == seen["joined"] == plan["arrived"] == 150
    fates = seen["fates"]
    assert sum(fates.values()) == 150 and fates["not_done"] == fates["failed"] == fates["dropped"] == 0
    assert 0 < seen["most_active"] <= 20 and seen["most_on_the_site"] <= 20 and seen["longest_line"] <= 150
    # In the time of the sale: no wait is longer than all of it took.
    assert 0 < seen["waits"]["median_ms"] <= seen["waits"]["p90_ms"] <= seen["waits"]["longest_ms"] < run.most_ms
    assert seen["promises"] > 25 and 0 < seen["promises_kept"] <= seen["promises"]
    if crowd == "both":
        assert 1 <= seen["admissions_per_period"]["most"] <= 10
        # Nobody gives up, so who does not come is drawn for the same visitors.
        assert (fates["served"], fates["no_shows"]) == (plan["served"], plan["no_shows"]), (fates, plan)
        assert fates["no_shows"] > 0
        # The way over HTTP costs some time, 60 times as much here, and on a slow machine a lot.
        assert 0.8 * plan["longest_line"] <= seen["longest_line"], (seen, plan)
        assert 0.7 * plan["waits"]["median_ms"] < seen["waits"]["median_ms"], (seen, plan)
    else:
        assert "admissions_per_period" not in seen
        assert fates["gave_up"] > 0 and fates["left"] > 0 and fates["served"] > 0, fates


@pytest.mark.parametrize("crowd", ["text"])
def test_the_text_for_people(run):
    assert run.done.returncode == 0, run.done
    said = run.done.stdout
    for line in [rf"^Rehearsal of {run.queue}, with the settings it has in the store, over http://127\.0\.0\.1:\d+$",
                 r"^  60 come in a rush within 60 s \(seed 1\)$", r"^  60 times faster: ", r"^ +rehearsed +simulated$",
                 r"^  joined +60 +60$", r"^  served +60 +60$", r"^Capacity: 20 at most, ", r"^Errors over HTTP: none\.$",
                 r"^The page's range of the wait came true for ", r"^What the settings promise was kept\.$"]:
        assert re.search(line, said, re.MULTILINE), (line, said)
    # All came before the opening, three minutes of the sale after the first; the last two seconds before it.
    assert re.search(r"^  longest line +60 +60$", said, re.MULTILINE), said
    assert f"Removing queue rehearsal-{run.queue}-" in run.done.stderr


@pytest.mark.parametrize("crowd", ["store", "file"])
def test_settings_of_the_store_and_the_configuration(run, crowd):
    """The store's settings count, where the queue exists; a queue that does not is rehearsed from the file."""
    assert run.done.returncode == 0, run.done
    assert run.report["rehearsed"]["most_active"] == (7 if crowd == "store" else 20)
    assert run.report["settings_from"] == ("it has in the store" if crowd == "store" else "of the configuration")


@pytest.mark.parametrize("crowd", ["broken"])
def test_a_broken_promise_is_noticed(run):
    assert run.done.returncode == 1, run.done
    report = run.report
    assert not report["kept"] and report["rehearsed"]["most_active"] > 5
    assert any("are active; the settings allow 5" in text for text in report["not_kept"]), report["not_kept"]


@pytest.mark.parametrize("crowd", ["SIGINT", "SIGTERM"])
def test_ctrl_c_leaves_nothing(run):
    """Nor does anybody make it again, while the other rehearsals go on."""
    seen = run.report["rehearsed"]
    assert run.done.returncode == 1 and seen["stopped"] and run.report["not_kept"] == []
    assert 1 <= seen["joined"] < 300


@pytest.mark.parametrize("crowd", ["killed"])
def test_what_a_killed_rehearsal_left_is_removed(run):
    noted = run.noted
    assert noted["queue"] and any(noted["queue"] in name for name in noted["left"])
    assert noted["removed"].returncode == 0, noted


@pytest.mark.parametrize("crowd", ["full"])
def test_max_waiting_is_a_refusal_as_simulated(run):
    assert run.done.returncode == 0, run.done
    seen, plan = run.report["rehearsed"], run.report["simulated"]
    assert seen["fates"]["refused"] == 60 - seen["joined"] > 20 and plan["refused"] > 30
    assert [reason["reason"] for reason in seen["refused"]] == ["join: 503 full"]


@pytest.mark.parametrize("crowd", NEEDY)
def test_with_a_key_a_door_for_few_opens(run):
    assert run.done.returncode == 0, run.done


@pytest.mark.parametrize("crowd", ["arrivals"])
def test_arrivals_of_a_file(run):
    assert run.done.returncode == 0, run.done
    assert run.report["rehearsed"]["fates"]["served"] == 40
    assert "day.csv" in run.report["visitors"]


def test_no_redis_at_the_end_says_what_to_do(start, keyed):
    system = start({"sale": SALE}, settings=keyed["settings"])
    system.sound = False
    running = Running(system, "sale", *LONG)
    running.wait_active(10)
    queue = running.scratch
    system.forget_store()
    system.redis.stop()
    running.process.send_signal(signal.SIGINT)
    done = running.end()
    assert done.returncode == 1 and f"`tellerline queue delete {queue}`" in done.stderr, done


# ---- limits ----

#: So many may join within a minute, a third of them at once.
JOINS = 5


def rehearse(stack: Stack, queue: str, *args: str) -> subprocess.CompletedProcess[str]:
    return stack.ctl("rehearse", queue, *target(stack), *args, timeout=patient(PATIENCE))


@pytest.fixture
def keyless(share) -> Stack:
    return share(settings={"http": {"joins_per_minute": JOINS}}, queue=SALE)


def test_without_a_key_the_limit_is_explained(keyless):
    queue = keyless.queue()
    crowd = ["--visitors", "15", "--over", "2s", "--session", "2s", *FAST]
    done = rehearse(keyless, queue, *crowd)
    assert done.returncode == 1 and not done.stdout, done
    assert f"http.joins_per_minute is {JOINS}" in done.stderr and "secrets.api_keys" in done.stderr, done
    # A worker whose limit is another one than that of our file: the refusals are explained in the report.
    unlimited = keyless.directory / "unlimited.yaml"
    unlimited.write_text(keyless.config.read_text().replace(f"joins_per_minute: {JOINS}", "joins_per_minute: 0"))
    seen = Running(keyless, queue, *crowd, "-o", "json", config=unlimited).end()
    seen = Rehearsed(seen, queue, 0, None, False).report["rehearsed"]
    # A third of the minute's joins come at once, the others evenly.
    assert JOINS // 3 <= seen["joined"] < 15 and seen["fates"]["refused"] == 15 - seen["joined"], seen
    [reason] = seen["refused"]
    assert reason["reason"] == "join: 429 too-many-joins" and "joins_per_minute" in reason["advice"]
    assert left(keyless) == []


@pytest.mark.parametrize("setting", NEEDY.values(), ids=NEEDY)
def test_a_door_for_few_needs_a_key(keyless, setting):
    done = rehearse(keyless, keyless.queue(**setting), *FEW)
    assert done.returncode == 1 and "secrets.api_keys" in done.stderr, done


def test_descriptors_are_counted_first(share, keyed):
    stack = share(**keyed)
    queue = stack.queue(capacity=1)
    done = subprocess.run(["prlimit", "--nofile=200:200", str(BIN / "tellerline"), "rehearse", queue,
                           *target(stack), *CROWD, *FAST, "--config", str(stack.config)],
                          env=environment(), capture_output=True, text=True, timeout=patient(PATIENCE), check=False)
    assert done.returncode == 1 and "this process may have 72" in done.stderr, done
    assert left(stack) == []


@pytest.mark.parametrize("args, said", [
    ([], "who comes?"),
    (["--visitors", "10"], "--session is missing"),
    (["--visitors", "10", "--session", "1m", "--speed", "1000"], "--speed: at most 450 with the settings of "),
    (["--visitors", "10", "--session", "1m", "--target", "shop.example"], "is not an address"),
    (["--visitors", "10", "--session", "1m", "--target", "http://shop.example/path"], "is not an address"),
    (["--visitors", "10", "--session", "1m", "--leaving", "2"], "out of bounds (0 to 1)"),
    (["--visitors", "10", "--session", "1m", "--peak", "2h"], "--peak is later"),
])
def test_usage(share, keyed, args, said):
    stack = share(**keyed)
    done = stack.ctl("rehearse", stack.queue(), *args)
    assert done.returncode in (1, 2) and said in done.stderr, done
    assert left(stack) == []
