"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

// ---- Elements. Text from outside only ever becomes a text node.

function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") node.className = value;
    else if (key === "style") Object.assign(node.style, value);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const swatch = (colour) => element("span", { class: "swatch", style: { backgroundColor: colour } });
const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// ---- Numbers

const PREFIXES = {
  bps: [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
  bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
  ms: [[1e3, "s"], [1, "ms"], [1e-3, "µs"]],
  s: [[1, "s"], [1e-3, "ms"]],
};

/** The factor and name of the unit in which `size` reads best. */
function prefix(unit, size) {
  const steps = PREFIXES[unit];
  if (!steps) return [1, unit];
  return steps.find(([factor]) => Math.abs(size) >= factor) ?? steps[size === 0 ? 0 : steps.length - 1];
}

function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

function quantity(value, unit) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const [factor, name] = prefix(unit, value);
  return `${digits(value / factor)} ${name}`.trim();
}

/** Axis labels: all in the unit of the largest value, which the heading names, however the axis is zoomed. */
function axisValues(unit, largest) {
  const [factor] = prefix(unit, largest);
  return (chart, splits) =>
    splits.map((value) => (value === null ? "" : String(Number((value / factor).toPrecision(6)))));
}

/** Lines of a logarithmic axis: as many of each decade as have room for their label. */
function logSplits(chart, side, low, high) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.floor(Math.log10(high))];
  const { width, height } = chart.bbox;
  const room = (side === 0 ? width / 75 : height / 22) / devicePixelRatio / Math.log10(high / low);
  // 1, 2, 5 stand at least 0.3 of a decade apart, 1 and 3 at least 0.47.
  const mantissas = room > 21 ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : room > 3.3 ? [1, 2, 5] : room > 2.1 ? [1, 3] : [1];
  const splits = [];
  for (let decade = first; decade <= last; decade++) {
    splits.push(...mantissas.map((mantissa) => Number(`${mantissa}e${decade}`)));
  }
  return splits.filter((value) => value >= low && value <= high);
}

/** Labels of a logarithmic axis: each with its own unit, since they span decades. */
function logValues(unit) {
  return (chart, splits) => splits.map((value) => {
    const [factor, name] = prefix(unit, value);
    return `${Number((value / factor).toPrecision(6))} ${name}`.trim();
  });
}

/** Keeps numbers and their units on one line. */
const unbroken = (text) => text.replace(/(\d|<) (?=%|[kMG]?bit\/s|m?s\b|\d)/g, "$1\u00a0").replace(/ (?=< ?\d|<\u00a0)/g, "\u00a0");
