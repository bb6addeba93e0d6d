# SPDX-License-Identifier: Apache-2.0
"""An archive after a test that caused failures: PostgreSQL has what Redis and the visitors know of each queue, and what it
lacks happened in a gap that it names."""
from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from history import History
from postgres_server import PostgresServer
from tellerline import BIN, Program, System, run
from waiting import PATIENCE, wait_until

SUMS = ("joined", "waiting", "active", "completed", "left", "unclaimed")
#: A gap is told by the clock of Redis, in milliseconds; a visitor asks before, and is told later (seconds).
GRAIN = 1.0


def generations(postgres: PostgresServer, queue: str) -> list[tuple[str, ...]]:
    """Of each generation of the queue its id and its name, the newest last."""
    return postgres.rows("SELECT generation_id, generation FROM queue_generations JOIN queues USING (queue_id) "
                         f"WHERE name = '{queue}' ORDER BY generation")


def counts(postgres: PostgresServer, generation_id: str = "") -> dict[str, int]:
    """Of the places of one generation, or of all."""
    of = f" WHERE generation_id = {generation_id}" if generation_id else ""
    sums = ", ".join(f"count(*) FILTER (WHERE status = '{name}')" for name in SUMS[1:])
    (row,) = postgres.rows(f"SELECT count(*), {sums} FROM queue_entries{of}")
    return dict(zip(SUMS, map(int, row)))


def differs(system: System, postgres: PostgresServer, queue: str, names: tuple[str, ...] = SUMS) -> str:
    """How Redis and the archive differ in these numbers of the present generation. '': they do not, and all is written."""
    state, known = system.store.hash(system.key(queue, "state")), generations(postgres, queue)
    left = system.store.command("XLEN", system.key(queue, "record"))
    if left or state.get("standing") or not known or known[-1][1] != state.get("generation"):
        return f"{queue}: {left} entries of the record are left, in the archive {known}, in Redis {state}"
    there, here = counts(postgres, known[-1][0]), {name: int(state.get(name, 0)) for name in SUMS}
    same = all(there[name] == here[name] for name in names)
    return "" if same else f"{queue}: in the archive {there}, in Redis {here}"


def agree(system: System, postgres: PostgresServer, queue: str, names: tuple[str, ...] = SUMS) -> None:
    try:
        wait_until(lambda: not differs(system, postgres, queue, names), PATIENCE, "the archive agrees with Redis", every=0.1)
    except AssertionError as error:
        raise AssertionError(f"{error}: {differs(system, postgres, queue, names)}") from error


def wait_opened(system: System, queue: str) -> None:
    """What happens before is not archived."""
    wait_until(lambda: system.store.command("HGET", system.key(queue, "state"), "archive"), PATIENCE, "the archive is open")


def finds_nothing(system: System) -> None:
    """The comparison of all queues."""
    done = system.ctl("audit", "--archive", timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def trails_are_true(system: System, postgres: PostgresServer, queue: str) -> None:
    """Those of all generations of the queue. Only one that Redis lost before anything of it was written has none."""
    key = system.ctl("trail", "key").stdout.strip()
    bare = postgres.rows("SELECT generation_id::text FROM queue_generations JOIN queues USING (queue_id) "
                         f"WHERE name = '{queue}' AND event = 0 AND last_at IS NULL")
    for generation_id, generation in generations(postgres, queue):
        exported = system.ctl("trail", "export", queue, "--generation", generation)
        if (generation_id,) in bare:
            assert exported.returncode != 0 and "no such trail" in exported.stderr, exported.stderr
            assert counts(postgres, generation_id)["joined"] == 0, f"{queue}, generation {generation}"
            continue
        assert exported.returncode == 0, f"{queue}, generation {generation}: {exported.stderr}"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "trail")
            file.write_text(exported.stdout)
            said = run(BIN / "tellerline", "verify", "trail", "--key", key, str(file))
        assert said.returncode == 0, f"{queue}, generation {generation}: {said.stdout}{said.stderr}"


def _gaps(postgres: PostgresServer, queue: str) -> list[tuple[float, float]]:
    """Those that the archive names. Nor does it know of a generation what Redis had not handed over when the next one was
    made, or anything where that was all of it."""
    return [(float(since), float(until)) for since, until in postgres.rows(f"""
        WITH g AS (SELECT g.*, lead(generation) OVER (ORDER BY generation) AS next FROM queue_generations AS g
            JOIN queues USING (queue_id) WHERE name = '{queue}')
        SELECT extract(epoch FROM since), extract(epoch FROM until) FROM queue_gaps JOIN g USING (generation_id)
        UNION ALL SELECT coalesce(extract(epoch FROM last_at), 0), next / 1e6 FROM g WHERE next IS NOT NULL
        UNION ALL SELECT 0, min(generation) / 1e6 FROM g HAVING count(*) > 0""")]


def has_all(postgres: PostgresServer, queue: str, history: History) -> int:
    """Each end that visitors gave their places is there, unless it happened in a gap. Returns how many did."""
    missing = 0
    known: dict[str, list[str]] = {}
    for visitor, status in postgres.rows("SELECT visitor, status FROM queue_entries JOIN queue_generations "
                                         f"USING (generation_id) JOIN queues USING (queue_id) WHERE name = '{queue}'"):
        known.setdefault(visitor, []).append(status)
    gaps = _gaps(postgres, queue)
    for stay in history.stays:
        if stay.end not in ("completed", "left") or stay.end in known.get(stay.visitor, []):
            continue
        missing += 1
        began, ended = stay.gave_back or 0.0, stay.ended_at or 0.0
        assert any(since - GRAIN <= ended and began <= until + GRAIN for since, until in gaps), (
            f"{queue}: place {stay.place} of {stay.visitor}, {stay.end} between {began:.3f} and {ended:.3f}, is in the "
            f"archive as {known.get(stay.visitor)}, and it has gaps {gaps}")
    return missing


def _megabytes(program: Program) -> int:
    """Of memory that it uses now."""
    return int(Path(f"/proc/{program.pid}/statm").read_text().split()[1]) * 4096 >> 20


def check_archive(system: System, postgres: PostgresServer, histories: Mapping[str, History]) -> str:
    """After the lines have drained. Returns figures."""
    missing = 0
    for queue, history in histories.items():
        agree(system, postgres, queue, SUMS if not history.losses else ("waiting", "active"))
        missing += has_all(postgres, queue, history)
    finds_nothing(system)
    for queue in histories:
        trails_are_true(system, postgres, queue)
    rows = {name: int(postgres.sql(f"SELECT count(*) FROM {name}"))
            for name in ("queue_generations", "queue_entries", "queue_gaps", "trail_tiles")}
    return f"{missing} ends in gaps, archivers with {[_megabytes(one) for one in system.of('archiver')]} MB, rows {rows}"
