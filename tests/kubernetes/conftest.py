# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the validator and its results for the manifests."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster import Cluster
from figures import FIGURE, Figures
from manifests import ALL, EXAMPLE, Object, Report, Validator, copy_with_secrets
from tellerline import BIN


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Figures(), "tellerline-figures")


@pytest.fixture(scope="session")
def validator() -> Validator:
    return Validator()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the manifests that a test may damage."""
    return copy_with_secrets(tmp_path / "kubernetes")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifests as they are, with new secrets."""
    return copy_with_secrets(tmp_path_factory.mktemp("manifests") / "kubernetes")


@pytest.fixture(scope="session")
def report(validator: Validator, folder: Path) -> Report:
    return Report(validator, folder, *ALL)


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
    """The real programs and a real redis-server, started according to the manifests of the example."""
    running = Cluster(example, binaries, tmp_path)
    try:
        running.start()
        yield running
        running.finish()
    finally:
        running.close()


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Records a measured figure. All figures are printed at the end of the run."""
    return lambda text: request.node.user_properties.append((FIGURE, text))
