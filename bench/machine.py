# SPDX-License-Identifier: Apache-2.0
"""What a run was measured on: the machine, and the versions of what took part."""
from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from servers import postgres_program

LIBRARIES = ["hiredis", "libmicrohttpd", "libuv", "jansson", "libsodium", "libpq"]


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or done.stderr).strip().split("\n")[0]


def _field(path: str, name: str) -> str:
    try:
        found = re.search(rf"^{name}\s*:\s*(.*)$", Path(path).read_text(), re.MULTILINE)
    except OSError:
        return ""
    return found[1].strip() if found else ""


def machine(folder: Path) -> dict[str, str]:
    """Name and value of everything about the machine that figures depend on. folder: where servers keep their data."""
    cores = len(os.sched_getaffinity(0))
    model = _field("/proc/cpuinfo", "model name") or platform.machine()
    memory = _field("/proc/meminfo", "MemTotal").split()
    virtual = _first_line("systemd-detect-virt") if shutil.which("systemd-detect-virt") else ""
    if not virtual and "hypervisor" in _field("/proc/cpuinfo", "flags"):
        virtual = "yes"
    system = _field_of_release("PRETTY_NAME")
    return {
        "processor": model,
        "cores": f"{cores} usable of {os.cpu_count()}",
        "memory": f"{int(memory[0]) / 1024 / 1024:.1f} GiB" if memory else "?",
        "kernel": platform.release(),
        "system": system or platform.platform(),
        "virtual machine": virtual or "no",
        "file system of the servers' data": _first_line("stat", "--file-system", "--format=%T", str(folder)),
        "load before the run": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def _field_of_release(name: str) -> str:
    try:
        found = re.search(rf'^{name}="?([^"\n]*)', Path("/etc/os-release").read_text(), re.MULTILINE)
    except OSError:
        return ""
    return found[1] if found else ""


def commit(top: Path) -> str:
    """The commit measured, with a mark when the tree was changed since."""
    if not (top / ".git").exists() or shutil.which("git") is None:
        return "unknown (not a clone)"
    name = _first_line("git", "-C", str(top), "rev-parse", "--short=12", "HEAD")
    changed = subprocess.run(["git", "-C", str(top), "status", "--porcelain", "--untracked-files=no"],
                             capture_output=True, text=True).stdout.strip()
    return name + (" with local changes" if changed else "")


def versions(top: Path) -> dict[str, str]:
    """Versions of Tellerline, the servers, the compiler and the libraries, where they are installed."""
    found = {"Tellerline commit": commit(top)}
    redis = re.search(r"v=(\S+)", _first_line("redis-server", "--version"))
    if redis:
        found["redis-server"] = redis[1]
    postgres = postgres_program("postgres")
    if postgres:
        found["PostgreSQL"] = _first_line(postgres, "--version").removeprefix("postgres (PostgreSQL) ")
    if shutil.which("wrk"):
        found["wrk"] = _first_line("wrk", "--version").split(" [")[0].removeprefix("wrk ")
    found["compiler"] = _first_line("cc", "--version")
    for name in LIBRARIES:
        version = _first_line("pkg-config", "--modversion", name)
        if re.fullmatch(r"[\w.+~-]+", version):
            found[name] = version
    return found
