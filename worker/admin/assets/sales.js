/* Past sales of a queue, from the archive. They are asked for when someone looks: a large sale takes seconds. */
import { h } from './dom.js';
import { queuePath, read } from './api.js';
import { duration, full, number, percent } from './format.js';

export class Sales {
  constructor(queue) {
    this.queue = queue;
    this.body = h('div', { role: 'status' });
    this.details = h('details', {}, h('summary', {}, h('h2', { id: 'sales-head' }, 'Past sales')), this.body);
    this.details.addEventListener('toggle', () => this.details.open && this.load());
    this.element = h('section', { class: 'panel', 'aria-labelledby': 'sales-head' }, this.details);
  }

  async load() {
    this.say('Asking the archive…');
    try {
      this.show(await read(queuePath(this.queue) + '/reports'));
    } catch (problem) {
      this.say(problem.message);
    }
  }

  say(text) {
    this.body.replaceChildren(h('p', { class: 'soft' }, text));
  }

  link(sale, more, ...children) {
    return h('a', { href: '/v1/admin' + queuePath(this.queue) + '/reports/' + sale.sale + '?format=html' + more, target: '_blank', rel: 'noopener' }, children);
  }

  show(answer) {
    const { sales } = answer;
    if (sales.length === 0) {
      this.say('Nobody has come yet.');
      return;
    }
    const heads = ['Sale', 'Visitors', 'Let in', 'Waited (90 %)', 'No-shows', ''];
    const cell = (text) => h('td', { class: 'n' }, text);
    const row = (sale, i) => {
      const at = full(Date.parse(sale.from));
      const before = sales[i + 1];
      return h('tr', {}, h('th', { scope: 'row' }, this.link(sale, '', h('time', { datetime: sale.from }, at))), cell(number(sale.arrived)),
        cell(number(sale.admitted)), cell(duration(sale.p90_ms)), cell(percent(sale.admitted ? sale.no_shows / sale.admitted : null)),
        h('td', {}, before && this.link(sale, '&with=' + before.sale, 'Compare', h('span', { class: 'aloud' }, ' the sale of ' + at + ' with the one before'))));
    };
    this.body.replaceChildren(h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {}, heads.map((text, i) =>
      h(text ? 'th' : 'td', { scope: text ? 'col' : null, class: i > 0 && i < 5 ? 'n' : '' }, text)))), h('tbody', {}, sales.map(row)))),
    answer.has_more ? h('p', { class: 'soft' }, 'There are older ones: tellerline report ' + this.queue + ' --sales') : '');
  }
}
