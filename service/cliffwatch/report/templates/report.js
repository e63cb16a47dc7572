// Draws the report's charts from the data written into the page. Without the chart library the tables stand alone.
(function () {
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((each) => { each.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((each) => { each.open = false; }));

  const data = JSON.parse(document.getElementById("report-data").textContent);
  const byId = (id) => document.getElementById(id);
  const done = () => { document.documentElement.dataset.ready = "true"; };
  const charts = byId("charts");
  if (!charts || typeof uPlot === "undefined") return done();

  const { byteRate: bytes, rate: plain, amplification, share, elapsed } = window.quantities;
  const latency = (us) => window.quantities.latency(us == null ? null : us / 1e6);
  const orDash = (format) => (value) => (value == null ? "–" : format(value));
  const depth = orDash(window.quantities.number);
  const zero = Date.parse(charts.dataset.loadStart) / 1000;
  const MEASURES = [["p50", "p50", 1.5], ["p99", "p99", 2], ["p999", "p99.9", 1.25], ["max", "max", 1]];
  const RATES = {
    bytes: { label: "bytes per second", format: bytes, device: true },
    operations: { label: "operations per second", format: plain, device: false },
    errors: { label: "errors per second", format: plain, device: false },
  };
  const hasAges = data.outstanding.length > 0, hasStalls = data.stalls.length > 0;
  const hasLatency = Object.keys(data.latency).length > 0 || hasAges, hasRates = Object.keys(RATES).some((name) => name in data.rates);
  const LAYERS = [["client_p99", "client p99", "p99", 2], ["device_p99", "device p99", "rate", 1.5], ["queue_p99", "queue p99", "p999", 1.25], ["device_mean", "device mean", "rate", 1.5]]
    .filter(([name]) => name === "client_p99" || name in data.layers);
  const hasLayers = LAYERS.length > 1, hasDepth = "queue_depth" in data.layers;
  const shown = { p50: true, p99: true, p999: true, max: true };
  let span = [0, data.end];
  let latencyName = charts.dataset.primary in data.latency ? charts.dataset.primary : Object.keys(data.latency)[0] || "", rateName = "bytes";
  let latencyChart = null, rateChart = null, layerChart = null, depthChart = null, evidenceCharts = [];
  function drawn() { return [latencyChart, rateChart, layerChart, depthChart].concat(evidenceCharts).filter((chart) => chart !== null); }

  const EVIDENCE = [
    { key: "device_write_latency", id: "evidence-latency", label: "of each window", format: latency, logarithmic: true },
    { key: "write_amplification", id: "evidence-amplification", label: "NAND bytes / host bytes", format: orDash(amplification), logarithmic: false },
    { key: "clean_blocks", id: "evidence-clean", label: "of all blocks", format: orDash(share), logarithmic: false },
  ].filter(({ key }) => key in data.evidence);
  function utc(seconds) { return new Date((zero + seconds) * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC"; }
  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); }

  const paint = paintOf(data, { colour, elapsed, latencyName: () => latencyName });

  // A row of nothing at either end makes the axis span the whole load, whatever was measured of it.
  const elapsedColumn = [Math.min(0, data.elapsed[0])].concat(data.elapsed, [Math.max(data.end, data.elapsed[data.elapsed.length - 1])]);
  function column(values) { return [null].concat(values, [null]); }
  function logColumn(values) { return column(values.map((value) => (value > 0 ? value : null))); }
  function latencyData() {
    const measures = data.latency[latencyName], none = data.elapsed.map(() => null);
    const ages = hasAges ? [logColumn(data.outstanding)] : [];
    return [elapsedColumn].concat(MEASURES.map(([key]) => logColumn(measures ? measures[key] : none)), ages);
  }
  function rateData() {
    const none = data.elapsed.map(() => null);
    const device = RATES[rateName].device ? data.rates.device_bytes || none : none;
    return [elapsedColumn, column(data.rates[rateName]), column(device)];
  }
  function layerData() {
    const client = charts.dataset.primary in data.latency ? data.latency[charts.dataset.primary].p99 : data.elapsed.map(() => null);
    return [elapsedColumn].concat(LAYERS.map(([name]) => logColumn(name === "client_p99" ? client : data.layers[name])));
  }

  // A window between two gaps has no neighbour to draw a line to: it is drawn as a point.
  function isolated(chart, index, show) {
    if (show) return null;
    const values = chart.data[index], found = [];
    for (let row = 1; row < values.length - 1; row += 1) {
      if (values[row] != null && values[row - 1] == null && values[row + 1] == null) found.push(row);
    }
    return found.length ? found : null;
  }
  function seriesOf(label, tone, width, show) {
    return { label: label, stroke: () => colour(tone), width: width, show: show, points: { show: false, size: 3.5 + width, fill: () => colour(tone), filter: isolated } };
  }

  // The age of the oldest operation, where nothing was completed: dots, since it is no latency of anything yet.
  function agesSeries() {
    return { label: "stalled", stroke: () => colour("danger"), width: 1, dash: [2, 3], points: { show: true, size: 5, fill: () => colour("danger") } };
  }

  function tipOf(chart) {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    chart.over.appendChild(tip);
    return tip;
  }
  function summaryOf(chart) {
    const left = chart.cursor.left;
    if (left == null || left < 0) return "";
    const at = chart.posToVal(left, "x"), reach = Math.abs(chart.posToVal(left + 6, "x") - at);
    const lines = data.marks.filter(([when]) => Math.abs(when - at) <= reach).slice(0, 5).map(([when, , words]) => elapsed(when) + "  " + words);
    for (const finding of data.findings) {
      if (Math.abs(finding.at - at) <= reach) lines.unshift(finding.text);
    }
    for (const [from, to, age] of data.stalls) {
      if (at < from - reach || at > to + reach) continue;
      const waited = age == null ? "whether anything was due is not known" : "the oldest operation was due for " + latency(age * 1e6);
      lines.push("nothing completed from " + elapsed(from) + " to " + elapsed(to) + "; " + waited);
    }
    for (const [from, to, reason] of data.gaps) {
      if (at >= from - reach && at <= to + reach) lines.push("not measured from " + elapsed(from) + " to " + elapsed(to) + ": " + reason);
    }
    return lines.slice(0, 6).join("\n");
  }
  function onCursor(chart) {
    const row = chart.cursor.idx, left = chart.cursor.left;
    const inside = row != null && left >= 0;
    for (const [each, legend, format] of [
      [latencyChart, "latency-legend", latency], [rateChart, "rate-legend", RATES[rateName].format],
      [layerChart, "layer-legend", latency], [depthChart, "depth-legend", depth],
    ].concat(evidenceCharts.map((each, index) => [each, EVIDENCE[index].id + "-legend", EVIDENCE[index].format]))) {
      if (chart !== each) continue;
      for (const output of byId(legend).querySelectorAll("output")) {
        const column = chart.data[Number(output.dataset.series)];
        output.textContent = inside && column ? format(column[row]) : "";
      }
    }
    const at = inside ? chart.posToVal(left, "x") : 0;
    byId("readout").textContent = inside ? elapsed(at) + " elapsed · " + utc(at) : "\u00a0";
    const words = summaryOf(chart);
    chart.tip.hidden = words === "";
    if (words !== "") {
      chart.tip.textContent = words;
      const right = left > chart.over.clientWidth / 2;
      chart.tip.style.left = right ? "auto" : left + 12 + "px";
      chart.tip.style.right = right ? chart.over.clientWidth - left + 12 + "px" : "auto";
    }
  }
  function onScale(chart, key) {
    if (key !== "x") return;
    const { min, max } = chart.scales.x;
    if (min == null || (span[0] === min && span[1] === max)) return;
    span = [min, max];
    charts.dataset.span = span.join(" ");
    for (const other of drawn()) {
      if (other !== chart) other.setScale("x", { min: min, max: max });
    }
  }

  const STEPS = [1e-2, 1e-1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400, 172800, 604800];
  function tick(seconds, wide) {
    const clock = new Date((zero + seconds) * 1000).toISOString();
    return elapsed(seconds) + "\n" + (wide ? clock.slice(11, 16) : clock.slice(11, 19));
  }
  const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);
  function optionsFor(target, height, scale, format, series) {
    const axis = { stroke: () => colour("quiet"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { stroke: () => colour("grid"), width: 1 }, font: "11px system-ui, sans-serif" };
    return {
      width: Math.max(240, target.clientWidth), height: height, legend: { show: false },
      padding: [data.findings.length > 0 ? 22 : null, null, null, null],
      scales: { x: { time: false }, y: scale },
      axes: [
        Object.assign({}, axis, { incrs: STEPS, space: 74, size: 46, values: (chart, splits) => splits.map((at) => tick(at, chart.scales.x.max - chart.scales.x.min > 7200)) }),
        Object.assign({}, axis, target.id === "rate-chart" && rateName === "bytes" ? { incrs: POWERS_OF_TWO } : {}, { size: 88, values: (chart, splits) => splits.map((value) => (value == null ? "" : format(value))) }),
      ],
      series: [{}].concat(series),
      cursor: { drag: { x: true, y: false, dist: 4 }, sync: { key: "run", scales: ["x", null] }, y: false },
      hooks: { drawClear: [paint.background, (chart) => paint.bands(chart, target.id)], drawAxes: [paint.marks, paint.labels], draw: [(chart) => paint.levels(chart, target.id), paint.onsets], setCursor: [onCursor], setScale: [onScale], init: [(chart) => { chart.tip = tipOf(chart); }] },
    };
  }
  function draw() {
    const keep = span.slice();
    for (const chart of drawn()) chart.destroy();
    latencyChart = rateChart = layerChart = depthChart = null;
    evidenceCharts = [];
    const narrow = charts.clientWidth < 600;
    // Some room below and above, so that a line that is even does not lie on the edge.
    const logRange = (chart, min, max) => (min == null ? [null, null] : uPlot.rangeLog(min / 1.2, max * 1.2, 10, false));
    // A level is seen beside the lines unless it lies so far above that it would press them flat.
    const latencyRange = (chart, min, max) => {
      const near = paint.levelsShown().map((level) => level.at).filter((at) => min == null || (at < max * 10 && at > min / 10));
      return min == null ? [null, null] : logRange(chart, Math.min(min, ...near), Math.max(max, ...near));
    };
    // A little below 0, so that a line along 0 is seen whole: nothing that was measured hides in the axis.
    const range = (chart, min, max) => (max > 0 ? [-0.02 * max, max * 1.2] : [-0.02, 1]);
    if (hasLatency) latencyChart = new uPlot(
      optionsFor(byId("latency-chart"), narrow ? 260 : 340, { distr: 3, log: 10, range: latencyRange }, latency, MEASURES.map(([key, label, width]) => seriesOf(label, key, width, shown[key])).concat(hasAges ? [agesSeries()] : [])),
      latencyData(), byId("latency-chart"));
    if (hasRates) rateChart = new uPlot(
      optionsFor(byId("rate-chart"), narrow ? 180 : 220, { range: range }, (value) => RATES[rateName].format(value), [seriesOf("engine", "rate", data.rates.device_bytes ? 4 : 1.5, true), seriesOf("device", "rate-device", 1.25, true)]),
      rateData(), byId("rate-chart"));
    if (hasLayers) layerChart = new uPlot(
      optionsFor(byId("layer-chart"), narrow ? 220 : 280, { distr: 3, log: 10, range: logRange }, latency, LAYERS.map(([, label, tone, width]) => seriesOf(label, tone, width, true))),
      layerData(), byId("layer-chart"));
    if (hasDepth) depthChart = new uPlot(
      optionsFor(byId("depth-chart"), narrow ? 140 : 160, { range: range }, depth, [seriesOf("queue depth", "rate", 1.5, true)]),
      [elapsedColumn, column(data.layers.queue_depth)], byId("depth-chart"));
    evidenceCharts = EVIDENCE.map(({ key, id, label, format, logarithmic }) => new uPlot(
      optionsFor(byId(id), narrow ? 150 : 160, logarithmic ? { distr: 3, log: 10, range: logRange } : { range: range }, format, [seriesOf(label, "rate", 1.5, true)]),
      [elapsedColumn, (logarithmic ? logColumn : column)(data.evidence[key])], byId(id)));
    zoom(keep);
  }
  function zoom(to) {
    span = to.slice();
    charts.dataset.span = span.join(" ");
    for (const chart of drawn()) chart.setScale("x", { min: to[0], max: to[1] });
  }
  function refill(chart, rows) {
    chart.setData(rows, false);
    chart.setScale("x", { min: span[0], max: span[1] });
  }

  function toggle(label, tone, index, key) {
    const button = document.createElement(key ? "button" : "span"), swatch = document.createElement("span"), output = document.createElement("output");
    button.className = "series";
    button.style.setProperty("--tone", "var(--" + tone + ")");
    swatch.className = "swatch";
    output.dataset.series = index;
    button.append(swatch, label, output);
    if (key) {
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        shown[key] = !shown[key];
        button.setAttribute("aria-pressed", String(shown[key]));
        latencyChart.setSeries(index, { show: shown[key] });
      });
    }
    return button;
  }
  // What the band across a chart is.
  function bandKey() {
    const key = toggle("baseline: nine of ten windows", "baseline", 0, null);
    key.querySelector(".swatch").classList.add("band");
    key.querySelector("output").remove();
    return key;
  }
  // What is drawn beside the lines, where there is any of it.
  function keysOf() {
    const limits = data.levels.some((level) => level.kind === "limit"), baseline = data.levels.some((level) => level.kind === "baseline");
    const keys = [
      [data.findings.some((finding) => finding.degrades), "onset", "danger", "a degradation begins"],
      [data.findings.some((finding) => !finding.degrades), "onset", "mark", "another finding begins"],
      [data.marks.length > 0, "event", "mark", "an event: point at it to read it"],
      [limits, "level", "danger", "limit"],
      [baseline, "level", "healthy", "p99 of the baseline"],
      [data.gaps.length > 0, "gap", "gap", "not measured"],
      [data.disturbed.length > 0, "area", "gap", "marked: left out of the judgement"],
      [hasStalls, "area", "stall", "nothing completed"],
    ];
    return keys.filter(([there]) => there).map(([, drawing, tone, words]) => {
      const key = toggle(words, tone, 0, null);
      key.querySelector(".swatch").classList.add(drawing);
      key.querySelector("output").remove();
      return key;
    });
  }
  function choose(select, options, chosen, onChange) {
    for (const [value, words] of options) select.add(new Option(words, value, false, value === chosen));
    select.addEventListener("change", () => onChange(select.value));
  }
  function rateLegend() {
    for (const old of byId("rate-legend").querySelectorAll(".series")) old.remove();
    byId("rate-legend").append(toggle("engine", "rate", 1, null));
    if (RATES[rateName].device && data.rates.device_bytes) byId("rate-legend").append(toggle("device", "rate-device", 2, null));
  }

  charts.hidden = false;
  byId("latency-chart").closest("figure").hidden = !hasLatency;
  byId("latency-name").parentElement.hidden = Object.keys(data.latency).length === 0;
  byId("rate-chart").closest("figure").hidden = !hasRates;
  if (hasLayers) byId("layer-chart").closest("figure").hidden = false;
  if (hasDepth) byId("depth-chart").closest("figure").hidden = false;
  if (hasLayers) LAYERS.forEach(([, label, tone], index) => byId("layer-legend").append(toggle(label, tone, index + 1, null)));
  if (hasDepth) byId("depth-legend").append(toggle("requests outstanding, mean", "rate", 1, null));
  for (const { id, label } of EVIDENCE) {
    byId(id).closest("figure").hidden = false;
    byId(id + "-legend").append(toggle(label, "rate", 1, null));
    if (id === "evidence-latency" && data.findings.some((finding) => finding.device_baseline_band)) byId(id + "-legend").append(bandKey());
  }
  if (hasRates && !data.rates.bytes) rateName = Object.keys(data.rates).find((name) => name in RATES);
  MEASURES.forEach(([key, label], index) => byId("latency-legend").append(toggle(label, key, index + 1, key)));
  if (hasStalls) byId("latency-legend").append(toggle(hasAges ? "stalled: nothing completed" : "nothing completed", "danger", MEASURES.length + 1, null));
  if (data.findings.some((finding) => finding.baseline_band)) byId("latency-legend").append(bandKey());
  byId("keys").append(...keysOf());
  byId("keys").hidden = !byId("keys").firstChild;
  choose(byId("latency-name"), Object.keys(data.latency).map((name) => [name, name.replaceAll("_", " ")]), latencyName,
    (name) => { latencyName = name; refill(latencyChart, latencyData()); });
  choose(byId("rate-name"), Object.keys(RATES).filter((name) => name in data.rates).map((name) => [name, RATES[name].label]), rateName,
    (name) => { rateName = name; rateLegend(); draw(); });
  const phases = data.phases.filter(([, from, to]) => to > from && from >= 0 && from < data.end).map(([name]) => [name, name.replaceAll("_", "-")]);
  const around = data.findings.map((finding, index) => ["finding " + index, "around the " + finding.kind + " at " + elapsed(finding.at)]);
  choose(byId("span"), phases.concat(around), "",
    (name) => {
      const phase = data.phases.find(([candidate]) => candidate === name), finding = data.findings[Number(name.replace("finding ", ""))];
      if (phase) return zoom([phase[1], Math.min(phase[2], data.end)]);
      if (!name || !finding) return zoom([0, data.end]);
      const reach = Math.max(data.end / 20, (data.end / Math.max(1, data.elapsed.length)) * 40);
      zoom([Math.max(0, finding.at - reach), Math.min(data.end, finding.at + reach)]);
    });
  byId("reset").addEventListener("click", () => { byId("span").value = ""; zoom([0, data.end]); });
  if (hasRates) rateLegend();
  draw();

  let width = charts.clientWidth;
  new ResizeObserver(() => {
    if (charts.clientWidth !== width) { width = charts.clientWidth; draw(); }
  }).observe(charts);
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", draw);
  done();
})();
