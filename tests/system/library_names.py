# SPDX-License-Identifier: Apache-2.0
"""The functions of the programs under test, by their names in the store."""
from __future__ import annotations

import sys

from tellerline import BIN, TOP

sys.path.append(str(TOP / "bench"))

from library import Library, library_in  # noqa: E402


def library() -> Library:
    return library_in(BIN.parent)
