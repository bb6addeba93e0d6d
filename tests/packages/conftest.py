"""Fixtures of the package tests: the packages, and machines to install them on."""
from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from base import base
from machine import Machine, why_not

ROOT = Path(__file__).resolve().parents[2]
# The packages of the tests are here.
BUILD = Path(os.environ.get("TELLERLINE_TEST_BUILD", ROOT / "build"))
WORK = BUILD / "package-test"


@dataclass(frozen=True)
class Packages:
    first: Path
    second: Path  # the same with a higher version
    changed: Path  # a third version with a different configuration file


def build(revision: str, folder: Path) -> Path:
    """Makes a revision of the package in a folder. Returns the file. A standing release build is not built again. There
    is no limit of its own: the compiler takes as long as the machine needs."""
    done = subprocess.run([ROOT / "deploy/package", "--output", folder, "--revision", revision, "--no-lint"], cwd=ROOT,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / done.stdout.split()[0]


def repack(package: Path, folder: Path, version: str) -> Path:
    """The package with another version and one more line in its configuration file."""
    tree = folder / "tree"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    control = tree / "DEBIAN/control"
    lines = [f"Version: {version}" if line.startswith("Version:") else line
             for line in control.read_text().splitlines()]
    control.write_text("\n".join(lines) + "\n")
    with (tree / "etc/tellerline/tellerline.yaml").open("a") as file:
        file.write("# A line of the next version.\n")
    made = folder / f"tellerline_{version}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, made], check=True, capture_output=True)
    shutil.rmtree(tree)
    return made


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("this is not Debian: there is no dpkg-deb")
    folder = tmp_path_factory.mktemp("packages")
    first = Path(shutil.copy(build("1", WORK / "package"), folder))
    second = Path(shutil.copy(build("2", WORK / "package"), folder))
    return Packages(first, second, repack(second, folder, "0.1.0-3"))


@pytest.fixture
def boot(packages: Packages) -> Iterator[Callable[[], Machine]]:
    """Boots a machine without Tellerline."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    system = base(packages.first)
    WORK.mkdir(parents=True, exist_ok=True)
    machines: list[Machine] = []

    def boot_one() -> Machine:
        machines.append(Machine(system, WORK))
        return machines[-1]

    yield boot_one
    for machine in machines:
        machine.close()
