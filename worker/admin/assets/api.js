/* The admin API. Every call that changes something shows the CSRF token of this browser's session. A call without an
   answer is repeated once: a browser drops what it is about to send when a network of its machine comes or goes. */

const SESSION = '/v1/admin/session';
let csrf = '';

/* A refusal, or no answer (status 0). */
export class Problem extends Error {
  constructor(status, body) {
    super((body && (body.detail || body.title)) || (status ? 'The server answered ' + status + '.' : 'The server does not answer.'));
    this.status = status;
    this.errors = (body && body.errors) || [];
  }
}

async function send(method, path, body, headers) {
  const options = { method, headers: Object.assign({ Accept: 'application/json' }, headers), cache: 'no-store' };
  if (method !== 'GET') options.headers['X-Tellerline-CSRF'] = csrf;
  if (body !== undefined) {
    options.headers['Content-Type'] = 'application/json';
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options).catch(() => fetch(path, options)).catch(() => {
    throw new Problem(0, null);
  });
  const text = await answer.text();
  let read = null;
  try {
    read = text ? JSON.parse(text) : null;
  } catch (e) { /* not ours: a proxy's page */ }
  if (!answer.ok) throw new Problem(answer.status, read);
  return { body: read, etag: answer.headers.get('ETag') };
}

export const read = async (path) => (await send('GET', '/v1/admin' + path)).body;
/* All entries of a list, page after page. key: the member that the next page starts after. */
export async function readAll(path, name, key) {
  const all = [];
  for (let more = true, after = ''; more;) {
    const page = await read(path + '?limit=1000' + after);
    all.push(...page[name]);
    more = page.has_more && page[name].length > 0;
    if (more) after = '&starting_after=' + encodeURIComponent(all[all.length - 1][key]);
  }
  return all;
}

export const readWithTag = (path) => send('GET', '/v1/admin' + path);

/* A key of its own for each change that a person confirms: a repeat after a lost answer does nothing twice. */
export async function change(method, path, body, etag) {
  const headers = { 'Idempotency-Key': crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2) + Date.now() };
  if (etag) headers['If-Match'] = etag;
  return (await send(method, '/v1/admin' + path, body, headers)).body;
}

export const queuePath = (name) => '/queues/' + encodeURIComponent(name);

/* ---- the session ---- */

function keep(answer) {
  csrf = (answer && answer.csrf) || '';
  return answer;
}

/* The operator who is signed in here: { name, role, csrf }, or null. */
export async function whoAmI() {
  try {
    return keep((await send('GET', SESSION)).body);
  } catch (problem) {
    if (problem.status === 401 || problem.status === 403) return null;
    throw problem;
  }
}

export const signIn = async (token) => keep((await send('POST', SESSION, { token })).body);
export const signOut = () => send('DELETE', SESSION);

const RANKS = ['viewer', 'operator', 'admin'];
export const may = (who, role) => Boolean(who) && RANKS.indexOf(who.role) >= RANKS.indexOf(role);
