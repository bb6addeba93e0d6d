# SPDX-License-Identifier: Apache-2.0
"""The processes below a process, and what each of them is."""
from __future__ import annotations

from pathlib import Path


def children(pid: int) -> list[int]:
    found: list[str] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += path.read_text().split()
        except OSError:
            continue  # it has just ended
    return [int(child) for child in found]


def descendants(pid: int) -> list[int]:
    return [one for child in children(pid) for one in (child, *descendants(child))]


def program_of(pid: int) -> str:
    """The executable of a process. Empty if the process has just ended."""
    try:
        return Path(f"/proc/{pid}/exe").resolve(strict=True).name
    except OSError:
        return ""


def command_line(pid: int) -> list[str]:
    """Empty if the process has just ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []
