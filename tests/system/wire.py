# SPDX-License-Identifier: Apache-2.0
"""An independent implementation of the formats between the programs: msgpack entries and tickets.

The formats are those of docs/contributors/wire-format.md.
"""
from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass, field
from typing import Any

JOIN, LEAVE, COMPLETE, RENEW, SEEN = 1, 2, 3, 4, 5
CALLED = 9
APPLIED, JOINED, ADMITTED, REMOVED, FREED, RENEWED, CONFIG, NOTICE, EXTENDED, HANDED = range(1, 11)
REASONS = {1: "completed", 2: "left", 3: "expired", 4: "unclaimed", 5: "absent", 6: "removed"}
MOVED = 7  # as a reason of REMOVED
LANE = 2**48


def pack(value: Any) -> bytes:
    """msgpack of non-negative integers, text and lists."""
    if isinstance(value, int):
        if value < 0x80:
            return bytes([value])
        return b"\xcf" + struct.pack(">Q", value)
    if isinstance(value, str):
        data = value.encode()
        return b"\xd9" + bytes([len(data)]) + data
    return b"\xdc" + struct.pack(">H", len(value)) + b"".join(pack(item) for item in value)


def unpack(data: bytes) -> Any:
    value, end = _unpack(data, 0)
    assert end == len(data), "bytes after the end"
    return value


_NUMBERS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
            0xD3: ">q", 0xCA: ">f", 0xCB: ">d"}
_TEXT_LENGTHS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_ARRAY_LENGTHS = {0xDC: ">H", 0xDD: ">I"}


def _unpack(data: bytes, at: int) -> tuple[Any, int]:
    kind = data[at]
    at += 1
    if kind < 0x80:
        return kind, at
    if 0x90 <= kind < 0xA0:
        return _unpack_array(data, at, kind & 0x0F)
    if 0xA0 <= kind < 0xC0:
        return _unpack_text(data, at, kind & 0x1F)
    if kind >= 0xE0:
        return kind - 0x100, at
    for formats, rest in ((_NUMBERS, None), (_TEXT_LENGTHS, _unpack_text),
                          (_ARRAY_LENGTHS, _unpack_array)):
        if kind in formats:
            (number,) = struct.unpack_from(formats[kind], data, at)
            at += struct.calcsize(formats[kind])
            if rest is not None:
                return rest(data, at, number)
            return (int(number) if number == int(number) else number), at
    raise ValueError(f"unexpected msgpack type {kind:#x}")


def _unpack_text(data: bytes, at: int, length: int) -> tuple[str, int]:
    return data[at:at + length].decode("utf-8", "surrogateescape"), at + length


def _unpack_array(data: bytes, at: int, count: int) -> tuple[list, int]:
    items = []
    for _ in range(count):
        item, at = _unpack(data, at)
        items.append(item)
    return items, at


def expand(runs: list[int]) -> list[int]:
    """[first, count, gap, count, ...] as the numbers it stands for."""
    numbers: list[int] = []
    following = 0
    for i in range(0, len(runs), 2):
        first = runs[i] if i == 0 else following + runs[i]
        following = first + runs[i + 1]
        numbers.extend(range(first, following))
    return numbers


@dataclass
class Step:
    """One entry of the events stream."""
    time_ms: int  # Redis's clock when it was appended
    number: int
    generation: int
    waiting: int
    active: int
    events: int = 0  # how many events the entry has
    config: bool = False  # tells that the settings have changed
    applied: list[tuple[str, int]] = field(default_factory=list)  # worker and batch
    joined: list[int] = field(default_factory=list)
    admitted: list[int] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)  # of these, whose session came back after a loss
    removed: list[tuple[int, str]] = field(default_factory=list)
    freed: list[tuple[int, str]] = field(default_factory=list)
    moved: list[tuple[int, int]] = field(default_factory=list)  # from and to: to another lane, by the operator
    deadlines: dict[int, int] = field(default_factory=dict)  # of admitted and renewed places
    handed: dict[int, int] = field(default_factory=dict)  # places on another device now, and their serial
    extended: dict[int, int] = field(default_factory=dict)  # places with more time to claim, and until when


def step_of(entry_id: str, payload: str) -> Step:
    version, number, generation, waiting, active, events = unpack(
        payload.encode("utf-8", "surrogateescape"))
    assert version == 1
    step = Step(int(entry_id.split("-")[0]), number, generation, waiting, active, len(events))
    is_applied = any(event[0] == APPLIED for event in events)  # the admitter's steps apply nothing
    for event in events:
        if event[0] == APPLIED:
            step.applied.append((event[1], event[2]))
        elif event[0] == JOINED:
            step.joined += expand(event[1])
        elif event[0] == ADMITTED:
            step.admitted += expand(event[1])
            step.returned += expand(event[1]) if is_applied else []
            step.deadlines |= dict.fromkeys(expand(event[1]), event[2])
        elif event[0] == RENEWED:
            step.deadlines[event[1]] = event[2]
        elif event[0] == EXTENDED:
            step.extended[event[1]] = event[2]
        elif event[0] == HANDED:
            step.handed[event[1]] = event[2]
        elif event[0] == REMOVED and event[2] == MOVED:
            step.moved += [(place, 0) for place in expand(event[1])]
        elif event[0] == REMOVED:
            step.removed += [(place, REASONS[event[2]]) for place in expand(event[1])]
        elif event[0] == FREED:
            step.freed += [(place, REASONS[event[2]]) for place in expand(event[1])]
        elif event[0] == CONFIG:
            step.config = True
    if step.moved:  # the entry tells of nothing else
        ((old, _),), (new,) = step.moved, step.joined
        assert new % LANE == old % LANE and new != old, f"a move from {old} to {new}"
        step.moved, step.joined = [(old, new)], []
    return step


def read_pass(text: str) -> dict[str, Any]:
    """The claims of a pass. Does not check the signature."""
    payload = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


@dataclass(frozen=True)
class Ticket:
    generation: int
    lane: int
    seq: int
    visitor: str
    serial: int = 0  # of the device, once the place was handed over

    @property
    def place(self) -> int:
        return self.lane * LANE + self.seq


def read_ticket(text: str) -> Ticket:
    """The content of a ticket. Does not check the MAC."""
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    _kind, _key, generation, place, _issued, serial, length = struct.unpack_from(">B4sQQIIB", data)
    visitor = data[30:30 + length].decode()
    return Ticket(generation, place // LANE, place % LANE, visitor, serial)
