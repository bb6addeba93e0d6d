# SPDX-License-Identifier: Apache-2.0
"""docs/integrators/client-guide.md: its examples run unchanged, one after the other, and its views match the schema."""
from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess

import jsonschema
import yaml

from tellerline import BIN, TOP, environment, free_port
from waiting import patient

GUIDE = TOP / "docs" / "integrators" / "client-guide.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def test_examples_work(tmp_path):
    """The first visitor is admitted and leaves. user-7 comes next, then user-8 waits until user-7 is done."""
    for tool in ("bash", "curl", "openssl", "basenc"):
        assert shutil.which(tool), f"{tool} is needed"
    address = "http://localhost:8080"
    port = free_port()
    examples = blocks("sh")
    assert sum(example.count(address) for example in examples) == 2 and len(examples) >= 12
    examples = [example.replace(address, f"http://127.0.0.1:{port}") for example in examples]
    script = "".join(f"printf '\\n== {i}\\n'\n{text}" for i, text in enumerate(examples))
    # Only what a test needs beside other tests: ports of its own.
    listens = {f"TELLERLINE_ADMIN_{role}": "127.0.0.1:0"
               for role in ("WORKER", "DISPATCHER", "ADMITTER", "EXPIRER", "NOTIFIER")}
    env = environment(listens | {"TELLERLINE_HTTP_LISTEN": f"127.0.0.1:{port}",
                                 "PATH": f"{BIN}:{os.environ['PATH']}"})
    with subprocess.Popen(["setpriv", "--pdeathsig", "TERM", "bash", "-euo", "pipefail", "-c", script], cwd=tmp_path,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, start_new_session=True) as run:
        try:
            stdout, stderr = run.communicate(timeout=patient(300))
        finally:
            if run.poll() != 0:
                os.killpg(run.pid, signal.SIGTERM)  # what an example started
    done = subprocess.CompletedProcess(run.args, run.returncode, stdout, stderr)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{(tmp_path / 'up.log').read_text()}"
    outputs = [part.partition("\n")[2].strip() for part in done.stdout.split("\n== ")[1:]]
    told = dict(zip(examples, outputs))

    def output(mark: str) -> str:
        (found,) = (text for example, text in told.items() if mark in example)
        return found

    assert json.loads(output("join\" | member ticket"))["status"] == "active"
    assert "event: admitted\ndata: {" in output("/events")
    assert json.loads(output("wait=2s"))["status"] == "active"
    assert re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+", output("/renew\" | member pass\n"))
    assert output("/leave") == "left"
    assert output("INVITE=") == "user-8"
    assert json.loads(output("jwks.json")) == {"keys": []}
    first, second, *head = output("/check\"").splitlines()
    assert (first, second) == ("204", "204")
    location = next(line for line in head if line.lower().startswith("x-tellerline-location:"))
    assert location.endswith("/q/demo?return=https%3A%2F%2Fshop.example%2Fcheckout")
    assert output("/complete") == "completed"
    assert json.loads(output("nowhere"))["type"] == "/problems/no-such-queue"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "secrets", "tellerline.yaml", "up.log"]


def test_shown_answers_are_as_documented():
    """The views in the guide match the schemas of openapi.yaml."""
    document = yaml.safe_load((TOP / "docs" / "integrators" / "openapi.yaml").read_text())
    resolver = jsonschema.RefResolver("", document)
    shown = [json.loads(text) for text in blocks("json")]
    assert len(shown) == 2
    for value in shown:
        schema = "View" if "visitor" in value else "Problem"
        jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{schema}"},
                                        resolver=resolver).validate(value)
