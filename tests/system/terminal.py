"""A command on a terminal of its own."""
from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

from tellerline import environment
from waiting import PATIENCE


class Terminal:
    """Runs a command with a pseudo terminal as its standard input and error, and output unless that goes elsewhere."""

    def __init__(self, *command: str, columns: int = 80, env: dict[str, str] | None = None, stdout: int | None = None):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._process = subprocess.Popen(command, stdin=slave, stdout=slave if stdout is None else stdout, stderr=slave,
                                         env=environment({"TERM": "xterm"} | (env or {})), start_new_session=True)
        os.close(slave)
        self.text = ""

    def _read(self, until: float) -> bool:
        """Takes what comes until then. False at the end."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            data = b""
        self.text += data.decode(errors="replace")
        return bool(data)

    def expect(self, part: str) -> None:
        """Waits until the command has written this."""
        until = time.monotonic() + PATIENCE
        while part not in self.text:
            assert self._read(until) and time.monotonic() < until, f"no {part!r} in:\n{self.text}"

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Reads to the end; returns the exit status."""
        until = time.monotonic() + PATIENCE
        while self._read(until):
            assert time.monotonic() < until, self.text
        os.close(self._master)
        return self._process.wait(PATIENCE)
