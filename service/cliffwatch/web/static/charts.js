"use strict";
// The charts of a run's page: latency with its phases, findings and stalls, and throughput below it, zoomed together.
//
// runCharts(shown) draws what `shown` has: column(name) is a list with a value a window, phases a list of [name, start, end],
// marks a map whose values are the onsets of findings, disturbed a list of [start, end, text] of marked spans, all in seconds
// since origin(), which is since the epoch; planned() is how long the load is to last. Nothing is copied: what changes there is
// seen at the next redraw().
window.runCharts = function (shown) {
  const { column, phases, marks, disturbed } = shown;
  const byId = (id) => document.getElementById(id);
  const LINES = [["p50", "--p50", 1.5], ["p99", "--p99", 2], ["p999", "--p999", 1.25], ["device_write_latency", "--device", 1.5]];
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);
  const TENS = Array.from({ length: 36 }, (_, index) => [1, 2, 5][index % 3] * 10 ** (Math.floor(index / 3) - 2));
  let latencyChart = null, rateChart = null, drawSoon = false;

  const { latency, byteRate: bytes, rate: plain, elapsed } = window.quantities;
  // A load that counts no bytes, such as a database's, is drawn by its operations.
  const inBytes = () => column("bytes_per_second").some((value) => value > 0) || !column("operations_per_second").some((value) => value > 0);
  const throughput = (value) => (inBytes() ? bytes(value) : plain(value));
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const logarithmic = (values) => values.map((value) => (value > 0 ? value : null));
  const phaseWords = (name) => name.replaceAll("_", "-");

  function place(chart, from, to) {
    const left = chart.valToPos(Math.max(from, chart.scales.x.min), "x", true);
    return [left, Math.max(chart.valToPos(Math.min(to, chart.scales.x.max), "x", true) - left, 0)];
  }
  // A band is named where its name fits; the readout names the phase of a window always.
  function namePhases(chart) {
    const pen = chart.ctx, box = chart.bbox, inset = 4 * devicePixelRatio;
    pen.save();
    pen.font = 11 * devicePixelRatio + "px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.textBaseline = "top";
    for (const [name, from, to] of phases) {
      const [left, width] = place(chart, from, to);
      const words = phaseWords(name), length = pen.measureText(words).width + 2 * inset;
      if (length > width) continue;
      pen.fillStyle = colour("--card");
      pen.fillRect(left + 1, box.top + inset / 2, length, 4 * inset);
      pen.fillStyle = colour("--quiet");
      pen.fillText(words, left + inset, box.top + inset);
    }
    pen.restore();
  }
  function background(chart) {
    const pen = chart.ctx, box = chart.bbox;
    pen.save();
    phases.forEach(([, from, to], index) => {
      const where = place(chart, from, to);
      pen.fillStyle = colour("--phase");
      if (index % 2 === 0 && where[1] > 0) pen.fillRect(where[0], box.top, where[1], box.height);
    });
    pen.fillStyle = colour("--gap");
    for (const [from, to] of disturbed) {
      const where = place(chart, from, to);
      pen.fillRect(where[0], box.top, where[1], box.height);
    }
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
      axes: [axis((chart, marks) => marks.map(elapsed), { incrs: STEPS, space: 74 }), axis((chart, marks) => marks.map((mark) => mark == null ? "" : format(mark)), { size: 84, ...(distribution === 3 ? {} : { incrs: () => (inBytes() ? POWERS_OF_TWO : TENS) }) })],
      series: [{}].concat(lines.map(([, shade, width]) => ({ stroke: colour(shade), width: width, points: { show: true, size: 4, fill: colour(shade), filter: alone }, spanGaps: false })), distribution === 3 ? [ages()] : []),
      hooks: { drawClear: [background], draw: distribution === 3 ? [namePhases] : [], setCursor: [reportCursor], setScale: [followZoom] },
    };
  }
  // A window between two that have no value is no part of a line: it is a dot.
  function alone(chart, series) {
    const values = chart.data[series];
    return values.reduce((found, value, index) => {
      if (value != null && values[index - 1] == null && values[index + 1] == null) found.push(index);
      return found;
    }, []);
  }
  // How old the oldest operation was where nothing was completed: dots, since it is no latency of anything yet.
  function ages() { return { stroke: colour("--danger"), width: 1, dash: [2, 3], points: { show: true, size: 5, fill: colour("--danger") } }; }
  let zoom = null;
  // uPlot asks with the ends of the data where it fits a chart to them, and with a span that was dragged otherwise.
  function xRange(chart, low, high) {
    const ends = chart.data[0];
    if (ends.length > 1 && (low !== ends[0] || high !== ends.at(-1))) return [low, high];
    return (!chart.ready && zoom) || [0, Math.max(shown.planned(), high || 0, 1)];
  }
  function followZoom(chart, key) {
    if (key !== "x" || !chart.ready) return;
    const { min, max } = chart.scales.x, whole = Math.max(shown.planned(), column("elapsed").at(-1) || 0, 1);
    const wanted = min <= 0 && max >= whole * 0.9999 ? null : [min, max];
    if (String(wanted) === String(zoom)) return;
    zoom = wanted;
    for (const other of [latencyChart, rateChart]) if (other && other !== chart) other.setScale("x", { min, max });
  }
  function reportCursor(chart) {
    const index = chart.cursor.idx;
    if (index == null || column("elapsed")[index] == null) return;
    const at = (name) => column(name)[index];
    const when = new Date((shown.origin() + at("elapsed")) * 1000).toISOString().slice(0, 19).replace("T", " ");
    const phase = phases.find(([, from, to]) => at("elapsed") > from && at("elapsed") <= to);
    const what = disturbed.filter(([from, to]) => at("elapsed") > from && at("elapsed") <= to).map(([, , text]) => text).join(", ");
    byId("readout").textContent = elapsed(at("elapsed")) + " elapsed" + (phase ? " (" + phaseWords(phase[0]) + ")" : "") + ", " + when + " UTC: p50 " + latency(at("p50")) + ", p99 " + latency(at("p99"))
      + ", p99.9 " + latency(at("p999")) + (at("stall") === null ? "" : ", nothing completed") + (what && ", marked: " + what) + ", write latency of the drive " + latency(at("device_write_latency")) + ", " + throughput(at(inBytes() ? "bytes_per_second" : "operations_per_second"));
  }
  const latencyData = () => [column("elapsed")].concat(LINES.map(([name]) => logarithmic(column(name))), [logarithmic(column("stall"))]);
  const rateData = () => [column("elapsed"), column(inBytes() ? "bytes_per_second" : "operations_per_second")];
  function draw() {
    const stalls = column("stall").filter((age) => age !== null).length;
    byId("stalled").hidden = stalls === 0;
    byId("stalled").textContent = "stalled: nothing completed in " + stalls + (stalls === 1 ? " window" : " windows");
    byId("disturbed").hidden = disturbed.length === 0;
    const isEmpty = column("elapsed").length === 0;
    byId("no-windows").hidden = !isEmpty;
    byId("figures").hidden = byId("readout").hidden = isEmpty;
    byId("rate-measure").textContent = inBytes() ? "Bytes" : "Operations";
    if (typeof uPlot === "undefined" || isEmpty) return;
    if (latencyChart === null) {
      const began = performance.now();
      const upper = byId("latency-chart"), lower = byId("rate-chart");
      latencyChart = new uPlot(options(upper, 280, LINES, latency, 3), latencyData(), upper);
      rateChart = new uPlot(options(lower, 170, [["bytes_per_second", "--p50", 1.5]], throughput, 1), rateData(), lower);
      latencyChart.ready = rateChart.ready = true;
      // uPlot draws in a microtask; what is measured includes it.
      setTimeout(() => { byId("live").dataset.drawnMilliseconds = String(Math.round(performance.now() - began)); }, 0);
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

  // Start and end of what is zoomed to, in seconds since origin(); null where the whole load is shown.
  const zoomed = () => zoom;
  return { draw, redraw, resize, recolour, phaseWords, zoomed };
};
