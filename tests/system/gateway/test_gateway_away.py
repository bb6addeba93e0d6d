# SPDX-License-Identifier: Apache-2.0
"""The page that the gateways answer while no worker does, in a browser."""
from __future__ import annotations

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By

from browser import chromium, visit
from gateways import GATEWAYS, Shops, StandIn, open_shop  # noqa: F401 - a fixture
from tellerline import free_port
from waiting import PATIENCE, wait_until


@pytest.mark.parametrize("open_shop", ["nginx"], indirect=True)
def test_the_page_goes_on_by_itself(open_shop: Shops, tmp_path):  # noqa: F811
    page = (GATEWAYS / "tellerline-away.html").read_text()
    pause = "5 + Math.floor(Math.random() * 11)"
    assert pause in page
    (tmp_path / "tellerline-away.html").write_text(page.replace(pause, "1"))
    port = free_port()
    place = open_shop.alone(port, {"root /etc/nginx;": f"root {tmp_path};"})
    with chromium() as browser:
        def shown() -> str:
            return browser.find_element(By.TAG_NAME, "body").text

        browser.execute_cdp_cmd("Network.setUserAgentOverride", {"userAgent": "tester", "acceptLanguage": "ko,en"})
        visit(browser, f"http://localhost:{place.port}/checkout?seat=1#a")
        assert "순서는 그대로" in shown() and "cannot be reached" not in shown()
        wait_until(lambda: "3번 시도" in shown(), PATIENCE, "it keeps trying, and says so",
                   again_on=WebDriverException)
        browser.execute_cdp_cmd("Network.setUserAgentOverride", {"userAgent": "tester", "acceptLanguage": "fr,en-GB"})
        visit(browser, f"http://localhost:{place.port}/checkout?seat=1")
        assert "cannot be reached" in shown() and "순서" not in shown()
        worker = StandIn(port)
        try:
            wait_until(lambda: "the site: /checkout?seat=1" in shown(), PATIENCE, "on the site",
                       again_on=WebDriverException)
        finally:
            worker.close()
