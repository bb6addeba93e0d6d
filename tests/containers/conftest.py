"""Fixtures of the container tests: the images, and whether there is an engine to run them at all."""
from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from engine import TOP, why_no_engine
from figures import FIGURE, Figures  # engine knows where the system tests' modules are

#: What the tests run is tagged so, and never `latest`.
TAG = "test"


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Figures(), "tellerline-figures")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_no_engine() if items else ""
    for item in items:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def provide(*tags: str) -> None:
    """Makes images of others available; a known reason why that cannot be done here skips the test."""
    done = subprocess.run([TOP / "tests/containers/base-images", *tags], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=1200, check=False)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr


def build(*options: str) -> str:
    """Runs deploy/images; the table it printed."""
    done = subprocess.run([TOP / "deploy/images", *options], capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="session")
def base_images() -> Callable[..., None]:
    """base_images("redis:8", ...) makes images of others available."""
    return provide


@pytest.fixture(scope="session")
def images() -> dict[str, str]:
    """The images of this tree, on Debian trixie: {"worker": "tellerline/worker:test", ...}."""
    provide("debian:trixie-slim")
    table = build("--tag", TAG)
    names = [line.split()[0] for line in table.splitlines()[1:]]
    return {name.partition("/")[2].partition(":")[0]: name for name in names}


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Notes a measured figure; all are printed at the end of the run."""
    return lambda text: record_property(FIGURE, text)
