# SPDX-License-Identifier: Apache-2.0
"""Redis cannot be reached, in one direction or both, or only slowly; and connections end without a word."""
from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import pytest

from faults import Faults, live_through
from network import Namespace, SlowRelay, can_make_namespaces
from tellerline import System
from waiting import one_of, patient

pytestmark = pytest.mark.sanitized

CAPACITY = 4
#: Places whose client got no answer are called and never claimed. A visitor who is there claims within some round
#: trips.
QUEUE = {"capacity": CAPACITY, "session_ttl": "60s", "claim_ttl": f"{patient(12):.0f}s", "waiting_ttl": "60s"}
# Until both dispatchers know how long their turns take.
TAKEOVERS_MAX = 10
SEED = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))


@pytest.fixture
def space() -> Iterator[Namespace]:
    if not can_make_namespaces():
        pytest.skip("needs the right to make network namespaces")
    one = Namespace()
    yield one
    one.close()


class NetworkFaults(Faults):
    space: Namespace

    def cut_there(self) -> None:
        self._cut(True, False)

    def cut_back(self) -> None:
        """Commands arrive and are done; the answers are lost."""
        self._cut(False, True)

    def cut_both(self) -> None:
        self._cut(True, True)

    def half_open(self) -> None:
        """Redis restarts while the network is cut: connections of before are dead, and say nothing."""
        self.space.cut(True, True)
        self.store_killed()
        self.space.heal()

    def _cut(self, there: bool, back: bool) -> None:
        self.space.cut(there, back)
        time.sleep(self._random.uniform(0.2, 3))
        self.space.heal()


def behind(space: Namespace, system: System) -> None:
    system.redis.prefix = space.prefix


@pytest.mark.long(seconds=35)
def test_partitions_each_way_and_half_open_connections(space, start, figure):
    # space comes first, so that the system ends before its network does
    port = 6379
    system = start({"door": QUEUE}, workers=2, dispatchers=2, admitters=2,
                   redis={"appendfsync": "always", "port": str(port), "bind": space.theirs, "protected-mode": "no"},
                   settings={"http": {"join_wait": "1s"},
                             "redis": {"timeout": "1s", "url": f"redis://{space.theirs}:{port}/0"}},
                   prepare=lambda system: behind(space, system))
    NetworkFaults.space = space
    figure(live_through(system, "door", CAPACITY, SEED, ["cut_there", "cut_back", "cut_both", "half_open"],
                        kind_of_faults=NetworkFaults))


@pytest.mark.long(seconds=25)
def test_latency_and_loss(start, figure):
    """200 ms each way, and one piece in twenty comes late."""
    relays: list[SlowRelay] = []
    settings = {"http": {"join_wait": "5s"}, "redis": {"timeout": "5s"}}

    def prepare(system: System) -> None:
        relays.append(SlowRelay(system.redis.socket, 0.2, SEED))
        settings["redis"]["url"] = f"redis://127.0.0.1:{relays[0].port}/0"

    try:
        # A join whose answer came too late holds its place until claim_ttl is over: there is room for some.
        queue = QUEUE | {"claim_ttl": f"{patient(40):.0f}s", "capacity": 12}
        system = start({"door": queue}, workers=2, dispatchers=2, redis={"appendfsync": "always"}, settings=settings,
                       prepare=prepare)
        told = live_through(system, "door", 12, SEED, [], actors=8, least=8)
        state = system.store.hash(system.key("door", "state"))
        takeovers = int(state["fence"]) - int(state["base_seq"])
        figure(f"{told}, the dispatcher's lease was taken {takeovers} times")
        assert takeovers <= TAKEOVERS_MAX, "replicas hand the lease to and fro"
        system.finish()
        system.sound = False  # it was checked while the relay was there
    finally:
        for relay in relays:
            relay.close()


@pytest.mark.long(seconds=50)
def test_a_far_store_delays_joins_by_a_few_round_trips(start, figure):
    """The dispatcher does what visitors do not wait for less often where it takes long."""
    way = 0.2
    relays: list[SlowRelay] = []
    settings = {"http": {"join_wait": "10s"}, "redis": {"timeout": "5s"}}

    def prepare(system: System) -> None:
        relays.append(SlowRelay(system.redis.socket, way, SEED, loss=0.0))
        settings["redis"]["url"] = f"redis://127.0.0.1:{relays[0].port}/0"

    try:
        system = start({"door": QUEUE | {"claim_ttl": f"{patient(40):.0f}s"}}, settings=settings, prepare=prepare)
        client, trips = system.client(), 2 * way

        def joins() -> float:
            """The second longest of eight joins, in round trips."""
            times = []
            for _ in range(8):
                begun = time.monotonic()
                assert client.post("/v1/queues/door/join", b"").status == 200
                times.append(time.monotonic() - begun)
            return sorted(times)[-2] / trips

        # What the machine needs itself is little, and more on a slow one.
        figures = one_of(3, joins, 10 + (patient(1) - 1) / trips, "round trips of a join")
        figure(f"with {trips * 1000:.0f} ms to Redis and back seven of eight joins take {figures[-1]:.1f} round trips at most")
        system.finish()
        system.sound = False  # it was checked while the relay was there
    finally:
        for relay in relays:
            relay.close()
