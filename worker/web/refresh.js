/*
 * The page reloads itself by <meta http-equiv="refresh"> wherever scripts are off, blocked or do not arrive. Where they
 * run, this one takes the refresh out of force before the browser reads it, and reloads the page itself, at the same
 * pace, unless page.js says that it has started. ES3: nothing here may fail where page.js fails.
 */
(function (html) {
  var refresh = /^(\d+);url=(.*)$/.exec(html.getAttribute('data-refresh') || '');
  if (!refresh || !document.addEventListener) return;
  document.write('<noscript>');
  document.addEventListener('DOMContentLoaded', function () {
    setTimeout(function () {
      if (!html.getAttribute('data-running')) location.replace(refresh[2]);
    }, refresh[1] * 1000);
  });
})(document.documentElement);
