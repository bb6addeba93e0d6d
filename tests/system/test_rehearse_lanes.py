"""`tellerline rehearse` and `plan --simulate` with a crowd that comes in several lanes."""
from __future__ import annotations

import json

import pytest

from test_pass import key_file
from test_rehearse import API_KEY, SALE, left, rehearse, report_of

SECRET = "5e" * 32
LANES = {"lanes": ["vip", "normal"], "default_lane": "normal", "capacity": 10}
WEIGHTS = {"lane_weights": [3, 1]}

#: All come before the opening, half of them in each lane; then 10 counters serve each for about 20 s.
CROWD = ["--visitors", "200", "--over", "30s", "--session", "20s", "--opens-after", "1m", "--lanes", "vip=50%"]
FAST = ["--speed", "30"]


def begin(start, tmp_path, queue, **secrets):
    secrets = {name: key_file(tmp_path / f"{name}.keys", text) for name, text in secrets.items()}
    return start({"sale": SALE | LANES | queue}, settings={"secrets": secrets} if secrets else {})


def lanes_of(report: dict) -> dict[str, dict]:
    return {lane["lane"]: lane for lane in report["lanes"]}


def planned(system, *args: str) -> dict:
    done = system.ctl("plan", "--simulate", "--queue", "sale", *args, "--json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)["simulation"]


@pytest.mark.parametrize("secrets", [{"api_keys": API_KEY}, {"invite_keys": f"shop HS256 {SECRET}\n"}],
                         ids=["API key", "invites"])
def test_weights_show(start, tmp_path, secrets):
    system = begin(start, tmp_path, WEIGHTS, **secrets)
    done = rehearse(system, *CROWD, *FAST, "--json")
    assert done.returncode == 0, done
    report = report_of(done)
    seen, plan = lanes_of(report["rehearsed"]), lanes_of(report["simulated"])
    assert seen["vip"]["weight"] == 3 and seen["normal"]["weight"] == 1
    for name, lane in seen.items():
        assert lane["arrived"] == lane["admitted"] == plan[name]["arrived"] == plan[name]["admitted"] > 70, seen
        assert not lane["starved"] and lane["passed_by"] <= 20, seen
        assert 0 < lane["promises_kept"] <= lane["promises"] <= lane["arrived"], seen
        # The way over HTTP costs some time, 30 times as much here.
        assert 0.6 * plan[name]["waits"]["median_ms"] < lane["waits"]["median_ms"] < 2.5 * plan[name]["waits"]["median_ms"]
        assert lane["waits"]["median_ms"] <= lane["waits"]["p90_ms"] and lane["told_ms"] > 0 and lane["true_ms"] > 0
    assert plan["normal"]["passed_by"] == 3 and plan["vip"]["passed_by"] == 1
    # Three of four belong to vip while it lasts, so its median is far earlier.
    assert seen["normal"]["waits"]["median_ms"] > 1.3 * seen["vip"]["waits"]["median_ms"], seen
    assert report["kept"] and left(system) == []
    # `plan` sees the same crowd.
    assert lanes_of(planned(system, *CROWD)) == plan


def test_a_lane_that_starves_shows(start, tmp_path):
    system = begin(start, tmp_path, {}, api_keys=API_KEY)
    done = rehearse(system, *CROWD, *FAST)
    assert done.returncode == 0, done
    assert "\nLane normal starved: " in done.stdout and "set lane_weights." in done.stdout, done.stdout
    assert "Lane vip starved" not in done.stdout and "\nLane vip: told to wait " in done.stdout, done.stdout
    lanes = lanes_of(planned(system, *CROWD))
    assert lanes["normal"]["starved"] and lanes["normal"]["passed_by"] == lanes["vip"]["arrived"], lanes
    assert not lanes["vip"]["starved"] and left(system) == []


@pytest.mark.parametrize("lanes, said", [
    ("vip=50%,vip=1%", '"vip" is named twice'), ("gold=1%", 'the queue has no lane "gold"'),
    ("vip", "is not LANE=SHARE"), ("vip=60%,normal=60%", "the shares are 120 %"), ("vip=x", "is not a share")])
def test_wrong_lanes(start, tmp_path, lanes, said):
    system = begin(start, tmp_path, {}, api_keys=API_KEY)
    few = ["--visitors", "10", "--session", "1m", "--lanes", lanes]
    for done in (rehearse(system, *few), system.ctl("plan", "--simulate", "--queue", "sale", *few)):
        assert done.returncode != 0 and said in done.stderr, done
    assert left(system) == []


def test_without_a_key_nobody_chooses_a_lane(start, tmp_path):
    system = begin(start, tmp_path, {})
    few = ["--visitors", "10", "--over", "5s", "--session", "5s", *FAST]
    done = rehearse(system, *few, "--lanes", "vip=50%")
    assert done.returncode == 1 and "secrets.api_keys" in done.stderr and "secrets.invite_keys" in done.stderr, done
    assert rehearse(system, *few, "--lanes", "normal=100%").returncode == 0
    done = system.ctl("plan", "--simulate", "--visitors", "10", "--tps", "1", "--session", "1m", "--calls", "6/session",
                      "--lanes", "vip=50%")
    assert done.returncode != 0 and "--lanes needs --queue" in done.stderr, done
