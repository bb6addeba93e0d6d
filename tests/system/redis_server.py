# SPDX-License-Identifier: Apache-2.0
"""A real redis-server on a private socket, and a tiny client for it (RESP2, blocking)."""
from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from waiting import patient, wait_until

Argument = str | bytes | int | float
Reply = "str | int | list | None"


class RedisError(Exception):
    """Redis answered with an error."""


class RedisGone(Exception):
    """The connection broke."""


class Redis:
    """One connection. Replies are text (surrogate-escaped, so bytes survive), int, list or None."""

    def __init__(self, at: Path | tuple[str, int], timeout: float = 30.0) -> None:
        """at: its socket, or host and port."""
        self._socket = socket.socket(socket.AF_UNIX if isinstance(at, Path) else socket.AF_INET)
        self._socket.settimeout(patient(timeout))
        try:
            self._socket.connect(str(at) if isinstance(at, Path) else at)
        except OSError as error:
            self._socket.close()
            raise RedisGone(str(error)) from error
        self._file = self._socket.makefile("rb")

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def send(self, *args: Argument) -> None:
        out = [b"*%d\r\n" % len(args)]
        for arg in args:
            data = arg if isinstance(arg, bytes) else str(arg).encode()
            out.append(b"$%d\r\n%b\r\n" % (len(data), data))
        try:
            self._socket.sendall(b"".join(out))
        except OSError as error:
            raise RedisGone(str(error)) from error

    def command(self, *args: Argument):
        self.send(*args)
        return self.read()

    def read(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return _text(rest)
        if kind == b":":
            return int(rest)
        if kind == b"$":
            length = int(rest)
            return None if length < 0 else _text(self._exactly(length + 2)[:-2])
        if kind == b"*":
            count = int(rest)
            return None if count < 0 else [self.read() for _ in range(count)]
        raise RedisError(_text(rest))

    def hash(self, key: str) -> dict[str, str]:
        flat = self.command("HGETALL", key)
        return dict(zip(flat[::2], flat[1::2]))

    def monitor(self) -> Iterator[str]:
        """Lines of MONITOR from now on, without an end: close the connection to stop."""
        self.command("MONITOR")
        return iter(self.read, None)

    def _line(self) -> bytes:
        try:
            line = self._file.readline()
        except OSError as error:
            raise RedisGone(str(error)) from error
        if not line.endswith(b"\r\n"):
            raise RedisGone("connection closed")
        return line[:-2]

    def _exactly(self, length: int) -> bytes:
        try:
            data = self._file.read(length)
        except OSError as error:
            raise RedisGone(str(error)) from error
        if len(data) != length:
            raise RedisGone("connection closed")
        return data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


class RedisServer:
    """redis-server with its data in `directory`. It may be killed and restarted."""

    def __init__(self, directory: Path, options: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.socket = directory / "redis.sock"
        self.log = directory / "redis.log"
        self.options = {"appendonly": "yes", "appendfsync": "everysec"} | (options or {})
        self.prefix: list[str] = []  # before its command line: env, prlimit, ip netns exec ...
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self, extra: dict[str, str] | None = None, wait: bool = True) -> None:
        binary = shutil.which("redis-server") or shutil.which("valkey-server")
        assert binary, "neither redis-server nor valkey-server is installed"
        settings = {
            "port": "0", "unixsocket": str(self.socket), "dir": str(self.directory), "save": "",
            "logfile": str(self.log), "daemonize": "no", "maxmemory-policy": "noeviction",
            "enable-debug-command": "local",
        } | self.options | (extra or {})
        argv = [binary]
        for name, value in settings.items():
            argv += [f"--{name}", value]
        self._process = subprocess.Popen(
            [*self.prefix, "setpriv", "--pdeathsig", "KILL", *argv], restore_signals=False,  # SIGXFSZ: see fill_disk
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if wait:
            wait_until(self.answers, 40, "redis-server answers")

    def answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self._log_tail()
        try:
            client = self.connect()
        except RedisGone:
            return False
        try:
            return client.command("PING") == "PONG"
        except (RedisError, RedisGone):
            return False
        finally:
            client.close()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def connect(self, timeout: float = 30.0) -> Redis:
        return Redis(self.socket, timeout)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def ask(self, *command: Argument):
        """One command over a connection of its own."""
        client = self.connect()
        try:
            return client.command(*command)
        finally:
            client.close()

    def _history_file(self) -> Path:
        """The file to which commands are appended. Each start makes a new one."""
        (file,) = (self.directory / "appendonlydir").glob("*.incr.aof")
        return file

    def history(self) -> int:
        """How long the append-only file is. With appendfsync always, all that was answered is in it."""
        return self._history_file().stat().st_size

    def lose_tail(self, history: int) -> None:
        """Removes all that was appended since it had this length. Redis must have been killed."""
        os.truncate(self._history_file(), history)

    def keep(self) -> None:
        """A copy of its data, for go_back. Redis must have been killed."""
        shutil.rmtree(self.directory / "copy", ignore_errors=True)
        shutil.copytree(self.directory / "appendonlydir", self.directory / "copy")

    def go_back(self) -> None:
        """To the copy. Redis must have been killed."""
        shutil.rmtree(self.directory / "appendonlydir")
        shutil.copytree(self.directory / "copy", self.directory / "appendonlydir")

    def fill_disk(self) -> None:
        """From now on no byte more fits into the append-only file, as on a full disk: until free_disk, or the next start."""
        self._limit_files(self.history())

    def free_disk(self) -> None:
        self._limit_files(resource.RLIM_INFINITY)

    def found_no_room(self) -> bool:
        """It refuses writes since it failed to append one, or has ended of that."""
        try:
            return not self.running or "aof_last_write_status:err" in self.ask("INFO", "persistence")
        except (OSError, RedisError, RedisGone):
            return False

    def takes_writes(self) -> bool:
        try:
            return self.ask("SET", "probe", "1", "PX", "1") == "OK"
        except (OSError, RedisError, RedisGone):
            return False

    def _limit_files(self, size: int) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):  # it has ended
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def take_over(self, other: RedisServer) -> None:
        """Answers at the socket of that server, which must have been killed."""
        os.rename(self.socket, other.socket)
        self.socket = other.socket

    def kill(self) -> None:
        """Simulates a crash (kill -9)."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Its connections stay open without an answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(number)
            try:
                self._process.wait(patient(10))
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None
        if self.socket.exists():
            os.unlink(self.socket)

    def _log_tail(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "redis-server ended: " + text[-2000:]
