/* Graphs over time as SVG: steps of counts, with changes marked on the time axis. */
import { h, svg } from './dom.js';
import { number, minute, moment } from './format.js';

const LEFT = 44;
const RIGHT = 8;
const TOP = 22;
const BOTTOM = 22;

/* A round number at or above n. */
function ceiling(n) {
  if (n <= 5) return 5;
  const power = Math.pow(10, Math.floor(Math.log10(n)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((f) => f * power).find((f) => f >= n);
}

/* Times of the axis: round ones, at most `most`. */
function ticks(from, to, most) {
  const steps = [60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800].map((s) => s * 1000);
  const step = steps.find((s) => (to - from) / s <= most) || steps[steps.length - 1];
  const offset = new Date(from).getTimezoneOffset() * 60000;
  const found = [];
  for (let t = Math.ceil((from - offset) / step) * step + offset; t <= to; t += step) found.push(t);
  return found;
}

function path(points, x, y, area) {
  let text = '';
  points.forEach((point, i) => {
    text += (i === 0 ? 'M' : 'L') + x(point[0]).toFixed(1) + ' ' + y(point[1]).toFixed(1);
  });
  if (area && points.length) {
    text += 'L' + x(points[points.length - 1][0]).toFixed(1) + ' ' + y(0) + 'L' + x(points[0][0]).toFixed(1) + ' ' + y(0) + 'Z';
  }
  return text;
}

/*
 * options: from, to (ms), width, height, title, series: [{ name, label, points: [[ms, n]], area }], marks: [{ at, label }].
 * The figure has the numbers of its end as text, for those who cannot see it.
 */
export function timeChart(options) {
  const { from, to, width, height, series, marks } = options;
  const most = ceiling(Math.max(1, ...series.flatMap((one) => one.points.map((point) => point[1]))));
  const x = (t) => LEFT + (width - LEFT - RIGHT) * (t - from) / Math.max(1, to - from);
  const y = (n) => TOP + (height - TOP - BOTTOM) * (1 - n / most);
  const summary = options.title + ': ' + series.map((one) => {
    const last = one.points[one.points.length - 1];
    return one.label + ' ' + (last ? number(last[1]) : 'not known');
  }).join(', ');
  const image = svg('svg', { class: 'chart', viewBox: '0 0 ' + width + ' ' + height, role: 'img', 'aria-label': summary });
  for (let i = 0; i <= 4; i++) {
    const n = most * i / 4;
    image.append(svg('line', { class: 'grid', x1: LEFT, x2: width - RIGHT, y1: y(n), y2: y(n) }),
      svg('text', { x: LEFT - 6, y: y(n) + 4, 'text-anchor': 'end' }, number(n)));
  }
  for (const t of ticks(from, to, width / 100)) {
    image.append(svg('text', { x: x(t), y: height - 6, 'text-anchor': 'middle' }, to - from > 86400000 ? moment(t, 0) : minute(t)));
  }
  for (const one of series) {
    if (one.area) image.append(svg('path', { class: 'area', d: path(one.points, x, y, true) }));
  }
  for (const one of series) image.append(svg('path', { class: one.name, d: path(one.points, x, y, false) }));
  let labelled = -Infinity;
  for (const mark of marks.filter((m) => m.at >= from && m.at <= to)) {
    const at = x(mark.at);
    image.append(svg('line', { class: 'mark', x1: at, x2: at, y1: TOP - 6, y2: y(0) }, svg('title', {}, mark.label)));
    const long = mark.label.length * 6;
    const last = at + long > width - RIGHT;
    const start = last ? at - 4 - long : at + 4;
    if (start < labelled) continue; /* it would cover the one before; the title and the table have it */
    labelled = start + long + 8;
    image.append(svg('text', { x: at + (last ? -4 : 4), y: TOP - 8, 'text-anchor': last ? 'end' : 'start' }, mark.label));
  }
  const keys = series.map((one) => h('li', {}, svg('svg', { class: 'chart', viewBox: '0 0 24 10', 'aria-hidden': 'true' },
    svg('path', { class: one.name, d: 'M0 5L24 5' })), one.label));
  return h('figure', {}, image, h('ul', { class: 'keys' }, keys));
}

/* Bars of shares: [{ label, n }]. */
export function barChart(title, bars) {
  const most = Math.max(1, ...bars.map((bar) => bar.n));
  return h('table', { class: 'bars' }, h('caption', {}, title), h('tbody', {}, bars.map((bar) => h('tr', {},
    h('th', { scope: 'row' }, bar.label), h('td', { class: 'n' }, number(bar.n)),
    h('td', {}, svg('svg', { class: 'chart', viewBox: '0 0 200 12', 'aria-hidden': 'true', preserveAspectRatio: 'none' },
      svg('rect', { class: 'bar', x: 0, y: 1, width: 200 * bar.n / most, height: 10 })))))));
}
