// Charts: what both kinds share

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

/** Two fingers zoom a chart, one moves it sideways once it is zoomed, a double tap shows everything again. */
function takeFingers(chart, scales) {
  const fingers = new Map();
  let tapped = 0;
  const whole = () => chart.setData(chart.data);
  const place = ({ clientX, clientY }) => {
    const box = chart.over.getBoundingClientRect();
    return { x: clientX - box.x, y: clientY - box.y };
  };
  /** Moves and stretches each scale so that what was under the fingers stays under them. */
  const follow = (before, after) => {
    for (const scale of scales) {
      const middle = (ends) => ends.reduce((sum, end) => sum + end[scale], 0) / ends.length;
      const apart = (ends) => (ends.length > 1 ? Math.abs(ends[1][scale] - ends[0][scale]) : 0);
      // Fingers that lie one above the other say nothing of the width.
      const factor = Math.min(apart(before), apart(after)) > 20 ? apart(after) / apart(before) : 1;
      const at = (value) => {
        const pixel = chart.valToPos(value, scale);
        return chart.posToVal(middle(before) + (pixel - middle(after)) / factor, scale);
      };
      const { min, max } = chart.scales[scale];
      chart.setScale(scale, { min: at(min), max: at(max) });
    }
  };
  const { over } = chart;
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch") return;
    fingers.set(event.pointerId, place(event));
    if (fingers.size === 1) {
      if (event.timeStamp - tapped < 300) whole();
      tapped = event.timeStamp;
    }
  });
  over.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    const before = [...fingers.values()];
    fingers.set(event.pointerId, place(event));
    if (fingers.size <= 2) follow(before, [...fingers.values()]);
    tapped = 0;
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
    over.addEventListener(end, (event) => fingers.delete(event.pointerId));
  }
}

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

// ---- What a chart is in words, and as a file

/** The text of a chart for those who do not see it: what it shows, and of each curve the range. */
function describe(holder, title, curves, unit) {
  const range = ({ name, points }) => {
    const values = points.map(([, y]) => y).filter((y) => y !== null);
    if (!values.length) return name;
    const [low, high] = values.reduce(([a, b], y) => [Math.min(a, y), Math.max(b, y)], [Infinity, -Infinity]);
    return `${name} from ${quantity(low, unit)} to ${quantity(high, unit)}`;
  };
  holder.setAttribute("role", "img");
  holder.setAttribute("aria-label", `Chart: ${title}. ${curves.map(range).join("; ")}.`);
}

function download(name, blob) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}

const csvCell = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));

/** The curves as CSV: a row a point. */
function csvOf(curves, x, y) {
  const intervals = curves.some(({ points }) => points.some((point) => point.length > 3));
  const row = (name, [a, b, , low, high]) => (intervals ? [name, a, b, low, high] : [name, a, b]);
  const rows = curves.flatMap(({ name, points }) => points.map((point) => row(name, point)));
  const head = intervals ? ["series", x, y, "low", "high"] : ["series", x, y];
  return [head, ...rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
}

/** The chart as SVG, with the scales that it shows. */
function svgOf(chart, title, curves, x, y) {
  const [width, height, left, bottom] = [800, 420, 70, 50];
  const escape = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const [inner, tall] = [width - left - 160, height - bottom - 40];
  const scale = ({ min, max, distr }, size) => (value) => distr === 3
    ? size * Math.log(value / min) / Math.log(max / min)
    : size * (value - min) / (max - min);
  const [toX, toY] = [scale(chart.scales.x, inner), scale(chart.scales.y, tall)];
  const place = ([a, b]) => [left + toX(a), 40 + tall - toY(b)].map((at) => at.toFixed(1));
  const inside = ([a, b]) => a !== null && b !== null && a >= chart.scales.x.min && a <= chart.scales.x.max;
  const mark = (colour, x, y) => {
    const corners = CORNERS[markerOf(colour)].map(([dx, dy]) => [x + 3.5 * dx, y + 3.5 * dy].map((at) => at.toFixed(1)));
    return `<polygon fill="${colour}" points="${corners.map((corner) => corner.join(",")).join(" ")}"/>`;
  };
  const draw = ({ name, colour, line, points }, index) => {
    const seen = points.filter(inside).map(place);
    const marks = seen.filter((_, at) => !line || at % Math.ceil(seen.length / 12) === 0);
    const band = points.filter((point) => inside(point) && point.length > 3);
    const ends = [...band.map(([a, , , low]) => [a, low]), ...band.map(([a, , , , high]) => [a, high]).reverse()];
    return (band.length > 1 ? `<polygon fill="${colour}" fill-opacity="0.18" points="${ends.map((end) => place(end).join(",")).join(" ")}"/>` : "")
      + (line ? `<polyline fill="none" stroke="${colour}" stroke-width="1.6" points="${seen.map((at) => at.join(",")).join(" ")}"/>` : "")
      + marks.map(([a, b]) => mark(colour, Number(a), Number(b))).join("")
      + mark(colour, width - 145, 49 + 18 * index)
      + `<text x="${width - 134}" y="${53 + 18 * index}">${escape(name)}</text>`;
  };
  const ticks = (axis, way) => (axis?._splits ?? []).filter((value) => value !== null).map((value) => {
    const at = way(value);
    return Number.isFinite(at) ? [value, at] : null;
  }).filter((tick) => tick !== null);
  const [acrossX, upY] = [ticks(chart.axes[0], toX), ticks(chart.axes[1], toY)];
  const short = (value) => Number(value.toPrecision(6));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`
    + `<rect width="100%" height="100%" fill="#fff"/><text x="${left}" y="22" font-size="15">${escape(title)}</text>`
    + `<path fill="none" stroke="#566273" d="M${left} 40V${40 + tall}H${left + inner}"/>`
    + acrossX.map(([value, at]) => `<text x="${left + at}" y="${58 + tall}" text-anchor="middle">${short(value)}</text>`).join("")
    + upY.map(([value, at]) => `<text x="${left - 6}" y="${44 + tall - at}" text-anchor="end">${short(value)}</text>`).join("")
    + `<text x="${left + inner}" y="${height - 8}" text-anchor="end">${escape(x)}</text>`
    + `<text x="${left}" y="36" font-size="11">${escape(y)}</text>${curves.map(draw).join("")}</svg>\n`;
}

/** The chart as a picture on white, with its title and what each colour stands for. */
function pngOf(chart, title, curves) {
  const from = chart.ctx.canvas;
  const ratio = devicePixelRatio || 1;
  const canvas = element("canvas", { width: from.width, height: from.height + (50 + 18 * curves.length) * ratio });
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(from, 0, 34 * ratio);
  context.scale(ratio, ratio);
  context.fillStyle = "#16202c";
  context.font = "15px sans-serif";
  context.fillText(title, 10, 22);
  context.font = "12px sans-serif";
  curves.forEach(({ name, colour }, index) => {
    const y = 46 + from.height / ratio + 18 * index;
    context.fillStyle = colour;
    context.fill(markerPath(markerOf(colour), 17, y - 4, 5));
    context.fillStyle = "#16202c";
    context.fillText(name, 28, y);
  });
  return canvas;
}

/** Buttons that save a chart; `now` tells what it shows: its curves and the names of its axes. */
function saving(title, chart, now) {
  const file = title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const button = (kind, save) => element("button", {
    type: "button", "aria-label": `Save ${title} as ${kind}`, onclick: save,
  }, kind);
  return element("span", { class: "save" },
    button("PNG", () => pngOf(chart(), title, now().curves).toBlob((blob) => download(`${file}.png`, blob))),
    button("SVG", () => {
      const { curves, x, y } = now();
      download(`${file}.svg`, new Blob([svgOf(chart(), title, curves, x, y)], { type: "image/svg+xml" }));
    }),
    button("CSV", () => {
      const { curves, x, y } = now();
      download(`${file}.csv`, new Blob([csvOf(curves, x, y)], { type: "text/csv" }));
    }));
}

/** Paper is narrower than most screens: charts take its width while it is printed. */
const PAPER = 660;
addEventListener("beforeprint", () => {
  for (const chart of charts) chart.setSize({ width: Math.min(chart.width, PAPER), height: chart.height });
});
addEventListener("afterprint", () => {
  for (const chart of charts) {
    const width = chart.root.parentElement.clientWidth;
    if (width) chart.setSize({ width, height: chart.height });
  }
});
