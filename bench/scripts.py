# SPDX-License-Identifier: Apache-2.0
"""The Lua scripts of a checkout, as its build embeds them."""
from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path


def read(header: Path) -> dict[str, str]:
    """The scripts in a header that cmake/embed_scripts.cmake wrote, by name."""
    found: dict[str, str] = {}
    for name, literal in re.findall(r"^static const char tl_script_(\w+)\[\] =\n(.*?);\n", header.read_text(),
                                    re.MULTILINE | re.DOTALL):
        lines = [line.strip()[1:-1] for line in literal.split("\n")]
        found[name] = re.sub(r"\\(.)", lambda m: "\n" if m.group(1) == "n" else m.group(1), "".join(lines))
    return found


def scripts_of(top: Path) -> dict[str, str]:
    """By name, put together by cmake/embed_scripts.cmake. Needs no build."""
    found: dict[str, str] = {}
    for room in ("common/store", "dispatcher", "admitter", "expirer"):
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder) / "scripts.h"
            files = ";".join(str(path) for path in sorted((top / room).glob("*.lua")))
            subprocess.run(["cmake", f"-DOUT={header}", f"-DPROTOCOL={top}/common/wire/protocol.def",
                            f"-DPRELUDE={top}/common/store/prelude.lua", f"-DSCRIPTS={files}", "-P",
                            f"{top}/cmake/embed_scripts.cmake"], check=True)
            found |= read(header)
    return found
