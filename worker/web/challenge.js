/*
 * Solves the puzzle of a queue with `challenge: work` (common/auth/puzzle.h) and joins with the solution; or with
 * `challenge: external` shows the widget of a challenge service and joins with its token. Only pages that need it hold
 * it. Its address starts it once more as a web worker, which solves; where that fails, it solves in the page, in
 * slices. ES5, for old browsers: theirs is the longest wait.
 */
(function () {
  'use strict';

  // ---- SHA-256 of one block, of which only the first word is needed ----

  var K = new Int32Array(64);
  var START = new Int32Array(8);
  for (var n = 0, prime = 2; n < 64; prime++) {
    var divisor = 2;
    while (prime % divisor) divisor++;
    if (divisor < prime) continue;
    if (n < 8) START[n] = fraction(Math.sqrt(prime));
    K[n++] = fraction(Math.pow(prime, 1 / 3));
  }

  function fraction(x) {
    return ((x - Math.floor(x)) * 4294967296) | 0;
  }

  // w: the 16 words of the block, and room for 48 more.
  function hash(w) {
    var a = START[0], b = START[1], c = START[2], d = START[3];
    var e = START[4], f = START[5], g = START[6], h = START[7];
    for (var i = 0; i < 64; i++) {
      if (i > 15) {
        var x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3) +
          ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10);
      }
      var s = h + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) + (g ^ e & (f ^ g)) + K[i] + w[i] | 0;
      var t = ((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & b | c & (a | b)) | 0;
      h = g; g = f; f = e; e = d + s | 0;
      d = c; c = b; b = a; a = s + t | 0;
    }
    return START[0] + a | 0;
  }

  // ---- the puzzle ----

  // Makes step(tries, tell): tries so many numbers, tells how many parts are solved, and returns the solution once all
  // are. puzzle: { puzzle, parts, bits }, as a refused join carries it.
  function solver(puzzle) {
    var bytes = atob(puzzle.puzzle.replace(/-/g, '+').replace(/_/g, '/'));
    var w = new Int32Array(64);
    var found = '';
    var part = 0;
    var number = 0;
    for (var i = 0; i < bytes.length; i++) w[i >> 2] |= bytes.charCodeAt(i) << (24 - 8 * (i & 3));
    w[15] = 8 * (bytes.length + 5);
    var w8 = w[8];
    return function (tries, tell) {
      for (; tries > 0; tries--, number++) {
        w[8] = w8 | part << 8 | number >>> 24;
        w[9] = number << 8 | 128;
        if (hash(w) >>> (32 - puzzle.bits)) continue;
        for (var shift = 24; shift >= 0; shift -= 8) found += String.fromCharCode(number >>> shift & 255);
        number = -1;
        tell(++part);
        if (part === puzzle.parts)
          return puzzle.puzzle + '.' + btoa(found).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '');
      }
      return '';
    };
  }

  if (typeof document === 'undefined') { // the web worker
    self.onmessage = function (event) {
      var step = solver(event.data);
      var solution = '';
      while (!solution) solution = step(100000, function (parts) { self.postMessage({ parts: parts }); });
      self.postMessage({ solution: solution });
    };
    return;
  }

  // ---- the page ----

  var SLICE = 1000;             // tries between two looks at the clock
  var SLICE_MS = 20;            // then the page may do something else
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

  function solveHere(puzzle) {
    var step = solver(puzzle);
    (function slice() {
      var end = Date.now() + SLICE_MS;
      var solution = '';
      while (!solution && Date.now() < end) solution = step(SLICE, show);
      if (solution) send({ solution: solution });
      else setTimeout(slice, 0);
    })();
  }

  function solve(puzzle) {
    puzzles++;
    bar.max = puzzle.parts;
    show(0);
    try {
      var worker = new Worker(box.dataset.worker);
      worker.onmessage = function (event) {
        if (event.data.parts) show(event.data.parts);
        if (!event.data.solution) return;
        worker.terminate();
        send({ solution: event.data.solution });
      };
      worker.onerror = function () {
        worker.terminate();
        solveHere(puzzle);
      };
      worker.postMessage(puzzle);
    } catch (e) {
      solveHere(puzzle);
    }
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
        solve(answer);
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
  if (!widget) solve({ puzzle: box.dataset.puzzle, parts: Number(box.dataset.parts), bits: Number(box.dataset.bits) });
  document.documentElement.setAttribute('data-running', '1'); // refresh.js asks
})();
