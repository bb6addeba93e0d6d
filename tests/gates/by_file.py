# SPDX-License-Identifier: Apache-2.0
"""Gates that look at one file at a time: what each result depends on, and runs over those that are not known to pass.

A file's result depends on the file, every own header that it may include (directly or not), the command that compiles
it, the configuration of the tool, the tool, and the headers of the system. ../cached.py keeps the results.
"""
from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import cached  # noqa: E402

TOP = Path(__file__).resolve().parents[2]
FOLDERS = ["common", "dispatcher", "worker", "admitter", "expirer", "notifier", "archiver", "lab", "ctl", "tests", "bench"]
#: Where compilers look for headers beside those of the project.
SYSTEM_HEADERS = ["/usr/local/include", "/usr/include", "/usr/lib/gcc",
                  *sorted(map(str, Path("/usr/lib").glob("llvm-*/lib/clang")))]
#: So many files are given to a tool at once: its start costs as much as a small file.
BATCH = 6

_INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)


def own_files(*suffixes: str) -> list[str]:
    """Our own files with such a suffix, without generated ones, as paths from the top."""
    return sorted(str(path.relative_to(TOP)) for folder in FOLDERS for path in (TOP / folder).rglob("*")
                  if path.suffix in suffixes)


class Includes:
    """The own headers that a file may include. Without the preprocessor: it takes those under a false #if, too."""

    def __init__(self, folders: Iterable[str] = ()) -> None:
        """`folders` are those of all -I: a header counts if it is in one of them, whether this file sees it or not."""
        self._folders = [str(TOP), *folders]
        self._found: dict[str, list[str]] = {}
        self._direct = functools.cache(self._read)

    def _in_folders(self, name: str) -> list[str]:
        if name not in self._found:
            paths = {os.path.realpath(path) for folder in self._folders
                     if os.path.isfile(path := os.path.join(folder, name))}
            self._found[name] = sorted(paths)
        return self._found[name]

    def _read(self, path: str) -> list[str]:
        found = []
        for name in _INCLUDE.findall(Path(path).read_text(errors="replace")):
            beside = os.path.join(os.path.dirname(path), name)
            found += [*self._in_folders(name), *([os.path.realpath(beside)] if os.path.isfile(beside) else [])]
        return found

    def all_of(self, path: str | Path) -> list[str]:
        """The file and what it may include, sorted."""
        todo = [os.path.realpath(TOP / path)]
        found = set(todo)
        while todo:
            for each in self._direct(todo.pop()):
                if each not in found:
                    found.add(each)
                    todo.append(each)
        return sorted(found)


class Commands:
    """How the build compiles each file."""

    def __init__(self, build: Path) -> None:
        self._of: dict[str, str] = {}
        folders = set()
        for entry in json.loads((build / "compile_commands.json").read_text()):
            source = os.path.join(entry["directory"], entry["file"])
            if source.startswith(f"{TOP}/"):
                name = os.path.relpath(source, TOP)
                self._of[name] = self._of.get(name, "") + entry["command"] + "\n"
            words = shlex.split(entry["command"])
            folders |= {word[2:] for word in words if word.startswith("-I") and word[2:].startswith(str(TOP))}
        self.includes = Includes(sorted(folders))

    def __contains__(self, file: str) -> bool:
        return file in self._of

    def add(self, key: cached.Key, file: str) -> cached.Key:
        return key.text(self._of[file]).files(*self.includes.all_of(file))


def system_headers(key: cached.Key) -> cached.Key:
    return key.files(*SYSTEM_HEADERS)


def check(name: str, keys: dict[str, cached.Key], run: Callable[[list[str]], subprocess.CompletedProcess[str]],
          batch: int = BATCH) -> int:
    """Runs over the files whose keys are not known to pass, on all processors. Returns the exit status of the gate.

    A batch passes as a whole: when it fails, none of its files is recorded.
    """
    results = cached.Results()
    todo = [file for file, key in keys.items() if not results.passed(key)]
    batches = [todo[at:at + batch] for at in range(0, len(todo), batch)]
    failed = False
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for files, done in zip(batches, pool.map(run, batches)):
            if done.returncode == 0:
                for file in files:
                    results.record(keys[file])
            else:
                failed = True
                ended = f"{name} ended with status {done.returncode}: {' '.join(files)}"
                print(done.stdout.strip() or ended, flush=True)
    print(f"{name}: {len(todo)} checked, {len(keys) - len(todo)} cached")
    return 1 if failed or not keys else 0


def said(*command: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a command in the top folder, with its errors among its output."""
    return subprocess.run(command, cwd=TOP, input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
