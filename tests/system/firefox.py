# SPDX-License-Identifier: Apache-2.0
"""Firefox for the tests of pages. Debian has no geckodriver, so this speaks Firefox's own protocol, Marionette (a TCP
socket, "LENGTH:JSON"), and lets Selenium's driver believe that it has a remote end: `until`, `press` and the rest of
browser.py work as they do with Chromium. Only what needs Chromium's own protocol (CDP) does not."""
from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.firefox.options import Options
from selenium.webdriver.remote.command import Command

from browser import be_patient
from tellerline import PATIENCE
from waiting import patient, wait_until

#: Selenium's commands by their names in Marionette.
COMMANDS = {
    Command.NEW_SESSION: "WebDriver:NewSession",
    Command.GET: "WebDriver:Navigate",
    Command.REFRESH: "WebDriver:Refresh",
    Command.GO_BACK: "WebDriver:Back",
    Command.GET_CURRENT_URL: "WebDriver:GetCurrentURL",
    Command.GET_TITLE: "WebDriver:GetTitle",
    Command.FIND_ELEMENT: "WebDriver:FindElement",
    Command.CLICK_ELEMENT: "WebDriver:ElementClick",
    Command.W3C_EXECUTE_SCRIPT: "WebDriver:ExecuteScript",
    Command.W3C_EXECUTE_SCRIPT_ASYNC: "WebDriver:ExecuteAsyncScript",
    Command.GET_ALL_COOKIES: "WebDriver:GetCookies",
    Command.W3C_GET_CURRENT_WINDOW_HANDLE: "WebDriver:GetWindowHandle",
    Command.W3C_GET_WINDOW_HANDLES: "WebDriver:GetWindowHandles",
    Command.SWITCH_TO_WINDOW: "WebDriver:SwitchToWindow",
    Command.NEW_WINDOW: "WebDriver:NewWindow",
    Command.CLOSE: "WebDriver:CloseWindow",
    Command.SET_TIMEOUTS: "WebDriver:SetTimeouts",
    Command.SCREENSHOT: "WebDriver:TakeScreenshot",
    Command.QUIT: "Marionette:Quit",
}

PREFERENCES = {
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "intl.accept_languages": "en-US, en",
}


class Connection:
    """Takes the place of Selenium's HTTP connection to a driver."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), patient(120))
        self._read = self._socket.makefile("rb")
        self._number = 0
        self._receive()  # says its name

    def close(self) -> None:
        self._read.close()
        self._socket.close()

    def execute(self, command: str, params: dict[str, Any]) -> dict[str, Any]:
        if command == Command.GET_COOKIE:
            found = [cookie for cookie in self.ask("WebDriver:GetCookies", {}) if cookie["name"] == params["name"]]
            return {"value": found[0] if found else None}
        if command == Command.NEW_SESSION:
            params = {}
        try:
            return {"value": self.ask(COMMANDS[command], {k: v for k, v in params.items() if k != "sessionId"})}
        except Refused as refused:
            return {"status": 500, "value": json.dumps({"value": refused.args[0]})}

    def ask(self, name: str, params: dict[str, Any]) -> Any:
        self._number += 1
        text = json.dumps([0, self._number, name, params]).encode()
        self._socket.sendall(b"%d:%s" % (len(text), text))
        _, number, error, result = self._receive()
        assert number == self._number
        if error is not None:
            raise Refused(error)
        return result["value"] if isinstance(result, dict) and set(result) == {"value"} else result

    def _receive(self) -> Any:
        length = b""
        while (byte := self._read.read(1)) != b":":
            if not byte:
                raise OSError("Firefox has ended")
            length += byte
        return json.loads(self._read.read(int(length)))

    def inside(self, script: str) -> Any:
        """Runs it with the browser's own rights."""
        self.ask("Marionette:SetContext", {"value": "chrome"})
        try:
            return self.ask("WebDriver:ExecuteScript", {"script": script, "args": []})
        finally:
            self.ask("Marionette:SetContext", {"value": "content"})


class Refused(Exception):
    """What Firefox says about a command that failed."""


@contextmanager
def firefox() -> Iterator[webdriver.Remote]:
    program = shutil.which("firefox-esr")
    if program is None:
        pytest.skip("the package firefox-esr is not installed: the pages are tested in Chromium only")
    with tempfile.TemporaryDirectory(prefix="tellerline-firefox-") as profile:
        preferences = PREFERENCES | {"marionette.port": 0}  # any that is free: it says which
        Path(profile, "user.js").write_text(
            "".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items()))
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", program, "--headless", "--no-remote", "--marionette",
             "--remote-allow-system-access", "--profile", profile],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"HOME": profile, "PATH": "/usr/bin:/bin", "MOZ_DISABLE_CONTENT_SANDBOX": "1"})
        try:
            chosen = Path(profile, "MarionetteActivePort")
            connection = Connection(wait_until(lambda: chosen.exists() and int(chosen.read_text() or 0), PATIENCE,
                                               "Firefox listens", 0.1))
            driver = webdriver.Remote(command_executor=connection, options=Options())
            be_patient(driver)
            yield driver
            connection.close()
        finally:
            process.terminate()
            process.wait(patient(60))


def make_new(browser: webdriver.Remote) -> None:
    """Resets the browser to a fresh profile. Its console must not hold errors of the pages."""
    inside = browser.command_executor.inside
    for extra in browser.window_handles[1:]:
        browser.switch_to.window(extra)
        browser.close()
    browser.switch_to.window(browser.window_handles[0])
    browser.get("about:blank")
    inside("Services.cookies.removeAll()")
    messages = inside("const all = Services.console.getMessageArray().map(String); Services.console.reset(); return all")
    wrong = [text for text in messages if "http://127.0.0.1" in text and
             re.search(r'Content-Security-Policy|JavaScript Error: "(uncaught|\w*Error)', text)]
    assert not wrong, wrong
