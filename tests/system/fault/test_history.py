# SPDX-License-Identifier: Apache-2.0
"""The history checker must be able to fail: each kind of wrong history is given to it once."""
from __future__ import annotations

import base64
import json

import pytest

from hand_overs import HandOver, OldDevice
from history import (FORGOTTEN, Block, Change, Final, History, Knock, Loss, Rate, Shares, Sighting, Stay, check,
                     check_order)
from session_ends import Entry, entry_of
from wire import LANE, Step, Ticket, pack


def good_story() -> tuple[History, list[Step]]:
    """Three visitors and one counter. b listens on a stream and polls as well."""
    history = History(stays=[
        Stay("a", 1, 7, 0.1, 0.3, last_waiting=1.0, first_active=2.0, gave_back=3.9, end="completed",
             sightings=[Sighting(0.9, 1.0, 1)]),
        Stay("b", 2, 7, 0.2, 0.4, last_waiting=3.0, first_active=4.2, gave_back=5.0, end="completed",
             sightings=[Sighting(0.9, 1.0, 2, 1), Sighting(2.1, 2.1, 1, 1), Sighting(2.0, 2.2, 2)]),
        Stay("c", 3, 7, 0.4, 0.5, last_waiting=3.5, gave_back=3.8, end="left",
             sightings=[Sighting(0.9, 1.0, 3)]),
    ])
    for stay in history.stays:
        stay.tickets.add(Ticket(7, 0, stay.place, stay.visitor))
    steps = [
        Step(250, 1, 7, 3, 0, 1, joined=[1, 2, 3]),
        Step(1900, 2, 7, 2, 1, 1, admitted=[1]),
        Step(3900, 3, 7, 1, 1, 1, removed=[(3, "left")]),
        Step(3950, 4, 7, 1, 0, 1, freed=[(1, "completed")]),
        Step(4100, 5, 7, 0, 1, 1, admitted=[2]),
        Step(5100, 6, 7, 0, 0, 1, freed=[(2, "completed")]),
    ]
    return history, steps


def verdict(history: History, steps: list[Step], joined: int = 3, waiting: int = 0, active: int = 0) -> None:
    numbers = {"waiting": 0, "active": 0, "joined": joined, "completed": 2, "expired": joined - 3, "left": 1}
    check(history, steps, capacity=1, final=Final(numbers, waiting, active), staleness=0.5, one_clock=True)


def lose(history: History, steps: list[Step], total: bool = False) -> None:
    """c asked at 0.4 and was told a place at 0.5: the store forgot what happened from 0.45 to 0.6 (or all)."""
    history.losses.append(Loss(0.45, 0.6, total))
    for step in steps:
        step.joined = [place for place in step.joined if place != 3]
        step.removed = []
        step.waiting = 2 - (step.number > 1) - (step.number > 4)
    steps.insert(1, Step(700, 2, 7, 2, 0))
    for number, step in enumerate(steps[1:], 1000):
        step.number = number
    history.stays[2].end = FORGOTTEN
    history.stays[2].ended_at = 3.8


def test_a_fair_story_passes():
    verdict(*good_story())


def test_a_recorded_loss_explains_a_forgotten_place():
    history, steps = good_story()
    lose(history, steps)
    verdict(history, steps, joined=3)


def test_a_recorded_loss_excuses_no_stranger():
    history, steps = good_story()
    lose(history, steps)
    history.stays[2].place = 2
    with pytest.raises(AssertionError, match="one place was given to two"):
        verdict(history, steps)


def pass_of(visitor: str, place: int) -> dict[str, str]:
    claims = json.dumps({"sub": visitor, "place": place}).encode()
    return {"pass": f".{base64.urlsafe_b64encode(claims).decode()}."}


def lose_and_give(history: History, steps: list[Step], *given: Ticket | dict[str, str]) -> None:
    """The same, and c was told these tickets and passes afterwards."""
    lose(history, steps)
    for one in given:
        if isinstance(one, Ticket):
            history.stays[2].tickets.add(one)
        else:
            history.stays[2].saw_pass(one)


def test_a_recorded_loss_explains_another_place():
    history, steps = good_story()
    lose_and_give(history, steps, Ticket(7, 0, 9, "c"), pass_of("c", 9), pass_of("c", 3))
    verdict(history, steps, joined=3)


@pytest.mark.parametrize("given, found", [
    ([Ticket(7, 0, 2, "c")], "one place was given to two"),
    ([Ticket(7, 0, 9, "d")], "became another one"),
    ([pass_of("c", 9)], "place 3 got a pass of 9"),
    ([pass_of("c", 9), Ticket(7, 0, 9, "c")], "became another one")],
    ids=["of-a-neighbour", "of-a-stranger", "no-ticket", "ticket-too-late"])
def test_a_recorded_loss_excuses_no_other_pass_or_place(given, found):
    history, steps = good_story()
    lose_and_give(history, steps, *given)
    with pytest.raises(AssertionError, match=found):
        verdict(history, steps)


def test_a_lost_session_comes_back_by_an_admission():
    history, steps = good_story()
    history.losses.append(Loss(0.0, 0.6, True))
    steps[0].joined, steps[0].waiting, steps[1].waiting = [2, 3], 2, 2
    verdict(history, steps)
    history.losses.clear()
    with pytest.raises(AssertionError, match="does not wait"):
        verdict(history, steps)


def test_sessions_come_back_in_any_order():
    """Of two visitors who were on the site, the later one may come back first; and a visitor who waited may be ahead."""
    for returned in ([2, 1], [2]):
        steps = [Step(250, 1, 7, 1, 0, 1, joined=[3] if 1 in returned else [1, 3])]
        steps += [Step(300 + place, 2, 7, 1, 1, 2, admitted=[place], returned=[place]) for place in returned]
        steps += [Step(400, 4, 7, 0, 1, 1, admitted=[1])] if 1 not in returned else []
        check_order(steps)
        for step in steps:
            step.returned = []
        with pytest.raises(AssertionError, match="place 1 was admitted after 2"):
            check_order(steps)


def test_who_is_remembered_comes_back():
    history, steps = good_story()
    lose(history, steps, total=True)
    history.stays[2].gave_back = None
    verdict(history, steps)
    history.losses[0] = history.losses[0]._replace(since=0.55, remembered=True)
    with pytest.raises(AssertionError, match="place 3 of c did not come back"):
        verdict(history, steps)


def test_a_position_rises_by_as_many_as_joined_the_lanes_before():
    history, steps = two_lanes()
    verdict(history, steps)
    history.stays[2].sightings[-1] = Sighting(1.5, 1.5, 3, 1)
    with pytest.raises(AssertionError, match="rose to 3"):
        verdict(history, steps)


def two_lanes() -> tuple[History, list[Step]]:
    """c stands in the second lane; b joins the first one after it."""
    history, steps = good_story()
    a, b, c = history.stays
    c.place, c.tickets, c.sightings = 2**48 + 2, set(), [Sighting(0.9, 0.9, 1, 1), Sighting(1.5, 1.5, 2, 1)]
    c.join_sent, c.join_received = 0.2, 0.4
    b.place, b.tickets, b.sightings, b.join_sent, b.join_received = 3, set(), [], 1.2, 1.4
    steps[0].joined, steps[0].waiting = [1, c.place], 2
    steps.insert(1, Step(1300, 2, 7, 3, 0, 1, joined=[3]))
    steps[4].freed, steps[3].removed, steps[5].admitted, steps[6].freed = (
        [(1, "completed")], [(c.place, "left")], [3], [(3, "completed")])
    for number, step in enumerate(steps, 1):
        step.number = number
    return history, steps


# Each wrong history; its docstring is what the checker must report.

def double(history, steps):
    """one place was given to two"""
    history.stays[1].place = 1


def made_anew(history, steps):
    """created again"""
    history.stays[1].generation = 8


def other_place(history, steps):
    """became another one"""
    history.stays[1].tickets.add(Ticket(7, 0, 9, "b"))


def overtaken_on_arrival(history, steps):
    """asked for"""
    history.stays[1].join_sent = 0.7


def gap(history, steps):
    """have a gap"""
    del steps[2]


def jump_without_a_reason(history, steps):
    """incarnations without a reason"""
    steps.insert(1, Step(700, 1000, 7, 3, 0))
    for number, step in enumerate(steps[1:], 1000):
        step.number = number


def without_beginning(history, steps):
    """lack their beginning"""
    del steps[0]


def over_capacity(history, steps):
    """more active than the capacity"""
    steps[4].active = 2


def out_of_turn(history, steps):
    """was admitted after"""
    steps[1].admitted, steps[4].admitted = [2], [1]


def admitted_twice(history, steps):
    """was admitted"""
    steps[4].admitted = [1, 2]


def ended_twice(history, steps):
    """ended twice"""
    steps[5].freed.append((1, "completed"))


def miscounted(history, steps):
    """tells of"""
    steps[2].waiting = 2


def admitted_from_nowhere(history, steps):
    """does not wait"""
    steps[0].joined, steps[0].waiting = [1, 3], 2
    steps[1].waiting, steps[2].waiting, steps[3].waiting = 1, 0, 0


def never_joined(history, steps):
    """never joined"""
    history.stays[2].place = 4
    history.stays[2].tickets = {Ticket(7, 0, 4, "c")}


def never_ended(history, steps):
    """never came to an end"""
    history.stays[1].end = None


def other_end(history, steps):
    """the visitor knows completed"""
    steps[5].freed = [(2, "expired")]


def never_admitted(history, steps):
    """never admitted"""
    history.stays[2].first_active = 5.5


def seen_out_of_turn(history, steps):
    """still waited"""
    history.stays[0].last_waiting = 4.8


def two_inside(history, steps):
    """2 clients knew themselves active"""
    history.stays[0].gave_back = 4.3


def rises_on_a_stream(history, steps):
    """rose to 2 on one stream"""
    history.stays[1].sightings.append(Sighting(2.3, 2.3, 2, 1))


def rises_later(history, steps):
    """more than 0.5 s later"""
    history.stays[1].sightings.append(Sighting(2.8, 2.9, 2))


def told_too_much(history, steps):
    """told position 4"""
    history.stays[2].sightings = [Sighting(0.9, 1.0, 4)]


def told_too_little(history, steps):
    """told position 1"""
    history.stays[2].sightings = [Sighting(0.9, 1.0, 1)]


def told_too_late(history, steps):
    """no longer was"""
    history.stays[0].sightings.append(Sighting(2.5, 2.6, 1))


def told_too_early(history, steps):
    """before it was joined"""
    history.stays[2].sightings = [Sighting(0.1, 0.15, 3)]


def foreign_pass(history, steps):
    """got a pass of c"""
    history.stays[1].passes.append({"sub": "c"})


def pass_of_another_place(history, steps):
    """got a pass of 1"""
    history.stays[1].passes.append({"sub": "b", "place": 1})


def pass_without_admission(history, steps):
    """got a pass but was never admitted"""
    history.stays[2].passes.append({"sub": "c", "place": 3})


def forgotten_without_a_loss(history, steps):
    """though nothing was lost"""
    history.stays[2].end = FORGOTTEN


def odd_answer(history, steps):
    """404 for a place"""
    history.odd("404 for a place that was acknowledged")


def fence_of_two(history, steps):
    """held the lease with the same fence"""
    history.leases = {"1": {"d1"}, "2": {"d1", "d2"}}


def blocked_and_let_in(history, steps):
    """a blocked caller was let in"""
    history.blocks.append(Block(1.0, 1.1, 5.0, 5.1))
    history.knocks += [Knock(0.9, 0.95, False), Knock(1.3, 1.4, False), Knock(2.0, 2.1, False)]


def refused_without_a_block(history, steps):
    """a caller was refused"""
    history.blocks.append(Block(1.0, 1.1, 2.0, 2.1))
    history.knocks += [Knock(2.0, 2.1, True), Knock(2.3, 2.4, True), Knock(3.0, 3.1, True)]


def change_in_silence(history, steps):
    """no event told that capacity is 1"""
    history.changes.append(Change(1.0, 1.1, "capacity", "1"))


def admitted_in_a_pause(history, steps):
    """place 2 was admitted while the queue was paused"""
    history.changes += [Change(1.0, 1.95, "mode", "paused"), Change(5.05, 5.2, "mode", "open")]
    for step in steps:
        step.config = True


def stuck_at_the_memory_limit(history, steps):
    """place 3 could not be given back"""
    history.full.append((3.5, 4.9))
    history.stays[0].ended_at = 3.95


def poison_forgotten(history, steps):
    """0 entries were set aside as poison, of 1"""
    history.poisoned = 1


@pytest.mark.parametrize("spoil", [
    fence_of_two, blocked_and_let_in, refused_without_a_block, change_in_silence, admitted_in_a_pause,
    stuck_at_the_memory_limit, poison_forgotten,
    double, made_anew, other_place, overtaken_on_arrival, gap, without_beginning, over_capacity, out_of_turn,
    admitted_twice, ended_twice, miscounted, admitted_from_nowhere, never_joined, never_ended, other_end,
    never_admitted, seen_out_of_turn, two_inside, rises_on_a_stream, rises_later, told_too_much, told_too_little,
    told_too_late, told_too_early, foreign_pass, pass_of_another_place, pass_without_admission,
    forgotten_without_a_loss, jump_without_a_reason, odd_answer])
def test_a_spoilt_story_fails(spoil):
    history, steps = good_story()
    spoil(history, steps)
    with pytest.raises(AssertionError, match=spoil.__doc__):
        verdict(history, steps)


def test_a_join_too_many_fails():
    with pytest.raises(AssertionError, match="4 places for 3 acknowledged"):
        verdict(*good_story(), joined=4)


def test_a_join_too_few_fails():
    history, steps = good_story()
    del history.stays[2]
    history.stays.append(Stay("d", 9, 7, 0.4, 0.5, gave_back=3.8, end="left"))
    with pytest.raises(AssertionError, match="never joined the line"):
        verdict(history, steps)


@pytest.mark.parametrize("waiting, active", [(1, 0), (0, 1)])
def test_a_line_that_does_not_drain_fails(waiting, active):
    with pytest.raises(AssertionError, match=f"{waiting} still wait and {active} are still active"):
        verdict(*good_story(), waiting=waiting, active=active)


def by_rate(history: History, steps: list[Step], **rate: float) -> None:
    """1 and 2 are admitted 2.2 s apart."""
    for step in steps:
        step.deadlines = dict.fromkeys(step.admitted, step.time_ms + 10000)
    for stay, at in zip(history.stays, (1.9, 4.1)):
        stay.inside_until = at + 10
    numbers = {"waiting": 0, "active": 0, "joined": 3, "completed": 2, "expired": 0, "left": 1}
    check(history, steps, None, Final(numbers, 0, 0), 0.5, one_clock=True, rate=Rate(ttl=10, **rate))


@pytest.mark.parametrize("rate", [{"admit": 1, "every": 2.2}, {"admit": 2, "every": 60}, {"admit": 1, "burst": 1, "every": 60},
                                  {"admit": 2, "every": 2.2, "batches": True}])
def test_a_rate_that_is_kept_passes(rate):
    by_rate(*good_story(), **rate)


@pytest.mark.parametrize("rate, complaint", [
    ({"admit": 1, "every": 2.201}, "2 were admitted within 2201 ms by the steps"),
    ({"admit": 2, "every": 2.201, "batches": True}, "a batch 2200 ms after the one before")])
def test_a_rate_that_is_not_kept_fails(rate, complaint):
    with pytest.raises(AssertionError, match=complaint):
        by_rate(*good_story(), **rate)


def test_a_rate_that_visitors_saw_broken_fails():
    history, steps = good_story()
    history.stays[2].inside_until = 13.0
    with pytest.raises(AssertionError, match="2 were admitted within 1500 ms by what visitors were told"):
        by_rate(history, steps, admit=1, every=1.5)


def shared_lanes(order: str, weights: tuple[int, ...]) -> tuple[History, list[Step]]:
    """Four of each lane join at once and are admitted one by one: "v" from the first lane, "n" from the second."""
    first, second = iter([1, 3, 5, 7]), iter([LANE + 2, LANE + 4, LANE + 6, LANE + 8])
    history = History(shares=[Shares(0.0, weights)])
    steps = [Step(250, 1, 7, 8, 0, 1, joined=[1, 3, 5, 7, LANE + 2, LANE + 4, LANE + 6, LANE + 8])]
    for n, letter in enumerate(order):
        place = next(first if letter == "v" else second)
        steps.append(Step(1000 + 100 * n, 2 + 2 * n, 7, 7 - n, 1, 1, admitted=[place]))
        steps.append(Step(1050 + 100 * n, 3 + 2 * n, 7, 7 - n, 0, 1, freed=[(place, "completed")]))
        history.stays.append(Stay(f"v{place}", place, 7, 0.1, 0.3, first_active=steps[-2].time_ms / 1000,
                                  gave_back=steps[-1].time_ms / 1000, end="completed"))
    return history, steps


def judge_lanes(history: History, steps: list[Step]) -> None:
    numbers = {"waiting": 0, "active": 0, "joined": 8, "completed": 8, "expired": 0, "left": 0}
    check(history, steps, capacity=1, final=Final(numbers, 0, 0), staleness=0.5, one_clock=True)


@pytest.mark.parametrize("order, weights", [("vnvnvnvn", (1, 1)), ("nvvnnvvn", (1, 1)), ("vvvnvnnn", (3, 1)),
                                            ("vvvvnnnn", ()), ("nnnvnvvv", (1, 3))])
def test_shares_are_kept(order, weights):
    judge_lanes(*shared_lanes(order, weights))


@pytest.mark.parametrize("order, weights", [("vvvvnnnn", (1, 1)), ("nnnvnvvv", (3, 1)), ("vnvvvnnn", ()), ("vvnvnvnn", (1, 3))])
def test_shares_are_not_kept(order, weights):
    with pytest.raises(AssertionError, match="did not get their shares|before lane 0"):
        judge_lanes(*shared_lanes(order, weights))


def test_a_move_gives_a_place_another_name():
    history, steps = shared_lanes("vnvnvnvn", ())
    steps.insert(1, Step(500, 2, 7, 8, 0, 2, moved=[(7, LANE + 7)]))
    history.shares = []
    for number, step in enumerate(steps, 1):
        step.number = number
        step.admitted = [LANE + 7 if place == 7 else place for place in step.admitted]
        step.freed = [(LANE + 7 if place == 7 else place, end) for place, end in step.freed]
    stay = next(stay for stay in history.stays if stay.place == 7)
    stay.tickets = {Ticket(7, 0, 7, stay.visitor), Ticket(7, 1, 7, stay.visitor)}
    history.stays[-1].last_waiting = 0.9
    judge_lanes(history, steps)
    steps[1].moved = []
    with pytest.raises(AssertionError, match="became another one|does not wait|never joined"):
        judge_lanes(history, steps)


def handed_over() -> tuple[History, list[Step]]:
    """b hands its place over at 1.05, and the old device goes on asking."""
    history, steps = good_story()
    steps.insert(1, Step(1050, 2, 7, 3, 0, 1, handed={2: 1}))
    for number, step in enumerate(steps, 1):
        step.number = number
    history.stays[1].tickets.add(Ticket(7, 0, 2, "b", 1))
    history.hand_overs.append(HandOver(2, 1, "x", 1.0, 1.1))
    history.old_devices += [OldDevice(2, 0, 0.9, "waiting"), OldDevice(2, 0, 1.3, "waiting"), OldDevice(2, 0, 1.7, "moved")]
    return history, steps


def to_two_devices(history, steps):
    """place 2 went to two devices"""
    history.hand_overs.append(HandOver(2, 1, "y", 1.1, 1.2))


def in_silence(history, steps):
    """no event told that place 2 went"""
    steps[1].handed = {}


def same_serial_again(history, steps):
    """gives place 2 the serial 1 after 1"""
    steps[2].handed = {2: 1}


def after_the_turn(history, steps):
    """hands over place 1, which does not wait"""
    steps[3].handed = {1: 1}


def old_device_still_waits(history, steps):
    """the device that gave it away was told waiting, 0.6 s later"""
    history.old_devices.append(OldDevice(2, 0, 1.7, "waiting"))


def old_device_gets_in(history, steps):
    """the device that gave it away was told let in"""
    history.old_devices.append(OldDevice(2, 0, 4.5, "let in"))


def old_device_gets_a_pass(history, steps):
    """the device that gave it away got a pass"""
    history.old_devices.append(OldDevice(2, 0, 1.2, "active", True))


def comes_with_another_number(history, steps):
    """place 2 became another one"""
    history.stays[1].tickets.add(Ticket(7, 0, 9, "b", 1))


def test_a_hand_over_passes():
    verdict(*handed_over())


@pytest.mark.parametrize("spoil", [to_two_devices, in_silence, same_serial_again, after_the_turn, old_device_still_waits,
                                   old_device_gets_in, old_device_gets_a_pass, comes_with_another_number])
def test_a_wrong_hand_over_fails(spoil):
    history, steps = handed_over()
    spoil(history, steps)
    with pytest.raises(AssertionError, match=spoil.__doc__):
        verdict(history, steps)


def overbooked() -> tuple[History, list[Step]]:
    """One counter and one more is called: 1 gets in; 2 comes too, has the next turn and gets in after 1; then 3."""
    def step(time_ms: int, number: int, waiting: int, active: int, **more) -> Step:
        return Step(time_ms, number, 7, waiting, active, 1, **more)

    steps = [step(1000, 1, 3, 0, joined=[1, 2, 3]),
             step(2000, 2, 1, 2, admitted=[1, 2], deadlines={1: 9000, 2: 9000}), step(2200, 3, 1, 2, deadlines={1: 99000}),
             step(3000, 4, 1, 1, freed=[(1, "completed")]), step(3100, 5, 1, 1, deadlines={2: 99000}),
             step(3200, 6, 0, 2, admitted=[3], deadlines={3: 9000}), step(4000, 7, 0, 1, freed=[(2, "completed")]),
             step(4100, 8, 0, 1, deadlines={3: 99000}), step(5000, 9, 0, 0, freed=[(3, "completed")])]
    stays = [Stay(f"v{place}", place, 7, 0.5, 1.5, first_active=let_in, gave_back=gone, end="completed", ended_at=gone + 0.05,
                  let_in=let_in) for place, let_in, gone in ((1, 2.3, 2.95), (2, 3.2, 3.95), (3, 4.2, 4.95))]
    stays[1].turns = [2.5]
    return History(stays), steps


def judge_overbooked(history: History, steps: list[Step]) -> None:
    numbers = {"waiting": 0, "active": 0, "joined": 3, "completed": 3, "expired": 0, "left": 0}
    check(history, steps, 1, Final(numbers, 0, 0), 0.5, one_clock=True, overbook=1)


def more_called(history, steps):
    """more active than the capacity"""
    steps[3].active = 3


def claimed_beyond(history, steps):
    """2 have claimed, the capacity is 1"""
    steps[2].deadlines[2] = 99000


def gate_open_too_early(history, steps):
    """the gate had let in 2"""
    history.stays[1].let_in = 2.9


def gate_open_without_a_claim(history, steps):
    """was let in and never claimed"""
    steps[4].deadlines.clear()


def passed_by_one_behind(history, steps):
    """place 3 claimed while place 2 had the next turn"""
    steps[7].deadlines, steps[4].deadlines = {2: 99000}, {3: 99000}
    history.stays[1].let_in, history.stays[2].let_in = 4.2, 3.2
    steps[6].freed, steps[8].freed = [(3, "completed")], [(2, "completed")]
    history.stays[1].gave_back, history.stays[2].gave_back = 4.95, 3.95


def back_in_line(history, steps):
    """lost the next turn"""
    history.stays[1].last_waiting = 2.8


def test_a_kept_turn_passes():
    judge_overbooked(*overbooked())


@pytest.mark.parametrize("spoil", [more_called, claimed_beyond, gate_open_too_early, gate_open_without_a_claim,
                                   passed_by_one_behind, back_in_line])
def test_a_turn_that_is_not_kept_fails(spoil):
    history, steps = overbooked()
    spoil(history, steps)
    with pytest.raises(AssertionError, match=spoil.__doc__):
        judge_overbooked(history, steps)


def timed() -> tuple[History, list[Step]]:
    """The session of b ends by itself at its deadline; a worker's batch was applied before."""
    history, steps = good_story()
    b = history.stays[1]
    b.gave_back, b.end, b.inside_until = None, "expired", 5.1
    steps[4].deadlines = {2: 5100}
    steps.insert(5, Step(5000, 6, 7, 0, 1, 1, applied=[("w1", 9)]))
    steps[6] = Step(5100, 7, 7, 0, 0, 1, freed=[(2, "expired")])
    history.entries = [Entry(4900, "w1", 9)]
    return history, steps


def judge_ends(history: History, steps: list[Step]) -> None:
    numbers = {"waiting": 0, "active": 0, "joined": 3, "completed": 1, "expired": 1, "left": 1}
    check(history, steps, capacity=1, final=Final(numbers, 0, 0), staleness=0.5, one_clock=True)


def apply_later(steps: list[Step]) -> None:
    steps[5].applied = []
    steps.append(Step(400000, 8, 7, 0, 0, 1, applied=[("w1", 9)]))


def ended_before_the_claim(history, steps):
    """place 2 ended, expired, although an entry was not applied that was written 200 ms before"""
    apply_later(steps)


def ended_in_a_new_incarnation(history, steps):
    """place 2 ended, expired, 100 ms after the store was there again"""
    history.restarts = 1
    steps[5].number, steps[5].events, steps[6].number = 1000, 0, 1001


def ended_before_the_time_told(history, steps):
    """place 2 ended, expired, 0.900 s before"""
    history.stays[1].inside_until = 6.0


def test_a_session_that_ends_in_time_passes():
    judge_ends(*timed())


@pytest.mark.parametrize("spoil", [ended_before_the_claim, ended_in_a_new_incarnation, ended_before_the_time_told])
def test_a_session_that_ends_too_early_fails(spoil):
    history, steps = timed()
    spoil(history, steps)
    with pytest.raises(AssertionError, match=spoil.__doc__):
        judge_ends(history, steps)


def test_a_session_that_the_test_ends_itself_passes():
    history, steps = timed()
    ended_before_the_time_told(history, steps)
    history.cut_short = 5.05
    judge_ends(history, steps)


def test_an_entry_holds_only_sessions_whose_deadline_comes_later():
    history, steps = timed()
    apply_later(steps)
    history.entries = [Entry(5101, "w1", 9)]
    judge_ends(history, steps)
    history.entries = [Entry(5100, "w1", 9)]  # may have been written after the session ended
    judge_ends(history, steps)
    steps[6].time_ms = 5100 + 299999
    with pytest.raises(AssertionError, match="written 0 ms before"):
        judge_ends(history, steps)
    steps[6].time_ms += 1
    judge_ends(history, steps)


def test_a_repeated_or_lost_entry_holds_nothing():
    history, steps = timed()
    steps.append(Step(5200, 8, 7, 0, 0, 1, applied=[("w1", 9)]))
    judge_ends(history, steps)
    del steps[7]
    apply_later(steps)
    history.losses.append(Loss(5.05, 5.06))
    judge_ends(history, steps)


def test_what_was_told_counts_where_workers_remember():
    history, steps = timed()
    history.stays[1].inside_until = 6.0
    history.losses.append(Loss(5.05, 5.06))
    judge_ends(history, steps)
    history.losses[0] = history.losses[0]._replace(remembered=True)
    with pytest.raises(AssertionError, match="before the time that its visitor was told"):
        judge_ends(history, steps)
    history.losses[0] = history.losses[0]._replace(since=4.05)
    judge_ends(history, steps)


def test_poison_is_no_entry():
    assert entry_of("5-1", pack([1, "w1", 9, 7, 0, []]).decode("utf-8", "surrogateescape")) == Entry(5, "w1", 9)
    for payload in (b"\xc1", b"", b"\x91" * 5000, bytes(1000), b"\x05", b"\x96\x01\xa1x\x01\0\0\xdd\xff\xff\xff\xff"):
        assert entry_of("5-1", payload.decode("utf-8", "surrogateescape")) is None
