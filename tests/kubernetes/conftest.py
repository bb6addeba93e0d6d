"""Fixtures: the validator, built once, and what it makes of the manifests."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import Cluster
from manifests import ALL, EXAMPLE, Object, Report, build_validator, copy_with_secrets
from tellerline import BIN

_figures: list[str] = []


@pytest.fixture(scope="session")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("validator") / "validate"
    _figures.append(build_validator(target))
    return target


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the manifests to spoil."""
    return copy_with_secrets(tmp_path / "kubernetes")


@pytest.fixture(scope="session")
def report(validator: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The manifests as they are."""
    return Report(validator, copy_with_secrets(tmp_path_factory.mktemp("manifests") / "kubernetes"), *ALL)


@pytest.fixture(scope="session")
def example(report: Report) -> list[Object]:
    return report.objects[EXAMPLE]


@pytest.fixture(scope="session")
def binaries() -> Path:
    if not (BIN / "tellerline").exists():
        pytest.fail(f"no programs in {BIN}: build the preset asan, or set TELLERLINE_TEST_BIN")
    return BIN


@pytest.fixture
def cluster(example: list[Object], binaries: Path, tmp_path: Path) -> Iterator[Cluster]:
    """The real programs and a real redis-server, started as the manifests of the example say."""
    running = Cluster(example, binaries, tmp_path)
    try:
        running.start()
        yield running
        running.finish()
    finally:
        running.close()


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    return lambda text: _figures.append(f"{request.node.name}: {text}")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _figures:
        terminalreporter.section("figures")
        for text in _figures:
            terminalreporter.write_line(text)
