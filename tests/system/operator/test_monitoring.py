# SPDX-License-Identifier: Apache-2.0
"""deploy/monitoring: each alert fires by the series that it is for (promtool), several by real faults (Prometheus)."""
from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml as pyyaml

from alert_series import HEALTHY, JOBS, NO_WEBHOOKS, ROWS, series, without
from tellerline import CALM, PATIENCE, TOP, System, free_port
from waiting import patient, wait_until

MONITORING = TOP / "deploy" / "monitoring"
RULES = [MONITORING / "rules.yml", MONITORING / "alerts.yml"]
KUBERNETES = TOP / "deploy" / "kubernetes" / "monitoring"
PAGE = (TOP / "docs" / "operators" / "monitoring.md").read_text()
METRICS = (TOP / "docs" / "operators" / "metrics.md").read_text()
FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'
#: Told by the notifier of webhooks, which not every installation has.
ELSEWHERE = {"tellerline_webhook_failing_seconds"}


def alerts() -> list[dict]:
    groups = pyyaml.safe_load(RULES[1].read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def promtool(*args: str | Path) -> str:
    # Its memory is small, so it need not be collected that often.
    done = subprocess.run(["promtool", *args], capture_output=True, text=True, timeout=patient(300),
                          env=os.environ | {"GOGC": "400"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_alert_says_what_to_do():
    promtool("check", "rules", *RULES)
    names = [alert["alert"] for alert in alerts()]
    assert len(names) == len(set(names))
    for alert in alerts():
        assert alert["labels"]["severity"] in ("page", "ticket"), alert
        assert alert["annotations"].keys() == {"summary", "what_to_do"}, alert
        assert f"| `{alert['alert']}` | {alert['labels']['severity']} |" in PAGE
    assert set(names) == {row.alert for row in ROWS}, "alert_series.py has rows for each"
    assert set(re.findall(r"^\| `(Tellerline\w+)` \|", PAGE, re.M)) == set(names)


def test_alerts_say_whole_numbers():
    """`humanize` writes 0.018 a second as "18.18m", which is read as 18 million. It is for what is a whole number."""
    for alert in alerts():
        humanized = re.search(r"\$value \| humanize \}", alert["annotations"]["summary"])
        assert not humanized or not re.search(r"\b(rate|increase)\(", alert["expr"].split(" and on")[0]), alert
        assert not re.search(" a second| ms\\b", alert["annotations"]["summary"]), alert


def test_what_is_asked_for_is_there():
    """Rules, dashboard and adapter use metrics that the programs have: those that the page lists (test_metrics.py)."""
    there = set(re.findall(r"^\| `(tellerline_\w+)` \|", METRICS, re.M)) | ELSEWHERE
    recorded = set(re.findall(r"record: (\S+)", RULES[0].read_text()))
    for file in (*RULES, MONITORING / "dashboard.json", KUBERNETES / "adapter-rules.yaml"):
        text = file.read_text()
        for name in re.findall(r"\btellerline_[a-z_]+[a-z](?![\w\[]*\])", text):
            assert re.sub(r"_(bucket|sum|count)$", "", name) in there | {name} & there, (file.name, name)
        for name in re.findall(r"\btellerline:\w+(?::\w+)?", text):
            assert name in recorded, (file.name, name)


def test_the_dashboard_asks_what_prometheus_understands(tmp_path: Path):
    """Each expression, as a recording rule."""
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(expressions) > 30
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    rules = [{"record": f"asked:{i}", "expr": expression.replace("$queue", "shop")}
             for i, expression in enumerate(expressions)]
    file = tmp_path / "dashboard.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", file)


def unit(name: str, changes: dict[str, str | None], expression: str, expected: list[tuple[str, float]],
         minutes: int = 20) -> dict:
    samples = [{"labels": labels, "value": value} for labels, value in expected]
    return {"name": name, "interval": "30s", "input_series": series(changes),
            "promql_expr_test": [{"expr": expression, "eval_time": f"{minutes}m", "exp_samples": samples}]}


@pytest.mark.long(seconds=20)
def test_each_alert_fires_by_its_series_alone(tmp_path: Path):
    tests = [unit("healthy", {}, FIRING, []), unit("no webhooks, no notifier", NO_WEBHOOKS, FIRING, []),
             unit("no archive", without("archiver"), FIRING, [])]
    for row in ROWS:
        tests.append(unit(row.alert, row.changes, FIRING, [(f'{{alertname="{row.alert}"}}', 1)], row.minutes))
    file = tmp_path / "tests.yml"
    file.write_text(json.dumps({"rule_files": [str(rules) for rules in RULES],
                                "evaluation_interval": "1m",  # the default of Prometheus
                                "tests": tests}))
    promtool("test", "rules", file)


def test_a_slow_redis_adds_no_workers(tmp_path: Path):
    """The lag that the autoscaler is told is 0 while Redis is slow."""
    (rule,) = (rule for rule in pyyaml.safe_load((KUBERNETES / "adapter-rules.yaml").read_text())["rules"]
               if "unapplied" in rule["seriesQuery"])
    lag = 'tellerline_dispatcher_ingest_unapplied{namespace="tellerline",service="d"}'
    expression = rule["metricsQuery"].replace("<<.Series>>{<<.LabelMatchers>>}", lag).replace("<<.GroupBy>>", "service")
    slow = next(row.changes for row in ROWS if row.alert == "TellerlineRedisSlow")
    tests = [unit("quick", {lag: "900x50"}, expression, [('{service="d"}', 900)]),
             unit("slow", {lag: "900x50"} | slow, expression, [('{service="d"}', 0)]),
             unit("no figures", {lag: "900x50"} | {name: None for name in HEALTHY}, expression, [('{service="d"}', 900)])]
    file = tmp_path / "tests.yml"
    file.write_text(json.dumps({"rule_files": [str(RULES[0])], "evaluation_interval": "30s", "tests": tests}))
    promtool("test", "rules", file)


def test_kubernetes_has_the_same_rules():
    made = subprocess.run([MONITORING / "make-kubernetes"], capture_output=True, text=True, check=True).stdout
    assert (KUBERNETES / "rules.yaml").read_text() == made, "run deploy/monitoring/make-kubernetes"
    rules = pyyaml.safe_load(made)["spec"]
    services = set()
    for role in JOBS:
        folder = {"notifier": "components/with-webhooks", "archiver": "components/with-archive"}.get(role, "base")
        for manifest in pyyaml.safe_load_all((TOP / "deploy/kubernetes" / folder / f"{role}.yaml").read_text()):
            if manifest["kind"] == "Service":
                services.add(manifest["metadata"]["name"])
    jobs = {name for value in re.findall(r'job=~?\\?"([\w|-]+)', json.dumps(rules)) for name in value.split("|")}
    assert len(jobs) == 6 and jobs <= services, jobs


# ---- a real Prometheus, real programs, real faults ----

class Prometheus:
    """Scrapes every second, with rules in which minutes are seconds."""

    def __init__(self, system: System, folder: Path) -> None:
        self._url = f"127.0.0.1:{free_port()}"
        files = []
        for rules in RULES:
            text = re.sub(r"for: \w+", "for: 1s", rules.read_text())
            text = re.sub(r"\[\d+[mh]\]", "[10s]", text)
            files.append(folder / rules.name)
            files[-1].write_text(text)
        jobs = [{"job_name": role, "static_configs": [{"targets": [f"127.0.0.1:{program.admin_port}"
                                                                   for program in system.of(role)]}]} for role in JOBS]
        config = folder / "prometheus.yml"
        config.write_text(json.dumps({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                                      "rule_files": [str(file) for file in files], "scrape_configs": jobs}))
        self._log = (folder / "prometheus.log").open("wb")
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "prometheus", f"--config.file={config}", f"--web.listen-address={self._url}",
             f"--storage.tsdb.path={folder / 'data'}", "--log.level=warn"], stdout=self._log, stderr=self._log)
        wait_until(self._ready, PATIENCE, "Prometheus is ready")

    def _get(self, path: str) -> dict:
        with urllib.request.urlopen(f"http://{self._url}{path}", timeout=patient(10)) as answer:
            return json.load(answer)

    def _ready(self) -> bool:
        assert self._process.poll() is None, "Prometheus ended"
        try:
            targets = self._get("/api/v1/targets")["data"]["activeTargets"]
        except OSError:
            return False
        return len(targets) >= 4 and all(target["health"] == "up" for target in targets)

    def firing(self) -> set[tuple[str, str]]:
        """Alerts that fire, with the queue, job or role that they name."""
        found = self._get("/api/v1/alerts")["data"]["alerts"]
        return {(alert["labels"]["alertname"].removeprefix("Tellerline"),
                 alert["labels"].get("queue") or alert["labels"].get("job") or "")
                for alert in found if alert["state"] == "firing"}

    def evaluated(self) -> bool:
        """Have all rules been evaluated, without an error?"""
        groups = self._get("/api/v1/rules")["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert not [rule for rule in rules if rule["health"] == "err"], rules
        return len(rules) > 0 and all(rule["health"] == "ok" for rule in rules)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=patient(30))
        self._log.close()


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[list[Prometheus]]:
    """A list, so that a test can start one for its system."""
    running: list[Prometheus] = []
    yield running
    for one in running:
        one.close()


@pytest.mark.long(seconds=20)
def test_faults_fire_alerts(start, prometheus, tmp_path: Path):
    """None fires while all is well. Then people wait in a paused queue and in one without capacity, Redis is nearly
    full and slow, a reload is refused, an admitter is gone, and at last the dispatcher."""
    queues = {name: {"capacity": 1} | CALM for name in ("paused", "zero", "busy")}
    system = start(queues, admitters=2, redis={"appendonly": "yes"})
    system.expect("reload refused")
    watch = Prometheus(system, tmp_path)
    prometheus.append(watch)
    visitor = system.join("busy")
    wait_until(watch.evaluated, PATIENCE, "all rules are evaluated")
    wait_until(lambda: watch.firing() == set(), PATIENCE, "all is well, once all programs were scraped")

    def fires(name: str, of: str = "") -> None:
        wait_until(lambda: (name, of) in watch.firing(), PATIENCE, f"{name} {of} fires; {watch.firing()}")

    def ends(name: str) -> None:
        wait_until(lambda: name not in {fired for fired, _ in watch.firing()}, PATIENCE, f"{name} ends")

    assert system.ctl("queue", "pause", "paused").returncode == 0
    system.set("zero", "capacity=0")
    for name in ("paused", "zero", "busy"):
        system.join(name)  # another one waits in busy, whose only counter is taken
    info = system.store.command("INFO", "memory")
    used = int(re.search(r"^used_memory:(\d+)", info, re.M).group(1))
    system.store.command("CONFIG", "SET", "maxmemory", str(used * 100 // 87))
    whole = system.config.read_text()
    system.config.write_text(whole + "\nnonsense: 1\n")
    system.of("expirer")[0].send(signal.SIGHUP)
    fires("PausedForgotten", "paused")
    fires("CapacityZero", "zero")
    fires("NobodyAdmitted", "busy")
    fires("RedisMemory")
    fires("ReloadRefused", "expirer")
    system.of("admitter")[1].stop()
    fires("ReplicaMissing", "admitter")  # for as long as the rule remembers that there were two

    system.config.write_text(whole)
    assert system.ctl("queue", "open", "paused").returncode == 0
    system.store.command("CONFIG", "SET", "maxmemory", "0")
    system.of("expirer")[0].send(signal.SIGHUP)
    assert system.client().post("/v1/queues/busy/complete", ticket=visitor.ticket).status == 200
    for name in ("PausedForgotten", "RedisMemory", "ReloadRefused"):
        ends(name)

    def slowed() -> bool:
        system.store.command("CLIENT", "PAUSE", "250", "ALL")
        return ("RedisSlow", "") in watch.firing()

    wait_until(slowed, PATIENCE, "Redis is slow", every=0.3)
    system.of("dispatcher")[0].stop()
    fires("ProgramMissing", "dispatcher")
    system.of("dispatcher")[0].start()
    ends("ProgramMissing")
    system.of("admitter")[1].start()
