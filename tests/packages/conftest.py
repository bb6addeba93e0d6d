# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the package tests: the packages, and machines to install them on."""
from __future__ import annotations

import fcntl
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
    done = subprocess.run([ROOT / "deploy/package", "--output", folder, "--revision", revision], cwd=ROOT,
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the longest tests first, so that parallel processes end at about the same time."""
    items.sort(key=_seconds, reverse=True)


def _seconds(item: pytest.Item) -> float:
    mark = item.get_closest_marker("long")
    return float(mark.args[0]) if mark else 0.0


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Made once, also where xdist has several processes."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("this is not Debian: there is no dpkg-deb")
    common = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        common = common.parent
    folder = common / "all-packages"
    folder.mkdir(exist_ok=True)
    made = Packages(folder / "1.deb", folder / "2.deb", folder / "tellerline_0.1.0-3.deb")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.changed.exists():
            shutil.copy(build("1", WORK / "package"), made.first)
            shutil.copy(build("2", WORK / "package"), made.second)
            repack(made.second, folder, "0.1.0-3")
    return made


@dataclass(frozen=True)
class Clone:
    folder: Path
    settings: dict[str, str]  # of the environment, for all that is compiled in it


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """The files of a clone in another folder: tracked and new ones, without those that git ignores. What the first test
    compiles in it, without a cache of the compiler, the others use, too: their group is `clone`."""
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True,
                            check=False)
    if listed.returncode != 0:  # not a git tree: a source package
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns("build", "data", ".git", "__pycache__"),
                        dirs_exist_ok=True)
    for entry in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / entry).is_file():
            (folder / entry).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / entry, folder / entry)
    # The commit's time, because the copy has no repository.
    epoch = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True,
                           check=False).stdout.strip() or str(int((ROOT / "CHANGELOG.md").stat().st_mtime))
    return Clone(folder, {"SOURCE_DATE_EPOCH": epoch, "TZ": "Asia/Seoul", "CCACHE_DISABLE": "1"})


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
