# SPDX-License-Identifier: Apache-2.0
"""Numbers that the documentation quotes, held against the code that has them.

A fact is a page, a text of it with {} for the number, and the number. `code` reads one from a file; the text has it
with commas between thousands.
"""
from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
OPERATORS, INTEGRATORS = "docs/operators/", "docs/integrators/"


def code(file: str, pattern: str) -> int:
    found = re.search(pattern, (TOP / file).read_text())
    if found is None:
        raise SystemExit(f"tests/gates/facts.py: no {pattern} in {file}")
    return int(found.group(1))


def integrator_facts() -> list[tuple[str, str, int]]:
    nginx, haproxy = "deploy/gateways/nginx/tellerline.conf", "deploy/gateways/haproxy/haproxy.cfg"
    held = code("worker/api/place.c", r"WAIT_MAX_MS = (\d+)") // 1000
    forgeries = code("worker/visit/visit.c", r"FORGERIES_MAX = (\d+)")
    languages = len(list((TOP / "worker" / "page" / "languages").glob("*.yaml")))
    return [
        ("README.md", "{} languages", languages),
        ("CHANGELOG.md", "{} languages", languages),
        ("README.ko.md", "{}개 언어", languages),
        (f"{INTEGRATORS}waiting-page.md", "{} languages", languages),
        (f"{INTEGRATORS}waiting-page.md", "fewer than {} are ahead", code("worker/page/page.c", r"define ALMOST +(\d+)")),
        (f"{INTEGRATORS}waiting-page.md", "continues after {} s", code("worker/page/page.c", r"GO_ON_AFTER_S (\d+)")),
        (f"{INTEGRATORS}waiting-page-developers.md", "at most {} days", code("worker/visit/browser.c",
                                                                            r"LIFE_MAX_S = (\d+) \* 86400")),
        (f"{INTEGRATORS}waiting-page-developers.md", "at most every {} s", code("worker/page/page.c",
                                                                               r"REFRESH_MIN_S (\d+)")),
        (f"{INTEGRATORS}waiting-page-developers.md", "at most {} such joins a minute",
         code("worker/api/handlers.h", r"CHALLENGE_WAITS_A_MINUTE (\d+)")),
        (f"{INTEGRATORS}client-guide.md", "at most {} seconds", held),
        (f"{INTEGRATORS}gateways.md", "lasts up to {} s", held),
        (f"{INTEGRATORS}client-guide.md", "{} invalid tokens", forgeries),
        (f"{INTEGRATORS}passes.md", "{} forged ES256 passes", forgeries),
        (f"{INTEGRATORS}passes.md", "up to {} ms", code("worker/visit/wait.c", r"EVENT_WAIT_MS = (\d+)")),
        (f"{INTEGRATORS}passes.md", "at most {} characters", code("worker/api/body.h", r"JOIN_INVITE_MAX (\d+)")),
        (f"{INTEGRATORS}passes.md", "at most {} keys", code("common/auth/jwt_keys.h", r"JWT_KEYS_MAX +(\d+)")),
        (f"{INTEGRATORS}gateways.md", "| connections of an address | {} (429)", code(nginx, r"limit_conn \w+ (\d+);")),
        (f"{INTEGRATORS}gateways.md", "| {} a second", code(nginx, r"rate=(\d+)r/s")),
        (f"{INTEGRATORS}gateways.md", "{} at once (429)", code(nginx, r"burst=(\d+)")),
        (f"{INTEGRATORS}gateways.md", "{} in 10 s", code(haproxy, r"sc0_http_req_rate gt (\d+)")),
        (f"{INTEGRATORS}gateways.md", "(429) | {} (refused)", code(haproxy, r"sc0_conn_cur gt (\d+)")),
        (f"{INTEGRATORS}gateways.md", "| {} new connections a second", code("deploy/gateways/caddy/limits.nft",
                                                                             r"rate over (\d+)/second")),
    ]


def operator_facts() -> list[tuple[str, str, int]]:
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
        (f"{OPERATORS}sale-day.md", "{} joins per second on a core", joins),
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


def says(page: str, text: str, number: int) -> bool:
    """The number stands whole: 5,000 is not said by 25,000, nor by 5,000,000."""
    before, after = text.split("{}")
    whole = rf"(?<![\d,]){number:,}(?![\d,]*\d)"
    return re.search(re.escape(before) + whole + re.escape(after), " ".join(page.split())) is not None


def self_test() -> None:
    page = "At most 25,000\npages, 5,000 joins and 3, then 12"
    for text, number, said in (("{} pages", 25000, True), ("{} pages", 5000, False), ("{} joins", 5000, True),
                               ("most {}", 25, False), ("{}", 25, False), ("{}", 3, True), ("then {}", 12, True),
                               ("then {}", 1, False), ("{}", 2, False)):
        assert says(page, text, number) == said, (text, number)


def wrong_facts() -> list[str]:
    self_test()
    return [f"{page}: should say \"{text.format(f'{number:,}')}\", as the code does"
            for page, text, number in integrator_facts() + operator_facts()
            if not says((TOP / page).read_text(), text, number)]
