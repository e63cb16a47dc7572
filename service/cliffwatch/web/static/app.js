"use strict";
// What every page needs: a question before what cannot be undone, lists that keep themselves up to date, and a word
// when the service does not answer.
(function () {
  const ANSWER_MILLISECONDS = 10000, RETRY_MILLISECONDS = 3000;
  let answeredAt = Date.now();

  function answered() {
    answeredAt = Date.now();
    document.getElementById("lost").hidden = true;
  }
  function unanswered() {
    const banner = document.getElementById("lost");
    if (!banner.hidden) return;
    const since = new Date(answeredAt).toISOString().slice(11, 19);
    banner.textContent = "No answer from the service since " + since + " UTC. What is shown here is from then. Runs go on without it; this page tries again by itself.";
    banner.hidden = false;
  }
  // An answer within ten seconds; throws where there is none. Without a valid login, the browser goes to the login.
  async function ask(path, accept) {
    const answer = await fetch(path, { headers: { Accept: accept }, signal: AbortSignal.timeout(ANSWER_MILLISECONDS) });
    if (answer.status === 401 || answer.redirected) {
      location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search));
      return null;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    return answer;
  }

  // Makes `present` like `wanted` and leaves alone what is like it already, with its focus and its place.
  function update(present, wanted) {
    if (present.isEqualNode(wanted)) return;
    if (present.nodeType !== Node.ELEMENT_NODE) { present.nodeValue = wanted.nodeValue; return; }
    for (const { name } of [...present.attributes]) if (!wanted.hasAttribute(name)) present.removeAttribute(name);
    for (const { name, value } of wanted.attributes) if (present.getAttribute(name) !== value) present.setAttribute(name, value);
    const known = new Map([...present.children].filter((child) => child.id).map((child) => [child.id, child]));
    let place = present.firstChild;
    for (const child of [...wanted.childNodes]) {
      const alike = child.id ? known.get(child.id) : place && !place.id && place.nodeName === child.nodeName ? place : null;
      if (!alike) { present.insertBefore(document.importNode(child, true), place); continue; }
      if (alike === place) place = place.nextSibling; else present.insertBefore(alike, place);
      update(alike, child);
    }
    while (place) { const next = place.nextSibling; place.remove(); place = next; }
  }

  const list = document.querySelector("[data-refresh-seconds]");
  let waiting = null;
  async function refresh() {
    clearTimeout(waiting);
    let pause = Number(list.dataset.refreshSeconds) * 1000;
    try {
      const answer = await ask(location.href, "text/html");
      if (answer === null) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      update(list, page.getElementById(list.id));
      answered();
    } catch (error) {
      unanswered();
      pause = RETRY_MILLISECONDS;
    }
    // A page that nobody looks at asks for nothing; it asks at once when it is looked at again.
    if (!document.hidden) waiting = setTimeout(refresh, pause);
  }
  if (list) {
    waiting = setTimeout(refresh, Number(list.dataset.refreshSeconds) * 1000);
    document.addEventListener("visibilitychange", () => { clearTimeout(waiting); if (!document.hidden) refresh(); });
  }

  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });
  document.addEventListener("htmx:sendError", unanswered);
  document.addEventListener("htmx:afterOnLoad", answered);
  window.cliffwatch = { answered, unanswered, ask };
})();
