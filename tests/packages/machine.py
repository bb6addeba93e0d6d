# SPDX-License-Identifier: Apache-2.0
"""A machine with systemd as its first process, in a container of systemd-nspawn. It has no container engine, only a
loopback network, and shares only the kernel with the host. Needs root. The host need not run systemd.
"""
from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from waiting import patient, wait_until

CGROUPS = Path("/sys/fs/cgroup")


def why_not() -> str | None:
    """The reason why this host cannot run machines. None if it can."""
    if os.geteuid() != 0:
        return "a machine with systemd needs root"
    tools = ("mmdebstrap", "systemd-nspawn", "nsenter", "setpriv")
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if Path("/etc/debian_version").exists():
        return None
    return "the package is for Debian, and this is none"


def wait_for(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Polls until the condition holds."""
    wait_until(condition, seconds, what, every=0.05)


class Machine:
    """The base system, booted. Its writes stay in memory and disappear with it. close() stops it. It also shuts down
    when the process that created it ends."""

    def __init__(self, base: Path, folder: Path) -> None:
        self.name = f"tellerline-{os.getpid()}-{secrets.token_hex(4)}"
        self.log = folder / f"{self.name}.log"
        self._cgroups = self._make_cgroups()
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._init: int | None = None  # the machine's first process, by its id on the host
        try:
            self._boot(base)
        except BaseException:
            self.close()
            raise

    # ---- for tests ----

    @property
    def root(self) -> Path:
        """The machine's file system, as the host sees it."""
        return Path(f"/proc/{self._init}/root")

    def run(self, command: str, check: bool = True, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Runs a shell command as root in the machine."""
        inside = ["nsenter", "--target", str(self._init), "--all", "env", "-i", "HOME=/root", "LC_ALL=C.UTF-8",
                  "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", command]
        done = subprocess.run(inside, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patient(seconds),
                              check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{command}\nended with {done.returncode}\n{done.stdout}{done.stderr}\n"
                                 f"{self.journal()}")
        return done

    def out(self, command: str) -> str:
        """The output of a command that must succeed, without the final line break."""
        return self.run(command).stdout.rstrip("\n")

    def apt(self, arguments: str) -> str:
        """Runs apt-get with default answers to its questions. Returns its output."""
        done = self.run(f"apt-get -y --no-install-recommends {arguments}", seconds=180)
        return done.stdout + done.stderr

    def put(self, package: Path) -> str:
        """Copies a package file into the machine. Returns its path there."""
        shutil.copy(package, self.root / "root")
        return f"/root/{package.name}"

    def show(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.out(f"systemctl show --value --property={name} {unit}")

    def journal(self, unit: str = "*") -> str:
        """The last lines of the journal."""
        return self.run(f"journalctl --no-pager -q -n 60 -u 'tellerline{unit}'", check=False).stdout

    # ---- start and stop ----

    def close(self) -> None:
        """Kills all its processes and deletes it."""
        if self._nspawn is not None:
            if self._init is not None and self._nspawn.poll() is None:
                os.kill(self._init, signal.SIGKILL)  # the kernel then kills all the others
            else:
                self._nspawn.terminate()
            self._nspawn.wait(patient(60))
        self.log.unlink(missing_ok=True)
        for group in self._cgroups:
            wait_for(lambda group=group: _remove_cgroup(group), f"{group} is empty")

    def _make_cgroups(self) -> list[Path]:
        """A control group of its own in each hierarchy that systemd uses. The host's systemd, if there is one, does
        it itself."""
        if Path("/run/systemd/system").exists():
            return []
        hierarchies = [CGROUPS] if (CGROUPS / "cgroup.procs").exists() else \
            [CGROUPS / name for name in ("systemd", "unified") if (CGROUPS / name).is_dir()]
        groups = [hierarchy / self.name for hierarchy in hierarchies]
        for group in groups:
            group.mkdir()
        return groups

    def _boot(self, base: Path) -> None:
        def enter_cgroups() -> None:
            for group in self._cgroups:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        command = ["setpriv", "--pdeathsig", "TERM", "systemd-nspawn", "--quiet", "--boot", f"--directory={base}",
                   "--volatile=overlay", f"--machine={self.name}", "--private-network", "--register=no",
                   "--console=pipe"]
        if self._cgroups:
            command.append("--keep-unit")
        with self.log.open("w") as log:
            self._nspawn = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=enter_cgroups)
        wait_for(self._find_init, f"a first process\n{self.log.read_text()}", 30)
        wait_for(lambda: self.state() in ("running", "degraded"), "the machine runs")
        assert self.state() == "running", self.out("systemctl --failed --no-pager")

    def _find_init(self) -> bool:
        """The child of systemd-nspawn that is process 1 in the machine."""
        assert self._nspawn is not None and self._nspawn.poll() is None, self.log.read_text()
        pid = self._nspawn.pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            ids = [line for line in Path(f"/proc/{child}/status").read_text().splitlines() if line.startswith("NSpid:")]
            if ids and ids[0].split()[-1] == "1":
                self._init = int(child)
                return True
        return False

    def state(self) -> str:
        return self.run("systemctl is-system-running", check=False).stdout.strip()


def _remove_cgroup(group: Path) -> bool:
    """Removes an empty control group and those below it. False while it still holds a process."""
    try:
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True
