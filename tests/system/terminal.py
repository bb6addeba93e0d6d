# SPDX-License-Identifier: Apache-2.0
"""A command on a terminal of its own."""
from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Callable

from tellerline import environment
from waiting import PATIENCE, patient, wait_until


class Terminal:
    """Runs a command with a pseudo terminal as its standard input and error, and output unless that goes elsewhere."""

    def __init__(self, *command: str, columns: int = 80, env: dict[str, str] | None = None, stdout: int | None = None):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._process = subprocess.Popen(command, stdin=slave, stdout=slave if stdout is None else stdout, stderr=slave,
                                         env=environment({"TERM": "xterm"} | (env or {})), start_new_session=True)
        os.close(slave)
        self._over = False
        self.text = ""

    def _read(self) -> None:
        """Takes what comes within a moment."""
        ready, _, _ = select.select([self._master], [], [], 0.1)
        if not ready:
            return
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            data = b""
        self.text += data.decode(errors="replace")
        self._over = not data

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Reads until this is true of the text."""
        def is_true() -> bool:
            if condition():
                return True
            assert not self._over, f"it has ended before {what}:\n{self.text}"
            self._read()
            return condition()

        wait_until(is_true, PATIENCE, what, every=0)

    def expect(self, part: str) -> None:
        """Waits until the command has written this."""
        self.wait_for(lambda: part in self.text, f"it writes {part!r}")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """What a terminal sends on Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Reads to the end; returns the exit status."""
        def is_over() -> bool:
            if not self._over:
                self._read()
            return self._over

        wait_until(is_over, PATIENCE, "it ends", every=0)
        os.close(self._master)
        return self._process.wait(patient(PATIENCE))
