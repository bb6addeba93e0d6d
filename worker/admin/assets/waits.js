/* How long visitors wait, how long those waited who were let in, and what came true of what they were told. */
import { barChart } from './chart.js';
import { h } from './dom.js';
import { duration, durations, number, percent } from './format.js';

/* "under 1 min", "1 – 5 min", "over 60 min" */
function labels(bounds) {
  return bounds.map((bound, i) => (i ? durations(bounds[i - 1], bound) : 'under ' + duration(bound)))
    .concat('over ' + duration(bounds[bounds.length - 1]));
}

/* What came true of the waits that visitors were told. */
function toldText(eta) {
  return 'Of ' + number(eta.judged) + ' waits told in the last hour, ' + percent(eta.inside_percent / 100) + ' held, '
    + percent(eta.early / eta.judged) + ' came in sooner, ' + percent(eta.late / eta.judged) + ' later. Off by '
    + percent(eta.error_percent / 100) + ' on average.';
}

export function waitCharts(stats) {
  const waits = stats.waits;
  if (!waits) return []; /* a worker of an earlier release */
  const names = labels(waits.bounds_ms);
  const bars = (counts) => names.map((label, i) => ({ label, n: counts[i] }));
  const waiting = bars(waits.waiting);
  if (waits.not_known > 0) waiting.push({ label: 'not known', n: waits.not_known });
  const charts = [barChart('In the line now', waiting)];
  if (stats.waited) charts.push(barChart('Let in, a sample of ' + number(stats.waited.sample) + ' who are on the site', bars(waits.admitted)));
  if (stats.eta) charts.push(h('p', { class: 'soft' }, toldText(stats.eta)));
  return charts;
}
