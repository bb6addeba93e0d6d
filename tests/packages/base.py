# SPDX-License-Identifier: Apache-2.0
"""A Debian system of this machine's release in a folder. Every machine of these tests is a copy of it.

It is made once a week (about 300 MB in ~/.cache/tellerline-tests), by tests/debian-root. The settings that this
machine's apt needs to reach an archive (mirrors, proxies, credentials) are copied into the folder and stored nowhere
else.
"""
from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tellerline-tests"
WEEK = 7 * 24 * 3600
MAKE_ROOT = Path(__file__).resolve().parents[1] / "debian-root"
SYSTEM = ["systemd", "systemd-sysv", "dbus", "ca-certificates", "curl"]
# In addition to the package's dependencies. Installed from the folder's package cache, without a network.
EXTRA = ["redis-server", "postgresql", "sudo"]
APT_SETTINGS = ["apt.conf", "apt.conf.d", "auth.conf", "auth.conf.d", "trusted.gpg", "trusted.gpg.d", "keyrings"]
# Container images empty the package cache after every installation. Here the cache replaces the network.
KEEP_CACHE = "#clear DPkg::Post-Invoke;\n#clear APT::Update::Post-Invoke;\nAPT::Keep-Downloaded-Packages \"true\";\n"


def codename() -> str:
    """The name of this machine's Debian release: "bookworm"."""
    lines = Path("/etc/os-release").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["VERSION_CODENAME"].strip('"')


def sources(release: str) -> list[tuple[str, str]]:
    """Address and suite of this machine's sources for the release's main component, its own suite first."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)",
                             "Created-By: Packages"], capture_output=True, text=True, check=True).stdout
    rows = {tuple(line.split()) for line in listed.splitlines()}
    found = [(row[0], row[1]) for row in rows
             if len(row) == 3 and row[2] == "main" and row[1].split("-")[0] == release]
    return sorted(found, key=lambda source: source[1])


def dependencies(package: Path) -> list[str]:
    """The first choice of each dependency of a package file."""
    field = subprocess.run(["dpkg-deb", "-f", str(package), "Depends"], capture_output=True, text=True,
                           check=True).stdout
    return [choice.split("|")[0].split("(")[0].strip() for choice in field.split(",")]


def base(package: Path) -> Path:
    """The system's folder. Makes it if it is missing or outdated, with a log beside it."""
    release = codename()
    wanted = SYSTEM + EXTRA + dependencies(package)
    made_of = [date.today().strftime("%G-%V"), release, *wanted, MAKE_ROOT.read_text(), Path(__file__).read_text()]
    made = CACHE / f"machine-{hashlib.sha256(chr(10).join(made_of).encode()).hexdigest()[:16]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with _locked(CACHE / "machine.lock"):
        if not made.exists():
            part = made.with_suffix(".part")
            for outdated in (part, *(old for old in CACHE.glob("machine-*") if time.time() - old.stat().st_mtime > WEEK)):
                if outdated.is_dir():
                    shutil.rmtree(outdated)
            with (CACHE / "machine.log").open("w") as log:
                _make(part, release, wanted, log)
            part.rename(made)
    return made


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(root: Path, release: str, wanted: list[str], log) -> None:
    found = sources(release)
    assert found, f"no apt source of this machine is for {release}"

    def run(*command: str | Path) -> None:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        # Its mounts (/proc, /sys) disappear when it ends, for any reason.
        status = subprocess.run(["unshare", "--mount", *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                env=environment, check=False).returncode
        assert status == 0, f"{' '.join(map(str, command[:3]))}... ended with {status}: see {log.name}"

    run(MAKE_ROOT, release, root, *SYSTEM)
    run("systemd-machine-id-setup", f"--root={root}")  # without one, systemd treats every boot as the first
    _carry_over_apt(root / "etc/apt", found)
    run("chroot", str(root), "apt-get", "update")
    run("chroot", str(root), "apt-get", "install", "-y", "--no-install-recommends", "--download-only", *wanted)


def _carry_over_apt(target: Path, found: list[tuple[str, str]]) -> None:
    for name in APT_SETTINGS:
        source = Path("/etc/apt") / name
        if source.is_dir():
            shutil.copytree(source, target / name, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy2(source, target / name)
    (target / "sources.list.d/debian.sources").unlink(missing_ok=True)
    (target / "sources.list").write_text("".join(f"deb {uri} {suite} main\n" for uri, suite in found))
    (target / "apt.conf.d/zz-keep-cache").write_text(KEEP_CACHE)
