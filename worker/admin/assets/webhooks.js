/* The webhooks of a queue: how far each was told, and a test. */
import { h, setChildren, setText, setClass, say } from './dom.js';
import { change, may, queuePath } from './api.js';
import { clock, duration, known, moment, number } from './format.js';

const WORDS = { unwatched: 'no notifier', new: 'nothing told yet', answers: 'answers', failing: 'fails', dead: 'loses events' };
const KINDS = { unwatched: 'bad', new: '', answers: 'good', failing: 'warn', dead: 'bad' };

/* What an operator should know, as sentences. */
export function webhookTroubles(stats) {
  const since = (hook) => clock(Date.parse(hook.failing_since)) + (hook.problem ? ': ' + hook.problem : '');
  return (stats.webhooks || []).map((hook) => {
    if (hook.state === 'unwatched') return 'No notifier tells the webhook ' + hook.name + '.';
    if (hook.state === 'dead') return 'Events are lost to the webhook ' + hook.name + ', which fails since ' + since(hook) + '.';
    return hook.state === 'failing' ? 'The webhook ' + hook.name + ' fails since ' + since(hook) + '.' : '';
  }).filter(Boolean);
}

/* What stands beside the state. */
function details(hook, now) {
  return [hook.pending > 0 && number(hook.pending) + ' wait' + (known(hook.oldest_pending_ms) ? ', the oldest for ' + duration(hook.oldest_pending_ms) : ''),
    hook.lost > 0 && number(hook.lost) + ' lost', hook.failing_since && 'since ' + moment(Date.parse(hook.failing_since), now),
    hook.problem].filter(Boolean).join(', ');
}

export class Webhooks {
  constructor(queue, who) {
    Object.assign(this, { queue, who, rows: {} });
    this.body = h('tbody', {});
    this.said = h('p', { class: 'soft' });
    this.element = h('section', { class: 'panel', 'aria-labelledby': 'hooks-head', hidden: true }, h('h2', { id: 'hooks-head' }, 'Webhooks'),
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
    const hooks = stats.webhooks || [];
    const names = hooks.map((hook) => hook.name);
    this.element.hidden = hooks.length === 0;
    if (names.join() !== Object.keys(this.rows).join()) {
      this.rows = Object.fromEntries(names.map((name) => [name, this.rows[name] || this.row(name)]));
      setChildren(this.body, names.map((name) => this.rows[name].element));
    }
    for (const hook of hooks) {
      const row = this.rows[hook.name];
      setText(row.badge, WORDS[hook.state] || hook.state);
      setClass(row.badge, 'badge ' + (KINDS[hook.state] || ''));
      setText(row.more, details(hook, Date.parse(stats.at)));
      setText(row.told, number(hook.told));
      if (this.tested === hook.name && (hook.event >= this.event || (hook.problem && hook.asked_at !== this.askedAt))) this.finish(hook);
      if (this.tested !== hook.name) row.askedAt = hook.asked_at;
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

  finish(hook) {
    this.tested = '';
    this.tell(hook.name + (hook.event >= this.event ? ' was told of the test: it answers ' + hook.status + '.'
      : ' was not told of the test yet: ' + hook.problem + '. It is tried again.'));
  }

  tell(text) {
    setText(this.said, text);
    say(text);
  }
}
