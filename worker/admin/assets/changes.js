/* The record of changes: as a table with undo, and as marks on the time axis. */
import { h, setChildren } from './dom.js';
import { ask } from './dialog.js';
import { change, read, queuePath, may } from './api.js';
import { moment, full } from './format.js';

export async function loadChanges(queue) {
  return (await read('/changes?queue=' + encodeURIComponent(queue) + '&limit=50')).changes;
}

const valueOf = (name, value) => name.endsWith('s_at') && value ? full(Date.parse(value)) : words(value);

/* A notice of several languages is an object. */
const words = (value) => (value === null || value === undefined || value === '' ? '–' : typeof value === 'object'
  ? Object.entries(value).map(([language, text]) => '[' + language + '] ' + text).join(' ') : String(value));

/* "capacity 250 → 300", one for each member. */
function differences(entry) {
  const before = entry.before || {};
  const after = entry.after || {};
  const names = [...new Set(Object.keys(before).concat(Object.keys(after)))];
  return names.map((name) => name + ': ' + valueOf(name, before[name]) + ' → ' + valueOf(name, after[name]));
}

/* [{ at, label }], oldest first, of what changes the line's course. */
export function marksOf(changes) {
  return changes.filter((entry) => ['set', 'mode', 'recover', 'draw', 'create'].includes(entry.what)).map((entry) => {
    const found = differences(entry);
    return { at: Date.parse(entry.at), label: (found.length === 1 ? found[0].replace(': ', ' ') : entry.what) + ', ' + entry.who };
  }).sort((a, b) => a.at - b.at);
}

/* What takes the entry back, as a call; null: nothing does. */
function undoOf(entry) {
  const notice = (entry.before && entry.before.notice) || '';
  if (entry.what === 'notice') return ['POST', '/notice', typeof notice === 'object' ? { texts: notice } : { text: notice }];
  const before = Object.keys(entry.before || {});
  if ((entry.what === 'set' || entry.what === 'mode') && before.length > 0) return ['PATCH', '', entry.before];
  return null;
}

export class Changes {
  constructor(queue, who, done) {
    Object.assign(this, { queue, who, done });
    this.rows = new Map(); /* by the id of the entry */
    this.none = h('tr', {}, h('td', { colspan: 5, class: 'soft' }, 'Nothing yet.'));
    this.body = h('tbody', {});
    this.element = h('section', { class: 'panel', 'aria-labelledby': 'changes-head' }, h('h2', { id: 'changes-head' }, 'What was changed'),
      h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {}, ['When', 'Who', 'What', 'Before → after', '']
        .map((text) => h('th', { scope: 'col' }, text || h('span', { class: 'aloud' }, 'Undo'))))), this.body)));
  }

  show(changes, now) {
    this.rows = new Map(changes.map((entry) => [entry.id, this.rows.get(entry.id) || this.row(entry, now)]));
    setChildren(this.body, changes.length ? [...this.rows.values()] : [this.none]);
  }

  row(entry, now) {
    const undo = may(this.who, 'operator') && undoOf(entry);
    const at = Date.parse(entry.at);
    return h('tr', {}, h('td', {}, h('time', { datetime: entry.at, title: full(at) }, moment(at, now))),
      h('td', { title: entry.from }, entry.who), h('td', {}, entry.what),
      h('td', { class: 'told' }, this.told(entry)),
      h('td', {}, undo && h('button', { type: 'button', class: 'small', 'aria-label': 'Undo ' + entry.what + ' of ' + moment(at, now),
        onclick: () => this.undo(entry, undo) }, 'Undo')));
  }

  told(entry) {
    const found = differences(entry).map((text) => h('div', {}, text));
    return found.length <= 5 ? found : h('details', {}, h('summary', {}, found.length + ' settings'), found);
  }

  async undo(entry, [method, path, body]) {
    const says = differences({ before: entry.after, after: entry.before });
    if (await ask({ title: 'Undo this change?', says, confirm: 'Undo', act: () => change(method, queuePath(this.queue) + path, body) })) this.done();
  }
}
