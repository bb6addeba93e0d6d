# SPDX-License-Identifier: Apache-2.0
"""Measures how late this machine wakes a sleeping process. Any program may be late by this much through no fault of
its own."""
from __future__ import annotations

import subprocess
import sys

_BEAT = """
import select, sys, time
worst = 0.0
while True:
    due = time.monotonic() + 0.005
    ended = select.select([sys.stdin], [], [], 0.005)[0]
    if ended:
        print(worst)
        break
    worst = max(worst, time.monotonic() - due)
"""


class Metronome:
    """A process that wakes every 5 ms, from now until stop()."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", _BEAT], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)

    def stop(self) -> float:
        """Stops it. Returns its worst delay in seconds."""
        return float(self._process.communicate()[0])
