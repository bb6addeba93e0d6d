# SPDX-License-Identifier: Apache-2.0
"""The package file, and the units of the tree."""
from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, Clone, Packages

# Of 100. The exposure level that systemd-analyze shows is a tenth of it.
EXPOSURE = 25


def said(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_units_are_confined() -> None:
    """systemd's exposure rating stays low for each service."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    units = sorted((ROOT / "deploy/systemd").glob("*.service"))
    assert len(units) == 8
    for unit in units:
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                               f"--threshold={EXPOSURE}", unit], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Overall exposure level" in done.stdout


def test_lintian_has_nothing_to_say(packages: Packages) -> None:
    """No error, and only the warnings that deploy/debian/lintian-accepted explains."""
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    root = ["--allow-root"] if os.geteuid() == 0 else []
    done = subprocess.run(["lintian", *root, "--fail-on", "error,warning", "--suppress-tags-from-file",
                           ROOT / "deploy/debian/lintian-accepted", packages.first], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_installed_unasked(tmp_path: Path) -> None:
    """On a machine that has none of the packages it says which, and does not call apt-get."""
    called = tmp_path / "called"
    for name, does in (("dpkg-query", "exit 1"), ("apt-get", f"touch {called}")):
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\n{does}\n")
        tool.chmod(0o755)
    done = subprocess.run([ROOT / "deploy/package", "--output", tmp_path / "out"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 1 and "--install" in done.stderr and "help2man" in done.stderr, done.stderr
    assert not called.exists() and not (tmp_path / "out").exists()


def test_control(packages: Packages) -> None:
    """Depends follows from the linked libraries, and both configuration files are registered as conffiles."""
    depends = said("dpkg-deb", "-f", packages.first, "Depends")
    assert "libhiredis" in depends and "libmicrohttpd" in depends and "libc6 (>=" in depends
    assert said("dpkg-deb", "-f", packages.first, "Recommends").startswith("redis-server (>= 5:7.0) | valkey-server")
    conffiles = said("dpkg-deb", "-I", packages.first, "conffiles").split()
    assert conffiles == ["/etc/default/tellerline", "/etc/tellerline/tellerline.yaml"]
    assert said("dpkg-deb", "-f", packages.second, "Version").strip().endswith("-2")


def test_programs_are_hardened(packages: Packages, tmp_path: Path) -> None:
    """Position-independent, full RELRO, bound at start, stack protector, _FORTIFY_SOURCE."""
    subprocess.run(["dpkg-deb", "-x", packages.first, tmp_path], check=True)
    done = subprocess.run([ROOT / "tests/gates/hardening", "--fortified", tmp_path / "usr/bin"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_manual_pages_say_what_the_programs_say(packages: Packages, tmp_path: Path) -> None:
    """Every option that --help lists is in the program's manual page."""
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    subprocess.run(["dpkg-deb", "-x", packages.first, tmp_path], check=True)
    programs = sorted((tmp_path / "usr/bin").iterdir())
    assert len(programs) == 7
    for program in programs:
        section = "1" if program.name == "tellerline" else "8"
        page = subprocess.run(["man", "-l", tmp_path / f"usr/share/man/man{section}/{program.name}.{section}.gz"],
                              capture_output=True, text=True, check=True, env={**os.environ, "MANWIDTH": "120"}).stdout
        words = [line.split()[0] for line in said(program, "--help").splitlines() if line.startswith("  ")]
        assert len(words) >= 4
        for word in words:
            assert word in page, f"{program.name}: {word} is not in its manual page"


def test_shells_find_the_completions(packages: Packages, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "-x", packages.first, tmp_path], check=True)
    for name in ("bash-completion/completions/tellerline", "zsh/vendor-completions/_tellerline",
                 "fish/vendor_completions.d/tellerline.fish"):
        assert "tellerline complete" in (tmp_path / "usr/share" / name).read_text(), name


def test_alerts_and_graphs_are_installed(packages: Packages, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "-x", packages.first, tmp_path], check=True)
    for name in ("alerts.yml", "rules.yml", "dashboard.json"):
        installed = tmp_path / "usr/share/tellerline/monitoring" / name
        assert installed.read_bytes() == (ROOT / "deploy/monitoring" / name).read_bytes(), name


def test_users_of_redis_can_be_made(packages: Packages, tmp_path: Path) -> None:
    """As docs/operators/redis.md says: from the package alone, without the sources."""
    subprocess.run(["dpkg-deb", "-x", packages.first, tmp_path], check=True)
    users = tmp_path / "users"
    subprocess.run([tmp_path / "usr/share/tellerline/redis/make-users", users], check=True)
    made = (users / "users.acl").read_text()
    for name in ("admin", "operator", "control", "worker", "dispatcher", "admitter", "expirer", "notifier", "archiver"):
        password = (users / f"{name}.password").read_text().strip()
        assert "#" + hashlib.sha256(password.encode()).hexdigest() in made, name


@pytest.mark.xdist_group("clone")
@pytest.mark.long(60)
def test_same_sources_same_package(packages: Packages, clone: Clone) -> None:
    """Built again from scratch in another folder and another time zone, without a cache of the compiler, the package is
    bit-for-bit identical."""
    done = subprocess.run([clone.folder / "deploy/package"], cwd=clone.folder, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, env=os.environ | clone.settings)
    assert done.returncode == 0, done.stdout + done.stderr
    again = clone.folder / done.stdout.split()[0]
    same = again.read_bytes() == packages.first.read_bytes()  # pytest would look for the difference for an hour
    assert same, f"{again} differs from the one of build/release"
