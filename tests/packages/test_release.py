# SPDX-License-Identifier: Apache-2.0
"""deploy/release: what it makes, and what it refuses."""
from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bom
from conftest import ROOT


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@localhost", "-C", folder, *words],
                          capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A clone of this repository with what is not committed yet, as one more commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a clone")
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--no-tags", ROOT, folder], check=True)
    for name in git(ROOT, "ls-files", "-mo", "--exclude-standard").splitlines():
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
            (folder / name).chmod((ROOT / name).stat().st_mode)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "changes")
    return folder


class Given:
    """Results of a commit, as a whole run writes them."""

    def __init__(self, tree: Path, folder: Path) -> None:
        commit = git(tree, "rev-parse", "HEAD")
        self.tree, self.folder = tree, folder
        self.tests: dict[str, Any] = {"commit": commit, "whole": True, "stages": [{"stage": "gates", "failed": 0}]}
        self.benchmarks: dict[str, Any] = {
            "versions": {"Tellerline commit": commit[:12]}, "quick": False, "left_out": [],
            "groups": [{"name": "apply", "status": "ok"}]}

    def release(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        files = {name: self.folder / f"given-{name}.json" for name in ("tests", "benchmarks")}
        for name, file in files.items():
            file.write_text(json.dumps(getattr(self, name)))
        return subprocess.run([self.tree / "deploy/release", "--no-images", "--tests", files["tests"], "--benchmarks",
                               files["benchmarks"], *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              check=False)


@pytest.fixture
def given(tree: Path, tmp_path: Path) -> Given:
    return Given(tree, tmp_path)


@pytest.mark.long(100)
def test_the_whole_set(given: Given, tmp_path: Path) -> None:
    """Sources, package, bill of materials, results, and checksums of all of them; nothing is left in the tree."""
    git(given.tree, "tag", "v0.1.0")
    done = given.release("--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    files = {path.name: path for path in (tmp_path / "out").iterdir()}
    package = next(name for name in files if name.endswith(".deb"))
    assert re.fullmatch(r"tellerline_0\.1\.0-1_\w+\.deb", package)
    assert files.keys() == {"tellerline-0.1.0.tar.gz", package, package.removesuffix(".deb") + ".cdx.json", "tests.json",
                            "benchmarks.json", "SHA256SUMS"}
    sums = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / "out", capture_output=True,
                          text=True, check=False)
    assert sums.returncode == 0 and len(sums.stdout.splitlines()) == 5, sums
    with tarfile.open(files["tellerline-0.1.0.tar.gz"]) as sources:
        names = {member.name for member in sources if not member.isdir()}
    assert names == {f"tellerline-0.1.0/{name}" for name in git(given.tree, "ls-files").splitlines()}
    whole, _ = bom.read(files[package.removesuffix(".deb") + ".cdx.json"].read_text())
    assert whole["hashes"][0]["content"] in files["SHA256SUMS"].read_text()
    assert json.loads(files["tests.json"].read_text()) == given.tests
    assert git(given.tree, "status", "--porcelain") == ""
    again = given.release("--output", tmp_path / "out")
    assert again.returncode == 1 and "is not empty" in again.stderr


def dirty(given: Given) -> None:
    (given.tree / "new").touch()


def wrong_tag(given: Given) -> None:
    git(given.tree, "tag", "v0.2.0")


def moved_tag(given: Given) -> None:
    git(given.tree, "tag", "v0.1.0", "HEAD~1")


def other_commit(given: Given) -> None:
    given.tests["commit"] = "0" * 40


def part_of_a_run(given: Given) -> None:
    given.tests["whole"] = False


def a_failure(given: Given) -> None:
    given.tests["stages"].append({"stage": "system", "failed": 2})


def other_benchmarks(given: Given) -> None:
    given.benchmarks["versions"]["Tellerline commit"] += " with local changes"


def quick_benchmarks(given: Given) -> None:
    given.benchmarks["quick"] = True


def bad_benchmarks(given: Given) -> None:
    given.benchmarks["groups"].append({"name": "sse", "status": "failed"})


def no_benchmarks(given: Given) -> None:
    given.benchmarks = {}


@pytest.mark.parametrize("what, says", [
    (dirty, "the tree has changes:\n?? new"), (wrong_tag, "has the tag v0.2.0, and is of version 0.1.0"),
    (moved_tag, "the tag v0.1.0 is at another commit"), (other_commit, "they are of 000"),
    (part_of_a_run, "they are not of a whole run"), (a_failure, "2 tests failed"),
    (other_benchmarks, "with local changes"), (quick_benchmarks, "they are not of a whole run"),
    (bad_benchmarks, "not measured: sse"), (no_benchmarks, "they are of an unknown commit")])
def test_it_refuses(given: Given, tmp_path: Path, what: Callable[[Given], None], says: str) -> None:
    what(given)
    done = given.release("--output", tmp_path / "out")
    assert done.returncode == 1 and done.stderr.startswith("deploy/release: ") and says in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


def test_the_runner_writes_what_is_read(tmp_path: Path) -> None:
    """The results of tests/run, as deploy/release reads them."""
    program = ("import sys; from pathlib import Path; sys.path[:0] = ['tests/runner']\n"
               "from results import Report, Row, Test, commit_of\n"
               "report = Report(); report.add(Row('gates', 1, 2), [Test('a', 1.5, 'failed', 'why')])\n"
               f"report.write(Path({str(tmp_path / 'results.json')!r}), commit_of(Path('.')), True)\n")
    subprocess.run(["/usr/bin/python3", "-c", program], cwd=ROOT, check=True, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["whole"] is True and found["stages"][0]["failed"] == 2
    assert found["tests"] == [{"stage": "gates", "name": "a", "seconds": 1.5, "outcome": "failed"}]
    head = git(ROOT, "rev-parse", "HEAD") if (ROOT / ".git").exists() else ""
    assert found["commit"].removesuffix(" with changes") == head
