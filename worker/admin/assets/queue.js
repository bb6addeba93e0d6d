/* The page of one queue: its numbers once a second, its past, and its controls. */
import { h, setText, setClass } from './dom.js';
import { number, rate, percent, duration, durations, exact, people, clock, known } from './format.js';
import { queuePath, read, whoAmI } from './api.js';
import { emptyAt, lastWait, msOf, pace, rateLimit, waitText } from './forecast.js';
import { timeChart } from './chart.js';
import { levels, loadHistory, perMinute, pointOf } from './history.js';
import { Controls } from './controls.js';
import { Changes, loadChanges, marksOf } from './changes.js';
import { Sales } from './sales.js';
import { visitorPanel } from './visitor.js';
import { healthTable, troubles } from './health.js';
import { Webhooks, webhookTroubles } from './webhooks.js';
import { waitCharts } from './waits.js';

const SPANS = [[1800000, '30 min'], [7200000, '2 h'], [86400000, '24 h'], [604800000, '7 d']];
const STEPS = 120;
const CHANGES_EVERY = 10000;
const REDRAW_EVERY = 5000;

const MODE_WORDS = { open: 'open', paused: 'paused', draining: 'draining', closed: 'closed', sold_out: 'sold out', passthrough: 'everyone gets in' };

export function stateBadge(stats) {
  const good = stats.mode === 'open' && stats.phase === 'open';
  const bad = stats.mode === 'passthrough' || stats.phase === 'recovering';
  const text = MODE_WORDS[stats.mode] + (stats.phase !== 'open' ? ' · ' + stats.phase : good && stats.capacity_now === 0 ? ' · no one is let in' : '');
  return { text, kind: good && stats.capacity_now !== 0 ? 'good' : bad ? 'bad' : 'warn' };
}

function policyText(stats) {
  const parts = [];
  if (stats.policy !== 'rate') parts.push(number(stats.capacity_now) + ' at once' + (stats.feedback !== null ? ' (steered, at most ' + number(stats.capacity) + ')' : ''));
  if (stats.rate) parts.push(number(stats.rate.admit) + ' in each ' + exact(stats.rate.every_ms));
  return parts.join(', ');
}

/* What an operator should know at once. */
function alerts(stats) {
  const found = troubles(stats).concat(webhookTroubles(stats));
  const going = pace(stats);
  if (stats.waiting > 0 && stats.mode === 'paused') found.push('Paused: ' + people(stats.waiting) + ' wait and no one is let in.');
  if (stats.waiting > 0 && stats.capacity_now === 0) found.push('The capacity is 0: no one is let in.');
  if (stats.feedback === false) found.push('The site does not report its load: the capacity stays at the last safe value.');
  if (stats.recovery) found.push('The store lost the line. ' + number(stats.recovery.restored) + ' of about ' + number(stats.recovery.lost) + ' are back.');
  if (going && going.admitted > 0 && stats.per_minute.unclaimed > 0.15 * going.admitted) {
    found.push(percent(stats.per_minute.unclaimed / going.admitted) + ' of those let in do not show up in time.');
  }
  return found;
}

export class QueuePage {
  constructor(name, who, report) {
    Object.assign(this, { name, who, report, points: [], changes: [], span: 7200000, stats: null, drawnAt: 0, changesAt: 0 });
    this.offset = 0; /* of the store's clock */
    this.element = this.build();
    this.resized = new ResizeObserver(() => {
      if (this.line.clientWidth !== this.drawnWidth) this.draw();
    });
    this.resized.observe(this.line);
    this.connect();
    this.load();
  }

  now() {
    return Date.now() + this.offset;
  }

  build() {
    this.badge = h('span', { class: 'badge' });
    this.policy = h('p', {});
    this.at = h('p', {});
    this.alert = h('div', { role: 'status' });
    this.tiles = {};
    const tile = (key, label) => {
      this.tiles[key] = [h('dd', {}, '–'), h('dd', {})];
      return h('div', { class: 'tile' }, h('dt', {}, label), this.tiles[key]);
    };
    const tiles = h('dl', { class: 'tiles' }, tile('waiting', 'Waiting'), tile('active', 'On the site'), tile('admitted', 'Let in a minute'),
      tile('wait', 'Waited until let in'), tile('gaveUp', 'Gave up a minute'), tile('noShows', 'Did not show up'));
    this.spans = SPANS.map(([ms, label]) => h('button', { type: 'button', class: 'small', 'aria-pressed': String(ms === this.span),
      onclick: () => this.setSpan(ms) }, label));
    this.line = h('div', {});
    this.counters = h('div', {});
    this.waits = h('div', {});
    this.health = h('div', {});
    this.lanes = h('div', {});
    this.controls = new Controls(this.who, () => this.load());
    this.webhooks = new Webhooks(this.name, this.who);
    this.changesPanel = new Changes(this.name, this.who, () => this.load());
    const lanes = () => (this.stats ? this.stats.lanes.map((lane) => lane.name) : []);
    const [visitor, refreshVisitor] = visitorPanel(this.name, this.who, lanes, () => this.load());
    this.refreshVisitor = refreshVisitor;
    return h('div', {}, h('div', { class: 'head' }, h('h1', {}, this.name), this.badge, this.policy, this.at,
      h('p', {}, h('a', { href: '/preview/' + encodeURIComponent(this.name) }, 'What visitors see'))), this.alert, tiles,
      h('div', { class: 'columns' },
        h('div', {}, h('section', { class: 'panel', 'aria-labelledby': 'line-head' },
          h('div', { class: 'ranges', role: 'group', 'aria-label': 'Time span' }, this.spans), h('h2', { id: 'line-head' }, 'The line'), this.line),
        h('section', { class: 'panel', 'aria-labelledby': 'pace-head' }, h('h2', { id: 'pace-head' }, 'Joined and let in, per minute'), this.counters),
        this.changesPanel.element, new Sales(this.name).element),
        h('div', {}, this.controls.element, visitor,
          h('section', { class: 'panel', 'aria-labelledby': 'waits-head' }, h('h2', { id: 'waits-head' }, 'Waiting times'), this.waits, this.lanes),
          h('section', { class: 'panel', 'aria-labelledby': 'health-head' }, h('h2', { id: 'health-head' }, 'Health'), this.health),
          this.webhooks.element)));
  }

  /* ---- from the server ---- */

  connect() {
    this.source = new EventSource('/v1/admin' + queuePath(this.name) + '/events');
    this.source.addEventListener('stats', (event) => {
      this.update(JSON.parse(event.data));
      this.report('', Date.now());
    });
    this.source.addEventListener('problem', (event) => this.report(JSON.parse(event.data).detail || 'The store does not answer.'));
    this.source.addEventListener('end', (event) => {
      this.close();
      this.report(JSON.parse(event.data).detail || 'This page was ended by the server.');
    });
    this.source.onerror = () => {
      this.report('No connection');
      if (this.source.readyState === 2) this.again = setTimeout(() => this.reconnect(), 3000);
    };
  }

  /* A refused stream has a reason, which only a question brings out. */
  async reconnect() {
    const found = await whoAmI().catch(() => undefined);
    if (found === null) this.report(null);
    else if (found === undefined) this.again = setTimeout(() => this.reconnect(), 3000);
    else this.connect();
  }

  async load() {
    this.changesAt = Date.now();
    this.refreshVisitor();
    try {
      const [points, changes, queue] = await Promise.all([loadHistory(this.name, this.span, this.now()),
        loadChanges(this.name), read(queuePath(this.name))]);
      Object.assign(this, { points, changes, waitingTtl: msOf(queue.settings.waiting_ttl) });
      this.changesPanel.show(this.changes, this.now());
      this.draw();
    } catch (problem) {
      this.report(problem.status === 401 ? null : problem.message);
    }
  }

  close() {
    clearTimeout(this.again);
    this.resized.disconnect();
    this.source.close();
  }

  setSpan(ms) {
    this.span = ms;
    SPANS.forEach(([span], i) => this.spans[i].setAttribute('aria-pressed', String(span === ms)));
    this.load();
  }

  /* ---- showing ---- */

  update(stats) {
    this.stats = stats;
    stats.waiting_ttl_ms = this.waitingTtl;
    this.offset = Date.parse(stats.at) - Date.now();
    const badge = stateBadge(stats);
    setText(this.badge, badge.text);
    setClass(this.badge, 'badge ' + badge.kind);
    setText(this.policy, policyText(stats));
    setText(this.at, clock(Date.parse(stats.at)));
    this.showAlerts(alerts(stats));
    this.showTiles(stats);
    this.controls.update(stats);
    this.webhooks.update(stats);
    if (Date.now() - this.drawnAt >= REDRAW_EVERY) this.draw();
    if (Date.now() - this.changesAt >= CHANGES_EVERY) this.load();
  }

  showAlerts(found) {
    const text = found.join('\n');
    if (text === this.alerted) return;
    this.alerted = text;
    this.alert.replaceChildren(...found.map((one) => h('p', { class: 'note' }, one)));
  }

  showTile(key, value, more) {
    setText(this.tiles[key][0], value);
    setText(this.tiles[key][1], more);
  }

  showTiles(stats) {
    const going = pace(stats);
    const limit = rateLimit(stats.rate);
    this.showTile('waiting', number(stats.waiting), emptyAt(stats, this.now()));
    this.showTile('active', number(stats.active) + (known(stats.capacity_now) ? ' / ' + number(stats.capacity_now) : ''),
      known(stats.capacity_now) ? number(Math.max(0, stats.capacity_now - stats.active)) + ' free' : '');
    this.showTile('admitted', going ? rate(going.admitted) : '–', limit < Infinity ? 'limit ' + rate(limit) : '');
    const waited = stats.waited;
    this.showTile('wait', waited ? durations(waited.p50_ms, waited.p90_ms) : '–',
      'last in line: ' + (stats.waiting ? waitText(lastWait(stats.waiting, going && going.admitted)) : '–'));
    this.showTile('gaveUp', going ? rate(going.gaveUp) : '–', 'of ' + number(stats.totals.joined) + ' joins: '
      + percent(stats.totals.joined ? (stats.totals.left + stats.totals.absent) / stats.totals.joined : null));
    this.showTile('noShows', percent(stats.totals.admitted ? stats.totals.unclaimed / stats.totals.admitted : null),
      number(stats.totals.unclaimed) + ' of ' + number(stats.totals.admitted));
  }

  draw() {
    const stats = this.stats;
    if (!stats) return;
    this.drawnAt = Date.now();
    const to = this.now();
    const points = this.points.filter((point) => point.at < to).concat(pointOf(stats, to));
    const from = Math.max(to - this.span, points[0].at);
    const marks = marksOf(this.changes);
    this.drawnWidth = this.line.clientWidth;
    const width = Math.max(280, this.drawnWidth || 800);
    const level = (field) => levels(points, field, from, to, STEPS);
    this.line.replaceChildren(timeChart({ title: 'The line', from, to, width, height: 260, marks, series: [
      { name: 'waiting', label: 'waiting', points: level('waiting'), area: true },
      { name: 'active', label: 'on the site', points: level('active') },
      { name: 'capacity', label: 'capacity', points: stats.policy === 'rate' ? [] : level('capacity') }] }));
    this.counters.replaceChildren(timeChart({ title: 'Per minute', from, to, width, height: 200, marks, series: [
      { name: 'joined', label: 'joined', points: perMinute(points, 'joined', from, to, STEPS) },
      { name: 'admitted', label: 'let in', points: perMinute(points, 'admitted', from, to, STEPS) }] }));
    this.waits.replaceChildren(...waitCharts(stats));
    this.lanes.replaceChildren(h('table', {}, h('thead', {}, h('tr', {}, ['Lane', 'Waiting', 'Oldest'].map((text, i) =>
      h('th', { scope: 'col', class: i ? 'n' : '' }, text)))), h('tbody', {}, stats.lanes.map((lane) => h('tr', {},
      h('th', { scope: 'row' }, lane.name), h('td', { class: 'n' }, number(lane.waiting)), h('td', { class: 'n' }, duration(lane.oldest_wait_ms)))))));
    this.health.replaceChildren(healthTable(stats));
  }
}
