/* The notice: one text for everyone, or one for each language, with what visitors will read. */
import { h } from './dom.js';
import { people } from './format.js';
import { change } from './api.js';

const NAMES = { en: 'English', ko: '한국어', ja: '日本語', 'zh-Hans': '简体中文', 'zh-Hant': '繁體中文', es: 'Español',
  fr: 'Français', de: 'Deutsch', pt: 'Português', it: 'Italiano', vi: 'Tiếng Việt', th: 'ไทย', id: 'Bahasa Indonesia',
  ar: 'العربية', he: 'עברית', tr: 'Türkçe', pl: 'Polski' };
const nameOf = (code) => NAMES[code] || code;

export class NoticeEditor {
  /* path(rest): of the queue's calls; run(question): asks, and does it. */
  constructor(locked, path, run) {
    Object.assign(this, { locked, path, run });
    this.rows = [];
    this.shown = null;          /* as the store has it, to see when it changes */
    this.waiting = 0;
    this.list = h('div', { class: 'notices' });
    this.add = h('button', { type: 'button', class: 'small', disabled: locked, onclick: () => this.addLanguage() }, 'Add a language');
    this.element = h('form', { class: 'stack', onsubmit: (event) => this.publish(event) }, this.list,
      h('div', { class: 'row' }, h('button', { class: 'main', disabled: locked }, 'Preview'), this.add,
        h('button', { type: 'button', disabled: locked, onclick: () => this.remove() }, 'Remove')));
    this.fill([['', '']]);
  }

  /* Shows these texts, [language, text] each; '' is for everyone. */
  fill(texts) {
    this.rows = texts.map(([language, text]) => this.row(language, text));
    this.arrange();
  }

  row(language, text) {
    const codes = Object.keys(NAMES).concat(language in NAMES || !language ? [] : [language]);
    const row = { text: h('textarea', { maxlength: 500, rows: 2, disabled: this.locked }),
      language: h('select', { disabled: this.locked }, codes.map((code) => h('option', { value: code }, nameOf(code)))) };
    row.text.value = text;
    if (language) row.language.value = language;
    row.language.addEventListener('change', () => this.arrange());
    row.drop = h('button', { type: 'button', class: 'small', disabled: this.locked, onclick: () => {
      this.rows.splice(this.rows.indexOf(row), 1);
      this.arrange();
    } }, 'Leave out');
    return row;
  }

  arrange() {
    const several = this.rows.length > 1;
    this.add.hidden = this.rows.length >= Object.keys(NAMES).length;
    this.list.replaceChildren(...this.rows.map((row, i) => {
      const name = several ? nameOf(row.language.value) : '';
      row.text.id = i ? 'notice-' + i : 'notice';
      row.text.lang = several ? row.language.value : '';
      row.text.dir = 'auto';
      row.language.setAttribute('aria-label', 'Language of notice ' + (i + 1));
      row.drop.setAttribute('aria-label', 'Leave out ' + name);
      return h('div', {}, h('label', { for: row.text.id, class: several ? 'aloud' : '' },
        several ? 'Notice in ' + name : 'Notice to everyone who waits'),
      several && h('div', { class: 'row' }, row.language, row.drop), row.text);
    }));
  }

  addLanguage() {
    const used = this.rows.map((row) => row.language.value);
    const row = this.row(Object.keys(NAMES).find((code) => !used.includes(code)), '');
    this.rows.push(row);
    this.arrange();
    row.text.focus();
  }

  /* What is being typed stays until somebody changes the notice. */
  update(stats) {
    this.waiting = stats.waiting;
    const now = JSON.stringify(stats.notices || stats.notice);
    if (now === this.shown) return;
    this.shown = now;
    this.fill(stats.notices ? Object.entries(stats.notices) : [['', stats.notice || '']]);
  }

  publish(event) {
    event.preventDefault();
    const several = this.rows.length > 1;
    const texts = this.rows.map((row) => [several ? row.language.value : '', row.text.value.trim()]);
    const other = texts.find(([language]) => language === 'en') || texts[0];
    const preview = ([language, text]) => h('div', { lang: language || undefined }, several && h('h3', {}, nameOf(language)),
      h('p', { class: 'preview', dir: 'auto' }, text));
    this.run({ title: 'Publish this notice?', says: [people(this.waiting) + ' read it at once; who joins later reads it, too.',
      several ? 'Each reads their language; all others read ' + nameOf(other[0]) + '.' : 'It is the same in every language.'],
    fields: texts.map(preview), confirm: 'Publish',
    act: () => change('POST', this.path('/notice'), several ? { texts: Object.fromEntries(texts) } : { text: texts[0][1] }) });
  }

  remove() {
    this.run({ title: 'Remove the notice?', says: ['The page shows none any more.'], confirm: 'Remove',
      act: () => change('POST', this.path('/notice'), { text: '' }) });
  }
}
