# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the system tests, and how pytest-xdist distributes the tests over processes (-n 2)."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import attacks
from figures import FIGURE, Figures
from postgres_server import PostgresServer
from redis_cluster import RedisCluster, three_and_three
from shared_stack import share, stacks  # noqa: F401  # pylint: disable=unused-import - fixtures
from tellerline import BIN, System, run

_passed = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="skip the tests marked long")
    parser.addoption("--machine", choices=("shared", "alone"),
                     help="only the tests that can share the machine with others, or only those that cannot")
    parser.addoption("--sanitized", choices=("yes", "no"),
                     help="only the tests whose programs are built with sanitizers, or only the others")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Figures(), "tellerline-figures")
    config.pluginmanager.register(attacks.Times(), "tellerline-attacks")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")  # gw0, gw1, ...
    if worker:
        # Each process chooses ports from a range of its own.
        os.environ["TELLERLINE_TEST_LANE"] = worker.removeprefix("gw")


def pytest_sessionstart() -> None:
    if not (BIN / "tellerline").exists():
        pytest.exit(f"no programs in {BIN}: build the preset release, or set TELLERLINE_TEST_BIN", 2)


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Runs the longest tests first, so that two processes end at about the same time. The rest keeps the file order."""
    attacks.mark(items)
    for item in items:
        if item.get_closest_marker("attack"):
            item.add_marker("sanitized")
    sanitized = config.getoption("sanitized")
    if sanitized is not None:
        items[:] = [item for item in items if bool(item.get_closest_marker("sanitized")) == (sanitized == "yes")]
    machine = config.getoption("machine")
    if machine is not None:
        items[:] = [item for item in items if bool(item.get_closest_marker("alone")) == (machine == "alone")]
    for item in items:
        if config.getoption("fast") and item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: left out by --fast"))
        if item.get_closest_marker("together") and config.pluginmanager.hasplugin("xdist"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=_seconds, reverse=True)


def _seconds(item: pytest.Item) -> float:
    """The estimated duration of a test, or of a group that one process must run. 0 if it is not marked."""
    mark = item.get_closest_marker("together") or item.get_closest_marker("long")
    return float(mark.kwargs.get("seconds", 0)) if mark else 0.0


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call":
        item.stash[_passed] = report.passed


@pytest.fixture(scope="module")
def running_cluster() -> Iterator[RedisCluster]:
    """Three masters, each with a replica."""
    with three_and_three() as cluster:
        yield cluster


@pytest.fixture
def cluster(running_cluster: RedisCluster) -> RedisCluster:
    """The same one for all tests of a file; each finds it whole and empty."""
    running_cluster.empty()
    return running_cluster


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Iterator[Callable[..., System]]:
    """Starts a System. After the test, checks it (System.finish) and stops it.

    start(queues={"q": {...}}, workers=1, dispatchers=1, admitters=1, expirers=1, notifiers=0, archivers=0,
          settings={"http": {...}}, redis={"appendfsync": "always"}, prepare=...)

    prepare(system) is called before the programs start.
    """
    systems: list[System] = []

    def start_one(queues: dict[str, dict[str, Any]], workers: int = 1, dispatchers: int = 1,
                  admitters: int = 1, expirers: int = 1, notifiers: int = 0, archivers: int = 0,
                  settings: dict[str, Any] | None = None,
                  redis: dict[str, str] | None = None,
                  prepare: Callable[[System], None] | None = None) -> System:
        counts = {"worker": workers, "dispatcher": dispatchers, "admitter": admitters,
                  "expirer": expirers, "notifier": notifiers, "archiver": archivers}
        system = System(queues, counts, settings or {}, redis or {})
        systems.append(system)
        if prepare is not None:
            prepare(system)
        system.start()
        return system

    yield start_one

    passed = request.node.stash.get(_passed, False)
    fine = False
    try:
        if passed:
            for system in systems:
                system.finish()
            fine = True
    finally:
        for system in systems:
            if not fine:
                for program in system.programs:
                    print(f"---- {program.name} ({program.log})\n{program.tail()}")
            system.close(keep=not fine)


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    """With the tables of an archive, in which there is nothing."""
    server = PostgresServer()
    server.start()
    done = run(BIN / "tellerline", "db", "migrate", env={"TELLERLINE_ARCHIVE_URL": server.url})
    assert done.returncode == 0 and "version 1 now" in done.stdout, done.stderr
    yield server
    server.remove()


@pytest.fixture(scope="session")
def one_chromium() -> Iterator[Any]:
    """Chromium, started once: by the first test that asks for it (browser.OneChromium)."""
    from browser import OneChromium  # pylint: disable=import-outside-toplevel
    one = OneChromium()
    yield one
    one.quit()


@pytest.fixture
def browser(one_chromium: Any, start: Callable[..., System]) -> Iterator[Any]:  # pylint: disable=unused-argument
    """Chromium with a fresh profile. After the test, its console must not hold errors of the pages.

    Leaves its pages before the programs of `start` stop: a worker ends the streams of those who still listen slowly.
    """
    yield one_chromium.begin()
    one_chromium.end()


@pytest.fixture(scope="session")
def one_firefox() -> Iterator[Any]:
    """Firefox, started once: by the first test that asks for it."""
    from firefox import firefox  # pylint: disable=import-outside-toplevel
    with firefox() as driver:
        yield driver


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Records a measured figure. All figures are printed at the end of the run."""
    return lambda text: request.node.user_properties.append((FIGURE, text))
