# SPDX-License-Identifier: Apache-2.0
"""One process per workload of the manifests, with the same environment, arguments and files as its pod.

Addresses are translated to loopback with free ports, and mounted files to a folder.
"""
from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from http_client import CONNECTION_TROUBLE, Answer, Client
from manifests import (Object, component, container, decoded, environment_of, named, one, pod, port_number, program,
                       workloads)
from tellerline import PATIENCE, environment, free_port
from waiting import patient, wait_until


class Process:
    """The process of the single container of a workload."""

    def __init__(self, workload: Object, objects: list[Object], binaries: Path, directory: Path) -> None:
        self.workload = workload
        self.role = component(workload)
        self.directory = directory / self.role
        self.directory.mkdir()
        self.log = self.directory / "log"
        self.ports = {item["containerPort"]: free_port() for item in container(workload)["ports"]}
        self._objects, self._binaries = objects, binaries
        self._folders = self._mounts()
        self._process: subprocess.Popen[bytes] | None = None

    def _mounts(self) -> dict[str, Path]:
        """Each mounted volume as a folder. Secret volumes hold their files, with the mode of the manifest."""
        folders = {}
        volumes = {item["name"]: item for item in pod(self.workload).get("volumes", [])}
        for mount in container(self.workload).get("volumeMounts", []):
            folder = self.directory / mount["name"]
            folder.mkdir()
            folders[mount["mountPath"]] = folder
            secret = volumes.get(mount["name"], {}).get("secret")
            if secret is None or (secret.get("optional") and not named(self._objects, "Secret", secret["secretName"])):
                continue
            for name, data in decoded(one(self._objects, "Secret", secret["secretName"])).items():
                (folder / name).write_bytes(data)
                (folder / name).chmod(secret["defaultMode"])
        return folders

    def local(self, text: str) -> str:
        """A value of the manifest, translated for this machine."""
        for path, folder in self._folders.items():
            text = re.sub(rf"^{re.escape(path)}(?=/|$)", str(folder), text)
        found = re.fullmatch(r"(0\.0\.0\.0|127\.0\.0\.1):(\d+)", text)
        if found is None:
            return text
        if found.group(1) == "127.0.0.1":  # of the pod alone, so not declared
            assert int(found.group(2)) not in self.ports
            return f"127.0.0.1:{free_port()}"
        return f"127.0.0.1:{self.ports[int(found.group(2))]}"

    def start(self, redis_port: int) -> None:
        if self.role == "redis":
            (command,) = container(self.workload)["command"]
            arguments = [self.local(argument) for argument in container(self.workload)["args"]]
            argv = [command, *arguments, "--port", str(redis_port), "--bind", "127.0.0.1"]
            env: dict[str, str] = {}
        else:
            argv = [str(self._binaries / program(self.workload))]
            env = {name: self.local(value).replace("@tellerline-redis:6379/", f"@127.0.0.1:{redis_port}/")
                   for name, value in environment_of(self.workload, self._objects).items()}
            assert f"@127.0.0.1:{redis_port}/" in env["TELLERLINE_REDIS_URL"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *argv], env=environment(env),
                                             cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def probe(self, kind: str) -> Answer | int:
        """Runs a probe like the kubelet: an HTTP request, or a command with its exit status."""
        probe = container(self.workload)[kind]
        if "exec" in probe:
            command = list(probe["exec"]["command"])
            command[1:1] = ["-p", str(self.ports[6379])]
            return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=patient(10),
                                  check=False).returncode
        client = Client(self.port(probe["httpGet"]["port"]), timeout=patient(probe.get("timeoutSeconds", 1)))
        try:
            return client.get(probe["httpGet"]["path"])
        finally:
            client.close()

    def port(self, of: str | int) -> int:
        return self.ports[port_number(self.workload, of)]

    def succeeds(self, kind: str) -> bool:
        assert self._process is not None and self._process.poll() is None, self.tail()
        try:
            answer = self.probe(kind)
        except CONNECTION_TROUBLE:
            return False
        return answer == 0 if isinstance(answer, int) else answer.status == 200

    def is_ready(self) -> bool:
        return self.succeeds("readinessProbe")

    def metrics(self) -> str:
        client = Client(self.port("metrics"))
        try:
            return client.get("/metrics").body.decode()
        finally:
            client.close()

    def stop(self, seconds: float) -> int:
        """Sends SIGTERM. The process must exit within this many seconds of a machine that is not slow. Returns its exit
        status."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(patient(seconds))

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def tail(self) -> str:
        return f"{self.role}:\n" + (self.log.read_text(errors="replace")[-3000:] if self.log.exists() else "")


class Cluster:
    """A process for each workload."""

    def __init__(self, objects: list[Object], binaries: Path, directory: Path) -> None:
        assert shutil.which("redis-server") and shutil.which("redis-cli")
        self.binaries = binaries
        self.processes = {component(workload): Process(workload, objects, binaries, directory)
                          for workload in workloads(objects)}
        self.redis_port = self.processes["redis"].ports[6379]

    def start(self) -> None:
        for role in sorted(self.processes, key=lambda role: role != "redis"):
            self.processes[role].start(self.redis_port)
        for process in self.processes.values():
            wait_until(process.is_ready, PATIENCE, f"{process.role} is ready")

    def finish(self) -> None:
        """Every process exits within the grace period, with status 0. Redis is the last."""
        for role in sorted(self.processes, key=lambda role: role == "redis"):
            process = self.processes[role]
            grace = pod(process.workload)["terminationGracePeriodSeconds"]
            assert process.stop(grace) == 0, process.tail()
            assert "Sanitizer" not in process.tail(), process.tail()

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
