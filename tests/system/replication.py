# SPDX-License-Identifier: Apache-2.0
"""A replicated store: a master, its replicas, and sentinels that watch them, all with a password."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from redis_server import Redis, RedisError, RedisGone, RedisServer
from tellerline import System, free_port
from waiting import PATIENCE, patient, wait_until

PASSWORD = "s3cret/"
MASTER = "line"


class Server(RedisServer):
    """A redis-server on a port of the loopback, beside its socket."""

    def __init__(self, directory: Path, options: dict[str, str] | None = None) -> None:
        super().__init__(directory, {"port": str(free_port()), "bind": "127.0.0.1", "requirepass": PASSWORD,
                                     "masterauth": PASSWORD, "repl-diskless-sync-delay": "0"} | (options or {}))
        directory.mkdir(exist_ok=True)

    @property
    def port(self) -> int:
        return int(self.options["port"])

    def connect(self, timeout: float = 30.0) -> Redis:
        client = super().connect(timeout)
        client.command("AUTH", PASSWORD)
        return client

    def role(self) -> str:
        try:
            return self.ask("ROLE")[0]
        except (RedisError, RedisGone):
            return "gone"

    def follow(self, master: "Server") -> None:
        self.ask("REPLICAOF", "127.0.0.1", str(master.port))
        wait_until(lambda: self.ask("ROLE")[3] == "connected", PATIENCE, "the replica has caught up")

    def programs(self) -> int:
        """Connections of the programs (without replicas, masters, sentinels and this one)."""
        lines = self.ask("CLIENT", "LIST", "TYPE", "NORMAL").splitlines()
        return sum("cmd=client" not in line and " name= " in line for line in lines)


class Sentinel:
    """One sentinel. It asks for the same password as the servers."""

    def __init__(self, directory: Path, master: Server, quorum: int) -> None:
        directory.mkdir(exist_ok=True)
        self.port, self._directory = free_port(), directory
        self.socket = directory / "sentinel.sock"
        (directory / "sentinel.conf").write_text(f"""\
port {self.port}
unixsocket {self.socket}
bind 127.0.0.1
dir {directory}
requirepass {PASSWORD}
sentinel sentinel-pass {PASSWORD}
""" + "\n".join(self._monitor(master, quorum)) + "\n")
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def _monitor(master: Server, quorum: int) -> list[str]:
        return [f"sentinel monitor {MASTER} 127.0.0.1 {master.port} {quorum}",
                f"sentinel auth-pass {MASTER} {PASSWORD}",
                f"sentinel down-after-milliseconds {MASTER} {patient(1000):.0f}",
                f"sentinel failover-timeout {MASTER} 6000"]

    def start(self) -> None:
        binary = shutil.which("redis-server") or shutil.which("valkey-server")
        assert binary
        with (self._directory / "sentinel.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", binary, str(self._directory / "sentinel.conf"), "--sentinel"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: self.ask("PING") == "PONG", PATIENCE, "the sentinel answers", again_on=RedisGone)

    def ask(self, *command: str):
        client = Redis(self.socket)
        try:
            client.command("AUTH", PASSWORD)
            return client.command(*command)
        finally:
            client.close()

    def master(self) -> dict[str, str]:
        flat = self.ask("SENTINEL", "MASTER", MASTER)
        return dict(zip(flat[::2], flat[1::2]))

    def watch_instead(self, master: Server, quorum: int) -> None:
        """As an operator does it by hand."""
        self.ask("SENTINEL", "REMOVE", MASTER)
        self.ask("SENTINEL", "MONITOR", MASTER, "127.0.0.1", str(master.port), str(quorum))
        self.ask("SENTINEL", "SET", MASTER, "auth-pass", PASSWORD)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None


class Replication:
    """Servers (the first is the master) and sentinels of one System: pass `prepare` to start()."""

    def __init__(self, replicas: int, sentinels: int) -> None:
        self._replicas, self._sentinels = replicas, sentinels
        self.servers: list[Server] = []
        self.sentinels: list[Sentinel] = []
        self._system: System | None = None

    def prepare(self, system: System) -> None:
        self._system = system
        system.expect(r"kind=(connect|timeout|loading|readonly|stale|noqueue|nogroup|store)\b")
        for i in range(1 + self._replicas):
            server = Server(system.directory / f"r{i}")
            server.start()
            self.servers.append(server)
        system.redis = self.servers[0]
        for replica in self.servers[1:]:
            replica.follow(self.servers[0])
        for i in range(self._sentinels):
            sentinel = Sentinel(system.directory / f"s{i}", self.servers[0], self._sentinels // 2 + 1)
            sentinel.start()
            self.sentinels.append(sentinel)
        for sentinel in self.sentinels:
            wait_until(lambda s=sentinel: s.master()["num-slaves"] == str(self._replicas)
                       and s.master()["num-other-sentinels"] == str(self._sentinels - 1),
                       PATIENCE, "the sentinels know each other and the replicas")
        system.settings("redis", {"url": self.url()})

    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://:{PASSWORD.replace('/', '%2F')}@{hosts}/{MASTER}"

    def new_master(self, other_than: Server) -> Server:
        """Waits until another server is the master, and makes it the store of the System."""
        assert self._system is not None
        others = [server for server in self.servers if server is not other_than and server.running]
        master = wait_until(lambda: next((s for s in others if s.role() == "master"), None), PATIENCE,
                            "there is another master")
        self.adopt(master)
        return master

    def fail_over_no_more(self) -> None:
        """From now on a master that does not answer for a moment, on a busy machine, is not replaced."""
        for sentinel in self.sentinels:
            sentinel.ask("SENTINEL", "SET", MASTER, "down-after-milliseconds", str(10 * 60 * 1000))
        # It may have been replaced for that reason since it was adopted, or be about to be.
        master = wait_until(self._settled_master, PATIENCE, "the sentinels agree on a master")
        assert self._system is not None
        if master is not self._system.redis:
            self.adopt(master)

    def _settled_master(self) -> Server | None:
        """The server that every sentinel names as the master, if it is one in its own eyes, too, and no failover is on."""
        named = [sentinel.master() for sentinel in self.sentinels]
        if len({about["port"] for about in named}) > 1 or any("failover_in_progress" in about["flags"] for about in named):
            return None
        return next((server for server in self.servers
                     if str(server.port) == named[0]["port"] and server.running and server.role() == "master"), None)

    def adopt(self, master: Server) -> None:
        assert self._system is not None
        self._system.forget_store()
        self._system.redis = master

    def close(self) -> None:
        for sentinel in self.sentinels:
            sentinel.stop()
        for server in self.servers:
            server.stop()
