/* All queues at a glance. */
import { h, setChildren } from './dom.js';
import { number, rate, duration } from './format.js';
import { ask } from './dialog.js';
import { readAll, change, may } from './api.js';
import { pace } from './forecast.js';
import { stateBadge } from './queue.js';

const EVERY = 2000;

const HEADS = [['Queue', ''], ['State', ''], ['Waiting', 'n'], ['On the site', 'n'], ['Let in a minute', 'n'], ['Joined a minute', 'n'],
  ['Oldest wait', 'n']];

export class Overview {
  constructor(who, report) {
    Object.assign(this, { who, report });
    this.rows = {}; /* by the name of the queue */
    this.body = h('tbody', {});
    this.empty = h('p', { class: 'soft', hidden: true }, 'There is no queue yet.');
    this.element = h('div', {}, h('div', { class: 'head' }, h('h1', {}, 'Queues'),
      h('button', { type: 'button', class: 'main', disabled: !may(who, 'operator'), onclick: () => this.create() }, 'Create a queue')),
    h('section', { class: 'panel' }, this.empty, h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {},
      HEADS.map(([text, kind]) => h('th', { scope: 'col', class: kind }, text)))), this.body))), this.nodes = h('p', { class: 'soft', hidden: true }));
    this.load();
  }

  async load() {
    try {
      this.show(await readAll('/queues', 'queues', 'queue'));
      this.report('', Date.now());
    } catch (problem) {
      this.report(problem.status === 401 ? null : problem.message);
    }
    if (!this.closed) this.timer = setTimeout(() => this.load(), EVERY);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }

  show(queues) {
    this.empty.hidden = queues.length > 0;
    const rows = queues.sort((a, b) => (a.queue < b.queue ? -1 : 1)).map((stats) => [stats.queue, this.row(stats)]);
    this.rows = Object.fromEntries(rows);
    setChildren(this.body, rows.map(([, row]) => row));
    this.showNodes(queues);
  }

  /* How many queues each node of a Redis Cluster has, and which is away. */
  showNodes(queues) {
    const nodes = {};
    for (const { node, away } of queues) if (node) nodes[node] = { n: (nodes[node] || { n: 0 }).n + 1, away };
    const text = Object.keys(nodes).sort().map((node) => node + ' has ' + number(nodes[node].n) + (nodes[node].away ? ', and is away' : ''));
    this.nodes.hidden = text.length === 0;
    this.nodes.textContent = 'Queues on the nodes of Redis: ' + text.join('; ') + '.';
  }

  /* The one that is there with new numbers, or a new one. The link stays, because it may have the focus. */
  row(stats) {
    const row = this.rows[stats.queue]
      || h('tr', {}, h('td', {}, h('a', { href: '#/queues/' + encodeURIComponent(stats.queue) }, stats.queue)));
    setChildren(row, [row.firstElementChild, ...this.cells(stats)]);
    return row;
  }

  cells(stats) {
    if (stats.trouble) return [h('td', { colspan: 6 }, h('span', { class: 'badge bad' }, stats.away ? 'away' : 'damaged'), ' ', stats.trouble)];
    const going = pace(stats);
    const badge = stateBadge(stats);
    return [h('td', {}, h('span', { class: 'badge ' + badge.kind }, badge.text)), h('td', { class: 'n' }, number(stats.waiting)),
      h('td', { class: 'n' }, number(stats.active) + (stats.capacity_now === null ? '' : ' / ' + number(stats.capacity_now))),
      h('td', { class: 'n' }, going ? rate(going.admitted) : '–'), h('td', { class: 'n' }, going ? rate(going.joined) : '–'),
      h('td', { class: 'n' }, duration(stats.oldest_wait_ms))];
  }

  async create() {
    const field = (label, attributes) => {
      const input = h('input', attributes);
      return { input, label: h('label', { class: 'field' }, label, input) };
    };
    const name = field('Name (a-z, 0-9, . _ -)', { required: true, pattern: '[a-z0-9][a-z0-9._\\-]{0,62}', id: 'new-name', autocomplete: 'off' });
    const capacity = field('Capacity: how many may be on the site at once', { type: 'number', min: 0, max: 10000000, value: 100, required: true, id: 'new-capacity' });
    const lanes = field('Lanes, separated by commas: the first is served first', { id: 'new-lanes', value: 'normal' });
    const target = field('Where visitors go when it is their turn (address)', { type: 'url', maxlength: 1023, id: 'new-target', placeholder: 'https://shop.example/checkout' });
    const paused = h('input', { type: 'checkbox', id: 'new-paused', checked: true });
    const act = async () => {
      const settings = { capacity: Number(capacity.input.value) };
      const names = lanes.input.value.split(',').map((lane) => lane.trim()).filter(Boolean);
      if (names.length) Object.assign(settings, { lanes: names, default_lane: names[names.length - 1] });
      if (target.input.value) settings.target_url = target.input.value;
      if (paused.checked) settings.mode = 'paused';
      await change('POST', '/queues', { name: name.input.value, settings });
    };
    if (await ask({ title: 'Create a queue', says: [], confirm: 'Create', act,
      fields: [name.label, capacity.label, lanes.label, target.label, h('label', {}, paused, ' Paused at first: visitors join, no one is let in')] })) {
      location.hash = '#/queues/' + encodeURIComponent(name.input.value);
    }
  }
}
