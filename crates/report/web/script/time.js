// Charts over time: one shared time axis, so a zoom in one is a zoom in all

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

/** A peak of one sample, such as a burst after a stall, does not push the curves together. */
const withinLink = (capacity) => (chart, low, high) => [0, Math.min(fromZero(chart, 0, high)[1], capacity * 1.25)];

/** The capacity of the link, behind the curves. */
function drawCapacity(chart, capacity) {
  const { left, width } = chart.bbox;
  const y = chart.valToPos(capacity, "y", true);
  const { ctx } = chart;
  if (y < chart.bbox.top) return;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = theme("soft");
  ctx.setLineDash([6, 5]);
  ctx.beginPath();
  ctx.moveTo(left, y);
  ctx.lineTo(left + width, y);
  ctx.stroke();
  ctx.font = FONT;
  ctx.textAlign = "right";
  ctx.fillText("link", left + width - 4, y - 5);
  ctx.restore();
}

/** A few marks on each curve, of the shape that its sender has everywhere: colours alone do not tell all readers which is which. */
function drawMarks(chart, curves) {
  const { ctx } = chart;
  const { min, max } = chart.scales.x;
  ctx.save();
  curves.forEach(({ colour, t, v }, index) => {
    ctx.fillStyle = colour;
    for (let nth = 0; nth < MARKS; nth++) {
      const wanted = min + ((nth + (index + 1) / (curves.length + 1)) * (max - min)) / MARKS;
      const at = t.findIndex((time) => time >= wanted);
      if (at < 0 || v[at] === null || t[at] > max) continue;
      const [x, y] = [chart.valToPos(t[at], "x", true), chart.valToPos(v[at], "y", true)];
      if (y >= chart.bbox.top) ctx.fill(markerPath(markerOf(colour), x, y, 3.6 * devicePixelRatio));
    }
  });
  ctx.restore();
}
const MARKS = 6;

function timePanel(panel, index) {
  const holder = element("div", { class: "plot" });
  const unitLabel = element("span", { class: "unit" });
  const axisLabel = element("p", { class: "axis" }, "Time (s)");
  const legend = element("div");
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
      chips.length > 1 ? element("div", { class: "chips" }, ...chips) : null,
      saving(panel.title, () => figure.chart, () => shownNow)),
    holder, axisLabel, legend);
  let remove = null;
  let shownNow = { curves: [], x: "Time (s)", y: "" };

  function draw() {
    remove?.();
    chips.forEach((chip, at) => chip.setAttribute("aria-pressed", String(chosen.has(at))));
    const curves = panel.curves.filter((curve) => chosen.has(curve.quantity) && shownRuns.has(curve.run));
    // Of the curves shown, those of one colour differ by dash, and beyond that by shade.
    const variants = curves.map((curve, at) => curves.slice(0, at).filter((other) =>
      other.colour === curve.colour && other.quantity === curve.quantity).length);
    // With several quantities the dash tells those apart.
    const pattern = (at) => (chosen.size > 1 ? curves[at]?.quantity : variants[at]) ?? 0;
    const unit = panel.quantities[[...chosen][0]].unit;
    const largest = curves.reduce((high, curve) => curve.v.reduce((a, b) => Math.max(a, b ?? 0), high), 0);
    unitLabel.textContent = prefix(unit, largest)[1];
    const asPoints = ({ name, colour, t, v }) => ({ name, colour, line: true, points: t.map((at, nth) => [at, v[nth]]) });
    shownNow = { curves: curves.map(asPoints), x: "Time (s)", y: unit ? `${panel.title} (${unit})` : panel.title };
    describe(holder, `${panel.title} over time`, shownNow.curves, unit);
    const columns = curves.length
      ? uPlot.join(curves.map((curve) => [curve.t, curve.v]))
      : [[0, zoom?.max ?? 1]];
    const height = 230;
    const chart = new uPlot({
      width: holder.clientWidth || 600,
      height,
      padding: [10, 12, 0, 0],
      scales: { x: { time: false }, y: { range: panel.capacity ? withinLink(panel.capacity) : fromZero } },
      cursor: {
        dataIdx: nearestSample,
        drag: { x: true, y: false },
        points: { size: 7 },
        sync: { key: "time", filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
      },
      legend: {
        mount: (chart, table) => legend.append(table),
        markers: { dash: (chart, at) => BORDERS[pattern(at - 1) % BORDERS.length] },
      },
      axes: [
        axis({ size: 28 }),
        axis({ values: axisValues(unit, largest), size: axisSize }),
      ],
      series: [
        {},
        ...curves.map((curve, at) => ({
          label: chosen.size > 1 ? `${curve.name} ${panel.quantities[curve.quantity].title}` : curve.name,
          stroke: shade(curve.colour, Math.floor(variants[at] / DASHES.length)),
          dash: DASHES[pattern(at) % DASHES.length],
          width: 1.6,
          points: { show: false },
          value: (chart, value) => (value == null ? "" : quantity(value, unit)),
        })),
      ],
      hooks: {
        setScale: [shareZoom],
        drawAxes: panel.capacity ? [(chart) => drawCapacity(chart, panel.capacity)] : [],
        draw: [(chart) => drawMarks(chart, curves)],
        setCursor: [({ cursor, data: [times] }) => {
          axisLabel.textContent = cursor.idx == null ? "Time (s)" : `Time: ${times[cursor.idx].toFixed(2)} s`;
        }],
      },
    }, columns, holder);
    legend.querySelectorAll(".u-series:not(:first-child) .u-marker").forEach((marker, at) => marker.append(swatch(curves[at].colour)));
    timeCharts.add(chart);
    if (zoom) chart.setScale("x", zoom);
    takeFingers(chart, ["x"]);
    const forget = keepSize(chart, holder, height);
    remove = () => {
      timeCharts.delete(chart);
      forget();
    };
    figure.chart = chart;
  }

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
  /** Shows the runs that are wanted, and no others. */
  const only = (wanted) => () => {
    data.runs.forEach((run, index) => (wanted(run) ? shownRuns.add(index) : shownRuns.delete(index)));
    update();
  };
  function update() {
    chips.forEach((chip, index) => chip.setAttribute("aria-pressed", String(shownRuns.has(index))));
    redraw();
  }
  const reset = () => {
    const shown = data.panels.flatMap((panel) => panel.curves.filter((curve) => shownRuns.has(curve.run)));
    const times = shown.map((curve) => curve.t);
    if (!times.length) return;
    const full = { min: Math.min(...times.map((t) => t[0])), max: Math.max(...times.map((t) => t.at(-1))) };
    timeCharts.values().next().value?.setScale("x", full);
  };
  const button = (name, onclick) => element("button", { type: "button", onclick }, name);
  const actions = [button("Reset zoom", reset)];
  if (data.runs.length > 1) actions.unshift(button("All", only(() => true)), button("None", only(() => false)));
  const scenarios = [...new Set(data.runs.map((run) => run.scenario))];
  if (scenarios.length > 1) {
    const show = (name) => () => {
      only((run) => run.scenario === name)();
      reset();
    };
    actions.unshift(...scenarios.map((name) => button(name, show(name))));
  }
  section("Over time",
    element("p", { class: "soft" }, "Drag across a chart, or spread two fingers, to zoom all of them; double-click to see everything again."),
    element("div", { class: "card toolbar" },
      data.runs.length > 1 ? element("div", { class: "chips", id: "runs" }, ...chips) : element("span"),
      element("div", { class: "actions" }, ...actions)),
    ...panels.map((panel) => panel.figure));
  update();
}
