# SPDX-License-Identifier: Apache-2.0
"""Sessions that ended although they had to be held; part of the history checker.

A session ends by time, `expired` or `unclaimed`, but not while an entry of the ingest stream that was written before its
deadline is not applied, not so shortly after the store began another incarnation, and not before the deadline that its
visitor was told.
"""
from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

import wire

#: expirer/expire.lua has the same times.
UNAPPLIED_MOST_MS, RETURN_MS = 300000, 5000

BY_TIME = ("expired", "unclaimed")


class Entry(NamedTuple):
    """An entry of the ingest stream, as it was read there."""
    written_ms: int
    worker: str
    batch: int


class Told(NamedTuple):
    """A visitor was told to be active until then."""
    place: int
    until: float


def entry_of(entry_id: str, payload: str) -> Entry | None:
    """None for poison, of which no event tells."""
    try:
        _, worker, batch, *_ = wire.unpack(payload.encode("utf-8", "surrogateescape"))
    except (AssertionError, ValueError, TypeError, IndexError, struct.error, RecursionError):
        return None
    return Entry(int(entry_id.split("-")[0]), worker, batch)


def begins_incarnation(before: wire.Step, step: wire.Step) -> bool:
    """The entry with which the store begins another incarnation has no events, and any higher number."""
    return not step.events and step.number > before.number + 1


def check_session_ends(steps: list[wire.Step], entries: Iterable[Entry], told: Iterable[Told],
                       losses: Iterable[tuple[float, float]]) -> None:
    """told: of visitors whose deadline the store knows or is told by workers; losses: from when to when the store may
    have forgotten entries."""
    unapplied = _waited(steps, entries, list(losses))
    until = {one.place: one.until for one in told}
    deadlines: dict[int, int] = {}
    began: int | None = None
    for at, step in enumerate(steps):
        if at > 0 and begins_incarnation(steps[at - 1], step):
            began = step.time_ms
        for place, reason in step.freed:
            if reason not in BY_TIME:
                continue
            since = step.time_ms - began if began is not None else RETURN_MS
            # The id of the entry that began it may be a millisecond later than the time that the step had read.
            assert since >= RETURN_MS - 1, f"place {place} ended, {reason}, {since} ms after the store was there again"
            assert step.time_ms / 1000 >= until.get(place, 0), (
                f"place {place} ended, {reason}, {until[place] - step.time_ms / 1000:.3f} s before the time that its visitor was told")
            latest = min(deadlines.get(place, 0), step.time_ms - 1)  # one of the same millisecond may have come after it
            held = [entry for entry, applied in unapplied if applied > at and entry.written_ms <= latest]
            assert not held or step.time_ms - deadlines[place] >= UNAPPLIED_MOST_MS, (
                f"place {place} ended, {reason}, although an entry was not applied that was written "
                f"{deadlines[place] - held[0].written_ms} ms before the deadline")
        deadlines |= step.deadlines | step.extended


def _waited(steps: list[wire.Step], entries: Iterable[Entry], losses: list[tuple[float, float]]) -> list[tuple[Entry, int]]:
    """The entries that no loss may have taken, each with the step that applied it."""
    applied: dict[tuple[str, int], int] = {}
    for at, step in enumerate(steps):
        for batch in step.applied:
            applied.setdefault(batch, at)
    first: dict[tuple[str, int], Entry] = {}  # a worker may write a batch twice
    for entry in entries:
        first.setdefault((entry.worker, entry.batch), entry)
    pairs = [(entry, applied[batch]) for batch, entry in first.items() if batch in applied]
    return [(entry, at) for entry, at in pairs
            if not any(since <= steps[at].time_ms / 1000 and entry.written_ms / 1000 <= until for since, until in losses)]
