# SPDX-License-Identifier: Apache-2.0
"""A clock that runs faster in a page: what the page does after seconds and minutes need not be waited for so long."""
from __future__ import annotations

from waiting import patient

# The same in all tabs and after a reload. `waits` are the timers that the page has set, by the names of what they call;
# `fired` are those that have ended; `stopped` lets no more of them end.
_SCRIPT = """(function (speed, since) {
  var real = Date, now = real.now, timeout = window.setTimeout, interval = window.setInterval;
  var at = function (ms) { return Math.floor(since + (ms - since) * speed); };
  real.now = function () { return at(now.call(real)); };
  window.Date = new Proxy(real, { construct: function (target, values, made) {
    return Reflect.construct(target, values.length ? values : [real.now()], made);
  } });
  Object.defineProperty(performance, 'timing', { value: { responseStart: at(performance.timing.responseStart) } });
  window.waits = [];
  window.fired = [];
  window.setTimeout = function (step, ms) {
    window.waits.push([step.name, ms]);
    return timeout(function () {
      if (window.stopped) return;
      window.fired.push(ms);
      step();
    }, (ms || 0) / speed);
  };
  window.setInterval = function (step, ms) { return interval(step, (ms || 0) / speed); };
})(%r, %d);"""


def script(speed: float, since: float) -> str:
    """To be the first script of the page. Time passes `speed` times as fast, and has done so since that moment."""
    return _SCRIPT % (speed, since * 1000)


def speed_of(wanted: float) -> float:
    """What this machine can follow, if one that is not slow can follow `wanted`."""
    return max(1.0, wanted / patient(1))
