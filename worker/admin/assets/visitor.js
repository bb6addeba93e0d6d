/* Finding one visitor, and what can be done for them. */
import { h } from './dom.js';
import { ask } from './dialog.js';
import { change, read, queuePath, may } from './api.js';
import { number, full, clock, known } from './format.js';

const FACTS = [['visitor', 'Visitor'], ['status', 'Status'], ['end_reason', 'Why'], ['position', 'Place in line'], ['lane', 'Lane'], ['claimed', 'Has come'], ['joined_at', 'Joined'],
  ['admitted_at', 'Let in'], ['expires_at', 'Session until'], ['ended_at', 'Ended'], ['seq', 'Number'],
  ['reference', 'Reference']];
const CODE = /^(?:[- ]*[0-9a-z]){8}[- ]*$/i;

function valueOf(name, value) {
  if (name.endsWith('_at')) return full(Date.parse(value));
  if (value === true || value === false) return value ? 'yes' : 'no';
  return typeof value === 'number' ? number(value) : String(value);
}

/* Returns the panel, and a function that asks again for the visitor it shows: a place moves on while one looks at it. */
export function visitorPanel(queue, who, lanes, done) {
  const input = h('input', { id: 'visitor', autocomplete: 'off', spellcheck: 'false', size: 26, required: true });
  const result = h('div', { role: 'group', 'aria-label': 'The visitor found', 'aria-live': 'polite', tabindex: -1 });
  const visitors = queuePath(queue) + '/visitors';
  const typed = () => input.value.trim();
  let asked = 0;                /* how often: only the last answer is shown */
  let found = '';               /* the id of the visitor that is shown */
  let shown = {};               /* as it was last */
  const path = () => visitors + '/' + encodeURIComponent(found);

  /* An id may look like a code; then the id counts. */
  async function findOne(text) {
    try {
      return await read(visitors + '/' + encodeURIComponent(text));
    } catch (problem) {
      if (!CODE.test(text) || (problem.status !== 404 && problem.status !== 422)) throw problem;
      return read(visitors + '?reference=' + encodeURIComponent(text));
    }
  }

  /* The button that did something goes with the rest, and leaves the focus to what is new. */
  function replaceResult(...children) {
    const focused = result.contains(document.activeElement);
    result.replaceChildren(...children);
    if (focused) result.focus();
  }

  async function look(text) {
    const question = ++asked;
    try {
      const visitor = await findOne(text);
      if (question !== asked) return;
      found = visitor.visitor;
      result.setAttribute('aria-live', 'polite');
      show(visitor);
    } catch (problem) {
      if (question !== asked) return;
      found = '';
      replaceResult(h('p', {}, problem.message));
    }
  }

  /* Without being read aloud, and without taking the buttons from under the hand. What cannot be asked stays, with its
   * old time. */
  async function refresh() {
    const question = asked;
    if (!found) return;
    const visitor = await read(path()).catch(() => null);
    if (!visitor || question !== asked) return;
    result.setAttribute('aria-live', 'off');
    if (visitor.status === shown.status && visitor.lane === shown.lane) result.firstChild.replaceWith(factsOf(visitor));
    else show(visitor);
  }

  const factsOf = (visitor) => h('dl', { class: 'facts' }, FACTS.filter(([name]) => known(visitor[name]) && (name !== 'end_reason' || visitor.end_reason !== visitor.status))
    .map(([name, label]) => [h('dt', {}, label), h('dd', {}, valueOf(name, visitor[name]))]), h('dt', {}, 'As of'), h('dd', {}, clock(Date.now())));

  function show(visitor) {
    shown = visitor;
    const present = visitor.status === 'waiting' || visitor.status === 'active';
    const others = lanes().filter((lane) => lane !== visitor.lane);
    const lane = h('select', { 'aria-label': 'Lane to move to' }, others.map((name) => h('option', {}, name)));
    replaceResult(factsOf(visitor), present && may(who, 'operator') ? h('div', { class: 'row' },
      visitor.status === 'waiting' && others.length ? [lane, h('button', { type: 'button', onclick: () => move(lane.value) }, 'Move')] : null,
      h('button', { type: 'button', class: 'danger', onclick: () => remove(visitor) }, visitor.status === 'active' ? 'Revoke' : 'Remove')) : '');
  }

  async function act(question) {
    if (await ask(question)) {
      done();
      look(found);
    }
  }

  function move(lane) {
    act({ title: 'Move this visitor to ' + lane + '?', says: ['They keep their seniority there: who came later stands behind them.'],
      confirm: 'Move', act: () => change('POST', path() + '/lane', { lane }) });
  }

  function remove(visitor) {
    const active = visitor.status === 'active';
    act({ title: active ? 'Revoke this session?' : 'Remove this visitor?', danger: true, typed: 'yes', confirm: active ? 'Revoke' : 'Remove',
      says: [active ? 'The gate refuses them within a second; sites that check passes themselves, when the pass expires.'
        : 'The place is gone. With this ticket no one joins again.'], act: () => change('DELETE', path()) });
  }

  const element = h('section', { class: 'panel', 'aria-labelledby': 'find-head' }, h('h2', { id: 'find-head' }, 'Find a visitor'),
    h('form', { onsubmit: (event) => {
      event.preventDefault();
      look(typed());
    } }, h('label', { for: 'visitor' }, 'Visitor: id, ticket or reference code'), input, h('button', {}, 'Show')), result);
  return [element, refresh];
}
