# SPDX-License-Identifier: Apache-2.0
"""`tellerline audit` on a live system: nothing in a queue in order, however busy; every queue, whatever the others are."""
from __future__ import annotations

import http.server
import json
import threading

from http_client import Client, Visitor
from tellerline import CALM, PATIENCE, System, free_port
from waiting import wait_until


def report(system: System) -> tuple[int, dict[str, dict]]:
    done = system.ctl("audit", "-o", "json")
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    return found["n_violations"], {queue["queue"]: queue for queue in found["queues"]}


def test_no_false_alarm_beside_traffic(start):
    """Visitors join, come in, complete and leave all the time, on two queues, while the audit runs again and again."""
    system = start({"bank": {"capacity": 3} | CALM, "shop": {"capacity": 1, "lanes": ["vip", "normal"]} | CALM},
                   workers=2)
    over = threading.Event()
    done = []

    def come_and_go(queue: str, worker: int) -> None:
        client = Client(system.of("worker")[worker].http_port)
        try:
            while not over.is_set():
                visitors = [Visitor(client, queue).join() for _ in range(3)]
                visitors[0].leave()
                wait_until(visitors[1].is_active, PATIENCE, "its turn")
                visitors[1].complete()
                visitors[2].leave()
                done.append(queue)
                over.wait(0.05)  # a visitor's own pace
        finally:
            client.close()

    crowd = [threading.Thread(target=come_and_go, args=(queue, worker))
             for queue, worker in (("bank", 0), ("bank", 1), ("shop", 1))]
    for one in crowd:
        one.start()
    try:
        wait_until(lambda: {"bank", "shop"} <= set(done), PATIENCE, "traffic on both queues")
        workers = ",".join(f"127.0.0.1:{worker.http_port}" for worker in system.of("worker"))
        for _ in range(3):
            before = len(done)
            n, queues = report(system)
            assert n == 0, queues
            wait_until(lambda: len(done) > before, PATIENCE, "the traffic goes on")
        compared = system.ctl("audit", "--worker", workers)
        assert compared.returncode == 0, compared.stdout + compared.stderr
    finally:
        over.set()
        for one in crowd:
            one.join()


class StandIn(http.server.BaseHTTPRequestHandler):
    """A worker whose line is not the store's."""

    def do_GET(self) -> None:
        body = b'{"queue":"bank","open":true,"waiting":7,"active":1,"lanes":["normal"]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        pass


def test_workers_that_show_other_sizes(start):
    """The numbers that a worker shows visitors are compared with the store's, also while they change."""
    system = start({"bank": {"capacity": 1} | CALM}, workers=2)
    first, second = system.join("bank"), system.join("bank")
    wait_until(first.is_active, PATIENCE, "the first is active")
    ports = [worker.http_port for worker in system.of("worker")]
    real = ",".join(f"127.0.0.1:{port}" for port in ports)
    done = system.ctl("audit", "--worker", real)
    assert done.returncode == 0, done.stdout + done.stderr
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), StandIn) as wrong:
        threading.Thread(target=wrong.serve_forever, daemon=True).start()
        try:
            done = system.ctl("audit", "--worker", f"{real},localhost:{wrong.server_port}")
        finally:
            wrong.shutdown()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "violates invariant 11" in done.stdout and "shows 7 waiting and 1 active; the state has 1 and 1" in done.stdout
    for address, complaint in ((f"127.0.0.1:{free_port()}", "does not answer"), ("nonsense", "is not HOST:PORT")):
        done = system.ctl("audit", "--worker", address)
        assert done.returncode == 2 and complaint in done.stderr, done.stderr
    second.leave()


def test_every_queue_is_looked_at(start):
    """A queue that is gone, and one that is not listed, are findings; the others are audited all the same."""
    system = start({"bank": {"capacity": 1} | CALM, "shop": {"capacity": 1} | CALM})
    visitor = system.join("shop")
    system.join("bank")
    for program in system.programs:
        program.stop()
    store = system.store
    store.command("SADD", "tl:queues", "gone")
    store.command("SREM", "tl:queues", "shop")
    store.command("HINCRBY", system.key("bank", "state"), "joined", "1")
    n, queues = report(system)
    assert n == 3 and {name: queue["n_violations"] for name, queue in queues.items()} == {"bank": 1, "gone": 1, "shop": 1}
    texts = {name: queue["violations"][0] for name, queue in queues.items()}
    assert "joined" in texts["bank"]["text"] and texts["bank"]["invariant"] == 5
    assert "nothing of it exists" in texts["gone"]["text"] and "not listed" in texts["shop"]["text"]
    assert all(found["advice"] for found in texts.values())
    said = system.ctl("audit")
    assert said.returncode == 1 and said.stdout.count("what to do: ") == 3, said.stdout
    assert system.ctl("audit", "--queue", "never").returncode == 2
    store.command("SREM", "tl:queues", "gone")
    store.command("SADD", "tl:queues", "shop")
    store.command("HINCRBY", system.key("bank", "state"), "joined", "-1")
    for program in system.programs:
        program.start()
    for program in system.programs:
        program.wait_ready()
    assert visitor.status(system.client())["visitor"] == visitor.view["visitor"]
