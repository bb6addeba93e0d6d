# SPDX-License-Identifier: Apache-2.0
"""The container engine, and Tellerline in it: containers on a private network, always removed after the test."""
from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "system"))

from http_client import Client  # noqa: E402
from waiting import patient, wait_until  # noqa: E402

PROGRAMS = ("dispatcher", "admitter", "expirer", "notifier", "archiver", "worker")
#: clean-up finds the remains of an interrupted run by this label.
MARK = f"io.tellerline.tests={os.environ.get('TESTS_RUN', os.getpid())}"
#: The options of a hardened deployment.
HARDENED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges")
#: The limit for a step, on a machine that is not slow (seconds).
PATIENCE = 60.0


def why_no_engine() -> str:
    """The reason why this machine cannot run containers. Empty if it can."""
    if shutil.which("docker") is None:
        return "no docker command here: containers are not tested"
    done = subprocess.run(["docker", "version", "--format", "{{.Server.Version}}"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=patient(60), check=False)
    if done.returncode != 0:
        return f"no docker engine answers: containers are not tested ({done.stderr.strip().splitlines()[-1]})"
    return ""


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """Runs docker and ignores failures."""
    return subprocess.run(["docker", *args], capture_output=True, text=True, errors="replace", timeout=patient(300),
                          stdin=subprocess.DEVNULL, check=False)


def docker(*args: str) -> str:
    """Runs docker and returns its output. A failure is an AssertionError with docker's message."""
    done = run(*args)
    assert done.returncode == 0, f"docker {' '.join(args)}: {done.stderr.strip()}"
    return done.stdout.strip()


def inspect(name: str) -> dict[str, Any]:
    """A container or an image, as the engine sees it."""
    return json.loads(docker("inspect", name))[0]


def health(container: str) -> str:
    return inspect(container)["State"].get("Health", {}).get("Status", "none")


def descends(pid: int, first: int, parents: dict[int, int]) -> bool:
    """Whether a process is the first one or descends from it."""
    while pid != first and pid in parents:
        pid = parents[pid]
    return pid == first


class Line:
    """A store and any of the programs on a private network, configured by the environment alone.

    Methods name a container by its role, `worker` or `redis`. Its name in the engine is different.
    """

    def __init__(self, images: dict[str, str], store: str = "redis:8") -> None:
        self.images = images
        self.prefix = f"tellerline-test-{secrets.token_hex(4)}"
        docker("network", "create", "--label", MARK, self.prefix)
        self._containers: list[str] = []
        self._volumes: list[str] = []
        self.run("redis", store)

    def name(self, role: str) -> str:
        return f"{self.prefix}-{role}"

    def run(self, role: str, image: str, *options: str) -> str:
        """Starts a container of an image. Returns its name."""
        name = self.name(role)
        self._containers.append(name)
        docker("run", "--detach", "--name", name, "--network", self.prefix, "--network-alias", role, "--label", MARK,
               *options, image)
        return name

    def start(self, *programs: str, queues: dict[str, Any] | None = None, options: tuple[str, ...] = ()) -> None:
        """Starts programs, hardened, with a health check every second."""
        settings = ["--env", "TELLERLINE_REDIS_URL=redis://redis:6379/0"]
        if queues is not None:
            settings += ["--env", f"TELLERLINE_QUEUES={json.dumps(queues)}"]
        for program in programs:
            own = ["--publish", "127.0.0.1::8080", "--volume", f"{self.volume('keys')}:/var/lib/tellerline"] \
                if program.startswith("worker") else []
            image = self.images[program.partition("-")[0]]
            self.run(program, image, *HARDENED, "--health-interval=1s", "--health-retries=2", *settings, *own, *options)

    def volume(self, what: str) -> str:
        name = self.name(what)
        if name not in self._volumes:
            docker("volume", "create", "--label", MARK, name)
            self._volumes.append(name)
        return name

    def port(self, role: str = "worker", inside: int = 8080) -> int:
        return int(docker("port", self.name(role), str(inside)).splitlines()[0].rpartition(":")[2])

    def client(self, role: str = "worker") -> Client:
        """A client of a worker that is ready."""
        client = Client(self.port(role))

        def ready() -> bool:
            try:
                return client.get("/readyz").status == 200
            except OSError:
                return False

        wait_until(ready, PATIENCE, f"{role} is ready", every=0.05)
        return client

    def wait_health(self, role: str, status: str) -> None:
        wait_until(lambda: health(self.name(role)) == status, PATIENCE, f"{role} becomes {status}", every=0.2)

    def healthcheck(self, role: str) -> subprocess.CompletedProcess[str]:
        """Runs the health check of the image in the container, as the engine does."""
        command = inspect(self.name(role))["Config"]["Healthcheck"]["Test"]
        assert command[0] == "CMD"
        return run("exec", self.name(role), *command[1:])

    def address(self, role: str) -> str:
        return inspect(self.name(role))["NetworkSettings"]["Networks"][self.prefix]["IPAddress"]

    def metrics(self) -> str:
        """The worker's metrics. Its admin listener is not published: this machine asks at the container's address."""
        with urllib.request.urlopen(f"http://{self.address('worker')}:8081/metrics", timeout=patient(5)) as answer:
            return answer.read().decode()

    def tellerline(self, *words: str) -> str:
        """Runs the `tellerline` command against the store. Returns its output."""
        return docker("run", "--rm", "--network", self.prefix, "--label", MARK, *HARDENED,
                      "--env", "TELLERLINE_REDIS_URL=redis://redis:6379/0", self.images["tellerline"], *words)

    def processes(self, role: str) -> dict[int, str]:
        """The program's processes by their id on the host: user and command. Excludes what the engine starts in the
        container, such as a health check, which does not descend from the first process."""
        first = inspect(self.name(role))["State"]["Pid"]
        listed = docker("top", self.name(role), "-eo", "pid,ppid,uid,args").splitlines()[1:]
        rows = [line.split(maxsplit=2) for line in listed]
        parents = {int(pid): int(parent) for pid, parent, _ in rows}
        return {int(pid): rest for pid, _, rest in rows if descends(int(pid), first, parents)}

    def tails(self) -> str:
        parts = []
        for name in self._containers:
            done = run("logs", "--tail", "20", name)
            parts.append(f"---- {name}\n{done.stdout}{done.stderr}")
        return "\n".join(parts)

    def remove(self, role: str) -> None:
        docker("rm", "--force", "--volumes", self.name(role))
        self._containers.remove(self.name(role))

    def close(self) -> None:
        for name in self._containers:
            run("rm", "--force", "--volumes", name)
        for name in self._volumes:
            run("volume", "rm", name)
        run("network", "rm", self.prefix)
