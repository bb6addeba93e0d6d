# SPDX-License-Identifier: Apache-2.0
"""What visitors saw, and a check that one fair line explains it.

Clients record each answer and its time. The checker then tests the whole history: was an acknowledged place lost or
given twice, was a visitor placed or admitted before an earlier one, were more visitors active than the capacity
allows, or admitted in any window of time than the rate allows, did more claim than fit or pass one who had the next
turn, was a pass given without an admission, did a device that gave its place away get anything, did a position rise
without a cause, is anyone left. If the clients use
Redis's clock (time.time() on the same machine), every position they saw can be compared with the true state of the
line.

A test that lets the store forget records it as a Loss. What the store could have forgotten is then not demanded of the
events stream. What visitors were told stays as strict: a place belongs to one visitor across losses and generations.
"""
from __future__ import annotations

import bisect
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, NamedTuple

import wire
from hand_overs import HandOver, OldDevice, check_hand_overs
from session_ends import Entry, Told, begins_incarnation, check_session_ends


#: All programs share the machine's clock, but Redis counts whole milliseconds and reads the clock once per command.
_CLOCK_GRAIN = 0.05

#: The end of a stay whose ticket was refused as one of a line that is gone.
FORGOTTEN = "forgotten"

#: How many poison entries the store keeps.
POISON_KEPT = 100


class Sighting(NamedTuple):
    """A position that a visitor was told."""
    sent: float      # when it was requested; for a pushed one, when it was read
    received: float
    position: int
    stream: int = 0  # numbers the event streams of a visitor; 0: the answer to a request


@dataclass
class Stay:
    """One acknowledged place of one visitor, as its client knows it. Times are of the client's clock."""
    visitor: str
    place: int
    generation: int
    join_sent: float = 0.0             # the join that was answered with this place...
    join_received: float | None = None  # ...and when the place was known; None: not recorded
    last_waiting: float = 0.0         # the last request sent that was answered `waiting`
    first_active: float | None = None  # the first answer `active`
    gave_back: float | None = None     # first attempt to complete or leave, acknowledged or not
    end: str | None = None            # the end that the visitor was told, or FORGOTTEN
    ended_at: float | None = None     # when
    refusal: str = ""                 # the answer that showed a FORGOTTEN stay
    sightings: list[Sighting] = field(default_factory=list)
    tickets: set[wire.Ticket] = field(default_factory=set)  # every ticket given for this place
    passes: list[dict[str, Any]] = field(default_factory=list)  # claims of every pass given for this place
    early: set[int] = field(default_factory=set)  # the places of passes that came before a ticket of the place
    inside_until: float | None = None  # the deadline told with the last answer `active`
    let_in: float | None = None       # the first time the gate let the visitor in, where it asks for the claim
    turns: list[float] = field(default_factory=list)  # when the visitor was told to have the next turn
    names: set[int] = field(default_factory=set)  # this place, and others that are the same one to its visitor

    def saw_position(self, sent: float, received: float, position: int, stream: int = 0) -> None:
        self.last_waiting = max(self.last_waiting, sent)
        self.sightings.append(Sighting(sent, received, position, stream))

    def saw_active(self, received: float, view: dict[str, Any] | None = None) -> None:
        if self.first_active is None:
            self.first_active = received
        if view is not None and "expires_at" in view:
            self.inside_until = datetime.fromisoformat(view["expires_at"].replace("Z", "+00:00")).timestamp()
        if view is not None:
            self.saw_pass(view)

    def saw_pass(self, view: dict[str, Any]) -> None:
        """After the ticket of the same answer, if it has one."""
        if "pass" in view:
            claims = wire.read_pass(view["pass"])
            self.passes.append(claims)
            place = claims.get("place", self.place)  # of an older release
            if place not in {ticket.place for ticket in self.tickets}:
                self.early.add(place)

    def saw_gate_open(self, received: float) -> None:
        if self.let_in is None:
            self.let_in = received

    def saw_ticket(self, ticket: str) -> None:
        self.tickets.add(wire.read_ticket(ticket))

    def gives_back(self, sent: float) -> None:
        if self.gave_back is None:
            self.gave_back = sent


class Loss(NamedTuple):
    """The store forgot what happened from `since` on, and worked again at `until`. total: and all that was before.
    remembered: the workers lived on, and, if all was lost, every visitor could return before the recovery ended."""
    since: float
    until: float
    total: bool = False
    remembered: bool = False


class Change(NamedTuple):
    """A setting that the operator changed: when the command was given, and when it was done."""
    sent: float
    received: float
    name: str
    value: str


class Shares(NamedTuple):
    """The weights of the lanes from a time on; none: an earlier lane is served first. `since`: when they applied."""
    since: float
    weights: tuple[int, ...]


class Block(NamedTuple):
    """A caller was blocked from `begun` on, and no longer at `ended`; the commands were given before."""
    begin: float
    begun: float
    end: float
    ended: float


class Knock(NamedTuple):
    """A request of that caller."""
    sent: float
    received: float
    refused: bool


class Final(NamedTuple):
    """What the store holds in the end: the counters, and the sizes of the sets."""
    numbers: dict[str, int]
    waiting: int
    active: int
    poison: int = 0  # how many entries were set aside


class Rate(NamedTuple):
    """Admission by rate. `ttl`: a visitor is told an end so many seconds after the admission; claim_ttl and session_ttl
    must both be that long, so that everyone can tell when that was."""
    admit: int
    every: float
    ttl: float
    burst: int = 0
    batches: bool = False  # each in one step: `admit` is at most the admitter's batch


@dataclass
class History:
    stays: list[Stay] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    causes: list[tuple[float, float]] = field(default_factory=list)  # when positions may rise for another reason: a move
    restarts: int = 0  # of the store, with or without a loss
    entries: list[Entry] = field(default_factory=list)  # of the ingest stream, as far as they were looked at
    cut_short: float = float("inf")  # from when on the test lets sessions end before their time
    changes: list[Change] = field(default_factory=list)
    shares: list[Shares] = field(default_factory=list)  # of the lanes, in order; empty: not judged
    blocks: list[Block] = field(default_factory=list)
    knocks: list[Knock] = field(default_factory=list)
    hand_overs: list[HandOver] = field(default_factory=list)  # to another device
    old_devices: list[OldDevice] = field(default_factory=list)
    leases: dict[str, set[str]] = field(default_factory=dict)  # fence -> which dispatchers held the lease with it
    full: list[tuple[float, float]] = field(default_factory=list)  # when the store was at its memory limit
    poisoned: int = 0  # entries that nobody can decode
    archived: bool = False  # after a loss an archive brings back also the sessions of visitors whom no client knows
    joins_without_answer: int = 0  # sent, and the connection broke: outcome unknown
    oddities: list[str] = field(default_factory=list)  # answers that a correct service never gives
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledged(self, ticket: str, sent: float = 0.0, received: float | None = None) -> Stay:
        content = wire.read_ticket(ticket)
        stay = Stay(content.visitor, content.place, content.generation, sent, received)
        stay.tickets.add(content)
        with self._lock:
            self.stays.append(stay)
        return stay

    def lost(self, stay: Stay) -> Loss | None:
        """The first loss that may have taken this stay, or a part of it, from the store."""
        ended = stay.ended_at if stay.end is not None and stay.ended_at is not None else float("inf")
        for loss in sorted(self.losses):
            if stay.join_sent <= loss.until and (loss.total or ended >= loss.since):
                return loss
        return None

    def unanswered(self) -> None:
        with self._lock:
            self.joins_without_answer += 1

    def odd(self, text: str) -> None:
        with self._lock:
            self.oddities.append(text)


def check(history: History, steps: Iterable[wire.Step], capacity: int | None, final: Final,
          staleness: float, one_clock: bool = False, rate: Rate | None = None, overbook: int | None = None) -> None:
    """Raises AssertionError for a violation. `steps` is the whole events stream, of the last generation; capacity and
    rate: what limits admission, or None; overbook: how many more may be called than the capacity, and claims are judged,
    or None; `staleness` how far behind a worker's answer may be (seconds). one_clock:
    clients and events stream use the same clock, so the positions seen are compared with the stream."""
    steps = list(steps)
    _follow_moves(history, steps)
    _follow_losses(history)
    _check_places(history)
    _check_session_ends(history, steps)  # before what visitors say of it
    assert not history.oddities, f"{len(history.oddities)} oddities:\n" + "\n".join(history.oddities[:20])
    _check_arrivals(history)
    _check_stream(steps, capacity + (overbook or 0) if capacity is not None else None, history)
    _check_fates(history, steps)
    _check_passes(history, steps)
    _check_extensions(steps)
    _check_turns_as_seen(history, staleness)
    if capacity is not None and overbook is not None:
        _check_claims(history, steps, capacity)
    elif capacity is not None:
        _check_overlap(history, capacity)
    if rate is not None:
        _check_rate(history, steps, rate)
    _check_final(history, steps, final)
    _check_leases(history)
    _check_blocks(history, staleness)
    lost = {stay.place for stay in history.stays if history.lost(stay) is not None}
    check_hand_overs(history.hand_overs, history.old_devices, steps, staleness, _CLOCK_GRAIN, lost)
    _check_ends_when_full(history, staleness)
    if one_clock:
        _check_changes(history, steps)
    ahead = _joins_ahead(history, steps) if one_clock else {}
    for stay in history.stays:
        _check_positions_as_seen(stay, staleness, ahead.get(stay.place // wire.LANE, []), history)
    if one_clock and len(_lanes(history)) <= 1 and not history.losses:
        _check_positions_true(history, steps, staleness)


def _follow_moves(history: History, steps: list[wire.Step]) -> None:
    """A move to another lane gives a visitor's place another name; what is known of the place stays its own. Tickets and
    passes of both names are right."""
    names: dict[int, int] = {}  # place -> the one that the visitor has in the end
    for step in reversed(steps):
        for old, new in step.moved:
            names[old] = names.get(new, new)
            history.causes.append((step.time_ms / 1000, step.time_ms / 1000))
    for step in steps:
        for old, _ in step.moved:  # moved there and back: the first name is the last one, too
            if names[old] == old:
                del names[old]
    for stay in history.stays:
        stay.names = {stay.place} | {old for old, last in names.items() if old % wire.LANE == stay.place % wire.LANE}
        stay.place = names.get(stay.place, stay.place)
        stay.names.add(stay.place)


def _follow_losses(history: History) -> None:
    """A join that is repeated after the store lost its place gets another one. Its visitor may be called there before coming
    back, and gets a ticket of that place with the first answer that tells of it."""
    for stay in history.stays:
        if history.lost(stay) is not None:
            stay.names |= {ticket.place for ticket in stay.tickets} - stay.early


def _check_places(history: History) -> None:
    places = [place for stay in history.stays for place in stay.names]
    assert len(set(places)) == len(places), "one place was given to two stays"
    totals = [loss for loss in history.losses if loss.total]
    generations = {ticket.generation for stay in history.stays for ticket in stay.tickets} | {
        stay.generation for stay in history.stays}
    assert len(generations) <= 1 + len(totals), f"the queue was created again: {generations}"
    for stay in history.stays:
        assert {(ticket.place, ticket.visitor) for ticket in stay.tickets} <= {
            (place, stay.visitor) for place in stay.names}, f"place {stay.place} became another one: {stay.tickets}"


def _check_session_ends(history: History, steps: list[wire.Step]) -> None:
    """What a visitor was told counts if the store kept it, or workers remember it: of a session that the store has begun and
    has not lost."""
    begun = {place: step.time_ms / 1000 for step in steps for place in step.admitted}
    told = []
    for stay in history.stays:
        loss = history.lost(stay)
        is_known = loss is None or loss.remembered and not loss.total and begun.get(stay.place, loss.since) < loss.since
        if stay.inside_until is not None and is_known:
            told.append(Told(stay.place, stay.inside_until))
    before = [step for step in steps if step.time_ms / 1000 < history.cut_short]
    check_session_ends(before, history.entries, told, [(loss.since, loss.until) for loss in history.losses])


def _unknown_places(history: History, steps: list[wire.Step]) -> str:
    """The places that no visitor was told of, and what became of each."""
    known = {name for stay in history.stays for name in stay.names}
    joined = {place: step for step in steps for place in step.joined if place not in known}
    ends = {place: (reason, step.time_ms) for step in steps for place, reason in step.removed + step.freed if place in joined}
    return ", ".join(f"{place} of {step.applied} at {step.time_ms} ({len(step.joined)} joins), ended {ends.get(place)}"
                     for place, step in list(joined.items())[:5])


def _check_final(history: History, steps: list[wire.Step], final: Final) -> None:
    """The line drained, the counters are the sizes, and as many joined as were told so."""
    assert (final.waiting, final.active) == (0, 0), f"{final.waiting} still wait and {final.active} are still active"
    numbers = final.numbers
    assert (numbers["waiting"], numbers["active"]) == (0, 0), f"the state counts those who are gone: {numbers}"
    ended = sum(numbers[name] for name in ("completed", "expired", "left"))
    assert numbers["joined"] == ended, f"the totals do not add up: {numbers}"
    if not history.losses:
        known, unknown = len(history.stays), history.joins_without_answer
        assert known <= numbers["joined"] <= known + unknown, (
            f"{numbers['joined']} places for {known} acknowledged joins and {unknown} without an answer; no client knows "
            f"{_unknown_places(history, steps)}")


    if not history.losses:
        assert final.poison == min(history.poisoned, POISON_KEPT), (
            f"{final.poison} entries were set aside as poison, of {history.poisoned}")


def _check_leases(history: History) -> None:
    """Taking the lease counts the fence, so that the former holder cannot write any more."""
    for fence, owners in history.leases.items():
        assert len(owners) == 1, f"dispatchers held the lease with the same fence {fence}: {owners}"


def _check_ends_when_full(history: History, staleness: float) -> None:
    """At the memory limit nobody joins, and who is inside or waits can end that as ever."""
    for since, until in history.full:
        for stay in history.stays:
            assert stay.gave_back is None or not since <= stay.gave_back <= until - staleness or (
                stay.ended_at is not None and stay.ended_at <= until), (
                f"place {stay.place} could not be given back at {stay.gave_back:.3f} while the store was full")


def _check_blocks(history: History, staleness: float) -> None:
    """Every worker refuses who is blocked, and nobody else."""
    for sent, received, refused in history.knocks:
        assert refused or not any(block.begun + staleness <= sent and received <= block.end for block in history.blocks), (
            f"a blocked caller was let in at {received:.3f}")
        assert not refused or any(block.begin <= received and sent <= block.ended + staleness
                                  for block in history.blocks), f"a caller was refused at {received:.3f} without a block"


def _check_changes(history: History, steps: list[wire.Step]) -> None:
    """Every change is told, and nobody is admitted while the queue is paused."""
    paused_at: float | None = None
    for sent, received, name, value in history.changes:
        if not any(loss.total and loss.until >= sent for loss in history.losses):
            assert any(step.config and sent - _CLOCK_GRAIN <= step.time_ms / 1000 <= received + _CLOCK_GRAIN
                       for step in steps), f"no event told that {name} is {value}"
        if name != "mode":
            continue
        for step in steps:
            assert not step.admitted or paused_at is None or not (
                paused_at + _CLOCK_GRAIN < step.time_ms / 1000 < sent - _CLOCK_GRAIN), (
                f"place {step.admitted[0]} was admitted while the queue was paused")
        paused_at = received if value == "paused" else None


def _lanes(history: History) -> list[list[Stay]]:
    """The stays of each lane, by place."""
    lanes: dict[int, list[Stay]] = {}
    for stay in sorted(history.stays, key=lambda stay: stay.place):
        lanes.setdefault(stay.place // wire.LANE, []).append(stay)
    return list(lanes.values())


def _check_arrivals(history: History) -> None:
    """First come, first served, as far as clients can tell: a visitor who knew their place before another one asked
    for a place in the same lane is in front."""
    for stays in _lanes(history):
        earliest_known = float("inf")
        for stay in reversed(stays):
            assert stay.join_sent <= earliest_known, (
                f"place {stay.place} was asked for {stay.join_sent - earliest_known:.3f} s after "
                "a visitor behind it had one")
            if stay.join_received is not None:
                earliest_known = min(earliest_known, stay.join_received)


def _check_stream(steps: list[wire.Step], capacity: int | None, history: History) -> None:
    """An incarnation of the store begins with an entry without events, and its number may be any higher one."""
    assert steps, "the events stream is empty"
    incarnations = 0
    for before, step in zip(steps, steps[1:]):
        begins = begins_incarnation(before, step)
        assert step.number == before.number + 1 or begins, f"the events have a gap: {before.number}, {step.number}"
        incarnations += begins
    assert incarnations <= len(history.losses) + history.restarts, f"{incarnations} incarnations without a reason"
    assert capacity is None or max(step.active for step in steps) <= capacity, "more active than the capacity"
    check_order(steps)
    for kind in ("joined", "admitted"):
        places = [place for step in steps for place in getattr(step, kind)]
        assert len(set(places)) == len(places), f"a place was {kind} twice"
    ends = [place for step in steps for place, _ in step.removed + step.freed]
    assert len(set(ends)) == len(ends), "a place ended twice"
    _check_shares(history, steps)
    may_return = {place for step in steps for place in step.admitted} if history.archived and history.losses else {
        stay.place for stay in history.stays if history.lost(stay) is not None}
    _check_counts(steps, may_return)


def check_order(steps: list[wire.Step]) -> None:
    """Nobody is admitted before someone ahead in the same lane who was waiting then. A place that came back after a loss
    was not waiting before it came back. Sessions come back as their visitors do: they were admitted before the loss."""
    joined = {place: at for at, step in enumerate(steps)
              for place in step.joined + [new for _, new in step.moved]}
    admissions: dict[int, list[tuple[int, int]]] = {}  # lane -> (place, step)
    highest: dict[int, int] = {}
    for at, step in enumerate(steps):
        for place in step.admitted:
            if place in step.returned:
                continue
            lane = place // wire.LANE
            in_lane = admissions.setdefault(lane, [])
            if place < highest.get(lane, 0):
                last, when = max(((other, then) for other, then in in_lane if other > place), key=lambda pair: pair[1])
                assert when < joined.get(place, -1), f"place {place} was admitted after {last}"
            highest[lane] = max(highest.get(lane, 0), place)
            in_lane.append((place, at))


def _check_shares(history: History, steps: list[wire.Step]) -> None:
    """By weights, two lanes that both have visitors are served in these shares: over any stretch of steps, the admissions
    by weight differ by one visitor of each at most. Without weights, no lane is served while an earlier one waits."""
    for shares, following in zip(history.shares, [*history.shares[1:], Shares(float("inf"), ())]):
        waiting: dict[int, int] = {}
        turns: dict[tuple[int, int], tuple[Fraction, Fraction, Fraction]] = {}  # difference, least and most so far
        for step in steps:
            judged = shares.since + _CLOCK_GRAIN < step.time_ms / 1000 < following.since - _CLOCK_GRAIN
            _come(waiting, step)
            admitted = Counter(place // wire.LANE for place in step.admitted if place not in step.returned)
            for lane, n in admitted.items():
                waiting[lane] -= n
            pairs = [(a, b) for a in sorted(waiting) for b in sorted(waiting) if a < b]
            for a, b in pairs if judged and admitted else []:
                if not shares.weights:
                    assert not (admitted[b] and waiting[a]), f"step {step.number} admits from lane {b} before lane {a}"
                    continue
                weights = [shares.weights[lane] if lane < len(shares.weights) else 1 for lane in (a, b)]
                difference, least, most = turns.get((a, b), (Fraction(), Fraction(), Fraction()))
                difference += Fraction(admitted[a], weights[0]) - Fraction(admitted[b], weights[1])
                if not (waiting[a] and waiting[b]):  # one may have run empty within the step
                    turns.pop((a, b), None)
                    continue
                least, most = min(least, difference), max(most, difference)
                assert most - least <= Fraction(1, weights[0]) + Fraction(1, weights[1]), (
                    f"lanes {a} and {b} did not get their shares {weights} up to step {step.number}: by weight, one is "
                    f"{float(most - least):.2f} visitors ahead")
                turns[a, b] = difference, least, most
            if not judged or step.moved:
                turns.clear()
            for place, _ in step.removed:
                waiting[place // wire.LANE] -= 1
                if not waiting[place // wire.LANE]:
                    turns.clear()


def _come(waiting: dict[int, int], step: wire.Step) -> None:
    for place in step.joined + [new for _, new in step.moved]:
        waiting[place // wire.LANE] = waiting.get(place // wire.LANE, 0) + 1
    for old, _ in step.moved:
        waiting[old // wire.LANE] -= 1


def _check_counts(steps: list[wire.Step], may_return: set[int]) -> None:
    """The sizes stated in every step match its events. A session comes back to such a place by an admission alone."""
    waiting: set[int] = set()
    joined: set[int] = set()
    active: set[int] = set()
    first = steps[0]
    assert first.waiting + first.active <= len({*first.joined, *first.admitted}), f"the events lack their beginning: {first}"
    for step in steps:
        for old, new in step.moved:
            assert old in waiting, f"step {step.number} moves a visitor who does not wait"
            waiting = waiting - {old} | {new}
        joined |= set(step.joined)
        waiting |= set(step.joined) | (set(step.admitted) & may_return - joined)
        assert set(step.admitted) <= waiting, f"step {step.number} admits a visitor who does not wait"
        waiting -= set(step.admitted)
        active |= set(step.admitted)
        waiting -= {place for place, _ in step.removed}
        active -= {place for place, _ in step.freed}
        assert (step.waiting, step.active) == (len(waiting), len(active)), (
            f"step {step.number} tells of {step.waiting} waiting and {step.active} active, "
            f"its events of {len(waiting)} and {len(active)}")


def _check_fates(history: History, steps: list[wire.Step]) -> None:
    """Every acknowledged join ended as its client knows."""
    joined = {place for step in steps for place in step.joined + [new for _, new in step.moved]}
    admitted = {place for step in steps for place in step.admitted}
    ends = {place: reason for step in steps for place, reason in step.removed + step.freed}
    for stay in history.stays:
        if history.lost(stay) is not None:
            assert stay.end is not None, f"place {stay.place} of {stay.visitor} never came to an end"
            assert stay.end != FORGOTTEN or not _is_remembered(history, stay), (
                f"place {stay.place} of {stay.visitor} did not come back, though the workers remember it: {stay.refusal}")
            continue
        assert stay.end != FORGOTTEN, f"place {stay.place} of {stay.visitor} was forgotten, though nothing was lost"
        assert stay.place in joined, f"place {stay.place} of {stay.visitor} never joined the line"
        assert stay.end is not None, f"place {stay.place} of {stay.visitor} never came to an end"
        assert ends.get(stay.place) == stay.end, (
            f"place {stay.place}: the visitor knows {stay.end}, the stream {ends.get(stay.place)}")
        if stay.first_active is not None or stay.end == "completed":
            assert stay.place in admitted, f"place {stay.place} was active but never admitted"


def _is_remembered(history: History, stay: Stay) -> bool:
    """Did this visitor wait, and do the workers know, when the store lost everything for the only time? Who leaves before
    coming back has no place to come back to."""
    if len(history.losses) != 1 or not history.losses[0].remembered:
        return False
    since, until = history.losses[0].since, history.losses[0].until
    known_at = stay.join_received if stay.join_received is not None else float("inf")
    was_called = stay.first_active is not None and stay.first_active <= until
    return known_at < since and not was_called and stay.gave_back is None


def _check_passes(history: History, steps: list[wire.Step]) -> None:
    """A pass names its visitor, and a place of which that visitor has the ticket; it was given after the admission."""
    admitted_at = {place: step.time_ms / 1000 for step in steps for place in step.admitted}
    for stay in history.stays:
        for claims in stay.passes:
            assert claims["sub"] == stay.visitor, f"place {stay.place} of {stay.visitor} got a pass of {claims['sub']}"
            assert claims.get("place", stay.place) in stay.names, f"place {stay.place} got a pass of {claims['place']}"
        if stay.passes and history.lost(stay) is None:
            assert stay.place in admitted_at, f"place {stay.place} got a pass but was never admitted"


def _check_extensions(steps: list[wire.Step]) -> None:
    """A visitor who was admitted and has not claimed gets as much time again, once."""
    claim_by: dict[int, tuple[int, int]] = {}  # place -> when it was admitted and until when it could claim
    extended: set[int] = set()
    for step in steps:
        claim_by |= {place: (step.time_ms, step.deadlines[place]) for place in step.admitted if place in step.deadlines}
        for place, until in step.extended.items():
            assert place not in extended, f"step {step.number} extends place {place} twice"
            extended.add(place)
            assert place in claim_by, f"step {step.number} extends place {place}, which was not admitted"
            admitted, first = claim_by[place]
            assert first < until <= first + (first - admitted) + 1000, f"place {place} may claim for {until - admitted} ms"


def _check_turns_as_seen(history: History, staleness: float) -> None:
    """No visitor was still waiting well after a visitor behind them was active."""
    for stays in _lanes(history):
        earliest_behind = float("inf")
        for stay in reversed([stay for stay in stays if history.lost(stay) is None and len(stay.names) == 1]):
            assert stay.last_waiting <= earliest_behind + staleness, (
                f"place {stay.place} still waited {stay.last_waiting - earliest_behind:.2f} s after "
                "a visitor behind it was active")
            if stay.first_active is not None:
                earliest_behind = min(earliest_behind, stay.first_active)


def _check_overlap(history: History, capacity: int) -> None:
    """A client is inside from the answer `active` until it ends its session, is told its end, reaches the deadline it
    was told, or the store may have forgotten it. Never more at once than the capacity."""
    moments = []
    for stay in history.stays:
        if stay.first_active is None:
            continue
        loss = history.lost(stay)
        outs = [stay.gave_back, stay.ended_at, stay.inside_until, loss.since if loss is not None else None]
        out = min((at for at in outs if at is not None), default=float("inf"))
        moments += [(stay.first_active, 1), (max(out, stay.first_active), -1)]
    inside = 0
    for at, change in sorted(moments):  # at the same moment, exits come first
        inside += change
        assert inside <= capacity, f"{inside} clients knew themselves active at {at:.3f}"


def _check_claims(history: History, steps: list[wire.Step], capacity: int) -> None:
    """Where more are called than fit: no more claim than that, by the steps and by what the gate told visitors; and who
    came and was told to have the next turn gets in before everyone behind."""
    claimed_at: dict[int, float] = {}
    over_at: dict[int, float] = {}
    inside: set[int] = set()
    for step in steps:
        for place in step.deadlines.keys() - set(step.admitted):
            claimed_at.setdefault(place, step.time_ms / 1000)
            inside.add(place)
        ended = {place for place, _ in step.freed + step.removed}
        over_at |= dict.fromkeys(ended, step.time_ms / 1000)
        inside -= ended
        assert len(inside) <= capacity, f"step {step.number}: {len(inside)} have claimed, the capacity is {capacity}"
    moments = []
    for stay in history.stays:
        if stay.let_in is None:
            continue
        assert stay.place in claimed_at, f"place {stay.place} was let in and never claimed"
        outs = [at for at in (stay.gave_back, stay.ended_at, over_at.get(stay.place)) if at is not None]
        moments += [(stay.let_in, 1), (max(min(outs, default=float("inf")), stay.let_in), -1)]
    there = 0
    for at, change in sorted(moments):  # at the same moment, exits come first
        there += change
        assert there <= capacity, f"the gate had let in {there} at {at:.3f}, the capacity is {capacity}"
    for stay in history.stays:
        if not stay.turns:
            continue
        began = stay.turns[0] + _CLOCK_GRAIN
        until = min(claimed_at.get(stay.place, float("inf")), over_at.get(stay.place, float("inf")))
        assert stay.last_waiting <= began, f"place {stay.place} lost the next turn: it waited again afterwards"
        for place, at in claimed_at.items():
            assert place < stay.place or not began < at < until - _CLOCK_GRAIN, (
                f"place {place} claimed while place {stay.place} had the next turn")


def _check_rate(history: History, steps: list[wire.Step], rate: Rate) -> None:
    """No window holds more than the rate allows, by the steps and by what visitors were told of their own admission.
    Lumps begin a whole period after the one before."""
    every, ttl = round(rate.every * 1000), round(rate.ttl * 1000)
    admissions = [(step.deadlines[step.admitted[0]] - ttl, len(step.admitted)) for step in steps if step.admitted]
    if rate.batches:
        for (before, _), (at, _) in zip(admissions, admissions[1:]):
            assert at - before >= every, f"a batch {at - before} ms after the one before"
    _check_windows(admissions, every, rate.admit + rate.burst, "the steps")
    told = [(round(stay.inside_until * 1000) - ttl, 1) for stay in history.stays if stay.inside_until is not None]
    _check_windows(sorted(told), every, rate.admit + rate.burst, "what visitors were told")


def _check_windows(admissions: list[tuple[int, int]], every: int, most: int, source: str) -> None:
    oldest = held = 0
    for at, n in admissions:
        held += n
        while admissions[oldest][0] <= at - every:
            held -= admissions[oldest][1]
            oldest += 1
        assert held <= most, f"{held} were admitted within {every} ms by {source}; the rate allows {most}"


def _joins_ahead(history: History, steps: list[wire.Step]) -> dict[int, list[float]]:
    """For each lane, when visitors joined the lanes before it."""
    lanes = {stay.place // wire.LANE for stay in history.stays}
    joins = [(step.time_ms / 1000, place // wire.LANE) for step in steps for place in step.joined]
    return {lane: sorted(at for at, other in joins if other < lane or (has_weights(history) and other != lane))
            for lane in lanes}


def has_weights(history: History) -> bool:
    return any(shares.weights for shares in history.shares)


def _check_positions_as_seen(stay: Stay, staleness: float, ahead: list[float], history: History) -> None:
    """A position rises only for a cause: as many joined lanes before this one, the store lost something, or a cause that
    the test recorded. On one event stream answers come in order; elsewhere one may be older by the staleness."""
    def may_rise(before: tuple[float, int], seen: Sighting) -> bool:
        since, until = before[0] - staleness - _CLOCK_GRAIN, seen.received + _CLOCK_GRAIN
        spans = [(loss.since, loss.until + staleness) for loss in history.losses] + history.causes
        if any(begin <= until and end >= since for begin, end in spans):
            return True
        return seen.position - before[1] <= bisect.bisect_right(ahead, until) - bisect.bisect_left(ahead, since)

    on_stream: dict[int, tuple[float, int]] = {}
    lowest: list[tuple[float, int]] = []  # (received, lowest position so far)
    for seen in sorted(stay.sightings, key=lambda seen: seen.received):
        if seen.stream:
            before = on_stream.get(seen.stream)
            assert before is None or seen.position <= before[1] or may_rise(before, seen), (
                f"place {stay.place}: position {before[1]} rose to {seen.position} on one stream")
            on_stream[seen.stream] = (seen.received, seen.position)
        known = bisect.bisect_left(lowest, (seen.sent - staleness, 0))
        if known > 0:
            before = lowest[known - 1]
            assert seen.position <= before[1] or may_rise(before, seen), (
                f"place {stay.place}: position {before[1]}, and {seen.position} more than {staleness} s later")
        if not lowest or seen.position < lowest[-1][1]:
            lowest.append((seen.received, seen.position))


# ---- positions seen against true positions ----


def _check_positions_true(history: History, steps: list[wire.Step], staleness: float) -> None:
    """Every position seen was true at some moment shortly before the answer. In one lane a true position never rises,
    so the position seen lies between the true ones at both ends of that interval."""
    times = [step.time_ms / 1000 for step in steps]
    joined_at = {place: at for at, step in enumerate(steps) for place in step.joined}
    over_at = {place: at for at, step in enumerate(steps)
               for place in step.admitted + [place for place, _ in step.removed]}
    sightings = [(stay.place, seen) for stay in history.stays for seen in stay.sightings]
    questions: list[tuple[int, int]] = []
    for place, seen in sightings:
        first = bisect.bisect_right(times, seen.sent - staleness - _CLOCK_GRAIN) - 1
        last = bisect.bisect_right(times, seen.received + _CLOCK_GRAIN) - 1
        assert joined_at[place] <= last, f"place {place} was seen waiting before it was joined"
        assert over_at.get(place, last) > first, f"place {place} was seen waiting {staleness} s after it no longer was"
        questions += [(max(first, joined_at[place]), place), (last, place)]
    answers = _positions_after(steps, questions)
    for (place, seen), most, least in zip(sightings, answers[::2], answers[1::2]):
        assert least <= seen.position <= most, (
            f"place {place} was told position {seen.position} when it was {most} to {least}")


def _positions_after(steps: list[wire.Step], questions: list[tuple[int, int]]) -> list[int]:
    """For each (step, place): 1 + how many waited in front of that place after that step."""
    everybody = sorted(place for step in steps for place in step.joined)
    rank = {place: at for at, place in enumerate(everybody)}
    line = _Line(len(everybody))
    answers = [0] * len(questions)
    done = -1
    for number in sorted(range(len(questions)), key=lambda number: questions[number][0]):
        at, place = questions[number]
        while done < at:
            done += 1
            for new in steps[done].joined:
                line.add(rank[new], 1)
            for gone in steps[done].admitted + [gone for gone, _ in steps[done].removed]:
                line.add(rank[gone], -1)
        answers[number] = 1 + line.before(rank[place])
    return answers


class _Line:
    """Counts by rank: a binary indexed tree (Fenwick, 1994)."""

    def __init__(self, size: int) -> None:
        self._sums = [0] * (size + 1)

    def add(self, rank: int, change: int) -> None:
        at = rank + 1
        while at < len(self._sums):
            self._sums[at] += change
            at += at & -at

    def before(self, rank: int) -> int:
        """How many have a lower rank."""
        count, at = 0, rank
        while at > 0:
            count += self._sums[at]
            at &= at - 1
        return count
