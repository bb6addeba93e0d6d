# SPDX-License-Identifier: Apache-2.0
"""deploy/compose.yaml under load: the answers that visitors got while it was scaled, restarted and killed are checked.

TELLERLINE_SEED=N repeats the choices of a run; TELLERLINE_KILL_SECONDS makes the kills go on longer.
"""
from __future__ import annotations

import http.cookiejar
import json
import os
import random
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import PATIENCE, docker, run
from project import ARCHIVE, CORE, SERVICES, Project, clean_copy, command
from visitors import Crowd, CrowdOptions
from history import Final, check
from redis_cluster import SLOTS, slot_of
from waiting import patient, wait_until

pytestmark = pytest.mark.alone

CAPACITY = 40
QUEUE = {"capacity": CAPACITY, "claim_ttl": "40s", "session_ttl": "5m", "waiting_ttl": "2m"}
#: A crowd that keeps a line for as long as the test needs it.
CROWD = {"visitors": 450, "at_once": 300, "per_second": 22, "dwell": 1.5}
#: The queues of the project that tests share, one for each of them.
SHARED = {"users": {"capacity": 1}, "scaled": QUEUE, "rolled": QUEUE, "killed": QUEUE,
          "load": QUEUE | {"capacity": 1, "waiting_ttl": "1h", "claim_ttl": "1h", "session_ttl": "1h"}}
#: A worker may be this far behind (seconds) after it, or Redis, was restarted.
STALENESS = 3.0
OUTCOME_WAIT = 3.0  # http.join_wait
SEED = int(os.environ.get("TELLERLINE_SEED", random.SystemRandom().randrange(10**6)))


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of the repository."""
    return clean_copy(tmp_path_factory.mktemp("clone"))


class Projects:
    """Starts projects, and removes them."""

    def __init__(self, tree: Path, images: dict[str, str], base_images: Callable[..., None]) -> None:
        self._tree, self._tag, self._base_images = tree, images["worker"].rpartition(":")[2], base_images
        self._running: list[Project] = []

    def __call__(self, queues: dict[str, dict[str, Any]] | None, workers: int | None = None, store: str = "redis:8",
                 tag: str = "", services: tuple[str, ...] = CORE, cluster: bool = False, **settings: str) -> Project:
        """start(queues={...}, workers=1, store="redis:8", tag=..., services=CORE, TELLERLINE_APPENDFSYNC="always")"""
        self._base_images(store, "haproxy:3.0")
        project = Project(self._tree, {"TELLERLINE_TAG": tag or self._tag, "TELLERLINE_REDIS_IMAGE": store} | settings,
                          queues, cluster)
        self._running.append(project)
        project.up(*services, workers=workers)
        project.wait_ready()
        for queue in queues or {}:
            project.wait_served(queue)
        return project

    def down(self, with_logs: bool) -> None:
        """After a failure, with the last lines of their logs."""
        for project in self._running:
            try:
                if with_logs:
                    print(project.tails())
            finally:
                project.down()
        self._running.clear()


@pytest.fixture
def start(tree: Path, images: dict[str, str], base_images: Callable[..., None],
          request: pytest.FixtureRequest) -> Iterator[Projects]:
    """Starts projects of one test."""
    failures = request.session.testsfailed
    projects = Projects(tree, images, base_images)
    try:
        yield projects
    finally:
        projects.down(request.session.testsfailed > failures)


@pytest.fixture(scope="module")
def shared(tree: Path, images: dict[str, str], base_images: Callable[..., None]) -> Iterator[dict[str, Any]]:
    projects = Projects(tree, images, base_images)
    holder: dict[str, Any] = {"start": projects, "project": None}
    try:
        yield holder
    finally:
        projects.down(False)


@pytest.fixture
def project(shared: dict[str, Any], request: pytest.FixtureRequest) -> Iterator[Project]:
    """The project that several tests share, each with a queue of its own; with one worker. A test that fails leaves
    nothing to the next."""
    failures = request.session.testsfailed
    try:
        if shared["project"] is None:
            shared["project"] = shared["start"](SHARED, workers=1, TELLERLINE_APPENDFSYNC="always")
        else:
            shared["project"].scale(1)
            shared["project"].wait_ready()
        yield shared["project"]
    finally:
        if shared["project"] is None or request.session.testsfailed > failures:
            shared["project"] = None
            shared["start"].down(True)


#: Of the tests that use `project`, so that one process has them all.
together = pytest.mark.xdist_group("project")


def crowd_at(project: Project, queue: str, **options: Any) -> Crowd:
    print(f"TELLERLINE_SEED={SEED}")
    crowd = Crowd(CrowdOptions(project.port, queue, seed=SEED, **options))
    crowd.incarnation = project.numbers(queue).get("incarnation", 1)
    return crowd.start()


def judge(project: Project, queue: str, crowd: Crowd, capacity: int = CAPACITY) -> str:
    """Waits until all visitors are done. Fails if one fair line cannot explain what they saw. Returns a summary."""
    crowd.finish()
    # Places whose client got no answer are never claimed and expire.
    wait_until(lambda: (numbers := project.numbers(queue))["waiting"] == 0 and numbers["active"] == 0, PATIENCE,
               "the line drains to empty", every=0.5)
    project.audit()
    steps, numbers = project.steps(queue), project.numbers(queue)
    # Some of these tests restart Redis: as often as Redis itself knows of.
    crowd.history.restarts = numbers["incarnation"] - crowd.incarnation
    try:
        check(crowd.history, steps, capacity, Final(numbers, numbers["waiting"], numbers["active"]),
              patient(STALENESS) + crowd.lateness, one_clock=True)
    except AssertionError as error:
        raise AssertionError(f"{error} (TELLERLINE_SEED={SEED}; {crowd.summary()})") from error
    assert max(step.active for step in steps) == capacity, "the queue was never full, so the capacity was not tested"
    ends = [stay.end for stay in crowd.history.stays]
    return (f"seed {SEED}: {crowd.summary()}; {ends.count('completed')} completed, {ends.count('left')} left, "
            f"{len(steps)} events")


def spread(project: Project, name: str) -> list[int]:
    """One metric of each worker container."""
    return [int(project.metrics("worker", worker).get(name, 0)) for worker in project.containers("worker")]


STREAMS, JOINS = "tellerline_worker_event_streams", "tellerline_worker_joins_total"


def scale_under_load(project: Project, queue: str, sizes: tuple[int, ...], figure: Callable[[str], None],
                     **options: Any) -> None:
    """While visitors arrive, each added worker takes its share, and each removed one drains and exits."""
    crowd = crowd_at(project, queue, **options)
    a_line_has_formed(crowd)
    for before, size in zip(sizes, sizes[1:]):
        figure(f"{before} workers: streams {spread(project, STREAMS)}, joins {spread(project, JOINS)}")
        with project.deaths() as deaths:
            project.scale(size)
        project.wait_ready()
        assert len(project.containers("worker")) == size
        joins = dict(zip(project.containers("worker"), spread(project, JOINS)))
        wait_until(lambda: takes_part(project, joins), PATIENCE, f"all of {size} workers take part", every=0.5)
        took = dict(zip(project.containers("worker"), spread(project, JOINS)))
        figure(f"{before} -> {size} workers: streams {spread(project, STREAMS)}, joins since "
               f"{[took[each] - joins[each] for each in took]}")
        assert deaths == [("worker", 0)] * max(0, before - size), (
            f"ended while scaling from {before} to {size}: {deaths}")
    figure(judge(project, queue, crowd))
    # Adding and removing workers causes no errors. A few requests may reach a worker as it closes its port. On a machine
    # that stalls for as long as a worker waits for an outcome, outcomes are unknown without that.
    troubles = crowd.tally.troubles.copy()
    if crowd.lateness > OUTCOME_WAIT:
        del troubles["503 /problems/unknown-outcome"]
    assert troubles.total() <= 5, f"visitors saw {crowd.tally.troubles}; {crowd.summary()}"


def takes_part(project: Project, joins: dict[str, int]) -> bool:
    """Every worker holds event streams and has answered at least ten new joins since `joins` was recorded."""
    return min(spread(project, STREAMS)) > 0 and all(
        now - joins[worker] >= 10 for worker, now in zip(joins, spread(project, JOINS)))


# ---- the tests ----

@pytest.mark.xdist_group("builds")
@pytest.mark.long(seconds=60)
def test_up_from_a_clean_copy(start, figure):
    """`up` alone, which also builds the images: the demo answers, turns visitors away, and lets them in."""
    tag = f"clean-{SEED}"
    began = time.monotonic()
    try:
        project = start(None, None, tag=tag, services=())
        figure(f"from a clean copy to ready: {time.monotonic() - began:.0f} s")
        visit_the_demo(project)
    finally:
        built = docker("images", "--filter", f"reference=localhost/tellerline/*:{tag}",
                       "--format", "{{.Repository}}:{{.Tag}}").split()
        for image in built:
            run("rmi", "--force", image)
    assert len(built) >= 5, f"`up` built only {built}"


def visit_the_demo(project: Project) -> None:
    """As a browser: the shop redirects to the waiting page, and an admitted visitor sees the shop."""
    cookies = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
    base = f"http://localhost:{project.port}"

    def landed() -> str:
        """The final address of the first visit. A later visit with the same place may be let in."""
        try:
            with browser.open(f"{base}/", timeout=patient(10)) as page:
                return page.geturl()
        except OSError:
            return ""

    url = wait_until(landed, PATIENCE, "the demo is served", every=0.2)
    assert "/q/demo" in url, f"not sent to the waiting page: {url}"
    numbers = wait_until(lambda: _json(browser, f"{base}/v1/queues/demo", lambda view: view["active"] > 0), PATIENCE,
                         "the crowd comes")
    assert numbers["capacity"] == 20
    view = _json(browser, urllib.request.Request(f"{base}/v1/queues/demo/join", method="POST"))
    ticket = next((cookie for cookie in cookies if cookie.name == "tellerline_demo"), None)
    assert ticket is not None and view["status"] in ("waiting", "active")
    wait_until(lambda: _json(browser, f"{base}/v1/queues/demo/status", lambda view: view["status"] == "active"),
               PATIENCE, "our turn", every=0.5)
    with browser.open(f"{base}/", timeout=patient(10)) as page:
        assert page.status == 200 and "/q/demo" not in page.geturl(), page.geturl()


def _json(browser: urllib.request.OpenerDirector, what: str | urllib.request.Request,
          only_if: Callable[[dict[str, Any]], bool] = lambda view: True) -> dict[str, Any] | None:
    with browser.open(what, timeout=patient(10)) as answer:
        view = json.load(answer)
    return view if only_if(view) else None


@together
@pytest.mark.long(seconds=15)
def test_each_program_is_a_user_of_its_own(project, tmp_path):
    """In Redis, and with a password that no other container can read. Nothing is denied in a visitor's whole life. A
    password that the operator brings is taken over."""
    users = {f"tellerline-{program}" for program in (*SERVICES, "control") if program != "notifier"}  # it has no webhooks
    wait_until(lambda: users_in_redis(project) == users, PATIENCE, "each program has logged in, and nobody else")
    logins = {volume(project, service, "/run/tellerline") for service in SERVICES}
    assert len(logins) == len(SERVICES), logins
    visitor = visit(project, "users")
    wait_until(lambda: visitor("GET", "status")["status"] == "active", PATIENCE, "called")
    assert visitor("POST", "complete")["status"] == "completed"
    project.compose("run", "--rm", "-T", "tellerline", "queue", "set", "users", "capacity=2")
    project.audit()
    denied = [dict(zip(lines[::2], lines[1::2])) for entry in project.redis("ACL", "LOG").split("count\n")[1:]
              for lines in [["count", *entry.splitlines()]]]
    # A worker may not create queues, nor load functions, and leaves that to the others.
    assert {(entry["username"], entry["reason"], entry["object"]) for entry in denied} <= {
        ("tellerline-worker", "command", "xgroup|create"), ("tellerline-worker", "command", "function|load"),
        ("tellerline-control", "command", "function|load")}, denied
    (tmp_path / "worker.password").write_text("brought by the operator\n".replace(" ", "-"))
    tmp_path.chmod(0o755)
    project.compose("run", "--rm", "-T", "-v", f"{tmp_path}:/bring:ro", "setup")
    project.compose("restart", "redis", "worker")
    project.wait_ready()
    assert project.redis("--user", "tellerline-worker", "--pass", "brought-by-the-operator", "PING").strip() == "PONG"


@pytest.mark.long(seconds=40)
def test_the_archive(start, base_images):
    """The profile `archive`: PostgreSQL, its tables and the archiver, which is a user of its own in Redis. It has what
    happened, also after it and PostgreSQL were made again. Workers serve what they read as a user of their own."""
    base_images("postgres:17")
    project = start({"sale": {"capacity": 1}}, workers=1, services=(*CORE, *ARCHIVE), COMPOSE_PROFILES="archive",
                    TELLERLINE_ARCHIVE_URL_FILE="/run/tellerline/archive.url")
    first, second = visit(project, "sale"), visit(project, "sale")
    wait_until(lambda: first("GET", "status")["status"] == "active", PATIENCE, "called")

    def reported(sentence: str) -> bool:
        done = subprocess.run([*command(), "-p", project.name, *project.files, "run", "--rm", "-T", "--no-deps", "archive",
                               "report", "sale"], env=project.environment, capture_output=True, text=True, check=False)
        return sentence in done.stdout

    wait_until(lambda: reported("Arrived 2: admitted 1, gave up 0, still waiting 1."), PATIENCE, "both are archived")
    assert "tellerline-archiver" in users_in_redis(project)
    with urllib.request.urlopen(f"http://127.0.0.1:{project.port}/v1/queues/sale/trail/checkpoint", timeout=patient(10)) as answer:
        assert answer.read().startswith(b"localhost/sale/"), "the trail of the queue"
    reads = "SELECT DISTINCT usename FROM pg_stat_activity WHERE application_name = 'tellerline-worker'"
    assert docker("exec", project.one("postgres"), "psql", "-U", "archive", "-Atc", reads).strip() == "worker"
    project.compose("rm", "-s", "-f", *ARCHIVE)
    assert second("POST", "leave")["status"] == "left", "the line goes on"
    project.compose("up", "-d", *ARCHIVE)
    wait_until(lambda: reported("Arrived 2: admitted 1, gave up 1, still waiting 0."), PATIENCE, "nothing is missing")


@together
@pytest.mark.long(seconds=15)
def test_operators_have_a_service_of_their_own(project):
    """The dashboard is at one address of this machine, and a browser there signs in with what one command writes. The
    containers that visitors reach have neither the secrets of operators nor an admin API."""
    at = f"http://localhost:{project.control_port}"
    workers = project.containers("worker")
    address = project.compose("run", "--rm", "-T", "--no-deps", "dashboard").strip()
    assert address.startswith(f"{at}/#/sign-in/"), address
    assert project.containers("worker") == workers, "`run` has replaced or removed workers"
    token = address.rpartition("/")[2]
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    with browser.open(at + "/", timeout=patient(10)) as page:
        assert b"<html" in page.read()
    sign_in = urllib.request.Request(f"{at}/v1/admin/session", json.dumps({"token": token}).encode(),
                                     {"Content-Type": "application/json", "Origin": at})
    assert _json(browser, sign_in)["role"] == "admin"
    assert "queues" in _json(browser, f"{at}/v1/admin/queues")
    published = docker("port", project.one("control")).strip()
    assert published == f"8081/tcp -> 127.0.0.1:{project.control_port}"
    visitors = project.one("worker")
    mounted = docker("inspect", "-f", "{{range .Mounts}}{{.Name}} {{end}}", visitors)
    assert not re.search("control", mounted), mounted
    address = docker("inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", visitors).split()[0]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://{address}:8081/v1/admin/queues", timeout=patient(5))
    assert not docker("port", visitors).strip()


def users_in_redis(project: Project) -> set[str]:
    """Without the caller."""
    found = {word.partition("=")[2] for line in project.redis("CLIENT", "LIST").splitlines() for word in line.split()
             if word.startswith("user=")}
    return found - {"admin", "health", "default"}


def volume(project: Project, service: str, path: str) -> str:
    (container,) = project.containers(service)
    wanted = '{{range .Mounts}}{{if eq .Destination "' + path + '"}}{{.Name}}{{end}}{{end}}'
    return docker("inspect", "-f", wanted, container)


def visit(project: Project, queue: str) -> Callable[[str, str], dict[str, Any]]:
    """Joins. Returns how to ask further."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def ask(method: str, verb: str) -> dict[str, Any]:
        request = urllib.request.Request(f"http://localhost:{project.port}/v1/queues/{queue}/{verb}", method=method)
        return _json(browser, request) or {}

    wait_until(lambda: ask("POST", "join")["status"] in ("waiting", "active"), PATIENCE, "in the line",
               again_on=(KeyError, urllib.error.HTTPError))
    return ask


@together
@pytest.mark.long(seconds=70)
def test_scaling_workers_under_load(project, figure):
    assert project.server()["redis_version"].startswith("8."), project.server()
    scale_under_load(project, "scaled", (1, 4, 2), figure, **CROWD)


@pytest.mark.long(seconds=80)
@pytest.mark.parametrize("store", ["redis:8", "valkey/valkey:8"])
def test_on_a_redis_cluster(start, store):
    """compose-cluster.yaml: three masters and three replicas serve queues of every node. The queue of one that is killed
    goes on at its replica, the others meanwhile; and all after all were restarted."""
    queues = {name: {"capacity": 1} for name in ("q0", "q1", "q2")}  # one on each master
    project = start(queues, workers=1, store=store, cluster=True)
    lines = project.redis("CLUSTER", "NODES").splitlines()
    assert sum("master" in line for line in lines) == 3 and sum("slave" in line for line in lines) == 3, lines
    first, second = ({queue: visit(project, queue) for queue in queues} for _ in range(2))
    victim = next(queue for queue in queues if slot_of(f"{{{queue}}}") * 3 // SLOTS == 1)
    killed = project.one("redis-2")
    docker("kill", killed)
    for queue in sorted(queues, key=victim.__eq__):  # its own queue last
        for ask in (first[queue], second[queue]):
            for method, verb, status in (("GET", "status", "active"), ("POST", "complete", "completed")):
                wait_until(lambda: ask(method, verb)["status"] == status, PATIENCE, f"{queue}: {status}",  # noqa: B023
                           again_on=OSError)
    docker("start", killed)
    project.wait_ready()
    project.compose("restart")
    project.wait_ready()
    for queue in queues:
        visit(project, queue)
    project.audit()


@pytest.mark.long(seconds=60)
def test_on_valkey(start, figure):
    project = start({"door": QUEUE}, workers=1, store="valkey/valkey:8")
    server = project.server()
    assert server["server_name"] == "valkey" and server["valkey_version"].startswith("8."), server
    scale_under_load(project, "door", (1, 3, 1), figure, **CROWD)


@pytest.mark.long(seconds=61)
def test_on_redis_7_and_debian_12(start, bookworm_images, figure):
    """The programs' images of Debian 12, whose Redis is 7.0."""
    project = start({"door": QUEUE}, workers=1, store="redis:7", tag=bookworm_images["worker"].rpartition(":")[2])
    server = project.server()
    assert server["redis_version"].startswith("7.") and "valkey_version" not in server, server
    scale_under_load(project, "door", (1, 3, 1), figure, **CROWD)


def a_line_has_formed(crowd: Crowd) -> None:
    wait_until(lambda: crowd.waits() >= crowd.options.at_once * 0.8, PATIENCE, "a line has formed", every=0.1)


@together
@pytest.mark.long(seconds=60)
def test_rolling_restart_of_every_service(project, figure):
    """One container after another is stopped and started, as for an upgrade. Visitors notice only a pause."""
    project.scale(2)
    project.wait_ready()
    crowd = crowd_at(project, "rolled", **CROWD)
    a_line_has_formed(crowd)
    for service in ("dispatcher", "admitter", "expirer", "notifier", "worker", "redis", "gateway"):
        for container in project.containers(service):
            docker("stop", "--time", f"{patient(45):.0f}", container)
            status = docker("inspect", "-f", "{{.State.ExitCode}}", container)
            assert status == "0", f"{service} exited with {status} on SIGTERM"
            docker("start", container)
            project.wait_ready()
    figure(judge(project, "rolled", crowd))


@together
@pytest.mark.long(seconds=50)
def test_kill_any_container_at_any_moment(project, figure):
    """Each service at least once, in two ways: its process dies (the restart policy restarts it), or `docker kill`
    (the engine takes this as intended, so the operator starts it again)."""
    project.scale(2)
    project.wait_ready()
    chance = random.Random(SEED)
    crowd = crowd_at(project, "killed", **CROWD)
    a_line_has_formed(crowd)
    kills: list[str] = []
    end = time.monotonic() + float(os.environ.get("TELLERLINE_KILL_SECONDS", 15))
    rest: list[str] = []
    while time.monotonic() < end or len(kills) < len(CORE):
        if not rest:
            rest = chance.sample(CORE, len(CORE))
        kills.append(kill_one(project, rest.pop(), chance))
        pause(chance, 0.2, 2.5)  # at a random moment
    project.wait_ready()
    figure(f"{len(kills)} kills: {', '.join(kills)}")
    figure(judge(project, "killed", crowd))


def kill_one(project: Project, service: str, chance: random.Random) -> str:
    """Kills one container of the service, by its process or by the engine. Returns which."""
    wait_until(lambda: project.containers(service), PATIENCE, f"{service} runs", every=0.1)
    container = chance.choice(project.containers(service))
    if chance.random() < 0.6 and project.crash(container):
        return f"{service} (crash)"
    run("kill", container)  # it may have ended already
    pause(chance, 0, 1.5)
    docker("start", container)
    return f"{service} (docker kill)"


def pause(chance: random.Random, least: float, most: float) -> None:
    time.sleep(chance.uniform(least, most))


JOIN_SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Length"] = "0"
function done(summary, latency, requests)
    io.write(string.format("RESULT %d %d %d %d %d\\n", summary.requests, summary.duration,
        summary.errors.status,
        summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
        latency:percentile(99)))
end
"""


@together
@pytest.mark.long(seconds=30)
def test_throughput_of_joins(project, tmp_path, figure):
    """Scaling on one machine. Load, gateway, workers, dispatcher and Redis share its processors."""
    if shutil.which("wrk") is None:
        pytest.skip("wrk is not installed (Debian package wrk)")
    connections, seconds = 64, 4
    script = tmp_path / "join.lua"
    script.write_text(JOIN_SCRIPT)
    before = 0
    for workers in (1, 2, 4):
        project.scale(workers)
        project.wait_ready()
        wait_until(lambda: len(project.workers_behind_gateway()) == workers, PATIENCE,
                   "the gateway uses all workers", every=0.2)
        load = subprocess.Popen(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script),
                                 f"http://127.0.0.1:{project.port}/v1/queues/load/join"],
                                stdout=subprocess.PIPE, text=True)
        used = processor_shares(project)
        text, _ = load.communicate()
        result = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+)", text)
        assert result is not None, text
        requests, micros, refused, broken, p99 = map(int, result.groups())
        joined = project.numbers("load")["joined"]
        figure(f"{workers} workers of two processes: {requests / micros * 1e6:.0f} joins/s through the gateway, "
               f"p99 {p99 / 1000:.1f} ms, "
               f"by worker {spread(project, JOINS)}; processors used: {used}, of {os.cpu_count()}")
        assert (refused, broken) == (0, 0), text
        assert requests <= joined - before <= requests + connections, (
            f"{requests} joins answered, {joined - before} counted")
        assert min(spread(project, JOINS)) > 0
        before = joined
    figure(f"on {os.cpu_count()} processors these figures show that joins spread and none is lost, "
           "not what more workers give where each has a processor")
    project.audit()


def processor_shares(project: Project) -> str:
    """The processors that each service uses at the moment."""
    containers = {container: service for service in CORE for container in project.containers(service)}
    shares: dict[str, float] = {}
    for line in docker("stats", "--no-stream", "--format", "{{.ID}} {{.CPUPerc}}", *containers).splitlines():
        container, percent = line.split()
        service = containers[container]
        shares[service] = shares.get(service, 0.0) + float(percent.rstrip("%")) / 100
    return ", ".join(f"{service} {share:.2f}" for service, share in sorted(shares.items(), key=lambda item: -item[1]))
