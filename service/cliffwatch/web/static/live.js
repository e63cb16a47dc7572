"use strict";
// A run's page: draws its past, follows it while it goes on, and keeps trying while the service is away.
(function () {
  const byId = (id) => document.getElementById(id);
  const live = byId("live"), run = live.dataset.run, base = "/runs/" + run, runbooks = JSON.parse(live.dataset.runbooks);
  // Windows beyond this are thinned out by half, so that a page left open for days stays as large as it is.
  const ROW_LIMIT = 40000, EVENT_LIMIT = 200, shown = JSON.parse(live.dataset.shown);
  // What no event announces is asked for every so often, and with a new window or state as soon as that.
  const NOW_MILLISECONDS = 5000, SOON_MILLISECONDS = 500;
  // After a stream that was lost, and after one that the service refused: it has none to spare, and the page still draws.
  const LOST_MILLISECONDS = 2000, REFUSED_MILLISECONDS = 10000;
  const MARKS = { pass: "✓", degraded: "▲", invalid: "?", failed: "✕", stopped: "■" };
  let names = [], columns = [], origin = 0, planned = 0, latencyName = null, previousEnd = null;
  // What healthy was, by series, as the detector notes it.
  const baselines = {};
  let position = "0.-1", source = null, retry = null, over = false, begun = false;
  let asking = null, isAsking = false, isSoon = false, isRefused = false;
  // Each phase's name, start and end, in the order of their starts; onsets by finding; start, end and text of marked spans.
  const phases = [], marks = new Map(), disturbed = [];
  let phaseNow = null;

  const { latency, byteRate: bytes, count, rate: plain, ratio, elapsed } = window.quantities;
  const column = (name) => columns[names.indexOf(name)];
  const { draw, redraw, resize, recolour, phaseWords, zoomed } = window.runCharts({ column, phases, marks, disturbed, origin: () => origin, planned: () => planned });

  function addRow(row) {
    row.forEach((value, index) => columns[index].push(value));
    if (columns[0].length > ROW_LIMIT) columns = columns.map((values) => values.filter((value, index) => index % 2 === 0));
  }
  // As JournalWindow.stalled and curves.py say it.
  function stallOf(window, seconds) {
    const age = window.gauges.oldest_outstanding_seconds;
    if (window.counters.operations !== 0 || (age != null && age < seconds / 2)) return null;
    return age || 0;
  }
  function addWindow(window) {
    if (latencyName === null && Object.keys(window.latency).length > 0) { restart(); return; }
    const measured = window.latency[latencyName] || {}, counters = window.counters;
    const seconds = Math.min(window.gauges.measured_seconds || Infinity, window.end - window.start);
    const writes = counters.device_write_operations || 0, milliseconds = counters.device_write_milliseconds;
    if (previousEnd !== null && window.start - previousEnd > seconds * 0.01) addRow([previousEnd - origin + 0.001].concat(Array(names.length - 1).fill(null)));
    previousEnd = window.end;
    const get = (value) => (value == null ? null : value);
    addRow([window.end - origin, get(measured.p50), get(measured.p99), get(measured.p999), get(measured.max), (counters.operations || 0) / seconds,
      (counters.bytes || 0) / seconds, writes && milliseconds != null ? milliseconds / writes / 1000 : null, stallOf(window, seconds)]);
    byId("tile-windows").textContent = count(window.seq + 1);
    tiles();
    soon();
    redraw();
  }
  function show(texts) { for (const [id, text] of Object.entries(texts)) byId("tile-" + id).textContent = text; }
  function tiles() {
    const last = (name) => { const values = column(name); return values.length ? values[values.length - 1] : null; };
    document.querySelectorAll(".latency-name").forEach((element) => { element.textContent = (latencyName || "latency").replaceAll("_", " "); });
    if (over || last("elapsed") === null) return;
    const healthy = baselines[latencyName + ".p99"], stall = last("stall");
    const stalled = stall > 0 ? "stalled, oldest operation due for " + latency(stall) : "nothing completed";
    show({
      p50: latency(last("p50")), p99: latency(last("p99")), device: latency(last("device_write_latency")),
      bytes: bytes(last("bytes_per_second")), operations: plain(last("operations_per_second")),
      ratio: stall !== null ? stalled : "last window" + (healthy && last("p99") !== null ? ", " + ratio(last("p99") / healthy) + " baseline " + latency(healthy) : ""),
    });
  }
  // Once the run is over its tiles are about all of its load, as its report is.
  function finalTiles(body) {
    const figures = body.figures;
    if (!figures) return;
    show({
      elapsed: elapsed(body.elapsed_seconds || 0), p50: latency(figures.p50_seconds), p99: latency(figures.p99_seconds), device: latency(figures.device_write_seconds),
      bytes: bytes(figures.bytes_per_second), operations: plain(figures.operations_per_second), ratio: "whole load",
    });
    document.querySelectorAll(".tiles .span").forEach((element) => { element.textContent = element.textContent.replace("last window", "whole load"); });
  }

  function tile(figure) {
    const box = document.createElement("div"), name = document.createElement("dt"), value = document.createElement("dd"), note = document.createElement("dd");
    name.textContent = figure.name;
    value.textContent = figure.value;
    value.className = figure.is_bad ? "refused" : "";
    note.className = "note";
    note.textContent = figure.note;
    box.append(name, value, note);
    return box;
  }
  function showDrives(body) {
    const parts = [];
    for (const drive of body.drives) {
      const heading = document.createElement("h3"), list = document.createElement("dl"), missing = document.createElement("p");
      heading.textContent = drive.name;
      list.className = "tiles";
      list.append(...drive.figures.map(tile));
      missing.className = "quiet";
      missing.textContent = drive.missing;
      parts.push(heading, drive.missing ? missing : list);
    }
    byId("drives").replaceChildren(...parts);
    byId("drives-missing").textContent = body.drives_missing;
  }
  function showLimits(body) {
    byId("limits-section").hidden = body.limits.length === 0;
    byId("limits").replaceChildren(...body.limits.map((limit) =>
      tile({ name: limit.text, value: limit.value, is_bad: limit.broken, note: [limit.broken && limit.value !== "broken" ? "broken" : "", limit.again ? "holds again" : "", limit.margin, limit.note].filter(Boolean).join(", ") })));
    byId("limits-reading").hidden = !body.reading;
  }
  function showParts(body) {
    byId("parts-section").hidden = body.parts.length === 0;
    byId("parts").replaceChildren(...body.parts.map(tile));
  }
  function showLeft(body) {
    const at = body.elapsed_seconds, phase = body.left && phases.find(([name]) => name === phaseNow && name !== "prepare" && name !== "cool_down");
    if (at !== null) byId("tile-elapsed").textContent = elapsed(at);
    byId("tile-left").textContent = body.left || "–";
    // Of the phase beside the state. One that begins now may be a little ahead of the clock, and has no more left than it is long.
    byId("tile-phase-left").textContent = phase ? phaseWords(phase[0]) + ": " + elapsed(Math.max(0, Math.min(phase[2] - at, phase[2] - phase[1]))) + " left" : "until the end of load";
  }
  // The limits as the report judged them, and what to do about a run that says nothing of its target.
  async function finalAnswer() {
    try {
      const answer = await window.cliffwatch.ask(base + "/now", "application/json");
      if (answer === null) return;
      const body = await answer.json();
      showLimits(body);
      showParts(body);
      showRemedy(body.remedy);
      byId("standing").hidden = true;
    } catch (error) {
      window.cliffwatch.unanswered(error);
    }
  }
  // Besides the stream: what the journal does not hold, and whether the service answers at all.
  async function now() {
    clearTimeout(asking);
    asking = null;
    if (over || isAsking) return;
    isAsking = true;
    isSoon = false;
    try {
      const answer = await window.cliffwatch.ask(base + "/now", "application/json");
      if (answer === null) return;
      const body = await answer.json();
      if (over) return;
      showDrives(body);
      showParts(body);
      showLimits(body);
      showLeft(body);
      byId("standing").hidden = !(byId("standing").textContent = body.standing);
      // The last window says nothing of a load of which none comes any more.
      if (body.silent) show({ p50: "–", p99: "–", device: "–", bytes: "–", operations: "–", ratio: body.silent });
      // A load that was moved began at another time than the page counts from.
      if (begun && body.origin !== origin && source !== null) restart();
      if (!isRefused) window.cliffwatch.answered();
    } catch (error) {
      window.cliffwatch.unanswered(error);
    } finally {
      isAsking = false;
    }
    if (!document.hidden && !over) asking = setTimeout(now, isSoon ? SOON_MILLISECONDS : NOW_MILLISECONDS);
  }
  // However many windows come at a time, they are asked about once.
  function soon() {
    if (isSoon || over || document.hidden) return;
    isSoon = true;
    if (isAsking) return;
    clearTimeout(asking);
    asking = setTimeout(now, SOON_MILLISECONDS);
  }

  function item(event, list) {
    const line = document.createElement("li"), when = document.createElement("time"), kind = document.createElement("b"), text = document.createElement("span");
    const isOver = event.type === "alert" && event.detail.status === "resolved";
    line.className = isOver ? "resolved" : event.type;
    if (event.type === "finding") line.dataset.finding = nameOf({ kind: event.name, ...event.detail });
    when.textContent = elapsed(list === "findings" && event.type === "finding" ? onsetOf(event.detail, event.elapsed) : event.elapsed);
    kind.textContent = isOver ? "resolved" : event.type;
    // What was found stands above; here, only when.
    text.textContent = list === "events" && event.type === "finding" && event.detail.series ? event.name + " of " + (event.detail.device || event.detail.series.replace(".", " ")) : event.text;
    if (event.type === "alert" && runbooks.names.includes(event.name)) text.append(" ", runbookLink(event));
    line.append(when, kind, text);
    return line;
  }
  // As `runbook_link` of the pages.
  function runbookLink(event) {
    const labels = Object.entries(event.detail.labels || {}).filter(([name]) => runbooks.labels.includes(name)), link = document.createElement("a");
    link.href = "/runbooks/" + event.name + "?" + new URLSearchParams(labels);
    link.textContent = "what to do";
    return link;
  }
  // A list begins with its newest lines, whole; a button shows the others.
  const SHORT_LENGTH = 10;
  function offerAll(list) {
    const button = byId("all-" + list), length = byId(list).childElementCount;
    button.hidden = length <= SHORT_LENGTH;
    button.textContent = byId(list).classList.contains("short") ? "Show all " + length : "Show the newest " + SHORT_LENGTH;
  }
  for (const list of ["events", "findings"])
    byId("all-" + list).addEventListener("click", () => { byId(list).classList.toggle("short"); offerAll(list); });
  // A cliff goes on growing after it was raised, and the whole run shows best when it began: its lines and its mark
  // state what the journal states last.
  const nameOf = (detail) => { const { kind, series, onset } = detail.raised || detail; return [kind, series, onset].join(" "); };
  const onsetOf = (detail, elapsed) => (detail.onset != null ? detail.onset : detail.onset_seconds || origin + elapsed) - origin;
  // What is the matter with a run so far: sentences of its findings that are not over.
  const active = new Map();
  function showReasons(reasons) {
    const list = byId("reasons"), said = over || reasons.length ? reasons : [...active.values()];
    list.replaceChildren(...said.map((reason) => { const line = document.createElement("li"); line.append(...marked(reason)); return line; }));
    list.hidden = said.length === 0;
  }
  function updateFinding(detail, ending) {
    const name = nameOf(detail), lines = [...document.querySelectorAll("#findings li")].filter((each) => each.dataset.finding === name);
    for (const line of lines) [line.lastElementChild.textContent, line.firstElementChild.textContent] = [detail.summary + ending, elapsed(onsetOf(detail))];
    if (marks.has(name)) marks.set(name, onsetOf(detail));
    if (ending) active.delete(name); else if (active.has(name)) active.set(name, detail.summary);
    if (!over) showReasons([]);
    if (detail.confirmed === false) marks.delete(name);
    return lines.length > 0;
  }
  // As `phase_bounds` of the report: what is recorded again holds, and a phase may end before it was to.
  function enter(event) {
    const { start, end } = event.detail, begins = (start ?? Date.parse(event.at) / 1000) - origin, last = phases.at(-1);
    if (last && (last[0] === "prepare" || (last[0] === "warm_up" && event.name !== "warm_up" && last[1] < begins && begins < last[2]))) last[2] = begins;
    const known = phases.findIndex(([name]) => name === event.name);
    if (known >= 0) phases.splice(known, 1);
    phases.push([event.name, begins, end == null ? begins : end - origin]);
  }
  // As `Event.happened_at` of the journal.
  function happenedAt(event) {
    const { status, starts_at, ends_at } = event.detail;
    return (event.type === "alert" && (status === "resolved" ? ends_at : starts_at)) || Date.parse(event.at) / 1000;
  }
  function addEvent(event) {
    if (event.type === "note" && event.name === "baseline") Object.assign(baselines, event.detail.levels);
    const isCourse = event.type === "state" || event.type === "phase";
    if (!shown.types.includes(event.type) || (!isCourse && shown.routine.includes(event.name))) return;
    if (event.type === "note" && event.name === "marked") disturbed.push([event.detail.start - origin, event.detail.end - origin, event.detail.message]);
    if (event.type === "state") reasonsOf[event.name] = event.detail.reason;
    // An alert that names no run is about the service, and stands above the page.
    const isNotable = event.type === "finding" || (event.type === "alert" && (event.detail.labels || {}).run_id !== undefined);
    if (event.type === "finding") {
      marks.set(nameOf({ kind: event.name, ...event.detail }), onsetOf(event.detail, event.elapsed));
      if (event.name !== "recovery") active.set(nameOf({ kind: event.name, ...event.detail }), event.text);
      if (!over) showReasons([]);
    }
    if (event.type === "note" && event.name === "finding_updated" && updateFinding(event.detail, "")) return;
    if (event.type === "note" && event.name === "finding_ended" && updateFinding(event.detail, " Over at " + elapsed(event.detail.until - origin) + ".")) return;
    if (event.name === "finished" || event.name === "verdict_mended") [event.detail.findings, event.detail.unconfirmed].flatMap((found) => found || []).forEach((detail) => updateFinding(detail, ""));
    for (const list of isNotable ? ["events", "findings"] : ["events"]) {
      byId(list).prepend(item(event, list));
      while (byId(list).childElementCount > EVENT_LIMIT) byId(list).lastElementChild.remove();
      offerAll(list);
    }
    if (isNotable) byId("no-findings").hidden = true;
  }
  // As `phase_words` of the model.
  // As `marked` of the report's formats: what stands between two backticks is code.
  function marked(text) {
    const parts = text.split("`");
    if (parts.length % 2 === 0) return [text];
    return parts.map((part, place) => { if (place % 2 === 0) return part; const code = document.createElement("code"); code.textContent = part; return code; });
  }
  function showRemedy(text) {
    byId("remedy").hidden = text === "";
    byId("remedy").lastElementChild.replaceChildren(...marked(text));
  }
  // The page was made with what the run's state meant then.
  const meanings = JSON.parse(live.dataset.meanings), reasonsOf = {};
  let meant = live.dataset.meant;
  function showMeaning(body) {
    const state = body.state === "running" && body.phase === "cool_down" ? body.phase : body.state, reason = reasonsOf[state];
    if (meant !== state) byId("meaning").replaceChildren(...marked(meanings[state] + (reason ? " (" + reason + ")" : "")));
    meant = state;
  }
  function showRun(body) {
    showMeaning(body);
    byId("state").textContent = body.verdict || body.state === "reporting" ? body.state : body.state + (body.phase ? ", " + phaseWords(body.phase) : "");
    byId("progress").value = body.progress_ratio;
    phaseNow = body.state === "reporting" ? null : body.phase;
    soon();
    over = over || Boolean(body.verdict);
    showReasons(body.reasons);
    if (over) {
      const badge = document.createElement("span");
      badge.className = "badge " + body.verdict;
      badge.textContent = MARKS[body.verdict] + " " + body.verdict;
      byId("verdict").replaceChildren(badge);
      byId("meaning").textContent = "";
      byId("report").hidden = false;
      if (byId("ask-stop")) byId("ask-stop").hidden = true;
      finalTiles(body);
      for (const words of document.querySelectorAll(".until-over")) words.remove();
      for (const id of ["drives-section", "tile-left-box"]) byId(id).hidden = true;
      finalAnswer();
    }
  }

  function follow() {
    source = new EventSource(base + "/live?after=" + position);
    const take = (name, handle) => source.addEventListener(name, (message) => {
      position = message.lastEventId || position;
      handle(JSON.parse(message.data));
    });
    take("window", addWindow);
    take("event", (event) => {
      if (event.type === "phase") enter(event);
      addEvent({ ...event, elapsed: happenedAt(event) - origin });
      redraw();
    });
    take("run", (body) => {
      // Until its load begins, a run's times count from its order.
      if (!begun && body.elapsed_seconds !== null) { restart(); return; }
      showRun(body);
      if (over) { source.close(); live.dataset.over = "true"; }
    });
    source.onopen = () => { isRefused = false; window.cliffwatch.answered(); };
    source.onerror = () => {
      // A browser tries again by itself after all but an answer that is an error.
      isRefused = source.readyState === EventSource.CLOSED;
      source.close();
      if (over) return;
      if (isRefused) askWhy(); else window.cliffwatch.unanswered();
      clearTimeout(retry);
      retry = setTimeout(load, isRefused ? REFUSED_MILLISECONDS : LOST_MILLISECONDS);
    };
  }
  // An EventSource keeps to itself what an error says.
  async function askWhy() {
    try {
      const answer = await window.cliffwatch.ask(base + "/live?after=" + position, "application/json");
      if (answer !== null) await answer.body.cancel();
    } catch (error) {
      window.cliffwatch.answered();
      window.cliffwatch.unanswered(error);
    }
  }
  function restart() { source.close(); load(); }

  async function load() {
    let body;
    try {
      const answer = await window.cliffwatch.ask(base + "/series", "application/json");
      if (answer === null) return;
      body = await answer.json();
    } catch (error) {
      window.cliffwatch.unanswered(error);
      retry = setTimeout(load, LOST_MILLISECONDS);
      return;
    }
    if (!isRefused) window.cliffwatch.answered();
    ({ names, columns, origin, position } = body);
    planned = body.planned_seconds;
    latencyName = body.latency;
    begun = body.has_begun;
    previousEnd = columns[0].length ? origin + columns[0][columns[0].length - 1] : null;
    phases.splice(0, phases.length, ...body.phases);
    marks.clear();
    active.clear();
    disturbed.length = 0;
    byId("events").replaceChildren();
    byId("findings").replaceChildren();
    body.events.forEach(addEvent);
    showRun(body.run);
    tiles();
    draw();
    live.dataset.ready = "true";
    if (over) live.dataset.over = "true"; else { follow(); now(); }
  }

  for (const name of ["annotate", "delete"]) {
    const asked = byId(`${name}-dialog`);
    if (!asked) continue;
    byId(`ask-${name}`).addEventListener("click", () => asked.showModal());
    asked.querySelector(".leave").addEventListener("click", () => asked.close());
    if (asked.dataset.refused) asked.showModal();
  }
  const dialog = byId("stop-dialog");
  if (dialog) {
    byId("ask-stop").addEventListener("click", () => dialog.showModal());
    byId("keep-running").addEventListener("click", () => dialog.close());
  }
  const marking = byId("mark-dialog");
  if (marking) {
    const MINUTES_BACK = 5;
    byId("ask-mark").addEventListener("click", () => {
      // The span that the charts are zoomed to; else what was just done. The field has no zone; its times are UTC.
      // Whole seconds, rounded up: what has just begun is over by then, and not before its load.
      const utc = (milliseconds) => new Date(Math.ceil(milliseconds / 1000) * 1000).toISOString().slice(0, 19);
      const last = over && columns[0].length ? (origin + columns[0].at(-1)) * 1000 : Date.now();
      const chosen = zoomed()?.map((at) => (origin + at) * 1000), recent = [last - MINUTES_BACK * 60_000, last];
      ["start", "end"].forEach((name, index) => {
        const field = marking.querySelector(`[name=${name}]`);
        if (chosen || !field.value) field.value = utc((chosen || recent)[index]);
      });
      marking.showModal();
    });
    byId("leave-unmarked").addEventListener("click", () => marking.close());
  }
  window.addEventListener("resize", resize);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && live.dataset.ready) now(); });
  load();
})();
