/*
 * A visitor's place in one queue: joins, asks and listens, for all tabs with this place at once, and says what is new.
 * Part of tellerline.js, and of page.js, which shows it; both are ES5. A script that joins has puzzle.js, too.
 */
var ENDS = ['completed', 'left', 'expired', 'removed', 'moved'];
var EVENTS = ['pending', 'position', 'admitted', 'ended'];
var HELD = 20;                // seconds that a held question waits for news
var FIRST_EVENT = 10000;      // a stream silent for this long is held up by something on the way
var QUIET = 45000;            // ask when nothing was heard for this long
var STREAM_AGAIN = 90000;     // how long to ask in turns before trying a stream again
var RENEW_EVERY = 600000;     // the answer to a held question renews no cookie: this often, ask without holding
var RETRY_MIN = 2000;
var RETRY_MAX = 30000;
var TICK = 5000;
var TRIES = 6;                // of complete, leave and renew
var PUZZLES = 4;              // more are not solved without being asked

function now() {
  return new Date().getTime();
}

function jitter(ms) {
  return ms * (0.75 + Math.random() / 2);
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch (e) {
    return null;
  }
}

// Calls lead() when it is this tab's turn to lead, and returns what gives that up.
function takeTurns(name, lead) {
  var control = new AbortController(), over = false;
  var letGo = function () { control.abort(); };
  navigator.locks.request(name, { signal: control.signal }, function () {
    if (over) return null;
    return new window.Promise(function (resolve) {
      letGo = resolve;
      lead();
    });
  })['catch'](function () { /* gave up before it was this tab's turn */ });
  return function () {
    over = true;
    letGo();
  };
}

// options: as in tellerline.d.ts, and `page` of page.js, whose ticket is the browser's alone: { query: goes along with
// each question; retry_max, ahead, notice: to begin with; Channel, takeTurns: instead of what the browser lacks }.
function line(options) {
  var own = options.page || {};
  var server = (options.server || '').replace(/\/+$/, '');
  var api = server + '/v1/queues/' + options.queue;
  var here = location.protocol + '//' + location.host;
  // The cookie that the join sets works under the page's own origin only. Elsewhere the ticket goes along.
  var carries = false;
  var key = 'tellerline:' + api;
  var storage = options.storage;
  var ticket = '';
  var handlers = {};
  var last = null;            // the newest view
  var notice = own.notice || '';
  var trouble = '';
  var refused = null;
  var goes = false;           // was told to go on
  var ahead = own.ahead;      // of the server's clock before this device's; not a number: not known
  var heardAt = 0;
  var wanted = false;         // has a place, or wants one
  var joining = null;         // { proof }, until the join is answered
  var asleep = false;
  var turn = 0;               // answers to an earlier turn are thrown away
  var timer = 0;
  var ticker = 0;
  var ticked = 0;
  var failures = 0;
  var puzzles = 0;
  var stopSolving = null;
  var inquiry = null;         // the question on its way
  var source = null;
  var streamAfter = 0;        // no stream before this time
  var patient = true;         // does a held question work on this network?
  var holdUntil = now() + jitter(RENEW_EVERY);
  var retryMax = own.retry_max || RETRY_MAX;
  var Channel = own.Channel || window.BroadcastChannel;
  var turns = own.takeTurns || navigator.locks && window.AbortController && takeTurns;
  var current = false;        // is `last` the newest, so that a question may be held until there is news?
  var leading = false;
  var group = null;           // { visitor, channel, letGo }: the tabs with this place

  // ---- what the page is told ----

  // An error in the page's handler must not stop the waiting.
  function call(handler, a, b) {
    try {
      handler(a, b);
    } catch (error) {
      setTimeout(function () { throw error; }, 0);
    }
  }

  function emit(name, value) {
    (handlers[name] || []).slice().forEach(function (handler) { call(handler, value); });
  }

  // kind: offline, server, store; '' when it is over.
  function setTrouble(kind) {
    if (kind === trouble) return;
    trouble = kind;
    if (kind) emit('trouble', { kind: kind, heard: heardAt });
    else emit('live');
  }

  function setNotice(text) {
    if (text === notice) return;
    notice = text;
    emit('notice', text);
  }

  function isOver(view) {
    return ENDS.indexOf(view.status) >= 0 || view.status === 'passthrough';
  }

  function show(view) {
    var on = view.status === 'active' || view.status === 'passthrough' || view.mode === 'passthrough';
    var ended = last && isOver(last);
    failures = 0;
    refused = null;
    last = view;
    heardAt = now();
    setTrouble(view.as_of ? 'store' : '');
    setNotice(view.notice || '');
    emit('view', view);
    if (on && !goes) emit('admitted', view);
    goes = on;
    if (!isOver(view)) return;
    end();
    if (!ended && view.status !== 'passthrough') emit('ended', view);
  }

  function refuse(problem) {
    if (refused && refused.type === problem.type) return;
    refused = problem;
    end();
    if (problem.status === 401 || problem.status === 409) keep('');
    emit('refused', problem);
  }

  function hear(message) {
    if (message.view) show(message.view);
    if (message.notice !== undefined) setNotice(message.notice);
    if (message.trouble) setTrouble(message.trouble);
    if (message.full) {
      setTrouble('');
      emit('full');
    }
    if (message.refused) refuse(message.refused);
  }

  // To this tab, and to those that have the same place.
  function tell(message) {
    var channel = group && group.channel;
    if (channel) channel.postMessage(message);
    hear(message);
  }

  function take(view) {
    if (options.page) {
      delete view.ticket;
      delete view.pass;
    } else if (view.ticket) {
      keep(view.ticket);
    }
    tell({ view: view });
  }

  // ---- the ticket ----

  function keep(text) {
    ticket = text;
    try {
      if (carries && text) storage.setItem(key, text);
      else if (carries) storage.removeItem(key);
    } catch (e) { /* none, full or forbidden: the place lasts as long as the page */ }
  }

  // Another tab may have a newer one.
  function kept() {
    try {
      ticket = storage.getItem(key) || ticket;
    } catch (e) { /* none, or forbidden */ }
    return ticket;
  }

  try {
    if (storage === undefined) storage = window.localStorage;
  } catch (e) { /* forbidden */ }
  carries = (/^https?:/.test(server) && (server + '/').indexOf(here + '/') !== 0) || Boolean(options.ticket || kept());
  if (options.ticket) keep(options.ticket);

  // ---- questions to the server ----

  function address(path, query) {
    var parts = [query, own.query].filter(Boolean);
    return api + path + (parts.length ? '?' + parts.join('&') : '');
  }

  // done(view, null), or done(null, problem). A problem without a type is passing: no answer, or not one of Tellerline.
  function ask(method, path, body, timeout, done) {
    var request = new XMLHttpRequest();
    request.open(method, path);
    request.setRequestHeader('Accept', 'application/json');
    if (carries && kept()) request.setRequestHeader('Authorization', 'Bearer ' + ticket);
    if (body) request.setRequestHeader('Content-Type', 'application/json');
    request.timeout = timeout;
    request.onloadend = function () {
      var status = request.status;
      var answer = parse(request.responseText);
      var date = status && Date.parse(request.getResponseHeader('Date'));
      if (date && !(Math.abs(date - now() - ahead) <= 5000)) ahead = date - now();
      if ((status === 200 || status === 202) && answer && answer.status) {
        done(answer, null);
        return;
      }
      if (!answer || typeof answer.type !== 'string') answer = { type: '', title: 'No answer', status: status };
      answer.retry_after = Number(status && request.getResponseHeader('Retry-After')) || 0;
      done(null, answer);
    };
    request.send(body || null);
    return request;
  }

  // Asks for the status, unless halt() ends it.
  function question(query, timeout, done) {
    var mine = turn;
    inquiry = ask('GET', address('/status', query), '', timeout, function (view, problem) {
      if (mine === turn) done(view, problem);
    });
  }

  // May the same request be good later?
  function passes(problem) {
    return !problem.type || problem.status === 429 || problem.status >= 500;
  }

  // The waits grow with every failure in a row, are as long as the server asks for, and are spread, so that a crowd does
  // not come back all at once.
  function pause(problem) {
    var most = Math.min(retryMax, RETRY_MIN * Math.pow(2, failures++));
    var least = problem ? problem.retry_after * 1000 : 0;
    return Math.max(most * (0.3 + 0.7 * Math.random()), least * (1 + Math.random() / 2));
  }

  function later(ms, step) {
    clearTimeout(timer);
    timer = setTimeout(step, ms);
  }

  function halt() {
    turn++;
    clearTimeout(timer);
    if (inquiry) inquiry.abort();
    inquiry = null;
    if (source) source.close();
    source = null;
    if (stopSolving) stopSolving();
    stopSolving = null;
  }

  function kindOfTrouble() {
    return navigator.onLine === false ? 'offline' : 'server';
  }

  function failed(problem, step) {
    if (problem && problem.type === '/problems/full') tell({ full: true });
    else tell({ trouble: kindOfTrouble() });
    later(pause(problem), step);
  }

  function settle(problem, step) {
    if (passes(problem)) {
      failed(problem, step);
    } else if (problem.status === 401 && ticket && !carries) {
      carries = true;         // the browser did not keep the cookie
      keep(ticket);
      streamAfter = 0;
      step();
    } else {
      halt();
      tell({ refused: problem });
    }
  }

  // ---- joining ----

  // proof: { solution }, { token }, { invite }, or none. A solution may be sent again; a token is good once.
  function join(proof) {
    halt();
    wanted = true;
    refused = null;
    joining = { proof: proof };
    var mine = turn;
    var invite = options.invite ? { invite: options.invite } : null;
    var body = proof || invite;
    ask('POST', address('/join'), body ? JSON.stringify(body) : '', 30000, function (view, problem) {
      if (mine !== turn) return;
      if (view) {
        puzzles = 0;
        joining = null;
        take(view);
        follow();
      } else if (problem.puzzle && puzzles++ < PUZZLES) {
        emit('solving', problem);
        stopSolving = solve(problem, '', function (solution) {
          if (mine === turn) join({ solution: solution });
        }, function () {});
      } else if (problem.site_key) {
        emit('challenge', problem);
      } else if (passes(problem)) {
        failed(problem, function () { join(proof && proof.token ? null : proof); });
      } else {
        refuse(problem);
      }
    });
  }

  // ---- listening: a stream, else held questions, else questions in turns ----

  function stream() {
    halt();
    var mine = turn;
    function of(handler) {
      return function (event) {
        if (mine !== turn) return;
        later(jitter(QUIET), check);
        handler(parse(event.data) || {});
      };
    }
    source = new EventSource(address('/events', carries && 'ticket=' + encodeURIComponent(kept())));
    EVENTS.forEach(function (name) {
      source.addEventListener(name, of(function (view) {
        var newer = view.ticket && !carries; // than the cookie's, which a question replaces
        if (!view.status) return;
        take(view);
        if (newer && mine === turn) check();
      }));
    });
    source.addEventListener('notice', of(function (event) { tell({ notice: event.text || '' }); }));
    source.addEventListener('full', of(function () { tell({ full: true }); }));
    source.addEventListener('replaced', of(function () { streamBroke(true); }));
    source.addEventListener('blocked', of(poll)); // the answer says why
    source.addEventListener('moved', of(poll));
    source.onerror = function () {
      if (mine === turn) streamBroke(source.readyState === 2);
    };
    later(FIRST_EVENT, function () { streamBroke(true); });
  }

  // A refused stream has a reason, which only a question brings out. A cut one is tried again.
  function streamBroke(refusal) {
    halt();
    current = false;
    if (refusal) {
      streamAfter = now() + jitter(STREAM_AGAIN);
      later(jitter(500), poll);
    } else {
      failed(null, failures > 2 ? poll : listen);
    }
  }

  // Nothing was heard for a while: is the stream dead, or is there nothing new?
  function check() {
    later(jitter(QUIET), check);
    question('', 12000, function (view, problem) {
      if (view) {
        take(view);
      } else {
        halt();
        settle(problem, listen);
      }
    });
  }

  function poll() {
    halt();
    var mine = turn;
    var asked = now();
    var held = patient && current && asked < holdUntil;
    if (!held) holdUntil = asked + jitter(RENEW_EVERY);
    question(held && 'wait=' + HELD + 's', held ? 1500 * HELD : 12000, function (view, problem) {
      current = Boolean(view);
      if (view) {
        take(view);
        if (mine !== turn) return;
        later(jitter(patient && (!held || now() - asked > 5000) ? 300 : view.poll_after_ms || retryMax), listen);
      } else {
        if (held && !problem.status && now() - asked > 5000) patient = false;
        settle(problem, poll);
      }
    });
  }

  function listen() {
    if (window.EventSource && now() > streamAfter) stream();
    else poll();
  }

  // A tab that does not lead asks only when it is looked at and has heard nothing for long.
  function watch() {
    halt();
    var mine = turn;
    later(jitter(QUIET / 3), function () {
      if (document.hidden || now() - heardAt < 1.5 * QUIET) {
        watch();
        return;
      }
      question('', 12000, function (view, problem) {
        if (view) hear({ view: view });
        else if (!passes(problem)) refuse(problem);
        else setTrouble(kindOfTrouble());
        if (mine === turn) watch();
      });
    });
  }

  // ---- tabs: one leads, the others hear what it hears ----

  function disband() {
    var old = group;
    group = null;
    leading = false;
    if (!old) return;
    old.letGo();
    if (old.channel) old.channel.close();
  }

  function lead() {
    leading = true;
    listen();
  }

  function lost() {
    leading = false;
    watch();
  }

  // Without both of these each tab listens for itself.
  function gather() {
    var name = key + ':' + last.visitor;
    disband();
    group = { visitor: last.visitor, channel: null, letGo: function () {} };
    if (!turns || !Channel) {
      lead();
      return;
    }
    group.channel = new Channel(name);
    group.channel.onmessage = function (event) { hear(event.data); };
    group.letGo = turns(name, lead, lost);
    if (!leading) watch();
  }

  function follow() {
    if (!wanted || asleep || isOver(last)) return;
    begin();
    if (!group || group.visitor !== last.visitor) gather();
    else if (leading) listen();
    else watch();
  }

  // ---- sleep, other pages, no network ----

  // Asks at once, then goes on listening.
  function look() {
    halt();
    question('', 12000, function (view, problem) {
      if (view) {
        take(view);
        follow();
      } else {
        settle(problem, look);
      }
    });
  }

  function wake() {
    if (!wanted || asleep || stopSolving) return;
    ticked = now();
    failures = 0;
    if (joining) join(joining.proof);
    else look();
  }

  function sleep() {
    asleep = true;
    halt();
    disband();                // a frozen page must not keep the others from leading
  }

  function rise(event) {
    if (event.type === 'pageshow' && !event.persisted) return;
    asleep = false;
    wake();
  }

  function seen() {
    if (!document.hidden && !joining && now() - heardAt > TICK) wake();
  }

  function offline() {
    setTrouble('offline');
  }

  // Web views that stop timers in the background do not always say that they are back.
  function tick() {
    if (Math.abs(now() - ticked) > 3 * TICK && !document.hidden) wake();
    ticked = now();
    if (navigator.onLine === false && now() - heardAt > TICK) offline(); // news was still on its way when it went
  }

  var WATCHED = [[window, 'online', wake], [window, 'offline', offline], [window, 'pagehide', sleep],
    [window, 'pageshow', rise], [document, 'freeze', sleep], [document, 'resume', rise],
    [document, 'visibilitychange', seen]];

  function begin() {
    if (ticker) return;
    ticked = now();
    ticker = setInterval(tick, TICK);
    WATCHED.forEach(function (w) { w[0].addEventListener(w[1], w[2]); });
  }

  function stop() {
    halt();
    disband();
    clearInterval(ticker);
    ticker = 0;
    asleep = false;
    WATCHED.forEach(function (w) { w[0].removeEventListener(w[1], w[2]); });
  }

  function end() {
    wanted = false;
    joining = null;
    stop();
  }

  // ---- commands: they may be repeated, so a lost answer is no loss ----

  function command(name) {
    return function (done) {
      var tries = 0;
      (function send() {
        ask('POST', address('/' + name), '', 30000, function (view, problem) {
          if (view) {
            take(view);
            if (done) call(done, null, view);
          } else if (passes(problem) && ++tries < TRIES) {
            setTimeout(send, Math.max(jitter(1000 * tries), 1000 * problem.retry_after * (1 + Math.random() / 2)));
          } else if (done) {
            call(done, problem, null);
          }
        });
      })();
    };
  }

  return {
    on: function (name, handler) {
      (handlers[name] = handlers[name] || []).push(handler);
      return this;
    },
    join: function (proof) {
      begin();
      join(proof);
    },
    resume: function (view) {
      wanted = true;
      refused = null;
      begin();
      if (!view) {
        look();
        return;
      }
      last = view;
      heardAt = now();
      follow();
    },
    renew: command('renew'),
    claim: command('renew'),
    complete: command('complete'),
    leave: command('leave'),
    stop: end,
    leads: function () { return leading; },
    view: function () { return last; },
    ticket: function () { return kept(); },
    now: function () { return now() + (ahead || 0); }
  };
}
