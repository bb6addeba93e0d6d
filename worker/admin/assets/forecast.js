/* What will be, if things go on as in the last minute; and what a change would change. */
import { duration, exact, number, people, known, minute } from './format.js';

const sum = (rates, names) => names.reduce((total, name) => total + (rates[name] || 0), 0);

/* Per minute: let in, joined, gave up. null: not known yet. */
export function pace(stats) {
  const rates = stats.per_minute;
  if (!rates) return null;
  return { admitted: rates.admitted || 0, joined: rates.joined || 0, gaveUp: sum(rates, ['left', 'absent']) };
}

/* How long the last in line will wait, ms; null: not known; Infinity: no one is let in. */
export function lastWait(waiting, perMinute) {
  if (!known(perMinute)) return null;
  if (waiting === 0) return 0;
  return perMinute > 0 ? waiting / perMinute * 60000 : Infinity;
}

export const waitText = (ms) => (ms === null ? 'not known yet' : ms === Infinity ? 'no end in sight' : duration(ms));

/* When the line is empty, in a few words. */
export function emptyAt(stats, now) {
  const going = pace(stats);
  if (stats.waiting === 0) return 'no one waits';
  if (!going) return 'forecast in a minute';
  const net = going.admitted + going.gaveUp - going.joined;
  if (net > 0.5) return 'empty at about ' + minute(now + stats.waiting / net * 60000);
  if (net < -0.5) return 'grows by ' + number(-net) + ' a minute';
  return 'stays as long as it is';
}

/* A duration of the settings, "10m", in ms. */
export const msOf = (text) => {
  const found = /^(\d+)(ms|s|m|h|d)$/.exec(text || '');
  return found ? Number(found[1]) * { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 }[found[2]] : 0;
};

/* Admissions a minute that the rate allows; Infinity without a rate. */
export const rateLimit = (rate) => (rate && rate.every_ms > 0 ? rate.admit * 60000 / rate.every_ms : Infinity);

/* The sentences of a change of capacity. */
export function capacityChange(stats, capacity) {
  const before = stats.capacity_now || 0;
  const says = [number(before) + ' → ' + number(capacity) + ' people may be in at once; now ' + number(stats.active) + ' are.'];
  const going = pace(stats);
  if (capacity === 0) {
    says.push('No one is let in from now on. ' + people(stats.waiting) + ' wait and keep their places.');
  } else if (going && before > 0 && stats.waiting > 0 && going.admitted > 0) {
    const limit = rateLimit(stats.rate);
    const then = Math.min(limit, going.admitted * capacity / before);
    says.push('The last in line waits about ' + waitText(lastWait(stats.waiting, going.admitted)) + ' → '
      + waitText(lastWait(stats.waiting, then)) + ', if visits last as long as now.');
    if (then === limit) says.push('The rate of ' + number(limit) + ' a minute is what limits then.');
  }
  if (capacity > stats.active) {
    says.push('At once: up to ' + number(Math.min(capacity - stats.active, stats.waiting)) + ' more are let in.');
  } else if (capacity < stats.active) {
    says.push('No one is sent away: until ' + people(stats.active - capacity) + ' have left the site, no one new is let in.');
  }
  return says;
}

/* The sentences of a change of the rate. */
export function rateChange(stats, admit) {
  const rate = Object.assign({}, stats.rate, { admit });
  const going = pace(stats);
  const says = [number(stats.rate.admit) + ' → ' + number(admit) + ' in each ' + exact(rate.every_ms) + '.'];
  if (going && stats.policy === 'rate') {
    says.push('The last in line waits about ' + waitText(lastWait(stats.waiting, rateLimit(stats.rate))) + ' → '
      + waitText(lastWait(stats.waiting, rateLimit(rate))) + '.');
  }
  return says;
}

/* What each mode means for those who are there. */
export function modeChange(stats, mode) {
  const waiting = people(stats.waiting);
  const inside = people(stats.active) + (stats.active === 1 ? ' who is in stays in.' : ' who are in stay in.');
  const says = {
    open: ['Visitors join and are let in.', waiting + ' in line now.'],
    paused: ['No one is let in until you resume. Visitors still join.', waiting + ' keep their places.', inside],
    draining: ['No one new can join.', waiting + ' in line are served as before.', inside],
    closed: ['No one joins and no one is let in.', waiting + ' read that it is closed, and keep their places.', inside],
    sold_out: ['No one joins and no one is let in. The page says "Sold out".',
      waiting + ' read it now; those who leave do not come back. To open again takes two steps: close, then open.', inside],
    passthrough: ['Everyone gets in, past the line, and nothing limits how many.',
      waiting + ' in line are sent on within seconds.', 'The line goes on where it stood when you open again.'],
  };
  return says[mode];
}
