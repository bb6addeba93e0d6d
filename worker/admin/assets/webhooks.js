/* The webhooks of a queue: how far each was told, and a test. */
import { h, setChildren, setText, setClass, say } from './dom.js';
import { change, may, queuePath } from './api.js';
import { clock, duration, known, moment, number } from './format.js';

const WORDS = { unwatched: 'no notifier', new: 'nothing told yet', answers: 'answers', failing: 'fails', dead: 'loses events' };
const KINDS = { unwatched: 'bad', new: '', answers: 'good', failing: 'warn', dead: 'bad' };

/* What an operator should know, as sentences. */
export function webhookTroubles(stats) {
  const since = (webhook) => clock(Date.parse(webhook.failing_since)) + (webhook.problem ? ': ' + webhook.problem : '');
  return (stats.webhooks || []).map((webhook) => {
    if (webhook.state === 'unwatched') return 'No notifier tells the webhook ' + webhook.name + '.';
    if (webhook.state === 'dead') return 'Events are lost to the webhook ' + webhook.name + ', which fails since ' + since(webhook) + '.';
    return webhook.state === 'failing' ? 'The webhook ' + webhook.name + ' fails since ' + since(webhook) + '.' : '';
  }).filter(Boolean);
}

/* What stands beside the state. */
function details(webhook, now) {
  return [webhook.pending > 0 && number(webhook.pending) + ' wait' + (known(webhook.oldest_pending_ms) ? ', the oldest for ' + duration(webhook.oldest_pending_ms) : ''),
    webhook.lost > 0 && number(webhook.lost) + ' lost', webhook.failing_since && 'since ' + moment(Date.parse(webhook.failing_since), now),
    webhook.problem].filter(Boolean).join(', ');
}

export class Webhooks {
  constructor(queue, who) {
    Object.assign(this, { queue, who, rows: {} });
    this.body = h('tbody', {});
    this.said = h('p', { class: 'soft' });
    this.element = h('section', { class: 'panel', 'aria-labelledby': 'webhooks-head', hidden: true }, h('h2', { id: 'webhooks-head' }, 'Webhooks'),
      h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {}, ['Webhook', 'State', 'Told', ''].map((text, i) =>
        h(text ? 'th' : 'td', { scope: text ? 'col' : null, class: i === 2 ? 'n' : '' }, text)))), this.body)), this.said);
  }

  row(name) {
    const badge = h('span', { class: 'badge' });
    const more = h('p', { class: 'soft' });
    const told = h('td', { class: 'n' });
    const test = may(this.who, 'operator') && h('button', { type: 'button', class: 'small', 'aria-label': 'Test the webhook ' + name,
      onclick: () => this.test(name) }, 'Test');
    return { badge, more, told, element: h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, badge, more), told, h('td', {}, test)) };
  }

  update(stats) {
    const webhooks = stats.webhooks || [];
    const names = webhooks.map((webhook) => webhook.name);
    this.element.hidden = webhooks.length === 0;
    if (names.join() !== Object.keys(this.rows).join()) {
      this.rows = Object.fromEntries(names.map((name) => [name, this.rows[name] || this.row(name)]));
      setChildren(this.body, names.map((name) => this.rows[name].element));
    }
    for (const webhook of webhooks) {
      const row = this.rows[webhook.name];
      setText(row.badge, WORDS[webhook.state] || webhook.state);
      setClass(row.badge, 'badge ' + (KINDS[webhook.state] || ''));
      setText(row.more, details(webhook, Date.parse(stats.at)));
      setText(row.told, number(webhook.told));
      if (this.tested === webhook.name && (webhook.event >= this.event || (webhook.problem && webhook.asked_at !== this.askedAt))) this.finish(webhook);
      if (this.tested !== webhook.name) row.askedAt = webhook.asked_at;
    }
  }

  async test(name) {
    this.tell('A test is on its way to ' + name + '.');
    try {
      const askedAt = this.rows[name].askedAt;
      const sent = await change('POST', queuePath(this.queue) + '/webhooks/' + encodeURIComponent(name) + '/test');
      Object.assign(this, { tested: name, event: sent.event, askedAt });
    } catch (problem) {
      this.tell(problem.message);
    }
  }

  finish(webhook) {
    this.tested = '';
    this.tell(webhook.name + (webhook.event >= this.event ? ' was told of the test: it answers ' + webhook.status + '.'
      : ' was not told of the test yet: ' + webhook.problem + '. It is tried again.'));
  }

  tell(text) {
    setText(this.said, text);
    say(text);
  }
}
