# SPDX-License-Identifier: Apache-2.0
"""tellerline.js in a second engine: its tests that need nothing of Chromium's own."""
from __future__ import annotations

from test_embedding import (line, opened, site, test_app_keeps_the_place_on_all_its_pages,  # noqa: F401
                            test_browser_that_keeps_no_cookie, test_place_survives_the_worker,
                            test_plain_page_from_the_line_to_the_turn, test_tabs_share_one_stream)
from test_firefox import browser, pytestmark  # noqa: F401
