/* The dashboard: signs in, and shows the overview or one queue, as the address says. */
import { h, setText, setClass, say } from './dom.js';
import { clock } from './format.js';
import { whoAmI, signIn, signOut } from './api.js';
import { dismiss } from './dialog.js';
import { Overview } from './overview.js';
import { QueuePage } from './queue.js';

const main = document.getElementById('main');
const link = document.getElementById('link');
const whoLine = document.getElementById('who');
const out = document.getElementById('sign-out');
const skipToControls = document.getElementById('skip-controls');

let who = null;
let page = null;
let heardAt = 0;

/* What every page tells: trouble; "" and when it heard; null: no one is signed in now. Old numbers are said to be old. */
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
  dismiss();
  if (page) page.close();
  page = null;
}

/* A new page is read from its heading. */
function focusHeading(options) {
  const heading = main.querySelector('h1');
  heading.tabIndex = -1;
  heading.focus(options);
}

function showSignIn(problem) {
  close();
  who = null;
  setText(link, '');
  whoLine.hidden = out.hidden = skipToControls.hidden = true;
  document.title = 'Sign in – Tellerline';
  const token = h('input', { type: 'password', id: 'token', autocomplete: 'current-password', required: true });
  const error = h('p', { class: 'error', role: 'alert', hidden: !problem }, problem || '');
  const form = h('form', { class: 'stack' }, h('label', { class: 'field', for: 'token' }, 'Token', token), error, h('button', { class: 'main' }, 'Sign in'));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      who = await signIn(token.value.trim());
      show();
      focusHeading();
    } catch (refusal) {
      error.textContent = refusal.message;
      error.hidden = false;
      token.focus();
      token.select();
    }
  });
  main.replaceChildren(h('section', { class: 'panel' }, h('h1', {}, 'Sign in'),
    h('p', { class: 'soft' }, 'Open the address that ', h('code', {}, 'tellerline dashboard'), ' writes; or sign in with a token made by ',
      h('code', {}, 'tellerline token create'), ', or the one in the file of secrets.admin_token.'), form));
  token.focus();
}

/* The address of `tellerline dashboard` has a text that signs in once; it does not stay in the history. */
async function useLink() {
  const found = /^#\/sign-in\/(.+)$/.exec(location.hash);
  if (!found) return false;
  history.replaceState(null, '', '#/');
  try {
    who = await signIn(found[1]);
    show();
  } catch (refusal) {
    showSignIn(refusal.message);
  }
  return true;
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
  const tell = (trouble, at) => {
    if (page === made) report(trouble, at); /* not what an earlier page had asked for */
  };
  const made = name ? new QueuePage(name, who, tell) : new Overview(who, tell);
  page = made;
  skipToControls.hidden = !name;
  main.replaceChildren(page.element);
  say(name ? 'Queue ' + name : 'All queues');
}

out.addEventListener('click', async () => {
  await signOut().catch(() => {});
  showSignIn();
});
addEventListener('hashchange', async () => {
  if (await useLink()) return;
  show();
  scrollTo(0, 0);
  if (who) focusHeading({ preventScroll: true });
});
/* In a table that scrolls sideways, Chromium leaves a control cut of which a part is in view. */
addEventListener('focusin', (event) => {
  const scroller = event.target.closest('.scroll');
  if (!scroller) return;
  const mark = 6; /* of the focus, around the control */
  const [box, room] = [event.target.getBoundingClientRect(), scroller.getBoundingClientRect()];
  scroller.scrollLeft += Math.min(Math.max(0, box.right + mark - room.right), box.left - mark - room.left);
});
/* The part of the address after # says which page is shown: these links only move the focus. */
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  focusHeading();
});
skipToControls.addEventListener('click', (event) => {
  event.preventDefault();
  document.getElementById('control-head').focus();
});

useLink().then(async (used) => {
  if (used) return;
  try {
    who = await whoAmI();
    show();
  } catch (problem) {
    showSignIn(problem.message);
  }
});
