# SPDX-License-Identifier: Apache-2.0
"""The archive of queues on the nodes of a Redis Cluster: what one node has lost comes back, and the others go on."""
from __future__ import annotations

import pytest

from admin import Admin, admin_file
from archived import agree, finds_nothing, trails_are_true
from cluster_faults import TROUBLE
from redis_cluster import queues_everywhere, slot_of
from test_archive import join_many
from test_archive_away import last_known
from test_archive_restore import QUEUE, field, is_restored, picture
from test_faults_clock import Clock
from waiting import PATIENCE, wait_until

pytestmark = [pytest.mark.together(seconds=90)]

QUEUES = queues_everywhere(6)


def begin(start, cluster, postgres, **archive):
    """In each queue four visitors with a ticket are active, two wait, and behind them many others."""
    def prepare(system):
        admin_file(system)
        cluster.prepare(system)

    system = start({queue: QUEUE | {"recovery_window": "12s"} for queue in QUEUES}, archivers=2, prepare=prepare,
                   settings={"http": {"join_wait": "1s"}, "redis": {"timeout": "1s"},
                             "archive": {"url": postgres.url, "restore": "auto"} | archive})
    for pattern in (*TROUBLE, "has lost the queue", "old copy"):
        system.expect(pattern)
    come = {queue: [system.join(queue) for _ in range(6)] for queue in QUEUES}
    for queue, visitors in come.items():
        join_many(system, 600, "v", queue)
        wait_until(visitors[3].is_active, PATIENCE, "the first are called")
    all_agree(system, postgres)
    return system, come


def all_agree(system, postgres):
    for queue in QUEUES:
        agree(system, postgres, queue)


def all_is_well(system, postgres):
    finds_nothing(system)
    for queue in QUEUES:
        trails_are_true(system, postgres, queue)


@pytest.mark.parametrize("restore", ["auto", "manual"])
def test_a_node_loses_everything(start, cluster, postgres, restore):
    """Its queues come back from the archive, by themselves or by `tellerline restore`. Those of other nodes go on meanwhile."""
    system, come = begin(start, cluster, postgres, restore=restore)
    victim, lost = next(iter(cluster.queues_by_master(QUEUES).items()))
    kept = [queue for queue in QUEUES if queue not in lost]
    before = {queue: (field(system, "generation", queue), picture(system, queue)) for queue in QUEUES}
    victim.ask("FLUSHALL")
    for queue in kept:
        come[queue][0].complete()
        wait_until(come[queue][4].is_active, PATIENCE, "the next is called")
        assert not is_restored(system, lost[0]), "they do not wait for that"
    for queue in lost:
        if restore == "manual":
            done = system.ctl("restore", queue)
            assert done.returncode == 0 and "visitors came back" in done.stdout, done.stdout + done.stderr
        wait_until(lambda q=queue: is_restored(system, q), PATIENCE, "the archive has brought them back")
        assert field(system, "generation", queue) != before[queue][0]
        assert picture(system, queue) == before[queue][1]
        assert come[queue][3].is_active()
    for queue in kept:
        assert (field(system, "generation", queue), is_restored(system, queue)) == (before[queue][0], False)
        agree(system, postgres, queue)
    for queue in lost:
        agree(system, postgres, queue, ("waiting", "active"))
        wait_until(lambda q=queue: field(system, "recover_until", q) == "0", PATIENCE, "the recovery ends")
        come[queue][0].complete()
        wait_until(come[queue][4].is_active, PATIENCE, "admission goes on in the old order")
    all_is_well(system, postgres)


def test_a_node_comes_back_from_an_old_copy(start, cluster, postgres, tmp_path):
    """Meanwhile a worker that has just started tells the places of its queues from the archive, and those of others as ever.
    What the copy lacks comes back."""
    system, come = begin(start, cluster, postgres, restore="auto")
    clock = Clock(tmp_path)
    # Not the one with the list of queues, without which a worker begins to serve none.
    victim, lost = next((node, queues) for node, queues in cluster.queues_by_master(QUEUES).items()
                        if node is not cluster.master_of("tl:queues"))
    replica, history = cluster.replica_of(victim), victim.history()
    replica.kill()
    for queue in QUEUES:
        come[queue][0].complete()
        wait_until(come[queue][4].is_active, PATIENCE, "the next is called")
        join_many(system, 300, "w", queue)
        system.join(queue).leave()
    all_agree(system, postgres)
    before = {queue: picture(system, queue) for queue in QUEUES}
    victim.kill()
    system.of("worker")[0].kill()
    system.of("worker")[0].start()
    for queue in QUEUES:
        waits = come[queue][5]
        wait_until(lambda v=waits, q=queue: ("as_of" in last_known(v)) == (q in lost), PATIENCE, "the others are answered as ever")
        assert last_known(waits)["position"] == 1
    victim.lose_tail(history)
    clock.set(120)
    victim.prefix = clock.prefix
    victim.start()
    replica.start()
    cluster.settle()
    for queue in lost:
        wait_until(lambda q=queue: is_restored(system, q), PATIENCE, "the archive has brought back what it lacks")
    for queue in QUEUES:
        assert picture(system, queue) == before[queue]
        assert is_restored(system, queue) == (queue in lost)
    desk = Admin(system.of("worker")[0])
    for queue in QUEUES:
        assert desk.done("DELETE", f"queues/{queue}/visitors/w7")
    desk.close()
    all_agree(system, postgres)
    all_is_well(system, postgres)
    system.finish()
    system.sound = False  # by the clock that the node has for other tests
    clock.set(0)


def test_a_deleted_queue_moves_before_its_end_is_written(start, cluster, postgres):
    """It was deleted while PostgreSQL was away, and what is left of its record moves to another node."""
    system, _ = begin(start, cluster, postgres)
    postgres.stop()
    system.expect("the archive failed")
    desk = Admin(system.of("worker")[0])
    desk.done("DELETE", f"queues/{QUEUES[0]}?confirm={QUEUES[0]}")
    desk.close()
    wait_until(lambda: not system.store.command("EXISTS", system.key(QUEUES[0], "state")), PATIENCE, "the queue is deleted")
    source = cluster.master_of(system.key(QUEUES[0], "record"))
    target = next(node for node in cluster.masters() if node is not source)
    assert cluster.move_slots([slot_of(QUEUES[0])], target) > 0, "its record"
    postgres.start()
    wait_until(lambda: postgres.sql("SELECT count(*) FROM queue_generations JOIN queues USING (queue_id) "
                                    f"WHERE name = '{QUEUES[0]}' AND deleted_at IS NOT NULL") == "1", PATIENCE, "its end is written")
    wait_until(lambda: system.store.command("XLEN", system.key(QUEUES[0], "record")) == 0, PATIENCE, "and acknowledged")
    for queue in QUEUES[1:]:
        agree(system, postgres, queue)
