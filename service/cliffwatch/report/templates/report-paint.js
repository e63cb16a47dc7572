"use strict";
// What lies behind and above the lines of the report's charts: phases, stalls, gaps, the baseline, findings and events.
// `data` is the page's, `latencyName` gives the name of the latency that is shown.
function paintOf(data, { colour, elapsed, latencyName }) {
  function hatch(context) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    pen.strokeStyle = colour("gap");
    pen.lineWidth = 2;
    pen.beginPath();
    for (const shift of [-8, 0, 8]) { pen.moveTo(shift, 8); pen.lineTo(shift + 8, 0); }
    pen.stroke();
    return context.createPattern(tile, "repeat");
  }
  // Left edge and width in canvas pixels of what can be seen of an interval; a short one stays visible.
  function place(chart, from, to) {
    if (to <= chart.scales.x.min || from >= chart.scales.x.max) return null;
    const left = chart.valToPos(Math.max(from, chart.scales.x.min), "x", true);
    const right = chart.valToPos(Math.min(to, chart.scales.x.max), "x", true);
    return [left, Math.max(right - left, 2 * devicePixelRatio)];
  }
  function background(chart) {
    const pen = chart.ctx, box = chart.bbox;
    pen.save();
    pen.beginPath();
    pen.rect(box.left, box.top, box.width, box.height);
    pen.clip();
    data.phases.forEach(([, from, to], index) => {
      const where = place(chart, from, to);
      if (!where || index % 2) return;
      pen.fillStyle = colour("phase");
      pen.fillRect(where[0], box.top, where[1], box.height);
    });
    for (const [from, to] of data.stalls) {
      const where = place(chart, from, to);
      if (!where) continue;
      pen.fillStyle = colour("stall");
      pen.fillRect(where[0], box.top, where[1], box.height);
    }
    for (const [from, to] of data.disturbed) {
      const where = place(chart, from, to);
      if (!where) continue;
      pen.fillStyle = colour("gap");
      pen.fillRect(where[0], box.top, where[1], box.height);
    }
    const pattern = hatch(pen);
    for (const [from, to] of data.gaps) {
      const where = place(chart, from, to);
      if (!where) continue;
      pen.fillStyle = pattern;
      pen.fillRect(where[0], box.top, where[1], box.height);
    }
    pen.restore();
  }
  // What was healthy: where nine of ten of the baseline's windows were, of a finding on this chart.
  function bands(chart, id) {
    const pen = chart.ctx, box = chart.bbox, seen = new Set();
    for (const finding of data.findings) {
      const band = id === "latency-chart" && finding.latency === latencyName() ? finding.baseline_band : id === "evidence-latency" ? finding.device_baseline_band : null;
      if (!band || seen.has(band.join()) || chart.scales.y.min == null) continue;
      seen.add(band.join());
      const top = Math.max(box.top, chart.valToPos(band[1], "y", true)), bottom = Math.min(box.top + box.height, chart.valToPos(band[0], "y", true));
      if (bottom <= top) continue;
      pen.save();
      pen.fillStyle = colour("baseline");
      pen.fillRect(box.left, top, box.width, Math.max(bottom - top, 3 * devicePixelRatio));
      pen.restore();
    }
  }
  function levelsShown() { return data.levels.filter((level) => level.latency === latencyName()); }
  // Limits and the baseline, as dashed lines across the chart of latencies; two that lie close to each other share no words.
  function levels(chart, id) {
    if (id !== "latency-chart" || chart.scales.y.min == null) return;
    const pen = chart.ctx, box = chart.bbox, unit = devicePixelRatio, taken = [];
    pen.save();
    pen.font = 11 * unit + "px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.lineWidth = 1.5 * unit;
    for (const level of levelsShown()) {
      // Of a level beyond what is drawn, only the words stand at the chart's edge.
      const isAbove = level.at > chart.scales.y.max, isBelow = level.at < chart.scales.y.min;
      const words = (isAbove ? "↑ " : isBelow ? "↓ " : "") + level.words;
      const onLine = chart.valToPos(level.at, "y", true), right = box.left + box.width, width = pen.measureText(words).width + 8 * unit;
      const isDrawn = !isAbove && !isBelow;
      // The words stand above the line: a curve that lies on it is not covered.
      const top = isAbove ? box.top + 8 * unit : isBelow ? box.top + box.height - 8 * unit : onLine - 9 * unit;
      pen.strokeStyle = colour(level.kind === "limit" ? "danger" : "healthy");
      if (isDrawn) {
        pen.setLineDash([6 * unit, 4 * unit]);
        pen.beginPath();
        pen.moveTo(box.left, onLine);
        pen.lineTo(right, onLine);
        pen.stroke();
      }
      // On a phone they would stand over the curve, and the legend has the baseline.
      if ((level.kind === "limit" ? 1 : 3) * width > box.width || taken.some((other) => Math.abs(other - top) < 16 * unit)) continue;
      taken.push(top);
      pen.globalAlpha = 0.75;
      pen.fillStyle = colour("card");
      pen.fillRect(right - width, top - 8 * unit, width, 16 * unit);
      pen.globalAlpha = 1;
      pen.fillStyle = pen.strokeStyle;
      pen.fillText(words, right - 4 * unit, top);
    }
    pen.restore();
  }
  function onsets(chart) {
    const pen = chart.ctx, box = chart.bbox, unit = devicePixelRatio;
    pen.save();
    pen.font = "600 " + 11 * unit + "px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.setLineDash([]);
    pen.textBaseline = "middle";
    let free = -Infinity;
    for (const finding of data.findings) {
      if (finding.at < chart.scales.x.min || finding.at > chart.scales.x.max) continue;
      const left = chart.valToPos(finding.at, "x", true), tone = colour(finding.degrades ? "danger" : "mark");
      pen.strokeStyle = tone;
      pen.lineWidth = 2 * unit;
      pen.beginPath();
      pen.moveTo(left, box.top);
      pen.lineTo(left, box.top + box.height);
      pen.stroke();
      const words = finding.kind + " " + elapsed(finding.at), width = pen.measureText(words).width + 10 * unit;
      const begin = Math.min(left, box.left + box.width - width);
      if (begin < free) continue;
      free = begin + width;
      pen.fillStyle = tone;
      // Above the plot, where there is no line to hide.
      pen.fillRect(begin, box.top - 18 * unit, width, 17 * unit);
      pen.fillStyle = colour("card");
      pen.fillText(words, begin + 5 * unit, box.top - 9 * unit);
    }
    pen.restore();
  }
  function labels(chart) {
    const pen = chart.ctx, box = chart.bbox, unit = devicePixelRatio;
    pen.save();
    pen.font = 11 * unit + "px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    const write = (words, where, top) => {
      const width = pen.measureText(words).width + 8 * unit;
      if (width > where[1]) return;
      pen.fillStyle = colour("card");
      pen.fillRect(where[0] + 1, top - 8 * unit, width, 16 * unit);
      pen.fillStyle = colour("quiet");
      pen.fillText(words, where[0] + 4 * unit, top);
    };
    for (const [name, from, to] of data.phases) {
      const where = place(chart, from, to);
      if (where) write(name.replaceAll("_", "-"), where, box.top + 9 * unit);
    }
    for (const [from, to, age] of data.stalls) {
      const where = place(chart, from, to);
      if (where) write(age == null ? "nothing completed" : "stalled", where, box.top + box.height - 9 * unit);
    }
    for (const [from, to] of data.disturbed) {
      const where = place(chart, from, to);
      if (where) write("marked", where, box.top + 27 * unit);
    }
    for (const [from, to] of data.gaps) {
      const where = place(chart, from, to);
      if (where) write("not measured", where, box.top + box.height / 2);
    }
    pen.restore();
  }
  function marks(chart) {
    const pen = chart.ctx, box = chart.bbox, size = 5 * devicePixelRatio;
    pen.save();
    pen.strokeStyle = pen.fillStyle = colour("mark");
    pen.lineWidth = devicePixelRatio;
    pen.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const [at] of data.marks) {
      if (at < chart.scales.x.min || at > chart.scales.x.max) continue;
      const left = chart.valToPos(at, "x", true), bottom = box.top + box.height;
      pen.beginPath();
      pen.moveTo(left, box.top);
      pen.lineTo(left, bottom);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(left, bottom - 2 * size);
      pen.lineTo(left + size, bottom);
      pen.lineTo(left - size, bottom);
      pen.fill();
    }
    pen.restore();
  }
  return { background, bands, levels, levelsShown, onsets, labels, marks };
}
