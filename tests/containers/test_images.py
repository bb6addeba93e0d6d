# SPDX-License-Identifier: Apache-2.0
"""The images of deploy/Dockerfile: their content, and that they run in a hardened deployment."""
from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bom
from conftest import TAG, build, options
from engine import HARDENED, MARK, PATIENCE, PROGRAMS, TOP, Line, docker, inspect, run
from http_client import Visitor
from many_queues import QUEUES, queues, sent_for_a_visit, wait_served
from redis_server import Redis
from waiting import patient, wait_until

ALL = PROGRAMS + ("tellerline",)
DEMO = {"demo": {"capacity": 1, "lanes": ["normal"], "default_lane": "normal"}}
STORES = ("redis:8", "redis:7", "valkey/valkey:8")
ADMIN_PORTS = {"worker": 8081, "dispatcher": 8082, "admitter": 8083, "expirer": 8084, "notifier": 8085, "archiver": 8087}
#: The time a program has to exit, as in docs/operators/operations.md and the compose files (seconds), on a machine that
#: is not slow.
GRACE = 15


@pytest.fixture
def line(images: dict[str, str], base_images: Callable[..., None],
         request: pytest.FixtureRequest) -> Iterator[Callable[..., Line]]:
    """Starts lines and removes them. A failed test shows the last lines of their logs."""
    lines: list[Line] = []

    def make(store: str = "redis:8", of: dict[str, str] | None = None) -> Line:
        base_images(store)
        lines.append(Line(of or images, store))
        return lines[-1]

    failures = request.session.testsfailed
    try:
        yield make
    finally:
        for each in lines:
            if request.session.testsfailed > failures:
                print(each.tails())
            each.close()


def serve_two(line: Line) -> None:
    """Two visitors, capacity one: the second waits until the first completes. Then the audit finds nothing."""
    client = line.client()
    first, second = Visitor(client, "demo").join(), Visitor(client, "demo").join()
    wait_until(first.is_active, PATIENCE, "the first is called", every=0.05)
    assert second.status()["status"] == "waiting" and second.view["position"] == 1, second.view
    assert first.complete()["status"] == "completed"
    wait_until(second.is_active, PATIENCE, "the second is called", every=0.05)
    assert second.complete()["status"] == "completed"
    client.close()
    assert "demo: ok" in line.tellerline("audit")


# ---- the metadata of an image ----

@pytest.mark.parametrize("program", ALL)
def test_what_an_image_is(images: dict[str, str], figure: Callable[[str], None], program: str) -> None:
    image = inspect(images[program])
    config = image["Config"]
    binary = "/usr/bin/tellerline" if program == "tellerline" else f"/usr/bin/tellerline-{program}"
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == [binary]
    assert config["Cmd"] == (["--help"] if program == "tellerline" else None)
    assert config["StopSignal"] == "SIGTERM"
    if program == "tellerline":
        assert "Healthcheck" not in config and "ExposedPorts" not in config
    else:
        assert config["Healthcheck"]["Test"] == ["CMD", binary, "--healthcheck"]
        assert f"{ADMIN_PORTS[program]}/tcp" in config["ExposedPorts"]
    assert list(config.get("Volumes") or {}) == (["/var/lib/tellerline"] if program == "worker" else [])
    figure(f"{program}: {image['Size'] / 1e6:.1f} MB")


def digest_of(image: str) -> str:
    """That of the registry it came from. Empty if it came from none."""
    return next((name.partition("@")[2] for name in inspect(image)["RepoDigests"]), "")


@pytest.mark.parametrize("program", ALL)
def test_labels(images: dict[str, str], program: str) -> None:
    labels = {name.removeprefix("org.opencontainers.image."): text
              for name, text in inspect(images[program])["Config"]["Labels"].items()}
    told = docker("run", "--rm", "--label", MARK, *HARDENED, images[program], "--version").split()[-1]
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=TOP, capture_output=True, text=True, check=False).stdout
    assert labels["version"] == told
    assert labels["revision"].removesuffix("-changed") == (head.strip() or "unknown")
    assert labels["licenses"] == "Apache-2.0"
    assert (labels["base.name"], labels["base.digest"]) == ("debian:trixie-slim", digest_of("debian:trixie-slim") or "unknown")
    assert labels["source"] and labels["title"] == "Tellerline" and labels["description"]


def test_nothing_left_over(images: dict[str, str]) -> None:
    """No compiler, no sources, no package lists, no logs, no keys. The licence is present."""
    for program, image in images.items():
        names = names_in(image)
        assert "usr/share/doc/tellerline/copyright" in names
        assert [name for name in names if name.startswith("usr/bin/tellerline")] == \
            ["usr/bin/tellerline" if program == "tellerline" else f"usr/bin/tellerline-{program}"]
        for folder in ("src/", "programs/", "tmp/", "var/log/", "var/lib/apt/lists/", "var/cache/apt/",
                       "var/lib/tellerline/"):
            assert not [name for name in names if name.startswith(folder)], f"{image} has something in /{folder}"
        assert not [name for name in names if name.rpartition("/")[2] in ("cc", "gcc", "cmake", "ninja")]


def test_bill_of_materials(images: dict[str, str], bookworm_images: dict[str, str]) -> None:
    """Each image has one, with all packages that are in it and their versions, and what it is based on."""
    for built, release, base in ((images, "debian-13", "debian:trixie-slim"), (bookworm_images, "debian-12", "debian:bookworm-slim")):
        based_on = f"{base}@{digest_of(base)}" if digest_of(base) else \
            f"{base} of the machine that built it, {inspect(base)['Id']}"
        for image in built.values():
            whole, parts = bom.read("".join(inside(image, "cat /usr/share/doc/tellerline/sbom.cdx.json")))
            assert (whole["type"], whole["name"]) == ("container", "tellerline")
            assert whole["properties"] == [{"name": "tellerline:base-image", "value": based_on}]
            assert whole["version"] == inspect(image)["Config"]["Labels"]["org.opencontainers.image.version"]
            there = dict(line.split() for line in inside(image, "dpkg-query -W -f '${Package} ${Version}\\n'"))
            assert {name: part["version"] for name, part in parts.items()} == there
            assert {"libc6", "tzdata", "ca-certificates"} <= parts.keys()
            assert all(part["purl"].endswith(f"&distro={release}") for part in parts.values()), image
            assert sum("licenses" in part for part in parts.values()) > len(parts) / 2


# ---- running the images ----

@pytest.mark.parametrize("store", STORES)
def test_the_whole_line(line: Callable[..., Line], figure: Callable[[str], None], store: str) -> None:
    """Configured by the environment alone, without privileges, on a read-only file system, with no process of root."""
    system = line(store)
    system.start("dispatcher", "admitter", "expirer", "notifier", "archiver")
    system.start("worker", queues=DEMO)
    serve_two(system)
    for program in PROGRAMS:
        system.wait_health(program, "healthy")
        for text in system.processes(program).values():
            user, command = text.split(maxsplit=1)
            assert user == "65532" and command == f"/usr/bin/tellerline-{program}", text
        assert docker("diff", system.name(program)) == ""
        began = time.monotonic()
        # One that does not end in time is killed, and its status tells.
        docker("stop", "--time", f"{patient(GRACE):.0f}", system.name(program))
        took = time.monotonic() - began
        state = inspect(system.name(program))["State"]
        assert state["ExitCode"] == 0, f"{program}: {state}"
        figure(f"{program} ends in {took:.1f} s")


@pytest.mark.parametrize("store", STORES)
def test_a_lone_visit_beside_many_queues(line: Callable[..., Line], figure: Callable[[str], None], store: str) -> None:
    """Above 32 queues the programs learn from the store which of them were written, instead of waiting for all."""
    system = line(store)
    options = ("--env", "TELLERLINE_HTTP_JOINS_PER_MINUTE=0")
    sent = {}
    system.start("dispatcher", "admitter", "expirer")
    for n in (1, QUEUES):
        system.start(f"worker-{n}", queues=queues(n), options=options)
        client, redis = system.client(f"worker-{n}"), Redis((system.address("redis"), 6379))
        wait_served(redis, n)
        sent[n] = sent_for_a_visit(redis, client)
        client.close()
        redis.close()
    figure(f"bytes sent to {store} for a visit: {sent}")
    assert 0 < sent[QUEUES] <= 2 * sent[1], sent


def test_no_shell_is_needed(line: Callable[..., Line]) -> None:
    """The same, health checks included, where the shells are no programs any more."""
    shells = tuple(part for shell in ("bash", "dash") for part in ("--volume", f"/dev/null:/usr/bin/{shell}:ro"))
    system = line()
    system.start(*PROGRAMS, queues=DEMO, options=shells)
    serve_two(system)
    for program in PROGRAMS:
        system.wait_health(program, "healthy")
        for shell in ("sh", "bash"):
            assert run("exec", system.name(program), f"/bin/{shell}", "-c", "true").returncode == 126, shell


@pytest.fixture(scope="module")
def healthy(images: dict[str, str], base_images: Callable[..., None]) -> Iterator[Line]:
    """A line of all programs, which its tests leave as they found it."""
    base_images("redis:8")
    system = Line(images)
    try:
        system.start(*PROGRAMS)
        yield system
    finally:
        system.close()


@pytest.mark.xdist_group("health")
@pytest.mark.parametrize("program", PROGRAMS)
def test_health_is_true(healthy: Line, program: str) -> None:
    """A stopped program becomes unhealthy, and healthy again when it continues."""
    def says(status: int, what: str) -> None:
        """One answer may take longer than a check waits, on a busy machine."""
        def told() -> bool:
            done = healthy.healthcheck(program)
            return (done.returncode, done.stdout + done.stderr) == (
                status, f"tellerline-{program} at 0.0.0.0:{ADMIN_PORTS[program]} {what}\n")
        wait_until(told, PATIENCE, what, every=0.2)

    healthy.wait_health(program, "healthy")
    says(0, "is alive")
    members = list(healthy.processes(program))
    for pid in members:
        os.kill(pid, signal.SIGSTOP)
    try:
        says(1, "does not answer")
        healthy.wait_health(program, "unhealthy")
    finally:
        for pid in members:
            os.kill(pid, signal.SIGCONT)
    healthy.wait_health(program, "healthy")


def test_health_without_an_admin_listener(line: Callable[..., Line]) -> None:
    """The health check asks a worker at its visitors' port. Other programs report that they have no such port."""
    system = line()
    system.start("worker", options=("--env", "TELLERLINE_ADMIN_WORKER="))
    system.wait_health("worker", "healthy")
    assert system.healthcheck("worker").stdout == "tellerline-worker at 0.0.0.0:8080 is alive\n"
    system.start("dispatcher", options=("--env", "TELLERLINE_ADMIN_DISPATCHER="))
    done = system.healthcheck("dispatcher")
    assert done.returncode == 1 and "no listener with a fixed port" in done.stderr
    system.wait_health("dispatcher", "unhealthy")


def test_health_on_every_address(line: Callable[..., Line]) -> None:
    """[::] accepts IPv4 and IPv6, also in a container without IPv6 loopback."""
    system = line()
    for case, disabled in (("worker-a", "0"), ("worker-b", "1")):
        system.start(case, options=("--env", "TELLERLINE_ADMIN_WORKER=[::]:8081",
                                    "--sysctl", f"net.ipv6.conf.all.disable_ipv6={disabled}"))
        system.wait_health(case, "healthy")


def test_a_file_as_configuration(line: Callable[..., Line], tmp_path: Path) -> None:
    """TELLERLINE_CONFIG names a mounted file, for program and health check. A broken file stops the start."""
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("http:\n  listen: 0.0.0.0:9090\nsecrets:\n  ticket_keys: /var/lib/tellerline/secrets/ticket.keys\n"
                    "  pass_keys: /var/lib/tellerline/secrets/pass.keys\nqueues:\n  filed: { capacity: 1 }\n")
    bad.write_text("http:\n  listen: 1\n")
    tmp_path.chmod(0o755)
    system = line()

    def with_file(path: Path) -> tuple[str, ...]:
        return ("--volume", f"{path}:/etc/tellerline.yaml:ro", "--env", "TELLERLINE_CONFIG=/etc/tellerline.yaml")

    system.start("worker", options=(*with_file(good), "--env", "TELLERLINE_ADMIN_WORKER="))
    system.wait_health("worker", "healthy")
    assert system.healthcheck("worker").stdout == "tellerline-worker at 0.0.0.0:9090 is alive\n"
    wait_until(lambda: "filed" in system.tellerline("queue", "list"), PATIENCE, "the file's queue exists", every=0.2)
    system.start("dispatcher", options=with_file(bad))
    name = system.name("dispatcher")
    wait_until(lambda: inspect(name)["State"]["Status"] == "exited", PATIENCE, "it ends", every=0.1)
    assert inspect(name)["State"]["ExitCode"] == 1
    assert "/etc/tellerline.yaml:2:11" in run("logs", name).stderr


def test_keys_stay_in_the_volume(line: Callable[..., Line]) -> None:
    """A ticket outlives the worker's container, and another worker on the same volume accepts it."""
    system = line()
    system.start("dispatcher", "admitter", "expirer", "worker", queues=DEMO)
    visitor = Visitor(system.client(), "demo").join()
    system.start("worker-two", queues=DEMO)
    assert visitor.status(system.client("worker-two"))["visitor"] == visitor.view["visitor"]
    system.remove("worker")
    system.start("worker", queues=DEMO)
    assert visitor.status(system.client("worker"))["visitor"] == visitor.view["visitor"]
    listed = docker("run", "--rm", "--label", MARK, "--volume", f"{system.volume('keys')}:/keys", "redis:8",
                    "find", "/keys", "-type", "f", "-printf", "%m %U %P\n").splitlines()
    assert "600 65532 secrets/ticket.keys" in listed and all(row.startswith("600 65532 ") for row in listed), listed


def test_stop_drains(line: Callable[..., Line], figure: Callable[[str], None]) -> None:
    """A worker that is stopped drains: its event streams end properly, and it exits with 0."""
    system = line()
    system.start(*PROGRAMS, queues=DEMO)
    Visitor(system.client(), "demo").join()
    visitor = Visitor(system.client(), "demo").join()
    visitor.client.send("GET", f"{visitor.path}/events", ticket=visitor.ticket)
    stopping = threading.Thread(target=docker, args=("stop", "--time", f"{patient(GRACE):.0f}", system.name("worker")))
    wait_until(lambda: 'tellerline_worker_event_streams{role="worker"} 1' in system.metrics(), PATIENCE,
               "the stream is open", every=0.1)
    began = time.monotonic()
    stopping.start()
    answer = visitor.client.receive()  # fails if the stream is cut off
    stopping.join()
    took = time.monotonic() - began
    assert answer.status == 200 and b"event: position" in answer.body
    assert inspect(system.name("worker"))["State"]["ExitCode"] == 0
    figure(f"a worker with a stream ends in {took:.1f} s")


# ---- building the images ----

def inside(image: str, command: str) -> list[str]:
    """The lines that a shell command says as root in a container of the image."""
    return docker("run", "--rm", "--label", MARK, "--network", "none", "--user", "0:0", "--workdir", "/",
                  "--entrypoint", "sh", image, "-c", command).splitlines()


#: The engine puts these into every container.
ENGINE = {".dockerenv", "etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/mtab"}


def names_in(image: str) -> set[str]:
    """Every file of an image."""
    return {name.removeprefix("./") for name in inside(image, "find . -xdev ! -type d")} - ENGINE


def contents(image: str) -> dict[str, str]:
    """Every file of an image: type, mode, owner and content, without its time."""
    attributes = inside(image, r"find . -xdev ! -type d -printf '%P\t%y %m %U:%G %l\n'")
    found = dict(line.split("\t") for line in attributes)
    for line in inside(image, "find . -xdev -type f -print0 | xargs -0 sha256sum"):
        digest, name = line.split(maxsplit=1)
        found[name.removeprefix("./")] += digest
    return {name: text for name, text in found.items() if name not in ENGINE}


def test_images_share_their_layers(images: dict[str, str], bookworm_images: dict[str, str]) -> None:
    """All but the program itself is in the same layers, so that a machine stores and fetches it once."""
    for built in (images, bookworm_images):
        shared = {tuple(inspect(image)["RootFS"]["Layers"][:-1]) for image in built.values()}
        assert len(shared) == 1, shared


# It removes layers that another build may just have found in the cache. So one process has all tests that build.
@pytest.mark.xdist_group("builds")
@pytest.mark.long(seconds=40)
def test_two_builds_are_the_same(quick_images: tuple[str, dict[str, str]], figure: Callable[[str], None]) -> None:
    """Built again without cache, an image has the same files with the same content and modes. Only times differ. The
    images differ only in the program (test_images_share_their_layers), and the programs of two compilations are
    compared by test_same_sources_same_package."""
    debian, images = quick_images
    began = time.monotonic()
    again = build(*options(debian, f"{TAG}-again"), "--no-cache", "tellerline")["tellerline"]
    figure(f"a build without cache: {time.monotonic() - began:.0f} s")
    try:
        assert inspect(again)["Id"] != inspect(images["tellerline"])["Id"]
        one, other = contents(images["tellerline"]), contents(again)
        differ = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        assert not differ, differ
        assert len(one) > 1000
        figure(f"{len(one)} files are the same")
    finally:
        docker("rmi", again)


@pytest.mark.long(seconds=20)
def test_debian_bookworm(line: Callable[..., Line], bookworm_images: dict[str, str],
                         figure: Callable[[str], None]) -> None:
    """All images on Debian 12, with Debian's Redis."""
    for name in bookworm_images.values():
        figure(f"{name}: {inspect(name)['Size'] / 1e6:.1f} MB")
    system = line("redis:7", bookworm_images)
    system.start(*PROGRAMS, queues=DEMO)
    serve_two(system)
    for program in PROGRAMS:
        system.wait_health(program, "healthy")
        release = docker("exec", system.name(program), "cat", "/etc/debian_version")
        assert release.startswith("12."), release


def test_build_script_refuses() -> None:
    for words in (["--debian", "buster"], ["--nonsense"], ["archivist"], ["--tag"], ["--base"]):
        done = subprocess.run([TOP / "deploy/images", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "deploy/images: " in done.stderr, words


# ---- stand-ins for third-party images ----

def test_stand_ins(base_images: Callable[..., None]) -> None:
    """Existing images are left alone. Unknown names are refused."""
    there = ("redis:8", "debian:trixie-slim")
    base_images(*there)
    before = [inspect(name)["Id"] for name in there]
    base_images(*there)
    assert [inspect(name)["Id"] for name in there] == before
    done = subprocess.run([TOP / "tests/containers/base-images", "redis:8", "redis:1"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2 and "no such image: redis:1" in done.stderr
