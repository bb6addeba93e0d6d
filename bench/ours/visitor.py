#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of one visitor from join to end: Redis commands, bytes, processor time of every program."""
from __future__ import annotations

import asyncio

from stage import CALM, QUEUE, QUICK, commands, cpu_s, emit, processes, progress, redis_info, redis_pid, running
from http_client import AsyncConnection, share_out

VISITORS = 2000 if QUICK else 20_000
CAPACITY = 500
POLLS = 3
PATH = f"/v1/queues/{QUEUE}"


async def lives(port: int) -> None:
    """All join; each asks for the place some times, is admitted, is checked by the site, and completes."""
    tickets: list[str] = []

    async def join(connection: AsyncConnection, _: int) -> None:
        tickets.append((await connection.request("POST", f"{PATH}/join")).json["ticket"])

    async def poll(connection: AsyncConnection, ticket: str) -> None:
        await connection.request("GET", f"{PATH}/status", ticket)

    async def live(connection: AsyncConnection, ticket: str) -> None:
        while (await connection.request("GET", f"{PATH}/status", ticket)).json["status"] != "active":
            await asyncio.sleep(0.002)
        await connection.request("GET", f"{PATH}/check", ticket)
        await connection.request("POST", f"{PATH}/complete", ticket)

    await share_out(port, 64, range(VISITORS), join)
    for _ in range(POLLS):
        await share_out(port, 64, tickets, poll)
    await share_out(port, 64, tickets, live)


def main() -> None:
    with running({QUEUE: CALM | {"capacity": CAPACITY}}) as system:
        roles = {program.role: program for program in system.programs}
        redis = redis_pid(system)

        def used() -> dict[str, float]:
            found = {role: cpu_s(processes(program)) for role, program in roles.items()}
            return found | {"Redis": cpu_s([redis])}

        def traffic() -> tuple[int, int]:
            found = redis_info(system, "stats")
            return int(found["total_net_input_bytes"]), int(found["total_net_output_bytes"])

        progress(f"{VISITORS} visitors come and go")
        before, calls, bytes_before = used(), commands(system), traffic()
        asyncio.run(lives(roles["worker"].http_port))
        after, bytes_after = used(), traffic()
        more = {name: count - calls.get(name, 0) for name, count in commands(system).items()}
        ended = system.numbers(QUEUE)["completed"]
    wrong = {"wrong": VISITORS - ended} if ended != VISITORS else {}
    direct = sum(more.get(name, 0) for name in ("fcall", "fcall_ro", "xadd", "xread", "xreadgroup"))
    largest = ", ".join(f"{name} {count / VISITORS:.2f}" for name, count in
                        sorted(more.items(), key=lambda item: -item[1])[:8])
    note = f"join, {POLLS} polls and more, check, complete; {VISITORS} visitors, {CAPACITY} active at a time"
    emit("visitor", "Redis commands", "all, with those inside functions", sum(more.values()) / VISITORS, "per visitor",
         "lower", n=VISITORS, note=largest, **wrong)
    emit("visitor", "Redis commands", "round trips", direct / VISITORS, "per visitor", "lower", n=VISITORS, note=note)
    for i, name in enumerate(("into Redis", "out of Redis")):
        emit("visitor", "bytes", name, (bytes_after[i] - bytes_before[i]) / VISITORS, "bytes per visitor", "lower",
             n=VISITORS)
    for name in after:
        emit("visitor", "processor time", name, (after[name] - before[name]) / VISITORS * 1e6, "us per visitor",
             "lower", n=VISITORS)


main()
