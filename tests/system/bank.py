# SPDX-License-Identifier: Apache-2.0
"""The customers of a bank's line in December 1999, and a simulation of how c counters would serve them."""
from __future__ import annotations

import csv
import heapq
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data" / "bank-1999-12a.csv"


@dataclass(frozen=True)
class Customer:
    arrival: float  # seconds after midnight
    service: float  # seconds


def seconds(clock: str) -> int:
    hours, minutes, rest = clock.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(rest)


def days() -> dict[str, list[Customer]]:
    """The customers of each day, in order of arrival."""
    found: dict[str, list[Customer]] = {}
    with DATA.open(newline="") as file:
        for row in csv.DictReader(file):
            waited = int(row["q_time"]) > 0
            arrival = seconds(row["q_start"] if waited else row["ser_start"])
            found.setdefault(row["date"], []).append(Customer(arrival, int(row["ser_time"])))
    for customers in found.values():
        customers.sort(key=lambda customer: customer.arrival)
    return found


def simulate(arrivals: list[float], services: list[float], counters: int) -> list[float]:
    """When each customer's service starts in a G/G/c line, first come first served.

    Service starts when the customer has arrived and a counter is free. The heap holds the times at which the
    counters become free (the recursion of Kiefer and Wolfowitz, 1955).
    """
    free = [float("-inf")] * counters
    starts = []
    for arrival, service in zip(arrivals, services):
        start = max(arrival, heapq.heappop(free))
        heapq.heappush(free, start + service)
        starts.append(start)
    return starts
