# SPDX-License-Identifier: Apache-2.0
"""deploy/compose/setup without containers: which address of Redis it gives to the programs, and whose it leaves alone."""
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from postgres_server import PostgresServer
from tellerline import BIN, TOP, run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files to their readers")

ROLES = ("worker", "dispatcher", "admitter", "expirer", "notifier", "archiver", "operator", "control")
FOLDERS = re.compile(r"(?<![\w.])/(login|redis-users|bring|rights|redis-login|archive-database|[a-z]+-secrets)\b")


@pytest.fixture
def volumes(tmp_path: Path) -> Path:
    """The folders of the containers, and the script on them."""
    text = (TOP / "deploy" / "compose" / "setup").read_text()
    for name in {match[1] for match in FOLDERS.finditer(text)} - {"bring", "rights"}:
        (tmp_path / name).mkdir()
    for role in ROLES:
        (tmp_path / "login" / role).mkdir()
    (tmp_path / "rights").symlink_to(TOP / "deploy" / "redis")
    (tmp_path / "setup").write_text(FOLDERS.sub(f"{tmp_path}/\\1", text))
    return tmp_path


def set_up(volumes: Path, cluster: str = "") -> str:
    """The address that the worker gets, with PASSWORD in it."""
    done = subprocess.run(["sh", str(volumes / "setup")], env={"PATH": os.environ["PATH"], "CLUSTER": cluster},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    password = (volumes / "login" / "worker" / "redis.password").read_text().strip()
    return (volumes / "login" / "worker" / "redis.url").read_text().replace(password, "PASSWORD")


ONE = "redis://tellerline-worker:PASSWORD@redis:6379/0\n"
MANY = "redis+cluster://tellerline-worker:PASSWORD@redis:6379,redis-2:6379,redis-3:6379,redis-4:6379,redis-5:6379,redis-6:6379\n"


def test_one_redis_becomes_a_cluster_and_one_again(volumes):
    assert [set_up(volumes), set_up(volumes), set_up(volumes, "yes"), set_up(volumes, "yes"), set_up(volumes)] == [
        ONE, ONE, MANY, MANY, ONE]


@pytest.mark.parametrize("own", ["rediss://tellerline-worker:PASSWORD@redis:6379/0\n",
                                 "redis://tellerline-worker:PASSWORD@redis:6379/3\n",
                                 "redis://tellerline-worker:PASSWORD@redis:63790/0\n", "redis://elsewhere:6379/0\n"])
def test_an_address_of_the_operator_stays(volumes, own):
    set_up(volumes)
    password = (volumes / "login" / "worker" / "redis.password").read_text().strip()
    (volumes / "login" / "worker" / "redis.url").write_text(own.replace("PASSWORD", password))
    assert [set_up(volumes), set_up(volumes, "yes"), set_up(volumes)] == [own] * 3


def test_an_address_that_is_brought_stays(volumes):
    (volumes / "bring").mkdir()
    (volumes / "bring" / "redis.url").write_text("rediss://brought@redis:6379/0\n")
    assert set_up(volumes) == "rediss://brought@redis:6379/0\n"
    (volumes / "bring" / "redis.url").unlink()
    assert [set_up(volumes), set_up(volumes, "yes")] == ["rediss://brought@redis:6379/0\n"] * 2


def test_the_archiver_gets_the_address_of_postgres(volumes):
    """With the password that the database has; one of the operator's stays."""
    set_up(volumes)
    password = (volumes / "archive-database" / "password").read_text().strip()
    address = volumes / "login" / "archiver" / "archive.url"
    assert len(password) == 64 and address.read_text() == f"postgresql://archive:{password}@postgres/archive\n"
    assert "user tellerline-archiver on #" in (volumes / "redis-users" / "users.acl").read_text()
    (volumes / "bring").mkdir()
    (volumes / "bring" / "archive.url").write_text("postgresql://elsewhere/archive\n")
    set_up(volumes)
    (volumes / "bring" / "archive.url").unlink()
    set_up(volumes)
    assert address.read_text() == "postgresql://elsewhere/archive\n"


def test_workers_only_read_the_archive(volumes):
    """They have another user than the archiver, and the key of names, and not the one that signs."""
    set_up(volumes)
    password = (volumes / "archive-database" / "worker.password").read_text().strip()
    addresses = [volumes / "login" / role / "archive.url" for role in ("worker", "control")]
    assert {file.read_text() for file in addresses} == {f"postgresql://worker:{password}@postgres/archive\n"}
    assert password != (volumes / "archive-database" / "password").read_text().strip()
    key = volumes / "archiver-secrets" / "archive.key"
    assert (volumes / "worker-secrets" / "archive.key").read_text() == key.read_text()
    (volumes / "bring").mkdir()
    (volumes / "bring" / "trail.key").write_text("signs\n")
    (volumes / "bring" / "archive.key").write_text("brought\n")
    (volumes / "bring" / "worker.archive.url").write_text("postgresql://elsewhere/archive\n")
    set_up(volumes)
    assert [file.name for file in (volumes / "worker-secrets").iterdir()] == ["archive.key"]
    assert (volumes / "worker-secrets" / "archive.key").read_text() == key.read_text() == "brought\n"
    assert {file.read_text() for file in addresses} == {"postgresql://elsewhere/archive\n"}


def test_their_user_reads_all_tables_and_writes_none(tmp_path):
    """What PostgreSQL runs when it makes the database, before there are tables."""
    script = (TOP / "deploy" / "compose" / "postgres" / "worker.sql").read_text()
    password = tmp_path / "worker.password"
    password.write_text("it's\n")
    assert script.count("/run/archive/worker.password") == 1
    server = PostgresServer()
    try:
        server.start()
        server.sql(script.replace("/run/archive/worker.password", str(password)))
        migrated = run(BIN / "tellerline", "db", "migrate", env={"TELLERLINE_ARCHIVE_URL": server.url})
        assert migrated.returncode == 0, migrated.stderr
        tables = "SELECT string_agg(has_table_privilege('worker', oid, '{}')::text, ' ') FROM pg_class WHERE relkind IN ('r', 'p', 'v') " \
                 "AND relnamespace = 'tellerline'::regnamespace"
        may = {right: set(server.sql(tables.format(right)).split()) for right in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")}
        assert may.pop("SELECT") == {"true"} and set.union(*may.values()) == {"false"}, may
        assert server.sql("SET ROLE worker; SELECT count(*) FROM queue_sales") == "0"
    finally:
        server.remove()


@pytest.mark.parametrize("file", ["compose.yaml", "compose.production.yaml"])
def test_the_trail_is_named_after_the_site(file):
    """The archiver has the address of the site from where workers have it."""
    services = yaml.safe_load((TOP / "deploy" / file).read_text())["services"]
    [address] = {services[name]["environment"]["TELLERLINE_HTTP_PUBLIC_URL"] for name in ("worker", "control", "archiver")}
    assert "TELLERLINE_P" in address
