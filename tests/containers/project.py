# SPDX-License-Identifier: Apache-2.0
"""deploy/compose.yaml for one test: a project with its own name and port, always removed after the test."""
from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine import MARK, PATIENCE, PROGRAMS, TOP, docker, run
import wire  # engine knows where the system tests' modules are
from tellerline import free_port, yaml
from waiting import patient, wait_until

#: Without the demo's shop and crowd.
ARCHIVE = ("postgres", "archive", "archiver")
CORE = ("redis", "dispatcher", "admitter", "expirer", "notifier", "worker", "control", "gateway")
#: The programs without the profile `archive`.
SERVICES = tuple(program for program in PROGRAMS if program != "archiver")
#: What compose-cluster.yaml adds.
NODES = ("redis-2", "redis-3", "redis-4", "redis-5", "redis-6", "cluster")
ADMIN_PORTS = {"worker": 8081, "dispatcher": 8082, "admitter": 8083, "expirer": 8084, "notifier": 8085}


def command() -> list[str]:
    """Compose v2 is a plugin, v1 a separate program."""
    if run("compose", "version").returncode == 0:
        return ["docker", "compose"]
    return ["docker-compose"]


def clean_copy(target: Path) -> Path:
    """Copies the files of a clone of this tree, without build output."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=TOP,
                            capture_output=True, text=True, check=False)
    assert listed.returncode == 0, f"not a clone, so there is nothing to copy from: {listed.stderr}"
    for name in filter(None, listed.stdout.split("\0")):
        if (TOP / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, target / name)
    return target


class Project:
    """One project. `settings` are the variables that deploy/compose.yaml takes; `queues` replaces the demo's queues;
    cluster: with deploy/compose-cluster.yaml."""

    def __init__(self, tree: Path, settings: dict[str, str], queues: dict[str, dict[str, Any]] | None = None,
                 cluster: bool = False) -> None:
        self.name = f"tellerline-test-{secrets.token_hex(4)}"
        self.port, self.control_port = free_port(), free_port()
        self._addresses = f"10.86.{secrets.randbelow(256)}"  # of the nodes of a cluster: other runs have their own
        self._directory = Path(tempfile.mkdtemp(prefix="tellerline-compose-"))
        more = [tree / "deploy" / "compose-cluster.yaml"] if cluster else []
        files = [tree / "deploy" / "compose.yaml", *more, self._override(queues, NODES if cluster else ())]
        self.files = [part for file in files for part in ("-f", str(file))]
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TELLERLINE_")}
        self.environment |= {"TELLERLINE_PORT": str(self.port), "TELLERLINE_CONTROL_PORT": str(self.control_port)} | settings
        if cluster:
            self.environment["TELLERLINE_BACK"] = self._addresses

    def _override(self, queues: dict[str, dict[str, Any]] | None, nodes: tuple[str, ...]) -> Path:
        """Sets the label by which clean-up finds the remains of an interrupted run, and the test's queues. With queues
        of the test, no event is trimmed, because the checker needs the whole history, and joins and requests are not
        limited, because the whole crowd has one address."""
        name, _, value = MARK.partition("=")
        marked = {"labels": {name: json.dumps(value)}}
        services = {service: dict(marked) for service in ("setup", "shop", "crowd", *CORE, *ARCHIVE, *nodes)}
        if queues is not None:
            settings = {"TELLERLINE_QUEUES": json.dumps(json.dumps(queues)),
                        "TELLERLINE_RETENTION_EVENTS_ENTRIES": '"1000000"', "TELLERLINE_HTTP_JOINS_PER_MINUTE": '"0"'}
            for program in (*PROGRAMS, "control"):
                services[program]["environment"] = settings
            # The gateway limits no proxy in front of it.
            proxies = "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16"
            services["gateway"]["environment"] = {"FRONT_PROXIES": json.dumps(proxies)}
        volumes = ("redis-data", "redis-users", "redis-login", "worker-secrets", "control-secrets", "admitter-secrets",
                   "prometheus-data", "archiver-secrets", "archive-database", "archive-data",
                   *(f"login-{role}" for role in (*PROGRAMS, "operator", "control")),
                   *(node.replace("redis", "redis-data") for node in nodes if node != "cluster"))
        # Compose v1 takes nothing over from the other files, v2 appends to lists.
        back = marked | {"internal": True}
        if nodes and command() == ["docker-compose"]:
            back |= {"ipam": {"config": [{"subnet": f"{self._addresses}.0/24"}]}}
        path = self._directory / "override.yaml"
        path.write_text(yaml({"services": services, "networks": {"front": marked, "shop": marked, "back": back, "control": marked},
                              "volumes": {volume: marked for volume in volumes}}))
        return path

    # ---- start and stop ----

    def compose(self, *args: str) -> str:
        done = subprocess.run([*command(), "-p", self.name, *self.files, *args], env=self.environment, capture_output=True,
                              text=True, errors="surrogateescape", stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, f"compose {' '.join(args)}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout

    def up(self, *services: str, workers: int | None = None) -> None:
        """No service named: all of them."""
        scale = ("--scale", f"worker={workers}") if workers is not None else ()
        self.compose("up", "-d", "--no-recreate", *scale, *services)

    def scale(self, workers: int) -> None:
        """Scales the workers. Returns when exactly this many worker containers run."""
        self.compose("up", "-d", "--no-recreate", "--no-deps", "--scale", f"worker={workers}", "worker")

    def down(self) -> None:
        self.compose("down", "-v", "--remove-orphans", "--timeout", "5")
        shutil.rmtree(self._directory, ignore_errors=True)

    def tails(self, lines: int = 25) -> str:
        """The last lines of all containers' logs."""
        text = []
        for container in self.containers(all_states=True):
            name = docker("inspect", "-f", "{{.Name}} {{.State.Status}} {{.State.ExitCode}}", container)
            done = run("logs", "--tail", str(lines), container)
            text.append(f"---- {name}\n{done.stdout}{done.stderr}")
        return "\n".join(text)

    # ---- containers ----

    def containers(self, service: str = "", all_states: bool = False) -> list[str]:
        """The ids of a service's running containers, or of all its containers, in the order of their numbers."""
        filters = ["--filter", f"label=com.docker.compose.project={self.name}"]
        if service:
            filters += ["--filter", f"label=com.docker.compose.service={service}"]
        shown = docker("ps", *(["-a"] if all_states else []), *filters, "--format",
                       '{{.Label "com.docker.compose.container-number"}} {{.ID}}')
        return [line.split()[1] for line in sorted(shown.splitlines(), key=lambda line: int(line.split()[0]))]

    def one(self, service: str) -> str:
        (container,) = self.containers(service)
        return container

    @contextmanager
    def deaths(self) -> Iterator[list[tuple[str, int]]]:
        """(service, exit status) of each container that ends meanwhile, including removed ones. Filled in at the end.
        (The engine itself keeps only its last 256 events.)"""
        ended: list[tuple[str, int]] = []
        watch = subprocess.Popen(["docker", "events", "--filter", "event=die", "--format", "{{json .Actor.Attributes}}",
                                  "--filter", f"label=com.docker.compose.project={self.name}"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            yield ended
        finally:
            watch.terminate()
            for line in watch.communicate()[0].splitlines():
                attributes = json.loads(line)
                ended.append((attributes["com.docker.compose.service"], int(attributes["exitCode"])))

    def crash(self, container: str) -> bool:
        """Simulates a crash: kill -9 of the first process from the host. The restart policy then applies, unlike after
        `docker kill`. False when the engine's processes are not visible here."""
        pid = int(docker("inspect", "-f", "{{.State.Pid}}", container))
        try:
            if pid > 0 and container in Path(f"/proc/{pid}/cgroup").read_text():
                os.kill(pid, signal.SIGKILL)
                return True
        except (OSError, PermissionError):
            pass
        return False

    # ---- requests ----

    def fetch(self, container: str, port: int, path: str) -> tuple[int, str]:
        """GET from a container, bypassing the gateway. Status 0: no answer."""
        addresses = docker("inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", container)
        if not addresses.split():
            return 0, ""
        try:
            with urllib.request.urlopen(f"http://{addresses.split()[0]}:{port}{path}", timeout=patient(5)) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metrics(self, service: str, container: str) -> dict[str, float]:
        status, text = self.fetch(container, ADMIN_PORTS[service], "/metrics")
        assert status == 200, f"{service} {container}: /metrics: {status}"
        samples = re.findall(r"^(\w+)(?:\{[^}]*\})? ([-+.\de]+)$", text, re.MULTILINE)
        return {name: float(value) for name, value in samples}

    def not_ready(self) -> str:
        """What is not ready, and why. Empty when every program is ready and the gateway forwards requests."""
        for service in SERVICES:
            containers = self.containers(service)
            for container in containers:
                status, why = self.fetch(container, ADMIN_PORTS[service], "/readyz")
                if status != 200:
                    return f"{service} {container}: {status} {why}"
            if not containers:
                return f"no container of {service} runs"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=patient(5)):
                return ""
        except OSError as error:
            return f"gateway: {error}"

    def wait_ready(self) -> None:
        why = ""

        def ready() -> bool:
            nonlocal why
            why = self.not_ready()
            return why == ""

        try:
            wait_until(ready, PATIENCE, f"{self.name} is ready", every=0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}: {why}") from None

    def wait_served(self, queue: str) -> None:
        """A worker is ready before the queues of the configuration are made: its user of Redis may not make them."""
        wait_until(lambda: all(self.fetch(worker, 8080, f"/v1/queues/{queue}")[0] == 200
                               for worker in self.containers("worker")), PATIENCE, f"{queue} is served", every=0.2)

    def workers_behind_gateway(self, tries: int = 32) -> set[str]:
        """The workers, as the gateway names them, that answered at least one of this many requests."""
        names = set()
        for _ in range(tries):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/openapi.yaml", timeout=patient(5)) as answer:
                names.add(answer.headers["X-Served-By"])
        return names

    def redis(self, *args: str) -> str:
        return docker("exec", self.one("redis"), "sh", "/etc/tellerline/redis-cli", *args)

    def server(self) -> dict[str, str]:
        """INFO server."""
        return dict(line.split(":", 1) for line in self.redis("INFO", "server").splitlines() if ":" in line)

    def numbers(self, queue: str) -> dict[str, int]:
        """The counters of a queue, as the store has them."""
        flat = self.redis("HGETALL", f"tl:{{{queue}}}:state").splitlines()
        return {name: int(value) for name, value in zip(flat[::2], flat[1::2]) if value.isdigit()}

    def steps(self, queue: str) -> list[wire.Step]:
        """The whole events stream."""
        text = self.redis("--no-raw", "XRANGE", f"tl:{{{queue}}}:events", "-", "+")
        quoted = re.findall(r'"((?:[^"\\]|\\.)*)"', text)  # id, field, value; id, field, value; ...
        return [wire.step_of(entry_id, _unquoted(value)) for entry_id, value in zip(quoted[::3], quoted[2::3])]

    def audit(self) -> None:
        self.compose("run", "--rm", "-T", "tellerline", "audit")


_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "a": b"\a", "b": b"\b", '"': b'"', "\\": b"\\"}


def _unquoted(text: str) -> str:
    """Decodes a quoted string of redis-cli for wire.step_of."""
    def byte(match: re.Match[str]) -> str:
        raw = bytes([int(match[1], 16)]) if match[1] else _ESCAPES[match[2]]
        return raw.decode("latin-1")

    raw = re.sub(r"\\(?:x([0-9a-f]{2})|(.))", byte, text).encode("latin-1")
    return raw.decode("utf-8", "surrogateescape")
