"""Redis is down, full, read-only or loading: a clear answer, no change, and normal operation after recovery."""
from __future__ import annotations

import pytest

from http_client import Answer, Client
from redis_server import RedisError
from tellerline import CALM, PATIENCE, System
from waiting import wait_until

#: Errors are expected in the log while the store fails. Programs name the kind.
STORE_TROUBLE = r"kind=(connect|timeout|loading|readonly|misconf|oom|nogroup|store|stale|noqueue)\b"
PROMPT = {"http": {"join_wait": "1s"}, "redis": {"timeout": "1s"}}


def refused(client: Client, path: str = "/v1/queues/bank/join") -> Answer:
    answer = client.post(path)
    assert answer.problem(503)["detail"]
    assert int(answer.headers["retry-after"]) >= 1
    return answer


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
    refused(client)
    wait_until(lambda: client.get("/readyz").status == 503, PATIENCE, "not ready")
    assert client.get("/livez").status == 200
    refused(client)
    # Waiting visitors still get their position, from memory.
    assert visitors[5].status()["position"] == 5

    system.redis.start()
    joins_again(system, client)
    places_kept(visitors)
    # At most the two refused joins may exist, if the connection broke after they were sent.
    assert joined + 1 <= system.numbers("bank")["joined"] <= joined + 3
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
    assert visitors[3].status()["position"] == 3
    assert system.numbers("bank") == before
    system.store.command("CONFIG", "SET", "maxmemory", "0")
    joins_again(system, client)
    places_kept(visitors)
    assert system.numbers("bank")["joined"] == before["joined"] + 1


def test_read_only_replica(start):
    system = start({"bank": {"capacity": 1} | CALM}, settings=PROMPT)
    system.expect(STORE_TROUBLE)
    visitors = line_of(system, 5)
    before = system.numbers("bank")
    client = system.client()
    system.store.command("REPLICAOF", "127.0.0.1", "1")
    refused(client)
    assert system.numbers("bank") == before
    system.store.command("REPLICAOF", "NO", "ONE")
    joins_again(system, client)
    places_kept(visitors)
    assert system.numbers("bank")["joined"] == before["joined"] + 1


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
    assert system.numbers("bank") == before
    (system.directory / "dump.rdb").rmdir()
    store.command("CONFIG", "SET", "save", "")
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
    for i in range(BALLAST):
        system.store.send("SET", f"ballast:{i}", "x")
    for _ in range(BALLAST):
        system.store.read()
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
