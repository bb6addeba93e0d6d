/*!
 * tellerline.js: a place in a Tellerline queue, for pages and app web views of your own. No dependencies.
 * How to use it: docs/integrators/embedding.md. Types: tellerline.d.ts.
 *
 * ES5, callbacks and XMLHttpRequest: old web views must be able to parse it, or the page around it has no line at all.
 */
(function (root) {
  'use strict';

  // include: line.js
  // include: puzzle.js

  var tellerline = { line: line };
  if (typeof module === 'object' && module.exports) module.exports = tellerline;
  else root.Tellerline = tellerline;
})(typeof self !== 'undefined' ? self : this);
