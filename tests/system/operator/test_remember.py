# SPDX-License-Identifier: Apache-2.0
"""What tests/run remembers of tests that passed."""
from __future__ import annotations

import os
import subprocess
import sys

from tellerline import TOP

KEYS = """
import sys
from pathlib import Path
sys.path.insert(0, "tests/runner")
import remember
for file in sorted(Path("tests").resolve().glob("system/*/test_*.py")):
    print(file, remember._key(file))
"""


def test_all_processes_have_the_same_keys() -> None:
    """Each process of xdist decides by itself which tests it leaves out, and all must leave out the same."""
    said = {subprocess.run([sys.executable, "-c", KEYS], cwd=TOP, env=os.environ | {"PYTHONHASHSEED": seed}, check=True,
                           capture_output=True, text=True).stdout for seed in ("1", "2")}
    assert len(said) == 1 and "test_remember.py" in said.pop()
