/*
 * Waiting without staring at the page: a sound, a vibration and a notification at the turn, and a screen that stays on,
 * each only for a visitor who asked for it with a button. The buttons are hidden where the browser cannot do it. Part of
 * page.js, which calls turned() when the state of the place has changed.
 */
var attention = find('attention').dataset;

var STARTED = 3000;           // a browser that does not let a sound start leaves the question open
var ONCE = 60000;             // one tab of several sounds; the others stay silent for so long
var SEEN = 500;               // by then the others see that it did

var isOn = function (name) { return find(name).getAttribute('aria-pressed') === 'true'; };
var isWaiting = function () { return state === 'waiting' || state === 'pending'; };

// The choice holds for this tab and this place, and survives a reload.
function choose(name, on, text) {
  find(name).setAttribute('aria-pressed', String(on));
  put(name + '-says', text);
  stored(':' + name, on ? page.visitor : null, 'sessionStorage');
}

// ---- the screen ----

var lock = null;
var asking = false;

// A browser takes the lock back when the page is hidden, and gives none to a hidden page.
function holdScreen() {
  if (lock || asking || document.hidden || !isOn('screen')) return;
  asking = true;
  navigator.wakeLock.request('screen').then(function (given) {
    asking = false;
    lock = given;
    given.addEventListener('release', unheld);
    if (isOn('screen')) put('screen-says', attention.screenIsOn);
    else freeScreen('');
  }, unheld);
}

// Refused, or taken back: an empty battery, unless the page is hidden.
function unheld() {
  lock = null;
  asking = false;
  if (isOn('screen') && !document.hidden) freeScreen(attention.screenRefused);
}

function freeScreen(text) {
  choose('screen', false, text);
  if (lock) lock.release();
}

function toggleScreen() {
  if (isOn('screen')) {
    freeScreen('');
    return;
  }
  choose('screen', true, '');
  holdScreen();
}

// ---- the sound ----

var Sound = window.AudioContext || window.webkitAudioContext;
var audio = null;

// Two notes, `times` times.
function chime(times) {
  for (var i = 0; i < 2 * times; i++) {
    var at = audio.currentTime + Math.floor(i / 2) * 0.9 + i % 2 * 0.2;
    var note = audio.createOscillator();
    var volume = audio.createGain();
    note.frequency.value = i % 2 ? 1175 : 880;
    volume.gain.setValueAtTime(0, at);
    volume.gain.linearRampToValueAtTime(0.4, at + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.001, at + 0.6);
    note.connect(volume);
    volume.connect(audio.destination);
    note.start(at);
    note.stop(at + 0.7);
  }
}

// Resolves with whether sounds can be heard. Only a click makes a browser say yes; later it may say so by itself.
function startSound() {
  audio = audio || new Sound();
  return Promise.race([Promise.resolve(audio.resume()), new Promise(function (resolve) {
    setTimeout(resolve, STARTED);
  })]).then(function () { return audio.state === 'running'; }, function () { return false; });
}

// Chrome on Android has notifications for service workers only.
var canNotify = 'Notification' in window && !/Android/.test(navigator.userAgent);

function describeSound() {
  if (!isOn('sound') || !audio || audio.state !== 'running') return;
  var permission = canNotify ? Notification.permission : '';
  var more = permission === 'granted' ? attention.soundNotified : permission === 'denied' ? attention.soundDenied : '';
  put('sound-says', attention.soundIsOn + (more ? ' ' + more : ''));
}

function silence(text) {
  choose('sound', false, text);
  if (audio) audio.close();
  audio = null;
}

// Once sounds can be heard, or not, if the visitor may still want them then.
function sound(wanted, refusal, times) {
  startSound().then(function (runs) {
    if (!wanted()) return;
    if (!runs) {
      silence(refusal);
      return;
    }
    choose('sound', true, '');
    describeSound();
    chime(times);
  });
}

function toggleSound() {
  if (isOn('sound')) {
    silence('');
    return;
  }
  choose('sound', true, '');
  sound(function () { return isOn('sound'); }, attention.soundRefused, 1);
  if (canNotify && Notification.permission === 'default')
    Notification.requestPermission(describeSound);
}

// ---- the turn ----

function ring() {
  startSound().then(function (runs) { if (runs) chime(3); });
  if (navigator.vibrate) navigator.vibrate([400, 200, 400, 200, 400]);
  if (!canNotify || Notification.permission !== 'granted') return;
  try {
    var notification = new Notification(attention.turn, { body: page.brand, tag: shared, lang: attention.locale });
    notification.onclick = function () { window.focus(); };
  } catch (e) { /* the browser has them for service workers only */ }
}

// Keeps the lock until its end.
function ringOnce() {
  var rang = Number(stored(':rang'));
  if (Math.abs(now() - rang) < ONCE) return null;
  stored(':rang', now());
  ring();
  return new Promise(function (resolve) { setTimeout(resolve, SEEN); });
}

// Of several tabs where the visitor asked for it, the first one sounds: another than the leading one, if need be.
function ringInOneTab() {
  if (navigator.locks) navigator.locks.request(shared + ':sound', ringOnce).catch(ringOnce);
  else ringOnce();
}

function turned() {
  if (isWaiting()) return;
  if (state === 'active' && isOn('sound')) ringInOneTab();
  choose('sound', false, '');
  if (isOn('screen')) freeScreen('');
}

// ---- start ----

function restore() {
  var asked = function (name) { return stored(':' + name, undefined, 'sessionStorage') === page.visitor; };
  if (asked('screen') && !find('screen').hidden) toggleScreen();
  if (!asked('sound') || find('sound').hidden) return;
  if (state === 'active') ringInOneTab();
  else if (isWaiting()) sound(function () { return isWaiting() && !isOn('sound'); }, attention.soundAgain, 0);
}

find('screen').hidden = !(navigator.wakeLock && navigator.wakeLock.request);
find('sound').hidden = !Sound;
find('screen').addEventListener('click', toggleScreen);
find('sound').addEventListener('click', toggleSound);
document.addEventListener('visibilitychange', holdScreen);
if (!page.preview) restore();
turned();
