# SPDX-License-Identifier: Apache-2.0
"""An operator without a mouse: keys go to what has the focus, and every stop has to be one that a person sees."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tellerline import PATIENCE
from waiting import wait_until

#: More stops than any page has.
MANY = 150

# What has the focus. Remembers it as keyboardAt, and says whether it is the same element as at the last look, and
# whether the one of the last look shows that it lost the focus.
_LOOK = """
const at = document.activeElement === document.body ? null : document.activeElement;
const marks = (e) => { const s = getComputedStyle(e);
    return [s.outlineStyle, s.outlineWidth, s.outlineColor, s.boxShadow, s.borderColor, s.backgroundColor].join(' '); };
const last = window.keyboardAt || {};
const unmarked = last.element && last.element !== at && last.element.isConnected && marks(last.element) === last.marks;
const found = { name: '', tag: '', id: '', value: '', dialog: false, hidden: '',
    same: Boolean(at) && last.element === at, unmarked: unmarked ? last.name : '' };
if (at) {
    const labels = at.labels && at.labels.length ? at.labels : [at];
    const label = at.getAttribute('aria-label') || labels[0].innerText || '';
    const box = at.getBoundingClientRect(), style = getComputedStyle(at);
    const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    const mark = parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset);
    const inside = (room) => box.left - mark >= room.left - 1 && box.right + mark <= room.right + 1
        && (box.height > innerHeight || (box.top - mark >= room.top - 1 && box.bottom + mark <= room.bottom + 1));
    const rooms = [{ left: 0, top: 0, right: innerWidth, bottom: innerHeight }];
    for (let e = at.parentElement; e !== document.body && e !== document.documentElement; e = e.parentElement)
        if (getComputedStyle(e).overflowX !== 'visible') rooms.push(e.getBoundingClientRect());
    const cut = rooms.find((room) => !inside(room));
    Object.assign(found, { name: label.trim().split('\\n')[0].trim(), tag: at.localName, id: at.id,
        value: at.value || '', dialog: Boolean(at.closest('dialog')) });
    if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2) found.hidden = 'has no outline';
    else if (cut) found.hidden = 'is cut: ' + JSON.stringify([box, cut, mark]);
    else if (box.height <= innerHeight && !at.contains(hit))
        found.hidden = 'is covered by ' + (hit ? hit.outerHTML.slice(0, 120) : 'nothing');
}
window.keyboardAt = at ? { element: at, marks: marks(at), name: found.name } : null;
return found;
"""


@dataclass(frozen=True)
class Stop:
    """What has the focus; without a tag, nothing."""

    name: str      # label or text, its first line
    tag: str
    id: str
    value: str
    dialog: bool   # in the dialog
    hidden: str    # why a person does not see where the focus is
    same: bool     # the very element of the last look
    unmarked: str  # the one of the last look, if it looks as it did with the focus


class Keyboard:
    """Only keys: no clicks, and no focus from a script."""

    def __init__(self, browser: webdriver.Chrome) -> None:
        self.browser = browser
        # The window stays the active one when Tab leaves the page.
        browser.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})

    def look(self) -> Stop:
        return Stop(**self.browser.execute_script(_LOOK))

    def shown(self, stop: Stop) -> Stop:
        """A person sees where it is. The page may scroll for a moment."""
        assert not stop.unmarked, f"{stop.unmarked!r} looks the same with and without the focus"
        if stop.hidden:
            try:
                wait_until(lambda: not self.look().hidden, PATIENCE, "one sees where the focus is", 0.05)
            except AssertionError as error:
                raise AssertionError(f"{error}: {self.look()}") from error
        return stop

    def at(self) -> Stop:
        """What has the focus, which a person sees."""
        stop = self.look()
        assert stop.tag, "nothing has the focus"
        return self.shown(stop)

    def press(self, *keys: str) -> None:
        """Each after the other; one alone may be held with shift or control: SHIFT + TAB."""
        for key in keys:
            held, last = key[:-1], key[-1]
            chain = ActionChains(self.browser)
            for one in held:
                chain.key_down(one)
            chain.send_keys(last)
            for one in held:
                chain.key_up(one)
            chain.perform()

    def type(self, text: str) -> None:
        """Instead of what the field has."""
        self.press(Keys.CONTROL + "a")
        ActionChains(self.browser).send_keys(text).perform()

    def until(self, condition: Callable[[Stop], object], what: str) -> Stop:
        """Waits until the focus is there."""
        last: Stop | None = None

        def found() -> bool:
            nonlocal last
            last = self.look()
            return bool(condition(last))

        try:
            wait_until(found, PATIENCE, what, 0.05)
        except AssertionError as error:
            raise AssertionError(f"{error}; the focus is at {last}") from error
        return self.at()

    def to(self, name: str, key: str = Keys.TAB) -> Stop:
        """Presses the key until the control with this name has the focus. What begins like it counts, too."""
        seen: list[str] = []
        while len(seen) < MANY:
            self.press(key)
            stop = self.look()
            if not stop.tag:
                assert seen.count("") < 2, f"no way to {name!r}: {seen}"
                seen.append("")
                continue
            if self.shown(stop).name.startswith(name):
                return stop
            seen.append(stop.name)
        raise AssertionError(f"no way to {name!r}: {seen}")

    def walk(self, key: str = Keys.TAB) -> list[Stop]:
        """All stops of the page from its begin, or backwards from its end, until it is left or comes round."""
        stops: list[Stop] = []
        while len(stops) < MANY:
            self.press(key)
            stop = self.look()
            if not stop.tag or (stops and (stop.name, stop.id) == (stops[0].name, stops[0].id)):
                return stops
            assert not stop.same, f"a trap: {stop}"
            stops.append(self.shown(stop))
        raise AssertionError(f"a trap: {stops}")
