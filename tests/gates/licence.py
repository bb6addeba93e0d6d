#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source says under which licence it is, in its first line or in the one after `#!`.

`format` asks for it. Usage: licence.py --add writes the line into the files without it.
"""
from __future__ import annotations

import os
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TEXT = "SPDX-License-Identifier: Apache-2.0"
HASH, DASHES, STARS = f"# {TEXT}", f"-- {TEXT}", f"/* {TEXT} */"
#: By how a file's name ends.
LINES = {".c": STARS, ".h": STARS, ".c.in": STARS, ".lua": DASHES, ".py": HASH, ".sh": HASH, ".bash": HASH, ".fish": HASH,
         ".cmake": HASH, "CMakeLists.txt": HASH, "deploy/packages": HASH}
#: What is made, and what is no source of ours.
LEFT_OUT = {".git", ".ci", "build", "corpus", "data", "secrets", "node_modules", "__pycache__", ".pytest_cache"}


def line_of(path: Path) -> str | None:
    """The line that this file must have. None: it is no source of these languages."""
    for end, line in LINES.items():
        if str(path).endswith(end):
            return line
    if path.suffix or path.is_symlink():
        return None
    with path.open("rb") as file:
        first = file.readline(80)
    return HASH if first.startswith(b"#!") and any(word in first for word in (b"sh", b"python")) else None


def without_it() -> list[Path]:
    found = []
    for folder, folders, names in os.walk(TOP):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        for path in (Path(folder) / name for name in names):
            line = line_of(path)
            if line and line not in path.read_text(encoding="utf-8").splitlines()[:2]:
                found.append(path)
    return sorted(found)


def add(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    first, end, rest = text.partition("\n") if text.startswith("#!") else ("", "", text)
    path.write_text(f"{first}{end}{line_of(path)}\n{rest}", encoding="utf-8")


def faults() -> list[str]:
    return [f"{path.relative_to(TOP)}: no {TEXT} in its first lines (tests/gates/licence.py --add)" for path in without_it()]


if __name__ == "__main__":
    if sys.argv[1:] != ["--add"]:
        sys.exit(__doc__)
    for each in without_it():
        add(each)
