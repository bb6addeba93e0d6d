# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of the Debian package."""
from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import bom
from conftest import ROOT, WORK, Packages


def said(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def owner(library: str) -> str:
    """The package that has this file, also where /lib is a link to /usr/lib."""
    for path in (library, f"/usr{library}"):
        found = subprocess.run(["dpkg-query", "-S", path], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.partition(":")[0]
    raise AssertionError(f"no package has {library}")


def test_it_lists_what_the_programs_load(packages: Packages, tmp_path: Path) -> None:
    """The package itself with its digest, and each Debian package with a library that a program of it loads, with the
    version that is installed and its licences."""
    (file,) = (WORK / "package").glob("*.cdx.json")
    whole, parts = bom.read(file.read_text())
    package = packages.second  # the last that was made there
    assert (whole["type"], whole["name"], whole["version"]) == \
        ("application", "tellerline", said("dpkg-deb", "-f", package, "Version").strip())
    assert whole["hashes"][0]["content"] == hashlib.sha256(package.read_bytes()).hexdigest()
    assert whole["licenses"] == [{"license": {"id": "Apache-2.0"}}]

    subprocess.run(["dpkg-deb", "-x", package, tmp_path], check=True)
    loaded = {library for program in (tmp_path / "usr/bin").iterdir()
              for library in re.findall(r"=> (/\S+)", said("ldd", program))}
    assert len(loaded) > 15
    assert parts.keys() == {owner(library) for library in loaded}
    for name, component in parts.items():
        assert component["version"] == said("dpkg-query", "-W", "-f", "${Version}", name), component
    depends = re.findall(r"\b(lib[\w.+-]+)", said("dpkg-deb", "-f", package, "Depends"))
    assert len(depends) > 8 and set(depends) <= parts.keys()
    assert {"license": {"name": "BSD-3-Clause"}} in next(parts[name] for name in parts if "hiredis" in name)["licenses"]


def test_odd_words_stay_json(tmp_path: Path) -> None:
    """Quotation marks, backslashes and other bytes in what dpkg says."""
    tool = tmp_path / "dpkg-query"
    tool.write_text("#!/bin/sh\nprintf 'installed odd 1:2+3~4 all %s\\ndeinstalled gone 1 all gone\\n' '\"\\" "\u00e9'\n")
    tool.chmod(0o755)
    told = subprocess.run([ROOT / "deploy/sbom", "application", "0.1.0-1", "odd"], capture_output=True, text=True,
                          check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}).stdout
    _, parts = bom.read(told)
    assert list(parts) == ["odd"] and parts["odd"]["version"] == "1:2+3~4"
    assert parts["odd"]["properties"][0]["value"] == '"\\'


def test_it_refuses_a_package_that_is_not_here() -> None:
    for words in (["application", "0.1.0", "no-such-package"], ["application"]):
        done = subprocess.run([ROOT / "deploy/sbom", *words], capture_output=True, text=True, check=False)
        assert done.returncode != 0 and not done.stdout and done.stderr, words
