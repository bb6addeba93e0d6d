# SPDX-License-Identifier: Apache-2.0
"""The library of Redis Functions of a checkout, as its build joins it."""
from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path


class Library:
    """Its text, and the names of its functions in the store."""

    def __init__(self, text: str) -> None:
        found = re.match(r"#!lua name=tellerline_(\w+)\n", text)
        assert found, "this is no library"
        self.text, self._hash = text, found.group(1)

    def name(self, function: str) -> str:
        return f"tl_{self._hash}_{function}"

    def variant(self, name: str, before: str, after: str) -> Library:
        """Another library, with one text in place of another."""
        assert before in self.text
        return Library(self.text.replace(before, after).replace(self._hash, name))


def library_in(build: Path) -> Library:
    """That of a build."""
    return Library((build / "library" / "library.lua").read_text())


def library_of(top: Path) -> Library:
    """That of a checkout, joined for this purpose."""
    with tempfile.TemporaryDirectory() as folder:
        for step in (["-S", top, "-B", folder, "-DTELLERLINE_TESTS=OFF"], ["--build", folder, "--target", "library"]):
            subprocess.run(["cmake", *map(str, step)], check=True, stdout=subprocess.DEVNULL)
        return library_in(Path(folder))
