/* Questions before something is done: what will happen, and to how many people. */
import { h } from './dom.js';

/* Closes what is asked, undone: its page goes. */
export function dismiss() {
  const dialog = document.querySelector('dialog[open]');
  if (dialog) dialog.close();
}

/*
 * Asks, and does it: title; says, a list of sentences; fields, elements of a form; confirm, the button's text; typed, a
 * word to be typed for what cannot be undone; act, which may throw a Problem: the dialog then stays and says why.
 * Resolves to whether it was done. Each question has an element of its own, because the close event of the one before
 * may come after this one was asked.
 */
export function ask({ title, says, fields, confirm, typed, danger, act }) {
  const error = h('p', { class: 'error', role: 'alert', hidden: true });
  const word = typed && h('input', { id: 'typed', autocomplete: 'off', spellcheck: 'false' });
  const yes = h('button', { class: danger ? 'danger' : 'main', type: 'submit', disabled: Boolean(typed) }, confirm);
  const no = h('button', { type: 'button' }, 'Cancel');
  if (word) word.addEventListener('input', () => { yes.disabled = word.value.trim() !== typed; });
  return new Promise((resolve) => {
    const form = h('form', { class: 'stack' }, h('h2', {}, title),
      h('ul', {}, (says || []).map((text) => h('li', {}, text))), fields,
      word && h('label', { class: 'field' }, 'This cannot be undone. Type ' + typed + ' to go on.', word), error,
      h('div', { class: 'row' }, no, yes));
    const dialog = h('dialog', { 'aria-label': title }, form);
    let done = false;
    let busy = false; /* not disabled: the button keeps the focus */
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      if (busy) return;
      busy = true;
      yes.setAttribute('aria-disabled', 'true');
      error.hidden = true;
      try {
        await act();
        done = true;
        dialog.close();
      } catch (problem) {
        error.textContent = [problem.message].concat((problem.errors || []).map((e) => e.name + ': ' + e.detail)).join(' ');
        error.hidden = false;
        busy = false;
        yes.removeAttribute('aria-disabled');
      }
    });
    no.addEventListener('click', () => dialog.close());
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(done);
    });
    document.body.append(dialog);
    dialog.showModal();
    (word || (fields && form.querySelector('input, textarea, select')) || no).focus();
  });
}
