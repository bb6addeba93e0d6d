# SPDX-License-Identifier: Apache-2.0
"""A real PostgreSQL on a private socket, as Debian packages it."""
from __future__ import annotations

import errno
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from families import descendants
from waiting import wait_until


def _folder() -> Path:
    """Of its programs."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    assert folders, "PostgreSQL is not installed"
    return Path(folders[-1])


class PostgresServer:
    """Its data is in a folder of its own. It may be killed and started again."""

    def __init__(self, disk_mb: int = 0, **settings: str) -> None:
        """disk_mb: its data is on a file system of this size, where root may mount one."""
        self._folder = Path(tempfile.mkdtemp(prefix="tellerline-postgres-"))
        self._is_mounted = disk_mb > 0 and os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={disk_mb}m", "tmpfs", self._folder], check=False).returncode == 0
        self._data, self._copy, self._log = (self._folder / name for name in ("data", "copy", "log"))
        self._settings = {"listen_addresses": "", "unix_socket_directories": str(self._folder)} | settings
        self._process: subprocess.Popen[bytes] | None = None
        # It refuses to run as root.
        self._user = [] if os.geteuid() else ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        if self._user:
            user = pwd.getpwnam("postgres")
            os.chown(self._folder, user.pw_uid, user.pw_gid)
        # Segments of 1 MB: fill_disk stops what is larger, and no segment.
        subprocess.run([*self._user, _folder() / "initdb", "--wal-segsize=1", "-D", self._data, "-U", "archive", "-A", "trust", "-E", "UTF8",
                        "--no-sync", "--locale=C"], check=True, stdout=subprocess.DEVNULL, cwd="/")

    @property
    def url(self) -> str:
        return f"postgresql://archive@/postgres?host={self._folder}"

    def start(self) -> None:
        options = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._user, "setpriv", "--pdeathsig", "KILL", _folder() / "postgres", "-D", self._data, *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        wait_until(self._answers, 60, "PostgreSQL answers")

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self._log.read_text()[-2000:]
        return subprocess.run([_folder() / "pg_isready", "-q", "-h", self._folder], check=False).returncode == 0

    def sql(self, text: str) -> str:
        """What psql prints: a line for each row, its columns separated by |."""
        done = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", self.url], text=True, check=True,
                              input=f"SET search_path = tellerline;\n{text}", capture_output=True)
        return done.stdout.strip()

    @contextmanager
    def session(self, text: str) -> Iterator[None]:
        """A transaction that has run this, and stays open meanwhile."""
        with subprocess.Popen(["psql", "-XqAt", self.url], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as psql:
            assert psql.stdin and psql.stdout
            psql.stdin.write(f"SET search_path = tellerline;\nBEGIN;\n{text};\n\\echo done\n")
            psql.stdin.flush()
            while psql.stdout.readline() != "done\n":
                assert psql.poll() is None
            yield
            psql.stdin.close()

    def rows(self, text: str) -> list[tuple[str, ...]]:
        return [tuple(line.split("|")) for line in self.sql(text).splitlines()]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def fill_disk(self) -> None:
        """From now on nothing more fits on its file system, or, where it has none of its own, no file becomes larger than
        1 MB: until free_disk, or, the latter, until the next start."""
        if not self._is_mounted:
            self._limit_files(str(1 << 20))
            return
        with (self._folder / "ballast").open("wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(1 << 16))
            except OSError as error:
                assert error.errno == errno.ENOSPC

    def free_disk(self) -> None:
        """It may have ended of that, and is started then."""
        if not self._is_mounted:
            self._limit_files("unlimited")
            return
        (self._folder / "ballast").unlink()
        if not self.running:
            self.start()

    def _limit_files(self, size: str) -> None:
        assert self._process is not None
        for pid in (self._process.pid, *descendants(self._process.pid)):  # one may have ended
            subprocess.run([*self._user, "prlimit", f"--pid={pid}", f"--fsize={size}:"], check=False)

    def kill(self) -> None:
        """As a crash: it recovers at the next start."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        self._end(signal.SIGINT)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None

    def keep(self) -> None:
        """A copy of its data, for go_back."""
        self.stop()
        shutil.rmtree(self._copy, ignore_errors=True)
        self._copy_data(self._data, self._copy)
        self.start()

    def go_back(self) -> None:
        """To the copy, as after a dump was restored."""
        self.stop()
        shutil.rmtree(self._data)
        self._copy_data(self._copy, self._data)
        self.start()

    def _copy_data(self, source: Path, target: Path) -> None:
        subprocess.run([*self._user, "cp", "-a", source, target], check=True, cwd="/")

    def close(self) -> None:
        self.remove()

    def remove(self) -> None:
        self.kill()
        if self._is_mounted:
            subprocess.run(["umount", self._folder], check=True)
        shutil.rmtree(self._folder, ignore_errors=True)
