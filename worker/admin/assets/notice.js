/* The notice: one text for everyone, or one for each language, with what visitors will read. */
import { h, setChildren, setClass, setText } from './dom.js';
import { people } from './format.js';
import { change } from './api.js';

const NAMES = { en: 'English', ko: '한국어', ja: '日本語', 'zh-Hans': '简体中文', 'zh-Hant': '繁體中文', es: 'Español',
  fr: 'Français', de: 'Deutsch', pt: 'Português', it: 'Italiano', vi: 'Tiếng Việt', th: 'ไทย', id: 'Bahasa Indonesia',
  ar: 'العربية', he: 'עברית', tr: 'Türkçe', pl: 'Polski' };
const MOST = 500; /* bytes of a text, as the server counts: fewer characters than that in most languages */
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

  /* Shows these texts, [language, text] each; '' is for everyone. The fields stay: one may have the focus. */
  fill(texts) {
    this.rows = texts.map(([language, text], i) => this.set(this.rows[i] || this.row(), language, text));
    this.arrange();
  }

  row() {
    const row = { label: h('label', {}), text: h('textarea', { maxlength: MOST, rows: 2, dir: 'auto', disabled: this.locked,
      oninput: () => this.measure(row) }),
      language: h('select', { disabled: this.locked, onchange: () => this.arrange() },
        Object.keys(NAMES).map((code) => h('option', { value: code }, nameOf(code)))),
      drop: h('button', { type: 'button', class: 'small', disabled: this.locked, onclick: () => this.leaveOut(row) }, 'Leave out') };
    row.tools = h('div', { class: 'row' }, row.language, row.drop);
    row.element = h('div', {}, row.label, row.tools, row.text);
    return row;
  }

  /* The browser says it at the field, and publishes nothing, before the server refuses. */
  measure(row) {
    const bytes = new TextEncoder().encode(row.text.value.trim()).length;
    row.text.setCustomValidity(bytes > MOST ? 'Too long: ' + bytes + ' bytes, at most ' + MOST + '.' : '');
  }

  set(row, language, text) {
    if (language && ![...row.language.options].some((option) => option.value === language)) {
      row.language.append(h('option', { value: language }, nameOf(language)));
    }
    if (language) row.language.value = language;
    if (row.text.value !== text) row.text.value = text;
    this.measure(row);
    return row;
  }

  arrange() {
    const several = this.rows.length > 1;
    this.add.hidden = this.rows.length >= Object.keys(NAMES).length;
    this.rows.forEach((row, i) => {
      const name = nameOf(row.language.value);
      row.label.htmlFor = row.text.id = i ? 'notice-' + i : 'notice';
      row.text.lang = several ? row.language.value : '';
      setText(row.label, several ? 'Notice in ' + name : 'Notice to everyone who waits');
      setClass(row.label, several ? 'aloud' : '');
      row.tools.hidden = !several;
      row.language.setAttribute('aria-label', 'Language of notice ' + (i + 1));
      row.drop.setAttribute('aria-label', 'Leave out ' + name);
    });
    setChildren(this.list, this.rows.map((row) => row.element));
  }

  /* The focus goes to the text that comes up in its place. */
  leaveOut(row) {
    const at = this.rows.indexOf(row);
    this.rows.splice(at, 1);
    this.arrange();
    this.rows[Math.min(at, this.rows.length - 1)].text.focus();
  }

  addLanguage() {
    const used = this.rows.map((row) => row.language.value);
    const row = this.set(this.row(), Object.keys(NAMES).find((code) => !used.includes(code)), '');
    this.rows.push(row);
    this.arrange();
    row.text.focus();
  }

  /* What is being typed stays until someone changes the notice. */
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
    this.run({ title: 'Remove the notice?', says: ['The page then shows none.'], confirm: 'Remove',
      act: () => change('POST', this.path('/notice'), { text: '' }) });
  }
}
