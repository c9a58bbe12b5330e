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

/** Axis labels: all in the unit of the largest, which the heading names. */
function axisValues(unit) {
  return (chart, splits) => {
    const [factor] = prefix(unit, Math.max(...splits.map(Math.abs)));
    return splits.map((value) => (value === null ? "" : String(Number((value / factor).toPrecision(6)))));
  };
}

/** Axis labels on a logarithmic axis: each with its own unit, since they span decades. */
function logValues(unit) {
  return (chart, splits) => splits.map((value) => {
    if (value === null || !Number.isInteger(Math.round(Math.log10(value) * 1e9) / 1e9)) return "";
    const [factor, name] = prefix(unit, value);
    return `${Number((value / factor).toPrecision(6))} ${name}`.trim();
  });
}

// ---- Heading

function heading() {
  const { title, description, command, scenario_text } = data.header;
  const facts = data.facts.map((fact) =>
    element("div", {}, element("dt", {}, fact.name), element("dd", {}, fact.value)));
  const copy = element("button", { type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command);
    copy.textContent = "Copied";
  });
  page.append(
    element("p", { class: "brand" }, "Suimon"),
    element("h1", {}, title || "Report"),
    description ? element("p", { class: "description" }, description) : "",
    data.summary ? element("p", { class: "lead", id: "summary" }, data.summary) : "",
    element("dl", { class: "facts", id: "facts" }, ...facts),
    command ? element("div", { class: "command" }, element("code", { id: "command" }, command), copy) : "",
    scenario_text
      ? element("details", {}, element("summary", {}, "The scenario"), element("pre", {}, scenario_text))
      : "",
  );
}

function section(title, ...children) {
  page.append(element("section", {}, element("h2", {}, title), ...children));
}

// ---- Tables

const GRADE_CLASS = { "A+": "good", A: "good", B: "fair", C: "fair", D: "bad", F: "bad" };
const gradeBadge = (grade) => element("span", { class: `grade ${GRADE_CLASS[grade]}` }, grade);

function results() {
  if (!data.rows.length) return;
  const startsCost = data.columns.findIndex((column) => column.section === "cost");
  const side = (index) => (index === startsCost ? "section" : "");
  const head = data.columns.map((column, index) => {
    const title = column.title.endsWith("-") ? column.title.slice(0, -1) + column.detail : column.title;
    const detail = column.title.endsWith("-") ? "" : column.detail;
    return element("th", { scope: "col", class: side(index) }, title,
      element("small", {}, detail || "\u00a0"), element("small", {}, column.unit || "\u00a0"));
  });
  head.splice(startsCost, 0, element("th", { scope: "col", class: "centre" }, "Grade",
    element("small", {}, "\u00a0"), element("small", {}, "\u00a0")));
  const body = data.rows.map((row) => {
    const cells = row.cells.map((cell, index) => element("td", { class: side(index) }, cell));
    cells.splice(startsCost, 0, element("td", { class: "centre" }, row.grade ? gradeBadge(row.grade) : ""));
    return element("tr", { class: row.part ? "part" : "run" },
      element("th", { scope: "row", class: "name" }, swatch(row.colour), row.name), ...cells);
  });
  section("Results",
    element("div", { class: "card scroll" },
      element("table", { class: "data", id: "results" },
        element("thead", {}, element("tr", {}, element("th", { scope: "col", class: "name" }, "Run"), ...head)),
        element("tbody", {}, ...body))),
    element("p", { class: "soft", id: "grading" }, data.grading));
}

function verdicts() {
  for (const table of data.verdicts) {
    const head = ["Claim", "Paper", "Tolerance", "Measured", "Verdict"].map((title, index) =>
      element("th", { scope: "col", class: index === 0 ? "text" : "" }, title));
    const body = table.rows.map((row) => element("tr", {},
      element("td", { class: "text" }, row.claim),
      ...[row.paper, row.tolerance, row.measured].map((cell) => element("td", {}, cell)),
      element("td", { class: `verdict ${row.verdict.replace(" ", "-")}` }, row.verdict)));
    section(table.title,
      table.note ? element("p", { class: "soft" }, table.note) : "",
      element("div", { class: "card scroll" }, element("table", { class: "data verdicts" },
        element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body))));
  }
}

// ---- Queueing delay as bars

function delays() {
  if (!data.delays.length) return null;
  const steps = data.thresholds.map(([, below]) => below);
  const high = Math.max(1000, ...data.delays.map((bar) => bar.p99_ms)) * 1.15;
  const low = 1;
  // Perception of delay goes by ratio, and the grades do too.
  const place = (ms) => (100 * Math.log(Math.max(ms, low) / low)) / Math.log(high / low);
  const percent = (ms) => `${place(ms)}%`;
  const rows = data.delays.flatMap((bar) => [
    element("span", { class: "who" }, swatch(bar.colour), bar.name),
    element("div", {
      class: "track",
      title: `${bar.link}: p50 ${quantity(bar.p50_ms, "ms")}, p95 ${quantity(bar.p95_ms, "ms")}, `
        + `p99 ${quantity(bar.p99_ms, "ms")}, max ${quantity(bar.max_ms, "ms")}`,
    },
      ...steps.map((ms) => element("i", { class: "step", style: { left: percent(ms) } })),
      element("i", {
        class: "wide",
        style: { left: 0, width: percent(bar.p99_ms), backgroundColor: bar.colour },
      }),
      element("i", {
        class: "thick",
        style: {
          left: percent(bar.p50_ms),
          width: `${Math.max(0.4, place(bar.p95_ms) - place(bar.p50_ms))}%`,
          backgroundColor: bar.colour,
        },
      }),
      element("i", { class: "mark", style: { left: percent(bar.p95_ms) } })),
    element("span", { class: "value" }, quantity(bar.p95_ms, "ms")),
    gradeBadge(bar.grade),
  ]);
  const scale = element("div", { class: "scale" }, ...[1, ...steps, 1000].map((ms) =>
    element("span", { style: { left: percent(ms) } }, ms === 1000 ? "1 s" : String(ms))));
  return element("figure", { class: "card chart", id: "delays" },
    element("header", {}, element("h3", {}, "Queueing delay"), element("span", { class: "unit" }, "ms")),
    element("div", { class: "delays" }, ...rows, element("span"), scale, element("span"), element("span")),
    element("figcaption", {},
      "The thick bar runs from the median to the 95th percentile, which is marked, stated and graded; "
      + "the thin line ends at the 99th. Lines stand where a grade begins; the scale goes by ratio."));
}

// ---- Charts: what both kinds share

const charts = new Set();
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

function axis(options) {
  return {
    stroke: () => theme("soft"),
    font: FONT,
    grid: { stroke: () => theme("grid"), width: 1 },
    ticks: { stroke: () => theme("grid"), width: 1, size: 4 },
    ...options,
  };
}

/** Wide enough for the longest label. */
function axisSize(chart, values) {
  const longest = Math.max(0, ...(values ?? []).map((value) => value.length));
  return Math.max(34, 14 + longest * 7);
}

const fromZero = (chart, low, high) =>
  (low === null || high === null ? [0, 1] : [Math.min(0, low * 1.08), high > 0 ? high * 1.08 : 1]);

function keepSize(chart, holder, height) {
  const observer = new ResizeObserver(() => {
    if (holder.clientWidth && holder.clientWidth !== chart.width) {
      chart.setSize({ width: holder.clientWidth, height });
    }
  });
  observer.observe(holder);
  charts.add(chart);
  return () => {
    observer.disconnect();
    charts.delete(chart);
    chart.destroy();
  };
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const chart of charts) chart.redraw(false, true);
});

// ---- Charts over time: one shared time axis, so a zoom in one is a zoom in all

const DASHES = [[], [9, 4], [2, 3], [10, 3, 2, 3]];
const BORDERS = ["solid", "dashed", "dotted", "dashed"];
const shownRuns = new Set(data.runs.flatMap((run, index) => (run.shown ? [index] : [])));
const timeCharts = new Set();
let zoom = null;

/** Further runs of one colour keep it but lean towards the ink. */
function shade(colour, step) {
  if (!step) return colour;
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const ink = matchMedia("(prefers-color-scheme: dark)").matches ? 255 : 0;
  const mixed = parts.map((part) => Math.round(part + (ink - part) * Math.min(0.6, 0.22 * step)));
  return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** Curves are thinned out one by one, so at most instants only some have a sample: take the nearest. */
function nearestSample(chart, series, index, time) {
  if (series === 0) return index;
  const [times, values] = [chart.data[0], chart.data[series]];
  if (values[index] != null) return index;
  let [left, right] = [index, index];
  while (left > 0 && values[left] == null) left--;
  while (right < values.length - 1 && values[right] == null) right++;
  if (values[left] == null) return right;
  if (values[right] == null) return left;
  return time - times[left] <= times[right] - time ? left : right;
}

function shareZoom(chart, key) {
  if (key !== "x") return;
  const { min, max } = chart.scales.x;
  if (zoom && zoom.min === min && zoom.max === max) return;
  zoom = { min, max };
  for (const other of timeCharts) {
    if (other !== chart) other.setScale("x", zoom);
  }
}

function timePanel(panel, index) {
  const holder = element("div", { class: "plot" });
  const unitLabel = element("span", { class: "unit" });
  const chosen = new Set(panel.quantities.flatMap((quantity, at) => (quantity.shown ? [at] : [])));
  const chips = panel.quantities.map((quantity, at) => element("button", {
    type: "button",
    class: "chip",
    onclick: () => {
      // Values of different units have no common axis, so choosing one drops the other.
      for (const other of [...chosen]) {
        if (panel.quantities[other].unit !== quantity.unit) chosen.delete(other);
      }
      if (!chosen.delete(at) || !chosen.size) chosen.add(at);
      draw();
    },
  }, chipName(panel, quantity)));
  const figure = element("figure", { class: "card chart time", "data-panel": panel.title },
    element("header", {}, element("h3", {}, panel.title), unitLabel,
      chips.length > 1 ? element("div", { class: "chips" }, ...chips) : null),
    holder, element("p", { class: "axis" }, "Time (s)"));
  let remove = null;

  function draw() {
    remove?.();
    chips.forEach((chip, at) => chip.setAttribute("aria-pressed", String(chosen.has(at))));
    const curves = panel.curves.filter((curve) => chosen.has(curve.quantity) && shownRuns.has(curve.run));
    const unit = panel.quantities[[...chosen][0]].unit;
    const largest = curves.reduce((high, curve) => curve.v.reduce((a, b) => Math.max(a, b ?? 0), high), 0);
    unitLabel.textContent = prefix(unit, largest)[1];
    const columns = curves.length
      ? uPlot.join(curves.map((curve) => [curve.t, curve.v]))
      : [[0, zoom?.max ?? 1]];
    const height = 230;
    const chart = new uPlot({
      width: holder.clientWidth || 600,
      height,
      padding: [10, 12, 0, 0],
      scales: { x: { time: false }, y: { range: fromZero } },
      cursor: {
        dataIdx: nearestSample,
        drag: { x: true, y: false },
        points: { size: 7 },
        sync: { key: "time", filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
      },
      legend: {
        markers: { dash: (chart, at) => BORDERS[pattern(curves[at - 1]) % BORDERS.length] },
      },
      axes: [
        axis({ size: 28 }),
        axis({ values: axisValues(unit), size: axisSize }),
      ],
      series: [
        { label: "Time", value: (chart, value) => (value == null ? "" : `${digits(value)} s`) },
        ...curves.map((curve) => ({
          label: chosen.size > 1 ? `${curve.name} ${panel.quantities[curve.quantity].title}` : curve.name,
          stroke: shade(curve.colour, Math.floor(curve.variant / DASHES.length)),
          dash: DASHES[pattern(curve) % DASHES.length],
          width: 1.6,
          points: { show: false },
          value: (chart, value) => quantity(value, unit),
        })),
      ],
      hooks: { setScale: [shareZoom] },
    }, columns, holder);
    timeCharts.add(chart);
    if (zoom) chart.setScale("x", zoom);
    const forget = keepSize(chart, holder, height);
    remove = () => {
      timeCharts.delete(chart);
      forget();
    };
    figure.chart = chart;
  }

  /** With several quantities the dash tells them apart; with one it tells apart runs of one colour. */
  const pattern = (curve) => (curve ? (chosen.size > 1 ? curve.quantity : curve.variant) : 0);

  return { figure, draw };
}

function chipName(panel, quantity) {
  const several = panel.quantities.some((other) => other.title === quantity.title && other !== quantity);
  return several ? `${quantity.title} (${quantity.unit})` : quantity.title;
}

function overTime() {
  if (!data.panels.length) return;
  const panels = data.panels.map(timePanel);
  const redraw = () => panels.forEach((panel) => panel.draw());
  const chips = data.runs.map((run, index) => element("button", {
    type: "button",
    class: "chip",
    "data-run": index,
    onclick: () => {
      if (!shownRuns.delete(index)) shownRuns.add(index);
      update();
    },
  }, swatch(run.colour), run.name));
  const all = (shown) => () => {
    data.runs.forEach((run, index) => (shown ? shownRuns.add(index) : shownRuns.delete(index)));
    update();
  };
  function update() {
    chips.forEach((chip, index) => chip.setAttribute("aria-pressed", String(shownRuns.has(index))));
    redraw();
  }
  const reset = () => {
    const times = data.panels.flatMap((panel) => panel.curves.map((curve) => curve.t));
    const full = { min: Math.min(...times.map((t) => t[0])), max: Math.max(...times.map((t) => t.at(-1))) };
    timeCharts.values().next().value?.setScale("x", full);
  };
  const button = (name, onclick) => element("button", { type: "button", onclick }, name);
  const actions = [button("Reset zoom", reset)];
  if (data.runs.length > 1) actions.unshift(button("All", all(true)), button("None", all(false)));
  section("Over time",
    element("p", { class: "soft" }, "Drag across a chart to zoom all of them; double-click to see everything again."),
    element("div", { class: "card toolbar" },
      data.runs.length > 1 ? element("div", { class: "chips", id: "runs" }, ...chips) : element("span"),
      element("div", { class: "actions" }, ...actions)),
    ...panels.map((panel) => panel.figure));
  update();
}

// ---- Figures: anything against anything

const MARKERS = ["circle", "square", "triangle", "diamond"];

/** The outline of a marker around a point; the same shapes serve canvas and legend. */
function markerPath(kind, x, y, size) {
  const path = new Path2D();
  if (kind === "circle") {
    path.arc(x, y, size, 0, 2 * Math.PI);
  } else {
    const corners = {
      square: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
      triangle: [[0, -1.2], [1.1, 0.8], [-1.1, 0.8]],
      diamond: [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
    }[kind];
    corners.forEach(([dx, dy]) => path.lineTo(x + dx * size, y + dy * size));
    path.closePath();
  }
  return path;
}

function legendMark(series, kind) {
  const canvas = element("canvas", { width: 44, height: 24, style: { width: "22px", height: "12px", marginRight: ".45em" } });
  const context = canvas.getContext("2d");
  context.strokeStyle = context.fillStyle = series.colour;
  if (series.style !== "points") {
    context.lineWidth = 4;
    context.setLineDash(series.style === "dashed-line" ? [9, 6] : []);
    context.beginPath();
    context.moveTo(0, 12);
    context.lineTo(44, 12);
    context.stroke();
  }
  if (series.style.includes("points")) context.fill(markerPath(kind, 22, 12, 8));
  return canvas;
}

function drawSeries(series, kind) {
  return (chart, index) => {
    const [xs, ys] = chart.data[index];
    const { ctx, bbox } = chart;
    const pixels = devicePixelRatio;
    const at = xs.map((x, i) => [chart.valToPos(x, "x", true), chart.valToPos(ys[i], "y", true)]);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.strokeStyle = ctx.fillStyle = series.colour;
    if (series.style !== "points") {
      ctx.lineWidth = 1.6 * pixels;
      ctx.setLineDash(series.style === "dashed-line" ? [6 * pixels, 4 * pixels] : []);
      ctx.beginPath();
      at.forEach(([x, y]) => (Number.isFinite(y) ? ctx.lineTo(x, y) : null));
      ctx.stroke();
    }
    if (series.style.includes("points")) {
      ctx.setLineDash([]);
      ctx.lineWidth = 1.5 * pixels;
      ctx.strokeStyle = theme("card");
      for (const [x, y] of at) {
        const outline = markerPath(kind, x, y, 4.6 * pixels);
        ctx.fill(outline);
        ctx.stroke(outline);
      }
    }
    ctx.restore();
    return null;
  };
}

function figureRange(scale) {
  if (scale !== "logarithmic") return fromZero;
  return (chart, low, high) => (low > 0 ? [low / 1.25, high * 1.25] : [1, 10]);
}

function figureAxis(side) {
  const logarithmic = side.scale === "logarithmic";
  return axis({ values: logarithmic ? logValues(side.unit) : axisValues(side.unit) });
}

/** The heading of an axis: linear axes carry one unit, logarithmic labels each their own. */
function axisTitle(side, values) {
  if (side.scale === "logarithmic") return side.label;
  const unit = prefix(side.unit, Math.max(0, ...values.map(Math.abs)))[1];
  return unit ? `${side.label} (${unit})` : side.label;
}

function figureChart(spec) {
  const holder = element("div", { class: "plot" });
  const known = (point) => point[0] !== null && point[1] !== null;
  const points = spec.series.map((series) => series.points.filter(known));
  const all = points.flat();
  const kinds = spec.series.map((series, index) => MARKERS[index % MARKERS.length]);
  const legend = spec.series.map((series, index) => {
    const chip = element("button", {
      type: "button",
      class: "chip",
      "aria-pressed": "true",
      "data-colour": series.colour,
      onclick: () => {
        const show = !figure.chart.series[index + 1].show;
        figure.chart.setSeries(index + 1, { show });
        chip.setAttribute("aria-pressed", String(show));
      },
    }, legendMark(series, kinds[index]), series.name);
    return chip;
  });
  const figure = element("figure", { class: "card chart figure" },
    element("header", {}, element("h3", {}, spec.title),
      element("span", { class: "unit" }, axisTitle(spec.y, all.map(([, y]) => y)))),
    holder,
    element("p", { class: "axis" }, axisTitle(spec.x, all.map(([x]) => x))),
    element("div", { class: "legend" }, ...legend),
    spec.caption ? element("figcaption", {}, spec.caption) : null);

  const tip = element("div", { class: "tip", hidden: "" });
  function point(chart) {
    const { left, top } = chart.cursor;
    let best = { distance: 28 };
    points.forEach((members, index) => {
      if (!chart.series[index + 1].show) return;
      for (const member of members) {
        const [x, y] = [chart.valToPos(member[0], "x"), chart.valToPos(member[1], "y")];
        const distance = Math.hypot(x - left, y - top);
        if (distance < best.distance) best = { distance, x, y, member, index };
      }
    });
    tip.hidden = !best.member || left < 0;
    if (tip.hidden) return;
    const [x, y, label] = best.member;
    const line = (side, value) => element("div", {}, `${side.label}: ${quantity(value, side.unit)}`);
    tip.replaceChildren(element("strong", {}, label ?? spec.series[best.index].name), line(spec.x, x), line(spec.y, y));
    const right = best.x > chart.over.clientWidth / 2;
    Object.assign(tip.style, {
      left: right ? "auto" : `${best.x + 12}px`,
      right: right ? `${chart.over.clientWidth - best.x + 12}px` : "auto",
      top: `${Math.max(0, best.y - 20)}px`,
    });
  }

  function draw() {
    const height = 330;
    const scale = (side) => ({
      time: false,
      distr: side.scale === "logarithmic" ? 3 : 1,
      range: figureRange(side.scale),
    });
    const chart = new uPlot({
      mode: 2,
      width: holder.clientWidth || 500,
      height,
      padding: [10, 14, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: true, y: true, uni: 40 }, points: { show: false } },
      scales: { x: scale(spec.x), y: scale(spec.y) },
      axes: [{ ...figureAxis(spec.x), size: 30 }, { ...figureAxis(spec.y), size: axisSize }],
      series: [{}, ...spec.series.map((series, index) => ({
        label: series.name,
        stroke: series.colour,
        facets: [{ scale: "x", auto: true }, { scale: "y", auto: true }],
        paths: drawSeries(series, kinds[index]),
      }))],
      hooks: { setCursor: [point] },
    }, [null, ...points.map((members) => [members.map(([x]) => x), members.map(([, y]) => y)])], holder);
    chart.over.append(tip);
    keepSize(chart, holder, height);
    figure.chart = chart;
  }
  return { figure, draw };
}

function figures() {
  const drawn = data.figures.map(figureChart);
  const children = [delays(), ...drawn.map((one) => one.figure)].filter((child) => child !== null);
  if (!children.length) return;
  section("Throughput and latency", element("div", { class: "grid" }, ...children));
  drawn.forEach((one) => one.draw());
}

// ---- The page, top to bottom

heading();
verdicts();
results();
figures();
overTime();
if (data.notes.length) {
  section("Notes", element("ul", { id: "notes" }, ...data.notes.map((note) => element("li", {}, note))));
}
page.append(element("footer", {},
  `Made by Suimon ${data.header.version}. Charts by uPlot, © Leon Sorokin, MIT licence (its text is in this page's source).`));
