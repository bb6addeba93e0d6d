"""The history checker must be able to fail: each kind of wrong history is given to it once."""
from __future__ import annotations

import pytest

from history import History, Sighting, Stay, check
from wire import Step, Ticket


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
        Step(250, 1, 7, 3, 0, joined=[1, 2, 3]),
        Step(1900, 2, 7, 2, 1, admitted=[1]),
        Step(3900, 3, 7, 1, 1, removed=[(3, "left")]),
        Step(3950, 4, 7, 1, 0, freed=[(1, "completed")]),
        Step(4100, 5, 7, 0, 1, admitted=[2]),
        Step(5100, 6, 7, 0, 0, freed=[(2, "completed")]),
    ]
    return history, steps


def verdict(history: History, steps: list[Step], joined: int = 3) -> None:
    check(history, steps, capacity=1, joined=joined, staleness=0.5, one_clock=True)


def test_a_fair_story_passes():
    verdict(*good_story())


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


def odd_answer(history, steps):
    """404 for a place"""
    history.odd("404 for a place that was acknowledged")


@pytest.mark.parametrize("spoil", [
    double, made_anew, other_place, overtaken_on_arrival, gap, without_beginning, over_capacity, out_of_turn,
    admitted_twice, ended_twice, miscounted, admitted_from_nowhere, never_joined, never_ended, other_end,
    never_admitted, seen_out_of_turn, two_inside, rises_on_a_stream, rises_later, told_too_much, told_too_little,
    told_too_late, told_too_early, odd_answer])
def test_a_spoilt_story_fails(spoil):
    history, steps = good_story()
    spoil(history, steps)
    with pytest.raises(AssertionError, match=spoil.__doc__):
        verdict(history, steps)


@pytest.mark.parametrize("joined", [2, 4])
def test_lost_and_doubled_joins_fail(joined):
    with pytest.raises(AssertionError, match="places for 3 acknowledged"):
        verdict(*good_story(), joined=joined)
