# SPDX-License-Identifier: Apache-2.0
"""`tellerline report`: what the archive says of a sale, against figures that are counted here."""
from __future__ import annotations

import csv
import html.parser
import io
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest

from admin import Admin, admin_file
from postgres_server import PostgresServer
from tellerline import BIN, run
from waiting import PATIENCE, wait_until

BEGAN = datetime(2026, 12, 1, 11, 0, tzinfo=timezone.utc)
#: One joins each second; the first 90 are admitted after 1, 2, 3, ... seconds, the last ten give up.
ADMITTED, GAVE_UP = 90, 10


class Sale:
    """A sale, and the rows that the archive has of it."""

    def __init__(self) -> None:
        self.joined = [BEGAN + timedelta(seconds=i) for i in range(ADMITTED + GAVE_UP)]
        self.admitted = [self.joined[i] + timedelta(seconds=i + 1) for i in range(ADMITTED)]
        # 70 complete, ten are no-shows, ten are still in.
        self.ended = [at + timedelta(seconds=30 if i < 70 else 10) for i, at in enumerate(self.admitted[:80])]
        self.left = [at + timedelta(seconds=200) for at in self.joined[ADMITTED:]]

    def rows(self, generation: int) -> str:
        def row(i: int) -> str:
            status = ("completed" if i < 70 else "unclaimed" if i < 80 else "active" if i < ADMITTED else
                      "left" if i % 2 else "absent")
            admitted = f"'{self.admitted[i]}'" if i < ADMITTED else "NULL"
            ended = f"'{self.ended[i]}'" if i < 80 else f"'{self.left[i - ADMITTED]}'" if i >= ADMITTED else "NULL"
            return f"({generation}, {i + 1}, 0, '{status}', '{self.joined[i]}', {admitted}, {ended}, {i + 1})"
        return ("INSERT INTO queue_entries (generation_id, seq, lane, status, joined_at, admitted_at, ended_at, event) VALUES "
                + ", ".join(map(row, range(ADMITTED + GAVE_UP))) + ";")

    def minute(self, i: int) -> dict[str, int]:
        """The numbers of the i-th minute."""
        first, end = BEGAN + timedelta(minutes=i), BEGAN + timedelta(minutes=i + 1)

        def within(times: list[datetime]) -> int:
            return sum(first <= at < end for at in times)

        def before(times: list[datetime]) -> int:
            return sum(at < end for at in times)

        return {"arrived": within(self.joined), "admitted": within(self.admitted), "gave_up": within(self.left),
                "no_shows": within(self.ended[70:]),
                "waiting": before(self.joined) - before(self.admitted) - before(self.left),
                "active": before(self.admitted) - before(self.ended)}


@pytest.fixture(name="postgres", scope="module")
def a_postgres_with_two_sales():
    """Of the queue "sale", which was created again between them; and the changes of the second."""
    server = PostgresServer()
    server.start()
    done = run(BIN / "tellerline", "db", "migrate", env={"TELLERLINE_ARCHIVE_URL": server.url})
    assert done.returncode == 0, done.stderr
    server.sql(f"""SELECT open_generation('sale', 1), open_generation('sale', 2), open_generation('other', 3);
        UPDATE queue_generations SET last_at = '{BEGAN}'::timestamptz + interval '300 s';
        UPDATE queue_generations SET last_at = '2026-06-01T00:01:00Z', deleted_at = '2026-06-01T00:02:00Z' WHERE generation_id = 1;
        INSERT INTO queue_entries (generation_id, seq, lane, status, joined_at, ended_at, event)
            VALUES (1, 1, 0, 'left', '2026-06-01T00:00:00Z', '2026-06-01T00:00:10Z', 1), (3, 1, 0, 'waiting', '{BEGAN}', NULL, 1);
        {Sale().rows(2)}
        INSERT INTO queue_gaps VALUES (2, 5, 'backlog', '{BEGAN}', '{BEGAN}'::timestamptz + interval '9 s', 7);
        INSERT INTO queue_changes SELECT queue_id, '{BEGAN}'::timestamptz + interval '1 s' * s, s + 9999, 0, 'kim', 'cli', what,
            before::jsonb, after::jsonb FROM queues, (VALUES
            (-9, 'create', '{{}}', '{{"capacity": "40"}}'),
            (70, 'set', '{{"capacity": "40", "session_ttl": "60000"}}', '{{"capacity": "80", "session_ttl": "300000"}}'),
            (80, 'notice', '{{"notice": ""}}', '{{"notice": "<b>soon & \u00e4</b>{" later" * 80}"}}'),
            (9000, 'mode', '{{"mode": "open"}}', '{{"mode": "closed"}}')) AS c (s, what, before, after) WHERE name = 'sale'""")
    yield server
    server.remove()


def report(postgres, *words: str, status: int = 0) -> str:
    done = run(BIN / "tellerline", "report", *words, env={"TELLERLINE_ARCHIVE_URL": postgres.url, "TZ": "UTC"})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


def test_figures(postgres):
    """Of the newest generation: the totals, the waits, each minute, the capacity, and the changes meanwhile."""
    said, sale = json.loads(report(postgres, "sale", "--format", "json")), Sale()
    assert said["totals"] == {"arrived": 100, "admitted": 90, "gave_up": 10, "no_shows": 10, "completed": 70, "left": 0,
                              "expired": 0, "removed": 0, "unknown": 0, "waiting": 0, "active": 10}
    assert said["waits"] == {"p50_ms": 45000, "p90_ms": 81000, "p99_ms": 90000, "longest_ms": 90000}
    assert said["step_seconds"] == 60 and len(said["steps"]) == 6
    for i, step in enumerate(said["steps"]):
        assert {name: step[name] for name in sale.minute(i)} == sale.minute(i), i
    assert [step["capacity"] for step in said["steps"]] == [40, 80, 80, 80, 80, 80]
    busy = [step for step in said["steps"] if step["waiting"] > 0]
    assert said["capacity"]["used_while_waiting"] == pytest.approx(
        sum(step["active"] for step in busy) / sum(step["capacity"] for step in busy), abs=0.001)
    # The first minute admits after 1 to 30 s.
    assert [said["steps"][0][name] for name in ("p50_ms", "p90_ms", "p99_ms")] == [15000, 27000, 30000]
    assert [change["what"] for change in said["changes"]] == ["set", "notice"]
    assert said["changes"][0]["after"] == {"capacity": "80", "session_ttl": "5m"}
    assert [(gap["reason"], gap["missing"]) for gap in said["gaps"]] == [("backlog", 7)]


def test_all_forms_say_the_same(postgres):
    said = json.loads(report(postgres, "sale", "--format", "json"))
    steps = list(csv.DictReader(io.StringIO(report(postgres, "sale", "--format", "csv"))))
    assert [{name: text or None for name, text in step.items()} for step in steps] \
        == [{name: None if value is None else str(value) for name, value in step.items()} for step in said["steps"]]
    text = report(postgres, "sale")
    for sentence in ("Arrived 100: admitted 90, gave up 10, still waiting 0.",
                     "Of those admitted: completed 70, left 0, ran out of time 0, did not come 10, still in 10.",
                     "half up to 45 s, 90 % up to 81 s, 99 % up to 90 s", "capacity 40 -> 80, session_ttl 1m -> 5m",
                     "The record has a gap from 2026-12-01T11:00:00Z to 2026-12-01T11:00:09Z"):
        assert sentence in text, text
    marks = next(line for line in text.splitlines() if "    Changes " in line)
    assert "1" in marks and "2" in marks, marks


class Page(html.parser.HTMLParser):
    """What is in a page: its tags, and its rows of cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.rows.append([])

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.rstrip("\n")


def test_page(postgres):
    """It has all of it, escaped, and takes nothing from elsewhere."""
    page = Page(report(postgres, "sale", "--format", "html"))
    assert not {"script", "link", "img", "b"} & {tag for tag, _ in page.tags}
    assert not [attributes for _, attributes in page.tags if {"src", "href"} & set(attributes)]
    assert sum(attributes.get("class") == "mark" for _, attributes in page.tags) == 2
    assert ["2", "2026-12-01T11:01:20Z", "kim", "notice", f'notice "" -> "<b>soon & \u00e4</b>{" later" * 80}"'] in page.rows, page.rows[1:4]
    first = Sale().minute(0)
    assert ["2026-12-01T11:00:00Z", *map(str, first.values()), "40", "15 s", "27 s", "30 s"] in page.rows, page.rows[1:4]


def test_times_and_mistakes(postgres):
    """--since and --until choose who came, in all generations. What is not there is said."""
    early = json.loads(report(postgres, "sale", "--since", "2026-05-01T00:00:00Z", "--until", "2026-12-01T11:00:10Z",
                              "--format", "json"))
    assert (early["totals"]["arrived"], early["step_seconds"]) == (1 + 10, 86400)
    assert "no visitors of queue sale in this time" in report(postgres, "sale", "--until", "2026-05-01T00:00:00Z", status=1)
    assert 'did you mean queue "sale"?' in report(postgres, "sael", status=1)
    assert "--since" in report(postgres, "sale", "--since", "noon", status=2)
    assert "behind @ comes the number of a sale" in report(postgres, "sale@june", status=2)
    assert "no visitors of queue sale" in report(postgres, "sale@7", status=1)
    assert "no visitors of queue sael" in report(postgres, "sale", "--with", "sael", status=1)
    assert "without --since" in report(postgres, "sale", "--with", "other", "--since", "2026-05-01T00:00:00Z", status=2)
    assert "--sales lists all" in report(postgres, "sale", "--sales", "--format", "csv", status=2)
    done = run(BIN / "tellerline", "report", "sale", "--data", "/nowhere")
    assert done.returncode == 2 and "archive.url is not set, and no `tellerline up --archive` runs" in done.stderr
    empty = postgres.url.replace("/postgres?", "/template1?")
    assert "run `tellerline db migrate`" in run(BIN / "tellerline", "report", "sale", env={"TELLERLINE_ARCHIVE_URL": empty}).stderr


def test_sales_and_lanes(postgres):
    """The sales of a queue are listed, and each has a report; with its lanes, named as they were last."""
    listed = json.loads(report(postgres, "sale", "--sales", "--format", "json"))
    assert [(sale["sale"], sale["arrived"], sale["admitted"], sale["gave_up"], sale["no_shows"], sale["p90_ms"])
            for sale in listed["sales"]] == [(2, 100, 90, 10, 10, 81000), (1, 1, 0, 1, 0, None)]
    assert not listed["has_more"]
    first, second = report(postgres, "sale", "--sales").splitlines()[1:]
    assert first.split()[0] == "2" and second.split()[0] == "1", (first, second)
    old = json.loads(report(postgres, "sale@1", "--format", "json"))
    assert (old["sale"], old["totals"]["arrived"], old["from"][:10]) == (1, 1, "2026-06-01")
    new = json.loads(report(postgres, "sale@2", "--format", "json"))
    assert (new["sale"], new["opened"][:16]) == (2, "2026-12-01T11:00")
    assert [(lane["lane"], lane["arrived"], lane["p50_ms"]) for lane in new["lanes"]] == [("0", 100, 45000)]
    postgres.sql("""SELECT open_generation('lanes', 5); UPDATE queue_generations SET last_at = '2026-06-01T00:00:00Z' WHERE generation = 5;
        INSERT INTO queue_changes SELECT queue_id, '2026-05-31T00:00:00Z', 1, 0, 'kim', 'cli', 'create', '{}', '{"lanes": "vip,normal"}'
            FROM queues WHERE name = 'lanes';
        INSERT INTO queue_entries (generation_id, seq, lane, status, joined_at, admitted_at, ended_at, event)
            SELECT generation_id, i, i % 2, 'completed', '2026-06-01T00:00:00Z', '2026-06-01T00:00:00Z'::timestamptz
            + interval '1 s' * CASE WHEN i % 2 = 0 THEN 7 ELSE 60 END, '2026-06-01T00:10:00Z', i
            FROM queue_generations, generate_series(1, 9) AS i WHERE generation = 5""")
    assert [(lane["lane"], lane["arrived"], lane["admitted"], lane["p50_ms"], lane["p99_ms"]) for lane in
            json.loads(report(postgres, "lanes", "--format", "json"))["lanes"]] == [("vip", 4, 4, 7000, 7000), ("normal", 5, 5, 60000, 60000)]
    rows = [line.split() for line in report(postgres, "lanes").splitlines()]
    assert ["vip", "4", "4", "0", "0", "7", "s", "7", "s", "7", "s"] in rows
    assert ["vip", "4", "4", "0", "0", "7 s", "7 s", "7 s"] in Page(report(postgres, "lanes", "--format", "html")).rows


def test_a_line_that_was_lost_is_one_sale(postgres):
    """Who came back after the loss is one visitor, with the whole wait; who did not is not waiting still. Also with --since."""
    made = BEGAN + timedelta(minutes=10)
    first, second = (int(at.timestamp() * 1000000) for at in (BEGAN, made))
    postgres.sql(f"""SELECT open_generation('twice', {first}), open_generation('twice', {second});
        UPDATE queue_generations SET last_at = '{BEGAN}'::timestamptz + interval '1 min' * CASE generation WHEN {first} THEN 9 ELSE 30 END
            WHERE generation IN ({first}, {second});
        INSERT INTO queue_entries (generation_id, seq, lane, status, joined_at, restored_at, admitted_at, deadline, ended_at, event)
            SELECT generation_id, seq, 0, status::entry_status, '{BEGAN}'::timestamptz + interval '1 min' * joined,
                '{BEGAN}'::timestamptz + interval '1 min' * restored, '{BEGAN}'::timestamptz + interval '1 min' * admitted,
                '{BEGAN}'::timestamptz + interval '1 min' * (admitted + 5), '{BEGAN}'::timestamptz + interval '1 min' * ended, seq
            FROM queue_generations JOIN (VALUES
                ({first}, 1, 'completed', 0, NULL, 1, 2), ({first}, 2, 'active', 0, NULL, 8, NULL), ({first}, 3, 'waiting', 1, NULL, NULL, NULL),
                ({first}, 4, 'waiting', 1, NULL, NULL, NULL), ({second}, 2, 'completed', NULL, 11, NULL, 13),
                ({second}, 3, 'completed', NULL, 12, 21, 22), ({second}, 1000, 'waiting', 15, NULL, NULL, NULL)
            ) AS e (generation, seq, status, joined, restored, admitted, ended) USING (generation)""")
    for words in ((), (f"--since={BEGAN.isoformat()}",)):
        said = json.loads(report(postgres, "twice", *words, "--format", "json"))
        assert said["totals"] == {"arrived": 5, "admitted": 3, "gave_up": 0, "no_shows": 0, "completed": 3, "left": 0, "expired": 0,
                                  "removed": 0, "unknown": 1, "waiting": 1, "active": 0}, words
        assert said["waits"] == {"p50_ms": 8 * 60000, "p90_ms": 20 * 60000, "p99_ms": 20 * 60000, "longest_ms": 20 * 60000}
        assert said["sale"] == first and [step["waiting"] for step in said["steps"]][2::6] == [3, 2, 1, 2, 1]
    # Who came back after the loss came before it.
    late = json.loads(report(postgres, "twice", f"--since={(made + timedelta(seconds=1)).isoformat()}", "--format", "json"))
    assert late["totals"]["arrived"] == 1, late["totals"]
    assert "What became of them is not known: 1." in report(postgres, "twice")
    assert [sale["sale"] for sale in json.loads(report(postgres, "twice", "--sales", "--format", "json"))["sales"]] == [first]
    assert json.loads(report(postgres, f"twice@{second}", "--format", "json"))["sale"] == first
    # After more than an hour it is another sale, unless an operator brought the line back.
    postgres.sql(f"UPDATE queue_generations SET last_at = last_at - interval '2 hours' WHERE generation = {first}")
    assert json.loads(report(postgres, "twice", "--format", "json"))["sale"] == second
    postgres.sql(f"INSERT INTO queue_gaps SELECT generation_id, 0, 'lost', '{BEGAN}', '{made}', 0 FROM queue_generations "
                 f"WHERE generation = {second}")
    assert json.loads(report(postgres, "twice", "--format", "json"))["sale"] == first


def test_history(postgres):
    """The capacity that was in force, and what came true of the waits told, are those of the history."""
    points = [(-20, 0, 0, 50, 90, 9, 1), (0, 10, 40, 50, 100, 10, 2), (1, 20, 50, 50, 140, 12, 2), (3, 5, 20, 40, 180, 20, 2),
              (4, 0, 10, 40, 20, 4, 0)]
    postgres.sql(f"""SELECT open_generation('told', 7); UPDATE queue_generations SET last_at = '{BEGAN}' WHERE generation = 7;
        INSERT INTO queue_entries (generation_id, seq, lane, status, joined_at, admitted_at, ended_at, event) SELECT generation_id, 1, 0,
            'completed', '{BEGAN}', '{BEGAN}', '{BEGAN}'::timestamptz + interval '4 min', 1 FROM queue_generations WHERE generation = 7;
        INSERT INTO queue_stats SELECT queue_id, '{BEGAN}'::timestamptz + interval '1 min' * m, 'open', waiting, active, capacity,
            jsonb_build_object('eta_judged', judged, 'eta_early', early, 'eta_late', late, 'eta_error', judged * 7)
            FROM queues, (VALUES {", ".join(map(str, points))}) AS p (m, waiting, active, capacity, judged, early, late) WHERE name = 'told'""")
    said = json.loads(report(postgres, "told", "--format", "json"))
    # 10, 40, 40 and, after it began again, 20; the waits of one minute, two minutes and one.
    assert said["estimates"] == {"judged": 110, "early": 1 + 2 + 8 + 4, "late": 1, "inside_percent": 85.5, "error_percent": 7.0}
    assert said["capacity"] == {"used_while_waiting": round((40 + 2 * 50 + 20) / (50 + 2 * 50 + 40), 3),
                                "free_while_waiting": round((10 + 0 + 20) / 4, 1), "waiting_seconds": 240}
    assert [step["capacity"] for step in said["steps"]] == [50, 50, 50, 40, 40]
    text = report(postgres, "told")
    assert "Waits that were told, and came true: 110. Within the range 86 %, before it 15, after it 1; off by 7 % on average." in text, text
    assert "Capacity used while people waited (4 min): 84 %; on average 7.5 places were free." in text, text


@pytest.mark.parametrize("queue, created_min, judged", [("later", -1000, 10), ("soon", -1, 1010)])
def test_before_the_first_point_and_before_the_opening(postgres, queue, created_min, judged):
    """What was judged before the history begins is not of this sale, if the queue is older. Places are free from the opening on."""
    generation = int((BEGAN + timedelta(minutes=created_min)).timestamp() * 1e6)
    points = [(0, 10, 0, 1000), (1, 10, 0, 1000), (2, 10, 40, 1010), (3, 5, 50, 1010)]
    postgres.sql(f"""SELECT open_generation('{queue}', {generation});
        UPDATE queue_generations SET last_at = '{BEGAN}' WHERE generation = {generation};
        INSERT INTO queue_entries (generation_id, seq, lane, status, joined_at, admitted_at, ended_at, event)
            SELECT generation_id, 1, 0, 'completed', '{BEGAN}', '{BEGAN}'::timestamptz + interval '2 min',
                '{BEGAN}'::timestamptz + interval '4 min', 1 FROM queue_generations WHERE generation = {generation};
        INSERT INTO queue_stats SELECT queue_id, '{BEGAN}'::timestamptz + interval '1 min' * m, 'open', waiting, active, 50,
            jsonb_build_object('eta_judged', judged)
            FROM queues, (VALUES {", ".join(map(str, points))}) AS p (m, waiting, active, judged) WHERE name = '{queue}'""")
    said = json.loads(report(postgres, queue, "--format", "json"))
    assert said["estimates"]["judged"] == judged
    assert said["capacity"] == {"used_while_waiting": 0.9, "free_while_waiting": 5.0, "waiting_seconds": 120}


def test_two_months_of_history(postgres):
    """A queue that was open for 60 days, with a point each minute, has a report within the time limit of a statement."""
    postgres.sql(f"""SELECT open_generation('long', 11); UPDATE queue_generations SET last_at = '{BEGAN}'::timestamptz + interval '60 days'
            WHERE generation = 11;
        INSERT INTO queue_entries (generation_id, seq, lane, status, joined_at, admitted_at, ended_at, event) SELECT generation_id, i, 0,
            'completed', '{BEGAN}'::timestamptz + interval '1 day' * i, '{BEGAN}'::timestamptz + interval '1 day' * i,
            '{BEGAN}'::timestamptz + interval '1 day' * i, i + 1 FROM queue_generations, generate_series(0, 60) AS i WHERE generation = 11;
        INSERT INTO queue_stats SELECT queue_id, '{BEGAN}'::timestamptz + interval '1 min' * m, 'open', 5, 40, 50 + m / 43200,
            jsonb_build_object('eta_judged', m, 'eta_early', 0, 'eta_late', m / 2, 'eta_error', m)
            FROM queues, generate_series(0, 86400) AS m WHERE name = 'long'""")
    said = json.loads(report(postgres, "long", "--format", "json"))
    assert (said["step_seconds"], len(said["steps"]), said["totals"]["arrived"]) == (3600, 60 * 24 + 1, 61)
    # The capacity of a step is that of its last minute.
    assert [step["capacity"] for step in said["steps"]] == [50] * 720 + [51] * 720 + [52]
    assert said["estimates"] == {"judged": 86400, "early": 0, "late": 43200, "inside_percent": 50.0, "error_percent": 1.0}
    assert said["capacity"]["waiting_seconds"] == 86400 * 60, said["capacity"]


def test_two_sales(postgres):
    """Both are beside each other, each from its opening on."""
    postgres.sql(f"""SELECT open_generation('early', 9); UPDATE queue_generations SET last_at = '2026-03-01T09:30:00Z' WHERE generation = 9;
        INSERT INTO queue_entries (generation_id, seq, lane, status, joined_at, admitted_at, ended_at, event) SELECT generation_id, i, 0,
            'completed', '2026-03-01T09:00:00Z', '2026-03-01T09:10:00Z'::timestamptz + interval '1 min' * i, '2026-03-01T09:30:00Z', i
            FROM queue_generations, generate_series(0, 4) AS i WHERE generation = 9""")
    both = json.loads(report(postgres, "sale", "--with", "early@9", "--format", "json"))
    assert [one["totals"]["arrived"] for one in both["sales"]] == [100, 5]
    text = report(postgres, "sale", "--with", "early")
    assert ["Wait:", "90", "%", "81", "s", "14", "min"] in [line.split() for line in text.splitlines()], text
    assert text.count("-10 min") == 4 and max(map(len, text.splitlines())) <= 80, text
    steps = list(csv.DictReader(io.StringIO(report(postgres, "sale", "--with", "early", "--format", "csv"))))
    assert [(step["sale"], step["after_seconds"]) for step in (steps[0], steps[6], steps[16])] \
        == [("sale 2026-12-01", "0"), ("early 2026-03-01", "-600"), ("early 2026-03-01", "0")]
    page = Page(report(postgres, "sale", "--with", "early", "--format", "html"))
    assert ["Longest wait", "90 s", "14 min"] in page.rows
    assert sum(attributes.get("class") == "other" for _, attributes in page.tags) == 3


def test_admin_api(start, postgres):
    """The dashboard gets the same, one report at a time; and hears why there is none."""
    worker = start({}, prepare=admin_file, settings={"archive": {"url": postgres.url}}).of("worker")[0]
    desk = Admin(worker)
    assert desk.done("GET", "queues/sale/reports") == json.loads(report(postgres, "sale", "--sales", "--format", "json"))
    assert desk.done("GET", "queues/sale/reports/2") == json.loads(report(postgres, "sale", "--format", "json"))
    answer = desk.call("GET", "queues/sale/reports/2?format=html")
    assert answer.body.decode() == report(postgres, "sale", "--format", "html")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'; style-src 'unsafe-inline'" in answer.headers["content-security-policy"]
    both = desk.call("GET", "queues/sale/reports/2?format=html&with=1").body.decode()
    assert both == report(postgres, "sale@2", "--with", "sale@1", "--format", "html")
    for path, status in (("/3", 404), ("/x", 404), ("/2?format=csv", 400), ("/2?with=1", 400), ("/2?a=1", 400), ("?format=html", 400)):
        desk.call("GET", f"queues/sale/reports{path}").problem(status)
    with postgres.session("LOCK TABLE queues IN ACCESS EXCLUSIVE MODE"), ThreadPoolExecutor() as pool:
        # A slow report keeps nobody from the list.
        others, paths = (Admin(worker), Admin(worker)), ("queues/sale/reports/2", "queues/sale/reports")
        slow = [pool.submit(other.call, "GET", path) for other, path in zip(others, paths)]
        wait_until(lambda: postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == "2", PATIENCE, "they wait")
        for path in paths:
            assert desk.call("GET", path).problem(503)["type"] == "/problems/busy"
        postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        for i, other in enumerate(others):
            assert slow[i].result().problem(503)["type"] == "/problems/store-unavailable"
            other.close()
    desk.close()
    bare = Admin(start({}, prepare=admin_file).of("worker")[0])
    assert "archive.url is not set" in bare.call("GET", "queues/sale/reports").problem(404)["detail"]
    bare.close()
