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

// ---- Markers. Each colour, which is that of a sender, has a shape of its own on the whole page, for eyes and printers
// that tell no colours apart.

const CORNERS = {
  circle: Array.from({ length: 16 }, (_, nth) => [Math.cos(nth * Math.PI / 8), Math.sin(nth * Math.PI / 8)]),
  square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  triangle: [[0, -1.2], [1.1, 0.8], [-1.1, 0.8]],
  diamond: [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
  down: [[0, 1.2], [1.1, -0.8], [-1.1, -0.8]],
  plus: [[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2],
    [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]],
  bow: [[-1.1, -1], [1.1, 1], [1.1, -1], [-1.1, 1]],
  bar: [[-0.5, -1.3], [0.5, -1.3], [0.5, 1.3], [-0.5, 1.3]],
};
const MARKERS = Object.keys(CORNERS);
const FILLS = [{}, { hollow: true }, { small: true }, { small: true, hollow: true }];
const coloursSeen = [];

/** The shape of a colour, in the order in which the page first shows them. */
function markerOf(colour) {
  if (!coloursSeen.includes(colour)) coloursSeen.push(colour);
  return MARKERS[coloursSeen.indexOf(colour) % MARKERS.length];
}

/** The outline of a marker around a point. */
function markerPath(kind, x, y, size) {
  const path = new Path2D();
  CORNERS[kind].forEach(([dx, dy]) => path.lineTo(x + dx * size, y + dy * size));
  path.closePath();
  return path;
}

/** Draws a marker in the colour that is set to fill. */
function drawMark(context, { kind, hollow, small }, x, y, size) {
  const outline = markerPath(kind, x, y, small ? 0.6 * size : size);
  context.fill(outline);
  if (!hollow) return;
  context.save();
  context.fillStyle = theme("card");
  context.fill(markerPath(kind, x, y, 0.5 * (small ? 0.6 * size : size)));
  context.restore();
}

function swatch(colour) {
  const corner = ([x, y]) => `${(50 + 38 * x).toFixed(1)}% ${(50 + 38 * y).toFixed(1)}%`;
  const clipPath = `polygon(${CORNERS[markerOf(colour)].map(corner).join(", ")})`;
  return element("span", { class: "swatch", style: { backgroundColor: colour, clipPath } });
}
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
