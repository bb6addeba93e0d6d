"""docs/integrators/client-guide.md: its examples run unchanged, one after the other, and its views match the schema."""
from __future__ import annotations

import json
import re
import shutil
import subprocess

import jsonschema
import pytest
import yaml

from tellerline import CALM, TOP, System, environment
from test_pass import API_KEY, SECRET, key_file

GUIDE = TOP / "docs" / "integrators" / "client-guide.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def system(start, tmp_path) -> System:
    folder = tmp_path / "secrets"
    folder.mkdir()
    api = key_file(folder / "api.keys", f"shop {API_KEY}\n")
    invites = key_file(folder / "invite.keys", f"shop-1 HS256 {SECRET}\n")
    # Two visitors wait one behind the other, so that the long poll has a change to wait for.
    return start({"demo": {"capacity": 1} | CALM},
                 settings={"secrets": {"api_keys": api, "invite_keys": invites}})


def test_examples_work(system, tmp_path):
    """The first visitor is admitted and leaves. user-7 comes next, then user-8 waits until user-7 is done."""
    for tool in ("bash", "curl", "openssl", "basenc"):
        assert shutil.which(tool), f"{tool} is needed"
    address = "http://localhost:8080"
    examples = blocks("sh")
    assert examples[0].count(address) == 1 and len(examples) >= 10
    examples[0] = examples[0].replace(address, f"http://127.0.0.1:{system.of('worker')[0].http_port}")
    script = "".join(f"printf '\\n== {i}\\n'\n{text}" for i, text in enumerate(examples))
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, text=True,
                          capture_output=True, timeout=300, env=environment(), check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
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
    numbers = system.numbers("demo")
    assert (numbers["joined"], numbers["left"], numbers["completed"]) == (3, 1, 1)


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
