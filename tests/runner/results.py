# SPDX-License-Identifier: Apache-2.0
"""What the stages found: counts, the slowest tests, the flaky ones, and the table at the end."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as tree
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cached import Results as Cache  # noqa: E402

#: A run is green with at most so many flaky tests.
FLAKY_MOST = 3
#: A flaky test is shown at the start of each run for so long (days).
FLAKY_DAYS = 30


def commit_of(top: Path) -> str:
    """The commit of a tree, with a mark when the tree has changes. Empty without a repository."""
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(top), *words], capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "HEAD") + (" with changes" if git("status", "--porcelain") else "")


@dataclass
class Test:
    name: str
    seconds: float
    outcome: str  # passed, failed, skipped
    text: str = ""  # of the failure


def read_junit(path: Path) -> list[Test]:
    """The tests of a JUnit file. An unreadable one is one failure."""
    try:
        cases = list(tree.parse(path).getroot().iter("testcase"))
    except (OSError, tree.ParseError) as error:
        return [Test(path.stem, 0, "failed", f"no results in {path}: {error}")]
    found: dict[str, Test] = {}
    for case in cases:
        own = re.sub(r"@\w+$", "", case.get("name") or "")  # without the group that xdist appends: test_b@group
        name = "::".join(filter(None, (case.get("classname"), own)))
        kinds = {child.tag: child for child in case}
        bad = kinds.get("failure", kinds.get("error"))
        if bad is not None or case.get("status") == "fail":
            outcome = "failed"
        elif "skipped" in kinds or case.get("status") in ("notrun", "disabled"):
            outcome = "skipped"
        else:
            outcome = "passed"
        text = "\n".join("".join(child.itertext()) for child in case)
        test = Test(name, float(case.get("time") or 0), outcome, text if outcome == "failed" else "")
        before = found.get(name)
        # A test that passed and could not put away is listed twice.
        if before is None or outcome == "failed":
            found[name] = test
    return list(found.values())


@dataclass
class Row:
    """A line of the table."""
    stage: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    cached: int = 0  # of those that passed
    seconds: float = 0
    cpu: float = 0


@dataclass
class Flake:
    """A test that failed beside others and passed alone."""
    name: str
    when: float
    load: str
    seed: str
    failure: str


def _flaky_file() -> Path:
    return Cache().folder / "flaky.json"


def known_flakes() -> list[Flake]:
    """Those of the runs before on this machine."""
    try:
        found = [Flake(**entry) for entry in json.loads(_flaky_file().read_text())]
    except (OSError, ValueError, TypeError):
        return []
    return [flake for flake in found if time.time() - flake.when < FLAKY_DAYS * 86400]


@dataclass
class Report:
    """All rows. Stages in lanes add to it, too."""
    rows: list[Row] = field(default_factory=list)
    tests: list[tuple[str, Test]] = field(default_factory=list)  # with the stage
    flakes: list[Flake] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, row: Row, tests: list[Test] | None = None) -> None:
        with self._lock:
            self.rows.append(row)
            self.tests += [(row.stage, test) for test in tests or []]

    def may_retry(self, failures: int) -> bool:
        """Few failures may be chance on a busy machine; more are a defect."""
        with self._lock:
            return len(self.flakes) + failures <= FLAKY_MOST

    def flaky(self, test: Test) -> None:
        seed = re.search(r"\bseed[ =:]*(\d+)", test.text, re.IGNORECASE)
        load = re.search(r"^load: (.*)$", test.text, re.MULTILINE)
        with self._lock:
            self.flakes.append(Flake(test.name, time.time(), load[1] if load else f"{os.getloadavg()[0]:.1f}",
                                     seed[1] if seed else "", test.text[-2000:]))

    def remember_flakes(self) -> None:
        if not self.flakes:
            return
        new = {flake.name for flake in self.flakes}
        kept = [flake for flake in known_flakes() if flake.name not in new] + self.flakes
        try:
            _flaky_file().parent.mkdir(parents=True, exist_ok=True)
            _flaky_file().write_text(json.dumps([asdict(flake) for flake in kept], indent=1))
        except OSError as error:
            print(f"tests/run: the flaky tests are not remembered: {error}")

    def _sum(self, name: str) -> float:
        return sum(getattr(row, name) for row in self.rows)

    def print_flakes(self, logs: Path) -> None:
        for flake in self.flakes:
            print(f"\nflaky: {flake.name}: failed beside others, passed alone (load {flake.load}"
                  f"{', seed ' + flake.seed if flake.seed else ''}; logs in {logs})")
            print("    " + "\n    ".join(flake.failure.strip().splitlines()[-12:]))

    def write(self, file: Path, commit: str, whole: bool) -> None:
        """As JSON, for a release (deploy/release). commit: of the tree at the beginning; whole: nothing was left out."""
        file.write_text(json.dumps({
            "format": 1, "commit": commit, "whole": whole, "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "stages": [asdict(row) for row in self.rows],
            "flaky": [asdict(flake) for flake in self.flakes],
            "tests": [{"stage": stage, "name": test.name, "seconds": test.seconds, "outcome": test.outcome}
                      for stage, test in self.tests]}, indent=1) + "\n")

    def finish(self, logs: Path, busy: float) -> int:
        """Prints the end of a run. busy: processor time of the whole machine since its beginning."""
        self.print_flakes(logs)
        slowest = sorted(self.tests, key=lambda entry: -entry[1].seconds)[:10]
        if slowest:
            print("\nthe slowest tests")
            for stage, test in slowest:
                print(f"{test.seconds:8.1f} s  {stage}: {test.name}")
        print(f"\n{'stage':<26} {'passed':>7} {'failed':>7} {'skipped':>8} {'cached':>7} {'time':>8} {'processor':>10}")
        for row in self.rows:
            print(f"{row.stage:<26} {row.passed:>7} {row.failed:>7} {row.skipped:>8} {row.cached:>7} "
                  f"{row.seconds:>6.0f} s {row.cpu:>8.0f} s")
        print(f"{'the whole machine':<26} {'':>7} {'':>7} {'':>8} {'':>7} {'':>8} {busy:>8.0f} s")
        failed = int(self._sum("failed"))
        print(f"{int(self._sum('passed'))} passed, {failed} failed, {int(self._sum('skipped'))} skipped", flush=True)
        return 1 if failed else 0
