# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes manifests: valid by the published schemas, complete, and consistent with the real programs.

The tests need no cluster and contact none.
"""
from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cluster import Cluster
from http_client import Client, Visitor
from manifests import (ALL, EXAMPLE, EXTERNAL, MONITORING, SOURCE, Object, Report, Validator, component, container,
                       decoded, environment_of, matches, name, named, of_kind, one, pod, pod_labels, port_number, program,
                       secrets_of, walk, workloads)
from postgres_server import PostgresServer
from sse import EventStream
from tellerline import PATIENCE, TOP, run
from waiting import patient, wait_until

#: Whom Prometheus asks, and the worker of the operators, whom no visitor reaches.
SCRAPED = ("admitter", "dispatcher", "expirer", "worker")
ROLES = ("control", *SCRAPED)
#: The Secrets that a pod may read, and no others.
SECRETS_OF = {
    "worker": {"tellerline-redis-worker/url", "tellerline-keys"},
    "dispatcher": {"tellerline-redis-dispatcher/url"},
    "admitter": {"tellerline-redis-admitter/url", "tellerline-draw"},
    "expirer": {"tellerline-redis-expirer/url"},
    "notifier": {"tellerline-redis-notifier/url", "tellerline-webhooks"},
    "archiver": {"tellerline-redis-archiver/url", "tellerline-archive/url", "tellerline-archive-key"},
    "control": {"tellerline-redis-control/url", "tellerline-keys", "tellerline-control"},
    "redis": {"tellerline-redis-acl"},
}


# ---- the schemas ----

def test_everything_is_valid(validator: Validator, report: Report, figure: Callable[[str], None]) -> None:
    figure(validator.made)
    assert not report.errors, "\n".join(report.errors)
    kinds = {obj["kind"] for obj in report.objects[EXAMPLE] + report.objects[MONITORING]}
    assert kinds == {"ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Ingress", "Namespace", "NetworkPolicy",
                     "PodDisruptionBudget", "PrometheusRule", "Secret", "Service", "ServiceMonitor",
                     "StatefulSet"}


@pytest.mark.parametrize("file, before, after, complaint", [
    ("base/worker.yaml", "terminationGracePeriodSeconds: 60", "terminationGraceSeconds: 60",
     "spec.template.spec.terminationGraceSeconds: unknown field"),
    ("base/worker.yaml", "seconds: 10", "seconds: ten", "sleep.seconds: must be integer, not ten"),
    ("base/dispatcher.yaml", "replicas: 2", 'replicas: "2"', "spec.replicas: must be integer"),
    ("base/dispatcher.yaml", "replicas: 2", "replicas: 3000000000", "spec.replicas: does not fit into 32 bits"),
    ("base/worker.yaml", "containerPort: 8081", "containerPort: 8080", "containers[0].ports[1]: is there twice"),
    ("base/network.yaml", "name: tellerline-deny", "name: Tellerline_deny", "metadata.name: a lowercase RFC 1123"),
    ("base/worker.yaml", "component: worker", "component: a worker", "labels.app.kubernetes.io/component: a valid label"),
    ("base/dispatcher.yaml", "memory: 64Mi", "memory: 64 MiB", "quantities must match"),
    ("base/network.yaml", "podSelector:", "podSelectors:",
     "spec.podSelectors: unknown field"),
    ("base/worker-autoscaler.yaml", "maxReplicas: 20", "", "spec.maxReplicas: required and missing"),
    ("base/admitter.yaml", "topologyKey: kubernetes.io/hostname", "minDomains: 1",
     "topologySpreadConstraints[0].topologyKey: required and missing"),
    ("overlays/example/ingress.yaml", "pathType: Prefix", "pathKind: Prefix", "pathKind"),
    ("base/expirer.yaml", "policy/v1", "policy/v9", "policy/v9"),
    ("monitoring/servicemonitor.yaml", "interval: 5s", "intervall: 5s", 'unknown field "intervall"'),
    ("overlays/example/kustomization.yaml", "behavior: merge", "behaviour: merge", "cannot be rendered"),
])
def test_the_validator_finds_mistakes(validator: Validator, copy: Path, file: str, before: str, after: str,
                                      complaint: str) -> None:
    text = (copy / file).read_text()
    assert before in text
    (copy / file).write_text(text.replace(before, after))
    report = Report(validator, copy, EXAMPLE, MONITORING)
    assert any(complaint in error for error in report.errors), report.errors


# ---- every reference resolves ----

def selected(selector: Object, objects: list[Object]) -> list[Object]:
    return [workload for workload in workloads(objects) if matches(selector, pod_labels(workload))]


def test_selectors_select(example: list[Object]) -> None:
    for workload in workloads(example):
        assert selected(workload["spec"]["selector"], example) == [workload]
        for constraint in pod(workload).get("topologySpreadConstraints", []):
            assert selected(constraint["labelSelector"], example) == [workload]
    for budget in of_kind(example, "PodDisruptionBudget"):
        assert len(selected(budget["spec"]["selector"], example)) == 1, name(budget)
    for service in of_kind(example, "Service"):
        (workload,) = selected(service["spec"]["selector"], example)
        for port in service["spec"]["ports"]:
            port_number(workload, port["targetPort"])
    covered = [workload for budget in of_kind(example, "PodDisruptionBudget")
               for workload in selected(budget["spec"]["selector"], example)]
    assert {name(workload) for workload in covered} == {name(workload) for workload in workloads(example)}


def test_references_lead_somewhere(example: list[Object]) -> None:
    for workload in workloads(example):
        environment_of(workload, example)
        volumes = {volume["name"] for volume in pod(workload).get("volumes", [])}
        volumes |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
        assert {mount["name"] for mount in container(workload).get("volumeMounts", [])} == volumes
    stateful = one(example, "StatefulSet", "tellerline-redis")
    assert one(example, "Service", stateful["spec"]["serviceName"])["spec"]["clusterIP"] == "None"
    (ingress,) = of_kind(example, "Ingress")
    backend = dict(walk(ingress["spec"]))["service"]
    service = one(example, "Service", backend["name"])
    assert backend["port"]["name"] in [port["name"] for port in service["spec"]["ports"]]


def test_every_object_carries_the_labels_and_the_namespace(report: Report) -> None:
    for path in ALL:
        for obj in report.objects[path]:
            if obj["kind"] in ("ConfigMap", "Secret"):
                continue
            labels = obj["metadata"]["labels"]
            assert labels["app.kubernetes.io/part-of"] == "tellerline", name(obj)
            assert labels["app.kubernetes.io/name"] in ("tellerline", "tellerline-redis"), name(obj)
            if obj["kind"] != "Namespace":
                assert obj["metadata"]["namespace"] == ("monitoring" if path == MONITORING else "tellerline")


def test_replicas(example: list[Object]) -> None:
    for role in ROLES:
        spec = one(example, "Deployment", f"tellerline-{role}")["spec"]
        assert spec.get("replicas") == {"worker": None, "control": 1}.get(role, 2)
    assert one(example, "StatefulSet", "tellerline-redis")["spec"]["replicas"] == 1


# ---- security ----

def test_pods_keep_to_the_restricted_standard(example: list[Object]) -> None:
    """The Pod Security Standard "restricted", with a read-only root and without a token."""
    namespace = one(example, "Namespace", "tellerline")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert len(workloads(example)) == 6
    for workload in workloads(example):
        spec = pod(workload)
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers", "ephemeralContainers"} & spec.keys()
        assert spec["automountServiceAccountToken"] is False
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True and security["runAsUser"] > 0 and security["runAsGroup"] > 0
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container(workload)["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        assert all("hostPort" not in port for port in container(workload)["ports"])
        for volume in spec.get("volumes", []):
            assert volume.keys() <= {"name", "secret", "emptyDir"}, volume
        resources = container(workload)["resources"]
        assert {"cpu", "memory"} <= resources["requests"].keys() and "memory" in resources["limits"]


def test_no_secret_is_in_the_tree() -> None:
    tracked = subprocess.run(["git", "ls-files", "-c", "-o", "--exclude-standard", "."], cwd=SOURCE, check=False,
                             capture_output=True, text=True)
    files = tracked.stdout.split() if tracked.returncode == 0 else [str(path.relative_to(SOURCE))
                                                                    for path in SOURCE.rglob("*") if path.is_file()]
    assert "make-secrets" in files
    for file in files:
        assert not re.search(r"\b[0-9a-f]{32,}\b|kind: Secret$", (SOURCE / file).read_text(), re.MULTILINE), file


def test_secrets_are_made_once(tmp_path: Path) -> None:
    command = [str(SOURCE / "make-secrets"), "with-redis", str(tmp_path / "secrets")]
    subprocess.run(command, check=True)
    before = {file.name: file.read_bytes() for file in (tmp_path / "secrets").iterdir()}
    assert all(file.stat().st_mode & 0o077 == 0 for file in (tmp_path / "secrets").iterdir())
    again = subprocess.run(command, check=False, capture_output=True)
    assert again.returncode != 0
    assert before == {file.name: file.read_bytes() for file in (tmp_path / "secrets").iterdir()}


def test_a_pod_reads_only_the_secrets_of_its_role(report: Report) -> None:
    """Each program logs in to Redis as its own user, and the workers of the visitors have no secret of operators."""
    for path in (EXAMPLE, EXTERNAL):
        objects = report.objects[path]
        for workload in workloads(objects):
            assert secrets_of(workload) == SECRETS_OF[component(workload)], name(workload)
            env = environment_of(workload, objects)
            users = {variable: re.match(r"redis://tellerline-([a-z]+):[0-9a-f]{64}@", value).group(1)
                     for variable, value in env.items() if value.startswith("redis://")}
            role = component(workload)
            assert users == ({} if role == "redis" else {"TELLERLINE_REDIS_URL": role})
            if role == "control":
                (keys,) = [volume["secret"] for volume in workload["spec"]["template"]["spec"]["volumes"]
                           if volume.get("secret", {}).get("secretName", "").startswith("tellerline-keys")]
                assert [item["key"] for item in keys["items"]] == ["ticket.keys"]
        assert set(decoded(one(objects, "Secret", "tellerline-keys"))) == {"ticket.keys", "pass.keys", "api.keys"}
        assert set(decoded(one(objects, "Secret", "tellerline-control"))) == {"admin.token", "token.key"}
        for role in ("admin", "operator", "notifier", "archiver"):
            assert not named(objects, "Secret", f"tellerline-redis-{role}"), "nobody needs it in the cluster"


def test_users_of_ones_own_are_kept(folder: Path, tmp_path: Path) -> None:
    """Made again, as after an upgrade, the users have the same passwords, and the probe is still among them."""
    (tmp_path / "secrets").mkdir()
    for file in (folder / EXAMPLE / "secrets").iterdir():
        (tmp_path / "secrets" / file.name).write_bytes(file.read_bytes())
    before = (tmp_path / "secrets" / "users.acl").read_text()
    assert "user probe on nopass" in before
    for password in (tmp_path / "secrets").glob("*.password"):
        assert password.read_text().strip() not in before
    subprocess.run([str(folder.parent / "redis" / "make-users"), str(tmp_path / "secrets")], check=True)
    assert (tmp_path / "secrets" / "users.acl").read_text() == before


# ---- the network ----

def policies(objects: list[Object], workload: Object, direction: str) -> list[Object]:
    """The rules of one direction that apply to the pods of a workload."""
    kind = direction.capitalize()
    return [rule for policy in of_kind(objects, "NetworkPolicy")
            if kind in policy["spec"]["policyTypes"] and matches(policy["spec"]["podSelector"], pod_labels(workload))
            for rule in policy["spec"].get(direction, [])]


def allowed(objects: list[Object], workload: Object, direction: str) -> set[tuple[str, int]]:
    """The (peer, port) pairs that the policies allow. A peer is a namespace, an app or an address."""
    found = set()
    for rule in policies(objects, workload, direction):
        for peer in rule["from" if direction == "ingress" else "to"]:
            if "ipBlock" in peer:
                who = peer["ipBlock"]["cidr"]
            elif "namespaceSelector" in peer:
                who = peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
            else:
                who = peer["podSelector"]["matchLabels"]["app.kubernetes.io/name"]
            for port in rule["ports"]:
                declared = {item["name"] for item in container(workload)["ports"]}
                if direction == "egress":
                    found.add((who, port["port"]))
                elif port["port"] in declared:  # no pod is reached by the name of a port that it does not have
                    found.add((who, port_number(workload, port["port"])))
    return found


def test_network_policies_name_ports_that_are_listened_on(example: list[Object]) -> None:
    """Each policy allows what is needed, and nothing else."""
    deny = one(example, "NetworkPolicy", "tellerline-deny")
    assert set(deny["spec"]["policyTypes"]) == {"Ingress", "Egress"} and not {"ingress", "egress"} & deny["spec"].keys()
    assert selected(deny["spec"]["podSelector"], example) == workloads(example)
    programs = {role: one(example, "Deployment", f"tellerline-{role}") for role in ROLES}
    for role, workload in programs.items():
        env = environment_of(workload, example)
        setting = "WORKER" if role == "control" else role.upper()
        listens = re.fullmatch(r"0\.0\.0\.0:(\d+)", env[f"TELLERLINE_ADMIN_{setting}"])
        assert listens
        expected = {("monitoring", int(listens.group(1)))}
        if role == "control":
            assert env["TELLERLINE_WORKER_PROCESSES"] == "0", "no visitors, and no port for them"
            expected = set()
        if role == "worker":
            assert env["TELLERLINE_HTTP_LISTEN"] == "0.0.0.0:8080"
            expected.add(("ingress-nginx", 8080))
        assert allowed(example, workload, "ingress") == expected
        assert allowed(example, workload, "egress") == {("kube-system", 53), ("tellerline-redis", 6379)}
    redis = one(example, "StatefulSet", "tellerline-redis")
    assert allowed(example, redis, "ingress") == {("tellerline", 6379)}
    assert allowed(example, redis, "egress") == set()


def test_with_a_redis_elsewhere(report: Report) -> None:
    objects = report.objects[EXTERNAL]
    assert not of_kind(objects, "StatefulSet")
    for workload in workloads(objects):
        assert allowed(objects, workload, "egress") == {("kube-system", 53), ("192.0.2.10/32", 6379)}
        environment_of(workload, objects)


@pytest.mark.parametrize("component, role, leads_to, admin", [
    ("with-webhooks", "notifier", 443, 8085), ("with-archive", "archiver", 5432, 8087)])
def test_with_a_component(validator: Validator, copy: Path, binaries: Path, component, role, leads_to, admin) -> None:
    """Only its program reaches addresses outside, and the program accepts its environment."""
    overlay = copy / "overlays/example/kustomization.yaml"
    text = overlay.read_text().replace("components:\n", f"components:\n  - ../../components/{component}\n")
    text, n = re.subn(rf"  # With components/{component}:\n((?:  # [- ] .*\n)+)",
                      lambda marked: re.sub(r"(?m)^  # ", "  ", marked[1]), text)
    assert n == 1
    overlay.write_text(text)
    report = Report(validator, copy, EXAMPLE, MONITORING)
    assert not report.errors, "\n".join(report.errors)
    objects = report.objects[EXAMPLE]
    deployment = one(objects, "Deployment", f"tellerline-{role}")
    for workload in workloads(objects):
        assert (("0.0.0.0/0", leads_to) in allowed(objects, workload, "egress")) == (workload == deployment)
    assert allowed(objects, deployment, "ingress") == {("monitoring", admin)}
    assert secrets_of(deployment) == SECRETS_OF[role]
    done = run(binaries / f"tellerline-{role}", "--check",
               env=environment_of(deployment, [*objects, archive_at("postgresql://archive@postgres.example/archive")]))
    assert done.returncode == 0, done.stdout + done.stderr


def archive_at(url: str) -> Object:
    """The Secret of an address, as the head of components/with-archive has it made."""
    return {"kind": "Secret", "metadata": {"name": "tellerline-archive"}, "data": {"url": base64.b64encode(url.encode()).decode()}}


def test_the_archive_has_its_tables_before_the_archiver_starts(binaries: Path) -> None:
    """A pod makes them in a real PostgreSQL. It is confined as the archiver is."""
    deployment, *_ = yaml.safe_load_all((SOURCE / "components/with-archive/archiver.yaml").read_text())
    migrate = container(deployment, "initContainers")
    assert migrate["securityContext"] == container(deployment)["securityContext"]
    assert migrate["image"] == container(deployment)["image"].replace("/archiver:", "/tellerline:") and "command" not in migrate
    postgres = PostgresServer()
    try:
        postgres.start()
        env = environment_of(deployment, [archive_at(postgres.url)], "initContainers")
        for _ in range(2):  # both pods do it
            done = run(binaries / "tellerline", *migrate["args"], env=env)
            assert done.returncode == 0, done.stdout + done.stderr
        assert postgres.sql("SELECT count(*) FROM queue_entries") == "0"
    finally:
        postgres.remove()


def test_workers_may_read_the_archive(validator: Validator, copy: Path, binaries: Path) -> None:
    """With a user of their own, and the key of the names, and not the one that signs."""
    overlay = copy / "overlays/example/kustomization.yaml"
    overlay.write_text(overlay.read_text().replace("components:\n", "components:\n  - ../../components/with-archive-read\n"))
    report = Report(validator, copy, EXAMPLE, MONITORING)
    assert not report.errors, "\n".join(report.errors)
    objects = report.objects[EXAMPLE]
    worker, control = (one(objects, "Deployment", f"tellerline-{role}") for role in ("worker", "control"))
    for workload in workloads(objects):
        assert (("0.0.0.0/0", 5432) in allowed(objects, workload, "egress")) == (workload in (worker, control))
    assert secrets_of(control) == SECRETS_OF["control"] | {"tellerline-archive-worker/url"}
    assert secrets_of(worker) == SECRETS_OF["worker"] | {"tellerline-archive-worker/url", "tellerline-archive-key"}
    volumes = worker["spec"]["template"]["spec"]["volumes"]
    assert [volume["secret"]["items"] for volume in volumes if volume["name"] == "archive-key"] == [
        [{"key": "archive.key", "path": "archive.key"}]]
    made = {"kind": "Secret", "metadata": {"name": "tellerline-archive-worker"},
            "data": {"url": base64.b64encode(b"postgresql://worker@postgres.example/archive").decode()}}
    for workload in (worker, control):
        done = run(binaries / "tellerline-worker", "--check", env=environment_of(workload, [*objects, made]))
        assert done.returncode == 0, done.stdout + done.stderr


def test_images_of_a_registry(validator: Validator, copy: Path) -> None:
    """The lines that an operator uncomments name all images."""
    for path in (EXAMPLE, EXTERNAL):
        overlay = copy / path / "kustomization.yaml"
        text, found = re.subn(r"(?m)^# (images:|  - \{name: localhost/.*)$", r"\1", overlay.read_text())
        assert found == 8
        overlay.write_text(text)
    report = Report(validator, copy, EXAMPLE, EXTERNAL)
    assert not report.errors, "\n".join(report.errors)
    for path in (EXAMPLE, EXTERNAL):
        for workload in workloads(report.objects[path]):
            image = container(workload)["image"]
            assert component(workload) == "redis" or image.startswith("registry.example/tellerline/"), image


# ---- consistent with the programs ----

@pytest.mark.parametrize("role", ROLES)
def test_environment_is_accepted(example: list[Object], binaries: Path, role: str) -> None:
    """--check of the real program accepts exactly this environment, and refuses it with one more variable."""
    workload = one(example, "Deployment", f"tellerline-{role}")
    binary, env = binaries / program(workload), environment_of(workload, example)
    done = run(binary, "--check", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run(binary, "--check", env=env | {"TELLERLINE_HTTP_LISTENS": "0.0.0.0:1"})
    assert done.returncode == 1 and "TELLERLINE_HTTP_LISTENS" in done.stdout + done.stderr


def test_variables_of_services_are_kept_out(example: list[Object], binaries: Path) -> None:
    """Kubernetes would set these for the Service tellerline-worker, and the programs refuse unknown variables."""
    one(example, "Service", "tellerline-worker")
    env = environment_of(one(example, "Deployment", "tellerline-worker"), example)
    done = run(binaries / "tellerline-worker", "--check", env=env | {"TELLERLINE_WORKER_SERVICE_HOST": "192.0.2.1"})
    assert done.returncode == 1
    for workload in workloads(example):
        assert pod(workload)["enableServiceLinks"] is False


def test_grace_covers_the_drain(example: list[Object]) -> None:
    found = re.search(r"\bSTOP_LIMIT_MS = (\d+)", (TOP / "worker" / "process" / "parent.c").read_text())
    assert found
    for workload in workloads(example):
        hook = container(workload).get("lifecycle", {}).get("preStop", {})
        assert hook.keys() <= {"sleep"}, "the hook needs a shell"
        left = pod(workload)["terminationGracePeriodSeconds"] - hook.get("sleep", {}).get("seconds", 0)
        if component(workload) == "worker":
            assert hook["sleep"]["seconds"] >= 5, "proxies need time to notice"
            assert left * 1000 > int(found.group(1))
        assert left >= 30


def scaler_metrics(example: list[Object]) -> dict[str, str]:
    """The custom metrics that the autoscaler uses: name -> the role whose pods have it."""
    scaler = one(example, "HorizontalPodAutoscaler", "tellerline-worker")
    target = scaler["spec"]["scaleTargetRef"]
    assert name(one(example, target["kind"], target["name"])) == "tellerline-worker"
    found = {}
    for metric in scaler["spec"]["metrics"]:
        if metric["type"] == "Pods":
            found[metric["pods"]["metric"]["name"]] = "worker"
        elif metric["type"] == "Object":
            described = metric["object"]["describedObject"]
            (workload,) = selected(one(example, described["kind"], described["name"])["spec"]["selector"], example)
            found[metric["object"]["metric"]["name"]] = component(workload)
        else:
            worker = one(example, "Deployment", "tellerline-worker")
            assert metric["resource"]["name"] in container(worker)["resources"]["requests"]
    assert len(found) == 2
    return found


def test_autoscaler_is_quick_up_and_slow_down(example: list[Object]) -> None:
    behavior = one(example, "HorizontalPodAutoscaler", "tellerline-worker")["spec"]["behavior"]
    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0 and behavior["scaleUp"]["selectPolicy"] == "Max"
    down = behavior["scaleDown"]
    assert down["stabilizationWindowSeconds"] >= 300
    assert [(policy["type"], policy["value"]) for policy in down["policies"]] == [("Pods", 1)]
    assert down["policies"][0]["periodSeconds"] >= 60


def test_adapter_offers_what_the_autoscaler_asks_for(report: Report, example: list[Object]) -> None:
    (config,) = of_kind(report.objects[MONITORING], "ConfigMap")
    rules = yaml.safe_load(config["data"]["config.yaml"])["rules"]
    offered = {}
    for rule in rules:
        # No `name`: the metric keeps the name of the series.
        assert rule.keys() == {"seriesQuery", "resources", "metricsQuery"}
        assert rule["metricsQuery"].startswith("sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)")
        series, labels = re.fullmatch(r"(\w+)\{(.*)\}", rule["seriesQuery"]).groups()
        overrides = rule["resources"]["overrides"]
        assert {f'{label}!=""' for label in overrides} == set(labels.split(","))
        assert all(override == {"resource": label} for label, override in overrides.items())
        offered[series] = set(overrides)
    wanted = {metric: {"namespace", "pod" if role == "worker" else "service"}
              for metric, role in scaler_metrics(example).items()}
    assert offered == wanted


def test_prometheus_finds_every_program(report: Report, example: list[Object]) -> None:
    (monitor,) = of_kind(report.objects[MONITORING], "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    assert monitor["spec"]["namespaceSelector"]["matchNames"] == ["tellerline"] and endpoint["path"] == "/metrics"
    found = [component(workload) for service in of_kind(example, "Service")
             if matches(monitor["spec"]["selector"], service["metadata"]["labels"])
             and endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
             for workload in selected(service["spec"]["selector"], example)]
    assert sorted(found) == sorted(SCRAPED), "each once"


def url_of(cluster: Cluster, folder: Path, user: str) -> str:
    password = (folder / EXAMPLE / "secrets" / f"{user.removeprefix('tellerline-')}.password").read_text().strip()
    return f"redis://{user}:{password}@127.0.0.1:{cluster.redis_port}/0"


def test_the_programs_run_as_the_manifests_say(cluster: Cluster, example: list[Object], folder: Path) -> None:
    """Started with the environment, arguments, files and file modes of the manifests, every probe succeeds, visitors
    are served, nobody in Redis is denied what they need, and the autoscaler's metrics change."""
    for process in cluster.processes.values():
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            if "tcpSocket" in container(process.workload)[kind]:
                continue  # the visitors' port
            wait_until(lambda p=process, k=kind: p.succeeds(k), PATIENCE, f"{process.role}: {kind}")

    worker = cluster.processes["worker"]
    port = worker.port("http")
    # Any process of the worker may serve. The example's queue opens later, so visitors wait.
    (queue,) = yaml.safe_load(environment_of(worker.workload, example)["TELLERLINE_QUEUES"])
    clients = [Client(port) for _ in range(2)]
    visitors = [Visitor(client, queue).join() for client in clients]
    stream = EventStream(port, f"{visitors[0].path}/events", visitors[0].ticket)
    names = scaler_metrics(example)
    (streams,) = [metric for metric, role in names.items() if role == "worker"]
    wait_until(lambda: re.search(rf"^{streams}\b.* 1$", worker.metrics(), re.MULTILINE), PATIENCE, "the stream counts")
    for metric, role in names.items():
        text = cluster.processes[role].metrics()
        assert re.search(rf"^# TYPE {metric} gauge$", text, re.MULTILINE), (metric, role)
    visitors[1].leave()
    stream.close()
    for client in clients:
        client.close()

    audit = run(cluster.binaries / "tellerline", "audit", "--redis", url_of(cluster, folder, "tellerline-operator"))
    assert audit.returncode == 0, audit.stdout + audit.stderr
    # A worker that is first may find that it cannot create the queue of its configuration, nor mend it, nor load
    # functions: the others do.
    denied = json.loads(redis_says(url_of(cluster, folder, "admin"), "--json", "ACL", "LOG", "100"))
    known = {("tellerline-worker", "command", "xgroup|create"), ("tellerline-worker", "command", "function|load"),
             ("tellerline-worker", "command", "xpending"),
             ("tellerline-control", "command", "function|load")}
    assert {(entry["username"], entry["reason"], entry["object"]) for entry in denied} <= known, denied
    for role in ("worker", "dispatcher", "admitter", "expirer", "operator", "control"):
        url = url_of(cluster, folder, f"tellerline-{role}")
        assert redis_says(url, "PING") == "PONG"
        for command in (("FLUSHALL",), ("CONFIG", "GET", "*"), ("SET", "other", "1")):
            assert redis_says(url, *command).startswith("NOPERM"), (role, command)
    key = f"tl:{{{queue}}}:config"
    assert redis_says(url_of(cluster, folder, "tellerline-worker"), "HSET", key, "capacity", "1").startswith("NOPERM")
    assert redis_says(f"redis://127.0.0.1:{cluster.redis_port}", "PING").startswith("NOAUTH")


def test_operators_have_a_worker_of_their_own(cluster: Cluster, example: list[Object], folder: Path) -> None:
    """The visitors' workers have no admin API, and make no token and no key of one."""
    worker, control = cluster.processes["worker"], cluster.processes["control"]
    (queue,) = yaml.safe_load(environment_of(worker.workload, example)["TELLERLINE_QUEUES"])
    token = decoded(one(example, "Secret", "tellerline-control"))["admin.token"].decode().strip()
    url = url_of(cluster, folder, "tellerline-operator")

    def asked(port: int, bearer: str) -> int:
        client = Client(port)
        try:
            return client.request("PATCH", f"/v1/admin/queues/{queue}", b'{"capacity": 7}', bearer).status
        finally:
            client.close()

    def capacity() -> str:
        return redis_says(url, "HGET", f"tl:{{{queue}}}:config", "capacity")

    before = capacity()
    assert before not in ("", "7")
    assert asked(worker.port("metrics"), token) in (404, 405), "it has probes and metrics, which take GET"
    assert not list(worker.directory.rglob("admin.token")) + list(worker.directory.rglob("token.key"))
    assert asked(control.port("admin"), "a" * 64) == 401
    assert capacity() == before
    assert asked(control.port("admin"), token) == 200
    assert capacity() == "7"


def test_pods_serve_while_redis_is_away(cluster: Cluster, example: list[Object]) -> None:
    """A worker's pod stays in the service without Redis, and answers positions; joins are refused, and it says so."""
    worker, redis = cluster.processes["worker"], cluster.processes["redis"]
    (queue,) = yaml.safe_load(environment_of(worker.workload, example)["TELLERLINE_QUEUES"])
    client = Client(worker.port("http"))
    visitor = Visitor(client, queue).join()
    redis.kill()
    wait_until(lambda: client.get("/readyz").status == 503, PATIENCE, "joins cannot be served")
    assert client.post(f"/v1/queues/{queue}/join").status == 503
    assert worker.is_ready(), "its probe leaves the store out"
    assert visitor.status()["visitor"] == visitor.view["visitor"]
    redis.start(cluster.redis_port)
    for process in cluster.processes.values():
        wait_until(process.is_ready, PATIENCE, f"{process.role} is ready again")
    wait_until(lambda: client.get("/readyz").status == 200, PATIENCE, "joins are served again")
    client.close()


def test_the_line_survives_a_crash_of_redis(cluster: Cluster, example: list[Object], folder: Path) -> None:
    """At its start, Redis replays its file with the permissions of the user `default`."""
    worker, redis = cluster.processes["worker"], cluster.processes["redis"]
    (queue,) = yaml.safe_load(environment_of(worker.workload, example)["TELLERLINE_QUEUES"])
    visitor = Visitor(Client(worker.port("http")), queue).join()
    redis.kill()
    redis.start(cluster.redis_port)
    for process in cluster.processes.values():
        wait_until(process.is_ready, PATIENCE, f"{process.role} is ready again")
    assert visitor.status()["visitor"] == visitor.view["visitor"]
    assert redis_says(url_of(cluster, folder, "tellerline-operator"), "ZCARD", f"tl:{{{queue}}}:waiting") == "1"
    visitor.client.close()


def redis_says(url: str, *command: str) -> str:
    done = subprocess.run(["redis-cli", "-u", url, "--no-auth-warning", *command], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=patient(10), check=False)
    return (done.stdout + done.stderr).strip()


def test_a_pod_without_its_keys_does_not_start(example: list[Object], binaries: Path, tmp_path: Path) -> None:
    """Without shared keys, each pod would create its own and refuse the tickets of the others."""
    workload = one(example, "Deployment", "tellerline-worker")
    (volume,) = [item for item in pod(workload)["volumes"] if "secret" in item]
    assert volume["secret"].get("optional", False) is False
    secret = decoded(one(example, "Secret", volume["secret"]["secretName"]))
    (mount,) = [item for item in container(workload)["volumeMounts"] if item["name"] == volume["name"]]
    assert mount["readOnly"] is True
    env = environment_of(workload, example)
    for setting in ("TICKET_KEYS", "PASS_KEYS", "API_KEYS"):
        path = Path(env[f"TELLERLINE_SECRETS_{setting}"])
        assert str(path.parent) == mount["mountPath"] and path.name in secret
    # The programs refuse world-readable key files, so the mode matters.
    (tmp_path / "ticket.keys").write_bytes(secret["ticket.keys"])
    (tmp_path / "ticket.keys").chmod(0o644)
    (tmp_path / "pass.keys").write_bytes(secret["pass.keys"])
    (tmp_path / "pass.keys").chmod(0o600)
    env |= {"TELLERLINE_SECRETS_TICKET_KEYS": str(tmp_path / "ticket.keys"),
            "TELLERLINE_SECRETS_PASS_KEYS": str(tmp_path / "pass.keys")}
    done = run(binaries / "tellerline-worker", env=env)
    assert done.returncode == 1 and "mode 0644" in done.stderr
