# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: a test that passed on this machine with the same inputs, bit for bit, is not run again.

The inputs of a test are its file, the modules of the tests that it imports, the conftest.py of its folder, the programs
under test, the Debian packages of this machine, and the folders of the repository that these files name. One that builds
from the sources (deploy/package, git ...) depends on all of the repository, without the other tests.

tests/run loads it. TESTS_CACHED names a file to which the cached tests are written, TESTS_FAILED one for those that fail.
"""
from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cached import TOP, Key, Results  # noqa: E402

#: Folders and files at the top that a test may read.
_NAMES = sorted({path.name for path in TOP.iterdir()} - {"tests", "build", ".git"})
#: A path as tests write it, TOP / "docs" / "a.md" or "docs/a.md": its first string, and the others.
_PATH = re.compile(rf"""(?:/ ?["']|["'](?=[\w.-]+/))((?:{'|'.join(map(re.escape, _NAMES))})\b[\w./-]*)"""
                   r"""["']?((?: / ["'][\w./-]+["'])*)""")
_ALL = re.compile(r"deploy/(package|images|quickstart)|[\"']git[\"']|[\"']cmake[\"']")


@functools.cache
def _system_folders() -> tuple[Path, ...]:
    """Where the modules of the system tests are, which other tests import, too."""
    top = TOP / "tests" / "system"
    return (top, *(path for path in top.iterdir() if path.is_dir()))


def _imports(file: Path) -> set[Path]:
    """The modules beside a file, or in tests/system, that it imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    found = {folder / f"{name.partition('.')[0]}.py" for folder in {file.parent, *_system_folders()} for name in names}
    return {path for path in found if path.exists()}


@functools.cache
def imported_modules(file: Path) -> tuple[Path, ...]:
    """A file and all modules of the tests behind it."""
    seen: set[Path] = set()
    ahead = {file, *(folder / "conftest.py" for folder in file.parents if (folder / "conftest.py").exists())}
    while ahead:
        seen |= ahead
        ahead = set().union(*(_imports(path) for path in ahead)) - seen
    return tuple(sorted(seen))


@functools.cache
def _sources() -> tuple[Path, ...]:
    """All files of the repository but the tests."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=TOP,
                            capture_output=True, check=False).stdout.decode().split("\0")
    return tuple(TOP / name for name in listed if name and not name.startswith("tests/"))


def _read(text: str) -> Iterable[Path]:
    """What these sources of tests read, beside programs."""
    if _ALL.search(text):
        return _sources()
    found = set()
    for first, others in _PATH.findall(text):
        path = TOP.joinpath(first, *re.findall(r"[\w./-]+(?=[\"'])", others))
        while not path.exists():  # what a test makes, or a pattern
            path = path.parent
        found.add(path)
    return sorted(found - {TOP})  # in one order in all processes


@functools.cache
def _key(file: Path) -> Key:
    modules = imported_modules(file)
    key = Key("a test").files(*modules, "/var/lib/dpkg/status").text(sys.version)
    text = "\n".join(path.read_text() for path in modules)
    key.files(*_read(text))
    folder = Path(os.environ.get("TELLERLINE_TEST_BIN", TOP / "build" / "release" / "bin"))
    key.programs(*sorted(folder.glob("tellerline*")))
    if "page_tool" in text:
        key.programs(TOP / "build" / "asan" / "bin" / "page_tool")
    return key.environment("TELLERLINE_TEST_BIN", "TELLERLINE_SEED")


def _node(nodeid: str) -> str:
    """Without the group that xdist appends: test_a.py::test_b@group."""
    return re.sub(r"@\w+$", "", nodeid)


def _append(variable: str, lines: Iterable[str]) -> None:
    if os.environ.get(variable):
        with open(os.environ[variable], "a", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)


class Remember:
    """Leaves out what passed before, and remembers what passes."""

    def __init__(self, config: pytest.Config) -> None:
        self._worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        #: In the process that only distributes the tests to others, there are no items.
        self._distributes = not self._worker and getattr(config.option, "dist", "no") != "no"
        self._results = Results()
        self._keys: dict[str, Key] = {}
        self._outcomes: dict[str, set[str]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left: list[pytest.Item] = []
        known: list[pytest.Item] = []
        for item in items:
            key = _key(item.path).copy().text(_node(item.nodeid))
            self._keys[item.nodeid] = key
            (known if self._results.passed(key) else left).append(item)
        items[:] = left
        if known:
            config.hook.pytest_deselected(items=known)
        if self._worker in ("", "gw0"):
            _append("TESTS_CACHED", (_node(item.nodeid) for item in known))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._worker:
            _append("TESTS_FAILED", [_node(report.nodeid)])
        if self._distributes:
            return
        outcomes = self._outcomes.setdefault(report.nodeid, set())
        outcomes.add(report.outcome)
        if report.when == "teardown" and outcomes == {"passed"} and report.nodeid in self._keys:
            self._results.record(self._keys[report.nodeid])

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_makereport(self) -> Any:
        outcome = yield
        report = outcome.get_result()
        if report.failed and hasattr(report.longrepr, "addsection"):
            report.longrepr.addsection("machine", f"load: {os.getloadavg()[0]:.1f}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Remember(config), "tellerline-remember")
