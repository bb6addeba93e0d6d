# SPDX-License-Identifier: Apache-2.0
"""Figures that tests measure: stored in the test's report, and printed at the end of the run."""
from __future__ import annotations

from typing import Any

import pytest

#: The report property that holds a figure.
FIGURE = "figure"


class Figures:
    """Collects the figures from the reports of this process, or of all processes that xdist started."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            name = report.nodeid.rpartition("::")[2]
            self._lines += [f"{name}: {text}" for kind, text in report.user_properties if kind == FIGURE]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._lines:
            terminalreporter.section("figures")
            for line in sorted(self._lines, key=lambda line: line.partition(":")[0]):  # stable within a test
                terminalreporter.write_line(line)
