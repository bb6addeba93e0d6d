# SPDX-License-Identifier: Apache-2.0
"""Runs all checks and tests, and counts. Called by tests/run, which has installed what is needed."""
from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import process
import stages
from results import FLAKY_MOST, Row, commit_of, known_flakes
from stages import ASAN, TOP, Options, Run

STAGES = ("gates", "ctest", "system", "threads", "kubernetes", "packages", "containers")
LOGS = Path("build/test-logs")


def options_of(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser("tests/run", description="Installs what is missing, builds, checks and tests "
                                     "everything. The last line is `N passed, N failed, N skipped`; the exit status is 0 "
                                     "only if nothing failed. It ends by itself within 86 minutes.",
                                     epilog="A test that failed beside others runs once more, alone. If it passes then, "
                                     "it is listed as flaky, and the next runs show it first; a run with more than "
                                     f"{FLAKY_MOST} of them fails. tests/one runs single tests.")
    parser.add_argument("--fast", action="store_true", help="leave out clang-tidy, the system tests marked long, and the "
                        "stages threads, kubernetes, packages and containers (all counted as skipped)")
    parser.add_argument("-k", metavar="EXPRESSION", help="only the system tests that match, as pytest understands it")
    parser.add_argument("--soak", type=int, default=0, metavar="SECONDS", help="all faults at once, chosen by a seed "
                        "(TELLERLINE_SEED repeats one), for so long; nothing else")
    parser.add_argument("--only", action="append", choices=STAGES, default=[], help="only this stage beside the builds; "
                        "may be repeated")
    parser.add_argument("--no-cache", action="store_true", help="run also what passed on this machine before with the "
                        "same inputs, bit for bit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="compile and check with N "
                        "processes (default: the number of processors)")
    parser.add_argument("pytest", nargs="*", metavar="-- PYTEST-ARGUMENT", help="for the system tests")
    parsed = parser.parse_args(arguments)
    if parsed.no_cache:
        os.environ["TELLERLINE_TEST_CACHE"] = "off"
    return Options(parsed.fast, parsed.soak, tuple(parsed.only), max(1, parsed.jobs),
                   (*(["-k", parsed.k] if parsed.k else []), *parsed.pytest))


def busy_seconds() -> float:
    """Processor time of the whole machine since it was started, in seconds."""
    fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    user, nice, system, _idle, _wait, irq, softirq = fields[:7]
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def progress(log: Path) -> str:
    """How far a command is, as the end of its log tells."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4000))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    percents = re.findall(r"\[ *(\d+)%\]", text)
    counts = re.findall(r"^\[(\d+/\d+)\]|^ *(\d+/\d+) Test ", text, re.MULTILINE)
    return f" ({percents[-1]} %)" if percents else f" ({''.join(counts[-1])})" if counts else ""


def tell_progress(run: Run) -> None:
    """A line a minute: what runs now, and what is still to come."""
    while True:
        time.sleep(60)
        at = ", ".join(title + progress(log) for title, log in list(run.at.items()))
        ahead = f"; to come: {', '.join(run.ahead)}" if run.ahead else ""
        print(f"tests/run: {(time.monotonic() - run.began) / 60:.0f} min, load {os.getloadavg()[0]:.1f}: {at}{ahead}",
              flush=True)


#: A stage, after the name by which --only chooses it.
Stage = tuple[str, Callable[[Run], None]]


def plan(run: Run) -> list[tuple[list[Stage], list[Stage]]]:
    """In order: what compiles, what analyses, what computes, what waits, and at last what wants the machine for itself.
    Nothing that compiles or analyses runs beside tests that wait for programs. In each step the first stages run one
    after the other, and beside them those of the second list, which mostly wait for the container engine."""
    def folder(name: str, processes: int = 1) -> Stage:
        return name, lambda run: stages.folder(run, name, processes)

    def containers(run: Run) -> None:
        stages.folder(run, "containers", 2, show=not run.options.wants("system"))

    return [
        ([("gates", stages.gates)], []),
        ([("ctest", lambda run: stages.ctest(run, "units and components", "ctest", ASAN))], []),
        ([("threads", stages.threads)], []),
        ([folder("packages", 2), folder("kubernetes")], [("containers", stages.images)]),
        ([("system", stages.system)], [("containers", containers)]),
        ([("system", stages.system_alone)], []),
    ]


def work(run: Run) -> None:
    if not stages.build(run, "release") or not stages.build(run, "asan", "-DTELLERLINE_BENCH=ON"):
        return
    if run.options.soak:
        stages.soak(run)
        return

    def begin(wanted: list[Stage]) -> None:
        for _, stage in wanted:
            stage(run)

    steps = [[[stage for stage in lane if run.options.wants(stage[0])] for lane in step] for step in plan(run)]
    for number, (first, beside) in enumerate(steps):
        run.ahead = list(dict.fromkeys(name for step in steps[number + 1:] for lane in step for name, _ in lane))
        with ThreadPoolExecutor(1) as pool:
            lane = pool.submit(begin, beside)
            begin(first)
            lane.result()


def main() -> int:
    os.chdir(TOP)
    options = options_of(sys.argv[1:])
    LOGS.mkdir(parents=True, exist_ok=True)
    run = Run(options, LOGS)
    busy = busy_seconds()
    results, commit = LOGS / "results.json", commit_of(TOP)
    results.unlink(missing_ok=True)
    for flake in known_flakes():
        print(f"flaky before: {flake.name} ({time.strftime('%F %R', time.localtime(flake.when))}, load {flake.load}"
              f"{', seed ' + flake.seed if flake.seed else ''})")
    installation = float(os.environ.get("TESTS_INSTALLATION", "0"))
    run.began -= installation
    run.report.add(Row("installation", 1, seconds=installation))

    def end(number: int, _frame: object) -> None:
        process.end_running()
        process.end_leftovers()
        for stage in [title for title in run.at if (TOP / "tests" / title / "clean-up").exists()]:
            process.clean_up(TOP / "tests" / stage, stage, LOGS / f"{stage}-clean-up.log")
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    threading.Thread(target=tell_progress, args=(run,), daemon=True).start()
    work(run)
    process.end_leftovers()
    run.report.remember_flakes()
    run.report.write(results, commit, options == Options(jobs=options.jobs))
    return run.report.finish(LOGS, busy_seconds() - busy)


if __name__ == "__main__":
    sys.exit(main())
