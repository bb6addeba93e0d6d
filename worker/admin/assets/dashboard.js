/* The dashboard: signs in, and shows the overview or one queue, as the address says. */
import { h, setText, setClass, say } from './dom.js';
import { clock } from './format.js';
import { whoAmI, signIn, signOut } from './api.js';
import { Overview } from './overview.js';
import { QueuePage } from './queue.js';

const main = document.getElementById('main');
const link = document.getElementById('link');
const whoLine = document.getElementById('who');
const out = document.getElementById('sign-out');

let who = null;
let page = null;
let heardAt = 0;

/* What every page tells: trouble; "" and when it heard; null: no one is signed in any more. Old numbers are said to be old. */
function report(trouble, at) {
  if (trouble === null) {
    showSignIn('You were signed out: sign in again.');
    return;
  }
  if (!trouble) heardAt = at;
  const text = trouble ? trouble + (heardAt ? ' Numbers are of ' + clock(heardAt) + '.' : '') : 'live';
  setText(link, text);
  setClass(link, trouble ? 'link lost' : 'link');
}

function close() {
  if (page) page.close();
  page = null;
}

function showSignIn(problem) {
  close();
  who = null;
  setText(link, '');
  whoLine.hidden = out.hidden = true;
  document.title = 'Sign in – Tellerline';
  const token = h('input', { type: 'password', id: 'token', autocomplete: 'current-password', required: true });
  const error = h('p', { class: 'error', role: 'alert', hidden: !problem }, problem || '');
  const form = h('form', { class: 'stack' }, h('label', { class: 'field', for: 'token' }, 'Token', token), error, h('button', { class: 'main' }, 'Sign in'));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      who = await signIn(token.value.trim());
      show();
    } catch (refusal) {
      error.textContent = refusal.message;
      error.hidden = false;
      token.select();
    }
  });
  main.replaceChildren(h('section', { class: 'panel' }, h('h1', {}, 'Sign in'),
    h('p', { class: 'soft' }, 'With a token made by ', h('code', {}, 'tellerline token make'), ', or the one in the file of secrets.admin_token.'), form));
  token.focus();
}

function show() {
  close();
  if (!who) {
    showSignIn();
    return;
  }
  setText(whoLine, who.name + ' (' + who.role + ')');
  whoLine.hidden = out.hidden = false;
  heardAt = 0;
  const found = /^#\/queues\/(.+)$/.exec(location.hash);
  const name = found && decodeURIComponent(found[1]);
  document.title = (name ? name + ' – ' : '') + 'Tellerline';
  page = name ? new QueuePage(name, who, report) : new Overview(who, report);
  main.replaceChildren(page.element);
  say(name ? 'Queue ' + name : 'All queues');
}

out.addEventListener('click', async () => {
  await signOut().catch(() => {});
  showSignIn();
});
addEventListener('hashchange', () => {
  show();
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
});

whoAmI().then((found) => {
  who = found;
  show();
}, (problem) => showSignIn(problem.message));
