/* The controls of a queue. Each asks first, and says what it will do. */
import { h } from './dom.js';
import { ask } from './dialog.js';
import { change, readWithTag, queuePath, may } from './api.js';
import { capacityChange, modeChange, rateChange } from './forecast.js';
import { number, people, full, known, exact } from './format.js';
import { NoticeEditor } from './notice.js';

const MODES = [
  { mode: 'open', call: 'open', verb: 'Open' },
  { mode: 'paused', call: 'pause', verb: 'Pause' },
  { mode: 'draining', call: 'drain', verb: 'Drain' },
  { mode: 'closed', call: 'close', verb: 'Close' },
  { mode: 'sold_out', call: 'sell-out', verb: 'Sold out', danger: true },
  { mode: 'passthrough', call: 'passthrough', verb: 'Pass through', danger: true },
];

/* From "sold out" only these follow (docs/operators/states.md). */
const allowed = (from, to) => from !== 'sold_out' || to === 'closed' || to === 'passthrough';

/* As a field for time and date takes it. Summer time is that of the day, not of today. */
const localTime = (when) => new Date(when.getTime() - when.getTimezoneOffset() * 60000).toISOString().slice(0, 16);

const textOf = (n) => (known(n) ? String(n) : '');

/* Shows what is set now, unless something else is being typed. */
function showNumber(input, before, now) {
  const typing = document.activeElement === input && input.value !== textOf(before);
  if (before !== now && !typing) input.value = textOf(now);
}

export class Controls {
  /* done: called after each change. */
  constructor(who, done) {
    this.who = who;
    this.done = done;
    this.stats = null;
    this.element = this.build();
  }

  path(rest) {
    return queuePath(this.stats.queue) + (rest || '');
  }

  async run(question) {
    if (await ask(question)) this.done();
  }

  build() {
    const locked = !may(this.who, 'operator');
    this.buttons = MODES.map((mode) => h('button', { type: 'button', class: mode.danger ? 'danger' : '', disabled: locked,
      'aria-disabled': 'true', 'data-mode': mode.mode, onclick: () => this.setMode(mode) }, mode.verb));
    this.capacity = h('input', { type: 'number', min: 0, max: 10000000, step: 1, id: 'capacity', disabled: locked });
    this.capacityForm = h('form', { onsubmit: (event) => this.setCapacity(event) }, h('label', { for: 'capacity' }, 'Capacity'),
      h('button', { type: 'button', class: 'small', disabled: locked, 'aria-label': 'Capacity 10 % less', onclick: () => this.step(-1) }, '−'),
      this.capacity,
      h('button', { type: 'button', class: 'small', disabled: locked, 'aria-label': 'Capacity 10 % more', onclick: () => this.step(1) }, '+'),
      h('button', { class: 'main', disabled: locked }, 'Review change'));
    this.admit = h('input', { type: 'number', min: 0, max: 10000000, step: 1, id: 'rate-admit', disabled: locked });
    this.every = h('span', { class: 'soft' });
    this.rateForm = h('form', { onsubmit: (event) => this.setRate(event) }, h('label', { for: 'rate-admit' }, 'Rate'), this.admit, this.every,
      h('button', { class: 'main', disabled: locked }, 'Review change'));
    this.notice = new NoticeEditor(locked, (rest) => this.path(rest), (question) => this.run(question));
    return h('section', { class: 'panel', 'aria-labelledby': 'control-head' }, h('h2', { id: 'control-head', tabindex: -1 }, 'Control'),
      locked && h('p', { class: 'soft' }, 'Your token may look, not change.'),
      h('div', { class: 'row', role: 'group', 'aria-label': 'Mode' }, this.buttons), h('h3', {}, 'How many'), this.capacityForm,
      this.rateForm, h('h3', {}, 'Notice'), this.notice.element, h('h3', {}, 'Opening'), this.buildOpening(locked), h('h3', {}, 'Data'), this.buildData());
  }

  buildOpening(locked) {
    this.opensAt = h('p', { class: 'soft' });
    return h('div', {}, this.opensAt, h('div', { class: 'row' },
      h('button', { type: 'button', disabled: locked, onclick: () => this.setOpening() }, 'Set the opening')));
  }

  buildData() {
    this.exports = ['csv', 'jsonl'].map((format) => h('a', { download: true }, format === 'csv' ? 'CSV' : 'JSON lines'));
    return h('div', { class: 'row' }, 'Export all visitors: ', this.exports[0], this.exports[1],
      h('button', { type: 'button', class: 'danger', disabled: !may(this.who, 'admin'), onclick: () => this.deleteQueue() }, 'Delete queue'));
  }

  /* Does this mode follow that of now? Its button is not disabled otherwise: it may have the focus. */
  follows(mode) {
    return Boolean(this.stats) && mode !== this.stats.mode && allowed(this.stats.mode, mode);
  }

  /* Shows these numbers; what is being typed stays. */
  update(stats) {
    const before = this.stats;
    this.stats = stats;
    for (const button of this.buttons) {
      const mode = button.dataset.mode;
      button.setAttribute('aria-pressed', String(mode === stats.mode));
      button.setAttribute('aria-disabled', String(!this.follows(mode)));
    }
    this.capacityForm.hidden = stats.policy === 'rate';
    this.rateForm.hidden = !stats.rate;
    showNumber(this.capacity, before && before.capacity, stats.capacity);
    if (stats.rate) showNumber(this.admit, before && before.rate && before.rate.admit, stats.rate.admit);
    if (stats.rate) this.every.textContent = 'in each ' + exact(stats.rate.every_ms);
    this.notice.update(stats);
    const opens = stats.opens_at ? full(Date.parse(stats.opens_at)) : 'no time is set';
    const text = 'Opens: ' + opens + (stats.order === 'draw' ? ', by a draw' : ', first come first served');
    if (this.opensAt.textContent !== text) this.opensAt.textContent = text;
    this.exports[0].href = '/v1/admin' + this.path('/export?format=csv');
    this.exports[1].href = '/v1/admin' + this.path('/export?format=jsonl');
  }

  setMode(mode) {
    if (!this.follows(mode.mode)) return;
    const verb = mode.mode === 'open' && this.stats.mode === 'paused' ? 'Resume' : mode.verb;
    this.run({ title: verb + ' ' + this.stats.queue + '?', says: modeChange(this.stats, mode.mode), confirm: verb, danger: mode.danger,
      typed: mode.danger ? this.stats.queue : undefined, act: () => change('POST', this.path('/' + mode.call), {}) });
  }

  step(direction) {
    const now = Number(this.capacity.value) || 0;
    this.capacity.value = Math.max(0, now + direction * Math.max(1, Math.round(now / 10)));
  }

  /* Changes what was shown, and nothing that another operator has changed meanwhile. */
  async setSettings(title, says, settings) {
    const { etag } = await readWithTag(this.path());
    this.run({ title, says, confirm: 'Change', act: () => change('PATCH', this.path(), settings, etag) });
  }

  setCapacity(event) {
    event.preventDefault();
    const capacity = Number(this.capacity.value);
    if (this.capacity.value === '' || capacity === this.stats.capacity) return;
    this.setSettings('Change the capacity of ' + this.stats.queue + '?', capacityChange(this.stats, capacity),
      { capacity: this.stats.feedback === null ? capacity : { max: capacity } });  // a bare number would end the steering
  }

  setRate(event) {
    event.preventDefault();
    const admit = Number(this.admit.value);
    if (this.admit.value === '' || admit === this.stats.rate.admit) return;
    this.setSettings('Change the rate of ' + this.stats.queue + '?', rateChange(this.stats, admit), { rate: { admit } });
  }

  async setOpening() {
    const { body, etag } = await readWithTag(this.path()); /* the numbers may be a second old */
    const { opens_at: opensAt, order } = body.settings;
    const at = opensAt ? localTime(new Date(opensAt)) : '';
    const time = h('input', { type: 'datetime-local', id: 'opens-at', value: at });
    const draw = h('select', { id: 'order' }, h('option', { value: 'arrival' }, 'first come, first served'),
      h('option', { value: 'draw', selected: order === 'draw' }, 'a draw among all who are there'));
    this.run({ title: 'The opening of ' + this.stats.queue, says: ['Until then visitors join and wait. No time: it is open.'],
      fields: [h('label', { class: 'field' }, 'Opens at (your time)', time), h('label', { class: 'field' }, 'Order of admission', draw)],
      confirm: 'Set', act: () => change('PATCH', this.path(),
        { order: draw.value, opens_at: time.value ? new Date(time.value).toISOString() : null }, etag) });
  }

  deleteQueue() {
    const stats = this.stats;
    this.run({ title: 'Delete ' + stats.queue + '?', says: [people(stats.waiting) + ' lose their places, and ' + people(stats.active)
      + ' their sessions.', 'Its ' + number(stats.totals.joined) + ' joins, its history and its settings are gone. Export them first.',
    'Tickets of this queue become worthless, also if you create it again.'], typed: stats.queue, danger: true, confirm: 'Delete',
    act: async () => {
      await change('DELETE', this.path() + '?confirm=' + encodeURIComponent(stats.queue));
      location.hash = '#/';
    } });
  }
}
