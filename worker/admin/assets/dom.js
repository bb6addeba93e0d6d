/* Building elements. Texts are always set as text, never as HTML: names, notices and visitor ids come from outside. */

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/* h('p', { class: 'soft', onclick: f }, 'text', element, ...) */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

/* Writes only what differs, so that a screen reader is not told of nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setClass(element, name) {
  if (element.getAttribute('class') !== name) element.setAttribute('class', name);
}

/* Makes these elements the children. Those that stay are not moved, because one of them may have the focus. */
export function setChildren(parent, elements) {
  for (const child of [...parent.children]) {
    if (!elements.includes(child)) child.remove();
  }
  elements.forEach((element, i) => {
    if (parent.children[i] !== element) parent.insertBefore(element, parent.children[i] || null);
  });
}

/* Said by a screen reader. */
export function say(text) {
  setText(document.getElementById('aloud'), text);
}
