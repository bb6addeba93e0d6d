# SPDX-License-Identifier: Apache-2.0
"""The Lua scripts of the programs under test, as the build put them together."""
from __future__ import annotations

import sys

from tellerline import BIN, TOP

sys.path.append(str(TOP / "bench"))

from scripts import read  # noqa: E402


def lua_script(room: str, name: str) -> str:
    """NAME.lua of a folder of sources, such as common/store."""
    view = BIN.parent / "rooms" / {"common/store": "store", "worker/feed": "worker_feed"}[room]
    return read(view / "generated" / f"{room.rpartition('/')[2]}_scripts.h")[name]
