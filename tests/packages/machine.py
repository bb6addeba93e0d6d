"""A machine with systemd as its first process, in a container of systemd-nspawn: no container engine, no network but
its own loopback, nothing shared with the host but the kernel. Needs root, on a host that runs systemd itself or not.
"""
from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def why_not() -> str | None:
    """Why no machine can be had here; None if one can."""
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
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


class Machine:
    """The base system, booted; what it writes stays in memory and is gone with it. Ends with close(); shuts down when
    the process ends that made it."""

    def __init__(self, base: Path, folder: Path) -> None:
        self.name = f"tellerline-{os.getpid()}-{secrets.token_hex(4)}"
        self.log = folder / f"{self.name}.log"
        self._cgroups = self._make_cgroups()
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._init: int | None = None  # the machine's first process, as the host counts
        try:
            self._boot(base)
        except BaseException:
            self.close()
            raise

    # ---- what a test does with it ----

    @property
    def root(self) -> Path:
        """The machine's file system, as the host sees it."""
        return Path(f"/proc/{self._init}/root")

    def run(self, command: str, check: bool = True, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Runs a shell command as root in the machine."""
        inside = ["nsenter", "--target", str(self._init), "--all", "env", "-i", "HOME=/root", "LC_ALL=C.UTF-8",
                  "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", command]
        done = subprocess.run(inside, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
        if check and done.returncode != 0:
            raise AssertionError(f"{command}\nended with {done.returncode}\n{done.stdout}{done.stderr}\n"
                                 f"{self.journal()}")
        return done

    def out(self, command: str) -> str:
        """What a command that must succeed says, without the last line's end."""
        return self.run(command).stdout.rstrip("\n")

    def apt(self, arguments: str) -> str:
        """apt-get with its questions answered by their defaults. Returns all it said."""
        done = self.run(f"apt-get -y --no-install-recommends {arguments}", seconds=180)
        return done.stdout + done.stderr

    def put(self, package: Path) -> str:
        """Copies a package file into the machine; returns its path there."""
        shutil.copy(package, self.root / "root")
        return f"/root/{package.name}"

    def show(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.out(f"systemctl show --value --property={name} {unit}")

    def journal(self, unit: str = "*") -> str:
        """The last lines of the journal."""
        return self.run(f"journalctl --no-pager -q -n 60 -u 'tellerline{unit}'", check=False).stdout

    # ---- its life ----

    def close(self) -> None:
        """Ends all its processes at once and deletes it."""
        if self._nspawn is not None:
            if self._init is not None and self._nspawn.poll() is None:
                os.kill(self._init, signal.SIGKILL)  # the kernel ends all the others with it
            else:
                self._nspawn.terminate()
            self._nspawn.wait(60)
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
        """The child of systemd-nspawn that is process 1 in there."""
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
    """Removes an empty control group and those below it; False while something is in it."""
    try:
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True
