/*
 * Solves the puzzle of a queue with `challenge: work` (common/auth/puzzle.h): in a web worker, or in the page, in
 * slices. Part of tellerline.js and of challenge.js; both are ES5.
 */

// Makes step(tries, tell), which tries this many numbers, tells how many parts are solved, and returns the solution once
// all are. puzzle: { puzzle, parts, bits }, as a refused join carries it. Its source goes to a web worker, so it uses
// nothing from outside.
function solver(puzzle) {
  var K = new Int32Array(64), START = new Int32Array(8), w = new Int32Array(64);
  var bytes = atob(puzzle.puzzle.replace(/-/g, '+').replace(/_/g, '/'));
  var found = '', part = 0, number = 0, w8;

  function fraction(x) {
    return ((x - Math.floor(x)) * 4294967296) | 0;
  }

  // The first word of the SHA-256 of the one block in w.
  function hash() {
    var a = START[0], b = START[1], c = START[2], d = START[3];
    var e = START[4], f = START[5], g = START[6], h = START[7];
    for (var i = 0; i < 64; i++) {
      if (i > 15) {
        var x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3) +
          ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10);
      }
      var s = h + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) + (g ^ e & (f ^ g)) + K[i] +
        w[i] | 0;
      var t = ((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & b | c & (a | b)) | 0;
      h = g; g = f; f = e; e = d + s | 0;
      d = c; c = b; b = a; a = s + t | 0;
    }
    return START[0] + a | 0;
  }

  for (var n = 0, prime = 2; n < 64; prime++) {
    var divisor = 2;
    while (prime % divisor) divisor++;
    if (divisor < prime) continue;
    if (n < 8) START[n] = fraction(Math.sqrt(prime));
    K[n++] = fraction(Math.pow(prime, 1 / 3));
  }
  for (var i = 0; i < bytes.length; i++) w[i >> 2] |= bytes.charCodeAt(i) << (24 - 8 * (i & 3));
  w[15] = 8 * (bytes.length + 5);
  w8 = w[8];
  return function (tries, tell) {
    for (; tries > 0; tries--, number++) {
      w[8] = w8 | part << 8 | number >>> 24;
      w[9] = number << 8 | 128;
      if (hash() >>> (32 - puzzle.bits)) continue;
      for (var shift = 24; shift >= 0; shift -= 8) found += String.fromCharCode(number >>> shift & 255);
      number = -1;
      tell(++part);
      if (part === puzzle.parts)
        return puzzle.puzzle + '.' + btoa(found).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '');
    }
    return '';
  };
}

// What a web worker does: it is given a puzzle, and posts { parts } and at last { solution }.
function work(solver) {
  self.onmessage = function (event) {
    var step = solver(event.data), solution = '';
    while (!solution) solution = step(1e5, function (parts) { self.postMessage({ parts: parts }); });
    self.postMessage({ solution: solution });
  };
}

// In slices that leave the page usable: where there are no web workers, or its policy forbids this one.
function solveHere(puzzle, done, tell) {
  var step = solver(puzzle), stopped = false;
  (function slice() {
    var end = new Date().getTime() + 20, solution = '';
    while (!solution && new Date().getTime() < end) solution = step(1000, tell);
    if (stopped) return;
    if (solution) done(solution);
    else setTimeout(slice, 0);
  })();
  return function () { stopped = true; };
}

// Calls tell(parts) as parts are solved, and done(solution) once. Returns a function that stops the work. address: of a
// script that does work(solver) as a web worker; '': the page's policy allows one that is made here.
function solve(puzzle, address, done, tell) {
  var source = '(' + work + ')(' + solver + ')', worker, stop;
  try {
    worker = new Worker(address || URL.createObjectURL(new Blob([source], { type: 'text/javascript' })));
    worker.postMessage(puzzle);
  } catch (e) {
    return solveHere(puzzle, done, tell);
  }
  stop = function () { worker.terminate(); };
  worker.onmessage = function (event) {
    if (event.data.parts) tell(event.data.parts);
    if (!event.data.solution) return;
    worker.terminate();
    done(event.data.solution);
  };
  worker.onerror = function (event) {
    event.preventDefault();
    worker.terminate();
    stop = solveHere(puzzle, done, tell);
  };
  return function () { stop(); };
}
