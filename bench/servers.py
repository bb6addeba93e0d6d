# SPDX-License-Identifier: Apache-2.0
"""Private servers for measurements: started in their own folder, removed when the run ends for any reason."""
from __future__ import annotations

import glob
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PATIENCE_S = 30.0

#: As in production, apart from what says otherwise: PostgreSQL's own defaults for durability, spelled out.
POSTGRES_SETTINGS = {
    "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "autovacuum": "on",
    "shared_buffers": "1GB", "effective_cache_size": "4GB", "work_mem": "16MB", "max_wal_size": "4GB",
    "checkpoint_timeout": "15min", "random_page_cost": "1.1", "listen_addresses": "",
}
_FILE = {"save": "", "appendonly": "yes", "appendfsync": "everysec"}
#: How Redis keeps what it has. none: what is measured is the design, not the disk. The others are what
#: docs/operators/redis.md asks for; `replicated` has a replica beside it.
REDIS_SETTINGS = {"none": {"save": "", "appendonly": "no"}, "everysec": _FILE,
                  "fsync": _FILE | {"appendfsync": "always"}, "replicated": _FILE}


class Unavailable(Exception):
    """A server cannot be started here. The text gives the reason."""


def wait_until(condition, what: str) -> None:
    """Polls until the condition holds."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise Unavailable(f"{what} did not happen within {PATIENCE_S:.0f} s")
        time.sleep(0.01)


def free_port() -> int:
    """An unused port, below the range of outgoing connections."""
    for _ in range(200):
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise Unavailable("no free port")


def pinned(cores: list[int] | None) -> list[str]:
    """The words before a command that keep it on these cores."""
    if cores is None or shutil.which("taskset") is None:
        return []
    return ["taskset", "--cpu-list", ",".join(map(str, cores))]


class Redis:
    """A redis-server, empty; where it is replicated, with a replica that has caught up, on `others`."""

    def __init__(self, folder: Path, cores: list[int] | None, durability: str = "none", tcp: bool = False,
                 others: list[int] | None = None, master: int | None = None) -> None:
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if program is None:
            raise Unavailable("there is no redis-server")
        folder.mkdir(parents=True)
        self.folder, self.socket, self.port, self.durability = folder, folder / "redis.sock", free_port(), durability
        self.url = f"redis://127.0.0.1:{self.port}" if tcp else f"unix://{self.socket}"
        settings = [word for name, value in REDIS_SETTINGS[durability].items() for word in (f"--{name}", value)]
        if master is not None:
            settings += ["--replicaof", "127.0.0.1", str(master)]
        with (folder / "redis.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *pinned(cores), program, "--port", str(self.port),
                 "--bind", "127.0.0.1", "--unixsocket", str(self.socket), "--dir", str(folder),
                 "--repl-diskless-sync-delay", "0", *settings],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._answers, "an answer of redis-server")
        self._replica = None
        if durability == "replicated" and master is None:
            self._replica = Redis(folder / "replica", others, durability, master=self.port)
            wait_until(lambda: b"state=online" in self._ask(b"INFO replication"), "a replica that has caught up")

    @property
    def pid(self) -> int:
        return self._process.pid

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise Unavailable("redis-server ended at once")
        try:
            return self._ask(b"PING") == b"+PONG\r\n"
        except OSError:
            return False

    def _ask(self, command: bytes) -> bytes:
        """The answer to a command, if it is a short one."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(self.socket))
            probe.sendall(command + b"\r\n")
            return probe.recv(65536)

    def has(self, command: str) -> bool:
        return not self._ask(f"COMMAND INFO {command}".encode()).startswith((b"*1\r\n*-1", b"*1\r\n$-1"))

    def empty(self) -> None:
        self._ask(b"FLUSHALL SYNC")

    def environment(self) -> dict[str, str]:
        return {"BENCH_REDIS": str(self.socket), "BENCH_REDIS_PORT": str(self.port), "BENCH_REDIS_PID": str(self.pid),
                "BENCH_REDIS_URL": self.url, "BENCH_DURABILITY": self.durability}

    def stop(self) -> None:
        if self._replica is not None:
            self._replica.stop()
        self._process.kill()
        self._process.wait()


def postgres_program(name: str) -> str | None:
    """initdb and postgres are not in the PATH on Debian."""
    found = shutil.which(name)
    if found is not None:
        return found
    candidates = glob.glob(f"/usr/lib/postgresql/*/bin/{name}")
    return max(candidates, key=lambda path: float(path.split("/")[4]), default=None)


class Postgres:
    """A PostgreSQL cluster made by initdb, run by an unprivileged user, reachable by its unix socket alone."""

    def __init__(self, folder: Path, cores: list[int] | None, settings: dict[str, str] | None = None) -> None:
        initdb, postgres = postgres_program("initdb"), postgres_program("postgres")
        if initdb is None or postgres is None:
            raise Unavailable("there is no PostgreSQL (initdb, postgres)")
        folder.mkdir(parents=True)
        self.user, become = self._unprivileged(folder)
        data = folder / "data"
        made = subprocess.run([*become, initdb, "--pgdata", str(data), "--auth", "trust", "--username", "bench",
                               "--encoding", "UTF8", "--locale", "C"], cwd=folder, capture_output=True, text=True)
        if made.returncode != 0:
            raise Unavailable("initdb failed: " + made.stderr.strip().splitlines()[-1])
        settings = {**POSTGRES_SETTINGS, **(settings or {}), "unix_socket_directories": str(folder)}
        with (folder / "postgres.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*become, *pinned(cores), postgres, "-D", str(data),
                 *[word for name, value in settings.items() for word in ("-c", f"{name}={value}")]],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.folder = folder
        self.conninfo = f"host={folder} user=bench dbname=postgres"
        wait_until(self._answers, "an answer of PostgreSQL")

    @staticmethod
    def _unprivileged(folder: Path) -> tuple[str, list[str]]:
        """PostgreSQL refuses to run as root. Whatever user it runs as, it ends with this process (SIGQUIT: at once)."""
        words = ["setpriv", "--pdeathsig", "QUIT"]
        if os.geteuid() != 0:
            return pwd.getpwuid(os.geteuid()).pw_name, words
        for name in ("postgres", "nobody"):
            try:
                entry = pwd.getpwnam(name)
            except KeyError:
                continue
            os.chown(folder, entry.pw_uid, entry.pw_gid)
            return name, [*words, f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
        raise Unavailable("there is no unprivileged user to run PostgreSQL")

    @property
    def pid(self) -> int:
        return self._process.pid

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise Unavailable("PostgreSQL ended at once: " + (self.folder / "postgres.log").read_text()[-300:])
        pidfile = self.folder / "data" / "postmaster.pid"
        try:
            lines = pidfile.read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready"

    def environment(self) -> dict[str, str]:
        return {"BENCH_POSTGRES": self.conninfo, "BENCH_POSTGRES_PID": str(self.pid)}

    def stop(self) -> None:
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()
