/* Numbers and times as people read them. */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const clockTime = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
const minuteTime = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false });
const dayTime = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hour12: false });
const fullTime = new Intl.DateTimeFormat(undefined,
  { year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false,
    timeZoneName: 'short' });

export const known = (value) => value !== undefined && value !== null;
export const number = (n) => (known(n) ? whole.format(n) : '–');
export const rate = (n) => (known(n) ? (n < 10 ? short : whole).format(n) : '–');
export const percent = (share) => (known(share) ? short.format(100 * share) + ' %' : '–');

export const clock = (ms) => clockTime.format(new Date(ms));
export const minute = (ms) => minuteTime.format(new Date(ms));
export const full = (ms) => (ms ? fullTime.format(new Date(ms)) : '–');
/* The shorter of both that is clear. */
export const moment = (ms, now) => (Math.abs(ms - now) < 12 * 3600000 ? clock(ms) : dayTime.format(new Date(ms)));

/* "45 s", "9 min", "2 h 10 min", "3 d" */
export function duration(ms) {
  if (!known(ms)) return '–';
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return seconds + ' s';
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return minutes + ' min';
  if (minutes < 2880) return Math.floor(minutes / 60) + ' h' + (minutes % 60 ? ' ' + (minutes % 60) + ' min' : '');
  return Math.round(minutes / 1440) + ' d';
}

/* The same without rounding, for settings. */
export const exact = (ms) => (ms % 60000 === 0 ? ms / 60000 + ' min' : ms % 1000 === 0 ? ms / 1000 + ' s' : ms + ' ms');

/* "23 – 24 min", "45 s – 2 min" */
export function durations(from, to) {
  const [first, last] = [duration(from), duration(to)];
  const unit = (text) => text.replace(/^\d+ /, '');
  if (first === last) return first;
  return (unit(first) === unit(last) && /^\d+ \w+$/.test(last) ? first.replace(/ .*/, '') : first) + ' – ' + last;
}

export function bytes(n) {
  if (!known(n)) return '–';
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (n < 1024 || unit === 'GiB') return short.format(n) + ' ' + unit;
    n /= 1024;
  }
  return '';
}

export const people = (n) => (n === 1 ? '1 person' : number(n) + ' people');
