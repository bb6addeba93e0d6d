"""What Tellerline costs while nothing happens."""
from __future__ import annotations

from tellerline import CALM, PATIENCE
from waiting import wait_until

QUEUES = 100
LOOKS_A_ROUND = 32  # worker/sources.c


def calls(system) -> dict[str, int]:
    """How often each command was called."""
    found = {}
    for line in system.store.command("INFO", "commandstats").splitlines():
        if line.startswith("cmdstat_"):
            name, _, rest = line.removeprefix("cmdstat_").partition(":calls=")
            found[name] = int(rest.partition(",")[0])
    return found


def test_idle_queues_cost_a_worker_no_more(start, figure):
    """A worker asks for the time once a round (a second); all else it asks is counted against that."""
    system = start({f"q{i}": {"capacity": 1} | CALM for i in range(QUEUES)})
    before = calls(system)

    def rounds() -> int:
        return calls(system)["time"] - before["time"]

    wait_until(lambda: rounds() >= 4, PATIENCE, "the worker has looked at its queues again")
    after = calls(system)
    more = {name: after[name] - before.get(name, 0) for name in sorted(after)
            if after[name] > before.get(name, 0)}
    n = after["time"] - before["time"]
    figure(f"{QUEUES} idle queues, commands in {n} s: "
           + ", ".join(f"{name} {count}" for name, count in more.items()))
    assert more.get("hgetall", 0) <= LOOKS_A_ROUND * (n + 1), more
    for seldom in ("script|load", "xgroup|create", "sadd"):
        assert more.get(seldom, 0) == 0, (seldom, more)


def test_queue_changed_behind_our_back_is_noticed(start):
    """With more queues than one round looks at, each still has its turn."""
    system = start({f"q{i}": {"capacity": 1} | CALM for i in range(QUEUES)})
    for i in (0, QUEUES // 2, QUEUES - 1):
        system.store.command("HSET", system.key(f"q{i}", "config"), "capacity", "7")
    client = system.client()
    for i in (0, QUEUES // 2, QUEUES - 1):
        wait_until(lambda: client.get(f"/v1/queues/q{i}").json["capacity"] == 7, PATIENCE,
                   f"the new capacity of q{i} is shown")


def test_consumer_group_and_list_are_healed(start):
    """What somebody deleted by hand is made again, and joins go on."""
    system = start({"bank": {"capacity": 1} | CALM})
    first = system.join("bank")
    system.store.command("XGROUP", "DESTROY", system.key("bank", "ingest"), "dispatchers")
    system.expect("NOGROUP|nogroup")
    wait_until(lambda: system.visitor("bank").client.post("/v1/queues/bank/join").status == 200, PATIENCE,
               "joins are numbered again")
    system.store.command("SREM", "tl:queues", "bank")
    wait_until(lambda: system.store.command("SISMEMBER", "tl:queues", "bank") == 1, PATIENCE,
               "the queue is listed again")
    wait_until(first.is_active, PATIENCE, "the first is active")
