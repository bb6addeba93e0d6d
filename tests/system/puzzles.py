# SPDX-License-Identifier: Apache-2.0
"""Solves the puzzles of queues with a challenge, with the example of docs/integrators/client-guide.md."""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from http_client import Answer, Client
from tellerline import TOP


def _example() -> dict[str, Any]:
    """The example in Python of the client guide."""
    guide = (TOP / "docs" / "integrators" / "client-guide.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    return names


#: The solution of the puzzle that a refused join carries.
solve: Callable[[dict[str, Any]], str] = _example()["solve"]


def asked(client: Client, queue: str) -> dict[str, Any]:
    """A join without a solution: the refusal, which carries a puzzle."""
    problem = client.post(f"/v1/queues/{queue}/join").problem(403)
    assert problem["type"] == "/problems/challenge-required", problem
    return problem


def join(client: Client, queue: str, solution: str, ticket: str | None = None) -> Answer:
    return client.post(f"/v1/queues/{queue}/join", json.dumps({"solution": solution}).encode(), ticket=ticket)


def signed_wait(page: Answer) -> str:
    """The address, in a waiting page, of the form for browsers without scripts."""
    return re.search(r'action="(/q/[^"]*/join\?solution=[\w-]+)"', page.body.decode()).group(1)
