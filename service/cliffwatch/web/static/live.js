"use strict";
// A run's page: draws its past, follows it while it goes on, and keeps trying while the service is away.
(function () {
  const byId = (id) => document.getElementById(id);
  const live = byId("live"), run = live.dataset.run, base = "/runs/" + run;
  // Windows beyond this are thinned out by half, so that a page left open for days stays as large as it is.
  const ROW_LIMIT = 40000, EVENT_LIMIT = 200, SHOWN_EVENTS = new Set(["state", "phase", "gap", "finding", "alert", "note"]);
  const LINES = [["p50", "--p50", 1.5], ["p99", "--p99", 2], ["p999", "--p999", 1.25], ["device_write_latency", "--device", 1.5]];
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const NOW_MILLISECONDS = 5000;
  const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);
  // Details of events that are for programs: a run's own moments are drawn, its keys mean nothing to people.
  const HIDDEN_DETAILS = new Set(["start", "end", "load_start", "load_stop", "target_key", "request_digest", "fingerprint", "starts_at", "ends_at", "labels"]);
  const MARKS = { pass: "✓", degraded: "▲", invalid: "?", failed: "✕", stopped: "■" };
  let names = [], columns = [], origin = 0, planned = 0, latencyName = null, previousEnd = null;
  // What healthy was, by series, as the detector notes it.
  const baselines = {};
  let position = "0.-1", source = null, retry = null, over = false, begun = false, drawSoon = false;
  let latencyChart = null, rateChart = null, asking = null;
  const phases = [], marks = new Map();

  const { latency, byteRate: bytes, count, rate: plain, ratio, elapsed } = window.quantities;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const column = (name) => columns[names.indexOf(name)];
  const logarithmic = (values) => values.map((value) => (value > 0 ? value : null));

  function place(chart, from, to) {
    const left = chart.valToPos(Math.max(from, chart.scales.x.min), "x", true);
    return [left, Math.max(chart.valToPos(Math.min(to, chart.scales.x.max), "x", true) - left, 0)];
  }
  function background(chart) {
    const pen = chart.ctx, box = chart.bbox;
    pen.save();
    phases.forEach(([, from, to], index) => {
      const where = place(chart, from, to);
      pen.fillStyle = colour("--phase");
      if (index % 2 === 0 && where[1] > 0) pen.fillRect(where[0], box.top, where[1], box.height);
    });
    const ends = column("elapsed"), stalls = column("stall");
    pen.fillStyle = colour("--stall");
    stalls.forEach((age, index) => {
      if (age === null) return;
      const where = place(chart, index ? ends[index - 1] : 0, ends[index]);
      pen.fillRect(where[0], box.top, where[1], box.height);
    });
    pen.strokeStyle = colour("--danger");
    pen.lineWidth = 1.5 * devicePixelRatio;
    pen.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const at of marks.values()) {
      if (at < chart.scales.x.min || at > chart.scales.x.max) continue;
      const left = chart.valToPos(at, "x", true);
      pen.beginPath(); pen.moveTo(left, box.top); pen.lineTo(left, box.top + box.height); pen.stroke();
    }
    pen.restore();
  }
  function axis(values, more) {
    return { stroke: colour("--quiet"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--grid") }, values: values, ...more };
  }
  function options(element, height, lines, format, distribution) {
    return {
      width: Math.max(240, element.clientWidth), height: height, legend: { show: false },
      cursor: { sync: { key: "run" }, drag: { x: true, y: false } },
      scales: { x: { time: false, range: xRange }, y: distribution === 3 ? { distr: 3 } : { range: (chart, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [axis((chart, marks) => marks.map(elapsed), { incrs: STEPS, space: 74 }), axis((chart, marks) => marks.map((mark) => mark == null ? "" : format(mark)), { size: 84, ...(distribution === 3 ? {} : { incrs: POWERS_OF_TWO }) })],
      series: [{}].concat(lines.map(([, shade, width]) => ({ stroke: colour(shade), width: width, points: { show: false }, spanGaps: false })), distribution === 3 ? [ages()] : []),
      hooks: { drawClear: [background], setCursor: [reportCursor], setScale: [followZoom] },
    };
  }
  // How old the oldest operation was where nothing was completed: dots, since it is no latency of anything yet.
  function ages() { return { stroke: colour("--danger"), width: 1, dash: [2, 3], points: { show: true, size: 5, fill: colour("--danger") } }; }
  let zoom = null;
  function xRange(chart, low, high) { return zoom || [0, Math.max(planned, high || 0, 1)]; }
  function followZoom(chart, key) {
    if (key !== "x" || !chart.ready) return;
    const { min, max } = chart.scales.x, whole = Math.max(planned, column("elapsed").at(-1) || 0, 1);
    const wanted = min <= 0 && max >= whole * 0.9999 ? null : [min, max];
    if (String(wanted) === String(zoom)) return;
    zoom = wanted;
    for (const other of [latencyChart, rateChart]) if (other && other !== chart) other.setScale("x", { min, max });
  }
  function reportCursor(chart) {
    const index = chart.cursor.idx;
    if (index == null || column("elapsed")[index] == null) return;
    const at = (name) => column(name)[index];
    const when = new Date((origin + at("elapsed")) * 1000).toISOString().slice(0, 19).replace("T", " ");
    byId("readout").textContent = elapsed(at("elapsed")) + " elapsed, " + when + " UTC: p50 " + latency(at("p50")) + ", p99 " + latency(at("p99"))
      + ", p99.9 " + latency(at("p999")) + (at("stall") === null ? "" : ", nothing completed") + ", device write " + latency(at("device_write_latency")) + ", " + bytes(at("bytes_per_second"));
  }
  const latencyData = () => [column("elapsed")].concat(LINES.map(([name]) => logarithmic(column(name))), [logarithmic(column("stall"))]);
  const rateData = () => [column("elapsed"), column("bytes_per_second")];
  function draw() {
    const stalls = column("stall").filter((age) => age !== null).length;
    byId("stalled").hidden = stalls === 0;
    byId("stalled").textContent = "stalled: nothing completed in " + stalls + (stalls === 1 ? " window" : " windows");
    const isEmpty = column("elapsed").length === 0;
    byId("no-windows").hidden = !isEmpty;
    byId("figures").hidden = byId("readout").hidden = isEmpty;
    if (typeof uPlot === "undefined" || isEmpty) return;
    if (latencyChart === null) {
      const began = performance.now();
      const upper = byId("latency-chart"), lower = byId("rate-chart");
      latencyChart = new uPlot(options(upper, 280, LINES, latency, 3), latencyData(), upper);
      rateChart = new uPlot(options(lower, 170, [["bytes_per_second", "--p50", 1.5]], bytes, 1), rateData(), lower);
      latencyChart.ready = rateChart.ready = true;
      // uPlot draws in a microtask; what is measured includes it.
      setTimeout(() => { live.dataset.drawnMilliseconds = String(Math.round(performance.now() - began)); }, 0);
      return;
    }
    latencyChart.setData(latencyData(), zoom === null);
    rateChart.setData(rateData(), zoom === null);
  }
  function redraw() {
    if (drawSoon) return;
    drawSoon = true;
    requestAnimationFrame(() => { drawSoon = false; draw(); });
  }
  function resize() {
    for (const [chart, id] of [[latencyChart, "latency-chart"], [rateChart, "rate-chart"]])
      if (chart) chart.setSize({ width: Math.max(240, byId(id).clientWidth), height: chart.height });
  }
  function recolour() {
    for (const chart of [latencyChart, rateChart]) if (chart) chart.destroy();
    latencyChart = rateChart = null;
    draw();
  }

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
    redraw();
  }
  function show(texts) { for (const [id, text] of Object.entries(texts)) byId("tile-" + id).textContent = text; }
  function tiles() {
    const last = (name) => { const values = column(name); return values.length ? values[values.length - 1] : null; };
    document.querySelectorAll(".latency-name").forEach((element) => { element.textContent = latencyName || "latency"; });
    if (over || last("elapsed") === null) return;
    const healthy = baselines[latencyName + ".p99"], stall = last("stall");
    const stalled = stall > 0 ? "stalled, oldest operation due for " + latency(stall) : "nothing completed";
    show({
      elapsed: elapsed(last("elapsed")), p50: latency(last("p50")), p99: latency(last("p99")), device: latency(last("device_write_latency")),
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
      tile({ name: limit.text, value: limit.value, is_bad: limit.broken, note: [limit.broken ? "broken" : "", limit.margin, limit.note].filter(Boolean).join(", ") })));
    byId("limits-reading").hidden = !body.reading;
  }
  function showLeft(body) {
    const at = column("elapsed") && column("elapsed").at(-1), phase = body.left && phases.find(([, from, to]) => at >= from && at < to);
    byId("tile-left").textContent = body.left || "–";
    byId("tile-phase-left").textContent = phase ? phase[0].replaceAll("_", " ") + ": " + elapsed(phase[2] - at) + " left" : "until the end of load";
  }
  // Besides the stream: what the journal does not hold, and whether the service answers at all.
  async function now() {
    clearTimeout(asking);
    if (over) return;
    try {
      const answer = await window.cliffwatch.ask(base + "/now", "application/json");
      if (answer === null) return;
      const body = await answer.json();
      if (over) return;
      showDrives(body);
      showLimits(body);
      showLeft(body);
      window.cliffwatch.answered();
    } catch (error) {
      window.cliffwatch.unanswered(error);
    }
    if (!document.hidden) asking = setTimeout(now, NOW_MILLISECONDS);
  }

  function watcherWords({ there, without }) {
    const unavailable = Object.entries(without || {}).map(([name, reason]) => name + " (" + reason + ")");
    return ["watchers up: " + ((there || []).join(", ") || "none"), unavailable.length ? "unavailable: " + unavailable.join(", ") : ""].filter(Boolean).join("; ");
  }
  function baselineWords({ levels }) {
    const latencies = Object.entries(levels || {}).filter(([name]) => /\.p\d+$/.test(name));
    return "baseline: " + latencies.map(([name, level]) => name.replace(".", " ") + " " + latency(level)).join(", ");
  }
  function words(event) {
    if (event.type === "alert") return [event.name, event.detail.description || event.detail.summary].filter(Boolean).join(": ");
    if (event.detail.summary) return event.detail.summary;
    if (event.type === "note" && event.name === "watchers") return watcherWords(event.detail);
    if (event.type === "note" && event.name === "baseline") return baselineWords(event.detail);
    const shown = Object.entries(event.detail).filter(([name, value]) => !HIDDEN_DETAILS.has(name) && value !== null && value !== "" && typeof value !== "object")
      .slice(0, 6).map(([name, value]) => name.replaceAll("_", " ") + " " + value);
    return [event.name.replaceAll("_", " "), shown.join(", ")].filter(Boolean).join(": ");
  }
  function item(event) {
    const line = document.createElement("li"), when = document.createElement("time"), kind = document.createElement("b"), text = document.createElement("span");
    const isOver = event.type === "alert" && event.detail.status === "resolved";
    line.className = isOver ? "resolved" : event.type;
    if (event.type === "finding") line.dataset.finding = nameOf({ kind: event.name, ...event.detail });
    when.textContent = elapsed(event.elapsed);
    kind.textContent = isOver ? "resolved" : event.type;
    text.textContent = words(event);
    line.append(when, kind, text);
    return line;
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
  function updateFinding(detail, ending) {
    const name = nameOf(detail), lines = [...document.querySelectorAll("#findings li, #events li")].filter((each) => each.dataset.finding === name);
    for (const line of lines) line.lastElementChild.textContent = detail.summary + ending;
    if (marks.has(name)) marks.set(name, onsetOf(detail));
    return lines.length > 0;
  }
  function addEvent(event) {
    if (!SHOWN_EVENTS.has(event.type)) return;
    if (event.type === "phase" && event.detail.start != null) phases.push([event.name, event.detail.start - origin, event.detail.end - origin]);
    if (event.type === "note" && event.name === "baseline") Object.assign(baselines, event.detail.levels);
    const isNotable = event.type === "finding" || event.type === "alert";
    if (event.type === "finding") marks.set(nameOf({ kind: event.name, ...event.detail }), onsetOf(event.detail, event.elapsed));
    if (event.type === "note" && event.name === "finding_updated" && updateFinding(event.detail, "")) return;
    if (event.type === "note" && event.name === "finding_ended" && updateFinding(event.detail, " Over at " + elapsed(event.detail.until - origin) + ".")) return;
    if (event.type === "state" && event.name === "finished") (event.detail.findings || []).forEach((detail) => updateFinding(detail, ""));
    for (const list of isNotable ? ["events", "findings"] : ["events"]) {
      byId(list).prepend(item(event));
      while (byId(list).childElementCount > EVENT_LIMIT) byId(list).lastElementChild.remove();
      offerAll(list);
    }
    if (isNotable) byId("no-findings").hidden = true;
  }
  // As `marked` of the report's formats: what stands between two backticks is code.
  function marked(text) {
    const parts = text.split("`");
    if (parts.length % 2 === 0) return [text];
    return parts.map((part, place) => { if (place % 2 === 0) return part; const code = document.createElement("code"); code.textContent = part; return code; });
  }
  function showRun(body) {
    byId("state").textContent = body.verdict || body.state === "reporting" ? body.state : body.state + (body.phase ? ", " + body.phase.replaceAll("_", " ") : "");
    byId("progress").value = body.progress_ratio;
    const list = byId("reasons");
    list.replaceChildren(...body.reasons.map((reason) => { const line = document.createElement("li"); line.append(...marked(reason)); return line; }));
    list.hidden = body.reasons.length === 0;
    if (body.verdict) {
      const badge = document.createElement("span");
      badge.className = "badge " + body.verdict;
      badge.textContent = MARKS[body.verdict] + " " + body.verdict;
      byId("verdict").replaceChildren(badge);
      byId("meaning").textContent = "";
      byId("report").hidden = false;
      if (byId("ask-stop")) byId("ask-stop").hidden = true;
      over = true;
      finalTiles(body);
      for (const id of ["drives-section", "limits-section", "tile-left-box"]) byId(id).hidden = true;
    }
  }

  function follow() {
    source = new EventSource(base + "/live?after=" + position);
    const take = (name, handle) => source.addEventListener(name, (message) => {
      position = message.lastEventId || position;
      handle(JSON.parse(message.data));
    });
    take("window", addWindow);
    take("event", (event) => { addEvent({ ...event, elapsed: Date.parse(event.at) / 1000 - origin }); redraw(); });
    take("run", (body) => {
      // Until its load begins, a run's times count from its order.
      if (!begun && body.elapsed_seconds !== null) { restart(); return; }
      showRun(body);
      if (over) { source.close(); live.dataset.over = "true"; }
    });
    source.onopen = window.cliffwatch.answered;
    source.onerror = () => {
      source.close();
      if (over) return;
      window.cliffwatch.unanswered();
      clearTimeout(retry);
      retry = setTimeout(load, 2000);
    };
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
      retry = setTimeout(load, 2000);
      return;
    }
    window.cliffwatch.answered();
    ({ names, columns, origin, position } = body);
    planned = body.planned_seconds;
    latencyName = body.latency;
    begun = body.has_begun;
    previousEnd = columns[0].length ? origin + columns[0][columns[0].length - 1] : null;
    phases.length = 0;
    marks.clear();
    byId("events").replaceChildren();
    byId("findings").replaceChildren();
    body.events.forEach(addEvent);
    showRun(body.run);
    tiles();
    draw();
    live.dataset.ready = "true";
    if (over) live.dataset.over = "true"; else { follow(); now(); }
  }

  const dialog = byId("stop-dialog");
  if (dialog) {
    byId("ask-stop").addEventListener("click", () => dialog.showModal());
    byId("keep-running").addEventListener("click", () => dialog.close());
  }
  window.addEventListener("resize", resize);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && live.dataset.ready) now(); });
  load();
})();
