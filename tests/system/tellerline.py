# SPDX-License-Identifier: Apache-2.0
"""A complete Tellerline for one test: a real Redis and any number of the real programs."""
from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import wire
from history import Final
from http_client import CONNECTION_TROUBLE, Client, Visitor
from redis_server import Redis, RedisServer
from waiting import PATIENCE, patient, wait_until

TOP = Path(__file__).resolve().parents[2]
#: The programs under test: those of the release. tests/run names the ones with sanitizers for the tests marked so.
BIN = Path(os.environ.get("TELLERLINE_TEST_BIN", TOP / "build" / "release" / "bin")).resolve()

#: How long the worker holds a join, or an end, until its outcome is known. Long enough for a busy machine, and shorter
#: than the timeout of the tests' clients.
HELD = "10s"

#: Times so long that nothing expires during a test of something else.
CALM = {"session_ttl": "10m", "claim_ttl": "10m", "waiting_ttl": "10m"}

_SANITIZER = re.compile(r"Sanitizer|runtime error:")
_TROUBLE = re.compile(r'\blevel=(error|fatal)\b|"level":"(error|fatal)"')


#: Ports outside the range of outgoing connections, in lanes. Each test process takes ports from a lane of its own.
_FIRST_PORT, _LANES, _PORTS = 15000, 8, 2000

_given: set[int] = set()
_lane: tuple[int, socket.socket | None] | None = None


def _own_lane() -> int:
    """Reserves a lane until this process ends, also against other test runs on this machine: only one socket can bind
    its abstract name. Starts at TELLERLINE_TEST_LANE (0, 1, ...), and falls back to it if all lanes are taken."""
    global _lane
    wanted = int(os.environ.get("TELLERLINE_TEST_LANE", "0")) % _LANES
    for lane in [*range(wanted, _LANES), *range(wanted)] if _lane is None else []:
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0tellerline-test-lane-{lane}")
            _lane = lane, claim
            break
        except OSError:
            claim.close()
    _lane = _lane or (wanted, None)
    return _lane[0]


def free_port() -> int:
    """A free port that was not returned before."""
    first = _FIRST_PORT + _PORTS * _own_lane()
    for _ in range(_PORTS):
        port = random.SystemRandom().randrange(first, first + _PORTS)
        if port in _given:
            continue
        _given.add(port)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no free port")


def yaml(value: dict[str, Any], indent: int = 0) -> str:
    """Nested dictionaries as YAML; lists, and dictionaries in them, in flow style."""
    lines = []
    for name, item in value.items():
        if isinstance(item, dict):
            lines.append(" " * indent + f"{name}:\n" + yaml(item, indent + 2))
        else:
            if isinstance(item, list):
                item = "[" + ", ".join(json.dumps(part) if isinstance(part, dict) else str(part) for part in item) + "]"
            elif isinstance(item, bool):
                item = str(item).lower()
            lines.append(" " * indent + f"{name}: {item}\n")
    return "".join(lines)


def environment(more: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of the programs: without the caller's TELLERLINE_ settings, with all sanitizer reports on."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith("TELLERLINE_")}
    clean.setdefault("ASAN_OPTIONS", "detect_leaks=1:strict_string_checks=1")
    clean.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    clean.setdefault("TSAN_OPTIONS", "second_deadlock_stack=1")
    return clean | (more or {})


def alive(pid: int) -> bool:
    """Whether the process runs: neither gone (possible between open and read) nor a zombie. The first thread of a
    killed process may be one before the others have ended, which hold its ports until then."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        threads = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z" or len(threads) > 1


def takes_signals(pid: int) -> bool:
    """Has the program blocked SIGTERM, which it reads from a descriptor? Before, right after its start, that ends it."""
    try:
        blocked = re.search(r"^SigBlk:\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return True
    return blocked is None or bool(int(blocked.group(1), 16) & 1 << signal.SIGTERM - 1)


class Program:
    """One running program with its log. It may be killed and restarted."""

    def __init__(self, role: str, name: str, directory: Path, config: Path, admin_port: int,
                 http_port: int = 0, cwd: Path | None = None) -> None:
        self.role, self.name = role, name
        self.log = directory / f"{name}.log"
        self.admin_port, self.http_port = admin_port, http_port
        self.folder = BIN  # of the executable; a test may set another one
        self.prefix: list[str] = []  # before its command line: env, prlimit ...
        self.env: dict[str, str] = {}  # more variables of the environment
        self._config, self._cwd = config, cwd
        self._process: subprocess.Popen[bytes] | None = None
        self._paused = self._stopping = False
        self._orphans: list[int] = []  # children of a killed process; they end by themselves, and have its port till then

    def replace(self, folder: Path) -> None:
        """Stops it, and starts the program of this folder."""
        self.stop()
        self.folder = folder
        self.start()
        self.wait_ready()

    def start(self, log: int | None = None) -> None:
        """log: a descriptor to write the log to, instead of the file."""
        wait_until(lambda: not any(alive(pid) for pid in self._orphans), PATIENCE, f"the children of {self.name} end")
        self._stopping = False
        env = {f"TELLERLINE_ADMIN_{self.role.upper()}": f"127.0.0.1:{self.admin_port}"}
        if self.http_port:
            env["TELLERLINE_HTTP_LISTEN"] = f"127.0.0.1:{self.http_port}"
        with self.log.open("ab") as file:
            # Ends with this process, even if that is killed.
            self._process = subprocess.Popen(
                [*self.prefix, "setpriv", "--pdeathsig", "KILL", str(self.folder / f"tellerline-{self.role}"),
                 "--config", str(self._config)],
                env=environment(env | self.env), cwd=self._cwd, stdin=subprocess.DEVNULL,
                stdout=log or file, stderr=log or file)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def status(self) -> int | None:
        """With which status it has ended, or -signal. None while it runs."""
        assert self._process is not None
        return self._process.poll()

    def ready(self) -> bool:
        """A worker's admin listener is a process of its own, which may take longer than the others."""
        assert self.running, f"{self.name} ended by itself:\n{self.tail()}"
        client = Client(self.http_port or self.admin_port, timeout=patient(5))
        try:
            if client.get("/readyz").status != 200:
                return False
            socket.create_connection(("127.0.0.1", self.admin_port), patient(5)).close()
            return True
        except CONNECTION_TROUBLE:
            return False
        finally:
            client.close()

    def wait_ready(self) -> None:
        wait_until(self.ready, PATIENCE, f"{self.name} is ready")

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        if number in (signal.SIGSTOP, signal.SIGCONT):
            self._paused = number == signal.SIGSTOP

    def kill(self) -> None:
        """kill -9 of the program. Its children notice and end."""
        if self._process is not None:
            self._orphans = self.children()
            self._process.kill()
            self._process.wait()
        self._process = None

    def begin_stop(self) -> None:
        """SIGTERM, once."""
        if self._process is None or self._stopping:
            return
        if self._paused:
            self.send(signal.SIGCONT)
        wait_until(lambda: not self.running or takes_signals(self.pid), PATIENCE, f"{self.name} can be told to stop")
        self._process.send_signal(signal.SIGTERM)
        self._stopping = True

    def stop(self) -> None:
        """SIGTERM. The program must drain and exit with status 0."""
        if self._process is None:
            return
        self.begin_stop()
        try:
            status = self._process.wait(patient(45))
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end on SIGTERM:\n{self.tail()}") from None
        self._process = None
        assert status == 0, f"{self.name} ended with {status} on SIGTERM:\n{self.tail()}"

    def children(self) -> list[int]:
        """The process ids of its children (those of a worker)."""
        found = []
        for entry in Path(f"/proc/{self.pid}/task").glob("*/children"):
            try:
                found += [int(pid) for pid in entry.read_text().split()]
            except OSError:
                continue  # the thread has just ended
        return found

    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self, lines: int = 25) -> str:
        return "\n".join(self.text().splitlines()[-lines:])


class System:
    """Redis and the programs around it, configured from one file."""

    def __init__(self, queues: dict[str, dict[str, Any]], counts: dict[str, int],
                 settings: dict[str, Any], redis_options: dict[str, str]) -> None:
        # A short path: a socket's name must fit into 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="tellerline-"))
        self.config = self.directory / "tellerline.yaml"
        self.redis = RedisServer(self.directory, redis_options)
        self._queues, self._settings = queues, settings
        self._expected: list[str] = []
        self._clients: list[Client] = []
        self._store: Redis | None = None
        self.folder = BIN  # of the command line
        self.sound = True  # a test that breaks something for good sets it to False: then finish() checks nothing
        self.programs: list[Program] = []
        for role, count in counts.items():
            for i in range(count):
                port = free_port() if role == "worker" else 0
                self.programs.append(Program(role, f"{role}-{i}", self.directory, self.config,
                                             free_port(), port))

    # ---- start and stop ----

    def start(self) -> None:
        sections: dict[str, Any] = {
            "redis": {"url": self.redis.url},
            "worker": {"processes": 1},
            "http": {"join_wait": HELD, "joins_per_minute": 0},  # 0: all of a test come from one address
            "secrets": {"ticket_keys": str(self.directory / "ticket.keys"),
                        "api_keys": str(self.directory / "api.keys"),
                        "pass_keys": str(self.directory / "pass.keys"),
                        "admin_token": str(self.directory / "admin.token")},
        }
        for name, section in self._settings.items():
            sections[name] = sections.get(name, {}) | section if isinstance(section, dict) else section
        sections["queues"] = self._queues
        self.config.write_text(yaml(sections))
        if not self.redis.running:
            self.redis.start()
        for program in self.programs:
            program.start()
        for program in self.programs:
            program.wait_ready()

    def serves(self, queue: str) -> None:
        """Waits for that: a worker whose user of Redis may not create queues is ready before another program does."""
        for worker in self.of("worker"):
            client = Client(worker.http_port)
            wait_until(lambda client=client: client.get(f"/v1/queues/{queue}").status == 200, PATIENCE, f"{queue} is served")
            client.close()

    def settings(self, section: str, values: dict[str, Any]) -> None:
        """Adds settings to a section of the configuration, before the start."""
        self._settings = self._settings | {section: self._settings.get(section, {}) | values}

    def expect(self, pattern: str) -> None:
        """Accepts log lines of level error that match, for tests that provoke errors."""
        self._expected.append(pattern)

    def finish(self) -> None:
        """Checks what must hold after every test: invariants, clean exits, no unexpected log line."""
        if not self.sound:
            return
        if self.redis.running:
            audit = self.ctl("audit")
            assert audit.returncode == 0, f"audit:\n{audit.stdout}{audit.stderr}"
        for program in self.programs:
            program.begin_stop()
        for program in self.programs:
            program.stop()
            self._check_log(program)

    def close(self, keep: bool) -> None:
        """Stops everything, in any state."""
        for client in self._clients:
            client.close()
        for program in self.programs:
            program.kill()
        if self._store is not None:
            self._store.close()
        if keep:
            self.redis.stop()
        else:
            self.redis.kill()  # an orderly end takes a tenth of a second
            shutil.rmtree(self.directory, ignore_errors=True)

    def _check_log(self, program: Program, since: int = 0) -> None:
        for line in program.text()[since:].splitlines():
            assert not _SANITIZER.search(line), f"{program.name}:\n{program.text()[-6000:]}"
            if _TROUBLE.search(line):
                expected = any(re.search(pattern, line) for pattern in self._expected)
                assert expected, f"unexpected in the log of {program.name}: {line}"

    # ---- parts ----

    def of(self, role: str) -> list[Program]:
        return [program for program in self.programs if program.role == role]

    def client(self, worker: int = 0, timeout: float = 15.0) -> Client:
        client = Client(self.of("worker")[worker].http_port, timeout)
        self._clients.append(client)
        return client

    def visitor(self, queue: str, worker: int = 0) -> Visitor:
        """A visitor who has not joined yet."""
        return Visitor(self.client(worker), queue)

    def join(self, queue: str, worker: int = 0) -> Visitor:
        return self.visitor(queue, worker).join()

    @property
    def store(self) -> Redis:
        if self._store is None:
            self._store = self.redis.connect()
        return self._store

    def forget_store(self) -> None:
        """Call after Redis was stopped. The next use of `store` reconnects."""
        if self._store is not None:
            self._store.close()
        self._store = None

    def key(self, queue: str, name: str) -> str:
        return f"tl:{{{queue}}}:{name}"

    def numbers(self, queue: str) -> dict[str, int]:
        """The counters of a queue in the store, without what changes with presence alone: the event number, and the
        batches of workers."""
        state = self.store.hash(self.key(queue, "state"))
        return {name: int(value) for name, value in state.items()
                if value.isdigit() and name != "event" and not name.startswith("batch:")}

    def final(self, queue: str) -> Final:
        """What the store holds, for the history checker."""
        return Final(self.numbers(queue), self.waiting(queue), self.active(queue),
                     self.store.command("XLEN", self.key(queue, "poison")))

    def active(self, queue: str) -> int:
        return self.store.command("ZCARD", self.key(queue, "active"))

    def waiting(self, queue: str) -> int:
        return self.store.command("ZCARD", self.key(queue, "waiting"))

    def last_batch(self, queue: str) -> str:
        """The id of the last ingest entry."""
        info = self.store.command("XINFO", "STREAM", self.key(queue, "ingest"))
        return dict(zip(info[::2], info[1::2]))["last-generated-id"]

    def is_applied(self, queue: str) -> bool:
        """All that was written to the ingest stream."""
        (flat,) = self.store.command("XINFO", "GROUPS", self.key(queue, "ingest"))
        group = dict(zip(flat[::2], flat[1::2]))
        return group["pending"] == 0 and group["last-delivered-id"] == self.last_batch(queue)

    def commands_since(self, queue: str, last: str) -> list[list]:
        """The commands of the ingest stream after that entry, without presence (SEEN)."""
        entries = self.store.command("XRANGE", self.key(queue, "ingest"), f"({last}", "+")
        batches = [wire.unpack(fields[1].encode("utf-8", "surrogateescape")) for _, fields in entries]
        return [command for batch in batches for command in batch[-1] if command[0] != wire.SEEN]

    def steps(self, queue: str) -> Iterator[wire.Step]:
        """The whole events stream."""
        for entry_id, fields in self.store.command("XRANGE", self.key(queue, "events"), "-", "+"):
            yield wire.step_of(entry_id, fields[1])

    def ctl(self, *args: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Runs `tellerline ARGS --config ...`. An id that begins with a hyphen goes behind `--`, with what follows it."""
        at = next((i for i, word in enumerate(args) if re.fullmatch(r"-[\w-]{21}", word)), len(args))
        options = [word for word in args[at + 1:] if word.startswith("--")]
        words = [word for word in args[at:] if word not in options]
        return run(self.folder / "tellerline", *args[:at], *options, "--config", str(self.config),
                   *(["--", *words] if words else []), timeout=timeout)

    def set(self, queue: str, *settings: str) -> None:
        done = self.ctl("queue", "set", "--yes", queue, *settings)
        assert done.returncode == 0, done.stdout + done.stderr


def run(binary: Path, *args: str, timeout: float = 60, env: dict[str, str] | None = None,
        cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end. A sanitizer report fails the test."""
    done = subprocess.run([str(binary), *args], env=environment(env), cwd=cwd, timeout=patient(timeout),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert not _SANITIZER.search(done.stderr), done.stderr
    return done
