# SPDX-License-Identifier: Apache-2.0
"""The programs that an upgrade comes from: those of the release before this one, as soon as there is one.

Until then, and from a source archive without its history, they are built from this tree, with another version number.
"""
from __future__ import annotations

import fcntl
import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tellerline import TOP

_PROGRAMS = ["tellerline", *(f"tellerline-{role}" for role in ("worker", "dispatcher", "admitter", "expirer", "notifier", "archiver"))]
_FOLDER = TOP / "build" / "previous"
#: What this tree calls itself in its other build.
OTHER_VERSION = "0.0.1"


def release_before(repository: Path) -> str | None:
    """The newest tag v* that the history holds before its last commit. None: nothing was released before this."""
    done = subprocess.run(["git", "-C", str(repository), "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def previous_programs() -> Path:
    """The folder of those programs: named by TELLERLINE_TEST_PREVIOUS, or built once."""
    given = os.environ.get("TELLERLINE_TEST_PREVIOUS")
    if given:
        return Path(given)
    tag = release_before(TOP) if (TOP / ".git").exists() else None
    return _release(tag) if tag else _this_tree()


def _release(tag: str) -> Path:
    folder = _FOLDER / tag
    with _alone(folder):
        if not (folder / "built").exists():
            with tarfile.open(fileobj=io.BytesIO(_run("git", "-C", str(TOP), "archive", "--format=tar", tag))) as tar:
                tar.extractall(folder / "source")
            _build(folder / "source", folder / "build", "-DCMAKE_BUILD_TYPE=Release")
            (folder / "built").touch()
    return folder / "build" / "bin"


def _this_tree() -> Path:
    """Without link-time optimisation, which ccache could not keep."""
    folder = _FOLDER / "this"
    with _alone(folder):
        _build(TOP, folder / "build", "-DCMAKE_BUILD_TYPE=Release", f"-DTELLERLINE_VERSION={OTHER_VERSION}")
    return folder / "build" / "bin"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Several test processes may want them at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(source: Path, build: Path, *options: str) -> None:
    _run("cmake", "-S", str(source), "-B", str(build), "-G", "Ninja", "-DTELLERLINE_TESTS=OFF", *options)
    _run("nice", "cmake", "--build", str(build), "--target", *_PROGRAMS)


def _run(*command: str) -> bytes:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{(done.stdout[-3000:] + done.stderr[-3000:]).decode(errors='replace')}"
    return done.stdout
