/* The past of a queue: points of the history, and what follows from them. */
import { read, queuePath } from './api.js';

/* { points: [{ at, waiting, active, ... }] }, oldest first, from the last `spanMs` ms. */
export async function loadHistory(queue, spanMs, now) {
  const minutes = spanMs > 6 * 3600000;
  const answer = await read(queuePath(queue) + '/history?step_seconds=' + (minutes ? 60 : 10) + '&from=' + new Date(now - spanMs).toISOString());
  return answer.points.map((row) => {
    const point = Object.fromEntries(answer.fields.map((name, i) => [name, row[i]]));
    return Object.assign(point, { at: Date.parse(point.at) });
  });
}

export function pointOf(stats, at) {
  return Object.assign({ at, mode: stats.mode, waiting: stats.waiting, active: stats.active,
    capacity: stats.capacity_now || stats.capacity || 0 }, stats.totals);
}

/* The point that holds at this time. */
function holding(points, at) {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return points[low - 1];
}

/* [[ms, n]]: the value of a field at equal steps. */
export function levels(points, field, from, to, steps) {
  const found = [];
  for (let i = 0; i <= steps; i++) {
    const at = from + (to - from) * i / steps;
    const point = holding(points, at);
    if (point) found.push([at, point[field] || 0]);
  }
  return found;
}

/* [[ms, n]]: by how much a total grew in the minute (or the longer step) that ends there, per minute. */
export function perMinute(points, field, from, to, steps) {
  const found = [];
  const window = Math.max(60000, (to - from) / steps);
  for (let i = 0; i <= steps; i++) {
    const end = from + (to - from) * i / steps;
    const start = Math.max(end - window, points[0].at);
    const after = holding(points, end);
    const before = holding(points, start);
    /* Fewer than before: the queue was created again. */
    if (end - start >= 10000) found.push([end, Math.max(0, (after[field] || 0) - (before[field] || 0)) * 60000 / (end - start)]);
  }
  return found;
}
