/* Which programs serve a queue, and how the store is. */
import { h } from './dom.js';
import { bytes, duration, number, known } from './format.js';

const SILENT_MS = 15000; /* a worker that has not reported for so long is counted as away */

const badge = (good, text) => h('span', { class: 'badge ' + (good ? 'good' : 'bad') }, text);

/* [{ role, serves, text }]: one row for a role; all workers are one. */
function roles(stats) {
  const workers = stats.programs.filter((program) => program.role === 'worker');
  const here = workers.filter((worker) => worker.reported_ms_ago < SILENT_MS);
  const rows = stats.programs.filter((program) => program.role !== 'worker')
    .map((program) => ({ role: program.role, serves: program.serves, text: program.serves ? program.id : 'no one holds the lease' }));
  rows.push({ role: 'workers', serves: here.length > 0 && here.length === workers.length,
    text: number(here.length) + ' of ' + number(workers.length) + ' report' });
  return rows;
}

/* What is wrong, as sentences. */
export function troubles(stats) {
  const found = roles(stats).filter((row) => !row.serves).map((row) => 'The ' + row.role + ': ' + row.text + '.');
  const store = stats.store || {};
  if (known(store.memory) && store.memory_max > 0 && store.memory > 0.8 * store.memory_max) {
    found.push('Redis uses ' + bytes(store.memory) + ' of ' + bytes(store.memory_max) + '.');
  }
  if (store.persistence && store.persistence !== 'ok') found.push('Redis cannot save: ' + store.persistence + '.');
  if (stats.set_aside > 0) found.push(number(stats.set_aside) + ' entries were set aside as unreadable: run tellerline audit.');
  if (stats.ingest > 1000) found.push('The dispatcher is behind: ' + number(stats.ingest) + ' batches wait in the stream.');
  return found;
}

export function healthTable(stats) {
  const store = stats.store || {};
  const rows = roles(stats).map((row) => h('tr', {}, h('th', { scope: 'row' }, row.role),
    h('td', {}, badge(row.serves, row.serves ? 'serves' : 'away')), h('td', { class: 'soft' }, row.text)));
  const memory = bytes(store.memory) + (store.memory_max > 0 ? ' of ' + bytes(store.memory_max) : '');
  rows.push(h('tr', {}, h('th', { scope: 'row' }, 'Redis'), h('td', {}, badge(true, 'answers')),
    h('td', { class: 'soft' }, [known(store.latency_ms) && 'in ' + duration(store.latency_ms).replace(/^0 s$/, 'under 1 s'),
      known(store.memory) && memory].filter(Boolean).join(', '))));
  return h('table', {}, h('tbody', {}, rows));
}
