# SPDX-License-Identifier: Apache-2.0
"""What the forms of the dashboard take is what the server takes."""
from __future__ import annotations

import re

import pytest

from admin import Admin
from tellerline import CALM, TOP
from test_dashboard import Desk, room  # noqa: F401 (fixture)

pytestmark = pytest.mark.together

ASSETS = "\n".join(path.read_text() for path in sorted((TOP / "worker" / "admin" / "assets").glob("*.js")))
#: A field of the dashboard -> the setting that it is for.
SETTINGS = {"capacity": "capacity", "rate-admit": "rate.admit", "new-capacity": "capacity", "new-target": "target_url"}


def defined(name: str) -> int:
    header = (TOP / "common/wire" / ("notice_text.h" if "NOTICE" in name else "names.h")).read_text()
    return int(re.search(rf"^#define {name} +(\d+)", header, re.M)[1])


def limits(setting: str) -> dict[str, str]:
    """Those of docs/operators/configuration.md, which is made from the tables of the programs."""
    page = (TOP / "docs/operators/configuration.md").read_text()
    row = re.search(rf"^\| `{re.escape(setting)}` \| \w+ \| [^|]* \| (?:(\d+) to (\d+)|at most (\d+) bytes) \|", page, re.M)
    return {"maxlength": row[3]} if row[3] else {"min": row[1], "max": row[2]}


def test_fields_have_the_limits_of_the_tables():
    """Each number and address has the limits of its setting, and no other field has one."""
    fields = {}
    for attributes in re.findall(r"\{([^{}]*?\bid: '[^']+'[^{}]*)\}", ASSETS):
        found = dict(re.findall(r"\b(min|max|maxlength): (\w+)", attributes))
        if found:
            fields[re.search(r"\bid: '([^']+)'", attributes)[1]] = found
    assert fields == {field: limits(setting) for field, setting in SETTINGS.items()}
    assert f"const MOST = {defined('TL_NOTICE_TEXT_MAX')};" in ASSETS and ASSETS.count("maxlength:") == 2
    assert f"pattern: '[a-z0-9][a-z0-9._\\\\-]{{0,{defined('TL_QUEUE_NAME_MAX') - 1}}}'" in ASSETS


def test_a_notice_is_measured_in_bytes(browser, room):  # noqa: F811
    """The longest that the server takes goes through the form, and one byte more does not: in Korean, where a character
    has three bytes."""
    system = room({"shop": {"capacity": 1} | CALM})
    admin = Admin(system.of("worker")[0])
    most = defined("TL_NOTICE_TEXT_MAX")
    longest = "가" * (most // 3) + "a" * (most % 3)
    assert admin.call("POST", "queues/shop/notice", {"text": longest + "a"}).status == 422
    admin.done("POST", "queues/shop/notice", {"text": longest})
    desk = Desk(browser, system)
    desk.open("#/queues/shop")
    desk.sees("Notice to everyone who waits")
    message = "return document.querySelector('#notice').validationMessage"
    desk.fill("#notice", longest + "a")
    assert browser.execute_script(message) == f"Too long: {most + 1} bytes, at most {most}."
    desk.press("Preview")
    assert browser.execute_script("return document.querySelector('dialog') === null")
    desk.fill("#notice", longest)
    assert browser.execute_script(message) == ""
    desk.press("Preview")
    desk.confirm("Publish", longest)
