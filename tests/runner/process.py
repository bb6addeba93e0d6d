# SPDX-License-Identifier: Apache-2.0
"""One command of a stage: in a process group of its own, within a limit, with its output in a log and its cost known."""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

#: Whatever a run starts inherits this variable, also what leaves the process group: RUN.STAGE (see end_leftovers).
MARK = "TESTS_RUN"
RUN = f"{os.getpid()}-{int(time.time())}"
TIMED_OUT = -1
#: How long a command that was interrupted may put things away (seconds).
GRACE = 60

_running: set[int] = set()
_lock = threading.Lock()


@dataclass
class Done:
    status: int  # TIMED_OUT, -signal, or what it exited with
    seconds: float
    cpu: float  # of it and of what it waited for, in seconds


def _show(log: Path, ended: threading.Event) -> None:
    """Copies what is appended to the log to standard output until the command has ended."""
    with log.open(errors="replace") as file:
        while True:
            last = ended.is_set()
            text = file.read()
            if text:
                sys.stdout.write(text)
                sys.stdout.flush()
            if last:
                return
            ended.wait(0.2)


def _reap(pid: int, limit: float) -> tuple[int, float] | None:
    """Its status and processor time, or None when it still runs after so many seconds."""
    end = time.monotonic() + limit
    pause = 0.002
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        if time.monotonic() > end:
            return None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def _tell(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        pass


def run(command: list[str | Path], log: Path, limit: float, stage: str, show: bool = False,
        env: dict[str, str] | None = None) -> Done:
    """Runs a command for at most `limit` seconds; then it is interrupted, so that pytest puts everything away and still
    writes its results. Appends its output to the log and, with show, copies it to ours."""
    began = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        if limit <= 0:
            out.write(f"tests/run: no time is left for: {' '.join(map(str, command))}\n".encode())
            return Done(TIMED_OUT, 0, 0)
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                                 env={**os.environ, MARK: f"{RUN}.{stage}", **(env or {})})
    with _lock:
        _running.add(child.pid)
    ended = threading.Event()
    reader = threading.Thread(target=_show, args=(log, ended)) if show else None
    if reader:
        reader.start()
    late = False
    found = _reap(child.pid, limit)
    if found is None:
        late = True
        _tell(child.pid, signal.SIGINT)
        found = _reap(child.pid, GRACE)
    if found is None:
        _tell(child.pid, signal.SIGKILL)
        found = _reap(child.pid, 1e9)
    assert found is not None
    child.returncode = found[0]  # it is reaped: Popen need not wait
    with _lock:
        _running.discard(child.pid)
    if late:
        with log.open("a") as file:
            file.write(f"tests/run: not done within {limit:.0f} s: {' '.join(map(str, command))}\n")
    ended.set()
    if reader:
        reader.join()
    return Done(TIMED_OUT if late else found[0], time.monotonic() - began, found[1])


def end_running() -> None:
    """Ends the commands that run now."""
    with _lock:
        pids = list(_running)
    for pid in pids:
        _tell(pid, signal.SIGINT)
        _tell(pid, signal.SIGTERM)


def end_leftovers(stage: str = "") -> None:
    """Kills what carries the mark of a stage, or of all of this run, and outlived it."""
    wanted = f"{MARK}={RUN}.{stage}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            marks = [entry for entry in (folder / "environ").read_bytes().split(b"\0") if entry.startswith(wanted)]
            if marks and (not stage or wanted in marks):
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                print(f"tests/run: left behind, and ended: {words[:200]}", flush=True)
                os.kill(int(folder.name), signal.SIGKILL)
        except (OSError, ValueError):
            continue


def clean_up(folder: Path, stage: str, log: Path) -> None:
    """What a process group cannot hold, such as containers, is put away by a script in the folder: clean-up MARK."""
    if (folder / "clean-up").exists() and shutil.which("docker"):
        if run([folder / "clean-up", f"{RUN}.{stage}"], log, 600, "clean-up").status != 0:
            print(f"tests/run: {folder}/clean-up failed (log: {log})", flush=True)
