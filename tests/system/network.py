# SPDX-License-Identifier: Apache-2.0
"""A Redis behind a network that can fail: in a namespace of its own, or behind a slow relay."""
from __future__ import annotations

import os
import random
import socket
import subprocess
import threading
import time
from pathlib import Path

from tellerline import free_port


def can_make_namespaces() -> bool:
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--net", "ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"],
        capture_output=True, check=False).returncode == 0


def _ip(*args: str) -> None:
    subprocess.run(["ip", *args], check=True, capture_output=True)


class Namespace:
    """A network namespace with one link to ours. Packets can be dropped in each direction."""

    def __init__(self) -> None:
        port = free_port()  # unique among the tests that run
        self.name = f"tl{port}"
        self._link = f"tl{port}h"
        subnet = f"10.213.{port % 64 * 4 // 256 + port // 256 % 200}.{port % 64 * 4}"
        base = subnet.rsplit(".", 1)
        self.ours, self.theirs = f"{base[0]}.{int(base[1]) + 1}", f"{base[0]}.{int(base[1]) + 2}"
        _ip("netns", "add", self.name)
        try:
            _ip("link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
            _ip("addr", "add", f"{self.ours}/30", "dev", self._link)
            _ip("link", "set", self._link, "up")
            _ip("-n", self.name, "addr", "add", f"{self.theirs}/30", "dev", "eth0")
            _ip("-n", self.name, "link", "set", "eth0", "up")
        except subprocess.CalledProcessError:
            self.close()
            raise

    @property
    def prefix(self) -> list[str]:
        """Before the command line of a program that runs in there."""
        return ["ip", "netns", "exec", self.name]

    def cut(self, there: bool, back: bool) -> None:
        """Drops what goes there, what comes back, or both."""
        if there:
            _ip("route", "add", "blackhole", f"{self.theirs}/32")
        if back:
            _ip("-n", self.name, "route", "add", "blackhole", f"{self.ours}/32")

    def heal(self) -> None:
        for where, address in (([], self.theirs), (["-n", self.name], self.ours)):
            subprocess.run(["ip", *where, "route", "del", "blackhole", f"{address}/32"], check=False, capture_output=True)

    def close(self) -> None:
        self.heal()
        subprocess.run(["ip", "link", "del", self._link], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)


class Link:
    """Joins two namespaces directly: what goes between them does not pass through ours, and can be cut alone."""

    def __init__(self, one: Namespace, other: Namespace) -> None:
        self._ways = ((one, other), (other, one))
        _ip("link", "add", "beside", "netns", one.name, "type", "veth", "peer", "name", "beside", "netns", other.name)
        for here, _ in self._ways:
            _ip("-n", here.name, "link", "set", "lo", "up")
            _ip("-n", here.name, "link", "set", "beside", "up")
        for here, there in self._ways:
            _ip("-n", here.name, "route", "add", f"{there.theirs}/32", "dev", "beside", "src", here.theirs, "metric", "2")

    def cut(self) -> None:
        for here, there in self._ways:
            _ip("-n", here.name, "route", "add", "blackhole", f"{there.theirs}/32", "metric", "1")

    def heal(self) -> None:
        for here, there in self._ways:
            subprocess.run(["ip", "-n", here.name, "route", "del", "blackhole", f"{there.theirs}/32", "metric", "1"],
                           check=False, capture_output=True)


class SlowRelay:
    """A TCP port before a Redis's socket. Each way takes `latency` seconds; one piece in twenty is lost, and comes when
    TCP sends it again."""

    def __init__(self, target: Path, latency: float, seed: int, loss: float = 0.05) -> None:
        self._target, self._latency, self._loss = target, latency, loss
        self._random = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in [self._listener, *self._sockets]:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._target))
            except OSError:
                return
            self._sockets += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        """Pieces stay in order: what comes behind a lost one waits for it."""
        pieces: list[tuple[float, bytes]] = []
        some = threading.Condition()

        def deliver() -> None:
            while True:
                with some:
                    some.wait_for(lambda: pieces)
                    due, data = pieces.pop(0)
                time.sleep(max(0.0, due - time.monotonic()))
                try:
                    if not data:
                        sink.shutdown(socket.SHUT_WR)
                        return
                    sink.sendall(data)
                except OSError:
                    return

        threading.Thread(target=deliver, daemon=True).start()
        data, due = b"x", 0.0
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            again = 2 * self._latency + 0.2 if self._random.random() < self._loss else 0.0
            due = max(due, time.monotonic() + self._latency + again)
            with some:
                pieces.append((due, data))
                some.notify()
