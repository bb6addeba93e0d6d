# SPDX-License-Identifier: Apache-2.0
"""The history checker and the audit complain when a script is wrong: each bug is planted into copies of the programs.

The programs carry their scripts as text. A bug replaces a piece of that text by another one of the same length.
"""
from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from faults import TROUBLE
from stories import PLOTS, settings_of, tell
from tellerline import BIN, TOP, System

pytestmark = pytest.mark.together(seconds=100)

#: So many stories are told at the same time: each mostly waits, for visitors who take their time.
AT_ONCE = 6
#: One of each is enough for every story.
COUNTS = {"worker": 1, "dispatcher": 1, "admitter": 1, "expirer": 1}

ROLES = ("worker", "dispatcher", "admitter", "expirer")


@dataclass(frozen=True)
class Bug:
    name: str
    role: str       # whose script is broken; ALL: of every program that has it; OPERATOR: of the command line
    right: str      # the text in the program
    wrong: str      # what replaces it, filled up with spaces
    complaint: str  # a pattern of what is found
    during: str = "service"  # what happens meanwhile (stories.py)


ALL, OPERATOR = "all", "operator"

#: Scripts that write, and that no story can judge.
EXEMPT = {"history": "notes numbers for graphs, which the component test test_history compares with the queue",
          "durable": "writes a key of its own that says nothing; whether what was accepted survives: test_durability",
          "look": "finds what hooks are told of, which no visitor sees; test_hooks judges it",
          "recover": "begins or ends a recovery when an operator says so: test_apply_restore, test_changes",
          "told": "moves the cursors of hooks; what is told, again or not at all: test_hooks",
          "forget": "erases one visitor who is not in the line any more: test_forget",
          "prune": "drops old records that are for people only: test_forget",
          "promised": "adds up for operators what came true of the waits told: test_feed_exchange, test_eta",
          "hook_test": "writes an entry for a hook that an operator tries: test_hooks",
          "delete": "takes everything away, and what stays away: test_control_queues, test_roster",
          "unlist_queue": "takes a name off a list: test_control_queues",
          "joins": "appends what apply decides about: test_control_visitors",
          "idempotent": "keeps answers to calls, which no visitor sees: test_control_queues",
          "tokens": "changes no line; what it writes and refuses: test_changes (component), test_changes.py"}

#: At least one for each thing that the checker decides, and for each script that changes the line.
BUGS = [
    # apply
    Bug("join lost", "dispatcher", "if n_gathered == 0 then\n            return", "if n_gathered == 1 then\n            return",
        r"join: no ticket|never joined the line|of place \d+.*expired"),
    Bug("place given twice", "dispatcher", "state.seq = n_gathered + n, state.seq + n",
        "state.seq = n_gathered + n, state.seq + 0", r"one place was given to two"),
    Bug("another place than the one told", "dispatcher", "+ state.seq + 1, gathered",
        "+state.seq + 99, gathered", r"status of place \d+.*(expired|unknown)"),
    Bug("joins not announced", "dispatcher", "if #joined_spans > 0 then", "if #joined_spans < 0 then",
        r"lack their beginning|tells of|no ticket|was asked for"),
    Bug("batch applied twice", "dispatcher", "if last and last >= batch then", "if last and last >= 9e15  then",
        r"places for \d+ acknowledged|still wait", during="repeats"),
    Bug("extended again and again", "dispatcher", "local deadline = admitted_ms + math.min(2 * claim_ttl",
        "local deadline = now + math.min(2 * claim_ttl", r"extends place \d+ twice|may claim for", during="extension"),
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
    Bug("budget not spent", "admitter", "taken = taken + n", "taken = taken + 0",
        r"were admitted within 1000 ms.*the rate allows 5", during="rate"),
    Bug("late admissions not made up for", "admitter", "budget.from + rule.every + budget.late, 0, 0",
        "budget.from + rule.every / 4          , 0, 0", r"were admitted within 1000 ms.*the rate allows 5", during="rate"),
    Bug("one lane served for ever", "admitter", "d1 = lane == 1 and stride or d1 > time",
        "d1 = lane == 1 and 0 or d1 > time", r"did not get their shares", during="lanes"),
    Bug("more called than overbooked", "admitter", "math.max(0, math.min(more, capacity + overbook - active))",
        "math.max(0, more + 9)", r"more active than the capacity", during="overbook"),
    Bug("next turns in the wrong order", "admitter", "redis.call('ZPOPMIN', held_key())[1]",
        "redis.call('ZPOPMAX', held_key())[1]", r"had the next turn", during="overbook"),
    Bug("more let in than fit", "dispatcher", "if not is_held and rule.capacity - (state.active - called.n)",
        "if not is_held and 1 + rule.capacity-(state.active-called.n)", r"have claimed, the capacity is|the gate had let in",
        during="overbook"),
    Bug("mode not obeyed", "admitter", "local stopped = paused or mode ~= 'open' and mode ~= 'draining' --", "local stopped = false --",
        r"was admitted while the queue was paused", during="pause"),
    # adapt
    Bug("cut again at once", ALL, "if c.now < a.cut + s.adaptive_hold or newest <= a.cut then return",
        "if c.now < a.cut then return", r"was cut to 2, and a moment later to 1", during="overload"),
    # a hand-over
    Bug("a place for every device", "dispatcher", "known = tonumber(known) or 0\n", "known = 0\n", r"went to two devices",
        during="handover"),
    Bug("hand-over told to nobody", "dispatcher", "renewed[#renewed + 1] = { 10, held, serial }", "",
        r"no event told that place \d+ went|that gave it away (was told waiting|got a pass)", during="handover"),
    Bug("next one handed over", "dispatcher", "{ 10, held, serial }", "{ 10,held+1,serial }",
        r'was refused a code|no event told that place \d+ went|which does not wait|"status":"moved"', during="handover"),
    # expire
    Bug("ended before its time", "expirer", "K_ACTIVE, '-inf', now,", "K_ACTIVE, '-inf', 1/0,",
        r"before the time that its visitor was told|(status|complete) of place \d+.*(expired|unclaimed|409|410)",
        during="desertion"),
    Bug("ended before its claim is applied", "expirer", "return math.max(oldest - 1, now - 300000), now + again",
        "return now, now", r"although an entry was not applied", during="backlog"),
    Bug("ended before workers have told", "expirer", "return -1, began + 5000", "return now, now",
        r"ms after the store was there again", during="reboot"),
    Bug("remembered end not obeyed", "expirer", "math.min(remembered, admitted_ms + longest)", "deadline",
        r"before the time that its visitor was told", during="rewound"),
    Bug("remembered end not kept", "dispatcher", "if not found or event <= found or deadline <=", "if deadline or deadline <=",
        r"before the time that its visitor was told", during="rewound"),
    Bug("ends not announced", "expirer", "if #expired > 0 then", "if #expired < 0 then", r"tells of", during="desertion"),
    # absent
    Bug("absent one still counted", "expirer", "state.waiting = state.waiting - n\n", "state.waiting = state.waiting - 0\n",
        r"tells of|totals do not add up", during="absence"),
    Bug("another one dropped", "expirer", "redis.call('ZRANGE', K_WAITING, place, place, 'BYSCORE')[1]",
        "redis.call('ZRANGE', K_WAITING, 0, 0)[1]", r"(status|join again) of place \d+.*expired", during="absence"),
    # configure
    Bug("setting not written", OPERATOR,
        "call('HSET', c.key.config, 'changed', text.int(max(state.now_us(), changed + 1)), unpack(texts))", "",
        r"was admitted while the queue was paused", during="pause"),
    Bug("setting told to nobody", OPERATOR, "unpack(texts))\n    state.event(c, EVENT.config)",
        "unpack(texts))", r"no event told that paused is true", during="pause"),
    # lease
    Bug("fence not counted", "dispatcher", "c.fence or state.next_fence(c)", "c.fence or c.fence",
        r"held the lease with the same fence", during="restart"),
    # poison
    Bug("poison stays", "dispatcher", "call('XACK', c.key.ingest, defs.INGEST_GROUP, args[2]) == 0",
        "call('XLEN', c.key.ingest) == 0", r"set aside as poison|no answer to|but not applied", during="poison"),
    Bug("poison not kept", "dispatcher",
        "call('XADD', c.key.poison, 'MAXLEN', 100, '*', 'entry', args[2], 'why', args[3], 'd', args[4])", "",
        r"0 entries were set aside as poison", during="poison"),
    # claim
    Bug("entries left to a stranger", "dispatcher", "call('XCLAIM', stream, group, own, 0, unpack(ids))",
        "{}", r"which is no dispatcher", during="stranger"),
    # append
    Bug("end lost at the memory limit", "worker",
        "return call('XADD', state.begin(keys).key.ingest, 'NOMKSTREAM', '*', 'd', args[1])", "return '1-1'", r"could not be given back .* while the store was full", during="full"),
    # remove
    Bug("removed one still waits", OPERATOR, "redis.call('ZREM', K_WAITING, visitor)", "", r"tells of", during="removal"),
    Bug("removed one still counted", OPERATOR, "state.active = state.active - 1\n", "state.active = state.active - 0\n",
        r"tells of", during="removal"),
    # move
    Bug("moved one stays", OPERATOR, "redis.call('ZADD', K_WAITING, int(moved), visitor)", "",
        r"who does not wait|share number|does not wait|lanes \d and \d|expired", during="lanes"),
    # block
    Bug("block not announced", OPERATOR, "if is_changed then", "if nil        then", r"a blocked caller was let in",
        during="blocks"),
    Bug("block never ends", OPERATOR, "result = call('HDEL', blocks, this)", "result = 1",
        r"a caller was refused .* without a block", during="blocks"),
    # list_queue
    Bug("not listed", ALL, "return call('SADD', keys[1], args[1])", "return call('SREM', keys[1], args[1])",
        r"it is not listed among the queues", during="unlisted"),
    # mend
    Bug("mended without the active ones", ALL, "joined = waiting + active, admitted",
        "joined = waiting         , admitted", r"totals do not add up", during="damage"),
    # the prelude: a new incarnation of the store
    Bug("numbers used again", ALL, "int(number_after(seq, base + ahead))", "int(seq)", r"one place was given to two|a place was joined twice",
        during="tail"),
    Bug("an end is that of any place", "dispatcher", "not has_ended_since(visitor, recovery.base_ms)",
        "not has_ended_since(visitor, 0)", r"did not come back: left", during="tail"),
    # what apply and admit do in a recovery
    Bug("another generation lost", "dispatcher", "if r.generation == generation then",
        "if r.generation == state.seq then", r"did not come back", during="loss"),
    Bug("back at another place", "dispatcher", "redis.call('ZADD', K_WAITING, int(place), visitor)",
        "redis.call('ZADD',K_WAITING,int(place+9),visitor)", r"who does not wait|became another one|step \d+ tells of", during="loss"),
    # draw, and what apply does at an opening
    Bug("drawn the wrong way round", ALL, "local ids, listed = {}, {}\n    "
        "for i = 6, #args - 3, 2 do ids[#ids + 1] = args[i] end\n    state.check(c, WRITES)",
        "local ids,listed,a,n={},{},args,#args-3 args={[5]=a[5]}"
        "for i=6,n,2 do ids[i/2-2]=a[n+5-i]args[i+1]=a[n+6-i]end",
        r"stands behind one who was drawn later", during="draw"),
    Bug("not listed as drawn", ALL, "concat(listed)", "listed[1]", r"but their list has", during="draw"),
    Bug("late ones in front", "dispatcher", "state.seq = math.max(state.seq, DRAW.present.last)", "state.seq = seq - 1",
        r"given out only up to|who came after the opening stands at", during="draw"),
    # ensure
    Bug("created again", "dispatcher", "        return 0\n    end\n\n    -- The record", "    end\n\n    -- The record",
        r"created again", during="restart"),
]


def plant(bug: Bug, folder: Path, system: System) -> None:
    """Lets the programs run from copies with the bug in their scripts."""
    right, wrong = bug.right.encode(), bug.wrong.encode().ljust(len(bug.right))
    assert len(right) == len(wrong), f"{bug.name}: the wrong text is longer than the right one"
    roles = {ALL: ROLES, OPERATOR: ()}.get(bug.role, (bug.role,))
    names = {role: f"tellerline-{role}" for role in roles} if bug.role != OPERATOR else {OPERATOR: "tellerline"}
    n = 0
    folder.mkdir()
    for role, name in names.items():
        program = (BIN / name).read_bytes()
        n += program.count(right)
        (folder / name).write_bytes(program.replace(right, wrong))
        shutil.copymode(BIN / name, folder / name)
        for one in system.of(role):
            one.folder = folder
    assert n > 0, f"{bug.name}: the script has changed; plant the bug at its new place"
    if bug.role == OPERATOR:
        system.folder = folder


class Heard(NamedTuple):
    complaint: str  # of the story; '' for none
    log: str


_making = threading.Lock()


def listen(during: str, expected: str | None, prepare: Callable[[System], None]) -> Heard:
    """Tells a story to programs of its own, and returns what was complained of."""
    with _making:  # ports are given out one by one
        system = System({"door": settings_of(during)}, COUNTS, {"http": {"join_wait": "1s"}}, PLOTS[during].redis)
    complaint, logs = "", []
    try:
        prepare(system)
        system.start()
        tell(system, during, expected)
        if expected is None:
            system.finish()
    except AssertionError as error:
        complaint = str(error) or "AssertionError"
        logs = [f"---- {program.name}\n{program.tail()}" for program in system.programs]
    finally:
        system.close(keep=False)
    return Heard(complaint, "\n".join(logs))


class Stage:
    """Tells the stories of the tests that are about to run, some at a time."""

    def __init__(self, items: list[pytest.Item], folder: Path) -> None:
        self._subjects = [item.callspec.params.get("bug") or item.callspec.params["during"]
                          for item in items if item.path == Path(__file__) and hasattr(item, "callspec")]
        self._folder, self._heard = folder, dict[str, Future[Heard]]()
        self._pool = ThreadPoolExecutor(AT_ONCE)

    def hear(self, subject: Bug | str) -> Heard:
        at = self._subjects.index(subject)
        for following in self._subjects[at:at + AT_ONCE + 2]:
            self._begin(following)
        return self._heard[str(subject)].result()

    def _begin(self, subject: Bug | str) -> None:
        if str(subject) in self._heard:
            return

        def prepare(system: System) -> None:
            if isinstance(subject, Bug):
                plant(subject, self._folder / re.sub(r"\W", "-", subject.name), system)
            else:
                for pattern in (*TROUBLE, "the consumer stranger"):
                    system.expect(pattern)

        during, expected = (subject.during, subject.complaint) if isinstance(subject, Bug) else (subject, None)
        self._heard[str(subject)] = self._pool.submit(listen, during, expected, prepare)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def stage(request, tmp_path_factory) -> Iterator[Stage]:
    one = Stage(request.session.items, tmp_path_factory.mktemp("planted"))
    yield one
    one.close()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_planted_bug_is_found(stage, bug):
    heard = stage.hear(bug)
    print(f"{bug.name}: {heard.complaint[:1000]}\n{heard.log}")
    assert re.search(bug.complaint, heard.complaint), heard.complaint or "nothing is found"


@pytest.mark.parametrize("during", PLOTS)
def test_nothing_is_found_in_sound_programs(stage, during):
    heard = stage.hear(during)
    assert not heard.complaint, f"{heard.complaint}\n{heard.log}"


def test_every_script_that_writes_has_a_planted_bug():
    """A script is NAME.lua with its parts NAME.*.lua; one that only reads says so at its top."""
    without = []
    folders = ("common", *ROLES, "notifier", "ctl")
    scripts = [path for folder in folders for path in TOP.glob(f"{folder}/**/*.lua") if "." not in path.stem]
    assert len(scripts) > 20, scripts
    for script in scripts:
        texts = [path.read_text() for path in script.parent.glob(f"{script.stem}.*lua")]
        writes = "Changes nothing" not in script.read_text().replace("\n--", "") and script.stem != "prelude"
        if writes and script.stem not in EXEMPT and not any(bug.right in text for text in texts for bug in BUGS):
            without.append(script.stem)
    assert not without, f"no bug is planted in {without}"
