# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the container tests: the images, and the check for a usable engine."""
from __future__ import annotations

import fcntl
import json
import os
import platform
import subprocess
from collections.abc import Callable

import pytest

from engine import TOP, why_no_engine
from figures import FIGURE, Figures  # engine knows where the system tests' modules are

#: The tags of the tested images begin with this, never `latest`. Each clone has its own.
TAG = subprocess.run([TOP / "tests/containers/images", "--tag"], capture_output=True, text=True,
                     check=True).stdout.strip()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--machine", choices=("shared", "alone"),
                     help="only the tests that can share the machine with others, or only those that cannot")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Figures(), "tellerline-figures")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Runs the longest tests first, so that parallel processes end at about the same time."""
    machine = config.getoption("machine")
    if machine is not None:
        items[:] = [item for item in items if bool(item.get_closest_marker("alone")) == (machine == "alone")]
    reason = why_no_engine() if items else ""
    for item in items:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
    items.sort(key=_seconds, reverse=True)


def _seconds(item: pytest.Item) -> float:
    mark = item.get_closest_marker("long")
    return float(mark.kwargs["seconds"]) if mark else 0.0


def provide(*tags: str) -> None:
    """Provides third-party images. Skips the test if this machine cannot provide them for a known reason."""
    done = subprocess.run([TOP / "tests/containers/base-images", *tags], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr


def build(*options: str) -> dict[str, str]:
    """Runs deploy/images; the images it names, as {"worker": "localhost/tellerline/worker:test", ...}."""
    done = subprocess.run([TOP / "deploy/images", *options], capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    names = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    return {name.rpartition("/")[2].partition(":")[0]: name for name in names}


def codename() -> str:
    """The name of this machine's release, if it is Debian: "bookworm"."""
    release = platform.freedesktop_os_release()
    return release.get("VERSION_CODENAME", "") if release["ID"] == "debian" else ""


def options(debian: str, tag: str) -> list[str]:
    """What deploy/images is told. Images of this machine's release take the programs of the standing release build;
    the script `images` does the same."""
    return ["--debian", debian, "--tag", tag, *(["--built"] if debian == codename() else [])]


def build_once(debian: str) -> dict[str, str]:
    """Builds the images of this tree on a Debian release. With xdist only the first process builds, so that the tag
    does not move while a test of another process builds without the cache."""
    tag = f"{TAG}-{debian}"
    made = TOP / "build" / f"images-{tag}.json"
    made.parent.mkdir(exist_ok=True)
    run_id = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    with made.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        before = json.loads(file.read() or "{}")
        if run_id and before.get("run") == run_id:
            return before["images"]
        provide(f"debian:{debian}-slim")
        found = build(*options(debian, tag))
        file.truncate(0)
        json.dump({"run": run_id, "images": found}, file)
        return found


@pytest.fixture(scope="session")
def base_images() -> Callable[..., None]:
    """base_images("redis:8", ...) provides third-party images."""
    return provide


@pytest.fixture(scope="session")
def images() -> dict[str, str]:
    """The images of this tree, on Debian trixie: {"worker": "localhost/tellerline/worker:test", ...}."""
    return build_once("trixie")


@pytest.fixture(scope="session")
def bookworm_images() -> dict[str, str]:
    """The images of this tree, on Debian bookworm."""
    return build_once("bookworm")


@pytest.fixture(scope="session")
def quick_images(images: dict[str, str], bookworm_images: dict[str, str]) -> tuple[str, dict[str, str]]:
    """The Debian release whose images are quick to build again, and the images."""
    return ("bookworm", bookworm_images) if codename() == "bookworm" else ("trixie", images)


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Records a measured figure. All figures are printed at the end of the run."""
    return lambda text: request.node.user_properties.append((FIGURE, text))
