/* Which programs serve a queue, and how the store is. */
import { h } from './dom.js';
import { bytes, number, known } from './format.js';

/* Workers report eight times in a waiting_ttl. */
const silentAfter = (stats) => Math.max(15000, (stats.waiting_ttl_ms || 600000) / 4);

const badge = (good, text) => h('span', { class: 'badge ' + (good ? 'good' : 'bad') }, text);

/* [{ role, serves, text }]: one row for a role; all workers are one. */
function roles(stats) {
  const workers = stats.programs.filter((program) => program.role === 'worker');
  const here = workers.filter((worker) => worker.reported_ago_ms < silentAfter(stats));
  const rows = stats.programs.filter((program) => program.role !== 'worker')
    .map((program) => ({ role: program.role, serves: program.serves, text: program.serves ? program.id : 'no one holds the lease' }));
  if (workers.length > 0) { /* they report from the first visitor on */
    rows.push({ role: 'workers', serves: here.length === workers.length,
      text: number(here.length) + ' of ' + number(workers.length) + ' report' });
  }
  return rows;
}

/* What is wrong, as sentences. */
export function troubles(stats) {
  const found = roles(stats).filter((row) => !row.serves).map((row) => 'The ' + row.role + ': ' + row.text + '.');
  const store = stats.store || {};
  if (store.memory_limit > 0 && store.memory_used > 0.8 * store.memory_limit) {
    found.push('Redis uses ' + bytes(store.memory_used) + ' of ' + bytes(store.memory_limit) + '.');
  }
  if (store.persists === false) found.push('Redis cannot write to its disk: what happens now would be lost with it.');
  if (store.latency_ms > 100) found.push('Redis is slow: it answers in ' + number(store.latency_ms) + ' ms.');
  if (stats.set_aside > 0) found.push(number(stats.set_aside) + ' entries were set aside as unreadable: run tellerline audit.');
  if (stats.ingest > 1000) found.push('The dispatcher is behind: ' + number(stats.ingest) + ' batches wait in the stream.');
  return found;
}

export function healthTable(stats) {
  const store = stats.store || {};
  const rows = roles(stats).map((row) => h('tr', {}, h('th', { scope: 'row' }, row.role),
    h('td', {}, badge(row.serves, row.serves ? 'serves' : 'away')), h('td', { class: 'soft' }, row.text)));
  const memory = bytes(store.memory_used) + (store.memory_limit > 0 ? ' of ' + bytes(store.memory_limit) : '');
  rows.push(h('tr', {}, h('th', { scope: 'row' }, 'Redis'), h('td', {}, badge(true, 'answers')),
    h('td', { class: 'soft' }, [store.version, known(store.latency_ms) && 'in ' + number(Math.max(1, store.latency_ms)) + ' ms',
      known(store.memory_used) && memory].filter(Boolean).join(', '))));
  return h('table', {}, h('tbody', {}, rows));
}
