"""Short stories of one queue: visitors come and go, something happens meanwhile, and the history checker and the audit
judge. Each is made so that a script that is wrong shows in it (test_planted_bugs)."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone

from actors import Actor
from hand_overs import HandOver, OldDevice
from history import Block, Change, History, Knock, Loss, Rate, Shares, Stay, check
from http_client import Client, Visitor
from redis_server import Redis, RedisError, RedisGone
from tellerline import System
from waiting import wait_until
from wire import read_ticket

CAPACITY = 3
#: By rate instead of the capacity, in the story "rate".
RATE = Rate(admit=5, every=1.0, ttl=30.0)
ACTORS = 8
#: How long a visitor waits for an answer before that is a complaint (seconds), where a bug is expected; and elsewhere.
IMPATIENT, PATIENT = 8.0, 60.0
#: A worker may be this far behind (seconds).
STALENESS = 3.0
#: A caller of its own, whom an operator blocks.
PREFIX = "127.0.0.9"

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
                continue  # the store is down
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
        owner, fence = store.command("EVAL", LEASE_AND_FENCE, 2, key("door", "dispatcher"), key("door", "state"))
        if owner and fence:
            self._history.leases.setdefault(fence, set()).add(owner)
        return last

    def stop(self) -> None:
        self._done.set()
        self.join()


# ---- what happens ----


def spend(seconds: float) -> None:
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > end, seconds + 1, "visitors came and went")


def change(system: System, history: History, name: str, value: str) -> None:
    """The operator changes a setting."""
    sent = time.time()
    system.set("door", f"{name}={value}")
    history.changes.append(Change(sent, time.time(), name, value))


def enter(system: System, history: History) -> tuple[Visitor, Stay]:
    sent = time.time()
    visitor = system.join("door")
    return visitor, history.acknowledged(visitor.ticket, sent, time.time())


def is_over(system: System, stay: Stay) -> bool:
    return any(place == stay.place for step in system.steps("door") for place, _ in step.removed + step.freed)


def service(_: System, __: History) -> None:
    spend(2)


def pause(system: System, history: History) -> None:
    """Longer than waiting_ttl, so that presence counts."""
    change(system, history, "paused", "true")
    spend(5)
    change(system, history, "paused", "false")


def absence(system: System, history: History) -> None:
    """Three visitors join, among others who stay, and are not seen again."""
    change(system, history, "paused", "true")
    gone = []
    for _ in range(3):
        gone.append(enter(system, history)[1])
        gone[-1].end = "absent"
    try:
        wait_until(lambda: all(is_over(system, stay) for stay in gone), PATIENT, "who is absent is dropped", every=0.1)
    finally:
        change(system, history, "paused", "false")


def desertion(system: System, history: History) -> None:
    """Visitors are called, claim their sessions, and are not seen again."""
    for _ in range(2):
        both = [enter(system, history) for _ in range(2)]
        for visitor, stay in both:
            wait_until(visitor.is_active, PATIENT, "is called")
            stay.saw_active(time.time(), visitor.view)
            stay.end = "expired"
        wait_until(lambda stay=both[-1][1]: is_over(system, stay), PATIENT, "the sessions end")
    spend(2)


def extension(system: System, history: History) -> None:
    """Visitors are called, ask for more time again and again, and never claim."""
    for _ in range(2):
        visitor, stay = enter(system, history)
        asked = wait_until(lambda: (answer := visitor.client.post(f"{visitor.path}/extend", ticket=visitor.ticket)).status == 200
                           and answer, PATIENT, "is called")
        assert asked.json["status"] == "active", asked
        stay.end = "unclaimed"
        for _ in range(5):
            visitor.client.post(f"{visitor.path}/extend", ticket=visitor.ticket)
        wait_until(lambda one=stay: is_over(system, one), PATIENT, "the session is given on")
    spend(1)


def restart(system: System, _: History) -> None:
    wait_until(lambda: system.numbers("door")["joined"] > ACTORS, PATIENT, "some joined", again_on=KeyError)
    dispatcher = system.of("dispatcher")[0]
    dispatcher.stop()
    dispatcher.start()
    spend(2)


def removal(system: System, history: History) -> None:
    """The operator takes out one who is active and one who waits."""
    active, stay = enter(system, history)
    wait_until(active.is_active, PATIENT, "is called")
    stay.saw_active(time.time(), active.view)
    change(system, history, "paused", "true")
    waiting, other = enter(system, history)
    for visitor, one in ((active, stay), (waiting, other)):
        one.end = "removed"
        done = system.ctl("visitor", "remove", "door", visitor.ticket, "--yes")
        assert done.returncode == 0, done.stderr
        one.ended_at = time.time()
    change(system, history, "paused", "false")
    spend(1)


def poison(system: System, history: History) -> None:
    for payload in (b"\xc1", b"", b"\x91" * 5000, bytes(300000)):
        system.store.command("XADD", system.key("door", "ingest"), "*", "d", payload)
        history.poisoned += 1
        spend(0.4)


def stranger(system: System, _: History) -> None:
    """Another program reads entries of the ingest stream."""
    spend(0.5)
    dispatcher = system.of("dispatcher")[0]
    dispatcher.kill()
    wait_until(lambda: system.store.command("XREADGROUP", "GROUP", "dispatchers", "stranger", "COUNT", 2, "STREAMS",
                                            system.key("door", "ingest"), ">"), PATIENT, "the stranger reads")
    dispatcher.start()
    spend(2)


def full(system: System, history: History) -> None:
    """Redis is at its memory limit: no joins, but sessions end."""
    wait_until(lambda: system.active("door") == CAPACITY and system.waiting("door") > 0, PATIENT, "some are there")
    since = time.time()
    system.store.command("CONFIG", "SET", "maxmemory", "1")
    spend(STALENESS + 1.5)
    history.full.append((since, time.time()))
    system.store.command("CONFIG", "SET", "maxmemory", "0")
    spend(0.5)


def hand_over(visitor: Visitor, stay: Stay, history: History) -> None:
    """Two other devices redeem codes of the visitor's ticket. The visitor goes on with the first that has the place."""
    codes = [visitor.client.post(f"{visitor.path}/transfer", ticket=visitor.ticket) for _ in range(2)]
    given = []
    for device, code in zip("ab", codes):
        assert code.status == 200, f"place {stay.place} was refused a code: {code.body!r}"
        sent = time.time()
        answer = visitor.client.post(f"{visitor.path}/move?move={code.json['code']}&by={device}")
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


def handover(system: System, history: History) -> None:
    """Places go to other devices while they wait, twice each. All devices go on asking, until the session is over."""
    change(system, history, "paused", "true")
    there = [enter(system, history) for _ in range(3)]
    before: list[tuple[Visitor, Stay, str]] = []
    for visitor, stay in [*there, *there]:
        before.append((visitor, stay, str(visitor.ticket)))
        hand_over(visitor, stay, history)
    end = time.monotonic() + STALENESS + 0.5
    while time.monotonic() < end:
        for visitor, stay, ticket in before:
            ask_as_before(visitor.client, visitor.path, stay.place, ticket, history)
        spend(0.2)
    change(system, history, "paused", "false")

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

    wait_until(serve, PATIENT, "all are served", every=0.05)


def blocks(system: System, history: History) -> None:
    """The operator blocks a caller, and ends that."""
    visitor, stay = enter(system, history)
    client = Client(system.of("worker")[0].http_port, source=PREFIX)

    def knock(seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sent = time.time()
            answer = client.get(f"{visitor.path}/status", ticket=visitor.ticket)
            history.knocks.append(Knock(sent, time.time(), answer.status == 403))
            spend(0.1)

    def told(*command: str) -> tuple[float, float]:
        sent, done = time.time(), system.ctl(*command)
        assert done.returncode == 0, done.stderr
        return sent, time.time()

    try:
        knock(0.3)
        begun = told("block", PREFIX)
        knock(STALENESS + 0.5)
        history.blocks.append(Block(*begun, *told("unblock", PREFIX)))
        knock(STALENESS + 0.5)
    finally:
        client.close()
    stay.gives_back(time.time())
    stay.end, stay.ended_at = visitor.leave()["status"], time.time()


def unlisted(system: System, _: History) -> None:
    """The list of queues lost the name while no program ran: each adds it when it starts."""
    spend(0.5)
    for program in system.programs:
        program.kill()
    system.store.command("SREM", "tl:queues", "door")
    for program in system.programs:
        program.start()
    wait_until(lambda: system.store.command("SISMEMBER", "tl:queues", "door"), PATIENT, "the queue is listed")
    spend(1)


def damage(system: System, history: History) -> None:
    """The state is lost, and the line is not."""
    wait_until(lambda: system.active("door") > 0 and system.waiting("door") > 0, PATIENT, "some are there")
    since = time.time()
    system.store.command("DEL", system.key("door", "state"))
    history.losses.append(Loss(since, float("inf")))
    wait_until(lambda: system.store.command("EXISTS", system.key("door", "state")), PATIENT, "there is a state again")
    history.losses[-1] = Loss(since, time.time() + STALENESS)
    spend(2)


def tail(system: System, history: History) -> None:
    """The store comes back without its last joins, and others join before the lost ones return."""
    change(system, history, "paused", "true")
    size, since = system.redis.history(), time.time()
    lost = [enter(system, history) for _ in range(5)]
    system.redis.kill()
    system.redis.lose_tail(size)
    system.forget_store()
    history.losses.append(Loss(since, float("inf")))
    system.redis.start()
    history.losses[-1] = Loss(since, time.time() + STALENESS)
    fresh = [wait_until(lambda: enter(system, history), PATIENT, "joins are taken again", again_on=AssertionError)
             for _ in range(10)]
    for visitor, stay in lost + fresh:
        wait_until(lambda v=visitor: v.status()["status"] == "waiting", PATIENT / 2, "has the place",
                   again_on=AssertionError)
        stay.gives_back(time.time())
        stay.end, stay.ended_at = visitor.leave()["status"], time.time()
    change(system, history, "paused", "false")
    spend(2)


def loss(system: System, history: History) -> None:
    """The store loses everything under programs that live on: they remember who was where."""
    change(system, history, "capacity", "1")  # so that some wait
    spend(1)
    since = time.time()
    system.store.command("FLUSHALL")
    history.losses.append(Loss(since, time.time(), True, remembered=True))
    wait_until(lambda: system.store.command("HGET", system.key("door", "state"), "recover_until") == "0", 3 * PATIENT,
               "the recovery ends")
    spend(1)


WEIGHTS = (2, 1)


def lanes(system: System, history: History) -> None:
    """Visitors of two lanes wait while the queue is paused, some are moved from one to the other, and all are served."""
    history.shares = [Shares(time.time(), WEIGHTS)]
    change(system, history, "paused", "true")
    there = [enter(system, history) for _ in range(8)]
    change(system, history, "default_lane", "vip")
    for _ in range(3):  # until the worker knows
        there += [enter(system, history) for _ in range(3)]
    change(system, history, "default_lane", "normal")
    for visitor, _ in there[1:4:2]:
        done = system.ctl("visitor", "move", "door", visitor.ticket, "vip")
        assert done.returncode == 0, done.stderr
    change(system, history, "paused", "false")

    def serve() -> bool:
        for visitor, stay in there:
            if stay.end is None and visitor.is_active():
                stay.saw_active(time.time(), visitor.view)
                stay.gives_back(time.time())
                stay.end, stay.ended_at = visitor.complete()["status"], time.time()
        return all(stay.end is not None for _, stay in there)

    wait_until(serve, PATIENT, "all of both lanes are served", every=0.05)


def draw(system: System, _: History) -> None:
    """Visitors join before the opening, others after it and before the draw. Places change, so only this and the audit
    judge, not the history."""
    visitors = [system.join("door") for _ in range(20)]
    opens_at = datetime.fromtimestamp(time.time() + 0.3, timezone.utc).isoformat(timespec="milliseconds")
    system.set("door", "paused=true", f"opens_at={opens_at}")
    admitter = system.of("admitter")[0]
    admitter.stop()
    spend(0.4)
    late = [system.join("door") for _ in range(3)]
    admitter.start()
    wait_until(lambda: "drawn" in system.client().get("/v1/queues/door").json, PATIENT, "the draw is done")
    wait_until(lambda: all("position" in visitor.status() for visitor in visitors + late), PATIENT,
               "the worker has the line as drawn")
    audit(system)
    places = [visitor.status().get("position") for visitor in late]
    assert places == [21, 22, 23], f"who came after the opening stands at {places}"
    places = sorted(visitor.status().get("position", 0) for visitor in visitors)
    assert places == list(range(1, len(visitors) + 1)), f"those who were drawn stand at {places}"
    for visitor in visitors + late:
        assert visitor.leave()["status"] == "left"


def overload(system: System, history: History) -> None:
    """The site reports that it is overloaded, again and again: the capacity is cut once per adaptive_hold. It is cut by
    those who are active, who stay so long here that the first cut is from all of the capacity."""
    def capacity() -> int:
        return int(system.store.command("HGET", system.key("door", "state"), "capacity_now") or 0)

    def report() -> bool:
        system.store.command("XADD", system.key("door", "feedback"), "*", "d", "990 -1 -1")
        return True

    wait_until(lambda: capacity() == CAPACITY and system.active("door") == CAPACITY, PATIENT, "it is full")
    change(system, history, "capacity_min", "1")
    wait_until(lambda: report() and capacity() < CAPACITY, PATIENT, "the capacity is cut", every=0.2)
    first, end = capacity(), time.monotonic() + 5
    while time.monotonic() < end:
        report()
        spend(0.3)
        assert capacity() >= first, f"the capacity was cut to {first}, and a moment later to {capacity()}"


#: Of the story "overbook": how many more are called, what was learned of a thousand before, and who never comes.
OVERBOOK, NOSHOWS = 3, 0.05
LEARNED = """
local since, n = string.match(redis.call('HGET', KEYS[1], 'called') or '', '^(%d+):(%d+):')
return since and redis.call('HSET', KEYS[1], 'called', since .. ':' .. n .. ':200:800')
"""


def overbook(system: System, _: History) -> None:
    """More are called than there is capacity, because four in five never came; now more come than fit."""
    wait_until(lambda: system.store.command("EVAL", LEARNED, 1, system.key("door", "state")) is not None, PATIENT,
               "those called are counted")
    spend(5)


@dataclass(frozen=True)
class Plot:
    happen: Callable[[System, History], None]
    queue: dict[str, object] = field(default_factory=dict)
    redis: dict[str, str] = field(default_factory=dict)
    longer: float = 0.0  # how much longer an answer may take
    served: tuple[float, float] = (0.0, 0.15)
    leavers: float = 0.15
    repeats: bool = False  # in the end each batch comes once more
    rate: Rate | None = None  # admits by it, not by the capacity
    overbook: int | None = None
    actors: int = ACTORS
    one_place: bool = True  # nobody's place changes: the history is checked


SHORT = {"session_ttl": "3s", "claim_ttl": "3s"}
PLOTS = {
    "service": Plot(service),
    "repeats": Plot(service, SHORT, repeats=True),
    "leaving": Plot(service, served=(0.2, 0.5), leavers=0.5),
    "pause": Plot(pause, {"waiting_ttl": "2s"}, longer=8),
    "absence": Plot(absence, {"waiting_ttl": "2s"}, longer=16),
    "desertion": Plot(desertion, SHORT, longer=8, served=(0.2, 0.5)),
    "extension": Plot(extension, {"claim_ttl": "1500ms", "session_ttl": "30s"}, longer=12),
    "restart": Plot(restart),
    "removal": Plot(removal, longer=4),
    "poison": Plot(poison),
    "stranger": Plot(stranger, longer=4),
    "rate": Plot(service, {"policy": "rate", "rate": {"admit": RATE.admit, "every": f"{RATE.every:g}s"},
                           "session_ttl": f"{RATE.ttl:g}s"}, rate=RATE),
    "lanes": Plot(lanes, {"lanes": ["vip", "normal"], "lane_weights": list(WEIGHTS)}, longer=16),
    "overload": Plot(overload, {"capacity_mode": "auto", "capacity_min": CAPACITY, "adaptive": {"hold": "20s"}},
                     served=(2, 3), longer=16),
    "overbook": Plot(overbook, {"overbook": OVERBOOK, "claim_ttl": "1500ms", "session_ttl": "30s"}, served=(0.3, 0.9),
                     longer=20, overbook=OVERBOOK, actors=14),
    "full": Plot(full, served=(0.2, 0.5), longer=8),
    "blocks": Plot(blocks, longer=2 * STALENESS),
    "handover": Plot(handover, longer=16),
    "unlisted": Plot(unlisted, longer=8),
    "damage": Plot(damage, longer=8),
    "tail": Plot(tail, redis={"appendfsync": "always"}, longer=8),
    "draw": Plot(draw, {"opening": "draw", "opens_at": "2099-01-01T00:00:00Z"}, longer=8, actors=0, one_place=False),
    "loss": Plot(loss, {"recovery_window": "6s"}, longer=20),
}


def settings_of(during: str) -> dict[str, object]:
    return {"capacity": CAPACITY, "session_ttl": "60s", "claim_ttl": "30s", "waiting_ttl": "60s"} | PLOTS[during].queue


def repeat_batches(system: System, batches: list[str]) -> None:
    """Every batch with joins arrives once more, as after answers that were lost."""
    for payload in batches:
        system.store.command("XADD", system.key("door", "ingest"), "*", "d", payload.encode("utf-8", "surrogateescape"))


def tell(system: System, during: str, patience: float = PATIENT) -> None:
    """Visitors come and go, then the checker and the audit judge. Raises AssertionError with all that they find."""
    plot, history, stop = PLOTS[during], History(), threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    deadline = time.monotonic() + patience + plot.longer
    actors = [Actor(i, 1, ports, "door", history, stop, deadline, served=plot.served, leavers=plot.leavers,
                    noshows=NOSHOWS if plot.overbook is not None else 0.0)
              for i in range(plot.actors)]
    recorder = Recorder(system, history)
    complaints: list[AssertionError] = []

    def judge(what: Callable[[], None]) -> None:
        try:
            what()
        except AssertionError as error:
            complaints.append(error)

    for thread in (recorder, *actors):
        thread.start()
    judge(lambda: plot.happen(system, history))
    stop.set()
    for actor in actors:
        actor.join()
        if actor.error is not None:
            assert isinstance(actor.error, AssertionError), actor.error
            complaints.append(actor.error)
    recorder.stop()
    if plot.repeats:
        repeat_batches(system, recorder.batches)
    judge(lambda: wait_until(lambda: system.waiting("door") == system.active("door") == 0, patience, "the line drains"))
    if plot.one_place:
        judge(lambda: check(history, system.steps("door"), CAPACITY if plot.rate is None else None, system.final("door"),
                            STALENESS, one_clock=True, rate=plot.rate, overbook=plot.overbook))
    judge(lambda: audit(system))
    assert not complaints, "\n".join(str(error) for error in complaints)


def audit(system: System) -> None:
    done = system.ctl("audit")
    assert done.returncode == 0, f"audit: {done.stdout}{done.stderr}"
