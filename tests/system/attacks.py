# SPDX-License-Identifier: Apache-2.0
"""The attacks of docs/contributors/threat-model.md, and the tests that it names for each of them.

The tests of this folder that it names get the mark `attack`, so `pytest -m attack` runs all of them.
"""
from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
TABLE = HERE.parents[1] / "docs" / "contributors" / "threat-model.md"
MARK = "attack"
#: `FILE::TEST`, the file without its folder
TEST = re.compile(r"`(test_\w+\.(?:py|c))::(\w+)`")


@dataclass(frozen=True)
class Attack:
    what: str
    tests: list[tuple[str, str]]  # file, test


def attacks() -> list[Attack]:
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")]
            for line in TABLE.read_text().splitlines() if line.startswith("| ") and not line.startswith("| **")]
    assert rows[0] == ["attack", "what stops it", "test", "what is left"], rows[0]
    assert all(len(row) == 4 for row in rows), [row for row in rows if len(row) != 4]
    return [Attack(row[0], TEST.findall(row[2])) for row in rows[1:]]


def named() -> set[tuple[str, str]]:
    return {test for attack in attacks() for test in attack.tests}


def named_tests(file: Path) -> set[str]:
    """The names of the tests in a file: pytest's, or cmocka's that its main() runs."""
    if file.suffix == ".py":
        return {node.name for node in ast.parse(file.read_text()).body
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
    text = file.read_text()
    main = text[text.index("int main(void)"):]
    return {name for name in re.findall(r"^static void (\w+)\(void \*\*state\)", text, re.MULTILINE)
            if re.search(rf"\({name}\b", main)}


def mark(items: list[pytest.Item]) -> None:
    wanted = named()
    for item in items:
        if (item.path.name, getattr(item, "originalname", item.name)) in wanted:
            item.add_marker(MARK)


class Times:
    """Says at the end how long the tests of the attacks took in all, in this process or in those that xdist started."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if MARK in report.keywords:
            self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._seconds:
            terminalreporter.write_line(f"attacks: {len(self._seconds)} tests took {sum(self._seconds.values()):.0f} s, "
                                        "one after the other")
