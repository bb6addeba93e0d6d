"""The programs of the release before this one, built from the repository's own history."""
from __future__ import annotations

import fcntl
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from tellerline import TOP

#: The release that an upgrade starts from.
COMMIT = "72088a6d4a92619a4a859de645280c80b6169b6c"

_FOLDER = TOP / "build" / "previous" / COMMIT
_PROGRAMS = ["tellerline", *(f"tellerline-{role}" for role in ("worker", "dispatcher", "admitter", "expirer"))]


def previous_programs() -> Path:
    """The folder of the programs of the release before. Builds them once; skips the test where the history ends later."""
    folder = _FOLDER / "build" / "bin"
    _FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with (_FOLDER.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may want them at once
        if not (_FOLDER / "built").exists():
            _unpack(_archive())
            _run("cmake", "-S", str(_FOLDER / "source"), "-B", str(_FOLDER / "build"), "-G", "Ninja",
                 "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DTELLERLINE_TESTS=OFF")
            _run("nice", "-n", "15", "cmake", "--build", str(_FOLDER / "build"), "--target", *_PROGRAMS)
            (_FOLDER / "built").touch()
    return folder


def _archive() -> bytes:
    done = subprocess.run(["git", "-C", str(TOP), "archive", "--format=tar", COMMIT], stdin=subprocess.DEVNULL,
                          capture_output=True, check=False) if (TOP / ".git").exists() else None
    if done is None or done.returncode != 0:
        why = done.stderr.decode(errors="replace").strip() if done is not None else "no repository"
        pytest.skip(f"the history does not hold the release before ({COMMIT[:7]}): {why}")
    return done.stdout


def _unpack(archive: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(_FOLDER / "source")


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
