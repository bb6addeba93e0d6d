"""The programs of the release before this one: named by TELLERLINE_TEST_PREVIOUS, or built from the history once."""
from __future__ import annotations

import fcntl
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tellerline import TOP

_PROGRAMS = ["tellerline", *(f"tellerline-{role}" for role in ("worker", "dispatcher", "admitter", "expirer", "notifier"))]


def release_before(repository: Path) -> str | None:
    """The newest tag v* that the history holds before its last commit. None: nothing was released before this."""
    done = subprocess.run(["git", "-C", str(repository), "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def previous_programs() -> Path:
    """The folder of those programs. Skips the test where nothing was released before."""
    given = os.environ.get("TELLERLINE_TEST_PREVIOUS")
    if given:
        return Path(given)
    tag = release_before(TOP) if (TOP / ".git").exists() else None
    if tag is None:
        pytest.skip("no release before this one: the history holds no tag v*, and TELLERLINE_TEST_PREVIOUS is not set")
    folder = TOP / "build" / "previous" / tag
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may want them at once
        if not (folder / "built").exists():
            _build(tag, folder)
            (folder / "built").touch()
    return folder / "build" / "bin"


def _build(tag: str, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(_run("git", "-C", str(TOP), "archive", "--format=tar", tag))) as tar:
        tar.extractall(folder / "source")
    cache = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    _run("cmake", "-S", str(folder / "source"), "-B", str(folder / "build"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         "-DTELLERLINE_TESTS=OFF", *cache)
    _run("cmake", "--build", str(folder / "build"), "--target", *_PROGRAMS)


def _run(*command: str) -> bytes:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{(done.stdout[-3000:] + done.stderr[-3000:]).decode(errors='replace')}"
    return done.stdout
