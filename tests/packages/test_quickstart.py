# SPDX-License-Identifier: Apache-2.0
"""The quickstart on a clean copy of the sources."""
from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import Clone
from families import command_line, descendants
from http_client import Client, Visitor, ready
from tellerline import PATIENCE, alive, environment, free_port
from waiting import patient, wait_until


def run(*command: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patient(60), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def sources(folder: Path) -> set[str]:
    """The files of a checkout, what was built aside."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
            and path.relative_to(folder).parts[0] != "build" and "__pycache__" not in path.parts}


def follow(address: str) -> Client:
    """What the dashboard does with the address: it signs in, and finds the queue and its line. The answer is a client
    that is signed in."""
    port, text = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#/sign-in/(\S+)", address).groups()
    desk = Client(int(port))
    assert b"<html" in desk.get("/").body
    signed_in = desk.post("/v1/admin/session", json.dumps({"token": text}).encode(),
                          headers={"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{port}"})
    assert signed_in.status == 200, signed_in
    cookie = {"Cookie": signed_in.headers["set-cookie"].partition(";")[0]}
    (queue,) = desk.get("/v1/admin/queues", headers=cookie).json["queues"]
    assert queue["queue"] == "demo" and queue["waiting"] > 0, queue
    return desk


def commands(said: str) -> dict[str, list[str]]:
    """The commands of ours that it prints, by their first word."""
    found = [line.split() for line in re.findall(r"^  (/\S+/tellerline .*)$", said, re.MULTILINE)]
    return {words[1]: words for words in found}


#: Seconds that the quickstart runs: far more than the test needs, which then ends the time.
TIME = "7200"


@pytest.mark.xdist_group("clone")
@pytest.mark.long(100)
def test_quickstart_on_a_clean_copy(clone: Clone, tmp_path: Path) -> None:
    """Builds, shows a line within seconds and a turn within a minute, with a dashboard that an address opens, and commands
    that work as printed, and an archive. It exits when its time is over without leaving a process or a file."""
    before = sources(clone.folder)
    port, shop_port = free_port(), free_port()
    log = tmp_path / "quickstart.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "./deploy/quickstart", "--archive", "--port", str(port),
             "--shop-port", str(shop_port), "--seconds", TIME], cwd=clone.folder, env=environment() | clone.settings,
            stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        def up_and_ready() -> bool:
            assert process.poll() is None, log.read_text(errors="replace")[-4000:]
            return ready(port)

        wait_until(up_and_ready, 900, "built and ready", every=0.2)
        client = Client(port)
        wait_until(lambda: client.get("/v1/queues/demo").json["waiting"] >= 20, 15, "there is a line", every=0.1)
        newcomer = Visitor(client, "demo").join()
        place = newcomer.status()["position"]
        assert 15 <= place <= 70, place
        lengths = []

        def in_turn() -> bool:
            view = newcomer.status()
            lengths.append(view["waiting"])
            return view["status"] == "active"

        wait_until(in_turn, 60, "the newcomer's turn", every=0.5)
        assert min(lengths) >= 15 and max(lengths) <= 70 and len(set(lengths)) > 3, lengths
        page = client.get("/q/demo").body.decode()
        assert "This is a demo on your own machine" in page
        client.close()
        shop = Client(shop_port)
        assert shop.get("/public/shop.css").status == 200
        shop.close()
        wait_until(lambda: log.read_text(errors="replace").count("crowd after") >= 2, PATIENCE,
                   "the crowd says how it goes", every=0.2)
        said = log.read_text(errors="replace")
        follow(re.search(r"^  (http://\S+/sign-in/\S+)$", said, re.MULTILINE)[1]).close()
        printed = commands(said)
        assert set(printed) == {"dashboard", "top", "queue", "audit", "report"}, printed
        again = run(*printed["dashboard"])
        follow(again.stdout.strip()).close()
        top = run(*printed["top"], "--count", "1").stdout
        assert "demo" in top and "!" not in top, f"the crowd is no misuse: {top}"
        run(*printed["queue"])
        run(*printed["audit"])
        arrived = re.search(r"^Arrived (\d+): admitted \d+", run(*printed["report"]).stdout, re.MULTILINE)
        assert arrived and int(arrived[1]) >= 20, "the archive has the crowd"
        family = descendants(process.pid)
        (timer,) = [pid for pid in family if command_line(pid) == ["sleep", TIME]]
        os.kill(timer, signal.SIGTERM)  # its time is over
        assert process.wait(patient(180)) == 0, log.read_text(errors="replace")[-4000:]
        wait_until(lambda: not any(alive(pid) for pid in family), PATIENCE, "no process is left")
        said = log.read_text(errors="replace")
        assert f"http://localhost:{shop_port}" in said and f":{port}" in said, "the addresses are printed"
        assert "WARNING" not in said, "nor does Redis begin with one"
        assert "\r" not in said, "plain lines where there is no terminal"
        assert "level=warn" not in said, "a first start is nothing to be warned of, and the crowd is no misuse"
        assert sources(clone.folder) == before, "nothing is left in the checkout"
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(patient(60))
