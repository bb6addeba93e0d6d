# SPDX-License-Identifier: Apache-2.0
"""Short stories of one queue: visitors come and go, something happens meanwhile, and the history checker and the audit
judge. Each is made so that a script that is wrong shows in it (test_planted_bugs)."""
from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone

import wire
from actors import Actor
from figures_of import metric
from hand_overs import HandOver, OldDevice
from history import Block, Change, History, Knock, Loss, Rate, Shares, Stay, check
from http_client import Client, Visitor, redeem
from redis_server import Redis, RedisError, RedisGone
from session_ends import entry_of
from tellerline import System
from waiting import T, patient, wait_until
from wire import read_ticket

CAPACITY = 3
#: By rate instead of the capacity, in the story "rate".
RATE = Rate(admit=5, every=1.0, ttl=30.0)
ACTORS = 8
#: How long a story waits for what must come before that is a complaint (seconds, see waiting.patient), where a bug is
#: expected; and elsewhere.
IMPATIENT, PATIENT = 3.0, 60.0
#: A worker may be this far behind (seconds).
STALENESS = 3.0
#: The times of queues where something expires: who is there asks often enough, also on a slow machine (milliseconds).
WAITING_TTL, SESSION_TTL, CLAIM_TTL, WINDOW = (f"{patient(1000 * seconds):.0f}ms" for seconds in (2, 3, 1.5, 6))
#: A caller of its own, whom an operator blocks.
PREFIX = "127.0.0.9"


class Found(Exception):
    """What is expected to be found wrong is found: the story need not go on."""


class GaveUp(Exception):
    """What the story waits for does not come, as expected of programs with a bug."""


@dataclass
class Told(History):
    """The history of one story."""
    expected: str | None = None  # a pattern of what is to be found wrong
    #: How far behind a worker may be. Stories wait as long for it as the checker allows, so it stays the same in each.
    staleness: float = field(default_factory=lambda: patient(STALENESS))
    complaints: list[str] = field(default_factory=list)  # of the story and its visitors, beside the oddities
    _patience: float = field(default_factory=lambda: patient(IMPATIENT))

    def is_found(self) -> bool:
        return self.expected is not None and re.search(self.expected, self.verdict()) is not None

    def verdict(self) -> str:
        return "\n".join([*self.oddities[:20], *self.complaints])

    def until(self, condition: Callable[[], T], what: str, every: float = 0.01,
              again_on: type[Exception] | tuple[type[Exception], ...] = (),
              progress: Callable[[], object] | None = None) -> T:
        """Where something wrong is expected, gives up after a short time, or so long after the last progress: it may never
        come."""
        last, since = progress() if progress is not None else None, time.monotonic()

        def looked_at() -> T:
            nonlocal last, since
            if self.is_found():
                raise Found
            now = progress() if progress is not None else None
            if now != last:
                last, since = now, time.monotonic()
            if self.expected is not None and time.monotonic() > since + self._patience:
                self._patience = min(self._patience, 1.0)
                raise GaveUp(f"gave up: {what}")
            return condition()

        return wait_until(looked_at, PATIENT, what, every, again_on)

    def spend(self, seconds: float) -> None:
        """Visitors come and go meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.is_found():
            time.sleep(min(0.05, seconds))

    def come_and_go(self, visitors: int) -> None:
        """Until so many more have joined."""
        enough = len(self.stays) + visitors
        self.until(lambda: len(self.stays) >= enough, f"{visitors} more visitors join", progress=lambda: len(self.stays))

    def ends(self) -> int:
        return sum(stay.end is not None for stay in self.stays)

    def judge(self, what: Callable[[], object]) -> None:
        """Keeps what it complains of."""
        try:
            what()
        except (AssertionError, GaveUp) as error:
            self.complaints.append(str(error))


LEASE_AND_FENCE = """
return { redis.call('GET', KEYS[1]), redis.call('HGET', KEYS[2], 'fence') }
"""


class Recorder(threading.Thread):
    """Keeps every batch of the ingest stream, before the dispatcher trims what it has applied, and notes who holds the
    dispatchers' lease with which fence."""

    def __init__(self, system: System, history: History) -> None:
        super().__init__(daemon=True)
        self._system, self._history = system, history
        self._done = threading.Event()
        self.batches: list[str] = []

    def run(self) -> None:
        last = "0-0"
        while not self._done.is_set():
            try:
                store = self._system.redis.connect()
            except RedisGone:
                self._done.wait(0.05)  # the store is down
                continue
            try:
                while not self._done.is_set():
                    last = self._look(store, last)
            except (RedisGone, RedisError):
                pass
            finally:
                store.close()

    def _look(self, store: Redis, last: str) -> str:
        key = self._system.key
        for _, entries in store.command("XREAD", "BLOCK", 50, "STREAMS", key("door", "ingest"), last) or []:
            for last, fields in entries:
                self.batches.append(fields[1])
                entry = entry_of(last, fields[1])
                self._history.entries += [entry] if entry is not None else []
        owner, fence = store.command("EVAL", LEASE_AND_FENCE, 2, key("door", "dispatcher"), key("door", "state"))
        if owner and fence:
            self._history.leases.setdefault(fence, set()).add(owner)
        return last

    def stop(self) -> None:
        self._done.set()
        self.join()


# ---- what happens ----


def change(system: System, history: History, name: str, value: str) -> None:
    """The operator changes a setting."""
    sent = time.time()
    system.set("door", f"{name}={value}")
    history.changes.append(Change(sent, time.time(), name, value))


def enter(system: System, history: History, again: Visitor | None = None) -> tuple[Visitor, Stay]:
    """A new visitor, or one who comes again."""
    sent = time.time()
    visitor = system.join("door") if again is None else again.join()
    return visitor, history.acknowledged(visitor.ticket, sent, time.time())


def leave(visitor: Visitor, stay: Stay) -> None:
    stay.gives_back(time.time())
    stay.end, stay.ended_at = visitor.leave()["status"], time.time()


def is_over(system: System, stay: Stay) -> bool:
    return any(place == stay.place for step in system.steps("door") for place, _ in step.removed + step.freed)


def service(_: System, history: Told) -> None:
    history.come_and_go(20)


def pause(system: System, history: Told) -> None:
    """Longer than waiting_ttl, so that presence counts."""
    change(system, history, "mode", "paused")
    history.spend(patient(5))
    change(system, history, "mode", "open")


def absence(system: System, history: Told) -> None:
    """Three visitors join, among others who stay, and are not seen again."""
    change(system, history, "mode", "paused")
    gone = []
    for _ in range(3):
        gone.append(enter(system, history)[1])
        gone[-1].end = "absent"
    try:
        history.until(lambda: all(is_over(system, stay) for stay in gone), "who is absent is dropped", every=0.1)
    finally:
        change(system, history, "mode", "open")


def desertion(system: System, history: Told) -> None:
    """Visitors are called, claim their sessions, and are not seen again."""
    both = [enter(system, history) for _ in range(2)]
    for visitor, stay in both:
        history.until(visitor.is_active, "is called")
        stay.saw_active(time.time(), visitor.view)
        stay.end = "expired"
    history.until(lambda: is_over(system, both[-1][1]), "the sessions end")
    history.come_and_go(10)


def extension(system: System, history: Told) -> None:
    """A visitor is called, asks for more time again and again, and never claims."""
    visitor, stay = enter(system, history)
    asked = history.until(lambda: (answer := visitor.client.post(f"{visitor.path}/extend", ticket=visitor.ticket)).status == 200
                          and answer, "is called")
    assert asked.json["status"] == "active", asked
    stay.end = "unclaimed"
    for _ in range(5):
        visitor.client.post(f"{visitor.path}/extend", ticket=visitor.ticket)
    history.until(lambda: is_over(system, stay), "the session is given on")
    history.come_and_go(4)


def restart(system: System, history: Told) -> None:
    history.until(lambda: system.numbers("door")["joined"] > ACTORS, "some joined", again_on=KeyError)
    dispatcher = system.of("dispatcher")[0]
    dispatcher.stop()
    dispatcher.start()
    history.come_and_go(10)


def session_until(system: System, stay: Stay) -> int:
    """As Redis has it, ms; 0: there is none."""
    return int(system.store.command("ZSCORE", system.key("door", "active"), stay.visitor) or 0)


def called(system: System, history: Told) -> tuple[Visitor, Stay, int]:
    """A visitor who is called and has not claimed the session, and until when it lasts."""
    visitor, stay = enter(system, history)
    return visitor, stay, history.until(lambda: session_until(system, stay), "is called")


def passes(history: Told, deadline: int) -> None:
    history.until(lambda: time.time() > deadline / 1000, "the deadline passes")


def backlog(system: System, history: Told) -> None:
    """A visitor claims the session in time, while no dispatcher runs, and the deadline passes."""
    visitor, stay, deadline = called(system, history)
    dispatcher = system.of("dispatcher")[0]
    dispatcher.kill()
    history.until(visitor.is_active, "the worker knows")  # to ask is to claim
    passes(history, deadline)
    expirer = system.of("expirer")[0]
    before = metric(expirer, "tellerline_expirer_steps_total")
    history.until(lambda: metric(expirer, "tellerline_expirer_steps_total") > before or is_over(system, stay),
                  "the expirer has looked")
    dispatcher.start()
    stay.gives_back(time.time())
    stay.end, stay.ended_at = visitor.complete()["status"], time.time()
    history.come_and_go(4)


def reboot(system: System, history: Told) -> None:
    """The deadline of a session has passed when Redis comes back, and the expirer is the first that finds it."""
    _, stay, _ = called(system, history)
    stay.end = "unclaimed"
    system.of("worker")[0].stop()
    history.until(lambda: system.is_applied("door"), "all is applied")
    for program in system.programs:
        program.kill()
    system.store.command("ZADD", system.key("door", "active"), "XX", int(time.time() * 1000), stay.visitor)
    system.redis.kill()
    system.forget_store()
    history.restarts += 1
    system.redis.start()
    system.of("expirer")[0].start()
    wait_until(lambda: is_over(system, stay), PATIENT, "the session ends")
    for program in system.programs:
        if program.role != "expirer":
            program.start()


def rewound(system: System, history: Told) -> None:
    """Redis loses the claim of a session, and its former deadline passes before Redis is there again."""
    visitor, stay, deadline = called(system, history)
    size, since = system.redis.history(), time.time()

    def is_claimed() -> bool:
        active = visitor.is_active()
        stay.saw_active(time.time(), visitor.view)
        return active and stay.inside_until is not None and stay.inside_until > deadline / 1000 + 1

    history.until(is_claimed, "the worker knows of the claim")
    system.redis.kill()
    system.redis.lose_tail(size)
    system.forget_store()
    history.losses.append(Loss(since, float("inf"), remembered=True))
    passes(history, deadline)
    system.redis.start()
    history.losses[-1] = history.losses[-1]._replace(until=time.time() + history.staleness)
    wait_until(lambda: session_until(system, stay) != deadline, PATIENT, "Redis knows of the claim, or has ended the session")
    stay.gives_back(time.time())
    stay.end, stay.ended_at = visitor.complete()["status"], time.time()
    history.come_and_go(4)


def removal(system: System, history: Told) -> None:
    """The operator takes out one who is active and one who waits."""
    active, stay = enter(system, history)
    history.until(active.is_active, "is called")
    stay.saw_active(time.time(), active.view)
    change(system, history, "mode", "paused")
    waiting, other = enter(system, history)
    for visitor, one in ((active, stay), (waiting, other)):
        one.end = "removed"
        done = system.ctl("visitor", "remove", "door", visitor.ticket, "--yes")
        assert done.returncode == 0, done.stderr
        one.ended_at = time.time()
    change(system, history, "mode", "open")
    history.come_and_go(4)


def poison(system: System, history: Told) -> None:
    for payload in (b"\xc1", b"", b"\x91" * 5000, bytes(300000)):
        system.store.command("XADD", system.key("door", "ingest"), "*", "d", payload)
        history.poisoned += 1
        history.come_and_go(3)


def stranger(system: System, history: Told) -> None:
    """Another program reads entries of the ingest stream."""
    history.come_and_go(4)
    dispatcher = system.of("dispatcher")[0]
    dispatcher.kill()
    history.until(lambda: system.store.command("XREADGROUP", "GROUP", "dispatchers", "stranger", "COUNT", 2, "STREAMS",
                                               system.key("door", "ingest"), ">"), "the stranger reads")
    dispatcher.start()
    history.come_and_go(10)


def full(system: System, history: Told) -> None:
    """Redis is at its memory limit: no joins, but sessions end."""
    history.until(lambda: system.active("door") == CAPACITY and system.waiting("door") > 0, "some are there")
    since = time.time()
    system.store.command("CONFIG", "SET", "maxmemory", "1")
    history.spend(history.staleness + patient(1.5))
    history.full.append((since, time.time()))
    system.store.command("CONFIG", "SET", "maxmemory", "0")
    history.come_and_go(4)


def hand_over(visitor: Visitor, stay: Stay, history: History) -> None:
    """Two other devices redeem codes of the visitor's ticket. The visitor goes on with the first that has the place."""
    codes = [visitor.client.post(f"{visitor.path}/transfer", ticket=visitor.ticket) for _ in range(2)]
    given = []
    for device, code in zip("ab", codes):
        assert code.status == 200, f"place {stay.place} was refused a code: {code.body!r}"
        sent = time.time()
        answer = redeem(visitor.client, visitor.path.rpartition("/")[2], code.json["code"], device)
        if answer.status != 200:
            assert answer.status == 409, answer.body
            continue
        given.append(answer.json["ticket"])
        stay.saw_ticket(given[-1])
        stay.saw_position(sent, time.time(), answer.json["position"])
        history.hand_overs.append(HandOver(stay.place, read_ticket(given[-1]).serial, device, sent, time.time()))
    assert given, "no device got the place"
    visitor.ticket = given[0]


def ask_as_before(client: Client, path: str, place: int, ticket: str, history: History) -> None:
    """The device that had the place asks, and knocks at the gate."""
    sent, serial = time.time(), read_ticket(ticket).serial
    answer = client.get(f"{path}/status", ticket=ticket)
    view = answer.json if answer.status == 200 else {"status": f"{answer.status}"}
    history.old_devices.append(OldDevice(place, serial, sent, view["status"], "pass" in view))
    sent = time.time()
    if client.get(f"{path}/check", ticket=ticket).status == 204:
        history.old_devices.append(OldDevice(place, serial, sent, "let in"))


def handover(system: System, history: Told) -> None:
    """Places go to other devices while they wait, twice each. All devices go on asking, until the session is over."""
    change(system, history, "mode", "paused")
    there = [enter(system, history) for _ in range(3)]
    before: list[tuple[Visitor, Stay, str]] = []
    for visitor, stay in [*there, *there]:
        before.append((visitor, stay, str(visitor.ticket)))
        hand_over(visitor, stay, history)
    end = time.monotonic() + history.staleness + 0.5
    while time.monotonic() < end:
        for visitor, stay, ticket in before:
            ask_as_before(visitor.client, visitor.path, stay.place, ticket, history)
        history.spend(0.2)
    change(system, history, "mode", "open")

    def serve() -> bool:
        for visitor, stay in there:
            if stay.end is None and visitor.is_active():
                stay.saw_active(time.time(), visitor.view)
                for _, other, ticket in before:
                    if other is stay:
                        ask_as_before(visitor.client, visitor.path, stay.place, ticket, history)
                stay.gives_back(time.time())
                stay.end, stay.ended_at = visitor.complete()["status"], time.time()
        return all(stay.end is not None for _, stay in there)

    history.until(serve, "all are served", every=0.05)


def blocks(system: System, history: Told) -> None:
    """The operator blocks a caller, and ends that."""
    visitor, stay = enter(system, history)
    client = Client(system.of("worker")[0].http_port, source=PREFIX)

    def knock(seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sent = time.time()
            answer = client.get(f"{visitor.path}/status", ticket=visitor.ticket)
            history.knocks.append(Knock(sent, time.time(), answer.status == 403))
            history.spend(0.1)

    def told(*command: str) -> tuple[float, float]:
        sent, done = time.time(), system.ctl(*command)
        assert done.returncode == 0, done.stderr
        return sent, time.time()

    try:
        knock(0.3)
        begun = told("block", "add", PREFIX)
        knock(history.staleness + 0.5)
        history.blocks.append(Block(*begun, *told("block", "remove", PREFIX)))
        knock(history.staleness + 0.5)
    finally:
        client.close()
    leave(visitor, stay)


def unlisted(system: System, history: Told) -> None:
    """The list of queues lost the name while no program ran: each adds it when it starts."""
    history.come_and_go(4)
    for program in system.programs:
        program.kill()
    system.store.command("SREM", "tl:queues", "door")
    for program in system.programs:
        program.start()
    history.until(lambda: system.store.command("SISMEMBER", "tl:queues", "door"), "the queue is listed")
    history.come_and_go(6)


def damage(system: System, history: Told) -> None:
    """The state is lost, and the line is not."""
    history.until(lambda: system.active("door") > 0 and system.waiting("door") > 0, "some are there")
    since = time.time()
    system.store.command("DEL", system.key("door", "state"))
    history.losses.append(Loss(since, float("inf")))
    history.until(lambda: system.store.command("EXISTS", system.key("door", "state")), "there is a state again")
    history.losses[-1] = Loss(since, time.time() + history.staleness)
    history.come_and_go(10)


def tail(system: System, history: Told) -> None:
    """The store comes back without its last joins, two of them of visitors who had been there before; and others join
    before the lost ones return."""
    change(system, history, "mode", "paused")
    known = [enter(system, history) for _ in range(2)]
    for visitor, stay in known:
        leave(visitor, stay)
    size, since = system.redis.history(), time.time()
    lost = [enter(system, history, visitor) for visitor, _ in known] + [enter(system, history) for _ in range(4)]
    system.redis.kill()
    system.redis.lose_tail(size)
    system.forget_store()
    history.losses.append(Loss(since, float("inf")))
    system.redis.start()
    history.losses[-1] = Loss(since, time.time() + history.staleness)
    fresh = [history.until(lambda: enter(system, history), "joins are taken again", again_on=AssertionError)
             for _ in range(10)]
    for visitor, stay in lost + fresh:
        status = history.until(lambda v=visitor: v.status()["status"], "an answer", again_on=AssertionError)
        assert status == "waiting", f"place {stay.place} did not come back: {status}"
        leave(visitor, stay)
    change(system, history, "mode", "open")
    history.come_and_go(10)


def loss(system: System, history: Told) -> None:
    """The store loses everything under programs that live on: they remember who was where."""
    change(system, history, "capacity", "1")  # so that some wait
    history.come_and_go(6)
    since = time.time()
    system.store.command("FLUSHALL")
    history.losses.append(Loss(since, time.time(), True, remembered=True))
    wait_until(lambda: system.store.command("HGET", system.key("door", "state"), "recover_until") == "0", PATIENT,
               "the recovery ends")
    history.come_and_go(4)


WEIGHTS = (2, 1)


def lanes(system: System, history: Told) -> None:
    """Visitors of two lanes wait while the queue is paused, some are moved from one to the other, and all are served."""
    history.shares = [Shares(time.time(), WEIGHTS)]
    change(system, history, "mode", "paused")
    there = [enter(system, history) for _ in range(8)]
    change(system, history, "default_lane", "vip")
    for _ in range(3):  # until the worker knows
        there += [enter(system, history) for _ in range(3)]
    change(system, history, "default_lane", "normal")
    for visitor, _ in there[1:4:2]:
        done = system.ctl("visitor", "move", "door", visitor.ticket, "vip")
        assert done.returncode == 0, done.stderr
    change(system, history, "mode", "open")

    def serve() -> bool:
        for visitor, stay in there:
            if stay.end is None and visitor.is_active():
                stay.saw_active(time.time(), visitor.view)
                stay.gives_back(time.time())
                stay.end, stay.ended_at = visitor.complete()["status"], time.time()
        return all(stay.end is not None for _, stay in there)

    history.until(serve, "all of both lanes are served", every=0.05)


def draw(system: System, history: Told) -> None:
    """Visitors join before the opening, others after it and before the draw. Places change, so only this and the audit
    judge, not the history."""
    visitors = [system.join("door") for _ in range(20)]
    admitter = system.of("admitter")[0]
    admitter.stop()
    opens = time.time() + patient(0.3)
    opens_at = datetime.fromtimestamp(opens, timezone.utc).isoformat(timespec="milliseconds")
    system.set("door", "mode=paused", f"opens_at={opens_at}")
    history.spend(opens + 0.05 - time.time())
    late = [system.join("door") for _ in range(3)]
    admitter.start()
    history.until(lambda: "drawn" in system.client().get("/v1/queues/door").json, "the draw is done")
    history.until(lambda: all("position" in visitor.status() for visitor in visitors + late),
               "the worker has the line as drawn")
    audit(system)
    places = [visitor.status().get("position") for visitor in late]
    assert places == [21, 22, 23], f"who came after the opening stands at {places}"
    places = sorted(visitor.status().get("position", 0) for visitor in visitors)
    assert places == list(range(1, len(visitors) + 1)), f"those who were drawn stand at {places}"
    for visitor in visitors + late:
        assert visitor.leave()["status"] == "left"


def overload(system: System, history: Told) -> None:
    """The site reports that it is overloaded, again and again: the capacity is cut once per adaptive_hold. It is cut by
    those who are active, who stay so long here that the first cut is from all of the capacity."""
    def capacity() -> int:
        return int(system.store.command("HGET", system.key("door", "state"), "capacity_now") or 0)

    def report() -> bool:
        system.store.command("XADD", system.key("door", "feedback"), "*", "d", "990 -1 -1")
        return True

    history.until(lambda: capacity() == CAPACITY and system.active("door") == CAPACITY, "it is full")
    change(system, history, "capacity.min", "1")
    history.until(lambda: report() and capacity() < CAPACITY, "the capacity is cut", every=0.2)
    first = capacity()
    for _ in range(10):  # the admitter looks at them twice a second
        report()
        history.spend(0.3)
        assert capacity() >= first, f"the capacity was cut to {first}, and a moment later to {capacity()}"


#: Of the story "overbook": how many more are called, what was learned of a thousand before, and who never comes.
OVERBOOK, NOSHOWS = 3, 0.05
LEARNED = """
local since, n = string.match(redis.call('HGET', KEYS[1], 'called') or '', '^(%d+):(%d+):')
return since and redis.call('HSET', KEYS[1], 'called', since .. ':' .. n .. ':200:800')
"""


def overbook(system: System, history: Told) -> None:
    """More are called than there is capacity, because four in five never came; now more come than fit."""
    history.until(lambda: system.store.command("EVAL", LEARNED, 1, system.key("door", "state")) is not None,
                  "those called are counted")
    history.come_and_go(30)


@dataclass(frozen=True)
class Plot:
    happen: Callable[[System, Told], None]
    queue: dict[str, object] = field(default_factory=dict)
    redis: dict[str, str] = field(default_factory=dict)
    served: tuple[float, float] = (0.0, 0.15)
    leavers: float = 0.15
    repeats: bool = False  # in the end each batch comes once more
    rate: Rate | None = None  # admits by it, not by the capacity
    overbook: int | None = None
    actors: int = ACTORS
    one_place: bool = True  # nobody's place changes: the history is checked


SHORT = {"session_ttl": SESSION_TTL, "claim_ttl": SESSION_TTL}
PLOTS = {
    "service": Plot(service),
    "repeats": Plot(service, repeats=True),
    "leaving": Plot(service, served=(0.2, 0.5), leavers=0.5),
    "pause": Plot(pause, {"waiting_ttl": WAITING_TTL}),
    "absence": Plot(absence, {"waiting_ttl": WAITING_TTL}),
    "desertion": Plot(desertion, SHORT, served=(0.2, 0.5)),
    "extension": Plot(extension, {"claim_ttl": CLAIM_TTL}),
    "backlog": Plot(backlog, {"claim_ttl": CLAIM_TTL}),
    "reboot": Plot(reboot, {"claim_ttl": "10m", "session_ttl": "10m"}, redis={"appendfsync": "always"}, actors=0),
    "rewound": Plot(rewound, {"claim_ttl": CLAIM_TTL}, redis={"appendfsync": "always"}),
    "restart": Plot(restart),
    "removal": Plot(removal),
    "poison": Plot(poison),
    "stranger": Plot(stranger),
    "rate": Plot(service, {"policy": "rate", "rate": {"admit": RATE.admit, "every": f"{RATE.every:g}s"},
                           "session_ttl": f"{RATE.ttl:g}s"}, rate=RATE),
    "lanes": Plot(lanes, {"lanes": ["vip", "normal"], "lane_weights": list(WEIGHTS)}),
    "overload": Plot(overload, {"capacity": {"min": CAPACITY, "max": CAPACITY}, "adaptive": {"hold": "60s"}},
                     served=(2, 3)),
    "overbook": Plot(overbook, {"overbook": OVERBOOK, "claim_ttl": CLAIM_TTL}, served=(0.3, 0.9),
                     overbook=OVERBOOK, actors=14),
    "full": Plot(full, {"claim_ttl": "10m", "session_ttl": "10m"}, served=(0.2, 0.5)),  # none ends by itself
    "blocks": Plot(blocks),
    "handover": Plot(handover),
    "unlisted": Plot(unlisted),
    "damage": Plot(damage),
    "tail": Plot(tail, {"claim_ttl": WINDOW}, redis={"appendfsync": "always"}),
    "draw": Plot(draw, {"order": "draw", "opens_at": "2099-01-01T00:00:00Z"}, actors=0, one_place=False),
    "loss": Plot(loss, {"recovery_window": WINDOW}),
}


def settings_of(during: str) -> dict[str, object]:
    return {"capacity": CAPACITY, "session_ttl": "60s", "claim_ttl": "30s", "waiting_ttl": "60s"} | PLOTS[during].queue


def repeat_batches(system: System, batches: list[str]) -> None:
    """Every batch with joins arrives once more, as after answers that were lost. It does not say when it was made: a late
    join is refused to who has gone, also if the batch is not known."""
    for payload in batches:
        version, worker, number, generation, _, commands = wire.unpack(payload.encode("utf-8", "surrogateescape"))
        again = wire.pack([version, worker, number, generation, 0, commands])
        system.store.command("XADD", system.key("door", "ingest"), "*", "d", again)


def tell(system: System, during: str, expected: str | None = None) -> None:
    """Visitors come and go, then the checker and the audit judge. Raises AssertionError with all that they find, or as soon
    as what is expected is found."""
    plot, stop = PLOTS[during], threading.Event()
    history = Told(expected=expected)
    ports = [program.http_port for program in system.of("worker")]
    actors = [Actor(i, 1, ports, "door", history, stop, float("inf"), served=plot.served, leavers=plot.leavers,
                    noshows=NOSHOWS if plot.overbook is not None else 0.0)
              for i in range(plot.actors)]
    recorder = Recorder(system, history)
    for thread in (recorder, *actors):
        thread.start()
    try:
        _tell_all(system, plot, history, stop, actors, recorder)
    except Found:
        pass
    finally:
        stop.set()
        for actor in actors:
            actor.deadline = 0.0
        recorder.stop()
    verdict = history.verdict()
    assert not verdict, verdict


def _tell_all(system: System, plot: Plot, history: Told, stop: threading.Event, actors: list[Actor],
              recorder: Recorder) -> None:
    history.judge(lambda: plot.happen(system, history))
    stop.set()
    history.judge(lambda: history.until(lambda: not any(actor.is_alive() for actor in actors), "all visitors are done",
                                        progress=history.ends))
    for actor in actors:
        actor.deadline = 0.0
    for actor in actors:
        actor.join(1)
        assert actor.error is None or isinstance(actor.error, AssertionError), actor.error
        history.complaints += [str(actor.error)] if actor.error is not None else []
    recorder.stop()
    if plot.repeats:
        repeat_batches(system, recorder.batches)
    history.judge(lambda: history.until(lambda: system.waiting("door") == system.active("door") == 0, "the line drains"))
    if plot.one_place:
        history.judge(lambda: check(history, system.steps("door"), CAPACITY if plot.rate is None else None,
                                    system.final("door"), history.staleness, one_clock=True, rate=plot.rate,
                                    overbook=plot.overbook))
    history.judge(lambda: audit(system))


def audit(system: System) -> None:
    done = system.ctl("audit")
    assert done.returncode == 0, f"audit: {done.stdout}{done.stderr}"
