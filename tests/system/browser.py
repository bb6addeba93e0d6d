# SPDX-License-Identifier: Apache-2.0
"""Chromium, and how the tests of the waiting page read what it shows.

A page is replaced when it refreshes itself, redirects or is left. A test that reads it with two commands may send the
second one to a document that is gone, and Chromium reports that in many forms. So one command reads the whole page
(Page), a failed read is repeated, and the last failure is shown when the time is over.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from tellerline import TOP
from waiting import PATIENCE, patient, wait_until

#: The tests leave pictures of pages here, for people.
SCREENSHOTS = TOP / "build" / "test-logs" / "screenshots"
AXE = TOP.parent / "shared" / "vendor" / "axe-core" / "axe.min.js"

# A name other than localhost: browsers treat such a page as insecure.
INSECURE = "waiting.test"

#: A click without an effect after this time (seconds) was lost together with its document.
LOST = 5.0

# The content of a fully loaded document, or null. Also works when the page's own scripts are switched off.
_READ = """
if (document.readyState === 'loading') return null;
const seen = (element) => element !== null && element.checkVisibility();
const texts = {};
for (const element of document.querySelectorAll('[data-tl]'))
    if (seen(element) && !(element.dataset.tl in texts)) texts[element.dataset.tl] = element.innerText.trim();
return {
    url: location.href,
    title: document.title,
    state: document.body.dataset.state ?? '',
    visitor: document.body.dataset.visitor ?? '',
    headings: [...document.querySelectorAll('h1')].filter(seen).map((element) => element.innerText.trim()),
    texts: texts,
    progress: document.querySelector('progress')?.value ?? null,
    width: document.documentElement.scrollWidth,
    offered: arguments[0].filter((selector) => seen(document.querySelector(selector))),
};
"""


@dataclass(frozen=True)
class Page:
    """What one document shows at one moment."""

    url: str
    title: str
    state: str                # of a waiting page; "" of any other
    visitor: str
    headings: list[str]       # of the first level
    texts: dict[str, str]     # by their data-tl; without hidden elements
    progress: float | None
    width: int                # in pixels, with overflowing content
    offered: list[str]        # the requested selectors whose element is visible

    @property
    def heading(self) -> str:
        assert len(self.headings) == 1, self
        return self.headings[0]

    def text(self, key: str) -> str:
        return self.texts.get(key, "")

    def shows(self, key: str) -> bool:
        return key in self.texts


def until(browser: webdriver.Chrome, condition: Callable[[Page], object], what: str, seconds: float = PATIENCE,
          offers: tuple[str, ...] = ()) -> Page:
    """Reads the page until the condition is true for it. Returns that page. `offers`: see Page.offered."""
    last: Page | None = None

    def look() -> Page | None:
        nonlocal last
        found = browser.execute_script(_READ, offers)
        if found is None:
            return None  # still loading
        last = Page(**found)
        return last if condition(last) else None

    try:
        return wait_until(look, seconds, what, 0.1, again_on=WebDriverException)
    except AssertionError as error:
        raise AssertionError(f"{error}; the last page seen: {last}") from error


def look(browser: webdriver.Chrome, *offers: str) -> Page:
    """The page as it is now."""
    return until(browser, lambda page: True, "the page is readable", offers=offers)


def press(browser: webdriver.Chrome, *selectors: str, then: Callable[[Page], object], what: str) -> Page:
    """Clicks until the condition is true. Always clicks the last selector with a visible element, so that the ones
    before it can open what hides it. Use it only for idempotent actions: a lost click is repeated."""
    clicked, at = "", 0.0

    def pressed(page: Page) -> bool:
        nonlocal clicked, at
        if then(page):
            return True
        if page.offered and (page.offered[-1] != clicked or time.monotonic() > at + patient(LOST)):
            browser.find_element(By.CSS_SELECTOR, page.offered[-1]).click()
            clicked, at = page.offered[-1], time.monotonic()
        return False

    return until(browser, pressed, what, offers=selectors)


def visit(browser: webdriver.Chrome, address: str) -> None:
    """Opens the address. Retries, because a page that is about to redirect may interrupt the request."""
    wait_until(lambda: browser.get(address) or True, PATIENCE, f"a visit to {address}", again_on=WebDriverException)


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en-US",
                     "--window-size=1360,1000", f"--host-resolver-rules=MAP {INSECURE} 127.0.0.1"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    try:
        be_patient(driver)
        yield driver
    finally:
        driver.quit()


def be_patient(browser: webdriver.Remote) -> None:
    """With the limits of the driver itself: as slow as the machine is by now."""
    browser.set_page_load_timeout(patient(60))
    browser.set_script_timeout(patient(30))


class OneChromium:
    """The browser of all tests of this process. Each test gets it as new, also after one that has broken it."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._driver: webdriver.Chrome | None = None

    def begin(self) -> webdriver.Chrome:
        if self._driver is None:
            self._driver = self._open.enter_context(chromium())
        be_patient(self._driver)
        return self._driver

    def end(self) -> None:
        """After a test. The console must not hold errors of its pages."""
        assert self._driver is not None
        try:
            make_new(self._driver)
        except WebDriverException:
            self.quit()
            raise

    def quit(self) -> None:
        self._driver = None
        with suppress(WebDriverException):  # of one that has ended by itself
            self._open.close()


def scripts(browser: webdriver.Chrome, enabled: bool) -> None:
    """Switches the scripts of pages on or off, from the next page on."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not enabled})


def forget_errors(browser: webdriver.Chrome) -> None:
    """Drops what the console holds, for errors that a test brought about. Of Firefox, too."""
    if hasattr(browser, "execute_cdp_cmd"):
        browser.get_log("browser")
    else:
        browser.command_executor.inside("Services.console.reset()")


@contextmanager
def axe_at_hand(browser: webdriver.Chrome) -> Iterator[None]:
    """Each page has axe-core from its beginning, which is cheaper than to send it to each. Without it, the test is
    skipped at its end."""
    if not AXE.exists():
        yield
        pytest.skip("axe-core is not here, so nobody looked for what a screen reader cannot read")
    source = AXE.read_text(encoding="utf-8")
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def axe(browser: webdriver.Chrome, what: str = "", **options: Any) -> None:
    """axe-core finds no violation in the page, as it is now, if it is here."""
    if not AXE.exists():
        return
    if not browser.execute_script("return 'axe' in window"):
        browser.execute_script(AXE.read_text(encoding="utf-8"))
    found = browser.execute_async_script(
        "const done = arguments[1];"
        "axe.run(document, arguments[0]).then(r => done({passes: r.passes.length, violations: r.violations"
        ".map(v => [v.id, v.nodes.map(n => n.html)])}), e => done({failed: String(e)}))", options)
    assert "failed" not in found and found["passes"], (what, found)
    assert found["passes"] > 10 or options, (what, found)
    assert not found["violations"], (what, found["violations"])


WITHOUT_COLOURS = {"rules": {"color-contrast": {"enabled": False}}}
#: What a colour scheme changes: colours, and which of two pictures is shown.
OF_A_SCHEME = {"runOnly": {"type": "tag", "values": ["cat.color", "cat.text-alternatives"]}}


def check_accessible(browser: webdriver.Chrome, what: str = "") -> None:
    """axe-core finds no violation, in the light and in the dark colour scheme."""
    for scheme, options in (("light", {}), ("dark", OF_A_SCHEME)):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        query = f"return matchMedia('(prefers-color-scheme: {scheme})').matches"
        wait_until(lambda: browser.execute_script(query), PATIENCE, f"the page is {scheme}")
        axe(browser, f"{what} {scheme}", **options)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def make_new(browser: webdriver.Chrome) -> None:
    """Resets the browser to a fresh profile. Its console must not hold errors of the pages."""
    for extra in browser.window_handles[1:]:
        browser.switch_to.window(extra)
        browser.close()
    browser.switch_to.window(browser.window_handles[0])
    visit(browser, "about:blank")
    for command, parameters in [("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": "all"}),
                                ("Browser.resetPermissions", {}),
                                ("Emulation.setScriptExecutionDisabled", {"value": False}),
                                ("Emulation.setEmulatedMedia", {"features": []}),
                                ("Emulation.setTimezoneOverride", {"timezoneId": ""}),
                                ("Emulation.setScrollbarsHidden", {"hidden": False}),
                                ("Emulation.setFocusEmulationEnabled", {"enabled": False}),
                                ("Emulation.clearDeviceMetricsOverride", {})]:
        browser.execute_cdp_cmd(command, parameters)
    wrong = [entry["message"] for entry in browser.get_log("browser")
             if "Content Security Policy" in entry["message"] or "Uncaught" in entry["message"]]
    assert not wrong, wrong
