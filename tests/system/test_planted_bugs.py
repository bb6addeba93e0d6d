"""The history checker complains when a script is wrong: each bug is planted into a copy of a program.

The programs carry their scripts as text. A bug replaces a piece of that text by another one of the same length.
"""
from __future__ import annotations

import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from actors import Actor
from history import History, check
from tellerline import BIN, System
from waiting import wait_until

CAPACITY = 3
ACTORS = 8
#: How long a visitor of these tests waits for an answer before that is a complaint (seconds).
PATIENT = 8.0


@dataclass(frozen=True)
class Bug:
    name: str
    role: str       # whose script is broken
    right: str      # the text in the program
    wrong: str      # what replaces it, filled up with spaces
    complaint: str  # a pattern of what the checker must say
    during: str = "service"  # what happens meanwhile: see happen()


#: At least one for each thing that the checker decides, and for each script that changes the line.
BUGS = [
    # apply
    Bug("join lost", "dispatcher", "if n_gathered == 0 then\n            return", "if n_gathered == 1 then\n            return",
        r"join: no ticket|never joined the line|of place \d+.*expired"),
    Bug("place given twice", "dispatcher", "state.seq = n_gathered + n, state.seq + n",
        "state.seq = n_gathered + n, state.seq + 0", r"one place was given to two"),
    Bug("another place than the one told", "dispatcher", "lane * LANE + state.seq + 1, gathered",
        "lane*LANE + state.seq + 99, gathered", r"status of place \d+.*(expired|unknown)"),
    Bug("joins not announced", "dispatcher", "if #joined_spans > 0 then", "if #joined_spans < 0 then",
        r"lack their beginning|tells of|no ticket|was asked for"),
    Bug("batch applied twice", "dispatcher", "if last and last >= batch then", "if last and last >= 9e15  then",
        r"places for \d+ acknowledged|still wait", during="repeats"),
    Bug("leaver counted nowhere", "dispatcher", "state.waiting - 1, totals.left + 1", "state.waiting - 1, totals.left + 0",
        r"totals do not add up", during="leaving"),
    Bug("leaver still counted", "dispatcher", "state.waiting, totals.left = state.waiting - 1",
        "state.waiting, totals.left = state.waiting - 0", r"tells of", during="leaving"),
    Bug("session not closed", "dispatcher", "redis.call('ZREM', K_ACTIVE, visitor)", "",
        r"never came to an end|still active|tells of"),
    Bug("claim shortens", "dispatcher", "local deadline = admitted_ms + settings.session_ttl\n",
        "local deadline = admitted_ms + 1                   \n", r"(status|complete) of place \d+.*(expired|unclaimed|409|410)"),
    Bug("presence not recorded", "dispatcher", "    mark_seen(first, count)\n", "    mark_seen(first, 0)    \n",
        r"status of place \d+.*(expired|absent)", during="pause"),
    # admit
    Bug("one too many", "admitter", "math.max(0, capacity - active)", "math.max(9, capacity - active)",
        r"more active than the capacity|knew themselves active"),
    Bug("last first", "admitter", "redis.call('ZPOPMIN', K_WAITING, count)", "redis.call('ZPOPMAX', K_WAITING, count)",
        r"was admitted after|still waited"),
    Bug("neighbour told", "admitter", "popped[2 * i - 1], digits .. tail, place", "popped[2*i-1], digits..tail, place + 1",
        r"complete of place \d+.*Not admitted|does not wait|never admitted"),
    # expire, absent
    Bug("ended before its time", "expirer", "K_ACTIVE, '-inf', now,", "K_ACTIVE, '-inf', 1/0,",
        r"(status|complete) of place \d+.*(expired|unclaimed|409|410)", during="desertion"),
    Bug("ends not announced", "expirer", "if #expired > 0 then", "if #expired < 0 then", r"tells of", during="desertion"),
    # ensure
    Bug("created again", "dispatcher", "if state_exists then\n    return 0", "if nil          then\n    return 0",
        r"created again", during="restart"),
]


def plant(bug: Bug, folder: Path) -> None:
    """Makes a copy of the program with the bug in its scripts."""
    name = f"tellerline-{bug.role}"
    right, wrong = bug.right.encode(), bug.wrong.encode().ljust(len(bug.right))
    assert len(right) == len(wrong), f"{bug.name}: the wrong text is longer than the right one"
    program = (BIN / name).read_bytes()
    assert right in program, f"{bug.name}: the script has changed; plant the bug at its new place"
    (folder / name).write_bytes(program.replace(right, wrong))
    shutil.copymode(BIN / name, folder / name)


def happen(what: str, system: System, history: History) -> None:
    """What happens while the visitors come and go."""
    seconds = 2.0
    if what == "pause":  # longer than waiting_ttl, so that presence counts
        system.set("door", "paused=true")
        seconds = 5.0
    end = time.monotonic() + seconds
    if what == "restart":
        wait_until(lambda: system.numbers("door")["joined"] > ACTORS, PATIENT, "some joined", again_on=KeyError)
        dispatcher = system.of("dispatcher")[0]
        dispatcher.stop()
        dispatcher.start()
    for _ in range(2 if what == "desertion" else 0):
        desert(system, history)
    wait_until(lambda: time.monotonic() > end, seconds + 1, "visitors came and went")
    if what == "pause":
        system.set("door", "paused=false")


def desert(system: System, history: History) -> None:
    """Two visitors are called, claim their sessions, and are not seen again."""
    for visitor in [system.join("door") for _ in range(2)]:
        stay = history.acknowledged(visitor.ticket, received=time.time())
        wait_until(visitor.is_active, PATIENT, "is called")
        stay.saw_active(time.time(), visitor.view)
        stay.end = "expired"
    place = stay.place
    wait_until(lambda: any(place in (freed for freed, _ in step.freed) for step in system.steps("door")), PATIENT,
               "the sessions end")


class Recorder(threading.Thread):
    """Keeps every batch of the ingest stream, before the dispatcher trims what it has applied."""

    def __init__(self, system: System) -> None:
        super().__init__(daemon=True)
        self._store, self._key, self._last = system.redis.connect(), system.key("door", "ingest"), "0-0"
        self._done = threading.Event()
        self.batches: list[str] = []

    def run(self) -> None:
        while not self._done.is_set():
            for _, entries in self._store.command("XREAD", "BLOCK", 50, "STREAMS", self._key, self._last) or []:
                for self._last, fields in entries:
                    self.batches.append(fields[1])

    def stop(self) -> None:
        self._done.set()
        self.join()
        self._store.close()


def repeat_batches(system: System, batches: list[str]) -> None:
    """Every batch with joins arrives once more, as after answers that were lost."""
    for payload in batches:
        system.store.command("XADD", system.key("door", "ingest"), "*", "d", payload.encode("utf-8", "surrogateescape"))


def story(system: System, what: str, staleness: float) -> None:
    """Visitors come and go, then the checker judges. Raises AssertionError for what it finds."""
    history, stop = History(), threading.Event()
    ports = [program.http_port for program in system.of("worker")]
    served = (0.2, 0.5) if what in ("desertion", "leaving") else (0.0, 0.15)
    deadline = time.monotonic() + PATIENT + (8 if what in ("desertion", "pause") else 0)
    leavers = 0.5 if what == "leaving" else 0.15
    actors = [Actor(i, 1, ports, "door", history, stop, deadline, served=served, leavers=leavers)
              for i in range(ACTORS)]
    recorder = Recorder(system)
    for thread in (recorder, *actors):
        thread.start()
    trouble: BaseException | None = None
    try:
        happen(what, system, history)
    except AssertionError as error:
        trouble = error
    finally:
        stop.set()
        for actor in actors:
            actor.join()
            trouble = trouble or actor.error
    recorder.stop()
    if what == "repeats":
        repeat_batches(system, recorder.batches)
    try:
        wait_until(lambda: system.waiting("door") == system.active("door") == 0, PATIENT, "the line drains to empty")
    except AssertionError:
        pass  # the checker says the same, and more
    check(history, system.steps("door"), CAPACITY, system.final("door"), staleness, one_clock=True)
    if trouble is not None:
        raise trouble


def settings_of(bug: Bug) -> dict:
    queue = {"capacity": CAPACITY, "session_ttl": "60s", "claim_ttl": "30s", "waiting_ttl": "60s"}
    if bug.during == "pause":
        queue |= {"waiting_ttl": "2s"}
    if bug.during in ("repeats", "desertion"):
        queue |= {"session_ttl": "3s", "claim_ttl": "3s"}
    return queue


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_the_checker_finds_a_planted_bug(start, bug, tmp_path):
    plant(bug, tmp_path)

    def prepare(system: System) -> None:
        system.sound = False
        for program in system.of(bug.role):
            program.folder = tmp_path

    system = start({"door": settings_of(bug)}, settings={"http": {"join_wait": "1s"}}, prepare=prepare)
    with pytest.raises(AssertionError, match=bug.complaint) as complaint:
        story(system, bug.during, staleness=3.0)
    print(f"{bug.name}: {str(complaint.value)[:300]}")


@pytest.mark.parametrize("during", sorted({bug.during for bug in BUGS}))
def test_the_checker_finds_nothing_in_sound_programs(start, during):
    bug = next(bug for bug in BUGS if bug.during == during)
    system = start({"door": settings_of(bug)}, settings={"http": {"join_wait": "1s"}})
    story(system, during, staleness=3.0)
