# SPDX-License-Identifier: Apache-2.0
"""What is known of places that went to other devices, and the rules of a hand-over; part of the history checker.

A place keeps its number, its tickets count up a serial, of all codes made for one serial one device wins, and the ticket
of a device that gave the place away gets nothing any more. That the number stays is checked as for every place: by what
the tickets of the new devices say.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import wire


class HandOver(NamedTuple):
    """A device was given the place."""
    place: int
    serial: int  # of its ticket
    device: str
    sent: float
    received: float


class OldDevice(NamedTuple):
    """What a ticket got whose place may have gone on."""
    place: int
    serial: int
    sent: float
    answer: str  # the status; "let in": the gate opened
    has_pass: bool = False


def check_hand_overs(hand_overs: Iterable[HandOver], answers: Iterable[OldDevice], steps: list[wire.Step],
                     staleness: float, grain: float, lost: set[int]) -> None:
    """grain: how far the clients' clock and the store's may differ; lost: places that the store may have lost."""
    winners: dict[tuple[int, int], HandOver] = {}
    gone: dict[int, list[tuple[int, float]]] = {}  # place -> serials and since when
    for one in hand_overs:
        first = winners.setdefault((one.place, one.serial), one)
        assert first.device == one.device, f"place {one.place} went to two devices, both with serial {one.serial}"
        gone.setdefault(one.place, []).append((one.serial, one.received))
        assert one.place in lost or any(
            step.handed.get(one.place) == one.serial and one.sent - grain <= step.time_ms / 1000 <= one.received + grain
            for step in steps), f"no event told that place {one.place} went to another device"
    _check_told(steps, lost)
    for answer in answers:
        since = min((at for serial, at in gone.get(answer.place, []) if serial > answer.serial), default=float("inf"))
        if answer.place in lost or answer.sent <= since:
            continue
        assert not answer.has_pass, f"place {answer.place}: the device that gave it away got a pass"
        assert answer.answer == "moved" or answer.sent <= since + staleness, (
            f"place {answer.place}: the device that gave it away was told {answer.answer}, {answer.sent - since:.1f} s later")


def _check_told(steps: list[wire.Step], lost: set[int]) -> None:
    """Serials rise, and only who waits hands the place over."""
    serials: dict[int, int] = {}
    waiting: set[int] = set()
    for step in steps:
        waiting -= {old for old, _ in step.moved}
        waiting |= set(step.joined) | {new for _, new in step.moved}
        for place, serial in step.handed.items():
            known = serials.get(place, 0)
            assert serial > known or place in lost, f"step {step.number} gives place {place} the serial {serial} after {known}"
            assert place in waiting or place in lost, f"step {step.number} hands over place {place}, which does not wait"
            serials[place] = serial
        waiting -= set(step.admitted) | {place for place, _ in step.removed}
