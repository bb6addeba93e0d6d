# SPDX-License-Identifier: Apache-2.0
"""Push: event streams and long polls."""
from __future__ import annotations

import re
import signal
import threading
import time
from pathlib import Path

import pytest

from http_client import Client, Visitor
from library_names import library
from sse import Ended, EventStream
from shared_stack import Stack
from tellerline import CALM, PATIENCE, System
from waiting import one_of, patient, wait_until

pytestmark = pytest.mark.together(seconds=40)



@pytest.fixture
def open_stream():
    """open_stream(visitor, worker port): the event stream of this visitor, closed after the test."""
    streams = []

    def open_one(visitor: Visitor, port: int | None = None, **more) -> EventStream:
        stream = EventStream(port or visitor.client.port, f"{visitor.path}/events", visitor.ticket,
                             **more)
        streams.append(stream)
        return stream

    yield open_one
    for stream in streams:
        stream.close()


def bank(start, visitors: int, workers: int = 1) -> tuple[System, list[Visitor]]:
    """A bank with one counter; the first visitor is active, the others wait."""
    system = start({"bank": {"capacity": 1} | CALM}, workers=workers)
    return system, line_up(system, "bank", visitors)


def counter(share, visitors: int, workers: int = 1, **queue) -> tuple[Stack, str, list[Visitor]]:
    """The same with a queue of the stack that the tests of this file share."""
    system = share(workers=workers)
    name = system.queue(**queue)
    return system, name, line_up(system, name, visitors)


def line_up(system: System, queue: str, visitors: int) -> list[Visitor]:
    line = [system.join(queue) for _ in range(visitors)]
    wait_until(line[0].is_active, PATIENCE, "the first is active")
    return line


def post_notice(system: System, text: str, queue: str = "bank") -> None:
    """As `tellerline queue notice`, without starting a process for each notice."""
    said = system.store.command("FCALL", library().name("configure"), 1, system.key(queue, "state"), "20000", "notice", text,
                                "tester", "test", "1000")
    assert said[0] == 1


def gauge(system: System, name: str, worker: int = 0) -> int:
    client = Client(system.of("worker")[worker].admin_port)
    try:
        text = client.get("/metrics").body.decode()
    finally:
        client.close()
    found = re.search(rf"^{name}(?:{{.*}})? (\d+)$", text, re.MULTILINE)
    assert found, f"no {name} in {text[:400]}"
    return int(found.group(1))


# ---- event streams ----

def test_first_event_comes_at_once(share, open_stream, figure):
    system, name, line = counter(share, 3)

    def time_to_the_first() -> float:
        nonlocal stream, retry, first
        began = time.monotonic()
        stream = open_stream(line[2])
        retry, first = stream.next(), stream.next()
        return (first.seconds - began) * 1000

    stream = retry = first = None
    times = one_of(10, time_to_the_first, patient(100), "ms until the first event")
    figure(f"the first event after {times[-1]:.1f} ms")
    assert stream.status == 200
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["cache-control"] == "no-store"
    assert stream.headers["x-accel-buffering"] == "no", "proxies must not gather events"
    assert retry.kind == "retry" and 1000 <= int(retry.data) <= 4000
    assert first.kind == "position"
    view = first.json
    assert (view["status"], view["position"], view["ahead"]) == ("waiting", 2, 1)
    assert view["visitor"] == line[2].view["visitor"] and "ticket" not in view
    admitted = open_stream(line[0]).event("position", "admitted", "ended")
    assert admitted.kind == "admitted" and admitted.json["status"] == "active"
    system.join(name).leave()
    gone = system.join(name)
    gone.leave()
    ended = open_stream(gone).event("position", "admitted", "ended")
    assert (ended.kind, ended.json["status"]) == ("ended", "left")


def test_retry_is_spread(share, open_stream):
    _, _, line = counter(share, 2)
    times = {open_stream(line[1]).next().data for _ in range(12)}
    assert len(times) > 6, f"all clients would reconnect at once: {times}"


@pytest.mark.sanitized
def test_position_falls_step_by_step(share, open_stream):
    """Near the front, the stream tells every position in order, then the admission, then the end."""
    _, _, line = counter(share, 8)
    last = line[-1]
    stream = open_stream(last)
    assert stream.event("position").json["position"] == 7
    for place in range(6, 0, -1):
        line[6 - place].complete()
        event = stream.event("position", "admitted", "ended")
        assert (event.kind, event.json["position"]) == ("position", place)
        wait_until(line[7 - place].is_active, PATIENCE, "the next is active")
    line[6].complete()
    event = stream.event("position", "admitted", "ended")
    assert (event.kind, event.json["status"]) == ("admitted", "active")
    assert event.json["pass"] and event.json["expires_at"]
    last.complete()
    event = stream.event("position", "admitted", "ended")
    assert (event.kind, event.json["end_reason"]) == ("ended", "completed")


def test_admission_is_told_at_once(share, open_stream, figure):
    """From `complete` to the next visitor's `admitted` event."""
    _, _, line = counter(share, 11)
    delays = []
    for done, following in zip(line, line[1:]):
        stream = open_stream(following)
        stream.event("position")
        began = time.monotonic()
        done.complete()
        delays.append((stream.event("admitted").seconds - began) * 1000)
    figure(f"from complete to the event `admitted`: median {sorted(delays)[5]:.1f} ms, "
           f"max {max(delays):.1f} ms")
    # A busy machine may delay most of them. With the half-second rounds of the crowd, three so short are unlikely.
    assert sorted(delays)[2] < patient(30), delays


def test_ticket_by_query_and_cookie(share):
    """A browser's EventSource sends no headers of its own."""
    system, name, line = counter(share, 2)
    port, path = line[1].client.port, f"{line[1].path}/events"
    for query, headers in ((f"?ticket={line[1].ticket}", {}),
                           ("", {"Cookie": f"tellerline_{name}={line[1].ticket}"})):
        stream = EventStream(port, path + query, headers=headers)
        assert stream.event("position").json["position"] == 1
        stream.close()
    system.client().get(path).problem(401)
    system.client().get(path, ticket=line[1].ticket[:-1] + "_").problem(401)


def test_notice_and_its_end(share, open_stream):
    system, name, line = counter(share, 2)
    stream = open_stream(line[1])
    stream.event("position")
    text = 'Two "more" counters open at 15:00 \u2713'
    assert system.ctl("queue", "notice", name, text).returncode == 0
    assert stream.event("notice").json == {"text": text}
    late = open_stream(line[0])
    assert late.event("notice").json == {"text": text}, "a later visitor gets it, too"
    assert system.ctl("queue", "notice", name, "").returncode == 0
    for reader in (stream, late):
        assert reader.event("notice").json == {"text": ""}


def test_a_notice_in_the_language_of_each(share):
    system, name, line = counter(share, 2)
    port, path = line[1].client.port, f"{line[1].path}/events?ticket={line[1].ticket}"
    readers = {language: EventStream(port, path + query, headers=headers) for language, query, headers in (
        ("ko", "", {"Accept-Language": "ko-KR,en;q=0.5"}), ("en", "&lang=en", {"Accept-Language": "ko"}), ("any", "", {}))}
    texts = {"ko": "창구를 더 엽니다.", "en": "More counters open.", "any": "More counters open."}
    assert system.ctl("queue", "notice", name, "ko=" + texts["ko"], "en=" + texts["en"]).returncode == 0
    for language, reader in readers.items():
        reader.event("position")
        assert reader.event("notice").json == {"text": texts[language]}
        reader.close()
    status = f"/v1/queues/{name}/status?ticket={line[1].ticket}"
    assert system.client().get(status + "&lang=ko").json["notice"] == texts["ko"]
    assert system.client().get(status).json["notice"] == texts["en"]
    assert texts["ko"] in system.client().get(f"/q/{name}?ticket={line[1].ticket}&lang=ko").body.decode()


def test_several_streams_of_one_ticket(share, open_stream):
    _, _, line = counter(share, 3)
    streams = [open_stream(line[2]) for _ in range(4)]
    for stream in streams:
        assert stream.event("position").json["position"] == 2
    streams.pop().close()
    line[0].complete()
    for stream in streams:
        assert stream.event("position").json["position"] == 1
    wait_until(line[1].is_active, PATIENCE, "the second is active")
    line[1].complete()
    for stream in streams:
        assert stream.event("admitted").json["status"] == "active"


def test_closed_stream_is_forgotten(share, open_stream):
    system, _, line = counter(share, 2)
    streams = [open_stream(line[1]) for _ in range(10)]
    for stream in streams:
        stream.event("position")
    wait_until(lambda: gauge(system, "tellerline_worker_subscribers") == 10, PATIENCE, "ten streams")
    for stream in streams:
        stream.close()
    wait_until(lambda: gauge(system, "tellerline_worker_subscribers") == 0, PATIENCE, "none left")


# ---- slow readers ----

def flood(system: System, queue: str, reader: EventStream, count: int) -> str:
    """Sends `count` notices of about 3,000 bytes and waits until `reader` has each. Returns the last one's text."""
    text = ""
    for i in range(count):
        text = f"{i} " + "\x01" * 490
        post_notice(system, text, queue)
        while reader.event("notice").json["text"] != text:
            pass
    return text


@pytest.mark.sanitized
def test_slow_reader_gets_the_newest_state(share, open_stream):
    """The worker does not buffer for a slow reader. When it reads again, it gets the newest state."""
    count = 120
    system, name, line = counter(share, 4)
    slow, quick = open_stream(line[3], narrow=True), open_stream(line[3])
    for stream in (slow, quick):
        stream.event("position")
    last = flood(system, name, quick, count)
    line[1].leave()
    line[2].leave()
    wait_until(lambda: quick.event("position").json["position"] == 1, PATIENCE, "the line moved")

    notices, position = [], 0
    while not (position == 1 and notices and notices[-1] == last):
        event = slow.event("notice", "position")
        if event.kind == "notice":
            notices.append(event.json["text"])
        else:
            position = event.json["position"]
    assert len(notices) < count // 2, f"{len(notices)} of {count} were kept for a slow reader"
    assert slow.received < 200_000, "that much was kept for a reader who did not read"


@pytest.mark.long(seconds=32)
def test_what_takes_half_a_minute(share, open_stream):
    """At the same time, as each is a wait. A quiet stream sends a heartbeat before proxies close it. An open page keeps
    its place, for three times waiting_ttl; a closed one loses it. A reader that takes nothing is dropped."""
    system, name, line = counter(share, 2)
    quiet, watched = counter(share, 2)[2], counter(share, 3, waiting_ttl="10s")
    stuck, quick = open_stream(line[1], narrow=True), open_stream(line[1])
    calm, page = open_stream(quiet[1]), open_stream(watched[2][2])
    first = [stream.event("position") for stream in (stuck, quick, calm, page)][2]
    flood(system, name, quick, 120)
    quick.close()
    wait_until(lambda: gauge(system, "tellerline_worker_subscribers") == 3, PATIENCE, "stuck, calm and page are left")

    beat = calm.next()
    assert (beat.kind, beat.data) == ("comment", "")
    assert 10 < beat.seconds - first.seconds < patient(50), "for quiet streams, which proxies close after a minute"

    wait_until(lambda: system.numbers(watched[1])["absent"] == 1, PATIENCE, "the absent one is dropped")
    assert page.event("position").json["position"] == 1

    wait_until(lambda: gauge(system, "tellerline_worker_subscribers") == 2, 90, "the stuck one is dropped", every=0.2)
    with pytest.raises(Ended):
        while True:
            stuck.next()
    assert line[1].status()["position"] == 1, "the place belongs to the ticket"

    wait_until(lambda: time.monotonic() - first.seconds > 30, 40, "three times waiting_ttl", every=0.1)
    with pytest.raises(AssertionError, match="nothing more"):
        page.event("ended", seconds=0.01)
    assert system.numbers(watched[1])["absent"] == 1


# ---- reconnecting ----

def test_reconnection_on_the_other_worker(share, open_stream):
    system, _, line = counter(share, 3, workers=2)
    ports = [program.http_port for program in system.of("worker")]
    first = open_stream(line[2], ports[0])
    assert first.event("position").json["position"] == 2
    first.close()
    line[0].complete()
    second = open_stream(line[2], ports[1])
    view = second.event("position").json
    assert view["visitor"] == line[2].view["visitor"]
    while view["position"] == 2:  # the other worker may be a moment behind
        view = second.event("position").json
    assert view["position"] == 1


def test_kill_of_the_worker(start, open_stream):
    """kill -9: the stream ends, and continues at the other worker where it stopped."""
    system, line = bank(start, 3, workers=2)
    victim, other = system.of("worker")
    stream = open_stream(line[2], victim.http_port)
    assert stream.event("position").json["position"] == 2
    children = victim.children()
    victim.kill()
    with pytest.raises(Ended):
        while True:
            stream.next()
    stream = open_stream(line[2], other.http_port)
    assert stream.event("position").json["position"] == 2
    for done in line[:2]:
        active = Visitor(system.client(1), "bank", done.ticket)
        wait_until(active.is_active, PATIENCE, "active")
        active.complete()
    assert stream.event("admitted").json["visitor"] == line[2].view["visitor"]
    wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children), PATIENCE,
               "its children have ended their streams and are gone, too")
    victim.start()
    victim.wait_ready()


def test_drain_sends_everybody_away_over_time(start, open_stream, figure):
    """SIGTERM: each stream gets a reconnection time and ends. They do not all end at once."""
    system, line = bank(start, 41, workers=2)
    victim, other = system.of("worker")
    streams = [open_stream(visitor, victim.http_port) for visitor in line[1:]]
    for stream in streams:
        stream.event("position")
    began = time.monotonic()
    ends = []

    def read_to_the_end(stream: EventStream) -> None:
        events = stream.rest()
        ends.append((time.monotonic() - began, events[-1] if events else None))

    readers = [threading.Thread(target=read_to_the_end, args=(stream,)) for stream in streams]
    for reader in readers:
        reader.start()
    victim.send(signal.SIGTERM)
    for reader in readers:
        reader.join()
    assert len(ends) == 40
    for _, last in ends:
        assert last is not None and last.kind == "retry" and 0 < int(last.data) <= 10000, last
    moments = sorted(moment for moment, _ in ends)
    figure(f"40 streams ended from {moments[0]:.2f} to {moments[-1]:.2f} s after SIGTERM")
    assert moments[-1] - moments[0] > 0.5
    assert len({last.data for _, last in ends}) > 20, "they would all reconnect at once"
    victim.stop()
    assert open_stream(line[1], other.http_port).event("position").json["position"] == 1


# ---- long poll ----

def poll(visitor: Visitor, wait: str, client: Client):
    return client.get(f"{visitor.path}/status?wait={wait}", ticket=visitor.ticket)


@pytest.mark.sanitized
def test_long_poll_answers_a_change(share, figure):
    system, _, line = counter(share, 3)
    client = system.client()
    for change, status, position in ((line[0].complete, "waiting", 1), (line[1].complete, "active", None)):
        wait_until(line[0 if position else 1].is_active, PATIENCE, "active")
        client.send("GET", f"{line[2].path}/status?wait=20s", ticket=line[2].ticket)
        wait_until(lambda: gauge(system, "tellerline_worker_subscribers") == 1, PATIENCE, "it waits")
        began = time.monotonic()
        change()
        answer = client.receive()
        took = time.monotonic() - began
        figure(f"a long poll answered {took * 1000:.1f} ms after the change")
        assert answer.status == 200 and took < 19, "long before the 20 s are over"
        assert (answer.json["status"], answer.json.get("position")) == (status, position)


def test_long_poll_runs_out(share):
    system, _, line = counter(share, 2)
    client = system.client()
    for visitor, wait, seconds in ((line[1], "1s", 1.0), (line[0], "500ms", 0.5)):
        def beyond() -> float:
            began = time.monotonic()
            answer = poll(visitor, wait, client)
            took = time.monotonic() - began
            assert answer.status == 200 and answer.json["status"] == visitor.status()["status"]
            assert took >= seconds - 0.001, took  # the worker counts whole milliseconds
            return took - seconds

        one_of(5, beyond, patient(0.5), f"seconds more than {wait}")
    line[1].leave()
    began = time.monotonic()
    assert poll(line[1], "20s", client).json["status"] == "left"
    assert time.monotonic() - began < 19, "nothing can change any more, so the answer comes at once"
    assert poll(line[0], "0s", client).json["status"] == "active"


def test_long_poll_wrong_wait(share):
    system, _, line = counter(share, 2)
    client = system.client()
    for wait in ("", "soon", "20", "-1s", "56s", "1d", "1.5s", "99999999999999999999s", "20s%20"):
        problem = poll(line[1], wait, client).problem(400)
        assert problem["type"] == "/problems/bad-query" and "wait" in problem["detail"], wait
    client.get(f"{line[1].path}/status?wait=1s").problem(401)


def test_long_poll_ends_with_the_worker(start):
    """On SIGTERM, a waiting poll is answered with the current state."""
    system, line = bank(start, 2)
    client = system.client()
    client.send("GET", f"{line[1].path}/status?wait=50s", ticket=line[1].ticket)
    wait_until(lambda: gauge(system, "tellerline_worker_subscribers") == 1, PATIENCE, "it waits")
    system.of("worker")[0].send(signal.SIGTERM)
    answer = client.receive()
    assert answer.status == 200 and answer.json["position"] == 1, answer.body
