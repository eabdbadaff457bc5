// Says so where the browser lacks something that the pages need. What needs it would fail as if the service were away.
// Otherwise it asks what a link leads to, while the modules of the page that shows it are still on their way.
//
// It is a script of its own in an old form of the language, because such a browser may not read what the others are
// written in. What it looks for is the youngest that they use; all else is older.

(function () {
  "use strict";

  function isAble() {
    try {
      window.localStorage.getItem("");
      window.sessionStorage.getItem("");
    } catch (error) {
      return false; // the browser keeps no data of this site
    }
    return Boolean(window.AbortSignal && AbortSignal.any && AbortSignal.timeout && window.BroadcastChannel
      && window.HTMLDialogElement && String.prototype.toWellFormed && window.CSS
      && CSS.supports("color", "light-dark(#000, #fff)") && CSS.supports("selector(:has(a))"));
  }

  if (!isAble()) {
    document.getElementById("page").hidden = true;
    document.getElementById("unable").hidden = false;
  } else if (/^\/console\/(link|send)$/.test(location.pathname) && location.hash.length > 1) {
    var address = "/api/v1/links/" + encodeURIComponent(location.hash.slice(1)) + "?about=true";
    var answer = fetch(address, { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(60000) });
    answer.catch(function () {}); // the page says so
    /** @type {any} */ (window).asked = { address: address, answer: answer };
  }
})();
