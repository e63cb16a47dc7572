"use strict";
// Quantities as people read them, by the rules at the head of cliffwatch/base/units.py; a test compares the two.
window.quantities = (function () {
  // A number that lies exactly between two shorter ones becomes the even one, as in Python; toFixed takes the larger.
  function fixed(value, places) {
    const scaled = value * 10 ** places, whole = Math.floor(scaled);
    const isTie = scaled - whole === 0.5 && Number.isInteger(value * 2 ** (places + 1));
    return isTie ? ((whole + (whole % 2)) / 10 ** places).toFixed(places) : value.toFixed(places);
  }
  const whole = (value) => Number(fixed(value, 0));
  const grouped = (value) => whole(value).toLocaleString("en-US");
  function digits(value, count) {
    if (value === 0) return "0";
    return String(Number(fixed(value, Math.max(0, count - 1 - Math.floor(Math.log10(Math.abs(value)))))));
  }
  function latency(seconds) {
    if (seconds == null) return "–";
    const [size, unit] = seconds >= 0.9995 ? [1, "s"] : seconds >= 0.9995e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
    const value = seconds / size;
    return (value >= 99.95 ? grouped(value) : digits(value, 3)) + " " + unit;
  }
  function byteRate(value) {
    if (value == null) return "–";
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (Math.abs(value) >= (unit === 0 ? 999.5 : 999.95) && unit < units.length - 1) { value /= 1024; unit += 1; }
    return fixed(value, unit === 0 ? 0 : 1) + " " + units[unit] + "/s";
  }
  function count(value) {
    for (const [size, word] of [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]])
      if (value >= size * (word === "million" ? 10 : 1)) return digits(value / size, 4) + " " + word;
    return grouped(value);
  }
  const number = (value) => (Math.abs(value) > 0 && Math.abs(value) < 0.0001 ? "< 0.0001" : Math.abs(value) >= 99.95 ? grouped(value) : digits(value, 3));
  const rate = (value) => (value == null ? "–" : (Math.abs(value) < 99.95 ? number(value) : count(value)) + " /s");
  const ratio = (value) => (value < 1.995 ? fixed(value, 2) : value < 9.95 ? fixed(value, 1) : grouped(value)) + "×";
  function amplification(value) {
    const [before, after] = fixed(value, 2).split(".");
    return Number(before).toLocaleString("en-US") + "." + after;
  }
  const share = (value) => (value > 0 && value < 0.0001 ? "< 0.01 %" : number(value * 100) + " %");
  const two = (number) => String(number).padStart(2, "0");
  function elapsed(seconds) {
    const all = Math.abs(whole(seconds));
    return (seconds <= -0.5 ? "−" : "") + Math.floor(all / 3600) + ":" + two(Math.floor(all / 60) % 60) + ":" + two(all % 60);
  }
  return { latency, byteRate, count, rate, elapsed, number, ratio, amplification, share };
})();
