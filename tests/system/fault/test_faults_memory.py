# SPDX-License-Identifier: Apache-2.0
"""A memory error in any of the programs is found: by the sanitizers they are built with, and by what follows each test."""
from __future__ import annotations

import pytest

from preload import OVERFLOWING, Preload
from tellerline import CALM, System

pytestmark = pytest.mark.sanitized

ROLES = ("worker", "dispatcher", "admitter", "expirer", "notifier")


def test_an_overflow_in_any_program_is_found(start, tmp_path):
    """Each writes one byte too many when it ends."""
    overflowing = Preload(tmp_path, OVERFLOWING)

    def prepare(system: System) -> None:
        for program in system.programs:
            program.prefix = overflowing.prefix

    system = start({"bank": {"capacity": 1} | CALM}, notifiers=1, prepare=prepare)
    assert {program.role for program in system.programs} == set(ROLES)
    overflowing.set(1)
    for program in system.programs:
        with pytest.raises(AssertionError, match=f"{program.name} ended with"):
            program.stop()
        assert "AddressSanitizer: heap-buffer-overflow" in program.text(), program.tail()
        with pytest.raises(AssertionError, match="AddressSanitizer"):
            system._check_log(program)
    system.sound = False


def test_an_overflow_in_the_command_line_is_found(start, tmp_path, monkeypatch):
    system = start({"bank": {"capacity": 1} | CALM})
    overflowing = Preload(tmp_path, OVERFLOWING)
    assert system.ctl("queue", "list").returncode == 0
    overflowing.set(1)
    for name, value in overflowing.env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(AssertionError, match="AddressSanitizer: heap-buffer-overflow"):
        system.ctl("queue", "list")
    overflowing.set(0)
