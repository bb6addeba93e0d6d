/*
 * The page that proves a place: is the leaf in the trail of the checkpoint, is it this visitor's, and, with the key that
 * the operator publishes, is the checkpoint signed? ES5 beside what WebCrypto needs.
 */
(function () {
  var box = document.getElementById('proof');
  if (!box) return;
  var proof = JSON.parse(box.getAttribute('data-proof'));
  var subtle = window.crypto && window.crypto.subtle;

  function show(which, group) {
    group.forEach(function (name) {
      box.querySelector('[data-says="' + name + '"]').hidden = name !== which;
    });
    box.setAttribute('data-' + group[0], which);
  }

  function showPlace(which) { show(which, ['good', 'bad', 'unable']); }
  function showKey(which) { show(which, ['signed', 'unsigned', 'unable_key']); }

  // Of base64, also of base64url.
  function decode(text) { return octets(atob(text.replace(/-/g, '+').replace(/_/g, '/'))); }

  function octets(text) {
    var bytes = new Uint8Array(text.length);
    for (var i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }

  function utf8(text) { return octets(unescape(encodeURIComponent(text))); }

  function join(parts) {
    var length = parts.reduce(function (sum, part) { return sum + part.length; }, 0);
    var bytes = new Uint8Array(length), at = 0;
    parts.forEach(function (part) {
      bytes.set(part, at);
      at += part.length;
    });
    return bytes;
  }

  function hash(parts) {
    return subtle.digest('SHA-256', join(parts)).then(function (bytes) { return new Uint8Array(bytes); });
  }

  function same(a, b) {
    return a.length === b.length && Array.prototype.every.call(a, function (byte, i) { return byte === b[i]; });
  }

  // The root to which the hashes lead (RFC 9162, 2.1.3.2). Numbers are larger than 32 bits.
  function rootOf() {
    var fn = proof.index, sn = proof.size - 1, fits = fn <= sn;
    var node = hash([[0], utf8(proof.leaf)]);
    proof.hashes.forEach(function (text) {
      var step = decode(text), left = fn % 2 === 1 || fn === sn;
      fits = fits && sn > 0;
      node = node.then(function (known) { return hash(left ? [[1], step, known] : [[1], known, step]); });
      while (left && fn % 2 === 0 && fn > 0) {
        fn /= 2;
        sn = Math.floor(sn / 2);
      }
      fn = Math.floor(fn / 2);
      sn = Math.floor(sn / 2);
    });
    return node.then(function (root) { return fits && sn === 0 ? root : new Uint8Array(0); });
  }

  function who() {
    return hash([decode(proof.salt), utf8(proof.visitor)]).then(function (bytes) { return bytes.subarray(0, 16); });
  }

  // Of a place that a draw gave, the last word names the visitor: LANE:SEQ:WHO.
  function named() {
    var words = proof.leaf.split(' ');
    return decode(words[2] === 'drawn' ? words[6].split(':')[2] : words[5]);
  }

  function checkPlace() {
    var lines = proof.checkpoint.split('\n');
    return Promise.all([rootOf(), who()]).then(function (found) {
      showPlace(Number(lines[1]) === proof.size && same(found[0], decode(lines[2])) &&
        same(found[1], named()) ? 'good' : 'bad');
    });
  }

  // The signatures of a note (golang.org/x/mod/sumdb/note): "— NAME BASE64", of four bytes of the key's hash and 64.
  function checkKey(text) {
    var at = /^([^+]+)\+[0-9a-f]{8}\+([A-Za-z0-9+\/]+=*)$/.exec(text);
    var end = proof.checkpoint.indexOf('\n\n') + 1;
    var key = at && decode(at[2]);
    if (!key || key.length !== 33 || key[0] !== 1) return Promise.resolve(showKey('unsigned'));
    var signatures = proof.checkpoint.slice(end + 1).split('\n').filter(function (line) {
      return line.indexOf('\u2014 ' + at[1] + ' ') === 0;
    });
    return subtle.importKey('raw', key.subarray(1), { name: 'Ed25519' }, false, ['verify']).then(function (imported) {
      return Promise.all(signatures.map(function (line) {
        return subtle.verify({ name: 'Ed25519' }, imported, decode(line.split(' ')[2]).subarray(4),
          utf8(proof.checkpoint.slice(0, end)));
      }));
    }).then(function (all) { showKey(all.indexOf(true) >= 0 ? 'signed' : 'unsigned'); },
      function () { showKey('unable_key'); });
  }

  if (!subtle) {
    showPlace('unable');
    return;
  }
  checkPlace().then(null, function () { showPlace('bad'); });
  box.querySelector('[data-says="asks"]').hidden = false;
  document.getElementById('key').addEventListener('change', function () {
    if (this.value.trim()) checkKey(this.value.trim());
  });
})();
