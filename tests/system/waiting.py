"""Waits for conditions, instead of fixed sleeps."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: The limit (seconds) for steps that normally take milliseconds. Leaves room for sanitizers on a busy machine.
PATIENCE = 40.0


def wait_until(condition: Callable[[], T], seconds: float, what: str, every: float = 0.01,
               again_on: type[Exception] | tuple[type[Exception], ...] = ()) -> T:
    """Polls until `condition()` is true and returns what it returned.

    An exception of `again_on` means that the condition is not true yet. The last one is shown on a timeout.
    """
    end = time.monotonic() + seconds
    while True:
        last_try = time.monotonic() > end  # checked first, so that a slow try is followed by one more
        failure: Exception | None = None
        value: T | None = None
        try:
            value = condition()
        except again_on as error:
            failure = error
        if value:
            return value
        if last_try:
            last = f"{type(failure).__name__}: {str(failure).partition(chr(10))[0]}" if failure else repr(value)
            raise AssertionError(f"not within {seconds:g} s: {what} (last: {last})") from failure
        time.sleep(every)


def early_in_a_minute(seconds: float) -> None:
    """Waits until at least so much is left of a minute as workers count them, by the monotonic clock: an address may do
    as much again in the next one (worker/http/limiter.c)."""
    wait_until(lambda: time.monotonic() % 60 <= 60 - seconds, seconds + 1, "the next minute begins", every=0.1)


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
