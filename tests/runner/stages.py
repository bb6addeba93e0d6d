# SPDX-License-Identifier: Apache-2.0
"""The stages of a run. Each adds its row to the report; none ends the run."""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import process
from process import TIMED_OUT, Done
from results import Report, Row, Test, read_junit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cached import TOP, Key, Results  # noqa: E402

PYTHON = "/usr/bin/python3"
ASAN, RELEASE, TSAN = "build/asan", "build/release", "build/tsan"
PROGRAMS = ("tellerline", *(f"tellerline-{role}" for role in ("worker", "dispatcher", "admitter", "expirer", "notifier", "archiver")))
#: A whole run may take so long (seconds). The limits of stages are shares of it.
WHOLE = 80 * 60
#: The files and folders that the source of a unit or component test names.
_NAMED = re.compile(r'"((?:tests|conf|docs|deploy|worker|common|bench)/[^"]*)"')


@dataclass(frozen=True)
class Options:
    fast: bool = False
    soak: int = 0
    only: tuple[str, ...] = ()
    jobs: int = 2
    pytest: tuple[str, ...] = ()

    def wants(self, stage: str) -> bool:
        return not self.only or stage in self.only


@dataclass
class Run:
    """What the stages share."""
    options: Options
    logs: Path
    report: Report = field(default_factory=Report)
    began: float = field(default_factory=time.monotonic)
    at: dict[str, Path] = field(default_factory=dict)  # what runs now -> its log
    ahead: list[str] = field(default_factory=list)  # the stages that come

    def limit(self, share: float) -> float:
        """So much of the whole, but not more than what is left of it."""
        whole = WHOLE + 4 * self.options.soak
        return min(share * whole, self.began + whole - time.monotonic())

    def command(self, title: str, share: float, command: list[str | Path], log: str, stage: str, show: bool = False,
                env: dict[str, str] | None = None) -> Done:
        path = self.logs / log
        self.at[title] = path
        try:
            return process.run(command, path, self.limit(share), stage, show, env)
        finally:
            self.at.pop(title, None)


def _say(text: str) -> None:
    print(text, flush=True)


# ---- one command that passes or fails ----

def single(run: Run, name: str, share: float, command: list[str | Path]) -> bool:
    """A check. One that keeps results of its own (tests/cached) says so in its output."""
    log = run.logs / f"{name}.log"
    log.unlink(missing_ok=True)
    _say(f"== {name}")
    done = run.command(name, share, command, log.name, name)
    passed = done.status == 0
    text = log.read_text(errors="replace") if log.exists() else ""
    if not passed:
        _say("\n".join(text.splitlines()[-60:]))
        _say(f"== {name} failed (whole output: {log})")
    for line in re.findall(r"^.*\b\d+ cached\b.*$|^cached: .*$|^sums: .*$", text, re.MULTILINE):
        _say(line)
    run.report.add(Row(name, int(passed), int(not passed), 0, int(text.startswith("cached: ")), done.seconds, done.cpu))
    return passed


def build(run: Run, preset: str, *options: str) -> bool:
    return single(run, f"build-{preset}", 0.5, [
        "bash", "-c", 'cmake --preset "$0" "${@:2}" && cmake --build "build/$0" -j "$1"', preset,
        str(run.options.jobs), *options])


def gates(run: Run) -> None:
    for name, command in (
            ("format", ["tests/gates/format"]),
            ("headers", ["tests/gates/headers", ASAN]),
            ("docs", ["tests/gates/docs"]),
            ("words", ["bash", "-c", "tests/gates/words --self-test && tests/gates/words"]),
            ("circles", ["bash", "-c", 'tests/gates/circles --self-test && tests/gates/circles "$0"', ASAN]),
            ("shape", ["bash", "-c", 'tests/gates/shape --self-test && tests/gates/shape "$0"', ASAN]),
            ("sums", ["bash", "-c", "tests/gates/sums --self-test && tests/gates/sums"]),
            ("hardening", ["bash", "-c", 'tests/gates/hardening "$0/bin" && tests/gates/hardening --preset', ASAN]),
            ("lua", ["tests/gates/lua", ASAN]),
            ("cppcheck", ["tests/gates/cppcheck", ASAN]),
            ("clang-tidy", ["tests/gates/tidy", ASAN]),
            ("model", ["tests/model/run"])):
        if name == "clang-tidy" and run.options.fast:
            run.report.add(Row("clang-tidy (--fast)", skipped=1))
            continue
        single(run, name, 0.4, command)


# ---- ctest ----

def ctest_keys(folder: str, chosen: str) -> dict[str, tuple[int, Key]]:
    """The tests of a build folder whose names match -> their numbers, and what their results depend on."""
    listed = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], capture_output=True, check=True)
    base = Key("ctest").files("/var/lib/dpkg/status").environment("TELLERLINE_SEED")
    sources = {path.stem: path for path in (TOP / "tests").glob("*/**/test_*.c")}
    found = {}
    for number, test in enumerate(json.loads(listed.stdout)["tests"], 1):
        if re.search(chosen, test["name"]):
            program, *words = test["command"]
            source = sources.get(test["name"])
            named = [word.partition("%")[0].rpartition("/")[0] if "%" in word else word
                     for word in _NAMED.findall(source.read_text())] if source else []
            key = base.copy().text(test["name"], *words).programs(program)
            found[test["name"]] = number, key.files(*(word for word in [*words, *named] if os.path.exists(word)))
    return found


def ctest(run: Run, title: str, name: str, folder: str, chosen: str = "") -> None:
    """Units, components and corpora. What passed before with the same program and data is not run again."""
    began = time.monotonic()
    _say(f"== {title}")
    junit, log = run.logs / f"{name}.xml", run.logs / f"{name}.log"
    log.unlink(missing_ok=True)
    junit.unlink(missing_ok=True)
    results, cpu = Results(), 0.0
    keys = ctest_keys(folder, chosen)
    known = {test for test, (_, key) in keys.items() if results.passed(key)}
    left = [number for test, (number, _) in keys.items() if test not in known]
    tests: list[Test] = [] if keys else [Test(title, 0, "failed", f"{folder} has no test")]
    if left:
        command: list[str | Path] = ["ctest", "--test-dir", folder, "--output-on-failure", "--timeout", "1200",
                                     "-I", "0,0,0," + ",".join(map(str, left))]
        done = run.command(title, 0.5, [*command, "-j", str(run.options.jobs), "--output-junit", junit.resolve()],
                           log.name, name, show=True)
        cpu += done.cpu
        tests = [Test(test.name.rpartition("::")[2], test.seconds, test.outcome, test.text) for test in read_junit(junit)]
        failed = [test for test in tests if test.outcome == "failed"]
        if done.status != 0 and not failed:
            tests.append(Test(title, 0, "failed", f"ctest ended with {done.status}: see {log}"))
        elif failed and run.report.may_retry(len(failed)):
            _say(f"== {title}: {len(failed)} failed, and run once more, alone")
            again = junit.with_name(f"{name}-retry.xml")
            numbers = ",".join(str(keys[test.name][0]) for test in failed if test.name in keys)
            cpu += run.command(title, 0.3, [*command[:-1], "0,0,0," + numbers, "--output-junit", again.resolve()],
                               f"{name}-retry.log", name, show=True).cpu
            _settle(run, failed, {test.name.rpartition("::")[2] for test in read_junit(again) if test.outcome == "passed"})
        for test in tests:
            if test.outcome == "passed" and test.name in keys:
                results.record(keys[test.name][1])
    _add(run, title, tests, len(known), time.monotonic() - began, cpu)


def _settle(run: Run, failed: list[Test], passed_alone: set[str]) -> None:
    """Those that pass alone are flaky: they count as passed, and are named."""
    for test in failed:
        if test.name in passed_alone:
            run.report.flaky(test)
            test.outcome = "passed"


def _add(run: Run, title: str, tests: list[Test], known: int, seconds: float, cpu: float) -> None:
    counts = {outcome: sum(test.outcome == outcome for test in tests) for outcome in ("passed", "failed", "skipped")}
    run.report.add(Row(title, counts["passed"] + known, counts["failed"], counts["skipped"], known, seconds, cpu), tests)


# ---- pytest ----

_PYTEST_ENV = {"PYTHONPATH": str(TOP / "tests" / "runner"), "PYTHONDONTWRITEBYTECODE": "1"}


def _pytest_command(folder: str) -> list[str | Path]:
    return [PYTHON, "-m", "pytest", "-c", f"{folder}/pytest.ini", "-p", "remember", "-p", "throttle"]


def pytest(run: Run, title: str, name: str, folder: str, share: float, *arguments: str, processes: int = 1,
           env: dict[str, str] | None = None, show: bool = True, may_be_empty: bool = False) -> None:
    """Tests of a folder. What failed runs once more, alone, when there is little of it."""
    began = time.monotonic()
    _say(f"== {title}" + (f", {processes} at a time" if processes > 1 else ""))
    files = {what: run.logs / f"{name}-{what}" for what in ("cached", "failures")}
    junit, log = run.logs / f"{name}.xml", run.logs / f"{name}.log"
    for path in (*files.values(), junit, log):
        path.unlink(missing_ok=True)
    side_by_side = ["-n", str(processes), "--dist", "loadgroup"] if processes > 1 else []
    base = _pytest_command(folder)
    env = {**_PYTEST_ENV, "TESTS_CACHED": str(files["cached"].resolve()),
           "TESTS_FAILED": str(files["failures"].resolve()), **(env or {})}
    done = run.command(title, share, [*base, f"--junit-xml={junit}", *side_by_side, *arguments, folder], log.name, name,
                       show=show, env=env)
    process.end_leftovers(name)
    cpu = done.cpu
    known = len(_lines(files["cached"]))
    tests = [] if done.status == 5 else read_junit(junit)
    failed = [test for test in tests if test.outcome == "failed"]
    if done.status == 5 and not known:
        if may_be_empty:
            return
        tests.append(Test(title, 0, "failed", f"no test was chosen in {folder}"))
    elif done.status == TIMED_OUT or done.status not in (0, 5) and not failed:
        tests.append(Test(title, 0, "failed", f"pytest ended with {done.status}: see {log}"))
    elif failed and run.report.may_retry(len(failed)):
        _say(f"== {title}: {len(failed)} failed, and run once more, alone")
        again = run.logs / f"{name}-retry.xml"
        again.unlink(missing_ok=True)
        nodes = [f"{folder}/{node}" for node in dict.fromkeys(_lines(files["failures"]))]
        cpu += run.command(title, 0.3, [*base, f"--junit-xml={again}", *nodes], f"{name}-retry.log", name, show=show,
                           env=env | {"TESTS_CACHED": "", "TESTS_FAILED": ""}).cpu
        process.end_leftovers(name)
        _settle(run, failed, {test.name for test in read_junit(again) if test.outcome == "passed"})
    _add(run, title, tests, known, time.monotonic() - began, cpu)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


# ---- the stages with tests of programs ----

def _chosen(run: Run) -> list[str]:
    return [*(["--fast"] if run.options.fast else []), *run.options.pytest]


def _bin(build_folder: str) -> dict[str, str]:
    return {"TELLERLINE_TEST_BIN": str(TOP / build_folder / "bin")}


def system(run: Run) -> None:
    """Side by side, since most of the time they wait."""
    for sanitized, folder in (("yes", ASAN), ("no", RELEASE)):
        pytest(run, f"system{', sanitized' if sanitized == 'yes' else ''}", f"system-{sanitized}", "tests/system", 0.6,
               "--machine=shared", f"--sanitized={sanitized}", *_chosen(run), processes=2 * run.options.jobs,
               env=_bin(folder), may_be_empty=True)


def system_alone(run: Run) -> None:
    """One after the other, with nothing beside them: those that measure or strain the machine."""
    for sanitized, folder in (("yes", ASAN), ("no", RELEASE)):
        pytest(run, f"system alone{', sanitized' if sanitized == 'yes' else ''}", f"system-alone-{sanitized}",
               "tests/system", 0.4, "--machine=alone", f"--sanitized={sanitized}", *_chosen(run), env=_bin(folder),
               may_be_empty=True)
    if not any(row.stage.startswith("system") for row in run.report.rows):
        run.report.add(Row("system", failed=1))  # nothing was chosen


def threads(run: Run) -> None:
    """What has threads, under ThreadSanitizer."""
    if run.options.fast:
        run.report.add(Row("threads (--fast)", skipped=1))
        return
    sources = subprocess.run(["grep", "-rlE", "--include=test_*.c",
                              r"pthread|worker/feed/|feed_world|common/client/|base/log\.h", "tests/unit", "tests/component"],
                             capture_output=True, text=True, check=True).stdout.split()
    tests = [Path(source).stem for source in sources]
    if not single(run, "build-tsan", 0.5, [
            "bash", "-c", 'cmake --preset tsan && cmake --build "$0" -j "$1" --target "${@:2}"', TSAN,
            str(run.options.jobs), *PROGRAMS, *tests]):
        return
    ctest(run, "threads: units", "threads-ctest", TSAN, rf"^({'|'.join(tests)})$")
    pytest(run, "threads: system", "threads", "tests/system", 0.4, "-k",
           "(test_line or test_push or test_challenge_service or test_adaptive) and not sign_of_life and not long",
           processes=run.options.jobs, env=_bin(TSAN))


def folder(run: Run, name: str, processes: int = 1, show: bool = True) -> None:
    """A folder of tests of its own, so many at a time, which puts away what it left by its script clean-up."""
    path = f"tests/{name}"
    if run.options.fast:
        run.report.add(Row(f"{name} (--fast)", skipped=1))
        return
    pytest(run, name, name, path, 0.6, processes=processes, env=_bin(RELEASE), show=show)
    process.clean_up(TOP / path, name, run.logs / f"{name}-clean-up.log")


def images(run: Run) -> None:
    """Compiles and makes the images for the container tests, unless all of those passed before. A failure is found again,
    and counted, by the tests that need the image."""
    engine = shutil.which("docker") and subprocess.run(["docker", "version"], capture_output=True, check=False)
    if run.options.fast or not engine or engine.returncode != 0:
        return
    known = subprocess.run([*_pytest_command("tests/containers"), "--collect-only", "-q", "tests/containers"],
                           env={**os.environ, **_PYTEST_ENV, **_bin(RELEASE)}, capture_output=True, check=False)
    if known.returncode == 5:
        return
    _say("== images")
    done = run.command("images", 0.4, ["tests/containers/images"], "images.log", "images")
    if done.status != 0:
        _say(f"== not all images could be made (log: {run.logs / 'images.log'})")
    run.report.add(Row("images", seconds=done.seconds, cpu=done.cpu))


def soak(run: Run) -> None:
    pytest(run, f"soak, {run.options.soak} s", "soak", "tests/system", 1, "--machine=alone", "-k",
           "faults_at_once or reconnects_at_once or listeners_are_back_in_order or asleep_for_long or sale_is_archived",
           env=_bin(ASAN) | {"TELLERLINE_SOAK": str(run.options.soak), "TELLERLINE_TEST_CACHE": "off"})

