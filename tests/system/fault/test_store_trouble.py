# SPDX-License-Identifier: Apache-2.0
"""Redis is down, full, read-only or loading: a clear answer, no change, and normal operation after recovery."""
from __future__ import annotations

import datetime
import re
import time

import pytest

from figures_of import metric
from http_client import Answer, Client
from redis_server import Redis, RedisError, RedisServer
from sse import EventStream
from tellerline import CALM, PATIENCE, TOP, System, free_port
from waiting import patient, wait_until

#: Errors are expected in the log while the store fails. Programs name the kind.
STORE_TROUBLE = r"kind=(connect|timeout|loading|readonly|misconf|oom|nogroup|store|stale|noqueue)\b"
PROMPT = {"http": {"join_wait": "1s"}, "redis": {"timeout": "1s"}}


def refused(client: Client, path: str = "/v1/queues/bank/join") -> Answer:
    answer = client.post(path)
    assert answer.problem(503)["detail"]
    assert int(answer.headers["retry-after"]) >= 1
    return answer


def not_ready(client: Client, reason: str) -> None:
    """The worker takes no joins and says why, but goes on answering from memory, and says that, too."""
    def says_so() -> bool:
        answer = client.get("/readyz")
        return answer.status == 503 and reason in answer.problem(503)["detail"]

    wait_until(says_so, PATIENCE, f"not ready: {reason}")
    assert client.get("/readyz?exclude=store").status == 200
    assert client.get("/readyz?exclude=disk").status == 400


def joins_again(system: System, client: Client) -> None:
    def try_join() -> bool:
        answer = client.post("/v1/queues/bank/join")
        assert answer.status in (200, 202, 503), answer.body
        return answer.status == 200

    wait_until(try_join, PATIENCE, "joins work again", every=0.05)
    for program in system.programs:
        program.wait_ready()


def line_of(system: System, count: int) -> list:
    visitors = [system.join("bank") for _ in range(count)]
    wait_until(visitors[0].is_active, PATIENCE, "the first is active")
    wait_until(lambda: visitors[-1].status()["position"] == count - 1, PATIENCE, "positions")
    return visitors


def places_kept(visitors: list) -> None:
    wait_until(lambda: visitors[0].status()["status"] == "active", PATIENCE, "still active")
    for i, visitor in enumerate(visitors[1:], 1):
        assert visitor.status()["position"] == i


def test_positions_carry_their_age_while_redis_is_away(start):
    """JSON, event stream and page say of when the numbers are; once Redis is back they say nothing."""
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT, redis={"appendfsync": "always"})
    system.expect(STORE_TROUBLE)
    visitor = line_of(system, 3)[-1]
    stream = EventStream(visitor.client.port, f"{visitor.path}/events", visitor.ticket)

    def told_on_the_stream(stale: bool) -> bool:
        view = stream.event("position").json
        assert view["position"] == 2
        return ("as_of" in view) == stale

    assert told_on_the_stream(False)
    went_down = int(system.store.command("TIME")[0])
    system.redis.kill()
    gone = time.time()
    system.forget_store()
    wait_until(lambda: told_on_the_stream(True), PATIENCE, "the stream says how old its position is")
    view = visitor.status()
    assert view["position"] == 2
    as_of = datetime.datetime.fromisoformat(view["as_of"].replace("Z", "+00:00")).timestamp()
    assert went_down - patient(3) <= as_of <= gone + 1, (went_down, gone, view)
    page = visitor.client.get("/q/bank", visitor.ticket, headers={"Accept-Language": "en"}).body.decode()
    assert "Reconnecting… Last updated" in page
    system.redis.start()
    wait_until(lambda: told_on_the_stream(False), PATIENCE, "the stream is up to date again")
    assert "as_of" not in visitor.status()
    stream.close()


def test_a_line_that_falls_behind_takes_no_more_joins(start):
    """Without a dispatcher joins pile up in Redis, for worker.max_lag at most. Those that were accepted count."""
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT | {"worker": {"max_lag": "2s"}})
    dispatcher, client = system.of("dispatcher")[0], system.client()
    dispatcher.kill()
    accepted = []

    def is_refused() -> bool:
        answer = client.post("/v1/queues/bank/join")
        if answer.status == 503:
            return "behind" in refused(client).problem(503)["detail"]
        assert answer.status == 202, answer.body
        accepted.append(answer.json)
        return False

    wait_until(is_refused, PATIENCE, "joins are refused", every=0.2)
    assert accepted
    # Who was accepted is not turned away.
    again = client.post("/v1/queues/bank/join", ticket=accepted[0]["ticket"])
    assert again.status == 202, again.body
    dispatcher.start()
    joins_again(system, client)
    wait_until(lambda: system.numbers("bank")["joined"] == len(accepted) + 1, PATIENCE, "all who were accepted joined")


@pytest.mark.parametrize("crash", [True, False], ids=["killed", "stopped"])
def test_redis_down_and_back(start, crash):
    """With appendfsync always, even kill -9 of Redis keeps every acknowledged place."""
    system = start({"bank": {"capacity": 1} | CALM}, workers=2, settings=PROMPT,
                   redis={"appendfsync": "always"})
    system.expect(STORE_TROUBLE)
    visitors = line_of(system, 20)
    joined = system.numbers("bank")["joined"]
    client = system.client()

    system.redis.kill() if crash else system.redis.stop()
    system.forget_store()
    tried = 1

    def is_refused() -> bool:
        nonlocal tried
        tried += 1
        return client.post("/v1/queues/bank/join").status == 503

    # A join that was on its way when the connection broke is pending, not refused.
    wait_until(is_refused, PATIENCE, "joins are refused")
    not_ready(client, "cannot be reached")
    assert client.get("/livez").status == 200
    refused(client)
    # Waiting visitors still get their position, from memory.
    assert visitors[5].status()["position"] == 5

    system.redis.start()
    joins_again(system, client)
    places_kept(visitors)
    # At most those that were tried meanwhile may exist, if the connection broke after they were sent.
    assert joined + 1 <= system.numbers("bank")["joined"] <= joined + 1 + tried
    visitors[0].complete()
    wait_until(visitors[1].is_active, PATIENCE, "the line goes on")


def test_out_of_memory(start):
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    visitors = line_of(system, 5)
    before = system.numbers("bank")
    client = system.client()
    system.store.command("CONFIG", "SET", "maxmemory", "1")
    refused(client)
    not_ready(client, "memory limit")
    assert visitors[3].status()["position"] == 3
    assert system.numbers("bank") == before
    system.store.command("CONFIG", "SET", "maxmemory", "0")
    joins_again(system, client)
    places_kept(visitors)
    assert system.numbers("bank")["joined"] == before["joined"] + 1


def test_alarm_before_the_memory_is_full(start):
    """From 80 % of maxmemory /readyz of the admin listener says so, and the alert sees it. Joins go on."""
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    worker, client = system.of("worker")[0], system.client()

    def says_so() -> bool:
        admin = Client(worker.admin_port)
        try:
            answer = admin.get("/readyz")
        finally:
            admin.close()
        assert answer.status == 200, answer
        return "of its memory (maxmemory)" in answer.body.decode()

    assert not says_so()
    system.store.command("SETRANGE", "ballast", "30000000", "-")  # beside it the programs' first keys are nothing
    info = system.store.command("INFO", "memory")
    used = int(re.search(r"^used_memory:(\d+)", info, re.MULTILINE).group(1))
    system.store.command("CONFIG", "SET", "maxmemory", str(used * 100 // 87))
    wait_until(says_so, PATIENCE, "the note")
    names = re.findall(r"tellerline_worker_store_memory\w+", (TOP / "deploy" / "monitoring" / "alerts.yml").read_text())
    part, whole = (metric(worker, name) for name in dict.fromkeys(names))
    assert 0.8 < part / whole < 0.95
    assert client.post("/v1/queues/bank/join").status == 200
    system.store.command("CONFIG", "SET", "maxmemory", "0")
    wait_until(lambda: not says_so(), PATIENCE, "the note is gone")


def test_the_line_moves_on_out_of_memory(start):
    """At the memory limit visitors complete and leave, and the next is called. Only joins are refused."""
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    visitors = line_of(system, 4)
    system.store.command("CONFIG", "SET", "maxmemory", "1")
    refused(system.client())
    assert visitors[0].complete()["status"] == "completed"
    wait_until(visitors[1].is_active, PATIENCE, "the next is called")
    assert visitors[2].leave()["status"] == "left"
    wait_until(lambda: visitors[3].status()["position"] == 1, PATIENCE, "the one behind moved up")
    system.store.command("CONFIG", "SET", "maxmemory", "0")
    joins_again(system, system.client())


def test_roles_restarted_out_of_memory_take_their_leases(start):
    """At the memory limit sessions end and the next visitors are called, also by programs that have just started."""
    system = start({"bank": {"capacity": 1, "session_ttl": "3s", "claim_ttl": "3s", "waiting_ttl": "10m"}},
                   settings=PROMPT)
    system.expect(STORE_TROUBLE)
    visitors = line_of(system, 3)
    roles = [program for program in system.programs if program.role != "worker"]
    for program in roles:
        program.kill()
    system.store.command("CONFIG", "SET", "maxmemory", "1")
    for program in roles:
        program.start()
    for program in roles:
        program.wait_ready()
    wait_until(visitors[1].is_active, PATIENCE, "the session of the first ended, the next is called")
    system.store.command("CONFIG", "SET", "maxmemory", "0")
    joins_again(system, system.client())


def test_read_only_replica(start):
    """A replica is as good as down, for every program. What met it is sent to the next master."""
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    visitors = line_of(system, 5)
    before = system.numbers("bank")
    client = system.client()
    system.store.command("REPLICAOF", "127.0.0.1", "1")
    for program in system.programs:
        wait_until(lambda p=program: not p.ready(), PATIENCE, f"{program.name} is not ready")
    refused(client)
    assert visitors[3].status()["position"] == 3
    assert system.numbers("bank") == before
    system.store.command("REPLICAOF", "NO", "ONE")
    joins_again(system, client)
    places_kept(visitors)
    assert system.numbers("bank")["joined"] == before["joined"] + 1


def clients_of(store: Redis) -> int:
    """Connections, without replicas and masters."""
    return len(store.command("CLIENT", "LIST", "TYPE", "NORMAL").splitlines())


def test_demoted_master_is_left(start):
    """The address leads to another server, but the connections to the old one stay open, and it answers."""
    def two_addresses(system: System) -> None:
        old = system.directory / "old.sock"
        system.redis.options |= {"port": str(free_port()), "unixsocket": str(old)}
        system.redis.socket.symlink_to(old)

    system = start({"bank": {"capacity": 1} | CALM}, workers=2, settings=PROMPT, prepare=two_addresses)
    system.expect(STORE_TROUBLE)
    visitors = line_of(system, 5)
    joined = system.numbers("bank")["joined"]
    client = system.client()
    address, demoted, old = system.redis.socket, system.redis, system.store
    system.redis = RedisServer(system.directory / "new", {"port": str(free_port())})
    system.redis.directory.mkdir()
    system.redis.start()
    new = system.redis.connect()
    new.command("REPLICAOF", "127.0.0.1", demoted.options["port"])
    wait_until(lambda: new.command("ROLE")[3] == "connected", PATIENCE, "the replica has caught up")
    address.unlink()
    address.symlink_to(system.redis.socket)
    new.command("REPLICAOF", "NO", "ONE")
    old.command("REPLICAOF", "127.0.0.1", system.redis.options["port"])
    wait_until(lambda: clients_of(old) == 1, PATIENCE, "all programs have left the old master")
    new.close()
    system.forget_store()
    joins_again(system, client)
    places_kept(visitors)
    assert joined + 1 <= system.numbers("bank")["joined"]
    visitors[0].complete()
    wait_until(visitors[1].is_active, PATIENCE, "the line goes on")
    demoted.stop()
    address.symlink_to(system.redis.socket)  # stopping has removed it


def test_disk_trouble(start):
    """MISCONF: Redis cannot save and therefore refuses writes."""
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    visitors = line_of(system, 5)
    before = system.numbers("bank")
    client = system.client()
    store = system.store
    (system.directory / "dump.rdb").mkdir()  # the snapshot cannot be renamed to it
    store.command("CONFIG", "SET", "save", "3600 1")
    store.command("BGSAVE")
    wait_until(lambda: "rdb_last_bgsave_status:err" in store.command("INFO", "persistence"),
               PATIENCE, "the save fails")
    refused(client)
    not_ready(client, "MISCONF")
    assert visitors[3].status()["position"] == 3
    assert system.numbers("bank") == before
    (system.directory / "dump.rdb").rmdir()
    store.command("CONFIG", "SET", "save", "")
    # Noticed without a join: a balancer sends none to a worker that is not ready.
    wait_until(lambda: client.get("/readyz").status == 200, PATIENCE, "ready again")
    joins_again(system, client)
    places_kept(visitors)
    assert system.numbers("bank")["joined"] == before["joined"] + 1


#: Enough keys to keep Redis loading for the duration of the test.
BALLAST = 100_000


def test_loading(start):
    """Redis answers, but only that it is still loading."""
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT,
                   redis={"appendfsync": "always"})
    system.expect(STORE_TROUBLE)
    visitors = line_of(system, 5)
    client = system.client()
    system.store.command("EVAL", f"for i = 1, {BALLAST} do redis.call('SET', 'ballast:' .. i, 'x') end", 0)
    system.redis.stop()
    system.forget_store()
    # 300 microseconds per loaded key. Redis serves its clients once every 1024 keys.
    system.redis.start({"key-load-delay": "300"}, wait=False)
    wait_until(lambda: is_loading(system), PATIENCE, "loading")
    refused(client)
    assert client.get("/readyz").status == 503
    assert is_loading(system), "the machine was too fast to prove anything"
    system.store.command("CONFIG", "SET", "key-load-delay", "0")
    wait_until(system.redis.answers, PATIENCE, "loaded")
    joins_again(system, client)
    places_kept(visitors)


def is_loading(system: System) -> bool:
    try:
        store = system.redis.connect()
    except OSError:
        return False
    except Exception as error:  # the socket does not exist yet
        assert "No such file" in str(error) or "refused" in str(error), error
        return False
    try:
        store.command("PING")
        return False
    except RedisError as error:
        return "LOADING" in str(error)
    finally:
        store.close()


def test_dispatcher_down(start):
    """Accepted but not numbered: 202 and a pending ticket. The place is kept and is numbered later."""
    system = start({"bank": {"capacity": 1} | CALM}, workers=2, settings=PROMPT)
    system.expect(r"kind=timeout\b")  # one second can be short on a busy machine
    line_of(system, 3)
    joined = system.numbers("bank")["joined"]
    dispatcher = system.of("dispatcher")[0]
    dispatcher.kill()

    tickets = []
    for i in range(3):
        answer = system.client(i % 2).post("/v1/queues/bank/join")
        assert answer.status == 202 and answer.json["status"] == "pending", answer.body
        tickets.append(answer.json["ticket"])
    # Joining again with it, at either worker, does not take a second place.
    answer = system.client(1).get("/v1/queues/bank/status", ticket=tickets[0])
    assert answer.status == 202 and answer.json["status"] == "pending", answer.body
    assert system.numbers("bank")["joined"] == joined

    dispatcher.start()
    dispatcher.wait_ready()
    for i, ticket in enumerate(tickets):
        for worker in (0, 1):
            view = wait_until(lambda t=ticket, w=worker: numbered(system, t, w), PATIENCE,
                              "the place is known", every=0.05)
            assert view["status"] == "waiting" and view["position"] == 3 + i, view
    assert system.numbers("bank")["joined"] == joined + 3


@pytest.mark.parametrize("lasts", ["claim_ttl", "session_ttl"])
def test_no_session_ends_before_its_claim_is_applied(start, lasts):
    """No dispatcher runs for longer than that. Who claimed or renewed in time keeps the session; who did not loses it."""
    times = {"claim_ttl": "10m", "session_ttl": "10m", "session_sliding": True, "session_max": "10m"}
    system = start({"bank": {"capacity": 2} | CALM | times | {lasts: f"{patient(3):.0f}s"}}, settings=PROMPT)
    system.expect(r"kind=timeout\b")
    visitors = [system.join("bank") for _ in range(4)]
    for visitor in visitors[:2]:
        wait_until(visitor.is_active, PATIENCE, "the first are active")
        visitor.complete()
    active, dispatcher = system.key("bank", "active"), system.of("dispatcher")[0]
    wait_until(lambda: system.numbers("bank")["admitted"] == 4, PATIENCE, "the others are called")
    if lasts == "session_ttl":
        for visitor in visitors[2:]:
            wait_until(visitor.is_active, PATIENCE, "the others know")
            visitor.renew()
    dispatcher.kill()
    deadline = int(system.store.command("ZRANGE", active, -1, -1, "WITHSCORES")[1])
    if lasts == "session_ttl":
        visitors[2].client.post(f"{visitors[2].path}/renew", ticket=visitors[2].ticket)
    else:
        assert visitors[2].is_active()
    assert redis_ms(system) < deadline, "this machine is too slow"
    wait_until(lambda: redis_ms(system) > deadline + 1000, PATIENCE, "both are overdue")
    assert system.active("bank") >= 1, "the session has ended although its claim is on its way"
    dispatcher.start()
    dispatcher.wait_ready()
    wait_until(lambda: system.numbers("bank")["expired"] == 1, PATIENCE, "the other has ended")
    assert visitors[2].is_active()


def numbered(system: System, ticket: str, worker: int) -> dict | None:
    client = system.client(worker)
    try:
        answer = client.get("/v1/queues/bank/status", ticket=ticket)
        return answer.json if answer.status == 200 else None
    finally:
        client.close()


@pytest.mark.parametrize("role", ["admitter", "expirer"])
def test_role_down_delays_only_its_step(start, role):
    system = start({"bank": {"capacity": 2, "session_ttl": "2s", "claim_ttl": "2s",
                             "waiting_ttl": "10m"}})
    program = system.of(role)[0]
    if role == "admitter":
        program.kill()
        visitors = [system.join("bank") for _ in range(4)]
        assert [visitor.view["position"] for visitor in visitors] == [1, 2, 3, 4]
        assert system.active("bank") == 0
    else:
        visitors = [system.join("bank") for _ in range(4)]
        wait_until(lambda: system.active("bank") == 2, PATIENCE, "two are active")
        program.kill()
        wait_until(lambda: system.active("bank") == 2, PATIENCE, "two are active, and their sessions do not end")
        deadline = int(system.store.command("ZRANGE", system.key("bank", "active"), -1, -1,
                                            "WITHSCORES")[1])
        wait_until(lambda: redis_ms(system) > deadline + 200, PATIENCE, "both are overdue")
        assert system.active("bank") == 2, "only the expirer ends a session"
    program.start()
    wait_until(lambda: visitors[3].status()["status"] == "active", PATIENCE, "the last is active")


def redis_ms(system: System) -> int:
    seconds, micros = system.store.command("TIME")
    return int(seconds) * 1000 + int(micros) // 1000
