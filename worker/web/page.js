/*
 * Keeps the waiting page current. The page is complete without this script; with it, it updates in place.
 *
 * line.js asks and listens, for all tabs with this place; this script shows. The place belongs to the ticket (a cookie
 * that it cannot read), so a lost connection loses nothing; the page says so.
 *
 * The cookie is the browser's, and may be of another place than the page by now: one that was moved here in another
 * tab. So a page whose answer is of another visitor loads again.
 *
 * ES5, as an old browser that cannot parse the script would not even run its first line.
 *
 * The script finds what it changes by data-tl and shows the elements whose data-state lists the current state.
 */
(function () {
  'use strict';

  // include: line.js

  // An old browser lacks one of these; then the page reloads itself (refresh.js).
  if (!window.Promise || !window.fetch || !window.Intl || !window.NodeList || !NodeList.prototype.forEach) return;

  var page = document.body.dataset;
  var words = document.querySelector('[data-tl="words"]').dataset;
  var locale = words.locale;
  var api = '/v1/queues/' + page.queue;
  var shared = 'tellerline:' + page.queue;
  var carried = /[?&](ticket=[^&#]+)/.exec(location.search);
  var OVER = ['completed', 'left', 'expired', 'unclaimed', 'absent', 'ended', 'lost', 'removed', 'moved', 'blocked',
    'closed', 'shut', 'sold_out', 'passthrough'];
  var ALONE = ['invited', 'outside', 'challenge', 'code_over', 'move_here', 'transfer'];  // no place to ask about

  var SAY_EVERY = 60000;      // at most this often aloud, unless something important happens
  var ALMOST = 20;            // "almost there" from this many ahead on
  var GO_ON_AFTER = 3000;
  var MOVING = 5000;          // the longest silence while another tab takes another place
  var BACK_WITHIN = 8000;     // after trouble; spread, and later where the server says so

  // ---- small helpers ----

  var find = function (key) { return document.querySelector('[data-tl="' + key + '"]'); };

  function put(key, text) {
    var element = find(key);
    if (element && element.textContent !== text) element.textContent = text;
  }

  function reveal(key, shown) {
    document.querySelectorAll('[data-tl="' + key + '"]').forEach(function (e) { e.hidden = !shown; });
  }

  // Storage may be full or forbidden; then the tabs coordinate less, and a choice ends with the document.
  function stored(key, value, storage) {
    try {
      var kept = window[storage || 'localStorage'];
      if (value === undefined) return JSON.parse(kept.getItem(shared + key));
      if (value === null) kept.removeItem(shared + key);
      else kept.setItem(shared + key, JSON.stringify(value));
    } catch (e) { /* not available */ }
    return null;
  }

  // ---- numbers and times as they are written here (the same rules as in page_text.c) ----

  var numbers = new Intl.NumberFormat(locale);
  var clock = new Intl.DateTimeFormat(locale, { hour: 'numeric', minute: '2-digit', second: '2-digit' });
  var shortClock = new Intl.DateTimeFormat(locale, { hour: 'numeric', minute: '2-digit' });
  var dateTime = new Intl.DateTimeFormat(locale, {
    year: 'numeric', month: 'long', day: 'numeric', weekday: 'long', hour: 'numeric', minute: '2-digit',
    timeZoneName: 'short'
  });
  var UNITS = [[86400, 'day'], [3600, 'hour'], [60, 'minute'], [1, 'second']];

  var fill = function (pattern, first, second) { return pattern.replace('{0}', first).replace('{1}', second); };

  // A text with plural forms has all of them, in the order of `forms`. An old browser does not know which a number takes.
  var forms = words.plurals.split('|');
  var rules = Intl.PluralRules ? new Intl.PluralRules(locale) : null;

  function count(pattern, number) {
    var form = rules ? rules.select(number) : number === 1 ? 'one' : 'other';
    var patterns = pattern.split('|');
    var i = forms.indexOf(form);
    return fill(patterns[i < 0 ? patterns.length - 1 : i], numbers.format(number));
  }

  function duration(seconds) {
    var i = 0;
    while (i < 3 && seconds < UNITS[i][0]) i++;
    var parts = [];
    for (var last = Math.min(i + 1, 3); i <= last; i++) {
      var amount = Math.floor(seconds / UNITS[i][0]);
      seconds %= UNITS[i][0];
      if (amount || !parts.length)
        parts.push(count(words[UNITS[i][1]], amount));
    }
    return parts.join(' ');
  }

  function range(lowSeconds, highSeconds) {
    var high = Math.ceil(Math.max(highSeconds, 0) / 60);
    var step = high <= 10 ? 1 : high <= 60 ? 5 : high <= 180 ? 10 : high <= 720 ? 30 : 60;
    high = Math.ceil(high / step) * step;
    var low = Math.floor(Math.max(Math.min(lowSeconds, highSeconds), 0) / 60 / step) * step;
    if (high <= 1 && low === 0) return words.rangeSoon;
    var to = duration(high * 60);
    if (low === 0) return fill(words.rangeUpto, to);
    if (low === high) return fill(words.rangeAbout, to);
    var unit = high < 60 ? 1 : low % 60 === 0 && high % 60 === 0 && high < 1440 ? 60 : 0;
    return fill(words.rangeBetween, unit ? numbers.format(low / unit) : duration(low * 60), to);
  }

  // ---- the place, as line.js follows it ----

  // Where the browser has no Web Locks (they exist on secure pages only), a lease in the storage, renewed every 2 s and
  // dead after 6, says which tab leads.
  var LEASE = 6000;
  var LEASE_SEEN = 300;       // by then the others have written theirs
  var me = String(Math.random());

  function takeTurnsByLease(name, lead, lost) {
    var leading = false;
    var renewal = setInterval(hold, 2000);

    function take() {
      leading = true;
      lead();
    }

    function hold() {
      var lease = stored(':lease:' + name);
      if (!lease || lease.me === me || lease.until < now() || lease.until > now() + LEASE) {
        var held = lease && lease.me === me;
        stored(':lease:' + name, { me: me, until: now() + LEASE });
        // All tabs may see a lease that has ended at once: the last to write has it, which shows once all have written.
        if (!leading && (held || !stored(':lease:' + name))) take();
        else if (!leading) setTimeout(confirm, LEASE_SEEN + Math.random() * LEASE_SEEN);
      } else if (leading) {
        leading = false;
        lost();
      }
    }

    function confirm() {
      var lease = stored(':lease:' + name);
      if (renewal && !leading && lease && lease.me === me) take();
    }

    hold();
    return function () {
      clearInterval(renewal);
      renewal = 0;
      if (leading) stored(':lease:' + name, null);
    };
  }

  // Where it has no BroadcastChannel: the events of the storage.
  function StorageChannel(name) {
    var channel = this;

    function hear(event) {
      if (event.key === shared + ':said:' + name && event.newValue)
        channel.onmessage({ data: JSON.parse(event.newValue).message });
    }

    channel.postMessage = function (message) {
      stored(':said:' + name, { at: now(), random: Math.random(), message: message });
    };
    channel.close = function () { removeEventListener('storage', hear); };
    addEventListener('storage', hear);
  }

  // This device's clock may be wrong, or jump, so there is the server's. The page holds the time of its answer, whose
  // first byte came before the rest had to load.
  var timing = window.performance && performance.timing;
  var answered = timing && timing.responseStart > 0 && timing.responseStart <= now() ? timing.responseStart : now();

  var place = line({ queue: page.queue, storage: null, page: {
    query: carried && carried[1],
    retry_max: BACK_WITHIN,
    ahead: Number(page.now) ? Number(page.now) - answered : NaN,
    notice: find('notice').textContent,
    Channel: window.BroadcastChannel || StorageChannel,
    takeTurns: navigator.locks ? null : takeTurnsByLease
  } });

  // ---- read aloud, politely ----

  var said = '';
  var saidAt = now();
  var next = '';                // to be said when its time has come
  var sayTimer = 0;

  function speak(text) {
    if (text === said) return;
    said = text;
    saidAt = now();
    put('aloud', text);
  }

  // Of a place only: when half of those ahead have gone since the last time, and near the turn.
  var saidAhead = Infinity;

  function sayPlace(text, ahead) {
    if (ahead >= ALMOST && ahead > saidAhead / 2) return;
    if (saidAhead !== Infinity) say(text, false);
    saidAhead = ahead;
  }

  function say(text, important) {
    if (important) speak(text);
    else next = text;
    clearTimeout(sayTimer);
    if (next && next !== said)
      sayTimer = setTimeout(function () { speak(next); }, Math.max(0, saidAt + SAY_EVERY - now()));
  }

  // ---- showing ----

  var state = page.state;
  var shown = null;             // the last view
  var heardAt = now() - (Number(page.stale) || 0);
  var opensAt = Number(page.opens) || 0;
  var endsAt = Number(page.ends) || 0;  // of the session, or of the time to claim it
  var claimed = Boolean(page.claimed);
  var best = 0;                 // the progress bar never moves back
  var goTimer = 0;
  var wentOn = false;           // another tab has gone in
  var troubled = Number(page.stale) ? 'store' : '';

  var isOver = function () { return OVER.indexOf(state) >= 0; };

  function setState(name) {
    if (name === state) return;
    state = name;
    next = '';                  // about the state that was
    wentOn = false;
    document.querySelectorAll('[data-state]').forEach(function (element) {
      if (element !== document.body) element.hidden = element.dataset.state.split(' ').indexOf(name) < 0;
    });
    page.state = name;
    var section = document.querySelector('section[data-state="' + name + '"]');
    var head = section && section.querySelector('h1');
    if (head) say(head.textContent, true);
    turned();
  }

  function setTitle(position, kind) {
    kind = kind || state[0].toUpperCase() + state.slice(1);
    var title = fill(words['title' + kind] || words.titleOver, position) + ' – ' + page.brand;
    if (document.title !== title) document.title = title;
  }

  // The first position known of this very place, by any tab and after a reload.
  function firstPosition(view) {
    var visitor = view.visitor || page.visitor;
    var kept = stored(':from');
    var same = kept && kept.visitor === visitor;
    if (kept && !same) best = 0;
    var from = Math.max(same ? kept.from : Number(page.from) || 0, view.position);
    var since = same && kept.at || now();
    if (!same || kept.from !== from || !kept.at) stored(':from', { visitor: visitor, from: from, at: since });
    put('since', fill(words.since, shortClock.format(new Date(since))));
    return from;
  }

  // Before a draw nobody has a position.
  function showDrawing(drawing) {
    reveal('drawing', drawing);
    reveal('in-order', !drawing);
    reveal('place', !drawing);
    reveal('move', !drawing);
    if (drawing) setTitle('', 'Drawing');
  }

  // Why there is no estimate, or why it grew; not a reason of a later version. more_ahead: words.whyMoreAhead.
  function showWhy(reason) {
    var name = ('_' + reason).replace(/_(.)/g, function (_, letter) { return letter.toUpperCase(); });
    var why = reason ? words['why' + name] : '';
    put('eta-why', why || '');
    reveal('eta-why', Boolean(why));
  }

  // The wait as times of this device's clock, as coarse as the wait is long; not of a day that would need a name.
  function showClock(view) {
    var step = (view.eta_high > 3600 ? 600 : view.eta_high > 600 ? 300 : 60) * 1000;
    var low = Math.floor((now() + (view.eta_low || 0) * 1000) / step) * step;
    var high = Math.ceil((now() + view.eta_high * 1000) / step) * step;
    var shown = view.eta_high > 60 && view.eta_high < 43200;
    reveal('eta-clock', shown);
    if (!shown) return;
    var from = new Date(Math.max(low, now()));
    var to = new Date(high);
    put('eta-clock', fill(words.etaClock, shortClock.formatRange ? shortClock.formatRange(from, to)
      : shortClock.format(from) + ' – ' + shortClock.format(to)));
  }

  function showPosition(view) {
    var position = numbers.format(view.position);
    var eta = view.eta_high === undefined ? words.rangeUnknown : range(view.eta_low || 0, view.eta_high);
    var ahead = view.ahead === undefined ? view.position - 1 : view.ahead;
    put('ahead', count(words.ahead, ahead));
    put('eta', eta);
    showClock(view);
    reveal('admitted-row', view.admitted_last_minute !== undefined);
    put('admitted', count(words.ahead, view.admitted_last_minute || 0));
    reveal('almost', ahead < ALMOST && !view.paused && !view.recovering && !view.called && !view.opens_at &&
      view.capacity !== 0);
    showWhy(view.paused || view.capacity === 0 ? '' : view.eta_reason);  // a note says it
    // Where something else says why, unknown is no news.
    reveal('eta-row', view.eta_high !== undefined || !(view.opens_at || view.paused || view.called || view.recovering ||
      view.capacity === 0));
    var from = firstPosition(view);
    best = Math.max(best, (from - view.position) / from);
    var bar = find('progress');
    if (bar) {
      bar.value = Math.floor(best * 1000);
      bar.setAttribute('aria-valuetext', fill(words.progress, numbers.format(Math.floor(best * 100))));
    }
    setTitle(position);
    sayPlace(fill(words.sayWaiting, position, eta), ahead);
  }

  function showWaiting(view) {
    var drawing = view.position === undefined;
    if (drawing && view.order !== 'draw') return;  // last known, and without a position
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
    var mode = view.mode || (view.paused ? 'paused' : 'open');
    if (view.phase === 'over' && (!view.mode || mode === 'draining')) mode = view.paused ? 'closed' : 'draining';
    reveal('paused', mode === 'paused');
    ['draining', 'closed', 'sold_out'].forEach(function (name) { reveal('mode-' + name, mode === name); });
    reveal('no-capacity', view.capacity === 0 && (mode === 'open' || mode === 'draining'));
    var target = targetOf(view);
    reveal('passthrough', mode === 'passthrough' && target);
    if (mode !== 'passthrough' || goTimer) return;
    goTimer = setTimeout(function () {
      if (target) goOn(target);
      else location.reload();     // its page says that there is no waiting
    }, jitter(GO_ON_AFTER));
  }

  // Where an admitted visitor goes; '': nowhere.
  function targetOf(view) {
    var target = page.return || view.target_url || page.target;
    return /^https?:\/\//i.test(target) ? target : '';
  }

  function showOpening() {
    var left = opensAt - place.now();
    var before = opensAt > 0 && (left > 0 || !shown);
    reveal('before', before);
    reveal('event-waiting', !before);
    if (!before) return;
    put('opens', dateTime.format(new Date(opensAt)));
    put('countdown', left > 0 ? duration(Math.ceil(left / 1000)) : words.opening);
  }

  function showActive(view) {
    var target = targetOf(view);
    var link = find('go');
    if (target && link) link.href = target;
    reveal('going', target);
    reveal('nowhere', !target);
    var until = Date.parse(view.expires_at);
    if (until > 0) {
      endsAt = until;
      claimed = Boolean(view.claimed);
    }
    if (endsAt > 0) {
      reveal('until', true);
      var ends = new Date(endsAt - place.now() + now());
      put('until', fill(claimed ? words.sessionUntil : words.claimUntil, shortClock.format(ends)));
    }
    reveal('to-claim', !claimed);
    reveal('then', !claimed);
    reveal('to-stay', claimed);
    showLeft();
    setTitle('');
    if (!target || goTimer) return;
    goTimer = setTimeout(function () { goOn(target); }, document.hidden ? 2 * GO_ON_AFTER : GO_ON_AFTER);
  }

  // How long the visitor has to come in; once the session is claimed, how long it lasts.
  function showLeft() {
    var left = endsAt - place.now();
    reveal('remains', left > 0);
    if (left > 0) put('left', duration(Math.ceil(left / 1000)));
  }

  // One tab is enough: those in the background wait until they are looked at, except the one that leads, a little
  // later, if no other has gone.
  // The waiting page does not stay in the history, so that going back does not lead here again.
  function goOn(target) {
    if (page.preview) return;
    if (document.hidden && (wentOn || !place.leads())) {
      goTimer = 0;
      return;
    }
    tell('gone on');
    location.replace(target);
  }

  function showUpdated() {
    var updated = find('updated');
    if (!updated) return;
    updated.classList.toggle('trouble', troubled !== '');
    var keptUntil = heardAt + Number(page.kept);
    var text = words.live;
    if (state === 'pending') {
      text = troubled ? words.troublePending : '';  // no place is saved yet
    } else if (troubled && troubled !== 'store' && Number(page.kept) && now() > keptUntil && state === 'waiting') {
      text = fill(words.troubleGone, shortClock.format(new Date(heardAt)), shortClock.format(new Date(keptUntil)));
      reveal('eta-row', false);  // it is of a place that may be gone
    } else if (troubled === 'offline') {
      text = fill(words.troubleOffline, shortClock.format(new Date(keptUntil)));
    } else if (troubled === 'store') {
      text = fill(words.stale, clock.format(new Date(heardAt)));
    } else if (troubled) {
      text = words.troubleServer;
    }
    if (updated.textContent !== text) updated.textContent = text;
  }

  var ENDINGS = { unclaimed: 'unclaimed', absent: 'absent', unknown: 'ended', lost: 'lost' };

  function show(view) {
    if (!isMine(view)) return;
    var before = troubled;
    if (view.visitor && !page.visitor) page.visitor = view.visitor;  // joined in another tab
    shown = view;
    var asOf = Date.parse(view.as_of);
    heardAt = asOf > 0 ? now() - Math.max(0, place.now() - asOf) : now();
    troubled = asOf > 0 ? 'store' : '';
    var name = view.status === 'expired' ? ENDINGS[view.end_reason] || 'expired' : view.status;
    if (name !== 'active' && view.mode !== 'passthrough') {
      clearTimeout(goTimer);
      goTimer = 0;
    }
    if (name === 'active' && asOf > 0 && view.waiting === undefined) {
      if (state !== 'active') showRefused('down');  // from the archive: there is no pass to go on with
      return;
    }
    if (!document.querySelector('section[data-state="' + name + '"]')) {
      reloadLater();            // a later release's, which its own page can show
      return;
    }
    setState(name);
    if (name === 'waiting') showWaiting(view);
    else if (name === 'active') showActive(view);
    else setTitle('');
    if (view.reference) {
      put('reference', view.reference);
      reveal('has-reference', true);
    }
    showUpdated();
    if (before && !troubled && name === 'waiting') say(words.sayBack, true);
  }

  var reloading = 0;

  function reloadLater() {
    if (!reloading) reloading = setTimeout(function () { location.reload(); }, jitter(10000));
  }

  function showNotice(text) {
    var box = find('notice');
    var changed = box && box.textContent !== text;
    put('notice', text);
    reveal('notice-box', text !== '');
    if (text && changed) say(text, true);
  }

  function showTrouble(kind) {
    if (isOver() || state === 'active') return;
    // A place from the archive, which no stream tells: still the last known one.
    if (troubled === 'store' && kind === 'server' && !Number(page.kept)) return;
    troubled = kind;
    showUpdated();
    var updated = find('updated');
    if (updated && kind !== 'store' && now() - heardAt > 5000) say(updated.textContent, false);
  }

  function showGone(problem) {
    showRefused({ 403: 'blocked', 404: 'closed' }[problem.status] || 'lost');
  }

  // Accepted, but no room in the line yet. A place that is known already does not go back to that.
  function showFull() {
    if (state !== 'pending' && state !== 'full') return;
    heardAt = now();
    showRefused('full');
  }

  function showRefused(name) {
    troubled = '';
    setState(name);
    setTitle('');
    showUpdated();
  }

  // ---- other places, and other tabs ----

  var moving = 0;               // the timer while another tab takes a place
  var doubted = '';             // whose place another tab shows

  function isOther(visitor) {
    return Boolean(visitor && page.visitor && visitor !== page.visitor);
  }

  // An answer to this page. Of another visitor: the cookie is of another place, which the page does not show.
  function isMine(view) {
    if (!isOther(view.visitor)) return true;
    place.stop();
    clearTimeout(goTimer);
    location.reload();
    return false;
  }

  // What tabs with whatever place tell each other.
  function tell(what) {
    stored(':said', { what: what, of: page.visitor, at: now(), random: Math.random() });
  }

  function hear(message) {
    if (message.what === 'moving' && !isOver()) {
      // Another tab takes a place: the ticket of this page is no longer sent, and the next answer says whose it is.
      place.stop();
      clearTimeout(moving);
      moving = setTimeout(askAgain, jitter(MOVING));
      doubted = '';
    } else if (message.what === 'here' && (isOver() || isOther(message.of) && message.of !== doubted)) {
      // Another tab shows a place: is it this browser's now? Or that tab's alone, with the ticket in its address.
      doubted = message.of;
      askAgain();
    } else if (message.what === 'gone on' && !isOther(message.of)) {
      wentOn = true;
    }
  }

  function askAgain() {
    clearTimeout(moving);
    moving = 0;
    place.resume();
  }

  // Is there a place by now?
  function wake() {
    if (state === 'lost' && !document.hidden) askAgain();
  }

  function enter() {
    place.on('view', show).on('refused', showGone).on('full', showFull);
    place.on('notice', function (text) {
      if (text || ['waiting', 'pending'].indexOf(place.view().status) >= 0) showNotice(text);  // other views have none
    });
    place.on('trouble', function (trouble) {
      if (trouble.kind !== 'store') showTrouble(trouble.kind);  // a view says that
    });
    addEventListener('storage', function (event) {
      if (event.key === shared + ':said' && event.newValue) hear(JSON.parse(event.newValue));
    });
    addEventListener('online', wake);
    addEventListener('pageshow', function (event) { if (event.persisted) wake(); });
    document.addEventListener('visibilitychange', wake);
    if (page.visitor) tell('here');
    if (!isOver()) place.resume({ visitor: page.visitor, status: state });
  }

  // The visitor could not join, so there is no place to ask about: reload the page once the server is back. A full
  // line is asked again in this way, too.
  function reloadWhenBack() {
    setTimeout(function () {
      fetch(api, { cache: 'no-store' }).then(function (response) {
        if (response.ok || response.status === 404) location.reload();
        else reloadWhenBack();
      }, reloadWhenBack);
    }, jitter(Math.max(5000, Number(page.poll) || 0)));
  }

  // ---- the place of the cookie: handed over, or left, only if the page shows it ----

  function address(path, query) {
    var parameters = [query, carried && carried[1]].filter(Boolean);
    return api + path + (parameters.length ? '?' + parameters.join('&') : '');
  }

  function send(method, path, query) {
    return fetch(address(path, query), {
      method: method, credentials: 'same-origin', cache: 'no-store', headers: { Accept: 'application/json' }
    }).then(function (response) {
      if (!response.ok) throw response;
      return response.json();
    });
  }

  // Resolves with whether it is the page's; if not, the page loads again.
  function askWhose() {
    var limit = new Promise(function (resolve, reject) { setTimeout(reject, 12000); });
    return Promise.race([send('GET', '/status'), limit]).then(isMine);
  }

  // The code is fetched only when it is asked for, and shown while it is good.

  var moveForm = find('move-form');
  var moveTimer = 0;

  function showCode(code) {
    var until = now() + code.expires_in_seconds * 1000;
    find('qr').innerHTML = code.svg;
    find('move-link').href = code.address;
    clearInterval(moveTimer);
    var tick = function () {
      var left = Math.ceil((until - now()) / 1000);
      reveal('move-code', left > 0);
      put('move-left', fill(words.moveLeft, duration(Math.max(left, 0))));
      if (left <= 0) clearInterval(moveTimer);
    };
    moveTimer = setInterval(tick, 1000);
    tick();
  }

  if (moveForm) moveForm.addEventListener('submit', function (event) {
    event.preventDefault();
    var back = /[?&](return=[^&]*)/.exec(moveForm.action);
    askWhose().then(function (mine) {
      return mine && send('POST', '/transfer', back && back[1]).then(showCode);
    }).catch(function () { moveForm.submit(); });  // its page says what is wrong
  });

  var leaveForm = find('leave-form');
  var leaves = false;
  if (leaveForm) leaveForm.addEventListener('submit', function (event) {
    event.preventDefault();
    if (leaves) return;
    leaves = true;
    askWhose().then(function (mine) {
      // The page follows its visitor to the next place. The form still names the one with which it was loaded.
      if (mine) leaveForm.action = leaveForm.action.replace(/([?&])place=[^&]*&?/, '$1');
      return mine;
    }, function () { return true; }).then(function (mine) {  // the form's page says what is wrong
      leaves = false;
      if (mine) leaveForm.submit();
    });
  });

  // A place comes to this browser: its ticket must not be replaced by one that another tab still asks with. The code is
  // in the fragment of the address, which only a script sees.
  var moveHere = document.querySelector('section[data-state="move_here"] form');
  if (moveHere && state === 'move_here' && !moveHere.elements.code) {
    var code = document.createElement('input');
    code.type = 'hidden';
    code.name = 'code';
    code.value = location.hash.slice(1);
    moveHere.appendChild(code);
    document.querySelectorAll('a[hreflang]').forEach(function (e) { e.href += location.hash; });
  }
  if (moveHere) moveHere.addEventListener('submit', function () { tell('moving'); });

  // ---- time passes ----

  document.addEventListener('visibilitychange', function () {
    if (!document.hidden && state === 'active') showActive(shown || {});
  });

  // Once a second, while looked at.
  setInterval(function () {
    if (document.hidden) return;
    if (opensAt && state === 'waiting') showOpening();
    if (endsAt && state === 'active') showLeft();
    if (troubled) showTrouble(troubled);
  }, 1000);

  // include: attention.js

  // ---- start: what the server rendered, written the visitor's way ----

  if (navigator.cookieEnabled === false) reveal('cookies', true);
  var eventDate = find('event-date');
  if (eventDate && eventDate.dataset.ms) put('event-date', dateTime.format(new Date(Number(eventDate.dataset.ms))));
  if (state === 'waiting' && Number(page.position)) {
    if (!page.preview) firstPosition({ position: Number(page.position) });
    if (page.high) showClock({ eta_low: Number(page.low), eta_high: Number(page.high) });
  }
  if (state === 'waiting') showOpening();
  if (state === 'active') showActive({});
  showUpdated();
  if (page.preview) {           // an operator looks at it: nothing is asked for
    if (page.preview === 'gone') heardAt = now() - Number(page.kept) - 60000;
    if (page.preview !== 'live') showTrouble(page.preview);
    return;
  }
  if (state === 'down' || state === 'full') reloadWhenBack();
  else if (ALONE.indexOf(state) < 0) enter();
  if (state !== 'challenge') document.documentElement.setAttribute('data-running', '1');  // refresh.js asks
})();
