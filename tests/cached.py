#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command, unless it passed on this machine before with the same inputs, bit for bit.

Usage: cached [OPTION...] [FILE...] -- COMMAND [ARGUMENT...]
       cached --look [OPTION...] [FILE...] [-- COMMAND...]     status 0 if that passed before, 1 if not; runs nothing
       cached --record [OPTION...] [FILE...] [-- COMMAND...]   says that it passed; runs nothing

A FILE may be a folder: then all files below it count. One that does not exist counts as missing. The inputs are these
files, the command, the machine, and:
  --program FILE     an executable (a path, or a name in PATH) with the shared libraries it loads; may be repeated
  --files-from FILE  more files, one a line; - is the standard input
  --env NAME         the value of this variable; may be repeated. No other variable counts
  --text TEXT        anything else that the result depends on; may be repeated
Beside them:
  --keep FILE        a result of the command, such as a JUnit file: kept when it passes, put back when it is not run
  --name NAME        what the lines say (default: the command)

On a hit the line `cached: NAME (passed 2026-01-31 12:00:00)` is printed and the status is 0. Otherwise the command
runs and its status is ours. It passed if its status is 0, all files to keep exist, and no input changed meanwhile.
Files in the repository count by their path in it and what they hold, so that all clones share results. Other files
(compilers, libraries) count by their path, size and times. Nothing else is known of the command: what it reads and is
not named here does not count, such as files, Redis, or the network.

The cache is ${XDG_CACHE_HOME:-~/.cache}/tellerline-tests/. What was not used for 30 days is deleted.
TELLERLINE_TEST_CACHE=off turns it off: everything runs, and nothing is looked up or kept.

In Python: `import cached`; make a Key, add inputs to it, ask Results().passed(key), and record(key) what passed.
"""
from __future__ import annotations

import argparse
import functools
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
DAYS = 30
#: To be changed when a result of the past must not be believed any longer.
VERSION = "1"


@functools.cache
def identity(path: str) -> str:
    """A file: by its content in the repository, by its size and times elsewhere."""
    try:
        stat = os.stat(path)
        if path.startswith(f"{TOP}/"):
            with open(path, "rb") as file:
                return f"{stat.st_mode & 0o111:o} {hashlib.file_digest(file, 'sha256').hexdigest()}"
        return f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"
    except OSError:
        return "missing"


@functools.cache
def below(folder: str) -> tuple[str, ...]:
    """All files below a folder. What Python compiled for itself is not counted."""
    return tuple(sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names
                        if not where.endswith("__pycache__")))


@functools.cache
def libraries(program: str) -> tuple[str, ...]:
    """The shared libraries that an executable loads, and its loader. None for a script."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return tuple(sorted({word for word in said.split() if word.startswith("/")}))


class Key:
    """All that a result depends on, as one hash."""

    def __init__(self, *texts: str) -> None:
        self._hash = hashlib.sha256()
        self.text(VERSION, *os.uname(), *texts)

    def text(self, *texts: str) -> Key:
        """Paths in the repository are taken from its top, so that all clones have the same."""
        for text in texts:
            self._hash.update(text.replace(str(TOP), "TOP").encode() + b"\0")
        return self

    def files(self, *paths: str | Path) -> Key:
        for path in paths:
            path = os.path.abspath(path)
            for each in below(path) if os.path.isdir(path) else (path,):
                self.text(each, identity(each))
        return self

    def programs(self, *names: str | Path) -> Key:
        for name in names:
            path = shutil.which(name) or str(name)
            # The target of a link, too: an alternative may be switched.
            self.files(path, os.path.realpath(path), *libraries(path))
        return self

    def environment(self, *names: str) -> Key:
        return self.text(*(f"{name}={os.environ.get(name, 'unset')}" for name in names))

    def copy(self) -> Key:
        other = object.__new__(Key)
        other._hash = self._hash.copy()
        return other

    def __str__(self) -> str:
        return self._hash.hexdigest()


def forget_files() -> None:
    """Files may have changed: look at them again."""
    for each in (identity, below, libraries):
        each.cache_clear()


class Results:
    """What passed on this machine."""

    def __init__(self) -> None:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.folder = Path(home, "tellerline-tests")
        self.on = os.environ.get("TELLERLINE_TEST_CACHE") != "off"

    def _entry(self, key: Key) -> Path:
        return self.folder / str(key)[:2] / str(key)[2:]

    def passed(self, key: Key, keep: list[Path] = []) -> float | None:
        """When that passed, or None. The files that were kept are put back."""
        entry = self._entry(key)
        try:
            when = float((entry / "when").read_text()) if self.on else None
            if when:
                for number, file in enumerate(keep):
                    file.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(entry / f"kept-{number}", file)
                os.utime(entry)
            return when
        except (OSError, ValueError):
            return None

    def record(self, key: Key, keep: list[Path] = []) -> None:
        """Without a place to write to, nothing is recorded, and all runs again."""
        if not self.on or not all(file.is_file() for file in keep):
            return
        try:
            self._write(self._entry(key), keep)
            self._clean()
        except OSError as error:
            print(f"cached: not recorded: {error}", file=sys.stderr)

    def _write(self, entry: Path, keep: list[Path]) -> None:
        entry.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix="new-", dir=self.folder))
        for number, file in enumerate(keep):
            shutil.copyfile(file, new / f"kept-{number}")
        (new / "when").write_text(str(time.time()))
        try:
            new.rename(entry)
        except OSError:  # another process was faster
            shutil.rmtree(new)

    def _clean(self) -> None:
        """Once a day, deletes what was not used for long."""
        stamp, now = self.folder / "cleaned", time.time()
        if stamp.exists() and now - stamp.stat().st_mtime < 86400:
            return
        stamp.touch()
        for entry in [*self.folder.glob("??/*"), *self.folder.glob("new-*")]:
            if now - entry.stat().st_mtime > DAYS * 86400:
                shutil.rmtree(entry, ignore_errors=True)


def make_key(options: argparse.Namespace, listed: list[str], command: list[str]) -> Key:
    key = Key(os.path.relpath(os.getcwd(), TOP) if Path.cwd().is_relative_to(TOP) else os.getcwd())
    key.text("command", *command)
    key.files(*options.files, *listed).text("programs").programs(*options.program)
    return key.text("environment").environment(*options.env).text("text", *options.text)


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser("cached", usage=(__doc__ or "").replace("%", "%%"), add_help=False)
    parser.add_argument("--help", action="store_true")
    parser.add_argument("--look", action="store_true")
    parser.add_argument("--record", action="store_true")
    for name in ("--program", "--env", "--text", "--keep"):
        parser.add_argument(name, action="append", default=[])
    parser.add_argument("--files-from")
    parser.add_argument("--name")
    parser.add_argument("files", nargs="*")
    options, command = parser.parse_args(arguments[:cut]), arguments[cut + 1:]
    if options.help:
        print(__doc__)
        sys.exit(0)
    if not command and not options.look and not options.record:
        parser.error("there is no command")
    return options, command


def main() -> int:
    options, command = parse(sys.argv[1:])
    listed: list[str] = []
    if options.files_from:
        text = sys.stdin.read() if options.files_from == "-" else Path(options.files_from).read_text()
        listed = text.splitlines()
    results, keep = Results(), [Path(file) for file in options.keep]
    key = make_key(options, listed, command)
    if options.record:
        results.record(key, keep)
        return 0
    when = results.passed(key, keep)
    if when:
        name = options.name or " ".join(command) or " ".join(options.files)
        print(f"cached: {name} (passed {time.strftime('%F %T', time.localtime(when))})", flush=True)
        return 0
    if options.look:
        return 1
    for file in keep:
        file.unlink(missing_ok=True)
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        print(f"cached: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    # A command that is told to end may take its time to put things away. An interrupt reaches it without us.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    status = child.wait()
    forget_files()
    if status == 0 and str(make_key(options, listed, command)) == str(key):
        results.record(key, keep)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
