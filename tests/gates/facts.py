# SPDX-License-Identifier: Apache-2.0
"""Numbers that the documentation quotes, held against the code that has them.

A fact is a page, a text of it with {} for the number, and the number. `code` reads one from a file; the text has it
with commas between thousands.
"""
from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
OPERATORS = "docs/operators/"


def code(file: str, pattern: str) -> int:
    found = re.search(pattern, (TOP / file).read_text())
    if found is None:
        raise SystemExit(f"tests/gates/facts.py: no {pattern} in {file}")
    return int(found.group(1))


def facts() -> list[tuple[str, str, int]]:
    settings = "common/config/program_table.c"
    joins = code("lab/model.h", r"TL_PLAN_JOINS_PER_PROCESS = (\d+)")
    presence = (code("common/store/line/presence.lua", r"PEXPIRE', bitmap, (\d+) \*")
                // code("common/wire/protocol.def", r"PRESENCE_BUCKETS (\d+)"))
    ended = code("common/store/line/visitor.lua", r"ENDED_MAX = (\d+)")
    open_pages = code(settings, r'http\.max_connections, "(\d+)"')
    return [
        (f"{OPERATORS}privacy.md", "{} × `waiting_ttl`", presence),
        (f"{OPERATORS}privacy.md", "at most {} per queue", ended),
        (f"{OPERATORS}redis.md", "at most {} in a queue", ended),
        (f"{OPERATORS}sale-day.md", "{} open pages per worker process", open_pages),
        (f"{OPERATORS}containers.md", "`http.max_connections` ({})", open_pages),
        (f"{OPERATORS}sale-day.md", "about {} joins per second", round(joins, -3)),
        (f"{OPERATORS}containers.md", "Up to {} workers",
         code("deploy/compose/haproxy.cfg", r"server-template worker (\d+)")),
        (f"{OPERATORS}containers.md", "{} connections, and", code("deploy/compose/haproxy.cfg", r"sc0_conn_cur gt (\d+)")),
        (f"{OPERATORS}containers.md", "{} requests in ten seconds",
         code("deploy/compose/haproxy.cfg", r"sc0_http_req_rate gt (\d+)")),
        (f"{OPERATORS}kubernetes.md", "| {} |", code("deploy/kubernetes/base/worker-autoscaler.yaml",
                                                      r'averageValue: "(\d\d\d\d\d)"')),
        (f"{OPERATORS}debian.md", "killed after {} s", code("deploy/systemd/tellerline-expirer.service",
                                                           r"TimeoutStopSec=(\d+)s")),
        (f"{OPERATORS}debian.md", "the worker after {} s", code("deploy/systemd/tellerline-worker.service",
                                                               r"TimeoutStopSec=(\d+)s")),
        (f"{OPERATORS}operations.md", "and {} exports", code("worker/admin/streams.h", r"EXPORTS_MAX +(\d+)u")),
        (f"{OPERATORS}operations.md", "At most {} event streams", code("worker/admin/streams.h", r"EVENTS_MAX +(\d+)u")),
        (f"{OPERATORS}misuse.md", "at most {}", code("common/wire/protocol.def", r"BLOCKS_MAX (\d+)")),
        (f"{OPERATORS}access.md", "at most {}", code("common/wire/protocol.def", r"TOKENS_MAX (\d+)")),
        (f"{OPERATORS}adaptive.md", "{} times a second", code("worker/api/public.c", r"REPORTS_PER_SECOND = (\d+)")),
        (f"{OPERATORS}dashboard.md", "a sample of {}", code("common/control/stats.lua", r"TOLD_MS = (\d+), ")),
        (f"{OPERATORS}troubleshooting.md", "uses {} % of `maxmemory`", code("common/store/memory.c",
                                                                           r"[^_]FULL_PERCENT = (\d+)")),
        (f"{OPERATORS}troubleshooting.md", "below {} %", code("common/store/memory.c", r"NOT_FULL_PERCENT = (\d+)")),
        (f"{OPERATORS}monitoring.md", "about {} per queue", code("tests/system/operator/test_metrics.py",
                                                                r"per_queue <= (\d+)")),
        ("deploy/kubernetes/overlays/example/ingress.yaml", "proxy-body-size: {}k",
         code(settings, r'http\.max_body, "(\d+)KiB"')),
    ]


def wrong_facts() -> list[str]:
    return [f"{page}: should say \"{text.format(f'{number:,}')}\", as the code does"
            for page, text, number in facts() if text.format(f"{number:,}") not in (TOP / page).read_text()]
