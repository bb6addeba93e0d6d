/*
 * Keeps the waiting page current. The page is complete without this script; with it, it updates in place.
 *
 * All tabs of a browser share one event stream: the leading tab holds it and sends what it receives to the others. The
 * place belongs to the ticket (a cookie this script cannot read), so a lost connection loses nothing; the page says so.
 *
 * The script finds what it changes by data-tl and shows the elements whose data-state lists the current state.
 */
(function () {
  'use strict';

  const page = document.body.dataset;
  const words = document.querySelector('[data-tl="words"]').dataset;
  const language = document.documentElement.lang;
  const api = '/v1/queues/' + page.queue;
  const shared = 'tellerline:' + page.queue;
  const carried = /[?&]ticket=([^&#]+)/.exec(location.search);
  const OVER = ['completed', 'left', 'expired', 'unclaimed', 'absent', 'ended', 'lost', 'removed', 'blocked',
    'closed', 'shut', 'sold_out', 'passthrough'];
  const ALONE = ['invited', 'outside', 'challenge'];  // no place to ask about

  const SAY_EVERY = 15000;      // at most this often aloud, unless something important happens
  const GO_ON_AFTER = 3000;
  const FIRST_EVENT = 10000;    // a stream silent for this long is held up by something on the way
  const QUIET = 45000;          // ask when nothing was heard for this long
  const STREAM_AGAIN = 90000;   // how long to ask in turns before trying a stream again
  const RETRY_MIN = 2000;
  const RETRY_MAX = 30000;

  // ---- small helpers ----

  const find = (key) => document.querySelector('[data-tl="' + key + '"]');
  const jitter = (ms) => ms * (0.75 + Math.random() / 2);
  const now = () => Date.now();

  function put(key, text) {
    const element = find(key);
    if (element && element.textContent !== text) element.textContent = text;
  }

  function reveal(key, shown) {
    document.querySelectorAll('[data-tl="' + key + '"]').forEach((e) => { e.hidden = !shown; });
  }

  // Storage may be full or forbidden; then the tabs coordinate less.
  function stored(key, value) {
    try {
      if (value === undefined) return JSON.parse(localStorage.getItem(shared + key));
      localStorage.setItem(shared + key, JSON.stringify(value));
    } catch (e) { /* not available */ }
    return null;
  }

  // ---- numbers and times as they are written here (the same rules as in page_text.c) ----

  const numbers = new Intl.NumberFormat(language);
  const clock = new Intl.DateTimeFormat(language, { hour: 'numeric', minute: '2-digit', second: '2-digit' });
  const shortClock = new Intl.DateTimeFormat(language, { hour: 'numeric', minute: '2-digit' });
  const dateTime = new Intl.DateTimeFormat(language, {
    year: 'numeric', month: 'long', day: 'numeric', weekday: 'long', hour: 'numeric', minute: '2-digit',
    timeZoneName: 'short'
  });
  const UNITS = [[86400, 'day'], [3600, 'hour'], [60, 'minute'], [1, 'second']];

  const fill = (pattern, first, second) => pattern.replace('{0}', first).replace('{1}', second);

  function duration(seconds) {
    let i = 0;
    while (i < 3 && seconds < UNITS[i][0]) i++;
    const parts = [];
    for (let last = Math.min(i + 1, 3); i <= last; i++) {
      const amount = Math.floor(seconds / UNITS[i][0]);
      seconds %= UNITS[i][0];
      if (amount || !parts.length)
        parts.push(fill(words[UNITS[i][1] + (amount === 1 ? '' : 's')], numbers.format(amount)));
    }
    return parts.join(' ');
  }

  function range(lowSeconds, highSeconds) {
    let high = Math.ceil(Math.max(highSeconds, 0) / 60);
    const step = high <= 10 ? 1 : high <= 60 ? 5 : high <= 180 ? 10 : high <= 720 ? 30 : 60;
    high = Math.ceil(high / step) * step;
    const low = Math.floor(Math.max(Math.min(lowSeconds, highSeconds), 0) / 60 / step) * step;
    if (high <= 1 && low === 0) return words.rangeSoon;
    const to = duration(high * 60);
    if (low === 0) return fill(words.rangeUpto, to);
    if (low === high) return fill(words.rangeAbout, to);
    const unit = high < 60 ? 1 : low % 60 === 0 && high % 60 === 0 && high < 1440 ? 60 : 0;
    return fill(words.rangeBetween, unit ? numbers.format(low / unit) : duration(low * 60), to);
  }

  // ---- the server's clock: that of this device may be wrong, or jump ----

  let ahead = Number(page.now) ? Number(page.now) - now() : 0;
  const serverNow = () => now() + ahead;

  // ---- read aloud, politely ----

  let said = '';
  let saidAt = now();
  let next = '';                // to be said when its time has come
  let sayTimer = 0;

  function speak(text) {
    if (text === said) return;
    said = text;
    saidAt = now();
    put('aloud', text);
  }

  function say(text, important) {
    if (important) speak(text);
    else next = text;
    clearTimeout(sayTimer);
    if (next && next !== said)
      sayTimer = setTimeout(() => speak(next), Math.max(0, saidAt + SAY_EVERY - now()));
  }

  // ---- showing ----

  let state = page.state;
  let shown = null;             // the last view
  let heardAt = now();
  let opensAt = Number(page.opens) || 0;
  let endsAt = 0;               // of the session
  let best = 0;                 // the progress bar never moves back
  let goTimer = 0;
  let wentOn = false;           // another tab has gone in
  let troubled = '';

  const isOver = () => OVER.indexOf(state) >= 0;

  function setState(name) {
    if (name === state) return;
    const wasOver = isOver();
    state = name;
    next = '';                  // about the state that was
    wentOn = false;
    document.querySelectorAll('[data-state]').forEach((element) => {
      if (element !== document.body) element.hidden = element.dataset.state.split(' ').indexOf(name) < 0;
    });
    page.state = name;
    const section = document.querySelector('section[data-state="' + name + '"]');
    const head = section && section.querySelector('h1');
    if (head) say(head.textContent, true);
    // A tab with nothing to wait for must not hold the lead; joined again in another tab, it takes part again.
    if (isOver()) resign();
    else if (wasOver) contest();
  }

  function setTitle(position) {
    const kind = state[0].toUpperCase() + state.slice(1);
    const title = fill(words['title' + kind] || words.titleOver, position) + ' – ' + page.brand;
    if (document.title !== title) document.title = title;
  }

  // The first position known of this very place, by any tab and after a reload.
  function firstPosition(view) {
    const visitor = view.visitor || page.visitor;
    const kept = stored(':from');
    let from = kept && kept.visitor === visitor ? kept.from : Number(page.from) || 0;
    if (from < view.position) from = view.position;
    if (!kept || kept.visitor !== visitor || kept.from !== from) {
      stored(':from', { visitor: visitor, from: from });
      if (kept && kept.visitor !== visitor) best = 0;
    }
    return from;
  }

  // Before a draw nobody has a position.
  function showDrawing(drawing) {
    reveal('drawing', drawing);
    reveal('in-order', !drawing);
    reveal('place', !drawing);
    const title = words.titleDrawing + ' – ' + page.brand;
    if (drawing && document.title !== title) document.title = title;
  }

  // Why there is no estimate, or why it grew; not a reason of a later version. more_ahead: words.whyMoreAhead.
  function showWhy(reason) {
    const why = reason ? words['why' + ('_' + reason).replace(/_(.)/g, (_, letter) => letter.toUpperCase())] : '';
    put('eta-why', why || '');
    reveal('eta-why', Boolean(why));
  }

  function showPosition(view) {
    const position = numbers.format(view.position);
    const eta = view.eta_high === undefined ? words.rangeUnknown : range(view.eta_low || 0, view.eta_high);
    put('position', position);
    put('ahead', fill(words.ahead, numbers.format(view.ahead === undefined ? view.position - 1 : view.ahead)));
    put('eta', eta);
    showWhy(view.eta_reason);
    reveal('eta-row', view.eta_high !== undefined || !view.opens_at);  // before the opening, unknown is no news
    const from = firstPosition(view);
    best = Math.max(best, (from - view.position) / from);
    const bar = find('progress');
    if (bar) bar.value = Math.floor(best * 1000);
    setTitle(position);
    say(fill(words.sayWaiting, position, eta), false);
  }

  function showWaiting(view) {
    const drawing = view.position === undefined;
    showDrawing(drawing);
    if (!drawing) showPosition(view);
    opensAt = view.opens_at ? Date.parse(view.opens_at) : 0;
    showOpening();
    showMode(view);
    reveal('called', Boolean(view.called));
    reveal('recovering', Boolean(view.recovering));
  }

  // Which note the mode has; everyone gets in: goes on.
  function showMode(view) {
    let mode = view.mode || (view.paused ? 'paused' : 'open');
    if (view.phase === 'over' && (!view.mode || mode === 'draining')) mode = view.paused ? 'closed' : 'draining';
    reveal('paused', mode === 'paused');
    ['draining', 'closed', 'sold_out'].forEach((name) => reveal('mode-' + name, mode === name));
    reveal('no-capacity', view.capacity === 0 && (mode === 'open' || mode === 'draining'));
    if (mode !== 'passthrough' || goTimer) return;
    const target = page.return || view.target_url || page.target;
    goTimer = setTimeout(() => {
      if (/^https?:\/\//i.test(target)) goOn(target);
      else location.reload();
    }, jitter(GO_ON_AFTER));
  }

  function showOpening() {
    const left = opensAt - serverNow();
    const before = opensAt > 0 && (left > 0 || !shown);
    reveal('before', before);
    if (!before) return;
    put('opens', dateTime.format(new Date(opensAt)));
    put('countdown', left > 0 ? duration(Math.ceil(left / 1000)) : words.opening);
  }

  function showActive(view) {
    const target = page.return || view.target_url || page.target;
    const link = find('go');
    const usable = /^https?:\/\//i.test(target);
    if (usable && link) link.href = target;
    reveal('going', usable);
    reveal('nowhere', !usable);
    const until = Date.parse(view.expires_at);
    if (until > 0) {
      reveal('until', true);
      put('until', fill(words.until, shortClock.format(new Date(until))));
      endsAt = until;
    }
    showLeft();
    setTitle('');
    if (usable && !goTimer) goTimer = setTimeout(() => goOn(target), document.hidden ? 2 * GO_ON_AFTER : GO_ON_AFTER);
  }

  // How long the visitor has to go in: before the session is claimed, the time to claim it.
  function showLeft() {
    const left = endsAt - serverNow();
    reveal('remains', left > 0);
    if (left > 0) put('left', duration(Math.ceil(left / 1000)));
  }

  // One tab is enough: those in the background wait until they are looked at, except the one that leads, a little
  // later, if no other has gone.
  // The waiting page does not stay in the history, so that going back does not lead here again.
  function goOn(target) {
    if (document.hidden && (wentOn || !leading)) {
      goTimer = 0;
      return;
    }
    tell({ wentOn: true });
    location.replace(target);
  }

  function showUpdated() {
    const line = find('updated');
    if (!line) return;
    line.classList.toggle('trouble', troubled !== '');
    let text = fill(words.updated, clock.format(new Date(heardAt)));
    const keptUntil = heardAt + Number(page.kept);
    if (troubled === 'offline' && now() < keptUntil)
      text = fill(words.troubleOffline, shortClock.format(new Date(keptUntil)));
    else if (troubled === 'offline')
      text = words.troubleLong;
    else if (troubled === 'store')
      text = fill(words.stale, clock.format(new Date(heardAt)));
    else if (troubled)
      text = words.troubleServer;
    if (line.textContent !== text) line.textContent = text;
  }

  const ENDINGS = { completed: 'completed', left: 'left', unclaimed: 'unclaimed', absent: 'absent', removed: 'removed',
    unknown: 'ended' };

  function show(view) {
    if (!view || !view.status) return;
    const before = troubled;
    shown = view;
    const asOf = Date.parse(view.as_of);
    heardAt = asOf > 0 ? now() - Math.max(0, serverNow() - asOf) : now();
    troubled = asOf > 0 ? 'store' : '';
    const name = view.status === 'expired' ? ENDINGS[view.reason] || 'expired' : view.status;
    if (name !== 'active' && view.mode !== 'passthrough') {
      clearTimeout(goTimer);
      goTimer = 0;
    }
    if (view.poll_after_ms) page.poll = view.poll_after_ms;
    setState(name);
    if (name === 'waiting') showWaiting(view);
    else if (name === 'active') showActive(view);
    else setTitle('');
    if (view.notice !== undefined) showNotice(view.notice);
    showUpdated();
    if (before && !troubled && name === 'waiting') say(words.sayBack, true);
  }

  function showNotice(text) {
    put('notice', text);
    reveal('notice-box', text !== '');
    if (text) say(text, true);
  }

  function showTrouble(kind) {
    if (isOver() || state === 'active') return;
    troubled = kind;
    showUpdated();
    const line = find('updated');
    if (line && now() - heardAt > 5000) say(line.textContent, false);
  }

  function showGone(status) {
    troubled = '';
    setState({ 403: 'blocked', 404: 'closed' }[status] || 'lost');
    setTitle('');
    showUpdated();
  }

  // Accepted, but no room in the line yet. A place that is known already does not go back to that.
  function showFull() {
    if (state !== 'pending' && state !== 'full') return;
    heardAt = now();
    troubled = '';
    setState('full');
    setTitle('');
    showUpdated();
  }

  // ---- tabs: one leads, the others listen ----

  let leading = false;
  let letGo = null;             // gives the lead away, or stops asking for it
  let entered = false;          // takes part in what the tabs tell each other
  let channel = null;

  function tell(message) {
    if (channel) channel.postMessage(message);
    else stored(':said', { at: now(), random: Math.random(), message: message });
  }

  function hear(message) {
    if (!message) return;
    if (message.view) show(message.view);
    if (message.notice !== undefined) showNotice(message.notice);
    if (message.trouble) showTrouble(message.trouble);
    if (message.gone) showGone(message.gone);
    if (message.full) showFull();
    if (message.wentOn) wentOn = true;
  }

  // An answer of the server goes to this tab and to all others.
  function pass(message) {
    hear(message);
    tell(message);
  }

  function onStorage(event) {
    if (event.key === shared + ':said' && event.newValue) hear(JSON.parse(event.newValue).message);
  }

  function takeLead() {
    leading = true;
    follow();
  }

  // Web Locks exist on secure pages only; elsewhere a lease in the storage, renewed every 2 s and dead after 6, does.
  const LEASE = 6000;
  const me = String(Math.random());

  function holdLease() {
    const lease = stored(':lease');
    if (!lease || lease.me === me || lease.until < now() || lease.until > now() + LEASE) {
      stored(':lease', { me: me, until: now() + LEASE });
      const mine = stored(':lease');
      // If two tabs write at once, the later write wins; the other tab notices at its next renewal.
      if (!leading && (!mine || mine.me === me)) takeLead();
    } else if (leading) {
      leading = false;
      follow();
    }
  }

  function contest() {
    if (letGo || !entered) return;
    if (navigator.locks) {
      const control = new AbortController();
      letGo = () => control.abort();
      navigator.locks.request(shared, { signal: control.signal }, () => new Promise((resolve) => {
        letGo = resolve;
        takeLead();
      })).catch(() => { /* resigned before it was our turn */ });
    } else {
      const renewal = setInterval(holdLease, 2000);
      letGo = () => {
        clearInterval(renewal);
        if (leading) stored(':lease', { me: me, until: 0 });
      };
      holdLease();
    }
    if (!leading) follow();
  }

  function resign() {
    if (letGo) letGo();
    letGo = null;
    leading = false;
    stop();
  }

  function enter() {
    if (entered || ALONE.indexOf(state) >= 0) return;
    entered = true;
    if (window.BroadcastChannel) {
      channel = new BroadcastChannel(shared);
      channel.onmessage = (event) => hear(event.data);
    } else {
      addEventListener('storage', onStorage);
    }
    if (!isOver()) contest();
  }

  function leave() {
    resign();
    entered = false;
    if (channel) channel.close();
    channel = null;
    removeEventListener('storage', onStorage);
  }

  // ---- talking to the server ----

  let turn = 0;                 // answers to an earlier turn are thrown away
  let source = null;
  let timer = 0;
  let failures = 0;
  let streamAfter = 0;          // not before this time
  let patient = true;           // does a held question work on this network?

  function stop() {
    turn++;
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  }

  function later(ms, step) {
    clearTimeout(timer);
    timer = setTimeout(step, ms);
  }

  function address(path, query) {
    const parameters = (query ? [query] : []).concat(carried ? ['ticket=' + carried[1]] : []);
    return api + path + (parameters.length ? '?' + parameters.join('&') : '');
  }

  function ask(wait) {
    const control = window.AbortController ? new AbortController() : null;
    const options = { credentials: 'same-origin', cache: 'no-store', headers: { Accept: 'application/json' } };
    if (control) options.signal = control.signal;
    const limit = new Promise((resolve, reject) => setTimeout(() => {
      if (control) control.abort();
      reject({ status: 0 });
    }, wait ? 30000 : 12000));
    const answer = fetch(address('/status', wait ? 'wait=20s' : ''), options).then((response) => {
      const date = Date.parse(response.headers.get('Date'));
      if (date && Math.abs(date - serverNow()) > 5000) ahead = date - now();
      if (response.ok) return response.json();
      throw { status: response.status };
    });
    return Promise.race([answer, limit]);
  }

  const isGone = (error) => error && [401, 403, 404, 409].includes(error.status);

  // The waits grow with every failure in a row and are spread, so that a crowd does not come back all at once.
  function retry(step) {
    failures++;
    showTroubleToAll();
    later(Math.min(RETRY_MAX, RETRY_MIN * Math.pow(2, failures)) * (0.3 + 0.7 * Math.random()), step);
  }

  function showTroubleToAll() {
    const kind = navigator.onLine === false ? 'offline' : 'server';
    if (leading) pass({ trouble: kind });
    else showTrouble(kind);
  }

  function settle(error, step) {
    if (isGone(error)) {
      stop();
      pass({ gone: error.status });
    } else {
      retry(step);
    }
  }

  function take(view) {
    failures = 0;
    delete view.ticket;         // secrets stay where they are
    delete view.pass;
    pass({ view: view });
  }

  function parse(event) {
    try {
      return JSON.parse(event.data);
    } catch (e) {
      return null;
    }
  }

  function stream() {
    stop();
    const mine = turn;
    source = new EventSource(address('/events'));
    const onView = (event) => {
      if (mine !== turn) return;
      later(jitter(QUIET), check);
      const view = parse(event);
      const numbered = view && view.ticket;
      if (view) take(view);
      if (numbered && mine === turn) check();  // the cookie still holds the pending ticket: a question replaces it
    };
    ['pending', 'position', 'admitted', 'ended'].forEach((kind) => source.addEventListener(kind, onView));
    source.addEventListener('notice', (event) => {
      const notice = parse(event);
      if (mine === turn && notice) pass({ notice: notice.text || '' });
    });
    // This ticket has newer streams than it may have at once: they stay, and this page asks in turns.
    source.addEventListener('replaced', () => {
      if (mine === turn) streamBroke(true);
    });
    // The worker asks again by itself, after a while: the place comes over this stream.
    source.addEventListener('full', () => {
      if (mine !== turn) return;
      later(jitter(QUIET), check);
      pass({ full: true });
    });
    source.addEventListener('blocked', () => {
      if (mine !== turn) return;
      stop();
      pass({ gone: 403 });
    });
    source.onerror = () => {
      if (mine === turn) streamBroke(source.readyState === 2);
    };
    later(FIRST_EVENT, () => streamBroke(true));
  }

  // A refusal has a reason, which only a question brings out; so has a stream that stays silent. A cut is just tried again.
  function streamBroke(refused) {
    stop();
    if (refused) {
      streamAfter = now() + jitter(STREAM_AGAIN);
      later(jitter(500), poll);
    } else {
      retry(failures >= 2 ? poll : stream);
    }
  }

  // Nothing heard for a while: is the stream dead, or is there just nothing new?
  function check() {
    const mine = turn;
    later(jitter(QUIET), check);
    ask(false).then((view) => {
      if (mine === turn) take(view);
    }, (error) => {
      if (mine === turn) {
        stop();
        settle(error, stream);
      }
    });
  }

  function poll() {
    stop();
    const mine = turn;
    const asked = now();
    ask(patient).then((view) => {
      if (mine !== turn) return;
      take(view);
      if (isOver()) return;
      const held = now() - asked > 5000;
      const step = window.EventSource && now() > streamAfter ? stream : poll;
      later(held ? jitter(300) : jitter(Number(page.poll) || 5000), step);
    }, (error) => {
      if (mine !== turn) return;
      if (now() - asked > 5000) patient = false;
      settle(error, poll);
    });
  }

  // A tab that does not lead asks only when it is looked at and has heard nothing for long.
  function watch() {
    stop();
    const mine = turn;
    later(jitter(Math.max(10000, Number(page.poll) || 0)), () => {
      if (document.hidden || now() - heardAt < 1.5 * QUIET) {
        watch();
        return;
      }
      ask(false).then((view) => {
        if (mine !== turn) return;
        show(view);
        watch();
      }, (error) => {
        if (mine !== turn) return;
        if (isGone(error)) {
          showGone(error.status);
        } else {
          showTroubleToAll();
          watch();
        }
      });
    });
  }

  function follow() {
    stop();
    if (isOver() || !entered) return;
    if (!leading) watch();
    else if (window.EventSource && now() > streamAfter) stream();
    else poll();
  }

  // The visitor could not join, so there is no place to ask about: reload the page once the server is back. A full
  // line is asked again in this way, too.
  function reloadWhenBack() {
    setTimeout(() => {
      fetch(api, { cache: 'no-store' }).then((response) => {
        if (response.ok || response.status === 404) location.reload();
        else reloadWhenBack();
      }, reloadWhenBack);
    }, jitter(Math.max(5000, Number(page.poll) || 0)));
  }

  // ---- back from sleep, from another page, from being offline ----

  function wake() {
    if ((isOver() && state !== 'lost') || !entered) return;
    stop();
    failures = 0;
    const mine = turn;
    ask(false).then((view) => {
      if (mine !== turn) return;
      take(view);
      follow();
    }, (error) => {
      if (mine === turn) settle(error, follow);
    });
  }

  addEventListener('online', wake);
  addEventListener('offline', showTroubleToAll);
  addEventListener('pagehide', leave);
  addEventListener('pageshow', (event) => {
    if (!event.persisted) return;
    enter();
    wake();
  });
  document.addEventListener('freeze', leave);
  document.addEventListener('resume', () => {
    enter();
    wake();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return;
    if (now() - heardAt > 5000) wake();
    if (state === 'active') showActive(shown || {});
  });

  // Once a second, while looked at: the countdown, whether the machine slept or its clock was set, and whether there is a
  // network. An answer still on its way when the network went is shown; after that the page must not look connected.
  let ticked = now();
  setInterval(() => {
    const jumped = Math.abs(now() - ticked) > 15000;
    ticked = now();
    if (document.hidden) return;
    if (jumped) wake();
    if (navigator.onLine === false && !troubled && now() - heardAt > 5000) showTroubleToAll();
    if (opensAt && state === 'waiting') showOpening();
    if (endsAt && state === 'active') showLeft();
    if (troubled) showUpdated();
  }, 1000);

  // ---- start: what the server rendered, written the visitor's way ----

  if (navigator.cookieEnabled === false) reveal('cookies', true);
  if (state === 'waiting' && Number(page.position)) {
    firstPosition({ position: Number(page.position) });
    showOpening();
  }
  if (state === 'active') showActive({});
  showUpdated();
  if (state === 'down' || state === 'full') reloadWhenBack();
  else enter();
})();
