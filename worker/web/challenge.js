/*
 * Solves the puzzle of a queue with `challenge: work` and joins with the solution; or with `challenge: external` shows
 * the widget of a challenge service and joins with its token. Only pages that need it hold it. Its address starts it
 * once more as a web worker, which solves. ES5, for old browsers: theirs is the longest wait.
 */
(function () {
  'use strict';

  // include: puzzle.js

  if (typeof document === 'undefined') { // the web worker
    work(solver);
    return;
  }

  // ---- the page ----

  var PUZZLES_MAX = 4;          // more are not solved without being asked
  var TOKENS_MAX = 6;           // likewise
  var SENT_MAX = 6;
  var box = document.querySelector('[data-tl="puzzle"]');
  var bar = document.querySelector('[data-tl="solving"]');
  var puzzles = 0;
  var tokens = 0;
  var sent = 0;

  function show(parts) {
    bar.hidden = false;
    bar.value = parts;
  }

  function giveUp() {
    bar.hidden = true;
    document.querySelector('[data-tl="unsolved"]').hidden = false;
  }

  function begin(puzzle) {
    puzzles++;
    bar.max = puzzle.parts;
    show(0);
    solve(puzzle, box.dataset.worker, function (solution) { send({ solution: solution }); }, show);
  }

  // A question to the server; done(status, answer, the request), with status 0 when there is none.
  function ask(method, path, body, done) {
    var carried = /[?&](ticket=[^&#]+)/.exec(location.search);
    var request = new XMLHttpRequest();
    request.open(method, '/v1/queues/' + document.body.dataset.queue + path + (carried ? '?' + carried[1] : ''));
    request.setRequestHeader('Accept', 'application/json');
    if (body) request.setRequestHeader('Content-Type', 'application/json');
    request.timeout = 30000;
    request.onloadend = function () {
      var answer = null;
      try {
        answer = JSON.parse(request.responseText);
      } catch (e) { /* not ours */ }
      done(request.status, answer || {}, request);
    };
    request.send(body);
  }

  // proof: { solution } or { token }. The same solution may be sent again: it gets the same place. A token is good once.
  function send(proof) {
    sent++;
    ask('POST', '/join', JSON.stringify(proof), function (status, answer, request) {
      if (status === 200 || status === 202) {
        goOn(answer.ticket);
      } else if (answer.puzzle && puzzles < PUZZLES_MAX) {
        begin(answer);
      } else if (answer.site_key && widget && tokens < TOKENS_MAX) {
        widget.again();
      } else if ((status === 0 || status === 429 || status >= 500) && sent < SENT_MAX) {
        var after = Number(request.getResponseHeader('Retry-After')) || 2 * sent;
        setTimeout(function () {
          if (proof.token) widget.again();
          else send(proof);
        }, 1000 * after * (1 + Math.random()));
      } else {
        giveUp();
      }
    });
  }

  // To the page of the place. The address carries the ticket only where the browser did not keep the cookie.
  function goOn(ticket) {
    ask('GET', '/status', null, function (status) {
      var address = box.dataset.self.replace(/([?&])ticket=[^&]*&?/, '$1').replace(/[?&]$/, '');
      if (status === 401) address += (address.indexOf('?') < 0 ? '?' : '&') + 'ticket=' + encodeURIComponent(ticket);
      location.replace(address);
    });
  }

  // ---- the widget of a challenge service ----

  // Loads the service's script and shows its widget; each token joins. again() gets another token.
  function showWidget(data) {
    var place = document.querySelector('[data-tl="service"]');
    var name = { turnstile: 'turnstile', hcaptcha: 'hcaptcha', recaptcha: 'grecaptcha' }[data.service];
    var id;

    function join(token) {
      tokens++;
      send({ token: token });
    }

    function again() {
      var service = window[name];
      if (data.scored) service.execute(data.key, { action: 'join' }).then(join, giveUp);
      else if (id !== undefined) service.reset(id);
      else
        id = service.render(place, {
          sitekey: data.key,
          callback: join,
          'error-callback': giveUp,
          'expired-callback': function () { service.reset(id); }
        });
    }

    var script = document.createElement('script');
    script.src = data.script + (data.script.indexOf('?') < 0 ? '?' : '&') +
      (data.scored ? 'render=' + data.key : 'render=explicit&onload=tellerlineReady');
    if (data.scored) script.onload = function () { window[name].ready(again); };
    else window.tellerlineReady = again;
    script.onerror = giveUp;
    document.head.appendChild(script);
    return { again: again };
  }

  addEventListener('pageshow', function (event) {
    if (event.persisted) location.replace(box.dataset.self); // the puzzle may have expired meanwhile
  });

  var widget = box.dataset.service ? showWidget(box.dataset) : null;
  if (!widget) begin({ puzzle: box.dataset.puzzle, parts: Number(box.dataset.parts), bits: Number(box.dataset.bits) });
  document.documentElement.setAttribute('data-running', '1'); // refresh.js asks
})();
