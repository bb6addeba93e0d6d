# SPDX-License-Identifier: Apache-2.0
"""`tellerline rehearse` and `plan --simulate` with a crowd that comes in several lanes."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rehearsals import API_KEY, SALE, Crowd, Rehearsed, left, run_all, target, wanted
from rehearsals import judged  # noqa: F401 (fixture)
from shared_stack import Stack
from tellerline import BIN, PATIENCE, System
from tellerline import run as run_program
from test_pass import key_file
from waiting import patient

pytestmark = pytest.mark.together(seconds=25)

SECRET = "5e" * 32
LANES = {"lanes": ["vip", "normal"], "default_lane": "normal", "capacity": 10, "lane_weights": [3, 1]}
NO_WEIGHTS = {"lane_weights": []}

#: All come before the opening, half of them in each lane; then 10 counters serve each for about 20 s.
CROWD = ["--visitors", "120", "--over", "30s", "--session", "20s", "--opens-after", "2m", "--lanes", "vip=50%"]
FAST = ["--speed", "40"]
FEW = ["--visitors", "10", "--over", "5s", "--session", "5s", *FAST]


def without_api_key(system: System, queue: str) -> Path:
    """The same configuration with the other key alone, and that without any."""
    path = system.directory / f"invites-{queue}.yaml"
    path.write_text(system.config.read_text().replace("/api.keys", "/no-api.keys"))
    return path


def without_a_key(system: System, queue: str) -> Path:
    path = without_api_key(system, queue)
    path.write_text(path.read_text().replace("/invite.keys", "/no-invite.keys"))
    return path


CROWDS = {
    "API key": Crowd([*CROWD, *FAST, "-o", "json"]),
    "invites": Crowd([*CROWD, *FAST, "-o", "json"], config=without_api_key),
    "starving": Crowd([*CROWD, *FAST], NO_WEIGHTS),
    "chosen": Crowd([*FEW, "--lanes", "vip=50%"], config=without_a_key),
    "default": Crowd([*FEW, "--lanes", "normal=100%"], config=without_a_key),
}


@pytest.fixture(scope="module", name="kind")
def what_the_stack_has(tmp_path_factory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("keys")
    return {"settings": {"secrets": {"api_keys": key_file(folder / "api.keys", API_KEY),
                                     "invite_keys": key_file(folder / "invite.keys", f"shop HS256 {SECRET}\n")}},
            "queue": SALE | LANES, "queues": 1}


@pytest.fixture(scope="module")
def rehearsed(request, stacks, kind) -> dict[str, Rehearsed]:
    counts = dict.fromkeys(("worker", "dispatcher", "admitter", "expirer"), 1) | {"notifier": 0}
    stack = stacks.get(kind["queue"], counts, kind["settings"], {}, kind["queues"])
    found = run_all(stack, stack.queue, {name: CROWDS[name] for name in CROWDS if name in wanted(request)})
    stack.check()
    return found


def lanes_of(report: dict) -> dict[str, dict]:
    return {lane["lane"]: lane for lane in report["lanes"]}


def planned(stack: Stack, weights: str) -> dict:
    """By the configuration, which is that of the stack with these weights."""
    path = stack.directory / "planned.yaml"
    path.write_text(re.sub(r"lane_weights: .*", f"lane_weights: {weights}", stack.config.read_text()))
    done = run_program(BIN / "tellerline", "plan", "--simulate", "--queue", stack.queue(), *CROWD, "-o", "json",
                       "--config", str(path))
    assert done.returncode == 0, done
    return json.loads(done.stdout)["simulation"]


@pytest.mark.parametrize("crowd", ["API key", "invites"])
def test_weights_show(run, share, kind):
    assert run.done.returncode == 0, run.done
    report = run.report
    seen, plan = lanes_of(report["rehearsed"]), lanes_of(report["simulated"])
    assert seen["vip"]["weight"] == 3 and seen["normal"]["weight"] == 1
    for name, lane in seen.items():
        assert lane["arrived"] == lane["admitted"] == plan[name]["arrived"] == plan[name]["admitted"] > 40, seen
        assert not lane["starved"] and lane["passed_by"] <= 20, seen
        assert 0 < lane["promises_kept"] <= lane["promises"] <= lane["arrived"], seen
        # The way over HTTP costs some time, 40 times as much here, and on a slow machine a lot.
        waits = lane["waits"]
        assert 0.6 * plan[name]["waits"]["median_ms"] < waits["median_ms"] <= waits["p90_ms"] < run.most_ms
        assert lane["told_ms"] > 0 and lane["true_ms"] > 0
    assert plan["normal"]["passed_by"] == 3 and plan["vip"]["passed_by"] == 1
    # Three of four belong to vip while it lasts, so its median is earlier.
    assert seen["normal"]["waits"]["median_ms"] > seen["vip"]["waits"]["median_ms"], seen
    assert report["kept"]
    # `plan` sees the same crowd.
    assert lanes_of(planned(share(**kind), "[3, 1]")) == plan


@pytest.mark.parametrize("crowd", ["starving"])
def test_a_lane_that_starves_shows(run, share, kind):
    assert run.done.returncode == 0, run.done
    said = run.done.stdout
    assert "\nLane normal starved: " in said and "set lane_weights." in said, said
    assert "Lane vip starved" not in said and "\nLane vip: told to wait " in said, said
    lanes = lanes_of(planned(share(**kind), "[]"))
    assert lanes["normal"]["starved"] and lanes["normal"]["passed_by"] == lanes["vip"]["arrived"], lanes
    assert not lanes["vip"]["starved"]


@pytest.mark.parametrize("crowd", ["chosen", "default"])
def test_without_a_key_nobody_chooses_a_lane(run, crowd):
    if crowd == "default":
        assert run.done.returncode == 0, run.done
    else:
        said = run.done.stderr
        assert run.done.returncode == 1 and "secrets.api_keys" in said and "secrets.invite_keys" in said, run.done


@pytest.mark.parametrize("lanes, said", [
    ("vip=50%,vip=1%", '"vip" is named twice'), ("gold=1%", 'the queue has no lane "gold"'),
    ("vip", "is not LANE=SHARE"), ("vip=60%,normal=60%", "the shares are 120 %"), ("vip=x", "is not a number")])
def test_wrong_lanes(share, kind, lanes, said):
    stack = share(**kind)
    queue = stack.queue()
    few = ["--visitors", "10", "--session", "1m", "--lanes", lanes]
    for done in (stack.ctl("rehearse", queue, *target(stack), *few, timeout=patient(PATIENCE)),
                 stack.ctl("plan", "--simulate", "--queue", queue, *few)):
        assert done.returncode != 0 and said in done.stderr, done
    assert left(stack) == []


def test_lanes_are_those_of_a_queue(share, kind):
    done = share(**kind).ctl("plan", "--simulate", "--visitors", "10", "--tps", "1", "--session", "1m",
                             "--calls", "6/session", "--lanes", "vip=50%")
    assert done.returncode != 0 and "--lanes needs --queue" in done.stderr, done
