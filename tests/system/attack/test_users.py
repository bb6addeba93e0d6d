# SPDX-License-Identifier: Apache-2.0
"""Redis users: each program has only the commands and keys it needs (deploy/redis/users.acl)."""
from __future__ import annotations

import re
import subprocess
from datetime import datetime, timezone

from admin import ADMIN_TOKEN, Admin, EventReader, admin_file
from webhook_stand_in import Receiver
from library_names import library
from redis_server import Redis, RedisError, RedisGone, RedisServer
from tellerline import CALM, PATIENCE, TOP, System, free_port
from waiting import wait_until

ROLES = ("worker", "dispatcher", "admitter", "expirer", "notifier", "archiver")
FORBIDDEN_TO_WORKERS = [
    ("ZADD", "waiting", "1", "v"), ("ZREM", "waiting", "v"), ("ZPOPMIN", "waiting"), ("DEL", "waiting"),
    ("ZADD", "active", "1", "v"), ("ZREM", "active", "v"), ("HSET", "sessions", "v", "x"), ("ZADD", "ended", "1", "v"),
    ("HSET", "config", "capacity", "1000"), ("XTRIM", "ingest", "MAXLEN", "0"), ("SET", "dispatcher", "me"),
    ("XGROUP", "DESTROY", "ingest", "dispatchers"), ("HSET", "state", "batch:w", "1:1"), ("DEL", "signs"),
    ("DEL", "feedback"), ("SET", "state", "x"), ("SET", "ingest", "x"), ("SET", "feedback", "x"),
    ("HSET", "state", "capacity_now", "1000"), ("HSET", "state", "mode", "passthrough"), ("HSET", "state", "seq", "1"),
    ("HDEL", "state", "seq"), ("DEL", "promised"), ("HSET", "webhooks", "cursor:x", "0-0 0"),
    ("XADD", "journal", "*", "d", "x"), ("XADD", "changes", "*", "d", "x"), ("XADD", "events", "*", "d", "x"),
]
#: What the notifier tells of it only reads; its own are the journal, and how far each webhook was told.
FORBIDDEN_TO_NOTIFIERS = [
    ("ZADD", "waiting", "1", "v"), ("ZREM", "waiting", "v"), ("DEL", "waiting"), ("ZADD", "active", "1", "v"),
    ("HSET", "sessions", "v", "x"), ("ZADD", "ended", "1", "v"), ("HSET", "config", "capacity", "1000"),
    ("XADD", "ingest", "*", "d", "x"), ("XTRIM", "ingest", "MAXLEN", "0"), ("XTRIM", "events", "MAXLEN", "0"),
    ("SET", "dispatcher", "me"), ("HSET", "state", "batch:w", "1:1"), ("DEL", "state"), ("SET", "state", "x"),
    ("HDEL", "state", "seq"), ("XADD", "changes", "*", "d", "x"), ("DEL", "signs"), ("HSET", "promised", "x", "1"),
    ("HSET", "state", "capacity_now", "1000"), ("HINCRBY", "state", "seq", "1"), ("XADD", "events", "*", "d", "x"),
]
#: What is not of one queue, and no business of the visitors' processes: operators' tokens, and who changed what.
SECRET_FROM_WORKERS = [("HGETALL", "tl:tokens{tl:queues}"), ("HGET", "tl:tokens{tl:queues}", "jane"),
                       ("XRANGE", "tl:changes{tl:queues}", "-", "+")]
FORBIDDEN_TO_ALL = [("FLUSHALL",), ("CONFIG", "SET", "maxmemory", "1"), ("KEYS", "*"), ("ACL", "LIST"), ("SHUTDOWN",),
                    ("SET", "other", "x"), ("GET", "other"), ("REPLICAOF", "NO", "ONE"), ("DEBUG", "SLEEP", "0"),
                    ("EVAL", "return 1", "0"), ("SCRIPT", "LOAD", "return 1"), ("FUNCTION", "FLUSH"),
                    ("FUNCTION", "RESTORE", "x")]


#: Who may load functions decides what all who call them do.
LOADERS = ("dispatcher", "admitter", "expirer", "operator")
PROBE = """#!lua name=probe
redis.register_function('probe', function(keys, args) return redis.call(unpack(args)) end)"""


class GuardedServer(RedisServer):
    """A redis-server with the users of deploy/redis. The tests log in as admin."""

    def guard(self) -> None:
        made = subprocess.run([str(TOP / "deploy" / "redis" / "make-users"), str(self.users)], check=False,
                              capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        self.options["aclfile"] = str(self.users / "users.acl")

    @property
    def users(self):
        return self.directory / "users"

    def password(self, name: str) -> str:
        return (self.users / f"{name}.password").read_text().strip()

    def login(self, name: str) -> Redis:
        client = super().connect()
        user = name if name == "admin" else f"tellerline-{name}"
        assert client.command("AUTH", user, self.password(name)) == "OK"
        return client

    def connect(self, timeout: float = 30.0) -> Redis:
        return self.login("admin")


def guarded(system: System) -> None:
    server = GuardedServer(system.directory, {"port": str(free_port()), "bind": "127.0.0.1"})
    server.guard()
    system.redis = server
    system.settings("redis", {"url": url(server, "operator")})
    for program in system.programs:
        program.env["TELLERLINE_REDIS_URL"] = url(server, program.role)
        if program.role == "worker":
            program.env["TELLERLINE_ADMIN_REDIS_URL"] = url(server, "control")


def url(server: GuardedServer, name: str) -> str:
    return f"redis://tellerline-{name}:{server.password(name)}@127.0.0.1:{server.options['port']}"


def denials(system: System) -> list[str]:
    found = []
    for entry in system.store.command("ACL", "LOG", "100"):
        fields = dict(zip(entry[::2], entry[1::2]))
        found.append(f"{fields['username']}: {fields['reason']} {fields['object']} ({fields['context']})")
    return found


def denied(client: Redis, *command: str) -> bool:
    try:
        answer = client.command(*command)
    except RedisError as error:
        return str(error).startswith(("NOPERM", "ERR The user executing the script can't", "ERR ACL failure in script"))
    raise AssertionError(f"{command} was allowed: {answer}")


def test_whole_life_with_a_user_for_each_program(start):
    """Joins, admission, claim, renewal, ends of all kinds, presence, settings, notices, a restart and a total loss."""
    system = start({"bank": {"capacity": 2} | CALM,
                    "sale": {"mode": "paused", "order": "draw", "opens_at": "2999-01-01T00:00:00Z"} | CALM,
                    "short": {"capacity": 1, "session_ttl": "1s", "claim_ttl": "1s", "waiting_ttl": "2s"}},
                   workers=2, prepare=guarded)
    for client in (system.client(0), system.client(1)):
        wait_until(lambda client=client: client.get("/v1/queues/short").status == 200, PATIENCE, "it is served")
    assert not denied_but_creating(system)
    # A sign of misuse: it is in the store after some seconds.
    assert system.client().get("/v1/queues/bank/check", ticket="a.forged.pass").status == 401
    system.join("sale")
    system.set("sale", f"opens_at={datetime.now(timezone.utc).isoformat()}")
    wait_until(lambda: len(system.client().get("/v1/queues/sale/draw").json.get("ids", [])) == 1, PATIENCE,
               "the list of the draw")
    visitors = [system.join("bank", worker=i % 2) for i in range(5)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is active")
    assert visitors[0].renew()["status"] == "active"
    assert visitors[0].complete()["status"] == "completed"
    assert visitors[4].leave()["status"] == "left"
    wait_until(visitors[2].is_active, PATIENCE, "the third is active")
    short = [system.join("short") for _ in range(2)]
    wait_until(lambda: system.numbers("short")["expired"] >= 2, PATIENCE, "sessions end, or the absent are dropped")
    wait_until(lambda: short[0].status()["status"] == "expired", PATIENCE, "the worker knows")
    system.set("bank", "capacity=3")
    wait_until(visitors[3].is_active, PATIENCE, "the fourth is active")
    assert system.ctl("queue", "notice", "bank", "soon").returncode == 0
    assert system.ctl("queue", "list").returncode == 0
    for words in (("block", "add", "192.0.2.0/24", "--for", "1h"), ("block", "list",), ("block", "remove", "192.0.2.0/24"),
                  ("visitor", "remove", "bank", visitors[1].ticket, "--yes")):
        assert system.ctl(*words).returncode == 0, words
    assert system.ctl("top", "--count", "1").returncode == 0
    rehearsal = system.ctl("rehearse", "bank", "--target", f"http://127.0.0.1:{system.of('worker')[0].http_port}",
                           "--visitors", "5", "--over", "1s", "--session", "1s", "--speed", "2")
    assert rehearsal.returncode == 0, rehearsal.stdout + rehearsal.stderr
    wait_until(lambda: system.store.command("XLEN", system.key("bank", "signs")) > 0, PATIENCE, "signs are kept")
    audit = system.ctl("audit")
    assert audit.returncode == 0, audit.stdout + audit.stderr
    for program in system.programs:
        program.stop()
        program.start()
        program.wait_ready()
    assert visitors[3].status(system.client())["status"] == "active"

    system.store.command("FLUSHALL")
    system.expect(r"kind=(noqueue|nogroup|store|stale)\b")
    wait_until(lambda: system.store.command("EXISTS", system.key("bank", "state")) == 1, PATIENCE, "it is created again")
    assert system.ctl("queue", "recover", "bank", "--now").returncode == 0
    wait_until(lambda: system.visitor("bank").client.post("/v1/queues/bank/join").status == 200, PATIENCE, "joins again")
    assert not denied_but_creating(system)


def test_programs_with_many_queues_need_no_more(start):
    """With so many queues programs do not block, but have the store tell what was written."""
    names = [f"q{i}" for i in range(40)]  # more than TL_WAKES_BLOCKING_MAX
    system = start({name: {"capacity": 1} | CALM for name in names}, prepare=guarded)
    visitors = [system.join(names[-1]) for _ in range(2)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is active")
    assert visitors[0].complete()["status"] == "completed"
    wait_until(visitors[1].is_active, PATIENCE, "the second is active")
    listeners = system.store.command("CLIENT", "LIST", "TYPE", "PUBSUB").splitlines()
    assert {line.partition(" user=")[2].partition(" ")[0] for line in listeners} == {
        f"tellerline-{role}" for role in ("worker", "dispatcher", "admitter", "expirer")}
    system.store.command("FLUSHALL")
    system.expect(r"kind=(noqueue|nogroup|store|stale)\b")
    wait_until(lambda: system.visitor(names[0]).client.post(f"/v1/queues/{names[0]}/join").status == 200, PATIENCE,
               "joins again")
    system.store.command("CLIENT", "KILL", "TYPE", "PUBSUB")
    system.store.command("CLIENT", "KILL", "TYPE", "NORMAL")
    system.expect(r"kind=connect\b")
    wait_until(lambda: system.visitor(names[1]).client.post(f"/v1/queues/{names[1]}/join").status == 200, PATIENCE,
               "joins over new connections")
    assert not denied_but_creating(system)


def test_a_notifier_lives_through_a_loss(start, tmp_path):
    """It creates no queue: it waits until the others have, and tells of the loss."""
    receiver = Receiver(tmp_path)
    with receiver.serving():
        system = start({"bank": {"capacity": 2} | CALM}, notifiers=1, prepare=guarded,
                       settings={"webhooks": [receiver.webhook("site", ["store_lost"])]})
        wait_until(lambda: system.store.hash(system.key("bank", "webhooks")).get("wanted"), PATIENCE, "the queue is watched")
        system.store.command("FLUSHALL")
        system.expect(r"kind=(noqueue|nogroup|store|stale)\b")
        wait_until(lambda: system.store.hash(system.key("bank", "webhooks")).get("wanted"), PATIENCE, "it is watched again")
        receiver.wait_for("store_lost")
        assert not denied_but_creating(system)


def denied_but_creating(system: System) -> list[str]:
    """Denials, without those of workers and notifiers that tried to create a queue, and of those that tried to load the
    functions: they leave that to the others."""
    creating = re.compile(r"tellerline-worker: command xgroup\|create \(lua\)|tellerline-notifier: key tl:\S+:ingest \(lua\)"
                          r"|tellerline-(worker|notifier|control): command function\|load \(toplevel\)")
    return [line for line in denials(system) if not creating.fullmatch(line)]


def test_the_admin_api_has_a_user_of_its_own(start):
    """It may do what an operator may; the processes that visitors reach have another user."""
    def prepare(system: System) -> None:
        guarded(system)
        admin_file(system)

    system = start({"bank": {"capacity": 1} | CALM}, prepare=prepare)
    admin = Admin(system.of("worker")[0])
    system.serves("bank")
    joined = system.join("bank")
    done = admin.done
    jane = done("POST", "tokens", {"name": "jane", "role": "admin"})
    done("GET", "tokens")
    done("DELETE", "tokens/jane")
    assert jane["token"]
    done("POST", "queues", {"name": "more", "settings": {"capacity": 3}})
    wait_until(lambda: system.client().get("/v1/queues/more").status == 200, PATIENCE, "the worker serves it")
    done("PATCH", "queues/bank", {"capacity": 1, "session_ttl": "20m"})
    done("PUT", "queues/more", {"capacity": 4})
    for mode in ("pause", "resume", "drain", "close", "sell-out", "passthrough", "open"):
        done("POST", f"queues/bank/{mode}")
    done("POST", "queues/bank/notice", {"text": "soon"})
    bulk = admin.call("POST", "queues/bank/joins", {"visitors": [{"visitor": "a.friend"}, {"visitor": "another"}]})
    assert bulk.status in (200, 202), bulk.body
    wait_until(lambda: system.waiting("bank") == 2, PATIENCE, "they wait")
    done("GET", "queues")
    for call in ("stats", "line", "draw", "visitors/a.friend", "visitors?reference=Q5T9-4XDR"):
        assert admin.call("GET", f"queues/bank/{call}").status in (200, 404, 409), call
    for kind in ("csv", "jsonl"):
        assert b"a.friend" in admin.call("GET", f"queues/bank/export?format={kind}").body
    done("POST", "queues/bank/visitors/a.friend/lane", {"lane": "vip"})
    done("DELETE", "queues/bank/visitors/another")
    admin.call("POST", "queues/bank/recover", {"wait_seconds": 0})
    done("POST", "blocks", {"prefix": "192.0.2.0/24", "for_seconds": 3600})
    done("GET", "blocks")
    done("DELETE", "blocks?prefix=192.0.2.0/24")
    assert len(done("GET", "changes")["changes"]) > 10
    stats = EventReader(system.of("worker")[0], "queues/bank/events", {"Authorization": f"Bearer {ADMIN_TOKEN}"})
    assert stats.next()[0] == stats.next()[0] == "stats"
    stats.close()
    done("DELETE", "queues/more?confirm=more")
    assert joined.complete()["status"] == "completed"
    assert not denied_but_creating(system)


def test_what_the_users_may_not_do(start):
    """Above all a worker, which visitors reach, cannot touch the line, the sessions, the settings or the leases."""
    system = start({"bank": {"capacity": 1} | CALM}, prepare=guarded)
    # The worker may not create the queue, and learns of it after the dispatcher did.
    client = system.client()
    wait_until(lambda: client.get("/v1/queues/bank").status == 200, PATIENCE, "the worker serves the queue")
    system.join("bank")
    before = system.store.command("DUMP", system.key("bank", "config"))
    system.store.command("FUNCTION", "LOAD", PROBE)
    worker = system.redis.login("worker")
    for command, name, *rest in FORBIDDEN_TO_WORKERS:
        where = [system.key("bank", rest.pop(0))] if command == "XGROUP" else []
        key = [name, *where] if where else [system.key("bank", name)]
        assert denied(worker, command, *key, *rest), (command, name)
        assert denied(worker, "FCALL", "probe", "0", command, *key, *rest), (command, name)
        assert denied(worker, "FCALL", "probe", "1", system.key("bank", "state"), command, *key, *rest), (command, name)
    notifier = system.redis.login("notifier")
    for command, name, *rest in FORBIDDEN_TO_NOTIFIERS:
        key = system.key("bank", name)
        assert denied(notifier, command, key, *rest), (command, name)
        assert denied(notifier, "FCALL", "probe", "1", key, command, key, *rest), (command, name)
    notifier.close()
    for command in SECRET_FROM_WORKERS:
        assert denied(worker, *command), command
        assert denied(worker, "FCALL", "probe", "0", *command), command
    promised = library().name("promised")
    assert worker.command("FCALL", promised, 1, system.key("bank", "state"), 5, 1, 1, 100) is None, "a worker may count these"
    assert system.store.command("HGET", system.key("bank", "promised"), "eta_judged") == "5"
    worker.close()
    for name in (*ROLES, "operator", "control"):
        client = system.redis.login(name)
        for command in FORBIDDEN_TO_ALL:
            assert denied(client, *command), (name, command)
        load = ("FUNCTION", "LOAD", "REPLACE", PROBE)
        assert client.command(*load) == "probe" if name in LOADERS else denied(client, *load), name
        client.close()
    nobody = Redis(system.redis.socket)
    try:
        nobody.command("PING")
        raise AssertionError("the default user is open")
    except RedisError as error:
        assert str(error).startswith("NOAUTH")
    finally:
        nobody.close()
    assert system.store.command("DUMP", system.key("bank", "config")) == before


def test_kubernetes_has_the_same_users(tmp_path):
    """Each with its own address, and with what a program asks a server first."""
    made = subprocess.run([str(TOP / "deploy" / "kubernetes" / "make-secrets"), "with-redis", str(tmp_path / "secrets")],
                          check=False, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    server = RedisServer(tmp_path, {"aclfile": str(tmp_path / "secrets" / "users.acl")})
    server.start(wait=False)
    try:
        wait_until(server.connect, PATIENCE, "redis-server listens", again_on=RedisGone).close()
        for role in (*ROLES, "control"):
            address = (tmp_path / "secrets" / f"{role}.url").read_text()
            user, password = address.removeprefix("redis://").partition("@")[0].split(":")
            assert user == f"tellerline-{role}" and address.endswith("@tellerline-redis:6379/0")
            client = server.connect()
            assert client.command("AUTH", user, password) == "OK"
            assert client.command("ROLE")[0] == "master"
            assert "master_replid" in client.command("INFO", "replication")
            assert denied(client, "FLUSHALL")
            client.close()
    finally:
        server.stop()
