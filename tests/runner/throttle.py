# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: an overloaded machine runs fewer tests side by side.

Tests of programs mostly wait, so more of them run at a time than there are processors. Where they do not wait enough, on
a slow machine or beside another stage, they take the processor from each other until their limits of time are too short.
So all processes of pytest-xdist but the first begin no test while too many programs want to run.

tests/run loads it.
"""
from __future__ import annotations

import os
import time

import pytest

#: So many programs for each processor may want to run, on average over a minute.
MOST_LOAD = 8.0
#: A test waits no longer than this (seconds): the load may come from elsewhere.
LONGEST = 180.0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0":
        return
    end = time.monotonic() + LONGEST
    while os.getloadavg()[0] > MOST_LOAD * (os.cpu_count() or 1) and time.monotonic() < end:
        time.sleep(1)
