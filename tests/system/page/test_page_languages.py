# SPDX-License-Identifier: Apache-2.0
"""The waiting page in each of its languages, in a real browser: how it writes numbers, that nothing is too wide or hard to
read, and that visitors choose a language without the script."""
from __future__ import annotations

import pytest
from selenium import webdriver

from browser import SCREENSHOTS, WITHOUT_COLOURS, axe, axe_at_hand, look, press, scripts, until, visit
from page_stand_in import StandIn, page_tool
from tellerline import PATIENCE, TOP
from test_page_script import stand_in, stream_is_open  # noqa: F401
from waiting import wait_until

pytestmark = pytest.mark.together(seconds=120)

LANGUAGES = sorted(path.stem for path in (TOP / "worker" / "page" / "languages").glob("*.yaml"))
#: Languages without a catalogue whose plural forms the table knows, for the files of operators.
MORE = ["am", "be", "bg", "bn", "bs", "ca", "cs", "da", "el", "et", "eu", "fa", "fi", "gl", "gu", "hi", "hr", "hu", "ka",
        "kk", "lo", "lt", "mn", "ms", "my", "nb", "nl", "nn", "ro", "ru", "sk", "sl", "sr", "sv", "sw", "uk", "ur", "uz",
        "zu"]
RIGHT_TO_LEFT = ("ar", "he")
NARROW = 320


def open_page(browser: webdriver.Chrome, server: StandIn, language: str) -> None:
    visit(browser, f"http://127.0.0.1:{server.port}/q/concert?lang={language}")
    assert browser.execute_script("return document.documentElement.lang") == language


def numbers(language: str) -> list[tuple[int, str, str]]:
    """Number, plural form and text, as the server has them."""
    lines = page_tool("numbers", language).decode().splitlines()
    return [(int(number), form, text) for number, form, text in (line.split(" ", 2) for line in lines)]


def test_plural_forms_are_those_of_the_browser(browser):
    for language in LANGUAGES + MORE:
        server = [(number, form) for number, form, _ in numbers(language)]
        assert len(server) > 200
        script = "const rules = new Intl.PluralRules(arguments[0]); return arguments[1].map((n) => rules.select(n));"
        forms = browser.execute_script(script, language, [number for number, _ in server])
        assert server == list(zip([number for number, _ in server], forms)), language


def check_numbers(browser: webdriver.Chrome, language: str) -> None:
    """They are written as in the browser."""
    server = [(number, text) for number, _, text in numbers(language)]
    script = ("const locale = document.querySelector('[data-tl=words]').dataset.locale;"
              "const format = new Intl.NumberFormat(locale); return arguments[0].map((n) => format.format(n));")
    texts = browser.execute_script(script, [number for number, _ in server])
    assert server == list(zip([number for number, _ in server], texts)), language


def check_width(browser: webdriver.Chrome, name: str) -> None:
    """Nothing overflows a narrow screen, with the menu of languages open. Leaves a screenshot."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                            {"width": NARROW, "height": 800, "deviceScaleFactor": 1, "mobile": False})
    until(browser, lambda page: page.width <= NARROW, f"{name}: nothing is wider than {NARROW} pixels")
    assert browser.save_screenshot(str(SCREENSHOTS / f"{name}-{NARROW}.png"))
    browser.execute_script("document.querySelector('nav details').open = true")
    until(browser, lambda page: page.width <= NARROW, f"{name}: the menu is not wider than {NARROW} pixels")
    assert browser.save_screenshot(str(SCREENSHOTS / f"{name}-{NARROW}-menu.png"))
    browser.execute_script("document.querySelector('nav details').open = false")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_page_in_each_language(browser, stand_in):  # noqa: F811
    """Numbers, direction and width; and axe-core finds nothing, in line, at the turn and after it. The colours are
    those of all languages (test_previews.py)."""
    with axe_at_hand(browser):
        for language in LANGUAGES:
            stand_in.waiting(1234)
            open_page(browser, stand_in, language)
            until(browser, lambda page: page.state == "waiting", "in line")
            stream_is_open(stand_in)
            check_numbers(browser, language)
            direction = browser.execute_script("return getComputedStyle(document.body).direction")
            assert direction == ("rtl" if language in RIGHT_TO_LEFT else "ltr"), language
            axe(browser, f"{language} waiting", **WITHOUT_COLOURS)
            check_width(browser, f"language-{language}")
            stand_in.admitted(None)
            until(browser, lambda page: page.state == "active", "let in")
            axe(browser, f"{language} active", **WITHOUT_COLOURS)
            stand_in.ended("left", "left")
            until(browser, lambda page: page.state == "left", "left")
            axe(browser, f"{language} left", **WITHOUT_COLOURS)


def test_a_language_is_chosen_without_the_script(browser, stand_in):  # noqa: F811
    scripts(browser, False)
    open_page(browser, stand_in, "en")
    press(browser, "nav summary", "nav a[lang=ar]", then=lambda page: page.heading == "أنت في قائمة الانتظار", what="Arabic")
    press(browser, "nav summary", "nav a[lang=zh-Hant]", then=lambda page: page.heading == "您正在排隊", what="Chinese")
    assert look(browser).url.endswith("lang=zh-Hant&from=1234")


def test_a_number_takes_its_plural_form_in_the_script(browser, stand_in):  # noqa: F811
    """Polish has three of them; the server's and the script's agree, as the seconds run."""
    open_page(browser, stand_in, "ar")
    for low, high, text in [(0, 119, "بحد أقصى دقيقتين"), (0, 179, "بحد أقصى 3 دقائق"), (0, 900, "بحد أقصى 15 دقيقة")]:
        stand_in.waiting(900 + high, eta_low=low, eta_high=high)
        wait_until(lambda: look(browser).text("eta") == text, PATIENCE, text)
