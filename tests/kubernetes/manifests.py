# SPDX-License-Identifier: Apache-2.0
"""The manifests of deploy/kubernetes, rendered and validated by the Go program in validate/, and lookups in them."""
from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tellerline import TOP
from waiting import patient

HERE = Path(__file__).resolve().parent
SOURCE = TOP / "deploy" / "kubernetes"

#: The version of Kubernetes whose schemas the manifests must agree with: the oldest that
#: docs/operators/kubernetes.md promises.
VERSION = "1.30"

#: The folders that every run renders. SECRETS names the secrets that an overlay needs first.
BASE, EXAMPLE, EXTERNAL, MONITORING = "base", "overlays/example", "overlays/external-redis", "monitoring"
SECRETS = {EXAMPLE: "with-redis", EXTERNAL: "external-redis"}
ALL = (BASE, EXAMPLE, EXTERNAL, MONITORING)

Object = dict[str, Any]

#: What was built or downloaded and still holds is kept here between runs.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tellerline-tests"

_UNREACHABLE = re.compile(
    r"dial tcp|no such host|i/o timeout|connection refused|TLS handshake|module lookup disabled|proxyconnect"
    r"|40[34] (Forbidden|Not Found)|50\d |invalid go version|go\.mod requires go >=|toolchain not available")


class Validator:
    """The Go program in validate/ and the schemas that it reads. Skips the tests if Go or its modules are missing.

    Both are kept in CACHE by a hash of what they are made of: only the first run on a machine downloads and compiles.
    """

    def __init__(self) -> None:
        go = shutil.which("go") or "/usr/local/go/bin/go"
        if not Path(go).exists():
            pytest.skip("Go is not installed: the manifests are neither rendered nor validated")
        self._go = go
        made_of = hashlib.sha256(self._run("version").encode())
        for file in sorted((HERE / "validate").iterdir()):
            made_of.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
        folder = CACHE / f"validator-{made_of.hexdigest()[:16]}"
        self.program, self.schemas = folder / "validate", folder / VERSION
        self.made = "validator: as it was built before"
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / "validator.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (self.program.exists() and self.schemas.is_dir()):
                self._make(folder)

    def _run(self, *args: str) -> str:
        """Runs go without a limit of its own: downloads and the compiler take as long as the machine needs."""
        done = subprocess.run([self._go, *args], cwd=HERE / "validate", stdin=subprocess.DEVNULL, capture_output=True,
                              env=os.environ | {"GOFLAGS": "-mod=readonly -buildvcs=false"}, text=True, check=False)
        if done.returncode != 0:
            if _UNREACHABLE.search(done.stderr):
                pytest.skip(f"the modules of the validator cannot be had: {done.stderr.strip()[-300:]}")
            pytest.fail(f"go {args[0]}: {done.stderr[-3000:]}")
        return done.stdout

    def _make(self, folder: Path) -> None:
        for outdated in CACHE.glob("validator-*"):
            shutil.rmtree(outdated)
        began = time.monotonic()
        # Fetches only what the build needs, and the module whose schemas are read.
        self._run("mod", "download", "sigs.k8s.io/kubectl-validate")
        self._run("list", "-deps", ".")
        listed = time.monotonic() - began
        module = Path(self._run("list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kubectl-validate").strip())
        shutil.copytree(module / "pkg/openapiclient/builtins" / VERSION, self.schemas, copy_function=shutil.copyfile)
        # Compiling takes longer than running it, so the compiler does not optimise.
        self._run("build", "-gcflags=all=-N -l", "-ldflags=-s -w", "-o", str(self.program), ".")
        self.made = (f"validator: modules in {listed:.0f} s, build in {time.monotonic() - began - listed:.0f} s; "
                     "the next run has it")


def copy_with_secrets(target: Path) -> Path:
    """A copy of the manifests with new secrets. The tree itself is not changed. The sale of the example is yet to open,
    whatever day it is."""
    shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("secrets"))
    shutil.copytree(SOURCE.parent / "redis", target.parent / "redis")
    queues = target / EXAMPLE / "queues.yaml"
    text, found = re.subn(r"(?m)^(  opens_at:) .*$", r"\1 2999-12-01T20:00:00+09:00", queues.read_text())
    assert found == 1, "the example has a sale that opens"
    queues.write_text(text)
    for overlay, kind in SECRETS.items():
        subprocess.run([str(target / "make-secrets"), kind, str(target / overlay / "secrets")], check=True)
    return target


class Report:
    """The validator's results for some paths below one folder."""

    def __init__(self, validator: Validator, folder: Path, *paths: str) -> None:
        done = subprocess.run([validator.program, "-schemas", validator.schemas, *paths], cwd=folder,
                              timeout=patient(60), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        reports = json.loads(done.stdout)
        self.objects: dict[str, list[Object]] = {path: reports[path]["objects"] for path in paths}
        self.errors: list[str] = [f"{path}: {error}" for path in paths for error in reports[path]["errors"]]
        assert (done.returncode == 1) == bool(self.errors)


# ---- lookups ----

def name(obj: Object) -> str:
    return obj["metadata"]["name"]


def of_kind(objects: list[Object], *kinds: str) -> list[Object]:
    return [obj for obj in objects if obj["kind"] in kinds]


def workloads(objects: list[Object]) -> list[Object]:
    return of_kind(objects, "Deployment", "StatefulSet")


def named(objects: list[Object], kind: str, wanted: str) -> list[Object]:
    """The objects of this kind with the name `wanted`, ignoring the hash suffix of a generator."""
    return [obj for obj in of_kind(objects, kind) if re.fullmatch(re.escape(wanted) + r"(-[a-z0-9]{10})?", name(obj))]


def one(objects: list[Object], kind: str, wanted: str) -> Object:
    """The only one of these."""
    found = named(objects, kind, wanted)
    assert len(found) == 1, f"{kind}/{wanted}: {[name(obj) for obj in found]}"
    return found[0]


def pod(workload: Object) -> Object:
    return workload["spec"]["template"]["spec"]


def pod_labels(workload: Object) -> dict[str, str]:
    return workload["spec"]["template"]["metadata"]["labels"]


def container(workload: Object, kind: str = "containers") -> Object:
    """The only one of its pod; with "initContainers" the one that runs before."""
    (only,) = pod(workload)[kind]
    return only


def component(workload: Object) -> str:
    return pod_labels(workload)["app.kubernetes.io/component"]


def matches(selector: Object, labels: dict[str, str]) -> bool:
    """A label selector with matchLabels (or the bare mapping of a Service), and with the operator In. An empty one matches
    everything."""
    expressions = selector.get("matchExpressions", [])
    assert all(expression["operator"] == "In" for expression in expressions), "this test understands In alone"
    return (all(labels.get(key) == value for key, value in selector.get("matchLabels", selector).items())
            and all(labels.get(expression["key"]) in expression["values"] for expression in expressions))


def program(workload: Object) -> str:
    """The program in its image, by the image's name. Its registry is one that cannot be reached over the network, until the
    operator names theirs: nobody else can own the name."""
    found = re.match(r"localhost/tellerline/([a-z]+):", container(workload)["image"])
    assert found and "command" not in container(workload)
    return f"tellerline-{found.group(1)}"


def secrets_of(workload: Object) -> set[str]:
    """Every Secret that a pod of this workload can read, without the hash suffix of a generator; "NAME/KEY" for one key
    of it."""
    found = {item["secret"]["secretName"] for item in pod(workload).get("volumes", []) if "secret" in item}
    for key, reference in walk(pod(workload)):
        assert key != "secretRef", "a whole Secret in the environment"
        if key == "secretKeyRef":
            found.add(f"{reference['name']}/{reference['key']}")
    return {re.sub(r"-[a-z0-9]{10}(?=/|$)", "", item) for item in found}


def port_number(workload: Object, port: str | int) -> int:
    """A port of a pod by number or name. The pod must declare it."""
    ports = {item["name"]: item["containerPort"] for item in container(workload)["ports"]}
    if isinstance(port, str):
        assert port in ports, f"{name(workload)} has no port named {port}"
        return ports[port]
    assert port in ports.values(), f"{name(workload)} does not declare port {port}"
    return port


def decoded(secret: Object) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}


def environment_of(workload: Object, objects: list[Object], kind: str = "containers") -> dict[str, str]:
    """The environment of its container, with every reference resolved."""
    values: dict[str, str] = {}
    for source in container(workload, kind).get("envFrom", []):
        values |= one(objects, "ConfigMap", source["configMapRef"]["name"])["data"]
    for item in container(workload, kind).get("env", []):
        if "value" in item:
            values[item["name"]] = item["value"]
        elif "configMapKeyRef" in item["valueFrom"]:
            reference = item["valueFrom"]["configMapKeyRef"]
            values[item["name"]] = one(objects, "ConfigMap", reference["name"])["data"][reference["key"]]
        else:
            reference = item["valueFrom"]["secretKeyRef"]
            values[item["name"]] = decoded(one(objects, "Secret", reference["name"]))[reference["key"]].decode()
    return values


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Every (key, value) of every mapping in it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


