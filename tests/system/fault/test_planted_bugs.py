# SPDX-License-Identifier: Apache-2.0
"""The history checker and the audit complain when the library is wrong: each bug is planted into copies of the programs.

The programs carry the library as text. A bug replaces a piece of that text by another one of the same length, in all of
them: the first one loads it for all.
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
    right: str      # the text in the library
    wrong: str      # what replaces it, filled up with spaces
    complaint: str  # a pattern of what is found
    during: str = "service"  # what happens meanwhile (stories.py)


#: What writes, and no story can judge.
EXEMPT = {"history": "notes numbers for graphs: test_history (component); and drops old records: test_forget",
          "look": "finds what webhooks are told of, which no visitor sees; test_webhooks judges it",
          "recover": "begins or ends a recovery when an operator says so: test_apply_restore, test_changes",
          "told": "moves the cursors of webhooks; what is told, again or not at all: test_webhooks",
          "forget": "erases one visitor who is not in the line any more: test_forget",
          "webhook_test": "writes an entry for a webhook that an operator tries: test_webhooks",
          "delete": "takes everything away, and what stays away: test_control_queues, test_roster",
          "idempotent": "keeps answers to calls, which no visitor sees: test_control_queues",
          "visitors": "moves by visitor.move and ends by visitor.drop and visitor.revoke, where bugs are planted; the rest: "
                      "test_ctl_move, test_ctl_remove, test_control_visitors",
          "changes": "writes the record of changes, for people: test_changes",
          "journal": "writes what webhooks are told: test_webhooks",
          "record": "writes what the archive is told: test_archive",
          "invites": "marks what is spent: test_apply_invite",
          "tokens": "changes no line; what it writes and refuses: test_changes (component), test_changes.py"}

#: At least one for each thing that the checker decides, and for each script that changes the line.
BUGS = [
    # apply
    Bug("join lost",
        "    if c.joining then settle_joining(c) end\n",
        "    c.joining = nil\n",
        r"join: no ticket|never joined the line|of place \d+.*expired"),
    Bug("place given twice",
        "state.set(c, 'seq', c.seq + n)",
        "state.set(c, 'seq', c.seq + 0)",
        r"one place was given to two"),
    Bug("another place than the one told",
        "lane * LANE + c.seq + 1\n",
        "lane*LANE + c.seq + 99\n",
        r"status of place \d+.*(expired|unknown)"),
    Bug("joins not announced",
        "state.tell(c, EVENT.joined, 0, { span.first, span.n })",
        "",
        r"lack their beginning|tells of|no ticket|was asked for"),
    Bug("batch applied twice",
        "(text.parse_batch(c[one.field]) or -1) >= one.batch then",
        "(text.parse_batch(c[one.field]) or -1) >= 9e15 then",
        r"places for \d+ acknowledged|still wait", during="repeats"),
    Bug("extended again and again",
        "local deadline = session.admitted + min(2 * s.claim_ttl",
        "local deadline = c.now + min(2 * s.claim_ttl",
        r"extends place \d+ twice|may claim for", during="extension"),
    Bug("leaver counted nowhere",
        "state.count(c, totals[i], n)",
        "state.count(c, totals[i], 0)",
        r"totals do not add up", during="leaving"),
    Bug("leaver still counted",
        "        c.waiting = c.waiting - n\n    else",
        "        c.waiting = c.waiting - 0\n    else",
        r"tells of", during="leaving"),
    Bug("session not closed",
        "call('ZREM', c.key.active, unpack(ids))",
        "",
        r"never came to an end|still active|tells of"),
    Bug("claim shortens",
        "        or session.admitted + s.session_ttl\n",
        "        or session.admitted + 1\n",
        r"(status|complete) of place \d+.*(expired|unclaimed|409|410)"),
    Bug("presence not recorded",
        "local from, past = first, min(first + min(count, c.joined), c.seq + 1)",
        "local from, past = first, first",
        r"status of place \d+.*(expired|absent)", during="pause"),
    # admit
    Bug("one too many",
        "return c.active < capacity and capacity - c.active or 0",
        "return max(9, capacity - c.active)",
        r"more active than the capacity|knew themselves active"),
    Bug("last first",
        "call('ZPOPMIN', key.waiting)",
        "call('ZPOPMAX', key.waiting)",
        r"was admitted after|still waited"),
    Bug("neighbour told",
        "EVENT.admitted, { place, 1 }, deadline",
        "EVENT.admitted, { place+1,1}, deadline",
        r"complete of place \d+.*Not admitted|does not wait|never admitted"),
    Bug("budget not spent",
        "b.used, b.last = b.used + n, now",
        "b.used, b.last = b.used + 0, now",
        r"were admitted within 1000 ms.*the rate allows 5", during="rate"),
    Bug("late admissions not made up for",
        "b.from + b.rule.every + b.late, 0, 0",
        "b.from + b.rule.every / 4, 0, 0",
        r"were admitted within 1000 ms.*the rate allows 5", during="rate"),
    Bug("one lane served for ever",
        "share[turn] + 1, at + stride[turn]",
        "share[turn] + 1, at",
        r"did not get their shares", during="lanes"),
    Bug("more called than overbooked",
        "return max(0, min(more, capacity + most - c.active))",
        "return max(0, more + 9)", r"more active than the capacity", during="overbook"),
    Bug("next turns in the wrong order",
        "call('ZPOPMIN', c.key.held)[1]",
        "call('ZPOPMAX', c.key.held)[1]", r"had the next turn", during="overbook"),
    Bug("more let in than fit",
        "if not is_held and o.capacity - (c.active - o.n) - o.held > 0",
        "if not is_held and 1+o.capacity-(c.active-o.n)-o.held > 0",
        r"have claimed, the capacity is|the gate had let in",
        during="overbook"),
    Bug("mode not obeyed",
        "closed = s.mode ~= 'open' and s.mode ~= 'draining' or c.now",
        "closed = c.now",
        r"was admitted while the queue was paused", during="pause"),
    # adapt
    Bug("cut again at once",
        "if c.now < a.cut + s['adaptive.hold'] or newest <= a.cut then return",
        "if c.now < a.cut then return", r"was cut to 2, and a moment later to 1", during="overload"),
    # a hand-over
    Bug("a place for every device",
        "    known = tonumber(known) or 0\n    if device",
        "    known = 0\n    if device",
        r"went to two devices",
        during="handover"),
    Bug("hand-over told to nobody",
        "state.event_later(c, EVENT.handed, held, serial)",
        "",
        r"no event told that place \d+ went|that gave it away (was told waiting|got a pass)", during="handover"),
    Bug("next one handed over",
        "EVENT.handed, held, serial",
        "EVENT.handed,held+1,serial",
        r'was refused a code|no event told that place \d+ went|which does not wait|"status":"moved"', during="handover"),
    # expire
    Bug("ended before its time",
        "    if deadline and deadline <= c.now then\n        local last\n        last, again = ends_until(c)\n",
        "    if deadline then\n        local last = 2^52\n",
        r"before the time that its visitor was told|(status|complete) of place \d+.*(expired|unclaimed|409|410)",
        during="desertion"),
    Bug("ended before its claim is applied",
        "return max(oldest - 1, now - UNAPPLIED_MOST_MS), now + again",
        "return now, now",
        r"although an entry was not applied", during="backlog"),
    Bug("ended before workers have told",
        "return -1, began + RETURN_MS",
        "return now, now",
        r"ms after the store was there again", during="reboot"),
    Bug("remembered end not obeyed",
        "if till > 0 and till > tonumber(call('ZSCORE', c.key.active, id)) then",
        "if nil then",
        r"before the time that its visitor was told", during="rewound"),
    Bug("remembered end not kept",
        "if c.base_ms == 0 or event <= c.found_event then return end",
        "do return end",
        r"before the time that its visitor was told", during="rewound"),
    Bug("ends not announced",
        "finish(c, EVENT.freed, reason or REASON.expired, came, came_at)",
        "finish(c, EVENT.freed, reason or REASON.expired, came, {})",
        r"tells of", during="desertion"),
    # absent
    Bug("absent one still counted",
        "        c.waiting = c.waiting - n\n    else",
        "        c.waiting = c.waiting - 0\n    else",
        r"tells of|totals do not add up", during="absence"),
    Bug("another one dropped",
        "call('ZRANGE', c.key.waiting, args[i], args[i], 'BYSCORE')[1]",
        "call('ZRANGE', c.key.waiting, 0, 0)[1]",
        r"(status|join again) of place \d+.*expired", during="absence"),
    # configure
    Bug("setting not written",
        "call('HSET', c.key.config, 'changed', text.int(max(state.now_us(), changed + 1)), unpack(texts))", "",
        r"was admitted while the queue was paused", during="pause"),
    Bug("setting told to nobody",
        "unpack(texts))\n    state.commit_config(c)",
        "unpack(texts))\n    state.commit(c)", r"no event told that mode is paused", during="pause"),
    # lease
    Bug("fence not counted",
        "c.fence or state.next_fence(c)", "c.fence or c.fence",
        r"held the lease with the same fence", during="restart"),
    # poison
    Bug("poison stays",
        "call('XACK', c.key.ingest, defs.INGEST_GROUP, args[2]) == 0",
        "call('XLEN', c.key.ingest) == 0", r"set aside as poison|no answer to|but not applied", during="poison"),
    Bug("poison not kept",
        "call('XADD', c.key.poison, 'MAXLEN', 100, '*', 'entry', args[2], 'why', args[3], 'd', args[4])", "",
        r"0 entries were set aside as poison", during="poison"),
    # claim
    Bug("entries left to a stranger",
        "call('XAUTOCLAIM', stream, group, own, 0, '-', 'COUNT', args[1], 'JUSTID')",
        "{ '', {}, {} }", r"which is no dispatcher", during="stranger"),
    # append
    Bug("end lost at the memory limit",
        "return call('XADD', state.begin(keys).key.ingest, 'NOMKSTREAM', '*', 'd', args[1])", "return '1-1'",
        r"could not be given back .* while the store was full", during="full"),
    # remove
    Bug("removed one still waits",
        "call('ZREM', c.key.waiting, unpack(ids))",
        "",
        r"tells of", during="removal"),
    Bug("removed one still counted",
        "        c.active = c.active - n\n",
        "        c.active = c.active - 0\n",
        r"tells of", during="removal"),
    # move
    Bug("moved one stays",
        "call('ZADD', c.key.waiting, 'XX', int(moved), id)",
        "",
        r"who does not wait|share number|does not wait|lanes \d and \d|expired", during="lanes"),
    # block
    Bug("block not announced",
        "if is_changed then", "if nil        then", r"a blocked caller was let in",
        during="blocks"),
    Bug("block never ends",
        "result = call('HDEL', blocks, this)", "result = 1",
        r"a caller was refused .* without a block", during="blocks"),
    # list_queue
    Bug("not listed",
        "return call('SADD', keys[1], args[1])", "return call('SREM', keys[1], args[1])",
        r"it is not listed among the queues", during="unlisted"),
    # mend
    Bug("mended without the active ones",
        "n.joined or n.waiting + n.active + n.left",
        "n.joined or n.waiting + 0 + n.left", r"totals do not add up", during="damage"),
    # state: a new incarnation of the store
    Bug("numbers used again",
        "int(number_after(seq, base + draw.seqs_ahead(c, found[4])))",
        "int(seq)",
        r"one place was given to two|a place was joined twice",
        during="tail"),
    Bug("an end is that of any place",
        "not has_ended_since(c, id, c.found_seq > 0 and c.base_ms or 0)",
        "not has_ended_since(c, id, 0)",
        r"did not come back: left", during="tail"),
    # what apply and admit do in a recovery
    Bug("another generation lost",
        "if c.lost_generation == generation then return",
        "if c.lost_generation == c.seq then return",
        r"did not come back", during="loss"),
    Bug("back at another place",
        "call('ZADD', c.key.waiting, int(place), id)",
        "call('ZADD',c.key.waiting,int(place+9),id)",
        r"who does not wait|became another one|step \d+ tells of|more visitors join", during="loss"),
    # draw, and what apply does at an opening
    Bug("drawn the wrong way round",
        "local ids, listed = {}, {}\n    "
        "for i = 6, #args - 3, 2 do ids[#ids + 1] = args[i] end\n    state.check(c, WRITES)",
        "local ids,listed,a,n={},{},args,#args-3 args={[5]=a[5]}"
        "for i=6,n,2 do ids[i/2-2]=a[n+5-i]args[i+1]=a[n+6-i]end",
        r"stands behind one who was drawn later", during="draw"),
    Bug("not listed as drawn",
        "concat(listed)", "listed[1]", r"but their list has", during="draw"),
    Bug("late ones in front",
        "state.set(c, 'seq', max(c.seq, last))",
        "state.set(c, 'seq', c.seq - 1)",
        r"given out only up to|who came after the opening stands at", during="draw"),
    # ensure
    Bug("created again",
        "        return 0\n    end\n\n    -- The record", "    end\n\n    -- The record",
        r"created again", during="restart"),
]


def plant(bug: Bug, folder: Path, system: System) -> None:
    """Lets the programs run from copies with the bug in the library."""
    right, wrong = bug.right.encode(), bug.wrong.encode().ljust(len(bug.right))
    assert len(right) == len(wrong), f"{bug.name}: the wrong text is longer than the right one"
    folder.mkdir()
    for name in (*(f"tellerline-{role}" for role in ROLES), "tellerline"):
        program = (BIN / name).read_bytes()
        assert right in program, f"{bug.name}: the library has changed; plant the bug at its new place"
        (folder / name).write_bytes(program.replace(right, wrong))
        shutil.copymode(BIN / name, folder / name)
    for role in ROLES:
        for one in system.of(role):
            one.folder = folder
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


def test_every_file_that_writes_has_a_planted_bug():
    """A function that only reads says so at its top."""
    without = []
    paths = [path for folder in ("common", *ROLES, "notifier", "ctl") for path in sorted(TOP.glob(f"{folder}/**/*.lua"))]
    assert len(paths) > 40, paths
    for path in paths:
        text = path.read_text()
        reads = path.parent.name == "line" and not re.search(r"call\('(?:[HSZ]?SET|[XZ]ADD|[ZHX]DEL|ZREM|ZPOP|UNLINK)", text)
        if "Changes nothing" not in text.replace("\n--", "") and not reads and path.stem not in EXEMPT \
                and not any(bug.right in text for bug in BUGS):
            without.append(str(path.relative_to(TOP)))
    assert not without, f"no bug is planted in {without}"
