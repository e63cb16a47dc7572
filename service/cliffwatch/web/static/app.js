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
  // What is shown stays, and the page says since when it is not up to date: `error` says what the service answered.
  function unanswered(error) {
    const banner = document.getElementById("lost"), since = new Date(answeredAt).toISOString().slice(11, 19);
    const what = error instanceof Failed ? "The service fails to answer (" + error.message + "). What is shown here is from " + since + " UTC"
      : "No answer from the service since " + since + " UTC. What is shown here is from then";
    banner.textContent = what + " and may be out of date. Runs go on without it; this page tries again by itself.";
    banner.hidden = false;
  }
  class Failed extends Error {}
  // Of an answer that is an error: its status, and what it says in a problem's JSON or on a page.
  function failedWith(status, type, text) {
    let detail = "";
    if (type.includes("json")) detail = JSON.parse(text).detail;
    else if (type.startsWith("text/html")) detail = pageOf(text).querySelector("#main .problem")?.textContent.trim();
    return new Failed(status + (detail ? ": " + detail : ""));
  }
  const pageOf = (text) => new DOMParser().parseFromString(text, "text/html");
  // An answer within ten seconds; throws where there is none. Without a valid login, the browser goes to the login.
  async function ask(path, accept) {
    const answer = await fetch(path, { headers: { Accept: accept }, signal: AbortSignal.timeout(ANSWER_MILLISECONDS) });
    if (answer.status === 401 || answer.redirected) {
      location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search));
      return null;
    }
    if (!answer.ok) throw failedWith(answer.status, answer.headers.get("Content-Type") || "", await answer.text());
    return answer;
  }

  // Whether a <details> is open is its reader's, so an update leaves it as it is.
  const isReaders = (present, name) => present.nodeName === "DETAILS" && name === "open";
  // Makes `present` like `wanted` and leaves alone what is like it already, with its focus and its place.
  function update(present, wanted) {
    if (present.isEqualNode(wanted)) return;
    if (present.nodeType !== Node.ELEMENT_NODE) { present.nodeValue = wanted.nodeValue; return; }
    for (const { name } of [...present.attributes]) if (!wanted.hasAttribute(name) && !isReaders(present, name)) present.removeAttribute(name);
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
      update(list, pageOf(await answer.text()).getElementById(list.id));
      answered();
    } catch (error) {
      unanswered(error);
      pause = RETRY_MILLISECONDS;
    }
    // A hidden page does not poll; it polls at once when it is shown again.
    if (!document.hidden) waiting = setTimeout(refresh, pause);
  }
  if (list) {
    waiting = setTimeout(refresh, Number(list.dataset.refreshSeconds) * 1000);
    document.addEventListener("visibilitychange", () => { clearTimeout(waiting); if (!document.hidden) refresh(); });
  }

  // What the chosen workload does, for how long, and to which kind of target.
  const choice = document.getElementById("workload"), kind = document.getElementById("target_kind");
  choice?.addEventListener("change", () => {
    const fitting = (choice.selectedOptions[0].dataset.targets ?? "").split(" ");
    if (!fitting.includes(kind.value)) kind.value = [...kind.options].find((each) => fitting.includes(each.value))?.value ?? kind.value;
    for (const each of document.querySelectorAll("[data-of-workload]")) each.hidden = each.dataset.ofWorkload !== choice.value;
  });

  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });
  // A piece of a page takes the place of the one before it; whatever else comes leaves it alone.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target, shouldSwap } = event.detail, type = xhr.getResponseHeader("Content-Type") || "";
    if (!shouldSwap || (type.startsWith("text/html") && pageOf(xhr.responseText).getElementById(target.id))) return;
    event.detail.shouldSwap = false;
    unanswered(failedWith(xhr.status, type, xhr.responseText));
  });
  document.addEventListener("htmx:sendError", unanswered);
  document.addEventListener("htmx:afterSwap", answered);
  window.cliffwatch = { answered, unanswered, ask };
})();
