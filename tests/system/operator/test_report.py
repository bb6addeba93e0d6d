# SPDX-License-Identifier: Apache-2.0
"""`tellerline report`: what the archive says of a sale, against figures that are counted here."""
from __future__ import annotations

import csv
import html.parser
import io
import json
from datetime import datetime, timedelta, timezone

import pytest

from postgres_server import PostgresServer
from tellerline import BIN, run

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
        INSERT INTO queue_entries (generation_id, seq, lane, status, joined_at, ended_at, event)
            VALUES (1, 1, 0, 'left', '2026-06-01T00:00:00Z', '2026-06-01T00:00:10Z', 1), (3, 1, 0, 'waiting', '{BEGAN}', NULL, 1);
        {Sale().rows(2)}
        INSERT INTO queue_gaps VALUES (2, 5, 'backlog', '{BEGAN}', '{BEGAN}'::timestamptz + interval '9 s', 7);
        INSERT INTO queue_changes SELECT queue_id, '{BEGAN}'::timestamptz + interval '1 s' * s, s + 9999, 0, 'kim', 'cli', what,
            before::jsonb, after::jsonb FROM queues, (VALUES
            (-9, 'create', '{{}}', '{{"capacity": "40"}}'),
            (70, 'set', '{{"capacity": "40", "session_ttl": "60000"}}', '{{"capacity": "80", "session_ttl": "300000"}}'),
            (80, 'notice', '{{"notice": ""}}', '{{"notice": "<b>soon & \u00e4</b>"}}'),
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
    assert ["2", "2026-12-01T11:01:20Z", "kim", "notice", 'notice "" -> "<b>soon & \u00e4</b>"'] in page.rows, page.rows[1:4]
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
    done = run(BIN / "tellerline", "report", "sale", "--data", "/nowhere")
    assert done.returncode == 2 and "archive.url is not set, and no `tellerline up --archive` runs" in done.stderr
    empty = postgres.url.replace("/postgres?", "/template1?")
    assert "run `tellerline db migrate`" in run(BIN / "tellerline", "report", "sale", env={"TELLERLINE_ARCHIVE_URL": empty}).stderr
