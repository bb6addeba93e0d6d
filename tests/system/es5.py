# SPDX-License-Identifier: Apache-2.0
"""Is a script ES5? An old browser cannot parse what is newer. The parser is the one inside node."""
from __future__ import annotations

import shutil
import subprocess

import pytest

_PARSE = ("require('internal/deps/acorn/acorn/dist/acorn').parse(require('fs').readFileSync(0, 'utf8'),"
          "{ecmaVersion: 5})")


def check_es5(script: bytes) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node, whose parser can be asked for ES5")
    parser = [node, "--expose-internals", "-e", _PARSE]
    newer = subprocess.run(parser, input=b"let a = () => 1;", capture_output=True, check=False)
    assert b"SyntaxError" in newer.stderr
    subprocess.run(parser, input=script, check=True)
