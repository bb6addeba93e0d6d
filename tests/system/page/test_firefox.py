# SPDX-License-Identifier: Apache-2.0
"""The waiting page in a second engine: its live tests that need nothing of Chromium's own."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium import webdriver

from browser import be_patient
from firefox import make_new
from test_page_live import (hurried, line, shop, test_a_page_whose_stream_gives_way_asks_instead,  # noqa: F401
                            test_from_the_line_into_the_shop_and_again,
                            test_place_survives_the_worker_that_served_it)

pytestmark = pytest.mark.together(seconds=40)


@pytest.fixture
def browser(one_firefox: webdriver.Remote, start) -> Iterator[webdriver.Remote]:  # pylint: disable=unused-argument
    be_patient(one_firefox)
    yield one_firefox
    make_new(one_firefox)
