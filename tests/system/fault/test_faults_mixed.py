"""Random faults of every kind while visitors come and go; the history checker decides.

TELLERLINE_SEED=N repeats the choices of a run. `tests/run --soak SECONDS` runs all faults at once for so long.
"""
from __future__ import annotations

import os
import random

import pytest

from faults import live_through
from waiting import patient

pytestmark = pytest.mark.sanitized

CAPACITY = 4
#: Places whose client got no answer are called and never claimed. A visitor who is there claims within a moment.
CLAIM_TTL = f"{patient(10):.0f}s"
QUEUE = {"capacity": CAPACITY, "session_ttl": "60s", "claim_ttl": CLAIM_TTL, "waiting_ttl": "60s", "recovery_window": "5s"}
PROGRAMS = ["kill", "kill_child", "freeze"]
STORE = ["store_killed", "store_frozen", "connections_cut", "store_full", "store_demoted", "poison"]
LOSSES = ["tail_lost", "emptied", "flushed"]


def seed() -> int:
    chosen = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))
    print(f"TELLERLINE_SEED={chosen}")
    return chosen


def run(start, figure, kinds: list[str], **how: float) -> None:
    system = start({"door": QUEUE}, workers=2, dispatchers=2, admitters=2, expirers=2, redis={"appendfsync": "always"},
                   settings={"http": {"join_wait": "1s"}, "worker": {"processes": 2}, "redis": {"timeout": "1s"},
                             "streams": {"events_length": 1000000}})
    figure(live_through(system, "door", CAPACITY, seed(), kinds, **how))


@pytest.mark.long(seconds=35)
@pytest.mark.parametrize("kinds, rounds", [(PROGRAMS + STORE, 1), (["tail_lost"], 3), (["flushed", "emptied"], 2)],
                         ids=["nothing-lost", "tail-lost", "all-lost"])
def test_random_faults(start, figure, kinds, rounds):
    run(start, figure, kinds, rounds=rounds, least=30)


@pytest.mark.alone
@pytest.mark.skipif("TELLERLINE_SOAK" not in os.environ, reason="only with tests/run --soak")
def test_all_faults_at_once(start, figure):
    run(start, figure, PROGRAMS + STORE + LOSSES, seconds=float(os.environ["TELLERLINE_SOAK"]))
