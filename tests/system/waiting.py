# SPDX-License-Identifier: Apache-2.0
"""Waits for conditions, instead of fixed sleeps. Limits are safety nets: they grow with the slowness of the machine."""
from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: The limit (seconds) for steps that normally take milliseconds, on a machine that is not slow (see `patient`).
PATIENCE = 40.0

#: How long `_work` takes on the machine that the limits were written on, two quiet cores (seconds).
_WORK_SECONDS = 0.05

_slowness = 1.0


def _work() -> None:
    """What the tests do most: start processes, and compute."""
    for _ in range(8):
        subprocess.run(["/bin/true"], check=True, stdin=subprocess.DEVNULL)
    hashlib.pbkdf2_hmac("sha256", b"pace", b"salt", 40_000)


def _measure() -> float:
    """Measures how many times slower the machine is now than the one the limits were written on; keeps the worst."""
    global _slowness
    began = time.monotonic()
    _work()
    _slowness = max(_slowness, (time.monotonic() - began) / _WORK_SECONDS)
    return _slowness


_measure()


def patient(seconds: float) -> float:
    """A limit (seconds) for this machine, as slow as it has been so far. For whatever takes a timeout as a number."""
    return seconds * _slowness


def wait_until(condition: Callable[[], T], seconds: float, what: str, every: float = 0.01,
               again_on: type[Exception] | tuple[type[Exception], ...] = ()) -> T:
    """Polls until `condition()` is true and returns what it returned.

    The limit is `patient(seconds)`. When it is reached, the machine is measured again, and a machine that has become
    slower gets more time.
    An exception of `again_on` means that the condition is not true yet. The last one is shown on a timeout.
    """
    began = time.monotonic()
    end = began + patient(seconds)
    late = False
    while True:
        last_try = time.monotonic() > end  # checked first, so that a slow try is followed by one more
        if last_try:
            late = True
            end = began + seconds * _measure()
            last_try = time.monotonic() > end
        failure: Exception | None = None
        value: T | None = None
        try:
            value = condition()
        except again_on as error:
            failure = error
        if value:
            if late:
                print(f"waiting: {time.monotonic() - began:.0f} s instead of {seconds:g} s, on a machine {_slowness:.1f} "
                      f"times as slow as usual: {what}", file=sys.stderr)
            return value
        if last_try:
            last = f"{type(failure).__name__}: {str(failure).partition(chr(10))[0]}" if failure else repr(value)
            raise AssertionError(f"not within {end - began:g} s: {what} (last: {last})") from failure
        time.sleep(every)


def one_of(tries: int, measure: Callable[[], float], limit: float, what: str) -> list[float]:
    """Measures until a figure is within the limit, at most `tries` times. Returns all figures, the good one last.

    Another process on the machine may spoil one measurement, but hardly all of them. A program that is too slow by
    itself is too slow each time.
    """
    figures: list[float] = []
    while len(figures) < tries:
        figures.append(measure())
        if figures[-1] <= limit:
            return figures
    raise AssertionError(f"{what}: not once within {limit:g} in {tries} tries: {figures}")
