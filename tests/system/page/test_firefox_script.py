# SPDX-License-Identifier: Apache-2.0
"""The waiting page's script in a second engine: its tests that need nothing of Chromium's own."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from page_stand_in import StandIn
from test_firefox import browser  # noqa: F401
from test_page_script import (test_a_full_line_is_said_until_there_is_a_place,  # noqa: F401
                              test_a_page_whose_script_fails_reloads_itself, test_a_page_whose_script_runs_does_not_reload,
                              test_a_status_of_a_later_release_reloads_the_page, test_asks_no_sooner_than_it_was_told_to,
                              test_back_within_seconds_of_the_end_of_the_trouble, test_countdown_to_the_opening,
                              test_goes_on_and_says_so_first, test_leaving_needs_two_steps, test_modes_come_and_go,
                              test_no_promise_of_a_place_after_it_was_kept_so_long, test_passthrough_takes_those_who_wait_in,
                              test_pause_comes_and_goes, test_position_moves_and_progress_never_goes_back,
                              test_return_address_comes_before_the_target, test_server_restart_keeps_the_place)
from test_page_tabs import test_keeps_its_cookie_where_questions_are_held, test_listens_only_to_tabs_with_the_same_place  # noqa: F401

pytestmark = pytest.mark.together(seconds=90)


@pytest.fixture
def stand_in(browser) -> Iterator[StandIn]:  # noqa: F811
    server = StandIn()
    server.start()
    yield server
    server.stop()
