# SPDX-License-Identifier: Apache-2.0
"""Sound and screen of the waiting page in a second engine."""
from __future__ import annotations

from test_firefox import browser, pytestmark  # noqa: F401
from test_page_attention import (CHIMES, SAMPLE, SCREEN, SILENT, SOUND, becomes, comes_in, open_page, seen,
                                 stand_in, stays, turn_on)  # noqa: F401
from browser import look


def test_nothing_without_being_asked(browser, stand_in):  # noqa: F811
    open_page(browser, stand_in)
    assert look(browser, SCREEN, SOUND).offered == [SCREEN, SOUND]
    comes_in(browser, stand_in)
    stays(browser, SILENT)


def test_a_sound_at_the_turn_and_a_screen_until_then(browser, stand_in):  # noqa: F811
    open_page(browser, stand_in)
    turn_on(browser, SOUND, "You hear this sound when it is your turn.")
    turn_on(browser, SCREEN, "The screen stays on until it is your turn.")
    becomes(browser, lambda now: now["notes"] == SAMPLE and now["locks"] == [True], "a sample, and the screen stays on")
    comes_in(browser, stand_in)
    becomes(browser, lambda now: now["notes"] == SAMPLE + CHIMES and now["locks"] == [False], "it rings")
    assert seen(browser)["notifications"] == []
